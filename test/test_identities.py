"""Structure that every correct model has, whatever its numbers: on random arms, with the engine in use."""
import numpy as np
import pytest
from arms import arms, random_arm, random_state
from corpus import shipped
from hypothesis import HealthCheck, given, settings

from twolink_dynamics import Dynamics, kinematics, newton_euler
from twolink_dynamics.kinematics import link_poses

ROUNDING = 1e-12
CENTRAL = 6e-6  # step of central differences, ≈ ε^⅓; their error is then some 1e-9 relative
DIFFERENCED = 1e-7
MANY = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def dynamics(arm):
    return Dynamics(arm, engine="newton_euler")  # the engines agree (test_engines); this one needs no compiling


def close(ours, theirs, tolerance):
    scale = max(1.0, np.abs(theirs).max())
    return np.abs(np.asarray(ours) - theirs).max() <= tolerance * scale


def derivative(function, q, direction):
    return (function(q + CENTRAL * direction) - function(q - CENTRAL * direction)) / (2.0 * CENTRAL)


@MANY
@given(arm=arms())
def test_mass_matrix_is_symmetric_positive_definite(arm):
    q, _, _ = random_state(arm, 1, (4,))
    M = dynamics(arm).mass_matrix(q)
    assert close(M, np.swapaxes(M, -1, -2), ROUNDING)
    assert np.linalg.eigvalsh(M).min() > -ROUNDING * np.abs(M).max()
    assert close(M, kinematics.mass_matrix(arm, q), ROUNDING)  # Σ m JᵀJ, another way


@MANY
@given(arm=arms())
def test_mass_rate_minus_twice_coriolis_is_skew(arm):
    q, qd, _ = random_state(arm, 2)
    one = dynamics(arm)
    rate = derivative(one.mass_matrix, q, qd)
    skew = rate - 2.0 * one.coriolis_matrix(q, qd)
    assert close(skew, -skew.T, DIFFERENCED)


@MANY
@given(arm=arms(max_joints=4))
def test_coriolis_matrix_is_the_christoffel_one(arm):
    """C_ij = ½ Σ_k (∂M_ij/∂q_k + ∂M_ik/∂q_j − ∂M_jk/∂q_i) q̇_k; skewness alone would not fix it."""
    q, qd, _ = random_state(arm, 3)
    one = dynamics(arm)
    slope = np.stack([derivative(one.mass_matrix, q, unit) for unit in np.eye(arm.n)], axis=-1)  # ∂M_ij/∂q_k
    gamma = 0.5 * (slope + np.swapaxes(slope, 1, 2) - np.transpose(slope, (2, 0, 1)))
    assert close(one.coriolis_matrix(q, qd), gamma @ qd, DIFFERENCED)


@MANY
@given(arm=arms())
def test_forward_after_inverse_is_the_identity(arm):
    q, qd, qdd = random_state(arm, 4)
    one = dynamics(arm)
    if np.linalg.cond(one.mass_matrix(q)) < 1e8:
        back = one.forward_dynamics(q, qd, one.inverse_dynamics(q, qd, qdd))
        assert close(back, qdd, 1e-7)


@MANY
@given(arm=arms(rotors=False))
def test_regressor_times_parameters_is_the_torque(arm):
    q, qd, qdd = random_state(arm, 5, (3,))
    pi = np.concatenate([link.parameters for link in arm.links])
    one = dynamics(arm)
    assert close(one.regressor(q, qd, qdd) @ pi, one.inverse_dynamics(q, qd, qdd), ROUNDING)


@MANY
@given(arm=arms())
def test_gravity_is_the_gradient_of_the_potential(arm):
    q, _, _ = random_state(arm, 6)
    one = dynamics(arm)
    slope = [derivative(lambda x: one.energy(x, np.zeros(arm.n))[1], q, unit) for unit in np.eye(arm.n)]
    assert close(one.gravity(q), np.array(slope), DIFFERENCED)
    rotations, origins = link_poses(arm, q)  # and P is −Σ m gᵀ p_c
    P = -sum(link.mass * arm.gravity @ (p + R @ link.com) for link, R, p in zip(arm.links, rotations, origins))
    assert close(one.energy(q, np.zeros(arm.n))[1], P, ROUNDING)


@MANY
@given(arm=arms())
def test_passivity(arm):
    """d/dt (K + P) = q̇ᵀ τ: the power that goes in is the energy that is gained."""
    q, qd, qdd = random_state(arm, 7)
    one = dynamics(arm)

    def total(t):
        return sum(one.energy(q + qd * t + 0.5 * qdd * t**2, qd + qdd * t))
    gain = (total(CENTRAL) - total(-CENTRAL)) / (2.0 * CENTRAL)
    terms = np.abs(qd * one.inverse_dynamics(q, qd, qdd)).sum()
    assert abs(gain - qd @ one.inverse_dynamics(q, qd, qdd)) <= DIFFERENCED * max(1.0, terms, abs(total(0.0)))


@MANY
@given(arm=arms())
def test_kinetic_energy_is_half_of_qd_M_qd(arm):
    q, qd, _ = random_state(arm, 8)
    one = dynamics(arm)
    assert close(one.energy(q, qd)[0], 0.5 * qd @ one.mass_matrix(q) @ qd, ROUNDING)


@MANY
@given(arm=arms())
def test_linear_in_acceleration_quadratic_in_velocity(arm):
    q, qd, qdd = random_state(arm, 9)
    one, zero = dynamics(arm), np.zeros(arm.n)
    tau = one.inverse_dynamics
    inertia = tau(q, qd, qdd) - tau(q, qd, zero)
    assert close(tau(q, qd, 3.0 * qdd) - tau(q, qd, zero), 3.0 * inertia, ROUNDING)
    assert close(inertia, one.mass_matrix(q) @ qdd, ROUNDING)  # and the same at any velocity
    velocity = one.bias(q, qd) - one.gravity(q)
    assert close(one.bias(q, -2.0 * qd) - one.gravity(q), 4.0 * velocity, ROUNDING)
    assert close(one.coriolis_matrix(q, qd) @ qd, velocity, ROUNDING)


@pytest.mark.parametrize("seed", range(4))
def test_trigonometric_in_each_angle(seed):
    """Along one revolute joint's angle every torque is a Fourier sum up to the second harmonic, with period 2π."""
    arm = random_arm(seed, n=4, kinds=("revolute",), mimic=False)
    _, qd, qdd = random_state(arm, seed)
    one = dynamics(arm)
    grid = np.linspace(0.0, 2.0 * np.pi, 16, endpoint=False)
    for k in range(arm.n):
        q = np.tile(random_state(arm, 20 + seed)[0], (16, 1))
        q[:, k] = grid
        tau = one.inverse_dynamics(q, qd, qdd)
        harmonics = np.abs(np.fft.rfft(tau, axis=0)) / len(grid)
        assert harmonics[3:].max() <= ROUNDING * max(1.0, harmonics.max())
        assert close(one.inverse_dynamics(q + 2.0 * np.pi, qd, qdd), tau, ROUNDING)


def test_shipped_arm_depends_on_q2_only_in_M():
    one = Dynamics(shipped("twolink"))
    assert one.mass_matrix([0.0, 0.7]) == pytest.approx(one.mass_matrix([2.3, 0.7]), abs=1e-15)
    assert one.mass_matrix([0.0, 0.7])[0, 0] != pytest.approx(one.mass_matrix([0.0, 1.7])[0, 0], abs=0.1)


@MANY
@given(arm=arms(rotors=False))
def test_payload_adds_its_own_energy(arm):
    """A point payload at the tip adds ½ m v² and −m gᵀ p of the tip, nothing else."""
    q, qd, _ = random_state(arm, 10)
    loaded, bare = dynamics(arm.with_payload(0.8)), dynamics(arm)
    _, position = bare.tip_pose(q)
    v = bare.jacobian(q)[:3] @ qd
    kinetic, potential = np.subtract(loaded.energy(q, qd), bare.energy(q, qd))
    scale = max(1.0, bare.energy(q, qd)[0], abs(bare.energy(q, qd)[1]))
    assert kinetic == pytest.approx(0.4 * v @ v, abs=ROUNDING * scale)
    assert potential == pytest.approx(-0.8 * arm.gravity @ position, abs=ROUNDING * scale)


@MANY
@given(arm=arms())
def test_jacobian_and_its_rate_are_derivatives(arm):
    q, qd, _ = random_state(arm, 11)
    one = dynamics(arm)
    J, drift = one.jacobian(q), one.jacobian_rate(q, qd)
    assert close(J[:3] @ qd, derivative(lambda x: one.tip_pose(x)[1], q, qd), DIFFERENCED)
    R, turning = one.tip_pose(q)[0], derivative(lambda x: one.tip_pose(x)[0], q, qd)
    skew = turning @ R.T
    assert close(J[3:] @ qd, np.array([skew[2, 1], skew[0, 2], skew[1, 0]]), DIFFERENCED)
    assert close(drift, derivative(lambda x: one.jacobian(x), q, qd) @ qd, DIFFERENCED)


@MANY
@given(arm=arms(min_joints=2, rotors=False))
def test_rotor_coupling_is_the_energy_of_a_carried_rotor(arm):
    """½ Ir (a · ω_carrier + gr q̇)² per rotor; without coupling ½ gr² Ir q̇²."""
    arm = arm.with_joints(rotor_inertia=1e-3, gear_ratio=-7.0)
    q, qd, _ = random_state(arm, 12)
    bare = newton_euler.energy(arm.with_joints(rotor_inertia=0.0), q, qd)[0]
    rotations, _ = link_poses(arm, q)
    expected = plain = 0.0
    for i, joint in enumerate(arm.joints):
        spin = joint.gear_ratio * joint.multiplier * qd[joint.coordinate]
        plain += 0.5 * joint.rotor_inertia * spin**2
        if joint.parent >= 0 and joint.kind != "prismatic":
            J = kinematics.point_jacobian(arm, q, joint.parent, np.zeros(3))
            spin += (rotations[i] @ joint.axis) @ J[3:] @ qd
        expected += 0.5 * joint.rotor_inertia * spin**2
    for coupling, rotor in ((True, expected), (False, plain)):
        kinetic = newton_euler.energy(arm.with_joints(rotor_coupling=coupling), q, qd)[0]
        assert kinetic - bare == pytest.approx(rotor, abs=ROUNDING * max(1.0, kinetic))


def test_nan_in_nan_out():
    one = dynamics(shipped("twolink"))
    assert np.isnan(one.inverse_dynamics([np.nan, 0.0], [0.0, 0.0], [0.0, 0.0])).any()
