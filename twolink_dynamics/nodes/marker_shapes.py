"""visualization_msgs of one arm: what RViz draws, and the two markers one can drag. No node needed."""
from __future__ import annotations

import numpy as np
from geometry_msgs.msg import Point, Pose
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import InteractiveMarker, InteractiveMarkerControl, Marker

from ..kinematics import frame_pose, link_poses
from ..viewer import geometry
from .conversion import quaternion

TARGET, PUSH, TORQUE = (0.15, 0.65, 0.36, 1.0), (0.84, 0.19, 0.19, 1.0), (0.56, 0.27, 0.68, 1.0)
CONTACT, TRAIL = (0.95, 0.61, 0.07, 1.0), (0.90, 0.49, 0.13, 1.0)
INERTIA, DARK = (0.95, 0.77, 0.06, 0.35), (0.1, 0.1, 0.1, 1.0)
TRAIL_POINTS = 90


def make_point(position):
    """geometry_msgs/Point of (3,)."""
    x, y, z = (float(value) for value in position)
    return Point(x=x, y=y, z=z)


def make_pose_message(position=(0.0, 0.0, 0.0), rotation=None):
    """geometry_msgs/Pose of a position (3,) and a rotation (3, 3)."""
    pose = Pose(position=make_point(position))
    o = pose.orientation
    o.x, o.y, o.z, o.w = (0.0, 0.0, 0.0, 1.0) if rotation is None else (float(v) for v in quaternion(rotation))
    return pose


def _marker(frame, space, number, kind, colour, scale):
    r, g, b, a = colour
    marker = Marker(ns=space, id=number, type=kind, action=Marker.ADD, pose=make_pose_message())
    marker.header.frame_id = frame
    marker.color = ColorRGBA(r=r, g=g, b=b, a=a)
    marker.scale.x, marker.scale.y, marker.scale.z = (float(value) for value in scale)
    return marker


class ArmMarkers:
    """The MarkerArray of an arm, refilled by `update`. Everything is given in the root link's frame `frame`."""

    def __init__(self, arm, frame):
        self.arm = arm
        self.size, self.scale = geometry.reach(arm), geometry.effort_scale(arm)
        self.force_scale = 0.25 * self.size / max(float(np.max(self.scale)) / self.size, 1e-9)
        s, trail = self.size, []
        self._trail = trail
        self.torques = [_marker(frame, "torque", i, Marker.LINE_LIST, TORQUE, (0.012 * s, 0.0, 0.0))
                        for i in range(len(arm.joints))]
        self.force = _marker(frame, "force", 0, Marker.ARROW, PUSH, (0.018 * s, 0.045 * s, 0.06 * s))
        self.contact = _marker(frame, "contact", 0, Marker.ARROW, CONTACT, (0.018 * s, 0.045 * s, 0.06 * s))
        self.target = _marker(frame, "target", 0, Marker.SPHERE, TARGET, (0.05 * s,) * 3)
        self.trail = _marker(frame, "trail", 0, Marker.LINE_STRIP, TRAIL, (0.007 * s, 0.0, 0.0))
        self.coms = [_marker(frame, "com", i, Marker.SPHERE, DARK, (0.03 * s,) * 3) for i in range(len(arm.joints))]
        self.inertias, self._axes = {}, {}
        for i, link in enumerate(arm.links):
            found = geometry.inertia_ellipsoid(link)
            if found is not None:
                self._axes[i], radii = found
                self.inertias[i] = _marker(frame, "inertia", i, Marker.SPHERE, INERTIA,
                                           2.0 * np.maximum(radii, 0.004 * s))

    def update(self, q, effort=None, force=None, contact=None, target=None):
        """The list of Markers at q (n,); effort (n,), forces (3,) [N] and target (3,) may be None: then deleted."""
        arm = self.arm
        rotations, origins = link_poses(arm, np.asarray(q, float))
        tip = frame_pose(arm, q)[1]
        for i, joint in enumerate(arm.joints):
            self._torque(self.torques[i], joint, effort, rotations[i], origins[i])
            com = origins[i] + rotations[i] @ arm.links[i].com
            self.coms[i].pose.position = make_point(com)
            self.coms[i].action = Marker.ADD if i in self.inertias else Marker.DELETE
            if i in self.inertias:
                self.inertias[i].pose = make_pose_message(com, rotations[i] @ self._axes[i])
        self._arrow(self.force, tip, force)
        self._arrow(self.contact, tip, contact)
        self.target.action = Marker.DELETE if target is None else Marker.ADD
        if target is not None:
            self.target.pose.position = make_point(target)
        self._follow(tip)
        return [*self.torques, *self.coms, *self.inertias.values(), self.force, self.contact, self.target, self.trail]

    def _torque(self, marker, joint, effort, rotation, origin):
        value = 0.0 if effort is None or joint.follows else float(effort[joint.coordinate])
        share = value / self.scale[joint.coordinate] if np.isfinite(value) else 0.0
        marker.action = Marker.ADD if abs(share) > 0.01 else Marker.DELETE
        if marker.action == Marker.ADD:
            segments = geometry.effort_segments(joint, share, 0.11 * self.size)
            marker.points = [make_point(origin + rotation @ point) for point in segments.reshape(-1, 3)]

    def _arrow(self, marker, tip, force):
        vector = np.zeros(3) if force is None else np.asarray(force, float) * self.force_scale
        length = np.linalg.norm(vector)
        marker.action = Marker.ADD if length > 0.005 * self.size else Marker.DELETE
        if marker.action == Marker.ADD:
            vector = vector * min(1.0, 1.2 * self.size / length)
            marker.points = [make_point(tip), make_point(tip + vector)]

    def _follow(self, tip):
        if not self._trail or np.linalg.norm(tip - self._trail[-1]) > 0.002 * self.size:
            self._trail.append(tip)
            del self._trail[:-TRAIL_POINTS]
        self.trail.points = [make_point(point) for point in self._trail]
        self.trail.action = Marker.ADD if len(self._trail) > 1 else Marker.DELETE


def _control(name, mode, axis=None):
    """A control along, around or across `axis` (3,): its own x axis (interactive_markers' convention)."""
    control = InteractiveMarkerControl(name=name, interaction_mode=mode, always_visible=False)
    z = np.array([1.0, 0.0, 0.0]) if axis is None else np.asarray(axis, float)
    frame = geometry.frame_with_z(z)
    rotation = np.column_stack([frame[:, 2], frame[:, 0], frame[:, 1]])
    control.orientation = make_pose_message(rotation=rotation).orientation
    control.orientation_mode = InteractiveMarkerControl.FIXED
    return control


def draggable(name, text, frame, position, radius, colour, plane=None, turning=False):
    """An InteractiveMarker: a ball one drags in `plane` (geometry.Plane), or in all directions where that is None,
    then with arrows, and with rings to turn it when `turning`."""
    marker = InteractiveMarker(name=name, description=text, scale=float(6.0 * radius), pose=make_pose_message(position))
    marker.header.frame_id = frame
    mode = InteractiveMarkerControl
    ball = _marker("", name, 0, Marker.SPHERE, colour, (2.0 * radius,) * 3)
    ball.header.frame_id = ""
    grip = _control("drag", mode.MOVE_3D if plane is None else mode.MOVE_PLANE, None if plane is None else plane.normal)
    grip.markers, grip.always_visible = [ball], True
    marker.controls = [grip]
    if plane is None:
        for axis, direction in zip("xyz", np.eye(3)):
            marker.controls.append(_control(f"move_{axis}", mode.MOVE_AXIS, direction))
            if turning:
                marker.controls.append(_control(f"turn_{axis}", mode.ROTATE_AXIS, direction))
    return marker
