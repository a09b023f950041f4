"""twolink verify: the four-way proof of an arm's equations."""
from __future__ import annotations

import sys

from ..errors import InputError
from ._model_options import add_model_arguments, arm_from

HELP = ("prove an arm's equations in four independent ways (symbolic Lagrange, Newton-Euler, finite differences, "
        "energy); exit status 1 on disagreement")
WRONG = ("factor", "workless")


def add_arguments(parser):
    add_model_arguments(parser)
    parser.add_argument("--samples", type=int, default=50, metavar="N", help="random states to compare at (default 50)")
    parser.add_argument("--duration", type=float, default=5.0, metavar="S",
                        help="seconds of free fall for the energy balance (default 5; 0 leaves it out)")
    parser.add_argument("--break", dest="wrong", choices=WRONG,
                        help="judge a model that is wrong on purpose: 'factor' loses the 2 of 2 q̇1 q̇2 (two-link arms), "
                             "'workless' adds a torque that does no work and that energy cannot see")


def run(args):
    from .. import verify
    arm = arm_from(args)
    if args.samples < 1 or not 0.0 <= args.duration <= 3600.0:
        raise InputError(f"--samples {args.samples} must be at least 1 and --duration {args.duration:g} between 0 and "
                         "3600 s")
    model = None
    if args.wrong:
        model = verify.lost_factor(arm) if args.wrong == "factor" else verify.workless_error(arm)
    proof = verify.verify(arm, model, args.samples, args.duration, lambda line: print(f"{line} ...", file=sys.stderr))
    print(proof.text())
    return 0 if proof.passed else 1
