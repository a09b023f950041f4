"""`twolink excite`: a motion within the arm's limits that tells its parameters apart."""

from __future__ import annotations

import sys
from pathlib import Path

from ..errors import InputError

HELP = "make the motion to record for `twolink identify`, play it and record"

SIMULATOR = {"lockstep": True, "joint_state_rate": 250.0}
# Stiff: the model it controls with may be wrong by half, and the arm is to follow the motion within 0.5 rad.
CONTROLLER = {"controller": "computed_torque", "kp": [400.0], "kd": [40.0], "state_timeout": 5.0}


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
    play = parser.add_argument_group("playing (needs ROS 2)")
    play.add_argument("--play", metavar="FILE.yaml", help="make nothing: play this file and record")
    play.add_argument("--record", metavar="LOG.csv", help="where to (default: the file's name with _log.csv)")
    play.add_argument(
        "--simulate",
        metavar="URDF",
        help="start a simulator of this arm, and a dynamics node that knows only --urdf; without it the nodes, or the "
        "arm with its joint_trajectory_controller, run already",
    )
    play.add_argument("--namespace", default="", help="of the topics")
    play.add_argument("--joint-states", default="joint_states", metavar="TOPIC")
    play.add_argument("--trajectory", default="joint_trajectory", metavar="TOPIC")


def run(args):
    """0: written; 130: stopped by Ctrl-C, the best or the recording so far is written."""
    return _play(args) if args.play else _make(args)


def _make(args):
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
    print(f"play and record it: twolink excite --urdf {args.urdf} --play {args.out}.yaml --record {args.out}_log.csv")
    return 130 if found.interrupted else 0


def _play(args):
    """Sends the motion as one joint_trajectory, guards the limits, and writes what joint_states said meanwhile."""
    from ..identification.playback import read_motion
    from ..resources import find_urdf
    from ..urdf import load_urdf

    record = Path(args.record or Path(args.play).with_suffix("").as_posix() + "_log.csv")
    if not record.resolve().parent.is_dir():
        raise InputError(f"--record: there is no folder '{record.resolve().parent}'")
    arm = load_urdf(find_urdf(args.urdf), tip=args.tip)
    motion = read_motion(args.play, arm)
    try:
        from ..nodes import session
        from ..nodes.bench_client import RosBench
    except ImportError as error:
        raise InputError(f"--play needs ROS 2 (rclpy and its messages): {error}") from None

    def progress(share):
        print(f"\r  playing: {100.0 * share:.0f} % ", end="", file=sys.stderr, flush=True)

    processes, interrupted = [], False
    try:
        if args.simulate:
            session.private_domain()
            plant, model = str(find_urdf(args.simulate)), str(find_urdf(args.urdf))
            tip = {"tip": args.tip} if args.tip else {}
            processes.append(session.start_process("simulator_node", {"urdf": plant, **SIMULATOR, **tip}))
            processes.append(session.start_process("dynamics_node", {"urdf": model, **CONTROLLER, **tip}))
        with RosBench(
            arm,
            "trajectory",
            namespace=args.namespace,
            joint_states=args.joint_states,
            trajectory=args.trajectory,
            **({"patience": session.PATIENCE} if args.simulate else {}),
        ) as bench:
            try:
                bench.follow(motion, progress)
            except KeyboardInterrupt:
                interrupted = True
            log = bench.recorded
        print(file=sys.stderr)
    finally:
        session.end_processes(processes)
    if log is None:
        raise KeyboardInterrupt
    try:
        log.to_csv(record, arm.joint_names)
    except OSError as error:
        raise InputError(f"--record: cannot write '{record}': {error.strerror}") from None
    print(
        f"{len(log)} joint states in {log.duration:.3g} s{', interrupted' if interrupted else ''}; written: {record}\n"
        f"identify from it: twolink identify {record} --urdf {args.urdf}"
    )
    return 130 if interrupted else 0
