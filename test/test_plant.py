"""The whole plant beside MuJoCo, which models the same pieces: armature, damping, springs, limits at rest."""

import mujoco
import numpy as np
import pytest
from arms import random_arm, random_state
from hypothesis import example, given, settings
from hypothesis import strategies as st

from twolink_dynamics import Dynamics, ModelError, modes
from twolink_dynamics.contact import Plane
from twolink_dynamics.friction import Friction
from twolink_dynamics.plant import Mechanism, Plant
from twolink_dynamics.simulation import Simulation


def twin(damping=(0, 0), armature=(0, 0), limited=False, timestep=1e-4, options=""):
    """The shipped arm in MJCF: axes −y, rods along x."""
    joints = [
        f'<joint name="j{i + 1}" axis="0 -1 0" damping="{damping[i]}" armature="{armature[i]}" '
        + (
            f'limited="true" range="{low} {high}" solreflimit="5e-4 1" solimplimit="0.999 0.9999 1e-4"'
            if limited
            else 'limited="false"'
        )
        + "/>"
        for i, (low, high) in enumerate(((-3.14159, 3.14159), (-2.9, 2.9)))
    ]
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><compiler angle="radian"/>
      <option timestep="{timestep}" gravity="0 0 -9.81" integrator="RK4" {options}/><worldbody><body>{joints[0]}
      <inertial pos="0.25 0 0" mass="3" diaginertia="0.0006 0.0625 0.0625"/><body pos="0.5 0 0">{joints[1]}
      <inertial pos="0.2 0 0" mass="2" diaginertia="0.0004 {0.08 / 3} {0.08 / 3}"/></body></body></worldbody>
</mujoco>""")
    return model, mujoco.MjData(model)


@pytest.mark.parametrize("what", ["nothing", "damping", "armature", "both"])
def test_half_a_second_of_motion_is_mujocos(twolink, what):
    damping = (0.8, 0.3) if what in ("damping", "both") else (0.0, 0.0)
    ratio, rotor = np.array([50.0, -30.0]), np.array([4e-5, 3e-5])
    armature = ratio**2 * rotor if what in ("armature", "both") else (0.0, 0.0)
    arm = twolink.with_joints(rotor_inertia=rotor, gear_ratio=ratio) if any(armature) else twolink
    sim = Simulation(Plant(arm, friction=Friction([0, 0], damping), stops=False), 1e-3, q=[0.4, -0.7], qd=[0.5, 1.0])
    model, data = twin(damping, armature)
    data.qpos[:], data.qvel[:], data.qfrc_applied[:] = [0.4, -0.7], [0.5, 1.0], [5.0, 2.0]
    for _ in range(5000):
        mujoco.mj_step(model, data)
    sim.run(0.5, [5.0, 2.0])
    assert sim.q == pytest.approx(data.qpos, abs=1e-8)
    assert sim.qd == pytest.approx(data.qvel, abs=1e-7)


def test_a_joint_at_rest_on_its_limit_feels_mujocos_force(twolink):
    """The elbow pressed on its upper limit, shoulder balanced: the same stop effort, and nothing moves."""
    q = np.array([0.3, 2.9])
    D = Mechanism(Plant(twolink)).dynamics
    tau = D.gravity(q) + [0.0, 6.0]
    sim = Simulation(twolink, q=q)
    sim.run(0.5, tau)
    assert np.abs(sim.qd).max() < 1e-12 and sim.q[1] == 2.9
    model, data = twin(limited=True)
    data.qpos[:], data.qfrc_applied[:] = q, tau
    for _ in range(3000):
        mujoco.mj_step(model, data)
    assert np.abs(data.qvel).max() < 1e-3  # premise: MuJoCo's rests too
    stop = D.gravity(sim.q) - tau  # M q̈ = 0 = τ + stop − g
    assert stop[1] == pytest.approx(data.qfrc_constraint[1], rel=2e-2)
    assert sim.q[1] == pytest.approx(data.qpos[1], abs=2e-3)


def test_rotor_coupling_moves_the_arm_by_the_rotors_own_turning(twolink):
    """Full coupling differs from the diagonal by the terms ±gr Ir, and conserves energy just as well."""
    geared = dict(rotor_inertia=[2e-4, 2e-4], gear_ratio=-20.0)
    motions = []
    for coupling in (False, True):
        sim = Simulation(Plant(twolink.with_joints(rotor_coupling=coupling, **geared), stops=False), q=[0.4, -0.7])
        sim.run(0.5)
        assert abs(sim.ledger.balance) < 1e-8
        motions.append(sim.q)
    assert np.abs(motions[0] - motions[1]).max() > 1e-4


def test_everything_at_once_keeps_its_books(twolink):
    """Friction with Stribeck, rotors, flexible joints, a rough table, a payload picked up, a push and a brake."""
    from twolink_dynamics.flexible import FlexibleJoints

    arm = twolink.with_joints(rotor_inertia=[1e-4, 5e-5], gear_ratio=30.0)
    plant = Plant(
        arm,
        friction=Friction([0.3, 0.2], [0.2, 0.1], [0.5, 0.3], [0.1, 0.1]),
        flexible=FlexibleJoints([800.0, 400.0], 1.0),
        contact=Plane((0, 0, -0.4), (0, 0, 1), 0.3),
    )
    sim = Simulation(plant, q=[0.6, -1.2])
    sim.run(0.15, [10.0, 2.0])
    sim.set_payload(0.7, (0.0, 0.0, 0.02))
    sim.set_external_wrench((4.0, 0.0, -6.0), (0.0, 0.2, 0.0))
    sim.run(0.25)
    sim.set_external_wrench((0.0, 0.0, 0.0))
    sim.brake()
    sim.run(0.1)
    sim.brake(False)
    sim.run(0.2, [3.0, 0.0])
    ledger = sim.ledger
    entries = ledger.as_dict()
    assert all(
        entries[name] != 0.0 for name in ("kinetic", "elastic", "input", "external", "dissipated", "impact", "edits")
    )
    assert ledger["impact"] > 0.0 and dict(ledger.items()) == entries
    assert abs(ledger.balance) < 1e-4


def test_plant_options_switch_limits_off(twolink):
    assert np.isinf(Mechanism(Plant(twolink, stops=False)).upper).all()
    assert Mechanism(Plant(twolink)).upper.tolist() == twolink.upper.tolist()
    scalar = Plant(twolink, friction=Friction(0.1, 0.2))
    assert scalar.friction.coulomb.tolist() == [0.1, 0.1] and scalar.friction.viscous.tolist() == [0.2, 0.2]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 100_000))
@example(seed=1076)  # brought to rest by friction and two stops at once: the first pass leaves 1e-11 rad/s
def test_impulses_never_add_energy_and_book_what_they_take(seed):
    """Random arm, stops, rough plane, brake or not: T⁺ ≤ T⁻, the difference is what `impact` says, nothing is
    passed."""
    rng = np.random.default_rng(seed)
    arm = random_arm(seed, n=int(rng.integers(1, 6)))
    q, qd, _ = random_state(arm, seed)
    at = rng.integers(-1, 2, arm.n)
    arm = arm.with_joints(lower=np.where(at < 0, q, q - 10.0), upper=np.where(at > 0, q, q + 10.0))
    D = Dynamics(arm)
    contact = None
    normal = rng.normal(size=3)
    if rng.random() < 0.6:
        try:
            contact = Plane(D.tip_pose(q)[1], normal, rng.choice([0.0, rng.uniform(0.1, 2.0)]))
            mech = Mechanism(Plant(arm, contact=contact))
        except ModelError:  # nothing moves the tip along that normal
            contact = None
    mech = Mechanism(Plant(arm, contact=contact))
    braked = rng.random() < 0.15
    after, taken = modes.impact(mech, q, qd, braked)
    M = D.mass_matrix(q)
    before, now = 0.5 * qd @ M @ qd, 0.5 * after @ M @ after
    assert now <= before * (1.0 + 1e-9) and taken >= -1e-9 * before
    assert before - now == pytest.approx(taken, abs=1e-7 * max(before, 1e-3))
    assert (after * at <= 1e-12).all()
    if contact is not None:
        assert (mech.contact.rows(q) @ after)[0] >= -1e-6 * np.abs(qd).max()
    if braked:
        assert (after == 0.0).all()
