"""Constraints by multipliers: reachable directions, drift, the multipliers' values, and what is refused."""

import mujoco
import numpy as np
import pytest

from twolink_dynamics import Dynamics, InputError, ModelError, SimulationError, load_urdf
from twolink_dynamics.constraints import (
    CoincidentTips,
    ConstraintSet,
    CoupledJoints,
    TipAtDistance,
    TipOnLine,
    TipOnPlane,
    TipPinned,
)
from twolink_dynamics.friction import Friction
from twolink_dynamics.plant import Plant
from twolink_dynamics.resources import find_urdf
from twolink_dynamics.simulation import Simulation

DRIFT = 1e-8  # [m] what the issue of drift allows over ten seconds

FIVE_BAR = """<robot name="five"><link name="base"/>
{links}
<joint name="l1" type="continuous"><parent link="base"/><child link="left1"/><origin xyz="-0.1 0 0"/>
<axis xyz="0 -1 0"/></joint>
<joint name="l2" type="continuous"><parent link="left1"/><child link="left2"/><origin xyz="0.3 0 0"/>
<axis xyz="0 -1 0"/></joint>
<joint name="lt" type="fixed"><parent link="left2"/><child link="left_tip"/><origin xyz="0.4 0 0"/></joint>
<joint name="r1" type="continuous"><parent link="base"/><child link="right1"/><origin xyz="0.1 0 0"/>
<axis xyz="0 -1 0"/></joint>
<joint name="r2" type="continuous"><parent link="right1"/><child link="right2"/><origin xyz="0.3 0 0"/>
<axis xyz="0 -1 0"/></joint>
<joint name="rt" type="fixed"><parent link="right2"/><child link="right_tip"/><origin xyz="0.4 0 0"/></joint>
</robot>""".format(
    links="".join(
        f'<link name="{name}"><inertial><origin xyz="{x} 0 0"/><mass value="{m}"/>'
        f'<inertia ixx="1e-4" iyy="{i}" izz="{i}" '
        'ixy="0" ixz="0" iyz="0"/></inertial></link>'
        for name, x, m, i in (
            ("left1", 0.15, 1.0, 0.0075),
            ("left2", 0.2, 0.8, 0.0107),
            ("right1", 0.15, 1.0, 0.0075),
            ("right2", 0.2, 0.8, 0.0107),
        )
    )
    + '<link name="left_tip"/><link name="right_tip"/>'
)


@pytest.fixture(scope="module")
def five_bar():
    return load_urdf(FIVE_BAR, tip="left_tip")


def placed(plant, q):
    """A Simulation from the pose next to q that meets the constraints."""
    return Simulation(plant, q=plant.assemble(q))


def tip(sim, frame=None):
    return sim.dynamics.tip_pose(sim.q, frame)[1]


CASES = {
    "line": (lambda: TipOnLine((0.6, 0.0, 0.1), (0.0, 0.0, 2.0)), 1),
    "plane": (lambda: TipOnPlane((0.0, 0.0, -0.2), (0.3, 0.0, 1.0)), 1),
    "distance": (lambda: TipAtDistance((0.7, 0.0, 0.0), 0.45), 1),
    "pinned": (lambda: TipPinned((0.5, 0.0, -0.3)), 2),
    "coupled": (lambda: CoupledJoints("joint2", "joint1", -1.5, 0.2), 1),
}


@pytest.mark.parametrize("name", CASES)
def test_planar_arm_gets_rows_in_reachable_directions_only(twolink, name):
    make, rows = CASES[name]
    held = ConstraintSet(Dynamics(twolink), [make()])
    assert held.k == rows
    rng = np.random.default_rng(1)
    for _ in range(3):
        q, qd, h = rng.uniform(-1.5, 1.5, 2), rng.uniform(-2, 2, 2), 1e-6
        J = held.jacobian(q)
        assert np.linalg.matrix_rank(J) == rows
        numeric = np.stack([(held.phi(q + h * e) - held.phi(q - h * e)) / (2 * h) for e in np.eye(2)], axis=1)
        assert J == pytest.approx(numeric, abs=1e-8)  # central differences, h = ε^⅓
        turned = (held.jacobian(q + h * qd) - held.jacobian(q - h * qd)) / (2 * h)
        assert held.rows(q, qd)[1] == pytest.approx(turned @ qd, abs=1e-7)


@pytest.mark.parametrize("name", CASES)
def test_no_drift_in_ten_seconds_and_energy_is_kept(twolink, name):
    make, _ = CASES[name]
    plant = Plant(twolink, constraints=[make()], stops=False)
    sim = Simulation(plant, 5e-3, q=plant.assemble([0.9, -1.4]))
    start = sim.ledger
    worst = moved = 0.0
    for _ in range(200):
        sim.step([0.05, 0.0], count=10)
        worst = max(worst, np.abs(sim._mech.constraints.phi(sim.q)).max())
        moved = max(moved, sim.ledger.kinetic)
    assert sim.t == pytest.approx(10.0) and worst < DRIFT
    assert moved > 0.5 or name == "pinned"  # premise: it swings [J]
    ledger = sim.ledger
    assert abs(ledger.balance) < 0.02 * max(moved, 1e-3) and abs(ledger.projection) < 0.02 * max(moved, 1e-3)
    assert ledger.kinetic + ledger.potential == pytest.approx(
        start.kinetic + start.potential + ledger.input + ledger.projection + ledger.balance, abs=1e-12
    )


def test_projection_is_booked_where_it_does_something(twolink):
    """A coarse step drifts, the projection repairs it, and its energy is an entry of its own."""
    plant = Plant(twolink, constraints=[CASES["distance"][0]()], stops=False)
    sim = Simulation(plant, 2e-2, "semi_implicit", q=plant.assemble([0.9, -1.4]))
    sim.run(0.6)
    assert abs(sim.ledger.projection) > 1e-5
    assert np.abs(sim._mech.constraints.phi(sim.q)).max() < 1e-10


def test_pinned_tip_locks_the_arm_and_the_pin_carries_what_statics_says(twolink):
    point = Dynamics(twolink).tip_pose([0.4, 0.8])[1]
    sim = Simulation(Plant(twolink, constraints=[TipPinned(point)]), q=[0.4, 0.8])
    tau = np.array([3.0, -2.0])
    sim.run(0.2, tau)
    assert sim.q == pytest.approx([0.4, 0.8], abs=1e-10) and np.abs(sim.qd).max() < 1e-10
    J = sim.dynamics.jacobian(sim.q)[:3]
    expected = np.linalg.solve(J[[0, 2]].T, sim.dynamics.gravity(sim.q) - tau)  # M q̈ = 0: g = τ + Jᵀλ
    assert sim.constraint_force == pytest.approx([expected[0], 0.0, expected[1]], abs=1e-9)
    assert sim.constraint_effort == pytest.approx(sim.dynamics.gravity(sim.q) - tau, abs=1e-9)
    assert list(sim.constraint_forces) == ["tip pinned"]


def test_coupled_joints_move_as_the_reduced_arm(twolink):
    """q2 = r q1 + c by a multiplier equals the one-coordinate arm with G = (1, r); λ is an effort on the follower."""
    ratio, offset = -1.5, 0.2
    sim = Simulation(
        Plant(twolink, constraints=[CoupledJoints("joint2", "joint1", ratio, offset)], stops=False),
        1e-3,
        "dop853",
        q=[0.3, ratio * 0.3 + offset],
    )
    tau = np.array([4.0, 1.0])
    G, D = np.array([1.0, ratio]), Dynamics(twolink)

    def reduced(t, y):
        q, qd = np.array([y[0], ratio * y[0] + offset]), G * y[1]
        return y[1], G @ (tau - D.bias(q, qd)) / (G @ D.mass_matrix(q) @ G)

    from scipy.integrate import solve_ivp

    truth = solve_ivp(reduced, (0.0, 0.3), [0.3, 0.0], rtol=1e-11, atol=1e-12, method="DOP853").y[:, -1]
    sim.run(0.3, tau)
    assert sim.q[0] == pytest.approx(truth[0], abs=1e-8) and sim.qd[0] == pytest.approx(truth[1], abs=1e-7)
    lam = sim.constraint_forces["coupled joints"]
    assert lam.shape == (2,) and lam[0] == pytest.approx(-ratio * lam[1]) and abs(lam[1]) > 0.1
    residual = D.mass_matrix(sim.q) @ np.append(sim.acceleration[0], ratio * sim.acceleration[0]) + D.bias(
        sim.q, sim.qd
    )
    assert residual == pytest.approx(tau + lam, abs=1e-8)
    assert (sim.constraint_force == 0.0).all()


def test_rod_force_of_a_four_bar_is_along_the_rod(twolink):
    point = np.array([0.7, 0.0, 0.0])
    sim = placed(Plant(twolink, constraints=[TipAtDistance(point, 0.45)]), [0.9, -1.4])
    sim.run(0.2)
    along = (tip(sim) - point) / 0.45
    force = sim.constraint_force
    assert np.linalg.norm(np.cross(force, along)) < 1e-9 * np.linalg.norm(force)
    D = sim.dynamics
    left = D.mass_matrix(sim.q) @ sim.acceleration + D.bias(sim.q, sim.qd)
    assert left == pytest.approx(D.jacobian(sim.q)[:3].T @ force, abs=1e-8)


def test_five_bar_closes_two_branches(five_bar):
    plant = Plant(five_bar, constraints=[CoincidentTips("left_tip", "right_tip")])
    sim = placed(plant, np.radians([120.0, -75.0, 60.0, 75.0]))
    assert sim._mech.constraints.k == 2
    assert tip(sim, "left_tip") == pytest.approx(tip(sim, "right_tip"), abs=1e-11)
    worst = 0.0
    for _ in range(20):
        sim.run(0.05, lambda t, q, qd: [0.5, 0.0, -0.5, 0.0] - 0.2 * qd)
        worst = max(worst, np.abs(tip(sim, "left_tip") - tip(sim, "right_tip")).max())
    assert worst < DRIFT and np.abs(sim.qd).max() > 0.1
    assert abs(sim.ledger.balance) < 1e-6


def test_against_mujoco_with_equality_constraints(twolink):
    """Acceleration and reaction of a pinned elbow tip on a line as MuJoCo's stiff equality gives them (its constraints
    are soft: solref at its stiffest, agreement to 1e-3)."""
    arm = load_urdf(FIVE_BAR, tip="left_tip")
    plant = Plant(arm, constraints=[CoincidentTips("left_tip", "right_tip")])
    sim = Simulation(plant, q=plant.assemble(np.radians([120.0, -75.0, 60.0, 75.0])))
    links = {"left": (-0.1, 0), "right": (0.1, 2)}
    body = """<body name="{s}1" pos="{x} 0 0"><joint name="{s}1" axis="0 -1 0"/>
      <inertial pos="0.15 0 0" mass="1" diaginertia="1e-4 0.0075 0.0075"/>
      <body name="{s}2" pos="0.3 0 0"><joint name="{s}2" axis="0 -1 0"/>
      <inertial pos="0.2 0 0" mass="0.8" diaginertia="1e-4 0.0107 0.0107"/><site name="{s}" pos="0.4 0 0"/></body>
</body>"""
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><compiler angle="radian"/><option gravity="0 0 -9.81" timestep="1e-4"/><worldbody>'
        + "".join(body.format(s=s, x=x) for s, (x, _) in links.items())
        + '</worldbody><equality><connect site1="left" site2="right" solref="2e-4 1" solimp="0.9999 0.9999 0.001"/>'
        "</equality></mujoco>"
    )
    data = mujoco.MjData(model)
    data.qpos[:] = sim.q
    for _ in range(2000):
        mujoco.mj_step(model, data)
    sim.run(0.2)
    assert np.abs(sim.q - plant.assemble(np.radians([120.0, -75.0, 60.0, 75.0]))).max() > 0.05  # premise: it falls
    assert sim.q == pytest.approx(data.qpos, abs=2e-3)
    assert sim.qd == pytest.approx(data.qvel, abs=2e-2)


def test_spatial_arm_pinned_gets_three_rows():
    from arms import random_arm

    arm = random_arm(3, n=6, tree=False, mimic=False, rotors=False)
    D = Dynamics(arm)
    q = np.full(6, 0.4)
    plant = Plant(arm, constraints=[TipPinned(D.tip_pose(q)[1])], stops=False)
    sim = Simulation(plant, q=q)
    assert sim._mech.constraints.k == 3
    sim.run(0.1)
    assert np.abs(tip(sim) - D.tip_pose(q)[1]).max() < DRIFT and np.abs(sim.qd).max() > 0.01


def test_friction_sticks_in_a_constrained_arm(twolink):
    """A four-bar with dry joints at rest: one freedom, two sticking rows, held to the last bit; then pushed loose."""
    plant = Plant(
        twolink.with_gravity((0, 0, 0)),
        friction=Friction([1.0, 1.0], [0.0, 0.0]),
        constraints=[TipAtDistance((0.7, 0.0, 0.0), 0.45)],
    )
    sim = placed(plant, [0.9, -1.4])
    start = sim.q
    sim.run(0.1, [0.6, 0.6])
    assert sim.q.tolist() == start.tolist()
    sim.run(0.2, [8.0, 0.0])
    assert np.abs(sim.qd).max() > 0.1 and abs(sim.ledger.balance) < 1e-7
    sim.run(1.0)
    assert (sim.qd == 0.0).all()
    assert abs(sim.ledger.balance) < 1e-6


def test_brake_in_a_constrained_arm_takes_all_kinetic_energy(twolink):
    sim = placed(Plant(twolink, constraints=[TipAtDistance((0.7, 0.0, 0.0), 0.45)]), [0.9, -1.4])
    sim.run(0.3)
    before = sim.ledger
    assert before.kinetic > 0.01
    sim.brake()
    assert np.abs(sim.qd).max() < 1e-12
    assert sim.ledger.impact - before.impact == pytest.approx(before.kinetic, rel=1e-9)


@pytest.mark.parametrize(
    "constraints, q, error, message",
    [
        ([TipPinned((0.5, 0.2, 0.0))], [0, 1], ModelError, "'tip pinned' can never hold: it stays 0.2 m away"),
        ([TipOnPlane((0, 0, 0), (0, 1, 0))], [0, 1], ModelError, "'tip on plane': no joint moves it"),
        ([TipOnPlane((0, 0, 0), (0, 0, 0))], [0, 1], InputError, "no direction"),
        ([TipAtDistance((0, 0, 0), -1.0)], [0, 1], InputError, "distance"),
        ([CoupledJoints("joint2", "joint2")], [0, 1], InputError, "cannot follow itself"),
        ([CoupledJoints("joint2", "knee")], [0, 1], ModelError, "no joint 'knee'"),
        ([CoincidentTips("tool0", "tool0")], [0, 1], InputError, "both are link 'tool0'"),
        (["line"], [0, 1], InputError, "constraints: str is none of"),
        (
            [TipOnPlane((0, 0, 0.1), (0, 0, 1)), TipOnLine((0.0, 0, 0.1), (1, 0, 0))],
            [0.5, -0.3],
            ModelError,
            "'tip on plane', 'tip on line' are redundant",
        ),
        (
            [TipOnPlane((0, 0, 0.1), (0, 0, 1)), TipOnPlane((0, 0, 0.2), (0, 0, 1))],
            [0.5, -0.3],
            SimulationError,
            "cannot be met from here: 'tip on plane 1' is off by .*'tip on plane 2' is off by",
        ),
        ([TipPinned((2.0, 0.0, 0.0))], [0.1, 0.3], SimulationError, "'tip pinned' is off by"),
    ],
)
def test_impossible_redundant_and_malformed_constraints_are_named(twolink, constraints, q, error, message):
    with pytest.raises(error, match=message):
        Plant(twolink, constraints=constraints, stops=False).assemble(np.array(q, float))


def test_a_start_off_the_constraint_is_refused_with_the_distance(twolink):
    with pytest.raises(SimulationError, match=r"'tip on plane' is off by 0.1 at the given pose; Plant.assemble\(q\)"):
        Simulation(Plant(twolink, constraints=[TipOnPlane((0, 0, 0.1), (0, 0, 1))]), q=[0.0, 0.0])
    plant = Plant(twolink, constraints=[TipOnPlane((0, 0, 0.1), (0, 0, 1))])
    sim = placed(plant, [0.5, -0.3])
    with pytest.raises(SimulationError, match="leaves the constraints"):
        sim.set_state(sim.q, [1.0, 1.0])


@pytest.mark.parametrize(
    "name, constraint, tip_name",
    [
        ("four_bar", TipAtDistance((0.675, 0.0, 0.0), 0.525), None),
        ("five_bar", CoincidentTips("left_tip", "right_tip"), "left_tip"),
    ],
)
def test_shipped_linkages_are_closed_at_zero_and_stay_closed(name, constraint, tip_name):
    arm = load_urdf(find_urdf(name), tip=tip_name)
    sim = Simulation(Plant(arm, constraints=[constraint]), 2e-3)
    sim.run(0.5)
    assert np.abs(sim.q).max() > 0.05 and np.abs(sim._mech.constraints.phi(sim.q)).max() < DRIFT
    assert abs(sim.ledger.balance) < 1e-4
