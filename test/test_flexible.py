"""Flexible joints: the equations, the stiff limit with its rate, elastic energy, sub-stepping and refusal."""

import mujoco
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from twolink_dynamics import Dynamics, InputError, ModelError, SimulationError, load_urdf
from twolink_dynamics.flexible import FlexibleJoints
from twolink_dynamics.friction import Friction
from twolink_dynamics.plant import Plant
from twolink_dynamics.simulation import Simulation

ROTOR, GEAR = [2e-5, 1e-5], [50.0, 40.0]  # B = 0.05 and 0.016 kg m²


@pytest.fixture(scope="module")
def geared(twolink):
    return twolink.with_joints(rotor_inertia=ROTOR, gear_ratio=GEAR)


def test_motion_obeys_the_two_equations(geared):
    """Against an independent integration of B θ̈ + K(θ−q) + D(θ̇−q̇) = τ − τ_f(θ̇), M q̈ + h = K(θ−q) + D(θ̇−q̇)."""
    K, D, Fv = np.array([900.0, 400.0]), np.array([0.5, 0.2]), np.array([0.3, 0.1])
    plant = Plant(geared, flexible=FlexibleJoints(K, D), friction=Friction([0.0, 0.0], Fv), stops=False)
    sim = Simulation(plant, 1e-3, "dop853", q=[0.4, -0.6], qd=[0.2, -0.3])
    links, B = Dynamics(geared.with_joints(rotor_inertia=0.0)), np.array([0.05, 0.016])
    theta = np.array([0.4, -0.6]) + links.gravity([0.4, -0.6]) / K
    assert sim.theta == pytest.approx(theta, abs=1e-14) and sim.thetad.tolist() == [0.2, -0.3]
    tau = np.array([5.0, 1.0])

    def rate(t, y):
        q, th, v, w = y[:2], y[2:4], y[4:6], y[6:]
        spring = K * (th - q) + D * (w - v)
        return np.concatenate([v, w, links.forward_dynamics(q, v, spring), (tau - Fv * w - spring) / B])

    truth = solve_ivp(
        rate, (0, 0.2), np.concatenate([[0.4, -0.6], theta, [0.2, -0.3] * 2]), method="DOP853", rtol=1e-11, atol=1e-12
    ).y[:, -1]
    sim.run(0.2, tau)
    assert np.concatenate([sim.q, sim.theta, sim.qd, sim.thetad]) == pytest.approx(truth, abs=1e-8)
    ledger = sim.ledger
    stretch = sim.theta - sim.q
    assert ledger.elastic == pytest.approx(0.5 * stretch @ (K * stretch), rel=1e-12)
    assert ledger.dissipated > 0.0 and abs(ledger.balance) < 1e-8


def test_positions_converge_to_the_rigid_arm_as_one_over_the_stiffness(geared):
    """The rigid arm has M + B; each tenfold K brings the (time-averaged) difference down about tenfold."""
    tau = [6.0, 2.0]
    start = dict(q=[0.3, -0.4])
    rigid = Simulation(Plant(geared, stops=False), 2e-3, **start).run(0.3, tau)
    stretch = []
    for K in (1e3, 1e4, 1e5):
        soft = Simulation(Plant(geared, stops=False, flexible=FlexibleJoints(K, 2.0 * np.sqrt(K / 1e3))), 2e-3, **start)
        stretch.append(np.abs(soft.run(0.3, tau).q[100:] - rigid.q[100:]).max())
    rates = np.log10(stretch[:-1]) - np.log10(stretch[1:])
    assert stretch[0] > 1e-3  # premise
    assert rates == pytest.approx([1.0, 1.0], abs=0.3), stretch


def test_static_deflection_is_gravity_over_stiffness(geared):
    K = np.array([500.0, 300.0])
    sim = Simulation(Plant(geared, flexible=FlexibleJoints(K, 5.0)), q=[0.5, 0.3])
    sim.run(0.3, Dynamics(geared).gravity([0.5, 0.3]))
    assert sim.theta - sim.q == pytest.approx(Dynamics(geared).gravity(sim.q) / K, rel=1e-6)
    assert np.abs(sim.qd).max() < 1e-9  # springs start loaded: nothing swings in


WHEEL = """<robot name="wheel"><link name="base"/><link name="wheel"><inertial><mass value="1"/>
<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial></link>
<joint name="spin" type="continuous"><parent link="base"/><child link="wheel"/><axis xyz="0 0 1"/></joint></robot>"""


@pytest.fixture(scope="module")
def wheel():
    """Rotor 2.2e-3 and link 0.02 kg m²: ω = √(K (1/B + 1/I))."""
    return load_urdf(WHEEL).with_joints(rotor_inertia=2.2e-3)


@pytest.mark.parametrize("K, omega", [(1e4, 2246.0), (1e5, 7103.0)])
@pytest.mark.parametrize("method", ["rk4", "semi_implicit", "dop853"])
def test_stiff_springs_are_substepped_and_never_diverge(wheel, K, omega, method):
    plant = Plant(wheel, flexible=FlexibleJoints(K))
    sim = Simulation(plant, 1e-3, method)
    fastest, joint = sim._mech.fastest_mode()
    assert fastest == pytest.approx(omega, rel=1e-3) and joint == "spin"
    sim.set_state([0.0], [1.0])
    sim.step([0.5])  # rings the spring
    sim.run(0.05)
    ledger = sim.ledger
    assert sim.substeps == (1 if method == "dop853" else int(np.ceil(omega * 1e-3 / 0.4)))
    assert np.abs(sim.qd).max() < 5.0
    assert abs(ledger.balance) < 1e-3 * (ledger.kinetic + ledger.elastic) if method != "semi_implicit" else True
    assert ledger.kinetic + ledger.elastic < 1.3 * (0.5 * 0.0222)


def test_a_spring_beyond_a_hundred_substeps_is_refused_with_the_way_out(wheel):
    with pytest.raises(
        SimulationError,
        match=r"joint 'spin': its fastest mode, .* rad/s, needs \d+ sub-steps of dt = 0.001 s, "
        r"more than 100; use dt ≤ .* s, a softer spring or damper, or method 'dop853'",
    ):
        Simulation(Plant(wheel, flexible=FlexibleJoints(1e9)))


def test_friction_is_on_the_motor_side_and_sticks_there(wheel):
    """The motor sticks exactly while the link rings on its spring; enough torque breaks it away."""
    plant = Plant(wheel, flexible=FlexibleJoints(200.0), friction=Friction([0.5], [0.0]))
    sim = Simulation(plant, 1e-3)
    sim.set_state([0.0], [0.0])
    sim.set_external_wrench((0.0, 0.0, 0.0), (0.0, 0.0, 0.2))
    path = sim.run(0.2)
    assert sim.theta[0] == 0.0 and sim.thetad[0] == 0.0
    assert np.ptp(path.q) == pytest.approx(2 * 0.2 / 200.0, rel=1e-2)  # swings between 0 and twice the static stretch
    assert sim.ledger.dissipated == 0.0 and abs(sim.ledger.balance) < 1e-8
    sim.set_external_wrench((0.0, 0.0, 0.0))
    sim.run(0.1, [1.5])
    assert sim.theta[0] > 0.0 and sim.ledger.dissipated > 0.0
    assert abs(sim.ledger.balance) < 1e-5


def test_brake_holds_the_motor_and_the_link_swings_on(geared):
    sim = Simulation(Plant(geared, flexible=FlexibleJoints([300.0, 200.0])), q=[0.4, -0.6], qd=[1.0, 1.0])
    sim.brake()
    assert (sim.thetad == 0.0).all() and sim.qd.tolist() == [1.0, 1.0]
    held = sim.theta
    assert sim.ledger.impact == pytest.approx(0.5 * (0.05 + 0.016), rel=1e-12)
    sim.run(0.1)
    assert sim.theta.tolist() == held.tolist() and np.abs(sim.qd).max() > 0.01
    assert abs(sim.ledger.balance) < 1e-5


def test_stops_act_on_the_link(geared):
    sim = Simulation(
        Plant(geared.with_gravity((0, 0, 0)), flexible=FlexibleJoints([500.0, 300.0], 1.0)),
        q=[0.0, 2.85],
        qd=[0.0, 1.0],
    )
    sim.run(0.5, [0.0, 3.0])
    assert sim.q[1] <= 2.9 and sim.q[1] == pytest.approx(2.9, abs=1e-3) and sim.theta[1] > 2.9
    sim.run(0.4, [0.0, -3.0])
    assert sim.q[1] < 2.8
    assert sim.ledger.impact > 0.0 and abs(sim.ledger.balance) < 1e-5


def test_reset_restores_the_motor_side_bit_for_bit(geared):
    def make():
        return Simulation(
            Plant(geared, flexible=FlexibleJoints([500.0, 300.0], 1.0), friction=Friction([0.2, 0.1], [0.1, 0.1])),
            q=[0.3, 0.2],
        )

    used, fresh = make(), make()
    used.run(0.05, [20.0, 5.0])
    used.reset()
    used.run(0.05, [3.0, 1.0])
    fresh.run(0.05, [3.0, 1.0])
    assert used._x.tobytes() == fresh._x.tobytes() and used._u.tobytes() == fresh._u.tobytes()


def test_against_mujoco_with_motor_and_link_joints_and_a_spring(wheel):
    """Two coaxial hinges and a torsion spring between them by a fixed tendon on their difference."""
    K, D = 200.0, 0.05
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><option timestep="1e-4" integrator="RK4" gravity="0 0 0"/>
      <worldbody>
      <body><joint name="motor" axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia="0.0022 0.0022 0.0022"/></body>
      <body><joint name="link" axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia="0.02 0.02 0.02"/></body>
</worldbody>
      <tendon><fixed name="t" stiffness="{K}" damping="{D}" springlength="0"><joint joint="motor" coef="1"/>
<joint joint="link" coef="-1"/>
      </fixed></tendon></mujoco>""")
    data = mujoco.MjData(model)
    data.qfrc_applied[:] = [0.4, 0.0]
    sim = Simulation(Plant(wheel, flexible=FlexibleJoints(K, D)), 2e-4)
    for _ in range(2000):
        mujoco.mj_step(model, data)
    sim.run(0.2, [0.4])
    assert [sim.theta[0], sim.q[0]] == pytest.approx(data.qpos, abs=1e-6)
    assert [sim.thetad[0], sim.qd[0]] == pytest.approx(data.qvel, abs=1e-4)


@pytest.mark.parametrize(
    "make, error, message",
    [
        (lambda arm: FlexibleJoints([100.0, -1.0]), InputError, "stiffness of joint 2 is -1"),
        (lambda arm: FlexibleJoints([100.0, np.inf]), InputError, "not finite"),
        (lambda arm: FlexibleJoints(100.0, -2.0), InputError, "damping of joint 1 is -2"),
        (
            lambda arm: Plant(arm, flexible=FlexibleJoints(100.0)),
            ModelError,
            "joint 'joint1': a flexible joint needs a rotor inertia",
        ),
        (
            lambda arm: Plant(arm.with_joints(rotor_inertia=1e-4), flexible=FlexibleJoints([1.0] * 3)),
            InputError,
            "3 values for 2",
        ),
        (
            lambda arm: Plant(arm.with_joints(rotor_inertia=1e-4, rotor_coupling=True), flexible=FlexibleJoints(1.0)),
            ModelError,
            "coupling",
        ),
    ],
)
def test_bad_flexible_joints_are_refused(twolink, make, error, message):
    with pytest.raises(error, match=message):
        make(twolink)


def test_stribeck_friction_looks_at_the_motors_velocity(geared):
    """One acceleration with the motors slow and the links fast: B θ̈ + K(θ − q) + τ_f(θ̇) = τ, Stribeck part and all."""
    friction = Friction([0.2, 0.1], [0.05, 0.02], [0.9, 0.6], [0.1, 0.1])
    sim = Simulation(Plant(geared, friction=friction, flexible=FlexibleJoints([900.0, 900.0])), q=[0.3, 0.5])
    B = geared.gear_ratio**2 * geared.rotor_inertia
    thetad = np.array([0.04, -0.05])
    mech = sim._mech
    x, u = np.concatenate([sim.q, sim.theta]), np.concatenate([[2.0, -3.0], thetad])
    tau = np.array([3.0, 1.0])
    f, _, _ = mech.force(x, u, tau, np.sign(thetad))
    expected = (tau - friction.torque(thetad) - 900.0 * (sim.theta - sim.q)) / B
    assert mech.free_acceleration(x, u, f)[2:] == pytest.approx(expected, rel=1e-12)
    assert np.abs(friction.torque(thetad) - friction.torque(u[:2])).min() > 0.1  # premise: the links' would be another
