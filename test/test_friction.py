"""Friction: the law itself, exact stiction, no chatter, and energy that only ever leaves."""

import numpy as np
import pytest
from arms import random_arm, random_state
from hypothesis import given, settings
from hypothesis import strategies as st

from twolink_dynamics import Dynamics, InputError, load_urdf
from twolink_dynamics.complementarity import solve_boxed
from twolink_dynamics.friction import Friction
from twolink_dynamics.plant import Plant
from twolink_dynamics.simulation import Simulation

WHEEL = """<robot name="wheel"><link name="base"/><link name="wheel"><inertial><mass value="1"/>
<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial></link>
<joint name="spin" type="continuous"><parent link="base"/><child link="wheel"/>
<axis xyz="0 0 1"/>{dynamics}</joint></robot>"""


@pytest.fixture(scope="module")
def wheel():
    """0.02 kg m² about a vertical axis: gravity does nothing."""
    return load_urdf(WHEEL.format(dynamics=""))


def wheel_with(wheel, coulomb=0.0, viscous=0.0, static=None, stribeck_velocity=None, **options):
    return Simulation(Plant(wheel, friction=Friction([coulomb], [viscous], static, stribeck_velocity)), **options)


def test_law_is_the_sum_of_coulomb_viscous_and_stribeck_with_its_sign():
    friction = Friction([0.3], [0.1], [0.5], [0.2])
    for qd in (-1.0, -0.1, 0.1, 1.0):
        s = np.sign(qd)
        expected = 0.3 * s + 0.1 * qd + (0.5 - 0.3) * np.exp(-((qd / 0.2) ** 2)) * s
        assert friction.torque([qd])[0] == pytest.approx(expected, rel=1e-15)
    assert friction.torque([0.0])[0] == 0.0
    assert friction.torque([1e-9])[0] == pytest.approx(0.5)  # just off rest it is the breakaway torque
    batch = np.linspace(-2.0, 2.0, 12).reshape(3, 4, 1)
    assert friction.torque(batch).shape == (3, 4, 1)


def test_urdf_dynamics_feed_it():
    arm = load_urdf(WHEEL.format(dynamics='<dynamics damping="0.07" friction="0.4"/>'))
    friction = Plant(arm).friction
    assert friction.viscous.tolist() == [0.07] and friction.coulomb.tolist() == [0.4] == friction.static.tolist()
    arm = load_urdf(WHEEL.format(dynamics='<dynamics friction="0.4"/>'))
    assert Plant(arm).friction.viscous.tolist() == [0.0]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (([-0.1], [0.0]), "coulomb of joint 1 is -0.1"),
        (([0.1, 0.2], [0.0, np.nan]), "viscous"),
        (([0.3], [0.0], [0.2]), "static 0.2 of joint 1 is below its coulomb 0.3"),
        (([0.3], [0.0], [0.4], [0.0]), "stribeck_velocity of joint 1 is 0, must be positive"),
        (([0.3, 0.3], [0.0, 0.0, 0.0]), "coulomb"),
    ],
)
def test_bad_values_are_refused_by_name(arguments, message):
    with pytest.raises(InputError, match=message):
        Friction(*arguments)


@given(st.floats(0, 5), st.floats(0, 5), st.floats(0, 5), st.floats(0.01, 2), st.floats(-20, 20))
def test_power_is_never_negative(coulomb, extra, viscous, speed, qd):
    friction = Friction([coulomb], [viscous], [coulomb + extra], [speed])
    assert friction.torque([qd])[0] * qd >= 0.0


def test_stiction_does_not_creep_in_a_minute(wheel):
    sim = wheel_with(wheel, 0.3, q=[0.7])
    sim.step([0.2], count=60_000)
    assert sim.t == pytest.approx(60.0)
    assert sim.q[0] == 0.7 and sim.qd[0] == 0.0  # not one bit
    assert sim.ledger.balance == 0.0 and sim.ledger.dissipated == 0.0


def test_stiction_holds_a_varying_torque_below_the_bound_and_lets_go_above(wheel):
    sim = wheel_with(wheel, 0.3)
    sim.run(0.5, lambda t, q, qd: [0.299 * np.sin(40.0 * t)])
    assert sim.q[0] == 0.0 and sim.qd[0] == 0.0
    sim.run(0.1, [0.301])
    assert sim.qd[0] == pytest.approx(0.1 * 0.001 / 0.02, rel=1e-9)


def test_static_above_coulomb_needs_more_to_start_than_to_go_on(wheel):
    sim = wheel_with(wheel, 0.3, static=[0.5])
    sim.run(0.1, [0.45])
    assert sim.qd[0] == 0.0
    sim.run(0.1, [0.51])
    assert sim.qd[0] == pytest.approx(0.1 * 0.21 / 0.02, rel=1e-9)
    sim.run(0.1, [0.3])
    assert sim.qd[0] == pytest.approx(0.1 * 0.21 / 0.02, rel=1e-9)  # 0.3 N m keeps it sliding steadily


@pytest.mark.parametrize("method, accuracy", [("rk4", 1e-12), ("dop853", 1e-12), ("semi_implicit", 2e-2)])
def test_sliding_stops_where_it_should_and_stays(wheel, method, accuracy):
    """v²/2a: 1.05 rad/s against 0.3 N m stop after 0.07 s and 0.03675 rad; the instant is no multiple of dt."""
    sim = wheel_with(wheel, 0.3, qd=[1.0555], method=method)
    path = sim.run(0.3)
    stop = 1.0555**2 / (2 * 0.3 / 0.02)
    assert sim.q[0] == pytest.approx(stop, rel=accuracy)
    at_rest = path.t > 1.0555 / 15.0 + 1e-3
    assert (path.qd[at_rest] == 0.0).all(), "it chatters"
    assert (path.qd[~at_rest] >= 0.0).all()
    assert len(set(path.q[at_rest, 0])) == 1
    assert sim.ledger.dissipated == pytest.approx(0.5 * 0.02 * 1.0555**2, rel=accuracy)


def test_the_naive_sign_chatters_where_this_does_not(wheel):
    """Premise of the test above: sign() in semi-implicit Euler ends in ±0.0075 rad/s for ever."""
    v, seen = 1.0555, []
    for _ in range(300):
        v += 1e-3 * (-0.3 * np.sign(v)) / 0.02
        seen.append(v)
    assert np.ptp(seen[-10:]) > 0.01


def test_reversal_under_torque_follows_the_analytic_pieces(wheel):
    """Thrown against a torque above friction: slows at (τ + Fc)/I, turns, speeds up at (τ − Fc)/I."""
    sim = wheel_with(wheel, 0.3, qd=[1.0])
    sim.run(0.2, [-0.5])
    turn = 1.0 / (0.8 / 0.02)
    assert turn < 0.2
    assert sim.qd[0] == pytest.approx(-(0.2 - turn) * 0.2 / 0.02, rel=1e-10)
    assert sim.q[0] == pytest.approx(0.5 * turn - 0.5 * 10.0 * (0.2 - turn) ** 2, rel=1e-9)
    assert abs(sim.ledger.balance) < 1e-14


def test_stick_slip_on_a_pulled_spring():
    """A spring pulled at constant speed over a Stribeck joint sticks and slips again and again, and books it all."""
    arm = load_urdf(WHEEL.format(dynamics=""))
    sim = wheel_with(arm, 0.2, static=[0.6], stribeck_velocity=[0.05])
    path = sim.run(6.0, lambda t, q, qd: [2.0 * (0.3 * t - q[0])])
    still = path.qd[:, 0] == 0.0
    starts = np.count_nonzero(still[:-1] & ~still[1:])
    assert starts >= 3 and 0.2 < still.mean() < 0.95
    assert abs(sim.ledger.balance) < 1e-6


def test_coupled_joints_stick_one_by_one(twolink):
    """In both-joint rest the set that holds follows from M, not from each torque by itself."""
    arm = twolink.with_gravity((0.0, 0.0, 0.0))
    sim = Simulation(Plant(arm, friction=Friction([2.0, 0.5], [0.0, 0.0])), q=[0.3, 0.9])
    sim.step([1.9, -0.49])
    assert (sim.qd == 0.0).all()
    sim.step([1.9, 1.6], count=5)  # the elbow breaks away; its reaction on the shoulder stays below 2 N m
    assert sim.qd[1] > 0.0 and sim.qd[0] == 0.0 and sim.q[0] == 0.3
    sim.step([1.9, 12.0], count=5)  # now the reaction drags the shoulder along, backwards
    assert sim.qd[0] < 0.0


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10_000), static=st.booleans())
def test_friction_never_creates_energy(seed, static):
    """Without gravity and torque the kinetic energy of any arm only falls, step by step, until all joints rest."""
    rng = np.random.default_rng(seed)
    arm = random_arm(seed, n=1 + seed % 3).with_gravity((0.0, 0.0, 0.0))
    _, qd, _ = random_state(arm, seed)
    scale = np.diag(Dynamics(arm).mass_matrix(np.zeros(arm.n)))
    coulomb = scale * rng.uniform(1.0, 10.0, arm.n)
    friction = Friction(
        coulomb,
        scale * rng.uniform(0.0, 2.0, arm.n),
        coulomb * 1.5 if static else None,
        np.full(arm.n, 0.1) if static else None,
    )
    sim = Simulation(Plant(arm, friction=friction, stops=False), qd=qd, dt=2e-3)
    start = last = sim.ledger.kinetic
    given_up = 0.0
    for _ in range(60):
        sim.step()
        ledger = sim.ledger
        assert ledger.kinetic <= last + 1e-9 * start
        assert ledger.dissipated >= given_up - 1e-12 * start
        last, given_up = ledger.kinetic, ledger.dissipated
    assert last < 0.9 * start  # premise: it did something
    assert abs(ledger.balance) < 1e-5 * start


@given(st.integers(0, 5000))
@settings(max_examples=150, deadline=None)
def test_complementarity_holds_for_random_problems(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 9))
    G = rng.normal(size=(k, k if rng.random() < 0.7 else max(1, k - 2)))  # redundant rows now and then
    D, b = G @ G.T, rng.normal(size=k)
    if len(G[0]) < k:
        b = G @ rng.normal(size=G.shape[1])  # as accelerations of redundant rows are
    lower = np.where(rng.random(k) < 0.3, 0.0, -rng.uniform(0.1, 2.0, k))
    upper = np.where(rng.random(k) < 0.3, np.inf, rng.uniform(0.1, 2.0, k))
    p, w, state = solve_boxed(D, b, lower, upper)
    assert (p >= lower).all() and (p <= upper).all()
    assert D @ p + b == pytest.approx(w, abs=1e-6)
    assert (w[state == 0] == 0.0).all() and (w[state < 0] >= -1e-9).all() and (w[state > 0] <= 1e-9).all()
    assert (p[state < 0] == lower[state < 0]).all() and (p[state > 0] == upper[state > 0]).all()
