"""`twolink excite`: a motion within the arm's limits that tells its parameters apart."""

from __future__ import annotations

import sys
from pathlib import Path

from ..errors import InputError

HELP = "make the motion to record for `twolink identify`"


def add_arguments(parser):
    parser.add_argument(
        "--urdf", default="twolink", metavar="FILE", help="the arm (path or shipped name; default twolink)"
    )
    parser.add_argument("--tip", metavar="LINK", help="the link that is the tip (default: the only leaf)")
    parser.add_argument(
        "--out", default="excitation", metavar="NAME", help="writes NAME.csv and NAME.yaml (default excitation)"
    )
    parser.add_argument("--period", type=float, default=10.0, metavar="S", help="of the motion (default 10 s)")
    parser.add_argument("--periods", type=int, default=1, help="how many are written (default 1)")
    parser.add_argument("--harmonics", type=int, default=5, help="of each joint (default 5)")
    parser.add_argument("--rate", type=float, default=50.0, metavar="HZ", help="points per second (default 50)")
    parser.add_argument("--lead", type=float, default=3.0, metavar="S", help="time to reach the start (default 3 s)")
    for name, what in (
        ("lower", "position"),
        ("upper", "position"),
        ("velocity", "velocity"),
        ("acceleration", "acceleration"),
        ("effort", "effort"),
    ):
        parser.add_argument(
            f"--{name}", metavar="X,...", help=f"{what} limit, one or one per joint (default: the URDF's)"
        )
    parser.add_argument(
        "--rotor", choices=("none", "diagonal", "coupled"), default="none", help="rotor inertias to be identified"
    )
    parser.add_argument(
        "--iterations", type=int, default=300, help="of the search (default 300; Ctrl-C keeps the best)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the search (default 0)")


def run(args):
    """0: written; 130: stopped by Ctrl-C, the best so far is written."""
    from ..identification import optimise_excitation
    from ..identification.playback import write_csv, write_yaml
    from ..resources import find_urdf
    from ..urdf import load_urdf

    if args.rate <= 0.0 or args.periods < 1 or args.lead < 0.0:
        raise InputError("--rate must be positive, --periods at least 1 and --lead not negative")
    folder = Path(args.out).resolve().parent
    if not folder.is_dir():
        raise InputError(f"--out: there is no folder '{folder}'")
    arm = load_urdf(find_urdf(args.urdf), tip=args.tip)

    def limit(text, name):
        if text is None:
            return None
        try:
            values = [float(part) for part in text.split(",")]
        except ValueError:
            raise InputError(f"--{name} '{text}' is not a list of numbers") from None
        return values if len(values) > 1 else values[0]

    def progress(iteration, condition):
        if iteration % 5 == 0 or iteration == args.iterations:
            print(
                f"\r  {iteration} of {args.iterations}: condition {condition:.4g}   ",
                end="",
                file=sys.stderr,
                flush=True,
            )

    limits = {
        name: limit(getattr(args, name), name) for name in ("lower", "upper", "velocity", "acceleration", "effort")
    }
    found = optimise_excitation(
        arm,
        period=args.period,
        harmonics=args.harmonics,
        rotor=args.rotor,
        seed=args.seed,
        iterations=args.iterations,
        progress=progress,
        **limits,
    )
    print(file=sys.stderr)
    points = found.points(args.periods, args.rate, args.lead)
    write_csv(f"{args.out}.csv", arm, points)
    write_yaml(f"{args.out}.yaml", arm, points)
    print(
        f"condition {found.condition:.4g} of the scaled base regressor; share of the limits used by "
        f"{', '.join(arm.joint_names)}:"
    )
    for name, share in found.limits.items():
        print(f"  {name:12s} {'  '.join(f'{100 * value:.0f} %' for value in share)}")
    print(
        f"written: {args.out}.csv (time, positions, velocities, model torques) and {args.out}.yaml "
        f"(trajectory_msgs/JointTrajectory)"
    )
    print(
        f'play it: ros2 topic pub --once joint_trajectory trajectory_msgs/msg/JointTrajectory "$(cat {args.out}.yaml)"'
    )
    return 130 if found.interrupted else 0
