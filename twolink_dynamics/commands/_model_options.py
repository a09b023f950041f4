"""The arguments that every command about one arm takes: which URDF, tip, gravity, locked joints, payload."""
from __future__ import annotations

from ..errors import InputError
from ..resources import find_urdf
from ..urdf import load_urdf


def add_model_arguments(parser, optional=False):
    """URDF --tip --gravity --lock --payload."""
    parser.add_argument("urdf", metavar="URDF", nargs="?" if optional else None,
                        help="a URDF file, or a shipped arm by name (twolink, awkward, sixlink, ...)")
    parser.add_argument("--tip", metavar="LINK", help="the link that is the tip (default: the only leaf)")
    parser.add_argument("--gravity", nargs=3, type=float, default=(0.0, 0.0, -9.81), metavar=("X", "Y", "Z"),
                        help="gravity in the root frame [m/s²] (default 0 0 -9.81)")
    parser.add_argument("--lock", action="append", default=[], metavar="JOINT=VALUE",
                        help="hold a joint at a value [rad or m]; may be given several times")
    parser.add_argument("--payload", type=float, default=0.0, metavar="KG", help="a point mass at the tip [kg]")


def arm_from(args):
    """The Arm the arguments mean; raises TwolinkError."""
    locked = {}
    for text in args.lock:
        name, equals, value = text.rpartition("=")
        try:
            locked[name] = float(value)
        except ValueError:
            equals = ""
        if not equals or not name:
            raise InputError(f"--lock '{text}' is not JOINT=VALUE")
    arm = load_urdf(find_urdf(args.urdf), tip=args.tip, gravity=args.gravity, locked=locked)
    return arm.with_payload(args.payload) if args.payload else arm
