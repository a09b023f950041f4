"""The arm as the tracer wants it: every joint along z of its own frame, inertias regrouped to base parameters.

Each link frame is turned by a constant so that the joint axis is z; most entries of the constant rotations become 0
or ±1. A body is (m, h, J): mass, first moment h = m c and second moment J = ∫ x xᵀ dm about the link's origin, so
that the inertia is tr(J) 1 − J and everything below is linear in it. What moves with the parent just as well is given
to the parent (Khalil & Dombre, Modeling, Identification and Control of Robots, ch. 9): mass on a revolute joint's
axis, that is m, h_z and J_zz; all of J of a prismatic joint's link, which does not turn against its parent.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arm import PRISMATIC, ROOT

BODY = 10  # numbers per body: m, hx hy hz, Jxx Jxy Jyy Jxz Jyz Jzz
SNAP = 1e-14  # entries of rotations this close to −1, 0, 1 are meant to be that
NOISE = 1e-15  # moments below this part of the largest are rounding


class Rotor(NamedTuple):
    """Ir [kg m²], gear ratio, and the axis in the parent's frame (None: the carrier's turning is not felt)."""

    inertia: float
    ratio: float
    axis: tuple | None


class KernelJoint(NamedTuple):
    """A joint along its own z: constant pose (R, p) in the parent's frame, then Rz(variable + φ) or z·variable."""

    parent: int
    prismatic: bool
    R: tuple
    p: tuple
    coordinate: int
    multiplier: float
    offset: float
    rotor: Rotor | None
    phase: tuple  # (sin φ, cos φ) of the constant φ that the joint's angle is ahead of its variable
    turn: np.ndarray  # (3, 3) this frame in the link's frame of the Arm


def rows(matrix):
    """A matrix as nested tuples of floats."""
    return tuple(tuple(float(x) for x in row) for row in matrix)


def snapped(matrix):
    """The matrix with entries within SNAP of −1, 0, 1 set to that."""
    nearest = np.round(matrix)
    return np.where(np.abs(matrix - nearest) < SNAP, nearest, matrix) + 0.0


def _frame_along(z):
    """A rotation whose third column is z; the identity or a half turn where z is ±z already."""
    if abs(z[2]) == 1.0:
        return np.diag([1.0, z[2], z[2]])
    x = np.array([-z[1], z[0], 0.0]) / np.hypot(z[0], z[1])
    return snapped(np.column_stack([x, np.cross(z, x), z]))


def _phase(arm, i, turn):
    """(sin φ, cos φ) that turns link i's frame about its z so that x is the common normal of z and the first child's
    axis, as in Denavit and Hartenberg's convention: the rotation between the two is then about x alone."""
    child = next((j for j in arm.joints if j.parent == i), None)
    if child is None or arm.joints[i].kind == PRISMATIC:
        return 0.0, 1.0
    x, y, _ = turn.T @ (child.origin.rotation @ child.axis)
    length = np.hypot(x, y)
    if length < SNAP:
        return 0.0, 1.0
    return tuple(map(float, snapped(np.array([x, -y]) / length)))


def kernel_joints(arm):
    """The joints of an Arm as KernelJoints."""
    joints = []
    for i, joint in enumerate(arm.joints):
        turn_P = joints[joint.parent].turn if joint.parent != ROOT else np.eye(3)
        R = turn_P.T @ joint.origin.rotation
        z = snapped(R @ joint.axis)
        R_PK = _frame_along(z / np.linalg.norm(z))
        p = turn_P.T @ joint.origin.translation
        p = np.where(np.abs(p) < NOISE, 0.0, p)
        rotor = None
        if joint.rotor_inertia:
            felt = arm.rotor_coupling and joint.parent != ROOT and joint.kind != PRISMATIC
            rotor = Rotor(joint.rotor_inertia, joint.gear_ratio, tuple(map(float, R_PK[:, 2])) if felt else None)
        turn = snapped(R.T @ R_PK)
        phase = s, c = _phase(arm, i, turn)
        turn = snapped(turn @ np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]))
        joints.append(KernelJoint(joint.parent, joint.kind == PRISMATIC, rows(R_PK), tuple(map(float, p)),
                                  joint.coordinate, float(joint.multiplier), float(joint.offset), rotor, phase, turn))
    return tuple(joints)


def base_parameters(arm, joints):
    """(3 + 10 N,): the first moment left at the root [kg m], then the regrouped body of each link.

    Entries that the regrouping empties are exactly 0 for every arm of the same joints."""
    count = len(joints)
    m, h, J = np.zeros(count), np.zeros((count, 3)), np.zeros((count, 3, 3))
    for i, (joint, link) in enumerate(zip(joints, arm.links)):
        inertia = joint.turn.T @ link.inertia_origin @ joint.turn
        m[i], h[i] = link.mass, link.mass * (joint.turn.T @ link.com)
        J[i] += 0.5 * np.trace(inertia) * np.eye(3) - inertia
        if joint.rotor is not None and joint.rotor.axis is not None:
            Ir, axis = joint.rotor.inertia, np.array(joint.rotor.axis)
            J[joint.parent] += Ir * (0.5 * np.eye(3) - np.outer(axis, axis))  # inertia Ir a aᵀ of the carried rotor
    ground = np.zeros(3)
    for i in reversed(range(count)):
        joint = joints[i]
        R, p = np.array(joint.R), np.array(joint.p)
        if joint.prismatic:
            moved_m, moved_h, moved_J = 0.0, np.zeros(3), R @ J[i] @ R.T
            J[i] = 0.0
        else:
            rh = R[:, 2] * h[i, 2]
            moved_m, moved_h = m[i], rh + m[i] * p
            moved_J = J[i, 2, 2] * np.outer(R[:, 2], R[:, 2]) + np.outer(rh, p) + np.outer(p, rh) \
                + m[i] * np.outer(p, p)
            m[i] = h[i, 2] = J[i, 2, 2] = 0.0
        if joint.parent == ROOT:
            ground += moved_h
        else:
            m[joint.parent] += moved_m
            h[joint.parent] += moved_h
            J[joint.parent] += moved_J
    for i in range(count):
        for moment in (h[i], J[i]):
            moment[np.abs(moment) <= NOISE * np.abs(moment).max()] = 0.0
    parts = [ground]
    for i in range(count):
        parts.append([m[i], *h[i], J[i, 0, 0], J[i, 0, 1], J[i, 1, 1], J[i, 0, 2], J[i, 1, 2], J[i, 2, 2]])
    return np.concatenate(parts)


def emptied(joints):
    """(3 + 10 N,) bool: entries of the base parameters that are 0 for every arm with these joints."""
    zero = [False] * 3
    for joint in joints:
        zero += [False] * 4 + [True] * 6 if joint.prismatic else [True, False, False, True] + [False] * 5 + [True]
    return np.array(zero)
