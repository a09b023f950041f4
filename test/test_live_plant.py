"""A plant exchanged under a running simulation keeps its state and books what it costs; on the node, nothing is half
applied."""
import numpy as np
import pytest

from twolink_dynamics import TwolinkError, load_urdf
from twolink_dynamics.constraints import TipOnLine
from twolink_dynamics.contact import Plane
from twolink_dynamics.flexible import FlexibleJoints
from twolink_dynamics.friction import Friction
from twolink_dynamics.plant import Plant
from twolink_dynamics.resources import find_urdf
from twolink_dynamics.simulation import Simulation

TAU = np.array([5.0, 1.0])
BALANCED = 1e-6  # [J] RK4 at 1 ms over a second, a few J moving; springs included


@pytest.fixture
def moving(twolink):
    """A simulation in full swing."""
    sim = Simulation(twolink, q=[0.3, 0.4])
    sim.run(0.3, TAU)
    assert np.abs(sim.qd).min() > 0.3
    return sim


def test_new_friction_keeps_the_state_and_costs_nothing(moving, twolink):
    q, qd, t = moving.q.copy(), moving.qd.copy(), moving.t
    moving.set_plant(Plant(twolink, friction=Friction([0.1, 0.1], [0.3, 0.3])))
    assert (moving.q == q).all() and (moving.qd == qd).all() and moving.t == t
    assert moving.ledger.edits == 0.0
    fresh = Simulation(Plant(twolink, friction=Friction([0.1, 0.1], [0.3, 0.3])), q=q, qd=qd)
    moving.run(0.2, TAU)
    fresh.run(0.2, TAU)
    assert (moving.q == fresh.q).all() and (moving.qd == fresh.qd).all()
    assert moving.ledger.dissipated > 0.01 and abs(moving.ledger.balance) < BALANCED


def test_springs_come_and_go_and_their_energy_is_an_edit(moving, twolink):
    rotors = twolink.with_joints(rotor_inertia=[0.02, 0.02])
    before = sum(moving.ledger[name] for name in ("kinetic", "potential", "elastic"))
    moving.set_plant(Plant(rotors, flexible=FlexibleJoints([2000.0] * 2, [4.0] * 2)))
    after = sum(moving.ledger[name] for name in ("kinetic", "potential", "elastic"))
    assert moving.ledger.edits == pytest.approx(after - before, abs=1e-12) and after > before
    moving.run(0.2, TAU)
    theta = moving.theta.copy()
    moving.set_plant(Plant(rotors, flexible=FlexibleJoints([1500.0] * 2, [4.0] * 2)))
    assert (moving.theta == theta).all()  # the motors stay where they are
    moving.set_plant(Plant(twolink))
    assert moving.theta is None
    moving.run(0.1, TAU)
    assert abs(moving.ledger.balance) < BALANCED


def test_a_constraint_is_met_by_the_nearest_state(moving, twolink):
    tip = moving.dynamics.tip_pose(moving.q)[1]
    moving.set_plant(Plant(twolink, constraints=[TipOnLine(tip + [0.0, 0.0, 0.001], [1.0, 0.0, 0.0])]))
    moving.run(0.1, TAU)
    assert abs(moving.dynamics.tip_pose(moving.q)[1][2] - tip[2] - 0.001) < 1e-8
    assert abs(moving.ledger.balance) < BALANCED


def test_gravity_payload_wrench_brake_and_reset_pose_stay(moving, twolink):
    moving.set_gravity([0.0, 0.0, -1.62])
    moving.set_payload(0.3)
    moving.set_external_wrench([1.0, 0.0, 0.0])
    moving.brake()
    wrench, gravity = moving.external_wrench, moving.dynamics.gravity(moving.q)
    moving.set_plant(Plant(twolink, contact=Plane((0.0, 0.0, -3.0), (0.0, 0.0, 1.0), 0.2)))
    assert moving.external_wrench is wrench and moving.braked
    assert np.allclose(moving.dynamics.gravity(moving.q), gravity, rtol=1e-12)
    moving.reset()
    assert moving.q.tolist() == [0.3, 0.4] and moving.t == 0.0
    moving.set_plant(Plant(twolink), initial=[0.1, 0.2])
    moving.reset()
    assert moving.q.tolist() == [0.1, 0.2]


def test_what_is_refused_changes_nothing(moving, twolink):
    before = dict(vars(moving))
    five_bar = load_urdf(str(find_urdf("five_bar")), tip="left_tip")
    for plant in (lambda: Plant(twolink, flexible=FlexibleJoints([2000.0] * 2, [4.0] * 2)), lambda: Plant(five_bar),
                  lambda: Plant(twolink, constraints=[TipOnLine([0.0, 0.0, 9.0], [1.0, 0.0, 0.0])])):
        with pytest.raises(TwolinkError):
            moving.set_plant(plant())
    assert all(vars(moving)[name] is value for name, value in before.items())
