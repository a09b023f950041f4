"""Lagrange's equations in symbols."""
import numpy as np
import pytest
from arms import PRISMATIC, REVOLUTE, build_arm, random_arm
from corpus import mini, shipped

from twolink_dynamics import ModelError

sp = pytest.importorskip("sympy")
from twolink_dynamics import lagrangian, planar  # noqa: E402 - after the skip


def test_closed_form_is_euler_lagrange_for_every_parameter():
    from twolink_dynamics.verify import two_link_defects
    assert two_link_defects() == 0


def test_a_wrong_closed_form_is_not_zero():
    d = lagrangian.two_link()
    t = planar.terms(planar.TwoLinkParameters(**d.parameters), *d.theta, lib=sp)
    (w1, w2), (a1, a2) = d.rate, d.acceleration
    lost = t.M11 * a1 + t.M12 * a2 - t.b * (w1 * w2 + w2**2) + t.g1
    assert not lagrangian.trigonometric_zero(d.torque[0] - lost, d.theta)


def test_energies_come_from_positions():
    """K is quadratic in the rates and its Hessian is M; nothing of M was put in."""
    d = lagrangian.two_link()
    t = planar.terms(planar.TwoLinkParameters(**d.parameters), *d.theta, lib=sp)
    hessian = sp.hessian(d.kinetic, d.rate)
    for ours, theirs in zip(hessian, (t.M11, t.M12, t.M12, t.M22)):
        assert lagrangian.trigonometric_zero(ours - theirs, d.theta)


@pytest.fixture(scope="module")
def derived():
    return lagrangian.derive(shipped("twolink"))


def test_shipped_arm_written_out(derived):
    q1, q2 = derived.q
    w1, w2 = derived.qd
    rods = {"M11": sp.Rational(257, 300) + sp.Rational(2, 5) * sp.cos(q2)}
    assert abs(sp.N((derived.mass_matrix[0, 0] - rods["M11"]).subs(q2, 0.7))) < 1e-14
    assert sp.simplify(derived.coriolis_matrix - sp.Matrix([[-0.2 * sp.sin(q2) * w2, -0.2 * sp.sin(q2) * (w1 + w2)],
                                                            [0.2 * sp.sin(q2) * w1, 0]])).norm() < 1e-14
    assert derived.gravity[1].has(sp.cos(q1 + q2)) and derived.defect() == 0


def test_expressions_satisfy_the_definitions(derived):
    """g = ∂P/∂q, M = ∂²K/∂q̇², Ṁ − 2C skew, τ = M q̈ + C q̇ + g, differentiated by SymPy."""
    q, qd, qdd = (sp.Matrix(x) for x in (derived.q, derived.qd, derived.qdd))
    P, K, M, C = derived.potential, derived.kinetic, derived.mass_matrix, derived.coriolis_matrix
    rate = sum((M.diff(a) * b for a, b in zip(derived.q, derived.qd)), sp.zeros(2))
    at = dict(zip((*derived.q, *derived.qd, *derived.qdd), (0.3, -1.1, 0.7, 1.9, -0.4, 2.2)))
    for zero in (sp.Matrix([P.diff(x) for x in q]) - derived.gravity, sp.hessian(K, derived.qd) - M,
                 (rate - 2 * C) + (rate - 2 * C).T, M * qdd + C * qd + derived.gravity - derived.torque):
        assert np.abs(np.array(zero.subs(at), float)).max() < 1e-14


@pytest.mark.parametrize("arm", [
    shipped("awkward"), mini("mimic_elbow"), mini("gripper"), mini("prismatic_vertical_first"), mini("two_branches"),
    shipped("twolink").with_joints(rotor_inertia=1e-4, gear_ratio=[-6, 50], rotor_coupling=True),
    build_arm(3, (PRISMATIC, REVOLUTE, PRISMATIC), (-1, 0, 1)), random_arm(8, n=3),
], ids=lambda arm: arm.name)
def test_euler_lagrange_is_M_C_g_exactly(arm):
    assert lagrangian.derive(arm).defect() == 0


def test_text_and_latex_carry_the_numbers(derived):
    text, latex = lagrangian.equations(shipped("twolink"))
    assert "M11 = 0.856667 + 0.4 cos(q2)" in text and "g1 = 17.1675 cos(q1) + 3.924 cos(q1 + q2)" in text
    assert "C11 = -0.2 q̇2 sin(q2)" in text and "q1 = joint1 [rad, N m]" in text
    assert latex.startswith(r"\begin{aligned}") and latex.rstrip().endswith(r"\end{aligned}")
    assert r"M_{11} &= 0.856667 + 0.4 \cos(q_{2})" in latex and latex.count("{") == latex.count("}")
    assert derived.text() == text and derived.latex() == latex
    assert "[m, N]" in lagrangian.equations(mini("prismatic_second")).text
    followed = lagrangian.equations(mini("mimic_elbow")).text
    assert "0.5 q1" in followed  # cos(−0.5 q1 + 0.2)


def test_beyond_three_coordinates_says_so():
    with pytest.raises(ModelError, match="sixlink.*6 coordinates"):
        lagrangian.derive(shipped("sixlink"))
    text, latex = lagrangian.equations(shipped("sixlink"))
    assert "6 coordinates" in text and "mathbb{R}^{6}" in latex


def test_rotated_inertials_leave_no_dust():
    """Decimals of cos and sin do not square to one exactly: what is left over must not show as terms."""
    text = lagrangian.equations(shipped("awkward")).text
    assert "e-1" not in text and "C22 = 0" in text.splitlines()
