"""`twolink learn-residual`: a small network learns from logs what the model lacks."""
from __future__ import annotations

import sys
from pathlib import Path

from ..errors import InputError
from ._log_options import add_log_arguments, add_rotor_arguments, log_format, with_rotors

HELP = "learn from logs what the model lacks, and nothing else"


def add_arguments(parser):
    parser.add_argument("logs", nargs="+", metavar="LOG", help="CSV file, or rosbag2 (folder, .mcap, .db3)")
    parser.add_argument("--urdf", default="twolink", metavar="FILE",
                        help="the model (path or shipped name; default twolink)")
    parser.add_argument("--out", default="residual.npz", metavar="FILE", help="where to write (default residual.npz)")
    parser.add_argument("--validate", action="append", default=[], metavar="LOG",
                        help="judge on this recording (default: on the last fifth of every log, not trained on)")
    parser.add_argument("--tip", default=None, help="tip link, for a branched arm")
    parser.add_argument("--hidden", type=int, default=12, help="hidden units (default 12)")
    parser.add_argument("--iterations", type=int, default=300, help="at most so many steps (default 300)")
    parser.add_argument("--seed", type=int, default=0, help="of the first weights (default 0)")
    parser.add_argument("--cutoff", type=float, default=None, metavar="HZ",
                        help="zero-phase low-pass before differentiating (default 30 Hz)")
    add_rotor_arguments(parser)
    parser.add_argument("--rotor-coupling", action="store_true", help="rotors couple with the link that carries them")
    add_log_arguments(parser)


def run(args):
    """0: something was learnt; 1: nothing worth it, the output is 0; 130: interrupted, the best so far is written."""
    from ..identification import read_log
    from ..residual import training
    from ..resources import find_urdf
    from ..urdf import load_urdf
    cutoff = training.CUTOFF if args.cutoff is None else args.cutoff
    if not cutoff > 0.0:
        raise InputError(f"--cutoff {cutoff:g} Hz must be positive")
    if not Path(args.out).resolve().parent.is_dir():
        raise InputError(f"--out: there is no folder '{Path(args.out).resolve().parent}'")
    arm = with_rotors(load_urdf(find_urdf(args.urdf), tip=args.tip), args)
    if args.rotor_coupling:
        arm = arm.with_joints(rotor_coupling=True)
    fmt = log_format(args, arm)

    def read(paths):
        logs = [read_log(path, arm, fmt, check=not args.no_check) for path in paths]
        for log in logs:
            for remark in log.remarks:
                print(f"remark: {log.name}: {remark}", file=sys.stderr)
        return logs

    def progress(iteration, error):
        if iteration % 5 == 1:
            print(f"\rlearning: step {iteration - 1} of at most {args.iterations}, "
                  f"{100.0 * error:.1f} % of the residual left on unseen samples ", end="", file=sys.stderr, flush=True)
    residual = training.fit(read(args.logs), arm, validate=read(args.validate), units=args.hidden, seed=args.seed,
                            iterations=args.iterations, cutoff=cutoff, progress=progress)
    print(file=sys.stderr)
    try:
        residual.save(args.out)
    except OSError as error:
        raise InputError(f"--out: cannot write '{args.out}': {error.strerror}") from None
    for line in training.summary(residual):
        print(line)
    print(f"written to {args.out}: {residual.notes['samples']} samples learnt, {residual.notes['held_out']} judged"
          + (", interrupted" if residual.notes["interrupted"] else ""))
    if residual.notes["interrupted"]:
        return 130
    return 0 if any(residual.notes["useful"]) else 1
