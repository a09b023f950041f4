"""Simulation: accuracy, the ledger, edits, limits, stops, the brake, reset, and refusals."""

import warnings

import numpy as np
import pytest

from twolink_dynamics import Dynamics, InputError, SimulationError, TwolinkWarning, load_urdf
from twolink_dynamics.friction import Friction
from twolink_dynamics.plant import Plant
from twolink_dynamics.simulation import Simulation
from twolink_dynamics.trajectory import Trajectory

RODS = """<robot name="rods"><link name="base"/>
<link name="one"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
<inertia ixx="{I}" ixy="0" ixz="0" iyy="{I}" iyz="0" izz="0"/></inertial></link>
<link name="two"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
<inertia ixx="{I}" ixy="0" ixz="0" iyy="{I}" iyz="0" izz="0"/></inertial></link>
<link name="tip"/>
<joint name="a" type="continuous"><parent link="base"/><child link="one"/><axis xyz="0 -1 0"/></joint>
<joint name="b" type="continuous"><parent link="one"/><child link="two"/><origin xyz="0 0 -1"/><axis xyz="0 -1 0"/>
</joint>
<joint name="t" type="fixed"><parent link="two"/><child link="tip"/><origin xyz="0 0 -1"/></joint>
</robot>""".format(I=1.0 / 12.0)


@pytest.fixture(scope="module")
def rods():
    """Two unit rods, hanging, nothing else: no limits, no friction."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TwolinkWarning)
        return load_urdf(RODS)


def test_energy_with_dop853_stays_within_2e_8_joule_over_five_seconds(twolink):
    """The seed's figure, at every one of 5001 instants."""
    sim = Simulation(Plant(twolink, stops=False), method="dop853", q=[0.4, -0.7], qd=[0.3, 0.1])
    path = sim.run(5.0)
    kinetic, potential = sim.dynamics.energy(path.q, path.qd)
    assert len(path) == 5001 and kinetic.max() > 5.0  # premise: it swings
    assert np.abs(kinetic + potential - kinetic[0] - potential[0]).max() < 2e-8
    assert abs(sim.ledger.balance) < 2e-8


@pytest.mark.parametrize(
    "method, dt, worst, floor",
    [
        ("semi_implicit", 1e-2, 25.0, 1.0),
        ("semi_implicit", 1e-3, 4.0, 0.1),
        ("rk4", 1e-2, 0.1, 1e-3),
        ("rk4", 1e-3, 2e-6, 1e-8),
    ],
)
def test_energy_error_of_a_wild_swing_is_that_of_the_method(rods, method, dt, worst, floor):
    """Ten seconds of double pendulum from (1.2, −0.5): known errors 10.6 / 2.1 J and 4.9e-2 / 8.9e-7 J."""
    duration = 10.0 if dt > 1e-3 else 3.0
    sim = Simulation(rods, dt, method, q=[1.2 + np.pi / 2, -0.5])
    path = sim.run(duration)
    kinetic, potential = sim.dynamics.energy(path.q, path.qd)
    error = np.abs(kinetic + potential - kinetic[0] - potential[0]).max()
    assert floor < error < worst
    assert sim.ledger.balance == pytest.approx(kinetic[-1] + potential[-1] - kinetic[0] - potential[0], abs=1e-12)


def test_state_after_a_second_agrees_with_the_field_case(field_cases):
    arm = load_urdf(field_cases / "mini" / "m33_textbook_2R_unit_rods.urdf")
    for method, tolerance in (("rk4", 1e-7), ("dop853", 1e-8)):
        sim = Simulation(Plant(arm, stops=False), method=method, q=[1.2, -0.5])
        sim.run(1.0)
        assert sim.q == pytest.approx([-2.0655656010832, 1.2876675575589], abs=tolerance)
        assert sim.qd == pytest.approx([-5.3106633207, -2.0422785010], abs=10 * tolerance)


def test_input_work_is_torque_times_displacement(twolink):
    sim = Simulation(Plant(twolink, stops=False), q=[0.3, 0.2])
    start = sim.q
    sim.step([4.0, -1.0], count=300)
    assert sim.ledger.input == pytest.approx(np.array([4.0, -1.0]) @ (sim.q - start), rel=1e-12)
    assert abs(sim.ledger.balance) < 1e-8


def test_torque_is_held_over_each_step(rods):
    """A rate-varying torque enters as a staircase: one step of 20 ms equals 20 steps of 1 ms with the same torque."""
    coarse, fine = Simulation(rods, 2e-2, "dop853"), Simulation(rods, 1e-3, "dop853")
    for k in range(10):
        tau = [np.sin(k), np.cos(k)]
        coarse.step(tau)
        fine.step(tau, count=20)
    assert coarse.q == pytest.approx(fine.q, abs=1e-11)


class Wrong:
    """A model with the Coriolis term q̇1 q̇2 in place of 2 q̇1 q̇2: it does work. Energies are the right ones."""

    def __init__(self, dynamics):
        self.right = dynamics

    def __getattr__(self, name):
        return getattr(self.right, name)

    def forward_dynamics(self, q, qd, tau):
        change = np.array([0.2 * np.sin(q[1]) * qd[0] * qd[1], 0.0])  # β = 0.2 on the shipped arm
        return self.right.forward_dynamics(q, qd, tau - change)


def test_the_ledger_can_fail(twolink):
    """A wrong Coriolis term shows in the balance; so does friction that is applied and not booked."""

    def run(change):
        sim = Simulation(Plant(twolink, stops=False), 0.01, "dop853", q=[1.2, -0.5], qd=[1.0, 0.5])
        change(sim)
        sim.run(1.5)
        return abs(sim.ledger.balance)

    def wrong_model(sim):
        sim._mech.dynamics = Wrong(sim._mech.dynamics)

    def unbooked(sim):
        force = sim._mech.force
        sim._mech.force = lambda x, u, effort, sign: force(x, u, effort - 0.1 * u, sign)

    assert run(lambda sim: None) < 1e-7
    assert run(wrong_model) > 0.1
    assert run(unbooked) > 0.1


def test_edits_are_booked(twolink):
    sim = Simulation(Plant(twolink, stops=False), q=[0.3, 0.2])
    sim.run(0.2, [5.0, 1.0])
    before = sim.ledger
    sim.set_state([1.0, 0.5], [0.5, -0.5])
    after = sim.ledger
    assert after.edits == pytest.approx(after.kinetic + after.potential - before.kinetic - before.potential, rel=1e-12)
    assert after.edits != 0.0
    sim.run(0.1)
    sim.set_payload(1.5, (0.0, 0.0, 0.05), np.diag([1e-3, 1e-3, 2e-3]))
    sim.run(0.1)
    sim.set_gravity((0.0, 0.0, -1.62))
    sim.run(0.1)
    sim.set_payload(0.0)
    sim.run(0.1)
    assert abs(sim.ledger.balance) < 1e-8
    assert sim.dynamics.gravity(sim.q) == pytest.approx(Dynamics(twolink.with_gravity((0, 0, -1.62))).gravity(sim.q))


def test_payload_moves_as_an_arm_that_was_made_with_it(twolink):
    body = 2.0, (0.01, 0.0, 0.03), np.diag([0.002, 0.003, 0.004])
    live = Simulation(Plant(twolink, stops=False), q=[0.3, 0.2])
    live.set_payload(*body)
    made = Simulation(Plant(twolink.with_payload(*body), stops=False), q=[0.3, 0.2])
    plain = Simulation(Plant(twolink, stops=False), q=[0.3, 0.2])
    for sim in (live, made, plain):
        sim.run(0.3)
    assert live.q == pytest.approx(made.q, abs=1e-12)
    assert np.abs(live.q - plain.q).max() > 1e-2
    assert live.ledger.edits != 0.0 and made.ledger.edits == 0.0


def test_external_wrench_does_work_and_can_be_given_in_link_axes(twolink):
    arm = twolink.with_gravity((0.0, 0.0, 0.0))
    sim = Simulation(Plant(arm, stops=False), q=[0.3, 0.7])
    start = sim.dynamics.tip_pose(sim.q)[1]
    sim.set_external_wrench((3.0, 0.0, -2.0))
    sim.step(count=200)
    moved = sim.dynamics.tip_pose(sim.q)[1] - start
    assert sim.ledger.external == pytest.approx(np.array([3.0, 0.0, -2.0]) @ moved, rel=1e-12)
    assert abs(sim.ledger.balance) < 1e-9
    sim.set_external_wrench((1.0, 0.0, 0.5), (0.0, 0.4, 0.0), frame="link2", point=(0.1, 0.0, 0.0), axes="link1")
    sim.step(count=200)
    assert abs(sim.ledger.balance) < 1e-9
    force, torque, frame, point, axes = sim.external_wrench
    assert (frame, axes) == ("link2", "link1")
    sim.set_external_wrench((0.0, 0.0, 0.0))
    assert sim.external_wrench is None
    with pytest.raises(Exception, match="no link 'nowhere'"):
        sim.set_external_wrench((1.0, 0.0, 0.0), axes="nowhere")


def test_a_balanced_external_force_is_felt_as_its_jacobian_transpose(twolink):
    """At rest, τ = g − Jᵀf holds the arm still: the sign is that of a force of the environment on the tip."""
    sim = Simulation(twolink, q=[0.4, 0.9])
    force = np.array([5.0, 0.0, -7.0])
    sim.set_external_wrench(force)
    tau = sim.dynamics.gravity(sim.q) - sim.dynamics.jacobian(sim.q)[:3].T @ force
    sim.step(tau, count=50)
    assert np.abs(sim.qd).max() < 1e-12


def test_efforts_are_clamped_one_by_one_and_reported(twolink):
    sim = Simulation(twolink)
    sim.step([100.0, -5.0])
    assert sim.effort.tolist() == [60.0, -5.0]
    free = Simulation(Plant(twolink, effort_limits=False))
    free.step([100.0, -5.0])
    assert free.effort.tolist() == [100.0, -5.0]
    unactuated = Simulation(twolink.with_joints(effort_limit=[60.0, 0.0]))
    path = unactuated.run(0.003, [1.0, 1.0])
    assert path.tau.tolist() == [[1.0, 0.0]] * 4


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("method", ["rk4", "semi_implicit", "dop853"])
def test_a_stop_holds_without_bouncing_and_can_be_left(twolink, side, method):
    """Start at the limit running into it, push outward for a second, then inward: it must leave."""
    arm = twolink.with_gravity((0.0, 0.0, 0.0))
    limit = arm.upper[1] * side
    dt = 1e-3 if method != "dop853" else 1e-2
    sim = Simulation(arm, dt, method, q=[0.0, limit], qd=[0.0, 5.0 * side])
    before = sim.ledger.kinetic
    path = sim.run(0.2 if method == "dop853" else 1.0, [0.0, 3.0 * side])
    assert (path.q[:, 1] * side <= arm.upper[1]).all()
    assert (path.qd[1:, 1] == 0.0).all() and (path.q[:, 1] == limit).all()
    ledger = sim.ledger
    assert ledger.impact > 0.0 and ledger.kinetic < before
    assert abs(ledger.balance) < 1e-9
    sim.run(0.1, [0.0, -3.0 * side])
    assert sim.q[1] * side < arm.upper[1] - 1e-3


def test_running_into_a_stop_is_located_and_takes_energy_by_an_impulse(twolink):
    """The impulse acts on the elbow's row alone, so it also changes the shoulder's velocity: M Δq̇ = e₂ p."""
    arm = twolink.with_gravity((0.0, 0.0, 0.0))
    sim = Simulation(arm, q=[0.0, 2.8995], qd=[0.3, 1.0])
    sim.step([0.0, 0.1])
    M = sim.dynamics.mass_matrix([0.0, 2.9])
    assert sim.q[1] == arm.upper[1] and sim.qd[1] == 0.0
    assert sim.qd[0] == pytest.approx(0.3 + M[0, 1] / M[0, 0] * 1.0, abs=2e-3)
    effective = M[1, 1] - M[0, 1] ** 2 / M[0, 0]
    assert sim.ledger.impact == pytest.approx(0.5 * effective * 1.0**2, rel=1e-2)
    assert abs(sim.ledger.balance) < 1e-10


def test_stops_never_create_energy_in_a_tumbling_arm(twolink):
    """Shaken arm with narrow stops: stored energy never rises by more than the work put in."""
    arm = twolink.with_joints(lower=[-0.6, -1.0], upper=[0.6, 1.0])
    sim = Simulation(arm, q=[0.5, 0.9], qd=[-4.0, 6.0])
    stored = sim.ledger.kinetic + sim.ledger.potential
    for _ in range(600):
        sim.step()
        now = sim.ledger
        assert now.kinetic + now.potential <= stored + 1e-8
        stored = now.kinetic + now.potential
        assert (sim.q <= arm.upper + 1e-12).all() and (sim.q >= arm.lower - 1e-12).all()
    assert now.impact > 0.1 and abs(now.balance) < 1e-6


def test_a_start_outside_the_stops_is_said_and_can_only_come_in(twolink):
    arm = twolink.with_gravity((0.0, 0.0, 0.0))
    with pytest.warns(TwolinkWarning, match="joint 'joint2' starts at 3, outside its stops"):
        sim = Simulation(arm, q=[0.0, 3.0], qd=[0.0, 1.0])
    sim.run(0.05, [0.0, 1.0])
    assert sim.q[1] == 3.0
    sim.run(0.3, [0.0, -1.0])
    assert sim.q[1] < 2.9


def test_brake_is_an_impulse_then_a_hold(twolink):
    sim = Simulation(twolink, q=[0.3, 0.4], qd=[2.0, -3.0])
    before = sim.ledger
    sim.brake(True)
    assert (sim.qd == 0.0).all()
    assert sim.ledger.impact == pytest.approx(before.kinetic, rel=1e-12)
    held = sim.q
    sim.run(0.5, [50.0, 20.0])
    assert sim.q.tolist() == held.tolist() and sim.braked
    sim.brake(False)
    sim.run(0.1, [50.0, 20.0])
    assert np.abs(sim.q - held).max() > 0.01
    assert abs(sim.ledger.balance) < 1e-8


def story(sim):
    """Everything that can leave a trace behind."""
    sim.run(0.05, [3.0, 1.0])
    sim.set_external_wrench((1.0, 0.0, 2.0), (0.0, 0.1, 0.0))
    sim.run(0.05, lambda t, q, qd: [np.sin(9 * t), -qd[1]])
    sim.set_payload(0.5, (0.0, 0.0, 0.02))
    sim.set_gravity((0.0, 1.0, -9.0))
    sim.run(0.05, [1.0, 1.0])
    sim.brake(True)
    sim.run(0.01)
    sim.brake(False)
    return sim.run(0.05, [2.0, -1.0])


@pytest.mark.parametrize("method", ["rk4", "semi_implicit", "dop853"])
def test_reset_equals_a_fresh_start_bit_for_bit(twolink, method):
    def make():
        return Simulation(
            Plant(twolink, friction=Friction([0.2, 0.1], [0.1, 0.1])),
            1e-3 if method != "dop853" else 5e-3,
            method,
            q=[0.3, 0.4],
            qd=[0.5, 0.0],
        )

    used, fresh = make(), make()
    story(used)
    used.reset()
    assert used.t == 0.0 and used.external_wrench is None and not used.braked and used.effort.tolist() == [0.0, 0.0]
    first, second = story(used), story(fresh)
    for name in ("t", "q", "qd", "tau"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes()
    assert used.ledger == fresh.ledger


def test_reset_can_keep_the_payload(twolink):
    sim = Simulation(twolink)
    sim.set_payload(1.0)
    sim.reset(keep_model=True)
    assert sim.dynamics.gravity(sim.q) == pytest.approx(Dynamics(twolink.with_payload(1.0)).gravity(sim.q))
    assert sim.ledger.edits == 0.0 and sim.ledger.balance == 0.0


def test_what_is_not_finite_is_named_and_changes_nothing(twolink):
    sim = Simulation(twolink, q=[0.1, 0.2])
    sim.run(0.01, [1.0, 0.0])
    q, qd, t, ledger = sim.q, sim.qd, sim.t, sim.ledger
    for bad in (np.nan, np.inf):
        with pytest.raises(SimulationError, match=f"effort of joint 'joint2' is {bad} at t = 0.01 s"):
            sim.step([0.0, bad])
    blown = Simulation(Plant(twolink, stops=False, effort_limits=False), dt=1.0, q=[0.1, 0.2])
    with np.errstate(all="ignore"), pytest.raises(SimulationError, match="of joint 'joint[12]' became"):
        blown.run(100.0, [1e140, -1e150])
    assert np.isfinite(blown.q).all() and np.isfinite(blown.qd).all()
    assert (sim.q is q) and (sim.qd is qd) and sim.t == t and sim.ledger == ledger
    sim.step([1.0, 0.0])
    assert sim.t == pytest.approx(0.011)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda arm: Simulation(arm, dt=0.0), "dt"),
        (
            lambda arm: Simulation(arm, method="euler"),
            "no integration method 'euler'; the methods are rk4, semi_implicit, dop853",
        ),
        (lambda arm: Simulation(arm, q=[0.0]), "q: shape"),
        (lambda arm: Simulation(arm, qd=[0.0, np.nan]), "qd"),
        (lambda arm: Simulation("arm"), "needs a Plant or an Arm"),
        (lambda arm: Simulation(arm).step([1.0]), "effort: shape"),
        (lambda arm: Simulation(arm).run(-1.0), "duration"),
        (lambda arm: Simulation(arm).run(1.0, np.zeros((3, 2))), "3 rows for 1000 steps"),
        (lambda arm: Simulation(arm).run(1.0, every=0), "every"),
        (lambda arm: Simulation(arm).set_gravity([0.0, 1.0]), "gravity: shape"),
        (lambda arm: Plant(arm, friction=Friction([0.1] * 3, [0.0] * 3)), "3 values for 2 joints"),
        (lambda arm: Plant(arm, contact=3), "contact must be a Plane"),
    ],
)
def test_bad_arguments_are_refused_by_name(twolink, call, message):
    with pytest.raises(InputError, match=message):
        call(twolink)


def test_stiff_viscous_friction_is_substepped_not_diverged(twolink):
    """Damping 400 N m s/rad on 0.1 kg m²: λ = 3900/s, beyond RK4 at 1 ms."""
    plant = Plant(twolink.with_gravity((0, 0, 0)), friction=Friction([0.0, 0.0], [0.0, 400.0]))
    sim = Simulation(plant, qd=[0.0, 3.0])
    assert sim.substeps > 5
    sim.run(0.05)
    assert np.abs(sim.qd).max() < 3.0 and abs(sim.ledger.balance) < 1e-4
    with pytest.raises(SimulationError, match="joint 'joint2': its fastest mode"):
        Simulation(Plant(twolink, friction=Friction([0.0, 0.0], [0.0, 4e4])))


def test_run_samples_every_and_tells_progress(twolink):
    seen = []
    path = Simulation(twolink).run(0.1, np.arange(200.0).reshape(100, 2) * 0.01, every=10, progress=seen.append)
    assert len(path) == 11 and path.t[-1] == pytest.approx(0.1) and path.n == 2
    assert path.tau[3].tolist() == [0.6, 0.61]  # held from t[3] = 0.03 s on: row 30
    assert seen[-1] == 1.0 and 50 <= len(seen) <= 101
    assert isinstance(path, Trajectory)


def test_state_is_read_only(twolink):
    sim = Simulation(twolink)
    sim.step([1.0, 0.0])
    for array in (sim.q, sim.qd, sim.effort):
        with pytest.raises(ValueError):
            array[0] = 1.0


@pytest.mark.parametrize("axes", [None, "link1"])
def test_a_wrench_with_torque_and_lever_is_balanced_by_its_virtual_work(twolink, axes):
    """At rest, τ = g − ∂(virtual work)/∂q of force and torque at a point of link 2, by differences of the pose."""
    q, point = np.array([0.4, 0.9]), (0.2, 0.0, 0.1)
    force, torque = np.array([5.0, 0.0, -7.0]), np.array([0.0, 0.6, 0.0])
    sim = Simulation(twolink, q=q)
    sim.set_external_wrench(force, torque, frame="link2", point=point, axes=axes)
    turn = np.eye(3) if axes is None else sim.dynamics.tip_pose(q, axes)[0]

    def at(q):
        rotation, origin = sim.dynamics.tip_pose(q, "link2")
        return origin + rotation @ point

    work = np.empty(2)
    for i, e in enumerate(1e-6 * np.eye(2)):
        work[i] = turn @ force @ (at(q + e) - at(q - e)) / 2e-6 + (turn @ torque)[1] * -1.0  # both axes are −y
    assert np.abs(np.cross(point, force)[1]) > 0.1  # premise: there is a lever
    sim.step(sim.dynamics.gravity(q) - work, count=50)
    assert np.abs(sim.qd).max() < 1e-8  # what central differences leave


def test_a_forces_work_is_that_of_the_point_it_acts_on(twolink):
    sim = Simulation(Plant(twolink.with_gravity((0.0, 0.0, 0.0)), stops=False), q=[0.3, 0.7])
    force, point = np.array([3.0, 0.0, -2.0]), np.array([0.3, 0.0, 0.2])

    def at():
        rotation, origin = sim.dynamics.tip_pose(sim.q, "link2")
        return origin + rotation @ point

    start = at()
    sim.set_external_wrench(force, frame="link2", point=point)
    sim.step(count=200)
    assert sim.ledger.external == pytest.approx(force @ (at() - start), rel=1e-12)
    assert sim.ledger.external > 0.1 and abs(sim.ledger.balance) < 1e-9
