"""`twolink learn-residual`: a small network learns from logs what the model lacks."""
from __future__ import annotations

import sys
from pathlib import Path

from ..errors import InputError

HELP = "learn from logs what the model lacks, and nothing else"


def add_arguments(parser):
    parser.add_argument("logs", nargs="+", metavar="LOG.csv", help="recordings: time, positions, velocities, efforts")
    parser.add_argument("--urdf", default="twolink", metavar="FILE",
                        help="the model (path or shipped name; default twolink)")
    parser.add_argument("--out", default="residual.npz", metavar="FILE", help="where to write (default residual.npz)")
    parser.add_argument("--validate", action="append", default=[], metavar="LOG.csv",
                        help="judge on this recording (default: on the last fifth of every log, not trained on)")
    parser.add_argument("--tip", default=None, help="tip link, for a branched arm")
    parser.add_argument("--units", type=int, default=12, help="hidden units (default 12)")
    parser.add_argument("--iterations", type=int, default=300, help="at most so many steps (default 300)")
    parser.add_argument("--seed", type=int, default=0, help="of the first weights (default 0)")
    parser.add_argument("--cutoff", type=float, default=None, metavar="HZ",
                        help="zero-phase low-pass before differentiating (default 30 Hz)")


def run(args):
    """0: something was learnt; 1: nothing worth it, the output is 0; 130: interrupted, the best so far is written."""
    from ..residual import training
    from ..resources import find_urdf
    from ..trajectory import Trajectory
    from ..urdf import load_urdf
    cutoff = training.CUTOFF if args.cutoff is None else args.cutoff
    if not cutoff > 0.0:
        raise InputError(f"--cutoff {cutoff:g} Hz must be positive")
    if not Path(args.out).resolve().parent.is_dir():
        raise InputError(f"--out: there is no folder '{Path(args.out).resolve().parent}'")
    arm = load_urdf(find_urdf(args.urdf), tip=args.tip)

    def read(paths):
        return [Trajectory.from_csv(path, arm.joint_names) for path in paths]

    def progress(iteration, error):
        if iteration % 5 == 1:
            print(f"\rlearning: step {iteration - 1} of at most {args.iterations}, "
                  f"{100.0 * error:.1f} % of the residual left on unseen samples ", end="", file=sys.stderr, flush=True)
    residual = training.fit(read(args.logs), arm, validate=read(args.validate), units=args.units, seed=args.seed,
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
