"""Recursive Newton–Euler, numeric and for any arm: the readable engine, and an oracle for the compiled ones.

A forward pass carries angular velocity ω, angular acceleration α and the acceleration a of each link's origin outwards,
gravity entering as an acceleration −g of the root; a backward pass carries force and moment inwards and projects them
on the axes (Featherstone, Rigid Body Dynamics Algorithms, ch. 5; Craig, Introduction to Robotics, §6.5). Link frames.
All functions take (…, n) arrays and return batches over the leading axes.
"""
from __future__ import annotations

import numpy as np

from .arm import PRISMATIC, ROOT
from .kinematics import joint_pose, link_poses

cross = np.cross


def _rotated(rotation, vector):
    return (rotation @ vector[..., None])[..., 0]


def _unrotated(rotation, vector):
    return (np.swapaxes(rotation, -1, -2) @ vector[..., None])[..., 0]


def _outward(arm, q, qd, qdd, gravity):
    """Per joint: pose in the parent, then (ω, α, a) of the link in its own frame, and (s, ṡ) of its coupled rotor."""
    batch = np.broadcast_shapes(q.shape, qd.shape, qdd.shape)[:-1]
    gravity = arm.gravity if gravity is None else np.asarray(gravity, float)
    variables = arm.variables(q)
    rest = np.zeros((*batch, 3))
    motions = {ROOT: (rest, rest, rest - gravity)}
    poses, rotors = [], []
    for i, joint in enumerate(arm.joints):
        R_PC, p_PC = joint_pose(joint, variables[..., i])
        w_p, alpha_p, a_p = motions[joint.parent]
        rate = joint.multiplier * qd[..., joint.coordinate, None]
        acceleration = joint.multiplier * qdd[..., joint.coordinate, None]
        a = _unrotated(R_PC, a_p + cross(alpha_p, p_PC) + cross(w_p, cross(w_p, p_PC)))
        w, alpha = _unrotated(R_PC, w_p), _unrotated(R_PC, alpha_p)
        if joint.kind == PRISMATIC:
            a = a + 2.0 * cross(w, joint.axis * rate) + joint.axis * acceleration
            turn = turn_rate = 0.0
        else:
            turn, turn_rate = w @ joint.axis, alpha @ joint.axis  # the carrier's own turning about this axis
            alpha = alpha + cross(w, joint.axis * rate) + joint.axis * acceleration
            w = w + joint.axis * rate
        if not arm.rotor_coupling:
            turn = turn_rate = 0.0
        rotors.append((turn + joint.gear_ratio * rate[..., 0], turn_rate + joint.gear_ratio * acceleration[..., 0]))
        motions[i] = (w, alpha, a)
        poses.append((R_PC, p_PC))
    return poses, motions, rotors


def inverse_dynamics(arm, q, qd, qdd, gravity=None):
    """τ = M(q) q̈ + C(q, q̇) q̇ + g(q), (…, n) [N m or N]."""
    q, qd, qdd = (np.asarray(x, float) for x in (q, qd, qdd))
    poses, motions, rotors = _outward(arm, q, qd, qdd, gravity)
    count = len(arm.joints)
    forces, moments = [], []
    for i, link in enumerate(arm.links):
        w, alpha, a = motions[i]
        forces.append(link.mass * (a + cross(alpha, link.com) + cross(w, cross(w, link.com))))
        moments.append(alpha @ link.inertia + cross(w, w @ link.inertia) + cross(link.com, forces[i]))
    tau = np.zeros(np.broadcast_shapes(q.shape, qd.shape, qdd.shape))
    for i in reversed(range(count)):
        joint = arm.joints[i]
        effort = (forces[i] if joint.kind == PRISMATIC else moments[i]) @ joint.axis
        speed, rate = rotors[i]
        effort = effort + joint.gear_ratio * joint.rotor_inertia * rate
        tau[..., joint.coordinate] += joint.multiplier * effort
        if joint.parent != ROOT:
            R_PC, p_PC = poses[i]
            force = _rotated(R_PC, forces[i])
            forces[joint.parent] = forces[joint.parent] + force
            moments[joint.parent] = moments[joint.parent] + _rotated(R_PC, moments[i]) + cross(p_PC, force)
            if arm.rotor_coupling and joint.rotor_inertia and joint.kind != PRISMATIC:
                axis = joint.origin.rotation @ joint.axis  # the rotor's momentum Ir s a is carried by the parent
                w_p = motions[joint.parent][0]
                moments[joint.parent] = moments[joint.parent] + joint.rotor_inertia * (
                    axis * rate[..., None] + cross(w_p, axis) * speed[..., None])
    return tau


def bias(arm, q, qd, gravity=None):
    """h = C(q, q̇) q̇ + g(q), (…, n)."""
    return inverse_dynamics(arm, q, qd, np.zeros(arm.n), gravity)


def gravity_torque(arm, q, gravity=None):
    """g(q) = ∂P/∂q, (…, n)."""
    return inverse_dynamics(arm, q, np.zeros(arm.n), np.zeros(arm.n), gravity)


def mass_matrix(arm, q):
    """M(q), (…, n, n): column j is the torque of a unit acceleration of joint j without gravity or velocity."""
    q = np.asarray(q, float)
    columns = [inverse_dynamics(arm, q, np.zeros(arm.n), unit, (0.0, 0.0, 0.0)) for unit in np.eye(arm.n)]
    return np.stack(columns, axis=-1)


def coriolis_matrix(arm, q, qd):
    """C(q, q̇), (…, n, n), of the Christoffel symbols: C e_j = ½ [c(q̇ + e_j) − c(q̇) − c(e_j)], c(v) = Γ(v, v)."""
    q, qd = np.asarray(q, float), np.asarray(qd, float)
    weightless = (0.0, 0.0, 0.0)
    own = bias(arm, q, qd, weightless)
    columns = [0.5 * (bias(arm, q, qd + unit, weightless) - own - bias(arm, q, unit, weightless))
               for unit in np.eye(arm.n)]
    return np.stack(columns, axis=-1)


def forward_dynamics(arm, q, qd, tau, gravity=None):
    """q̈ = M(q)⁻¹ (τ − h), (…, n)."""
    right = np.asarray(tau, float) - bias(arm, q, qd, gravity)
    return np.linalg.solve(mass_matrix(arm, q), right[..., None])[..., 0]


def energy(arm, q, qd, gravity=None):
    """(kinetic, potential) [J] of the moving links, height 0 at the root: K = ½ Σ m v_cᵀv_c + ωᵀIω, P = −Σ m gᵀp_c."""
    q, qd = np.asarray(q, float), np.asarray(qd, float)
    weight = arm.gravity if gravity is None else np.asarray(gravity, float)
    _, motions, rotors = _outward(arm, q, qd, np.zeros(arm.n), (0.0, 0.0, 0.0))
    rotations, origins = link_poses(arm, q)
    velocities = {ROOT: np.zeros(3)}
    kinetic = potential = 0.0
    for i, (joint, link) in enumerate(zip(arm.joints, arm.links)):
        w = _rotated(rotations[i], motions[i][0])
        carried = origins[i] - (origins[joint.parent] if joint.parent != ROOT else 0.0)
        w_p = _rotated(rotations[joint.parent], motions[joint.parent][0]) if joint.parent != ROOT else np.zeros(3)
        velocity = velocities[joint.parent] + cross(w_p, carried)
        if joint.kind == PRISMATIC:
            velocity = velocity + _rotated(rotations[i], joint.axis * joint.multiplier
                                           * qd[..., joint.coordinate, None])
        velocities[i] = velocity
        arm_vector = rotations[i] @ link.com
        v_c = velocity + cross(w, arm_vector)
        own = motions[i][0]
        kinetic = kinetic + 0.5 * (link.mass * (v_c * v_c).sum(-1) + ((own @ link.inertia) * own).sum(-1)
                                   + joint.rotor_inertia * rotors[i][0] ** 2)
        potential = potential - link.mass * ((origins[i] + arm_vector) @ weight)
    return kinetic, potential


def regressor(arm, q, qd, qdd, gravity=None):
    """Y(q, q̇, q̈), (…, n, 10 N), with Y π = τ for π the links' `parameters` stacked (rotor terms excluded).

    Per link, f = m a + α × mc + ω × (ω × mc) and, about the link's origin, n = I α + ω × I ω + mc × a."""
    q, qd, qdd = (np.asarray(x, float) for x in (q, qd, qdd))
    _, motions, _ = _outward(arm, q, qd, qdd, gravity)
    rotations, origins = link_poses(arm, q)
    batch = np.broadcast_shapes(q.shape, qd.shape, qdd.shape)[:-1]
    Y = np.zeros((*batch, arm.n, 10 * len(arm.links)))
    for i in range(len(arm.links)):
        w, alpha, a = motions[i]
        f, m = np.zeros((*batch, 3, 10)), np.zeros((*batch, 3, 10))
        f[..., 0] = a
        for k, unit in enumerate(np.eye(3)):
            f[..., 1 + k] = cross(alpha, unit) + cross(w, cross(w, unit))
            m[..., 1 + k] = cross(unit, a)
        for k, (r, s) in enumerate(((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))):
            unit = np.zeros((3, 3))
            unit[r, s] = unit[s, r] = 1.0
            m[..., 4 + k] = alpha @ unit + cross(w, w @ unit)
        f, m = rotations[i] @ f, rotations[i] @ m  # in root axes, about the link's origin
        for j in arm.ancestors(i):
            joint = arm.joints[j]
            axis = (rotations[j] @ joint.axis)[..., None, :]
            if joint.kind == PRISMATIC:
                row = axis @ f
            else:
                row = axis @ m + cross(axis[..., 0, :], origins[i] - origins[j])[..., None, :] @ f
            Y[..., joint.coordinate, 10 * i:10 * i + 10] += joint.multiplier * row[..., 0, :]
    return Y
