"""Where the links are and how the tip moves with the joints.

All functions take (…, n) coordinates and return batches over the leading axes. Positions are in the root frame; spatial
vectors stack linear over angular, in root axes, at the frame's origin (Pinocchio's LOCAL_WORLD_ALIGNED).
"""
from __future__ import annotations

import numpy as np

from .arm import PRISMATIC, ROOT, Frame, make_pose


def rotation_about(axis, angle):
    """Rodrigues: R = 1 + sin θ [a]× + (1 − cos θ) [a]×², for a unit axis (3,) and angles (…) [rad] → (…, 3, 3)."""
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    angle = np.asarray(angle, float)[..., None, None]
    return np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * (cross @ cross)


def joint_pose(joint, variable):
    """X_PC of a joint at `variable` (…): rotation (…, 3, 3) and translation (…, 3) of the child in the parent link."""
    variable = np.asarray(variable, float)
    rotation, translation = joint.origin
    if joint.kind == PRISMATIC:
        shift = translation + (rotation @ joint.axis) * variable[..., None]
        return np.broadcast_to(rotation, (*variable.shape, 3, 3)), shift
    return rotation @ rotation_about(joint.axis, variable), np.broadcast_to(translation, (*variable.shape, 3))


def link_poses(arm, q):
    """Rotations and origins of all moving links in the root frame: two lists of N arrays (…, 3, 3) and (…, 3)."""
    variables = arm.variables(np.asarray(q, float))
    rotations, origins = [], []
    for i, joint in enumerate(arm.joints):
        R_PC, p_PC = joint_pose(joint, variables[..., i])
        if joint.parent == ROOT:
            rotations.append(R_PC)
            origins.append(p_PC)
        else:
            R_WP = rotations[joint.parent]
            rotations.append(R_WP @ R_PC)
            origins.append(origins[joint.parent] + (R_WP @ p_PC[..., None])[..., 0])
    return rotations, origins


def frame_pose(arm, q, frame=None):
    """(rotation (…, 3, 3), position (…, 3) [m]) of a named frame (default: the tip) in the root frame."""
    q = np.asarray(q, float)
    at = arm.frame(frame)
    return _placed(at, *link_poses(arm, q), q.shape[:-1])


def _placed(at, rotations, origins, batch):
    rotation, translation = at.pose
    if at.link == ROOT:
        return np.broadcast_to(rotation, (*batch, 3, 3)), np.broadcast_to(translation, (*batch, 3))
    return rotations[at.link] @ rotation, origins[at.link] + rotations[at.link] @ translation


def jacobian(arm, q, frame=None):
    """(…, 6, n) geometric Jacobian of a frame (default: the tip): (v; ω) = J q̇."""
    return _jacobian_and_rate(arm, q, None, arm.frame(frame))[0]


def jacobian_rate(arm, q, qd, frame=None):
    """(…, 6) J̇ q̇ of a frame (default: the tip): the acceleration (a; α) it has when q̈ = 0."""
    return _jacobian_and_rate(arm, q, qd, arm.frame(frame))[1]


def point_jacobian(arm, q, link, point):
    """(…, 6, n) Jacobian of a point (3,) [m] fixed in moving link `link` (an index), in root axes."""
    return _jacobian_and_rate(arm, q, None, Frame("", link, make_pose(translation=point)))[0]


def _jacobian_and_rate(arm, q, qd, at):
    q = np.asarray(q, float)
    batch = q.shape[:-1]
    rotations, origins = link_poses(arm, q)
    _, tip = _placed(at, rotations, origins, batch)
    J = np.zeros((*batch, 6, arm.n))
    moving = qd is not None
    if moving:
        rates = np.asarray(qd, float)
        w, a, alpha, p_last = (np.zeros((*batch, 3)) for _ in range(4))
    for i in arm.ancestors(at.link):
        joint = arm.joints[i]
        k = joint.coordinate
        axis = joint.multiplier * (rotations[i] @ joint.axis)
        if moving:  # acceleration of the joint's origin, then what the joint itself adds
            arm_vector = origins[i] - p_last
            a = a + np.cross(alpha, arm_vector) + np.cross(w, np.cross(w, arm_vector))
            p_last = origins[i]
            rate = axis * rates[..., k, None]
        if joint.kind == PRISMATIC:
            J[..., :3, k] += axis
            if moving:
                a = a + 2.0 * np.cross(w, rate)
        else:
            J[..., :3, k] += np.cross(axis, tip - origins[i])
            J[..., 3:, k] += axis
            if moving:
                alpha = alpha + np.cross(w, rate)
                w = w + rate
    if not moving:
        return J, None
    arm_vector = tip - p_last
    a = a + np.cross(alpha, arm_vector) + np.cross(w, np.cross(w, arm_vector))
    return J, np.concatenate([a, alpha], axis=-1)


def mass_matrix(arm, q):
    """(…, n, n) M = Σ m J_vᵀ J_v + J_ωᵀ I J_ω (+ rotors) from the Jacobians of the centres of mass [kg m²].

    The slow, plain form, used to judge an arm when it is read (Siciliano et al., Robotics, eq. 7.32)."""
    q = np.asarray(q, float)
    rotations, _ = link_poses(arm, q)
    M = np.zeros((*q.shape[:-1], arm.n, arm.n))
    for i, link in enumerate(arm.links):
        J = point_jacobian(arm, q, i, link.com)
        Jv, Jw = J[..., :3, :], J[..., 3:, :]
        inertia = rotations[i] @ link.inertia @ np.swapaxes(rotations[i], -1, -2)
        M += link.mass * np.swapaxes(Jv, -1, -2) @ Jv + np.swapaxes(Jw, -1, -2) @ inertia @ Jw
    for i, joint in enumerate(arm.joints):
        if joint.rotor_inertia:
            rate = np.zeros((*q.shape[:-1], arm.n))
            rate[..., joint.coordinate] = joint.gear_ratio * joint.multiplier
            if arm.rotor_coupling and joint.parent != ROOT and joint.kind != PRISMATIC:
                axis = rotations[i] @ joint.axis
                Jw = point_jacobian(arm, q, joint.parent, (0.0, 0.0, 0.0))[..., 3:, :]
                rate += (axis[..., None, :] @ Jw)[..., 0, :]
            M += joint.rotor_inertia * rate[..., :, None] * rate[..., None, :]
    return M


def weightless_coordinate(arm):
    """The name of a joint that moves no mass in any pose, or None where the mass matrix is regular somewhere.

    Judged on M scaled to a unit diagonal, at eight fixed pseudo-random poses."""
    q = np.random.default_rng(8).uniform(-2.0, 2.0, (8, arm.n))
    M = mass_matrix(arm, q)
    diagonal = np.diagonal(M, axis1=-2, axis2=-1)
    floor = 1e-14 * max(diagonal.max(), np.finfo(float).tiny)
    idle = (diagonal <= floor).all(axis=0)
    if idle.any():
        return arm.joint_names[int(np.argmax(idle))]
    scale = 1.0 / np.sqrt(np.maximum(diagonal, floor))
    values, vectors = np.linalg.eigh(M * scale[..., :, None] * scale[..., None, :])
    best = int(np.argmax(values[:, 0]))
    if values[best, 0] > 1e-12:
        return None
    return arm.joint_names[int(np.argmax(np.abs(vectors[best, :, 0])))]
