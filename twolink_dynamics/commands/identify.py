"""`twolink identify`: recordings and a URDF in; a physical arm with error bars, a report and a URDF out."""

from __future__ import annotations

import sys
from pathlib import Path

from ..errors import InputError
from ._log_options import add_log_arguments, add_rotor_arguments, log_format, number, with_rotors

HELP = "find the arm's masses, inertias and friction from recordings"


def add_arguments(parser):
    parser.add_argument("logs", nargs="+", metavar="LOG", help="CSV file, or rosbag2 (folder, .mcap, .db3)")
    parser.add_argument(
        "--urdf", required=True, metavar="FILE", help="the arm's geometry and prior (path or shipped name)"
    )
    parser.add_argument("--tip", metavar="LINK", help="the link that is the tip (default: the only leaf)")
    parser.add_argument(
        "--gravity",
        nargs=3,
        type=float,
        default=(0.0, 0.0, -9.81),
        metavar=("X", "Y", "Z"),
        help="gravity in the root frame [m/s²] (default 0 0 -9.81)",
    )
    parser.add_argument(
        "--validate", action="append", default=[], metavar="LOG", help="judge on this log too; not fitted"
    )
    parser.add_argument(
        "--out", default="identified", metavar="DIR", help="folder for URDF, YAML and report (default identified)"
    )
    signals = parser.add_argument_group("signals")
    signals.add_argument(
        "--filter-hz", type=float, metavar="HZ", help="zero-phase Butterworth cut-off (default: from the spectrum)"
    )
    signals.add_argument(
        "--filter-order", type=int, default=3, metavar="N", help="its order (default 3, applied both ways)"
    )
    signals.add_argument(
        "--velocity",
        choices=("position", "measured"),
        default="position",
        help="differentiate positions, or use the velocity columns",
    )
    signals.add_argument(
        "--delay", default="auto", metavar="S", help="seconds by which positions lag efforts (default auto: estimated)"
    )
    model = parser.add_argument_group("model")
    model.add_argument(
        "--rotor", choices=("none", "diagonal", "coupled"), default="none", help="fit rotor inertias (default none)"
    )
    add_rotor_arguments(model)
    model.add_argument("--no-friction", action="store_true", help="fit no friction")
    model.add_argument("--stribeck", action="store_true", help="fit a Stribeck term too, its velocity searched")
    model.add_argument(
        "--smooth",
        metavar="KIND[:SCALE]",
        default="tanh:0.005",
        help="sign of the velocity: sign, tanh:SCALE or atan:SCALE [rad/s] (default tanh:0.005)",
    )
    model.add_argument("--offset", action="store_true", help="fit a constant effort per joint")
    model.add_argument(
        "--fix", action="append", default=[], metavar="NAME[=VALUE]", help="hold a parameter, e.g. my1=0 or Ir2"
    )
    model.add_argument(
        "--payload", metavar="KG[,X,Y,Z]", help="known body on the tip while recording: mass and its centre [m]"
    )
    model.add_argument("--plain", action="store_true", help="neither joint weighting nor Huber's function")
    model.add_argument(
        "--prior-weight", type=float, default=0.1, metavar="W", help="of the URDF's bodies (default 0.1)"
    )
    add_log_arguments(parser)


def run(args):
    """0: written; 130: stopped by Ctrl-C, what there was is written."""
    import yaml  # noqa: F401  said early, not after the fit

    from ..identification import FrictionTerms, Payload, identify, read_log, write_all
    from ..resources import find_urdf
    from ..urdf import load_urdf

    path = find_urdf(args.urdf)
    arm = load_urdf(path, tip=args.tip, gravity=args.gravity)
    arm = with_rotors(arm, args)
    fmt = log_format(args, arm)
    kind, _, scale = args.smooth.partition(":")
    friction = FrictionTerms(
        not args.no_friction, not args.no_friction, None, kind, number(scale or "0.005", "--smooth")
    )
    payload = None
    if args.payload:
        numbers = [number(text, "--payload") for text in args.payload.split(",")]
        if len(numbers) not in (1, 4):
            raise InputError(f"--payload '{args.payload}' is not KG or KG,X,Y,Z")
        payload = Payload(numbers[0], tuple(numbers[1:]) or (0.0, 0.0, 0.0))
    delay = "auto" if args.delay == "auto" else number(args.delay, "--delay")

    def tell(text):
        print(f"  {text}", file=sys.stderr, flush=True)

    logs, checks = [], []
    for names, into in ((args.logs, logs), (args.validate, checks)):
        for name in names:
            tell(f"reading {name}")
            into.append(read_log(name, arm, fmt, check=not args.no_check))
    result = identify(
        arm,
        logs,
        validate=checks,
        hz=args.filter_hz,
        order=args.filter_order,
        velocity=args.velocity,
        friction=friction,
        stribeck=args.stribeck,
        rotor=args.rotor,
        offset=args.offset,
        fixed=_fixed(args.fix),
        payload=payload,
        delay=delay,
        weighted=not args.plain,
        robust=not args.plain,
        prior_weight=args.prior_weight,
        progress=tell,
    )
    tell("writing")
    paths = write_all(result, args.out, Path(path).read_text(encoding="utf-8", errors="replace"))
    for line in summary(result):
        print(line)
    print("written: " + ", ".join(str(path) for path in paths))
    return 130 if result.interrupted else 0


def summary(result):
    """Lines of text: parameters with verdicts, errors, remarks."""
    delay, error = result.delay
    yield (
        f"{result.arm.name}: {len(result.base.names)} base parameters of {int((~result.model.fixed).sum())}, condition "
        f"{result.condition:.3g}, filter {result.hz_reason}, positions lag by {1e3 * delay:.2g} ± {1e3 * error:.2g} ms"
    )
    width = max(len(row.name) for row in result.rows)
    for row in result.rows:
        yield (
            f"  {row.name:{width}s} {row.value:11.5g} ± {row.error:<8.2g} physical {row.physical:11.5g} {row.unit:10s} "
            f"{row.verdict} ({row.why})"
        )
    unknown = [row.name for row in result.rows if row.verdict == "not identifiable"]
    if unknown:
        yield f"not identifiable from these logs: {'; '.join(unknown)}"
    for value, text in result.poor_directions[:3]:
        yield f"hardly told apart (relative singular value {value:.2g}): {text}"
    for role, signals_ in (("training", result.signals), ("validation", result.validation)):
        for signals in signals_:
            physical = result.rms(signals)
            plain = result.rms(signals, "least_squares")
            given = result.rms(signals, "cad")
            yield (
                f"RMS torque error on {signals.name} ({role}), physical {_listed(physical)} (total "
                f"{(physical**2).sum() ** 0.5:.4g}), least squares {_listed(plain)}, URDF given {_listed(given)} N m"
            )
    for remark in result.remarks:
        yield f"remark: {remark}"


def _listed(values):
    return " / ".join(f"{value:.4g}" for value in values)


def _fixed(texts):
    fixed = {}
    for text in texts:
        name, equals, value = text.partition("=")
        fixed[name.strip()] = number(value, "--fix") if equals else None
    return fixed
