"""The numbers printed in the texts this package grew from, and in Modern Robotics (Lynch & Park), ch. 8."""
import numpy as np
import pytest
import sympy as sp
from corpus import mini, shipped

from twolink_dynamics import Dynamics, planar
from twolink_dynamics.lagrangian import SymbolicDynamics, trigonometric_zero, two_link
from twolink_dynamics.planar import TwoLinkParameters
from twolink_dynamics.verify import finite_difference_torque, free_fall, lost_factor, workless_error

PRINTED = 5e-5  # four decimals
EXACT = 1e-13
ROD = TwoLinkParameters(L1=0.5, m1=3.0, m2=2.0, lc1=0.25, lc2=0.2, I1=3.0 * 0.5**2 / 12, I2=2.0 * 0.4**2 / 12)
STATE = np.radians([30.0, 45.0]), np.array([1.0, -0.5]), np.array([2.0, 1.0])


@pytest.fixture(scope="module")
def arm():
    return shipped("twolink")


@pytest.fixture(scope="module")
def engines(arm):
    return [Dynamics(arm), Dynamics(arm, engine="newton_euler"), SymbolicDynamics(arm)]


def test_shipped_arm_is_the_rod_arm(arm):
    """URDF q is the textbook's q: x–z plane, axes −y."""
    p = TwoLinkParameters.from_arm(arm)
    for name in ("L1", "m1", "m2", "lc1", "lc2", "I1", "I2", "g0", "d1", "d2", "start1", "start2", "elbow"):
        assert getattr(p, name) == pytest.approx(getattr(ROD, name), abs=1e-15), name
    q = np.array([0.3, 0.4])
    rotation, position = Dynamics(arm).tip_pose(q)
    expected = 0.5 * np.array([np.cos(0.3), 0, np.sin(0.3)]) + 0.4 * np.array([np.cos(0.7), 0, np.sin(0.7)])
    assert position == pytest.approx(expected, abs=1e-15)


def test_mass_matrix_coefficients(arm):
    for q2 in (0.0, 1.0, np.pi):
        M = Dynamics(arm).mass_matrix([0.7, q2])
        assert M[0, 0] == pytest.approx(0.856667 + 0.4 * np.cos(q2), abs=5e-7)
        assert M[0, 1] == M[1, 0] == pytest.approx(0.106667 + 0.2 * np.cos(q2), abs=5e-7)
        assert M[1, 1] == pytest.approx(0.106667, abs=5e-7)
    assert Dynamics(arm).mass_matrix([0, 0])[0, 0] == pytest.approx(1.2567, abs=PRINTED)
    assert Dynamics(arm).mass_matrix([0, np.pi])[0, 0] == pytest.approx(0.4567, abs=PRINTED)
    assert planar.beta(ROD) == pytest.approx(0.2, abs=EXACT)
    assert planar.gravity_coefficients(ROD) == pytest.approx((17.1675, 3.924), abs=EXACT)


def test_parallel_axes_read_off_M11(arm):
    """Stretched (q2 = 0) and folded (q2 = π), M11 is the sum of parallel-axis inertias about joint 1."""
    for q2, reach in ((0.0, 0.5 + 0.2), (np.pi, 0.5 - 0.2)):
        steiner = ROD.I1 + 3.0 * 0.25**2 + ROD.I2 + 2.0 * reach**2
        assert Dynamics(arm).mass_matrix([0.4, q2])[0, 0] == pytest.approx(steiner, abs=EXACT)


def test_worked_state_term_by_term(engines):
    q, qd, qdd = STATE
    for one in engines:
        assert one.mass_matrix(q) == pytest.approx(np.array([[1.1395, 0.2481], [0.2481, 0.1067]]), abs=PRINTED)
        assert one.mass_matrix(q) @ qdd == pytest.approx([2.5271, 0.6028], abs=PRINTED)
        assert one.coriolis_matrix(q, qd) @ qd == pytest.approx([0.1061, 0.1414], abs=PRINTED)
        assert one.gravity(q) == pytest.approx([15.8831, 1.0156], abs=PRINTED)
        assert one.inverse_dynamics(q, qd, qdd) == pytest.approx([18.51627, 1.75987], abs=5e-6)
    assert planar.inverse_dynamics(ROD, q, qd, qdd) == pytest.approx([18.51627, 1.75987], abs=5e-6)


def test_three_random_states(engines):
    rng = np.random.default_rng(1)
    printed = ((12.734756, -3.459386), (-3.914117, 1.050836), (8.151353, 2.843422))
    for expected in printed:
        state = [rng.uniform(-bound, bound, 2) for bound in (np.pi, 3.0, 5.0)]
        for one in engines:
            assert one.inverse_dynamics(*state) == pytest.approx(expected, abs=5e-7)


def test_finite_difference_euler_lagrange(arm):
    tau = finite_difference_torque(arm, *STATE)
    assert tau == pytest.approx([18.516270, 1.759870], abs=5e-7)
    assert np.abs(tau - planar.inverse_dynamics(ROD, *STATE)).max() < 1e-7


class ClosedForm:
    """The textbook's closed form as a model to integrate."""

    @staticmethod
    def forward_dynamics(q, qd, tau):
        return planar.forward_dynamics(ROD, q, qd, tau)


def test_energy_balances_in_free_fall(arm):
    t, drift, swing = free_fall(arm, ClosedForm, 5.0)
    assert len(t) == 5001 and swing > 10.0  # the premise: it really swings
    assert np.abs(drift).max() < 2e-8
    _, drift, _ = free_fall(arm, Dynamics(arm), 5.0)
    assert np.abs(drift).max() < 2e-8


def test_lost_factor_of_two_is_caught(arm):
    _, drift, _ = free_fall(arm, lost_factor(arm), 5.0)
    assert np.abs(drift).max() == pytest.approx(18.6, abs=0.05)


def test_workless_error_is_invisible_to_energy(arm):
    wrong = workless_error(arm)
    _, drift, _ = free_fall(arm, wrong, 5.0, rtol=1e-12, atol=1e-14)
    assert np.abs(drift).max() < 2e-8
    assert np.abs(wrong.bias(*STATE[:2]) - Dynamics(arm).bias(*STATE[:2])).max() > 0.01


# -- Modern Robotics -------------------------------------------------------------------------------------------------
def equation_8_9(m1, m2, L1, L2, g, q, qd, qdd, lib=np):
    """τ of Modern Robotics eq. 8.9, typed from the book: point masses at the ends of the links."""
    c1, c2, s2, c12 = lib.cos(q[0]), lib.cos(q[1]), lib.sin(q[1]), lib.cos(q[0] + q[1])
    tau1 = ((m1 * L1**2 + m2 * (L1**2 + 2 * L1 * L2 * c2 + L2**2)) * qdd[0] + m2 * (L1 * L2 * c2 + L2**2) * qdd[1]
            - m2 * L1 * L2 * s2 * (2 * qd[0] * qd[1] + qd[1]**2) + (m1 + m2) * L1 * g * c1 + m2 * g * L2 * c12)
    tau2 = (m2 * (L1 * L2 * c2 + L2**2) * qdd[0] + m2 * L2**2 * qdd[1] + m2 * L1 * L2 * qd[0]**2 * s2
            + m2 * g * L2 * c12)
    return tau1, tau2


def test_equation_8_9_numerically():
    p = TwoLinkParameters.point_masses(1.3, 0.7, 0.6, 0.9)
    rng = np.random.default_rng(3)
    for _ in range(20):
        q, qd, qdd = rng.uniform(-3, 3, (3, 2))
        assert planar.inverse_dynamics(p, q, qd, qdd) == pytest.approx(
            equation_8_9(1.3, 0.7, 0.6, 0.9, 9.81, q, qd, qdd), abs=1e-12)


def test_equation_8_9_symbolically():
    """Euler–Lagrange with I = 0, lc = L, d = 0 minus eq. 8.9 is 0, for every parameter."""
    d = two_link()
    p = d.parameters
    book = equation_8_9(p["m1"], p["m2"], p["L1"], p["lc2"], p["g0"], d.theta, d.rate, d.acceleration, sp)
    reduced = {p["I1"]: 0, p["I2"]: 0, p["lc1"]: p["L1"], p["d1"]: 0, p["d2"]: 0}
    for ours, theirs in zip(d.torque, book):
        assert trigonometric_zero(ours.subs(reduced) - theirs, d.theta)
        assert not trigonometric_zero(ours.subs(reduced) - theirs + p["m1"] * sp.sin(d.theta[1]), d.theta)


def test_figure_8_3():
    p = TwoLinkParameters.point_masses(1.0, 1.0, 1.0, 1.0)
    assert planar.mass_matrix(p, np.radians([10.0, 90.0])) == pytest.approx(np.array([[3, 1], [1, 1]]), abs=1e-12)
    printed = np.array([[1.27, 0.13], [0.13, 1.0]])
    assert planar.mass_matrix(p, np.radians([-70.0, 150.0])) == pytest.approx(printed, abs=5e-3)


def test_gravity_free_point_mass_arm():
    """D(q) q̈ + C(q, q̇) q̇ = τ in p1, p2, p3 (the source prints the third as a second p2)."""
    m1, m2, l1, l2 = 1.5, 0.8, 0.7, 0.4
    p1, p2, p3 = planar.point_mass_parameters(m1, m2, l1, l2)
    assert (p1, p2, p3) == (m1 * l1**2 + m2 * l1**2, m2 * l2**2, m2 * l1 * l2)
    p = TwoLinkParameters.point_masses(m1, m2, l1, l2, g0=0.0)
    q, qd, qdd = np.array([0.4, 1.1]), np.array([0.9, -1.3]), np.array([2.0, 0.5])
    D = np.array(planar.point_mass_matrix(p1, p2, p3, q[1]))
    C = np.array(planar.point_mass_coriolis(p3, q[1], *qd))
    assert planar.mass_matrix(p, q) == pytest.approx(D, abs=EXACT)
    assert planar.coriolis_matrix(p, q, qd) == pytest.approx(C, abs=EXACT)
    assert planar.inverse_dynamics(p, q, qd, qdd) == pytest.approx(D @ qdd + C @ qd, abs=EXACT)
    s2 = np.sin(q[1])
    assert C == pytest.approx(np.array([[-m2 * l1 * l2 * s2 * qd[1], -m2 * l1 * l2 * s2 * (qd[0] + qd[1])],
                                        [m2 * l1 * l2 * s2 * qd[0], 0.0]]), abs=EXACT)


def test_angle_from_the_vertical():
    """A text that measures θ1 from the vertical: q1 = θ1 + π/2; its link directions er = (−sin, cos) are ours."""
    theta = np.array([0.3, -0.8])
    q = theta + [np.pi / 2, 0.0]
    er1, er2 = (np.array([-np.sin(a), np.cos(a)]) for a in (theta[0], theta.sum()))
    _, position = Dynamics(shipped("twolink")).tip_pose(q)
    assert position[[0, 2]] == pytest.approx(0.5 * er1 + 0.4 * er2, abs=1e-15)


def test_unit_rods_at_one_second():
    """Two rods let go from q = (1.2, −0.5): the state at t = 1 s, known to ten digits."""
    from scipy.integrate import solve_ivp
    dynamics = Dynamics(mini("textbook_2R_unit_rods"))
    run = solve_ivp(lambda t, x: np.append(x[2:], dynamics.forward_dynamics(x[:2], x[2:], np.zeros(2))), (0.0, 1.0),
                    [1.2, -0.5, 0.0, 0.0], method="DOP853", rtol=1e-12, atol=1e-13)
    expected = [-2.0655656010832, 1.2876675575589, -5.3106633207, -2.0422785010]
    assert run.y[:, -1] == pytest.approx(expected, abs=5e-9)
