"""Arguments of every command that reads recordings: how a log is to be read, and the rotors a URDF cannot hold."""

from __future__ import annotations

from ..errors import InputError


def add_log_arguments(parser):
    """--joints --columns --units --effort ...."""
    files = parser.add_argument_group("reading the logs")
    files.add_argument("--joints", metavar="NAME,...", help="joints behind pos1, pos2, ... (default: the URDF's order)")
    files.add_argument(
        "--columns",
        action="append",
        default=[],
        metavar="QUANTITY=NAME,...",
        help="columns of time, position, velocity or effort, in the URDF's joint order",
    )
    files.add_argument(
        "--units",
        action="append",
        default=[],
        metavar="QUANTITY=UNIT",
        help="e.g. time=ms position=deg velocity=deg/s effort=Nmm",
    )
    files.add_argument("--effort", choices=("measured", "commanded"), default="measured", help="which efforts to use")
    files.add_argument("--effort-side", choices=("joint", "motor"), default="joint", help="motor: times the gear ratio")
    files.add_argument("--effort-sign", metavar="S,...", help="+1 or -1 per joint")
    files.add_argument("--position-sign", metavar="S,...", help="+1 or -1 per joint")
    files.add_argument("--position-offset", metavar="Q,...", help="added to the positions [rad or m]")
    files.add_argument("--state-topic", default="joint_states", help="of a bag (default joint_states)")
    files.add_argument(
        "--command-topic", default="effort_controller/commands", help="of a bag, with --effort commanded"
    )
    files.add_argument("--command-joints", metavar="NAME,...", help="order of its values (default: the URDF's)")
    files.add_argument("--no-check", action="store_true", help="do not compare the logs with the arm")


def add_rotor_arguments(parser):
    """--gear-ratio --rotor-inertia."""
    parser.add_argument("--gear-ratio", metavar="R,...", help="signed gear ratios, one or one per joint")
    parser.add_argument(
        "--rotor-inertia", metavar="I,...", help="rotor inertias [kg m²], motor side: prior, or known without --rotor"
    )


def with_rotors(arm, args):
    """The arm with the gear ratios and rotor inertias of the arguments."""
    for name in ("gear_ratio", "rotor_inertia"):
        text = getattr(args, name)
        if text:
            arm = arm.with_joints(**{name: numbers(text, "--" + name.replace("_", "-"), arm.n)})
    return arm


def number(text, option):
    """The float in an argument."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{option}: '{text}' is not a number") from None


def numbers(text, option, n):
    """n floats, from one or n separated by commas."""
    values = [number(part, option) for part in text.split(",")]
    if len(values) not in (1, n):
        raise InputError(f"{option} '{text}': {len(values)} values for {n} joints")
    return tuple(values * n if len(values) == 1 else values)


def _pairs(texts, option):
    pairs = {}
    for text in texts:
        for part in text.split() if option == "--units" else [text]:
            name, equals, value = part.partition("=")
            if not equals or not value:
                raise InputError(f"{option} '{part}' is not QUANTITY=VALUE")
            pairs[name.strip()] = value.strip()
    return pairs


def log_format(args, arm):
    """The LogFormat the arguments mean."""
    from ..identification import LogFormat

    columns = {
        quantity: tuple(name.strip() for name in names.split(","))
        for quantity, names in _pairs(args.columns, "--columns").items()
    }
    signs = {
        name: numbers(value, "--" + name.replace("_", "-"), arm.n)
        for name in ("effort_sign", "position_sign", "position_offset")
        if (value := getattr(args, name))
    }
    return LogFormat(
        columns=columns,
        joints=tuple(args.joints.split(",")) if args.joints else (),
        units=_pairs(args.units, "--units"),
        effort=args.effort,
        effort_side=args.effort_side,
        state_topic=args.state_topic,
        command_topic=args.command_topic,
        command_joints=tuple(args.command_joints.split(",")) if args.command_joints else (),
        **signs,
    )
