"""Contact of the tip with a plane: it is not passed, takes energy by impulses, pushes only, sticks and slides by
Coulomb."""

import numpy as np
import pytest

from twolink_dynamics import Dynamics, InputError, ModelError, TwolinkWarning, load_urdf
from twolink_dynamics.contact import Plane
from twolink_dynamics.friction import Friction
from twolink_dynamics.plant import Plant
from twolink_dynamics.simulation import Simulation

FLOOR = -0.3  # [m]
POSE = [0.5, -1.6]  # tip well above the floor

GANTRY = """<robot name="gantry"><link name="base"/><link name="bridge"><inertial><mass value="0.5"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="cart"><inertial><mass value="0.5"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="block"><inertial><mass value="2"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/>
</inertial></link>
<joint name="x" type="prismatic"><parent link="base"/><child link="bridge"/><axis xyz="1 0 0"/>
<limit lower="-9" upper="9" effort="99" velocity="9"/></joint>
<joint name="y" type="prismatic"><parent link="bridge"/><child link="cart"/><axis xyz="0 1 0"/>
<limit lower="-9" upper="9" effort="99" velocity="9"/></joint>
<joint name="z" type="prismatic"><parent link="cart"/><child link="block"/><axis xyz="0 0 1"/>
<limit lower="-9" upper="9" effort="99" velocity="9"/></joint>
</robot>"""


@pytest.fixture(scope="module")
def gantry():
    """A 2 kg block moved along x, y, z (3, 2.5 and 2 kg): contact in space with numbers one can check by hand."""
    return load_urdf(GANTRY)


def floor(friction=0.0):
    return Plane((0.0, 0.0, FLOOR), (0.0, 0.0, 2.0), friction)


def gap(sim):
    return sim.dynamics.tip_pose(sim.q)[1][2] - FLOOR


@pytest.mark.parametrize("friction", [0.0, 0.15])
@pytest.mark.parametrize("method", ["rk4", "semi_implicit", "dop853"])
def test_a_falling_arm_lands_without_passing_or_rebounding(twolink, friction, method):
    sim = Simulation(Plant(twolink, contact=floor(friction)), 1e-3 if method != "dop853" else 5e-3, method, q=POSE)
    landed = False
    stored = sim.ledger.kinetic + sim.ledger.potential
    for _ in range(400 if method != "dop853" else 80):
        sim.step()
        assert gap(sim) > -1e-9
        if method != "semi_implicit":  # whose own energy error is larger than what is looked for
            ledger = sim.ledger
            assert ledger.kinetic + ledger.potential <= stored + 1e-7
            stored = ledger.kinetic + ledger.potential
        if gap(sim) < 1e-9:
            landed = True
            assert sim.contact_force[2] >= 0.0
    assert landed and sim.ledger.impact > 0.05
    assert sim.ledger.dissipated > 0.0 if friction else sim.ledger.dissipated == 0.0
    assert abs(sim.ledger.balance) < (1e-6 if method != "semi_implicit" else 0.2)


def test_impact_impulse_is_the_effective_mass_times_the_speed(gantry):
    """Frictionless: only z stops, and ½ m v² with the 2 kg of z is what the impact takes."""
    sim = Simulation(
        Plant(gantry.with_gravity((0, 0, 0)), contact=floor()), q=[0.0, 0.0, FLOOR + 0.0505], qd=[0.4, 0.2, -1.0]
    )
    sim.run(0.1)
    assert sim.qd.tolist() == pytest.approx([0.4, 0.2, 0.0], abs=1e-12)
    assert sim.ledger.impact == pytest.approx(0.5 * 2.0 * 1.0**2, rel=1e-9)
    assert abs(sim.ledger.balance) < 1e-12


def test_impact_with_friction_obeys_coulomb_in_the_impulses(gantry):
    """Sliding impact: tangential impulse μ pₙ against the sliding; with enough μ the tip stops dead."""
    mass, pn = np.array([3.0, 2.5, 2.0]), 2.0 * 1.0
    start = dict(q=[0.0, 0.0, FLOOR], qd=[1.0, 0.0, -1.0])
    slide = Simulation(Plant(gantry.with_gravity((0, 0, 0)), contact=floor(0.3)), **start)
    slide.step()
    assert slide.qd == pytest.approx([1.0 - 0.3 * pn / mass[0], 0.0, 0.0], abs=1e-9)
    stop = Simulation(Plant(gantry.with_gravity((0, 0, 0)), contact=floor(2.0)), **start)
    stop.step()
    assert stop.qd == pytest.approx([0.0, 0.0, 0.0], abs=1e-12)
    assert stop.ledger.impact == pytest.approx(0.5 * 3.0 + 0.5 * 2.0, rel=1e-9)


def test_resting_contact_is_at_rest_and_carries_the_weight(gantry):
    sim = Simulation(Plant(gantry, contact=floor(0.4)), q=[0.1, 0.2, FLOOR])
    sim.step([7.0, 0.0, 0.0], count=300)  # 7 N < μ m g = 7.85 N
    assert sim.q == pytest.approx([0.1, 0.2, FLOOR], abs=1e-13) and np.abs(sim.qd).max() < 1e-13
    assert sim.contact_force == pytest.approx([-7.0, 0.0, 2.0 * 9.81], abs=1e-9)
    assert sim.ledger.dissipated == pytest.approx(0.0, abs=1e-12)


def test_sliding_in_space_is_opposed_along_the_velocity(gantry):
    """μ N along −v with 3 kg and 2.5 kg: the path curves; it stops, stays, and every joule is accounted for."""
    sim = Simulation(Plant(gantry, contact=floor(0.4)), q=[0.0, 0.0, FLOOR], qd=[0.8, 0.6, 0.0])
    sim.step()
    force = sim.contact_force
    assert np.hypot(force[0], force[1]) == pytest.approx(0.4 * 2.0 * 9.81, rel=1e-9)
    assert force[:2] / np.hypot(*force[:2]) == pytest.approx(-sim.qd[:2] / np.hypot(*sim.qd[:2]), abs=1e-9)
    path = sim.run(0.6)
    assert np.abs(sim.qd).max() < 1e-9
    still = path.t > 0.5
    assert np.ptp(path.q[still], axis=0).max() < 1e-12
    assert sim.ledger.dissipated == pytest.approx(0.5 * (3.0 * 0.8**2 + 2.5 * 0.6**2), rel=1e-4)
    assert abs(sim.ledger.balance) < 1e-4


def test_slip_in_the_plane_has_the_textbook_deceleration(gantry):
    sim = Simulation(Plant(gantry, contact=floor(0.25)), q=[0.0, 0.0, FLOOR], qd=[0.5, 0.0, 0.0])
    a = 0.25 * 2.0 * 9.81 / 3.0
    sim.run(0.2)
    assert sim.qd[0] == pytest.approx(0.5 - 0.2 * a, abs=1e-10)
    sim.run(0.4)
    assert sim.q[0] == pytest.approx(0.5**2 / (2 * a), rel=1e-9) and abs(sim.qd[0]) < 1e-12


def test_contact_only_pushes(gantry):
    sim = Simulation(Plant(gantry, contact=floor(0.4)), q=[0.0, 0.0, FLOOR])
    sim.run(0.05)
    assert gap(sim) == pytest.approx(0.0, abs=1e-12)
    sim.run(0.1, [0.0, 0.0, 2.0 * 9.81 + 1.0])
    assert gap(sim) == pytest.approx(0.5 * 0.5 * 0.1**2, rel=1e-2)
    assert (sim.contact_force == 0.0).all()
    sim.run(1.0)
    assert gap(sim) == pytest.approx(0.0, abs=1e-9)  # and falls back


def test_pressed_against_a_wall_the_force_is_that_of_statics(twolink):
    """A torque held against a frictionless wall: N = (τ − g) along the constrained direction, tip at rest in it."""
    wall_at = 0.55
    sim = Simulation(
        Plant(twolink, friction=Friction([0.0, 0.0], [3.0, 3.0]), contact=Plane((wall_at, 0.0, 0.0), (-1.0, 0.0, 0.0))),
        dt=2e-3,
        q=[-1.2, 1.9],
    )
    D = Dynamics(twolink)
    sim.run(
        4.0, lambda t, q, qd: D.gravity(q) + D.jacobian(q)[:3].T @ np.array([12.0, 0.0, -200.0 * D.tip_pose(q)[1][2]])
    )
    assert sim.dynamics.tip_pose(sim.q)[1][0] == pytest.approx(wall_at, abs=1e-9)
    assert np.abs(sim.qd).max() < 1e-2
    assert sim.contact_force == pytest.approx([-12.0, 0.0, 0.0], abs=0.1)


def test_rest_on_joints_and_floor_together(twolink):
    """Dry joints, a rough floor and gravity at once: everything stops for good and holds."""
    sim = Simulation(Plant(twolink, friction=Friction([0.5, 0.3], [0.2, 0.2]), contact=floor(0.6)), 2e-3, q=POSE)
    sim.run(2.0, every=100)
    held = sim.q
    assert np.abs(sim.qd).max() < 1e-12
    sim.run(0.5, every=100)
    assert np.abs(sim.q - held).max() < 1e-12
    assert abs(sim.ledger.balance) < 1e-5


def test_lifting_off_while_braked_and_stuck_is_quiet(twolink):
    sim = Simulation(Plant(twolink, contact=floor(0.5)), q=POSE)
    sim.run(0.35)
    sim.brake()
    held = sim.q
    sim.run(0.05)
    assert sim.q.tolist() == held.tolist()


def test_a_start_inside_is_said_and_can_only_come_out(gantry):
    with pytest.warns(TwolinkWarning, match="the tip starts 0.01 m inside the contact plane"):
        sim = Simulation(Plant(gantry, contact=floor()), q=[0.0, 0.0, FLOOR - 0.01])
    sim.run(0.05)
    assert gap(sim) == pytest.approx(-0.01, abs=1e-9)
    sim.run(0.3, [0.0, 0.0, 30.0])
    assert gap(sim) > 0.0


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        (((0, 0, 0), (0, 0, 0)), InputError, "no direction"),
        (((0, 0, 0), (0, 0, 1), -0.1), InputError, "friction -0.1"),
        (((0, 0, np.nan), (0, 0, 1)), InputError, "point"),
        (((0, 0, 0), (0, 1, 0)), ModelError, "no joint moves 'tool0' along the normal"),
        (((0, 0, 0), (0, 0, 1), 0.0, "hand"), ModelError, "no link 'hand'"),
    ],
)
def test_impossible_planes_are_refused(twolink, arguments, error, message):
    with pytest.raises(error, match=message):
        Plant(twolink, contact=Plane(*arguments))


def test_friction_that_jams_creates_no_energy(twolink):
    """Slides with μ up to 4 into poses where sliding has no solution (Painlevé): it sticks, what it had is taken."""
    arm = twolink.with_gravity((0.0, 0.0, 0.0))
    jammed = 0
    for seed in (0, 3, 9, 20, 31, 45, 52, 58):
        rng = np.random.default_rng(seed)
        q, angle = rng.uniform([-1.5, -2.5], [1.5, 2.5]), rng.uniform(0, 6.28)
        mech = Simulation(arm).dynamics
        normal, along = np.array([np.cos(angle), 0, np.sin(angle)]), np.array([-np.sin(angle), 0, np.cos(angle)])
        wall = Plane(mech.tip_pose(q)[1], normal, rng.uniform(1, 4))
        J = mech.jacobian(q)[:3]
        qd = np.linalg.solve([normal @ J, along @ J], [0.0, rng.choice([-1, 1]) * 0.8])
        sim = Simulation(Plant(arm, stops=False, contact=wall), q=q, qd=qd)
        before = sim.ledger
        for _ in range(60):
            sim.step()
            now = sim.ledger
            assert now.kinetic <= before.kinetic + 1e-6  # what RK4 leaves next to jamming, N fifty times as large
            assert now.dissipated >= before.dissipated - 1e-9
            before = now
        jammed += now.projection < -1e-3
    assert jammed >= 2  # premise
