"""Cartesian impedance: compliance, passivity, moving targets, singular poses, walls, and what costs passivity."""
from dataclasses import replace

import numpy as np
import pytest
from conftest import REPOSITORY
from control_helpers import run_continuous, run_sampled, textbook_energy, tip
from scipy.integrate import solve_ivp

from twolink_dynamics import Dynamics, InputError, Reference, State, load_urdf
from twolink_dynamics.arm import make_pose
from twolink_dynamics.contact import Plane
from twolink_dynamics.control import GravityCompensation, Impedance
from twolink_dynamics.control.reference import Circle, at_rest
from twolink_dynamics.control.task_space import TaskSpace, orientation_moment, quaternion
from twolink_dynamics.kinematics import rotation_about
from twolink_dynamics.plant import Plant
from twolink_dynamics.simulation import Simulation

Q0 = np.array([0.4, 1.1])


@pytest.fixture(scope="module")
def dynamics(twolink):
    return Dynamics(twolink)


@pytest.fixture(scope="module")
def six():
    arm = load_urdf(REPOSITORY / "urdf" / "sixlink.urdf")
    return arm, Dynamics(arm)


def space(x):
    """(x, z) as (3,) in the root frame."""
    return np.array([x[0], 0.0, x[1]])


def stored(K, target, q, qd):
    """½ q̇ᵀM q̇ + ½ eᵀK e of the textbook arm (gravity is compensated) [J]."""
    e = target - tip(q)
    return textbook_energy(q, qd) - textbook_energy(q, [0.0, 0.0]) + 0.5 * K * e @ e


# -- the task ------------------------------------------------------------------------------------------------------

def test_reachable_directions_come_from_the_jacobian(twolink, six):
    assert np.array_equal(TaskSpace(Dynamics(twolink), oriented=True).selector, np.eye(6)[[0, 2]])
    turn = rotation_about(np.array([0.0, 0.6, 0.8]), 0.7)  # the same arm on a tilted base
    first = twolink.joints[0]
    turned = replace(first, origin=make_pose(turn @ first.origin.rotation))
    tilted = replace(twolink, joints=(turned, twolink.joints[1]))
    task = TaskSpace(Dynamics(tilted), oriented=False)
    normal = turn @ np.array([0.0, 1.0, 0.0])
    assert task.selector.shape == (2, 6) and np.abs(task.selector[:, :3] @ normal).max() < 1e-9
    assert np.array_equal(TaskSpace(six[1], oriented=True).selector, np.eye(6))
    assert np.array_equal(TaskSpace(six[1], oriented=False).selector, np.eye(6)[:3])


def test_a_tilted_base_changes_nothing_but_the_axes(twolink):
    """Same law, same torque, when arm, gravity, stiffness axes and target turn together."""
    turn = rotation_about(np.array([0.0, 0.6, 0.8]), 0.7)
    first = twolink.joints[0]
    tilted = replace(twolink, gravity=turn @ twolink.gravity,
                     joints=(replace(first, origin=make_pose(turn @ first.origin.rotation)), twolink.joints[1]))
    state, reference = State(Q0, np.array([0.5, -1.0])), at_rest(Q0 + 0.1)
    plain = Impedance(Dynamics(twolink), [300.0, 50.0, 700.0], damping_ratio=0.7)
    turned = Impedance(Dynamics(tilted), [300.0, 50.0, 700.0], damping_ratio=0.7, axes=turn)
    assert np.allclose(plain.efforts(0, state, reference), turned.efforts(0, state, reference), atol=1e-9)


def test_modal_damping_has_the_ratio_it_says(dynamics, six):
    """Λ ẍ + D ẋ + K x = 0 has only eigenvalues with damping ratio ζ, by the 2 × 2 and by the general form."""
    rng = np.random.default_rng(4)
    for model, n in ((dynamics, 2), (six[1], 6)):
        task = TaskSpace(model, oriented=n == 6)
        q = rng.uniform(0.4, 1.2, n)
        J, M = task.selector @ model.jacobian(q), model.mass_matrix(q)
        B = rng.normal(size=(len(J), len(J)))
        K, ratio = 100.0 * (B @ B.T + np.eye(len(J))), 0.6
        inertia, D = task.inertia(M, J), task.modal_damping(M, J, K, ratio)
        r = len(J)
        companion = np.block([[np.zeros((r, r)), np.eye(r)],
                              [-np.linalg.solve(inertia, K), -np.linalg.solve(inertia, D)]])
        s = np.linalg.eigvals(companion)
        assert np.allclose(-s.real / np.abs(s), ratio, atol=1e-6)


# -- compliance ----------------------------------------------------------------------------------------------------

def test_a_constant_force_deflects_by_its_compliance_and_the_tip_returns(dynamics):
    K = np.diag([400.0, 900.0])
    law = Impedance(dynamics, [400.0, 0.0, 900.0], damping_ratio=1.0)
    force = np.array([6.0, -9.0])
    push = lambda t, q, qd: force if t < 3.0 else (0.0, 0.0)  # noqa: E731
    q, _ = run_continuous(law, lambda t: at_rest(Q0), Q0, np.zeros(2), np.array([0.0, 3.0, 6.0]), push=push, rtol=1e-7)
    expected = np.linalg.solve(K, force)
    assert np.abs(tip(q[1]) - tip(Q0) - expected).max() < 0.01 * np.abs(expected).max()
    assert np.abs(tip(q[2]) - tip(Q0)).max() < 1e-4


def test_feed_forward_wrench_pushes_back(dynamics):
    """F_ff equal and opposite to the push: no deflection."""
    law = Impedance(dynamics, 400.0)
    law.set_wrench([-6.0, 0.0, 9.0])
    push = lambda t, q, qd: (6.0, -9.0)  # noqa: E731
    q, _ = run_continuous(law, lambda t: at_rest(Q0), Q0, np.zeros(2), np.array([0.0, 1.0]), push=push)
    assert np.abs(q[-1] - Q0).max() < 1e-8


def test_a_wall_is_pressed_with_the_analytic_force(twolink, dynamics):
    """K diagonal in the wall's frame, target δ behind it: the contact force settles at k_n δ, whatever k_t."""
    turn = rotation_about(np.array([0.0, 1.0, 0.0]), 0.4)
    normal = turn @ np.array([-1.0, 0.0, 0.0])  # towards the arm
    point = space(tip(Q0)) - 0.02 * normal
    k_n, depth = 500.0, 0.03
    law = Impedance(dynamics, [k_n, 0.0, 800.0], damping_ratio=1.0, axes=turn)
    law.set_target(point - depth * normal)
    simulation = Simulation(Plant(twolink, contact=Plane(point, normal, 0.0)), dt=2e-3, q=Q0)
    for k in range(350):
        simulation.step(law.efforts(k * 2e-3, State(simulation.q, simulation.qd), at_rest(Q0)))
    force = simulation.contact_force
    assert np.abs(simulation.qd).max() < 1e-2
    assert abs(force @ normal - k_n * depth) < 0.01 * k_n * depth
    assert np.linalg.norm(force - (force @ normal) * normal) < 1e-6  # frictionless


# -- passivity -----------------------------------------------------------------------------------------------------

def test_natural_inertia_never_injects_energy(dynamics):
    """Law inside the integrator, D = 0: stored energy stays; with D it only falls."""
    law = Impedance(dynamics, 400.0, damping=0.0)
    times = np.linspace(0.0, 2.0, 41)
    q, qd = run_continuous(law, lambda t: at_rest(Q0), Q0 + [0.3, -0.2], np.array([3.0, -5.0]), times)
    V = np.array([stored(400.0, tip(Q0), a, b) for a, b in zip(q, qd)])
    assert V[0] > 5.0 and np.abs(V - V[0]).max() < 1e-6 * V[0]
    damped = Impedance(dynamics, 400.0, damping_ratio=0.3)
    q, qd = run_continuous(damped, lambda t: at_rest(Q0), Q0 + [0.3, -0.2], np.array([3.0, -5.0]), times)
    V = np.array([stored(400.0, tip(Q0), a, b) for a, b in zip(q, qd)])
    assert (np.diff(V) <= 1e-9).all() and V[-1] < 0.05 * V[0]


def test_coriolis_cancellation_is_not_passive(dynamics):
    """The textbook's form adds C q̇: without any push the stored energy grows."""
    law = Impedance(dynamics, 400.0, damping=0.0, coriolis="cancel")
    times = np.linspace(0.0, 2.0, 81)
    q, qd = run_continuous(law, lambda t: at_rest(Q0), Q0 + [0.3, -0.2], np.array([3.0, -5.0]), times, rtol=1e-7)
    V = np.array([stored(400.0, tip(Q0), a, b) for a, b in zip(q, qd)])
    assert V.max() > 1.2 * V[0]


def test_held_over_a_millisecond_damping_of_half_k_dt_keeps_it_passive(dynamics):
    """The hold acts like −½ K dt of damping. With D = K dt the stored energy stays below its start."""
    grew = []
    for d in (0.4, 0.0):
        law = Impedance(dynamics, 400.0, damping=d)
        _, q, qd, _ = run_sampled(lambda t, a, b, law=law: law.efforts(t, State(a, b), at_rest(Q0)),
                                  Q0 + [0.3, -0.2], [1.0, -2.0], 1e-3, 2.0, substeps=1)
        V = np.array([stored(400.0, tip(Q0), a, b) for a, b in zip(q, qd)])
        grew.append(V.max() / V[0] - 1.0)
    assert grew[0] < 0.005 < grew[1]  # within one period V breathes a little: half a step of spring power


def test_gravity_compensation_held_over_a_millisecond_stays_within_its_bound(dynamics):
    """|ΔE| ≤ ½ dt ∫ |q̇ᵀ (∂g/∂q) q̇| dt: what holding g(q) over dt can inject, no more (2 % for the quadrature)."""
    law = GravityCompensation(dynamics)
    _, q, qd, _ = run_sampled(lambda t, a, b: law.efforts(t, State(a, b), None), Q0, [2.0, -3.0], 1e-3, 2.0, substeps=1)
    kinetic = np.array([textbook_energy(a, b) - textbook_energy(a, [0, 0]) for a, b in zip(q, qd)])
    h = 1e-5
    power = []
    for a, b in zip(q, qd):
        slope = (dynamics.gravity(a + h * b) - dynamics.gravity(a - h * b)) / (2 * h)
        power.append(abs(b @ slope))
    bound = 0.5e-3 * np.cumsum(np.array(power) * 1e-3)
    assert bound[-1] > 1e-3  # J: the premise, there is something to bound
    assert (np.abs(kinetic[1:] - kinetic[0]) <= 1.02 * bound[1:] + 1e-5).all()


# -- moving targets ------------------------------------------------------------------------------------------------

def test_a_moving_target_is_followed_without_error(dynamics):
    """Started on the target, the tip stays on it, as promised; without the moving terms it would not."""
    path = Circle(dynamics, Q0, 0.08, 1.2, ramp=0.3, toward=[-1.0, 0.0, 0.0])
    law = Impedance(dynamics, 300.0, damping=20.0)
    times = np.linspace(0.0, 1.2, 13)
    q, _ = run_continuous(law, path.sample, path.q, np.zeros(2), times, rtol=1e-8)
    assert max(np.linalg.norm(space(tip(a)) - path.tip(t)[0]) for t, a in zip(times, q)) < 1e-6

    def still(t):
        return at_rest(path.sample(t).q)
    q, _ = run_continuous(law, still, path.q, np.zeros(2), times, rtol=1e-6)
    assert max(np.linalg.norm(space(tip(a)) - path.tip(t)[0]) for t, a in zip(times, q)) > 5e-3


def test_a_moving_targets_energy_balance(dynamics):
    """V = ½ sᵀM s + ½ eᵀK e never grows without a push, s = q̇ − q̇_r."""
    law = Impedance(dynamics, 300.0, damping=5.0)
    p0 = tip(Q0)

    def target(t):
        w, a = 4.0, np.array([0.06, 0.08])
        return p0 + a * np.sin(w * t), a * w * np.cos(w * t), -a * w * w * np.sin(w * t)

    class Moving:
        def efforts(self, t, state, reference):
            x, v, a = target(t)
            law.set_target(space(x), velocity=space(v), acceleration=space(a))
            return law.efforts(t, state, reference)
    times = np.linspace(0.0, 1.5, 61)
    q, qd = run_continuous(Moving(), lambda t: at_rest(Q0), Q0 + [0.05, 0.08], np.array([1.0, -2.0]), times, rtol=1e-8)
    V = []
    for t, a, b in zip(times, q, qd):
        x, v, _ = target(t)
        J = dynamics.jacobian(a)[[0, 2]]
        s = b - np.linalg.solve(J, v)
        V.append(0.5 * s @ dynamics.mass_matrix(a) @ s + 150.0 * (x - tip(a)) @ (x - tip(a)))
    assert V[0] > 0.5 and (np.diff(V) <= 1e-7).all() and V[-1] < 0.7 * V[0]


def test_rate_of_the_jacobian_for_any_velocity(six, dynamics):
    rng = np.random.default_rng(5)
    for model, n in ((dynamics, 2), (six[1], 6)):
        task = TaskSpace(model, oriented=n == 6)
        q, qd, u = rng.uniform(-1, 1, (3, n))
        h = 1e-6  # central differences, ε^⅓
        expected = task.selector @ ((model.jacobian(q + h * qd) - model.jacobian(q - h * qd)) @ u) / (2 * h)
        assert np.allclose(task.rate(q, qd, u), expected, atol=1e-8)
        assert np.allclose(task.rate(q, qd, qd), task.selector @ model.jacobian_rate(q, qd), atol=1e-12)
        task._chain = False
        assert np.allclose(task.rate(q, qd, u), expected, atol=1e-8)


# -- singular poses ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("options", [dict(damping_ratio=1.0), dict(damping=[40.0] * 3), dict(desired_inertia=3.0)])
def test_from_the_stretched_elbow_a_target_halfway_in_is_reached(dynamics, options):
    law = Impedance(dynamics, 400.0, **options)
    q0 = np.array([0.3, 1e-3])
    target = 0.5 * tip(q0)
    law.set_target(space(target))
    law.set_measured_wrench([0.0, 0.0, 0.0])
    times = np.linspace(0.0, 4.0, 41)
    q, qd = run_continuous(law, lambda t: at_rest(q0), q0, np.zeros(2), times, rtol=1e-6)
    assert np.linalg.norm(tip(q[-1]) - target) < 2e-3
    torque = [np.abs(law.efforts(t, State(a, b), at_rest(q0))).max() for t, a, b in zip(times, q, qd)]
    assert max(torque) < 400.0 * 0.45 * 0.9 + 22.0  # spring force over the longest lever, and gravity


def test_torque_is_bounded_everywhere_near_the_stretched_elbow(dynamics):
    for options in (dict(damping_ratio=1.0), dict(desired_inertia=3.0)):
        law = Impedance(dynamics, 400.0, **options)
        law.set_measured_wrench([0.0, 0.0, 0.0])
        reference = Reference(np.array([0.3, 0.5]), np.array([0.5, -0.5]), np.array([1.0, 1.0]))
        for q2 in (1e-1, 1e-2, 1e-3, 1e-6, 0.0):
            tau = law.efforts(0.0, State(np.array([0.3, q2]), np.array([0.2, 0.3])), reference)
            assert np.isfinite(tau).all() and np.abs(tau).max() < 500.0


# -- desired inertia -----------------------------------------------------------------------------------------------

def test_desired_inertia_gives_the_mass_it_was_asked_for(dynamics):
    """With the tip force measured, the tip obeys Λ_d ë + D ė + K e + f = 0 in closed form, per axis."""
    mass, d, k = 4.0, 24.0, 400.0
    law = Impedance(dynamics, k, damping=d, desired_inertia=mass)
    force = np.array([8.0, -5.0])
    law.set_measured_wrench(space(force))
    times = np.linspace(0.0, 0.8, 17)
    q, _ = run_continuous(law, lambda t: at_rest(Q0), Q0, np.zeros(2), times, push=lambda t, a, b: force)
    w0, zeta = np.sqrt(k / mass), d / (2.0 * np.sqrt(k * mass))
    wd = w0 * np.sqrt(1.0 - zeta**2)
    step = 1.0 - np.exp(-zeta * w0 * times) * (np.cos(wd * times) + zeta * w0 / wd * np.sin(wd * times))
    deflection = np.array([tip(a) for a in q]) - tip(Q0)
    assert np.abs(deflection - step[:, None] * force / k).max() < 1e-6 * np.abs(force).max() / k


def test_desired_inertia_refuses_to_run_without_the_measured_force(dynamics):
    law = Impedance(dynamics, 400.0, desired_inertia=3.0)
    assert "measured tip force" in law.missing()
    law.set_measured_wrench([0.0, 0.0, 0.0])
    assert law.missing() == ""


# -- six axes ------------------------------------------------------------------------------------------------------

def six_run(model, law, q0, qd0, duration, wrench=None, rtol=1e-6):
    n = len(q0)

    def rate(t, x):
        q, qd = x[:n], x[n:]
        tau = law.efforts(t, State(q, qd), at_rest(q0))
        if wrench is not None:
            tau = tau + model.jacobian(q).T @ wrench
        return np.concatenate([qd, model.forward_dynamics(q, qd, tau)])
    result = solve_ivp(rate, (0.0, duration), np.concatenate([q0, qd0]), method="DOP853", rtol=rtol, atol=1e-9)
    return result.y[:n, -1], result.y[n:, -1]


def test_six_axes_deflect_in_translation_and_rotation(six):
    arm, model = six
    q0 = np.array([0.3, -0.9, 1.2, 0.4, 0.8, -0.3])
    assert np.linalg.cond(model.jacobian(q0)) < 50.0  # premise: not singular
    law = Impedance(model, [800.0, 600.0, 700.0, 40.0, 30.0, 50.0], damping_ratio=1.0)
    wrench = np.array([5.0, -4.0, 6.0, 0.8, -0.5, 0.6])
    q, qd = six_run(model, law, q0, np.zeros(6), 3.0, wrench)
    R0, p0 = model.tip_pose(q0)
    R, p = model.tip_pose(q)
    assert np.abs(qd).max() < 1e-3
    assert np.allclose(p - p0, wrench[:3] / [800.0, 600.0, 700.0], rtol=0.01)
    moment, _ = orientation_moment(R, R0, np.diag([40.0, 30.0, 50.0]))
    assert np.allclose(-moment, wrench[3:], rtol=0.01)  # in equilibrium with the push
    eta, eps = quaternion(R @ R0.T)
    assert np.allclose(2.0 * eps * np.sign(eta), wrench[3:] / [40.0, 30.0, 50.0], atol=2e-3)  # small angles


def test_translation_only_damps_what_does_not_move_the_tip(six):
    arm, model = six
    q0 = np.array([0.3, -0.9, 1.2, 0.4, 0.8, -0.3])
    J = model.jacobian(q0)[:3]
    still = np.linalg.svd(J)[2][3:].T @ np.array([1.0, -0.5, 0.8])  # motion without moving the tip
    assert np.abs(J @ still).max() < 1e-12 and np.linalg.norm(still) > 1.0
    speeds = {}
    for damping in (2.0, 0.0):
        law = Impedance(model, 600.0, damping=60.0, null_damping=damping)
        q, qd = six_run(model, law, q0, still, 0.5, rtol=1e-4)
        speeds[damping] = np.linalg.norm(qd)
        assert np.linalg.norm(model.tip_pose(q)[1] - model.tip_pose(q0)[1]) < 0.05
    assert speeds[2.0] < 0.1 * speeds[0.0] and speeds[0.0] > 0.3


def test_orientation_moment_is_the_gradient_of_its_potential():
    rng = np.random.default_rng(6)
    K = np.diag([40.0, 30.0, 50.0])

    def potential(R, R_d):
        _, eps = quaternion(R @ R_d.T)
        return 2.0 * eps @ K @ eps
    for angle in (0.01, 1.0, 2.5, 3.14, 3.5):
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        R_d = rotation_about(np.array([0.0, 0.0, 1.0]), 0.4)
        R = rotation_about(axis, angle) @ R_d
        moment, _ = orientation_moment(R, R_d, K)
        h = 1e-5
        gradient = np.array([potential(rotation_about(unit, h) @ R, R_d) - potential(rotation_about(unit, -h) @ R, R_d)
                             for unit in np.eye(3)]) / (2.0 * h)
        assert np.allclose(moment, -gradient, atol=1e-6)
        if angle == 0.01:
            assert np.allclose(moment, -K @ (axis * angle), atol=1e-3)


# -- targets and refusals -------------------------------------------------------------------------------------------

def test_target_leads_over_the_reference_until_forgotten(dynamics):
    law, state = Impedance(dynamics, 400.0, damping=0.0), State(Q0, np.zeros(2))
    assert np.allclose(law.torques(0, state, at_rest(Q0)).feedback, 0.0, atol=1e-12)
    law.set_target(space(tip(Q0)) + [0.01, 0.5, 0.0])  # 0.5 m out of the plane is out of its reach: ignored
    expected = dynamics.jacobian(Q0)[0] * 4.0
    assert np.allclose(law.torques(0, state, at_rest(Q0)).feedback, expected)
    law.reset()
    assert np.allclose(law.torques(0, state, at_rest(Q0)).feedback, 0.0, atol=1e-12)


@pytest.mark.parametrize("act, message", [
    (lambda law: law.set_target([0.0, np.nan, 0.0]), "target position: .* not finite"),
    (lambda law: law.set_target([0.0, 0.0, 0.0], 2.0 * np.eye(3)), "is no rotation"),
    (lambda law: law.set_wrench([1.0, 2.0]), "wrench: shape"),
    (lambda law: Impedance(law.dynamics, -1.0), "stiffness .* not symmetric and positive"),
    (lambda law: Impedance(law.dynamics, [1.0, 2.0]), "stiffness has shape"),
    (lambda law: Impedance(law.dynamics, "stiff"), "stiffness 'stiff' is not made of numbers"),
    (lambda law: Impedance(law.dynamics, 1.0, damping=1.0, damping_ratio=1.0), "not both"),
    (lambda law: Impedance(law.dynamics, 1.0, desired_inertia=0.0), "desired_inertia must be positive"),
    (lambda law: Impedance(law.dynamics, 1.0, axes=np.ones((3, 3))), "not orthonormal"),
])
def test_nonsense_is_refused_in_one_line(dynamics, act, message):
    with pytest.raises(InputError, match=message) as caught:
        act(Impedance(dynamics, 400.0))
    assert "\n" not in str(caught.value)
