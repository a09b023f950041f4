"""twolink derive: the equations of motion of an arm, with its numbers."""
from __future__ import annotations

import sys

from ._model_options import add_model_arguments, arm_from

HELP = "derive M, C and g of an arm with Lagrange's equations and print them, with the arm's numbers or as symbols"


def add_arguments(parser):
    add_model_arguments(parser)
    parser.add_argument("--latex", action="store_true", help="as LaTeX instead of text")
    parser.add_argument("--symbols", action="store_true",
                        help="of the two-link arm with every parameter a symbol, as the textbook has it")
    parser.add_argument("--max-joints", type=int, default=3, metavar="N",
                        help="derive up to N coordinates (default 3; a general fourth takes minutes)")


def run(args):
    print("deriving ...", file=sys.stderr)
    if args.symbols:
        from ..planar import TwoLinkParameters
        arm = arm_from(args)
        TwoLinkParameters.from_arm(arm)  # says why where an arm is not planar
        print(_symbols(args.latex))
        return 0
    from ..lagrangian import derive
    equations = derive(arm_from(args), args.max_joints)
    print(equations.latex() if args.latex else equations.text())
    return 0


def _symbols(latex):
    """The textbook's closed form; `twolink verify` proves it equal to Euler–Lagrange."""
    if latex:
        return "\n".join([
            r"\begin{aligned}",
            r"M_{11} &= m_1(l_{c1}^2 + d_1^2) + I_1 + m_2 L_1^2 + M_{22} + 2h,\quad M_{12} = M_{22} + h,\quad "
            r"M_{22} = m_2(l_{c2}^2 + d_2^2) + I_2 \\",
            r"h &= \beta\cos\theta_2 - m_2 L_1 d_2\sin\theta_2,\quad \beta = m_2 L_1 l_{c2},\quad "
            r"b = \beta\sin\theta_2 + m_2 L_1 d_2\cos\theta_2 \\",
            r"\tau_1 &= M_{11}\ddot\theta_1 + M_{12}\ddot\theta_2 "
            r"- b\,(2\dot\theta_1\dot\theta_2 + \dot\theta_2^2) + g_1 \\",
            r"\tau_2 &= M_{12}\ddot\theta_1 + M_{22}\ddot\theta_2 + b\,\dot\theta_1^2 + g_2 \\",
            r"g_1 &= (m_1 l_{c1} + m_2 L_1)g_0\cos\theta_1 - m_1 d_1 g_0\sin\theta_1 + g_2 \\",
            r"g_2 &= m_2 g_0\,\bigl(l_{c2}\cos(\theta_1+\theta_2) - d_2\sin(\theta_1+\theta_2)\bigr)",
            r"\end{aligned}"])
    return "\n".join([
        "M11 = m1 (lc1² + d1²) + I1 + m2 L1² + M22 + 2 h",
        "M12 = M22 + h",
        "M22 = m2 (lc2² + d2²) + I2",
        "h   = β cos θ2 - m2 L1 d2 sin θ2        β = m2 L1 lc2",
        "b   = β sin θ2 + m2 L1 d2 cos θ2",
        "τ1  = M11 θ̈1 + M12 θ̈2 - b (2 θ̇1 θ̇2 + θ̇2²) + g1",
        "τ2  = M12 θ̈1 + M22 θ̈2 + b θ̇1² + g2",
        "g1  = (m1 lc1 + m2 L1) g0 cos θ1 - m1 d1 g0 sin θ1 + g2",
        "g2  = m2 g0 (lc2 cos(θ1 + θ2) - d2 sin(θ1 + θ2))",
        "d1 = d2 = 0 where the centres of mass are on the link line"])
