"""The joint-space laws: their sums, exact linearisation, the price of sampling, friction compensation, passivity."""
import numpy as np
import pytest
from conftest import REPOSITORY
from control_helpers import run_continuous, run_sampled, textbook_acceleration, textbook_energy
from hypothesis import given, settings
from hypothesis import strategies as st

from twolink_dynamics import Dynamics, InputError, Reference, State, load_urdf
from twolink_dynamics.control import (
    LAWS,
    ComputedTorque,
    FrictionCompensation,
    GravityCompensation,
    Impedance,
    PDGravity,
    make_law,
)
from twolink_dynamics.control.law import TERMS, TorqueTerms
from twolink_dynamics.control.reference import at_rest
from twolink_dynamics.friction import Friction
from twolink_dynamics.plant import Plant
from twolink_dynamics.simulation import Simulation

SUM = 1e-10  # N m, breakdown against fast path: other operations in another order, torques of some 100 N m


@pytest.fixture(scope="module")
def dynamics(twolink):
    return Dynamics(twolink)


def moving_reference(t):
    """A fast, smooth reference with exact derivatives."""
    a, w = np.array([0.6, -0.9]), np.array([3.0, 4.0])
    return Reference(0.3 + a * np.sin(w * t), a * w * np.cos(w * t), -a * w * w * np.sin(w * t))


def some_state(rng, n):
    return State(rng.uniform(-2, 2, n), rng.uniform(-3, 3, n)), Reference(*rng.uniform(-2, 2, (3, n)))


@pytest.mark.parametrize("urdf", ["twolink", "sixlink"])
@pytest.mark.parametrize("name", LAWS)
def test_terms_add_up_to_the_fast_path(urdf, name):
    arm = load_urdf(REPOSITORY / "urdf" / f"{urdf}.urdf")
    friction = FrictionCompensation(0.3, 0.2, n=arm.n)
    law = make_law(name, Dynamics(arm), friction=friction, residual=lambda q, qd, qdd: 0.01 * (q + qd + qdd))
    rng = np.random.default_rng(1)
    for _ in range(2):
        state, reference = some_state(rng, arm.n)
        terms = law.torques(0.0, state, reference)
        assert np.abs(terms.total - law.efforts(0.0, state, reference)).max() < SUM
        assert [name for name, _ in terms.items()] == list(TERMS)
        assert np.abs(terms.friction).max() > 0.0 and np.abs(terms.residual).max() > 0.0


def test_terms_say_what_each_part_is(dynamics):
    rng = np.random.default_rng(2)
    state, reference = some_state(rng, 2)
    terms = ComputedTorque(dynamics, kp=[100.0, 50.0], kd=[20.0, 10.0]).torques(0.0, state, reference)
    M = dynamics.mass_matrix(state.q)
    assert np.allclose(terms.inertia, M @ reference.qdd, atol=SUM)
    assert np.allclose(terms.coriolis, dynamics.coriolis_matrix(state.q, state.qd) @ state.qd, atol=SUM)
    assert np.allclose(terms.gravity, dynamics.gravity(state.q), atol=SUM)
    correction = [100.0, 50.0] * (reference.q - state.q) + [20.0, 10.0] * (reference.qd - state.qd)
    assert np.allclose(terms.feedback, M @ correction, atol=SUM)
    with pytest.raises(InputError, match="unknown 'magic'"):
        TorqueTerms(2, magic=np.zeros(2))


def test_gravity_compensation_holds_and_keeps_the_kinetic_energy(dynamics):
    law = GravityCompensation(dynamics)
    q0 = np.array([0.4, 0.9])
    assert np.abs(law.efforts(0.0, State(q0, np.zeros(2)), None)).min() > 1.0  # premise: there is gravity to hold
    q, qd = run_continuous(law, lambda t: None, q0, np.zeros(2), np.linspace(0, 2, 5))
    assert np.abs(q - q0).max() < 1e-9 and np.abs(qd).max() < 1e-9
    q, qd = run_continuous(law, lambda t: None, q0, np.array([1.0, -2.0]), np.linspace(0, 2, 9))
    kinetic = [textbook_energy(a, b) - textbook_energy(a, [0.0, 0.0]) for a, b in zip(q, qd)]
    assert np.ptp(q[:, 0]) > 0.1  # it drifts through other poses, where gravity differs
    assert np.abs(np.array(kinetic) - kinetic[0]).max() < 1e-7 * max(kinetic[0], 1.0)


def test_gravity_follows_the_gravity_vector(twolink):
    q = np.array([0.3, -0.7])
    down = GravityCompensation(Dynamics(twolink)).efforts(0.0, State(q, q), None)
    up = GravityCompensation(Dynamics(twolink.with_gravity((0, 0, 9.81)))).efforts(0.0, State(q, q), None)
    none = GravityCompensation(Dynamics(twolink.with_gravity((0, 0, 0)))).efforts(0.0, State(q, q), None)
    assert np.abs(down).min() > 0.5 and np.allclose(up, -down) and not none.any()


def test_computed_torque_linearises_exactly(dynamics):
    """With the law inside the integrator, e(t) is the analytic solution of ë + Kd ė + Kp e = 0, joint by joint."""
    kp, kd = np.array([36.0, 100.0]), np.array([4.0, 20.0])  # underdamped; critically damped
    law = ComputedTorque(dynamics, kp, kd)
    e0, v0 = np.array([0.5, -0.4]), np.array([-1.0, 2.0])
    start = moving_reference(0.0)
    times = np.linspace(0.0, 1.0, 21)
    q, _ = run_continuous(law, moving_reference, start.q - e0, start.qd - v0, times)
    error = np.array([moving_reference(t).q for t in times]) - q
    w = np.sqrt(36.0 - 4.0)  # s = -2 ± i w
    first = np.exp(-2.0 * times) * (e0[0] * np.cos(w * times) + (v0[0] + 2.0 * e0[0]) / w * np.sin(w * times))
    second = np.exp(-10.0 * times) * (e0[1] + (v0[1] + 10.0 * e0[1]) * times)
    assert np.abs(error - np.stack([first, second], axis=1)).max() < 1e-7  # integrator 1e-9, amplified over 1 s


def test_a_wrong_model_would_be_seen(twolink):
    """The premise of the test above: with 10 % more mass at the tip in the model the error no longer follows."""
    law = ComputedTorque(Dynamics(twolink.with_payload(0.2)), 100.0, 20.0)
    q, _ = run_continuous(law, lambda t: at_rest([0.0, 0.5]), np.array([0.3, 0.2]), np.zeros(2), np.array([0.0, 1.5]))
    assert np.abs(q[-1] - [0.0, 0.5]).max() > 1e-3


def test_sampling_costs_first_order_in_dt(dynamics):
    """Held over dt, the error leaves the analytic solution by O(dt): the order is measured."""
    law = ComputedTorque(dynamics, 100.0, 20.0)
    times = np.linspace(0.0, 0.64, 17)
    start = moving_reference(0.0)
    ideal, _ = run_continuous(law, moving_reference, start.q - 0.3, start.qd, times)
    worst = []
    for dt in (0.008, 0.004, 0.002):
        every = round(0.04 / dt)
        _, q, _, _ = run_sampled(lambda t, a, b: law.efforts(t, State(a, b), moving_reference(t)),
                                 start.q - 0.3, start.qd, dt, 0.64)
        worst.append(np.abs(q[::every] - ideal).max())
    orders = np.log2(np.array(worst[:-1]) / worst[1:])
    assert worst[-1] < 2.0 * 0.002  # rad: no more than a few dt
    assert ((orders > 0.85) & (orders < 1.25)).all(), (worst, orders)


@pytest.mark.parametrize("kp, kd, unstable, fine", [(100.0, 20.0, 0.13, 0.04), (2500.0, 100.0, 0.026, 0.008)])
def test_sampled_gains_have_their_known_limits(dynamics, kp, kd, unstable, fine):
    law, goal = ComputedTorque(dynamics, kp, kd), at_rest([0.3, 0.5])

    def final(dt):
        _, q, _, _ = run_sampled(lambda t, a, b: law.efforts(t, State(a, b), goal), goal.q - 1e-4, [0, 0], dt, 10 * dt,
                                 substeps=20)
        return np.abs(q[-1] - goal.q).max()

    assert final(unstable) > 5e-4 and final(fine) < 5e-5  # from 1e-4 rad: grows, dies out


def test_pd_with_gravity_settles_at_a_constant_reference(dynamics):
    law = PDGravity(dynamics)
    goal = at_rest([0.8, -0.6])
    q, qd = run_continuous(law, lambda t: goal, np.array([-0.5, 0.9]), np.zeros(2), np.array([0.0, 3.0]), rtol=1e-7)
    assert np.abs(q[-1] - goal.q).max() < 1e-4 and np.abs(qd[-1]).max() < 1e-3


@pytest.mark.parametrize("kind, expected", [("continuous", 6.2 - 2 * np.pi), ("revolute", 6.2)])
def test_only_continuous_joints_take_the_short_way(twolink, kind, expected):
    from dataclasses import replace
    joints = tuple(replace(joint, kind=kind) for joint in twolink.joints)
    arm = replace(twolink, joints=joints)
    law = PDGravity(Dynamics(arm), kp=1.0, kd=0.0)
    state = State(np.array([-3.1, -3.1]), np.zeros(2))
    feedback = law.torques(0.0, state, at_rest([3.1, 3.1])).feedback
    assert np.allclose(feedback, expected, atol=1e-12)


# -- friction compensation -----------------------------------------------------------------------------------------

@settings(max_examples=60, deadline=None)
@given(v=st.floats(-50, 50), coulomb=st.floats(0, 5), extra=st.floats(0, 5), viscous=st.floats(0, 5),
       speed=st.floats(0.01, 1.0), smoothing=st.floats(0.001, 1.0))
def test_friction_compensation_never_exceeds_the_plants(v, coulomb, extra, viscous, speed, smoothing):
    v = np.array([v])
    for stribeck in ([speed], None):
        plant = Friction([coulomb], [viscous], static=[coulomb + extra], stribeck_velocity=stribeck)
        comp = FrictionCompensation.from_friction(plant, smoothing=smoothing).torque(v)
        assert (comp * v >= 0.0).all()  # it pushes along the motion, as the friction opposes it
        assert (np.abs(comp) <= np.abs(plant.torque(v)) * (1.0 + 1e-12)).all()


def test_friction_compensation_follows_the_stribeck_curve():
    """Well above the smoothing velocity it is the plant's own curve, Stribeck part and all."""
    plant = Friction([0.3, 0.2], [0.1, 0.1], static=[0.8, 0.5], stribeck_velocity=[0.1, 0.2])
    law = FrictionCompensation.from_friction(plant, smoothing=1e-3)
    for v in (np.array([0.05, -0.1]), np.array([-0.3, 0.4])):
        assert np.allclose(law.torque(v), plant.torque(v), atol=1e-12)
    v = np.array([0.05, -0.1])
    assert (np.abs(law.torque(v)) > 1.1 * (plant.coulomb + plant.viscous * np.abs(v))).all()  # premise: more than those


def test_friction_compensation_is_smooth_at_zero():
    law = FrictionCompensation([0.5], [0.1], smoothing=0.05)
    v = np.linspace(-0.2, 0.2, 401)[:, None]
    tau = np.array([law.torque(x) for x in v])[:, 0]
    assert abs(tau[200]) < 1e-15 and np.abs(np.diff(tau)).max() < (0.5 / 0.05 + 0.1) * 1e-3 * 1.001


def test_friction_compensation_makes_no_limit_cycle(twolink):
    """Full compensation on a plant with Coulomb friction and stiction, sampled at 1 kHz: it comes to rest and stays."""
    friction = Friction([0.6, 0.3], [0.2, 0.1], static=[0.9, 0.45], stribeck_velocity=[0.1, 0.1])
    law = ComputedTorque(Dynamics(twolink), 100.0, 20.0, friction=FrictionCompensation.from_friction(friction))
    bare = ComputedTorque(Dynamics(twolink), 100.0, 20.0)
    goal = at_rest([0.5, 0.4])
    final = []
    for controller in (law, bare):
        simulation = Simulation(Plant(twolink, friction=friction), dt=1e-3, q=[0.3, 0.7])
        for k in range(1500):
            simulation.step(controller.efforts(k * 1e-3, State(simulation.q, simulation.qd), goal))
        final.append(np.abs(simulation.q - goal.q).max())
        rest = np.array(simulation.q)
        for k in range(200):
            simulation.step(controller.efforts(1.5 + k * 1e-3, State(simulation.q, simulation.qd), goal))
            assert controller is bare or not simulation.qd.any()  # stuck: exact rest, no hunting
        assert controller is bare or np.array_equal(rest, simulation.q)
    assert final[0] < final[1]  # and it was worth it


def test_friction_compensation_takes_the_urdfs_values(field_cases):
    arm = load_urdf(field_cases / "mini" / "m34_dynamics_friction_only.urdf")
    assert arm.coulomb.any() or arm.damping.any()
    tau = FrictionCompensation.from_arm(arm).torque(np.full(arm.n, 10.0))
    assert np.allclose(tau, arm.coulomb + 10.0 * arm.damping)


# -- refusals ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("build, message", [
    (lambda d: make_law("lqr", d), "no control law 'lqr'; the laws are gravity_compensation, computed_torque"),
    (lambda d: make_law("pd_gravity", d, ki=1.0), "'pd_gravity' has no gain 'ki'"),
    (lambda d: ComputedTorque(d, kp=[1.0, 2.0, 3.0]), "kp: .* for each of the 2 joints"),
    (lambda d: ComputedTorque(d, kd=-1.0), "kd: .* not negative"),
    (lambda d: PDGravity(d, kp=np.nan), "kp: .* finite"),
    (lambda d: GravityCompensation(3), "needs a Dynamics"),
    (lambda d: FrictionCompensation(0.1, 0.1, share=1.5), "share .* 0 ... 1"),
    (lambda d: FrictionCompensation(0.5, 0.1, static=0.2), "static .* below coulomb"),
    (lambda d: FrictionCompensation(0.5, 0.1, smoothing=0.0), "smoothing .* positive"),
    (lambda d: Impedance(d, 100.0, coriolis="some"), "coriolis 'some' is none of natural, cancel"),
])
def test_what_makes_no_sense_is_refused_in_one_line(dynamics, build, message):
    with pytest.raises(InputError, match=message) as caught:
        build(dynamics)
    assert "\n" not in str(caught.value)


def test_the_textbook_plant_is_the_shipped_arm(dynamics):
    """Premise of every loop here."""
    rng = np.random.default_rng(3)
    q, qd, tau = rng.uniform(-2, 2, (3, 2))
    assert np.allclose(textbook_acceleration(q, qd, tau), dynamics.forward_dynamics(q, qd, tau), rtol=1e-11)
