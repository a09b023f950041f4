"""Small geometry that the web page and the RViz markers share. Positions [m] in the root frame, unless said."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..kinematics import link_poses

ARC_POINTS = 24
SOLID_DENSITY_SHARE = 5.0 / 2.0  # solid ellipsoid: I_x = m (b² + c²) / 5


class Plane(NamedTuple):
    """A plane through `point` (3,) with unit `normal` (3,)."""

    point: np.ndarray
    normal: np.ndarray

    def project(self, position):
        """The nearest point of the plane to `position` (3,)."""
        position = np.asarray(position, float)
        return position - self.normal * (self.normal @ (position - self.point))

    def hit(self, origin, direction):
        """Where the ray from `origin` (3,) along `direction` (3,) meets the plane, or None where it does not."""
        origin, direction = np.asarray(origin, float), np.asarray(direction, float)
        slope = float(self.normal @ direction)
        if abs(slope) < 1e-6 * np.linalg.norm(direction):
            return None
        distance = float(self.normal @ (self.point - origin)) / slope
        return origin + distance * direction if distance > 0.0 else None


def quaternion(rotation):
    """(w, x, y, z) of a rotation matrix (3, 3), w ≥ 0 (Shepperd's method: divides by the largest component)."""
    r = np.asarray(rotation, float)
    squares = np.array([1.0 + r[0, 0] + r[1, 1] + r[2, 2], 1.0 + r[0, 0] - r[1, 1] - r[2, 2],
                        1.0 - r[0, 0] + r[1, 1] - r[2, 2], 1.0 - r[0, 0] - r[1, 1] + r[2, 2]])
    big = int(np.argmax(squares))
    s = 2.0 * np.sqrt(squares[big])
    wx, wy, wz = r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]
    xy, xz, yz = r[0, 1] + r[1, 0], r[0, 2] + r[2, 0], r[1, 2] + r[2, 1]
    row = [(s * s / 4, wx, wy, wz), (wx, s * s / 4, xy, xz), (wy, xy, s * s / 4, yz), (wz, xz, yz, s * s / 4)][big]
    q = np.array(row) / s
    return q if q[0] >= 0.0 else -q


def rotation_of_quaternion(wxyz):
    """(3, 3) of a quaternion (w, x, y, z) of any length but zero."""
    w, x, y, z = np.asarray(wxyz, float) / np.linalg.norm(wxyz)
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                     [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                     [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])


def frame_with_z(z):
    """(3, 3) right-handed rotation whose third column is the direction `z` (3,)."""
    z = np.asarray(z, float) / np.linalg.norm(z)
    x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def plane_of(arm):
    """The Plane the tip moves in, or None for an arm that is not planar.

    Judged at a few fixed pseudo-random poses: turning axes all parallel, sliding axes all across them. The normal is
    the first turning axis, so that positive joint angles look counter-clockwise from where it points."""
    chain = arm.ancestors(arm.frame().link)
    normal = point = None
    for q in np.random.default_rng(3).uniform(-1.0, 1.0, (4, arm.n)):
        rotations, origins = link_poses(arm, q)
        turning = [rotations[i] @ arm.joints[i].axis for i in chain if arm.joints[i].kind != "prismatic"]
        sliding = [rotations[i] @ arm.joints[i].axis for i in chain if arm.joints[i].kind == "prismatic"]
        if not turning:
            return None
        normal = turning[0] if normal is None else normal
        if any(np.linalg.norm(np.cross(axis, normal)) > 1e-6 for axis in turning) \
                or any(abs(axis @ normal) > 1e-6 for axis in sliding):
            return None
        at = arm.frame()
        tip = origins[at.link] + rotations[at.link] @ at.pose.translation
        point = tip if point is None else point
    return Plane(normal * (normal @ point), normal)


def reach(arm):
    """A length of the arm's size [m]: the distances between its joints and out to the tip, summed (at least 0.1)."""
    lengths = [np.linalg.norm(joint.origin.translation) for joint in arm.joints]
    lengths += [min(max(abs(joint.lower), abs(joint.upper)), 2.0) for joint in arm.joints
                if joint.kind == "prismatic" and np.isfinite([joint.lower, joint.upper]).all()]
    if arm.tip is not None:
        lengths.append(np.linalg.norm(arm.frame().pose.translation))
    return max(float(np.sum(lengths)), 0.1)


def effort_scale(arm):
    """(n,) effort that makes a full arc: the limit where there is one, else that of a weight of the arm's own size."""
    weight = 9.81 * sum(link.mass for link in arm.links)
    fallback = np.where(arm.prismatic, weight, weight * 0.5 * reach(arm))
    limit = arm.effort_limit
    return np.where(np.isfinite(limit) & (limit > 0.0), limit, np.maximum(fallback, 1e-6))


def torque_arc(axis, share, radius):
    """(ARC_POINTS + 2, 3) polyline in the joint's frame: an arc about `axis` (3,), 300° for a `share` of ±1 of the
    limit and turning the way the torque does, ending in an arrow head."""
    share = float(np.clip(share, -1.0, 1.0))
    angle = np.radians(300.0) * share
    frame = frame_with_z(axis)
    turn = np.linspace(0.0, angle, ARC_POINTS)
    head = np.sign(share) * min(0.30, 0.6 * abs(angle))
    ring = [(np.cos(t), np.sin(t)) for t in turn]
    for out in (1.18, 0.82):  # the head's two barbs, back along the arc
        ring.append((out * np.cos(angle - head), out * np.sin(angle - head)))
    return radius * np.array([frame[:, 0] * c + frame[:, 1] * s for c, s in ring])


def force_line(axis, share, length):
    """The same for a sliding joint: a straight line along `axis` (3,), `length` [m] long for a share of 1."""
    share = float(np.clip(share, -1.0, 1.0))
    frame = frame_with_z(axis)
    along = length * share * frame[:, 2]
    barb = 0.15 * length * np.sign(share) * frame[:, 2]
    line = np.linspace(0.0, 1.0, ARC_POINTS)[:, None] * along
    return np.vstack([line, along - barb + 0.1 * length * frame[:, 0], along - barb - 0.1 * length * frame[:, 0]])


def effort_segments(joint, share, size):
    """(S, 2, 3) line segments, in the joint's frame, that show an effort of `share` of its full scale: an arc around
    a turning axis, a line along a sliding one; arrow head at the end."""
    points = (force_line if joint.kind == "prismatic" else torque_arc)(joint.axis, share, size)
    line, end = points[:ARC_POINTS], points[ARC_POINTS - 1]
    barbs = [np.stack([end, barb]) for barb in points[ARC_POINTS:]]
    return np.concatenate([np.stack([line[:-1], line[1:]], axis=1), barbs])


def spring_segments(start, end, normal, width, turns=9):
    """(S, 2, 3) line segments of a zigzag spring from `start` to `end` (3,) in the plane across `normal`."""
    start, along = np.asarray(start, float), np.subtract(end, start)
    side = np.cross(normal, along)
    length = np.linalg.norm(side)
    side = side / length if length > 1e-9 else np.zeros(3)
    steps = np.linspace(0.0, 1.0, 2 * turns + 2)
    swing = width * np.array([0.0, *([1.0, -1.0] * turns), 0.0])
    points = start + steps[:, None] * along + swing[:, None] * side
    return np.stack([points[:-1], points[1:]], axis=1)


def inertia_ellipsoid(link):
    """(rotation (3, 3) in the link, semi-axes (3,) [m]) of the solid ellipsoid of the link's mass and inertia; None
    for a link without mass. a² = 5/(2m) (I_y + I_z − I_x), a thousandth of the largest at least."""
    if link.mass <= 0.0:
        return None
    moments, axes = np.linalg.eigh(link.inertia)
    squares = SOLID_DENSITY_SHARE / link.mass * (moments.sum() - 2.0 * moments)
    largest = squares.max()
    if largest <= 0.0:
        return None
    if np.linalg.det(axes) < 0.0:
        axes = axes * [1.0, 1.0, -1.0]
    return axes, np.sqrt(np.maximum(squares, 1e-6 * largest))
