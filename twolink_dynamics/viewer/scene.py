"""The 3D picture: the arm from its URDF's shapes, its ghost at the reference, torques, forces, trail and target.

Everything is created once; an update touches only what changed since the last one."""
from __future__ import annotations

import numpy as np

from ..arm import PRISMATIC, ROOT, make_pose
from ..kinematics import frame_pose
from . import geometry
from .visuals import Shape, mesh_arrays

TARGET, PUSH, GHOST, TORQUE = (38, 166, 91), (214, 48, 49), (74, 144, 226), (142, 68, 173)
TRAIL_POINTS = 90
QUIET = 0.005  # a torque arc is redrawn when its share of the full scale changed by this


class Scene:
    """The picture of one arm on a viser server.

    server   viser.ViserServer            arm    Arm with a tip
    shapes   tuple of visuals.Shape; links without any are drawn as sticks
    """

    def __init__(self, server, arm, shapes=()):
        self.server, self.arm = server, arm
        self.plane, self.size = geometry.plane_of(arm), geometry.reach(arm)
        self.scale = geometry.effort_scale(arm)
        self.force_scale = 0.25 * self.size / max(float(np.max(self.scale)) / self.size, 1e-9)  # [m/N]
        self.tip = np.zeros(3)
        self._q = self._ghost_q = None
        self._shares = np.full(len(arm.joints), np.inf)
        self._efforts = np.zeros(len(arm.joints))
        self.shown = {"torques": True, "trail": True, "ghost": True, "masses": False}
        shapes = tuple(shape for shape in shapes if shape.kind != "mesh" or shape.path is not None)
        drawn = {arm.frame(shape.link).link for shape in shapes if any(f.name == shape.link for f in arm.frames)}
        self.shapes = shapes if any(link != ROOT for link in drawn) else sticks(arm, self.size)
        self._turns = [turning(joint) for joint in arm.joints]
        self._surroundings()
        self._links = self._body("/arm", 1.0)
        self._ghosts = self._body("/ghost", 0.16)
        server.scene.add_frame("/ghost", show_axes=False, visible=False)
        self._ghost = server.scene.get_handle_by_name("/ghost")
        self._arcs = [server.scene.add_line_segments(
            f"{self._path('/arm', i)}/torque", np.zeros((geometry.ARC_POINTS + 1, 2, 3)), TORQUE, thickness=4.0,
            thickness_units="screen", visible=False) for i in range(len(arm.joints))]
        self._masses = self._inertias()
        self._marks()
        self.update(np.zeros(arm.n))

    # -- building -----------------------------------------------------------------------------------------------------
    def _surroundings(self):
        scene, size = self.server.scene, self.size
        scene.world_axes.visible = False
        flat = self.plane is not None and abs(self.plane.normal[2]) < 0.5  # moves in a vertical plane
        step = 0.05 * 10.0 ** np.round(np.log10(size))
        grid = dict(cell_color=(236, 239, 243), section_color=(216, 222, 230), cell_size=step, section_size=5.0 * step,
                    cell_thickness=0.6, section_thickness=0.9, shadow_opacity=0.12)
        if flat:  # graph paper behind the arm
            normal = self.plane.normal
            across = np.cross((0.0, 0.0, 1.0), normal)
            scene.add_grid("/wall", 40 * step * np.ceil(size), 40 * step * np.ceil(size), plane="xy",
                           wxyz=geometry.quaternion(np.column_stack([across, np.cross(normal, across), normal])),
                           position=self.plane.point - 0.14 * size * normal, fade_distance=1.9 * size,
                           fade_strength=1.5, fade_from="origin", **grid)
            camera = size * (2.75 * normal + 0.5 * across + np.array([0.0, 0.0, 0.5]))
        else:
            scene.add_grid("/floor", 6.0 * size, 6.0 * size, fade_distance=5.0 * size, **grid)
            camera = np.array([1.25, -1.9, 1.25]) * size
        self.server.initial_camera.position = tuple(camera)
        self.server.initial_camera.look_at = (0.0, 0.0, 0.05 * size if flat else 0.4 * size)
        self.server.initial_camera.fov = np.radians(48.0)

    def _path(self, root, link):
        """Scene nodes are nested as the links are, so that a turning joint is one message."""
        return root + "".join(f"/link{i}" for i in self.arm.ancestors(link))

    def _body(self, root, opacity):
        scene, links, ghost = self.server.scene, [], opacity < 1.0
        scene.add_frame(root, show_axes=False, visible=not ghost)
        for i, joint in enumerate(self.arm.joints):
            links.append(scene.add_frame(self._path(root, i), show_axes=False, position=joint.origin.translation))
        for k, shape in enumerate(self.shapes):
            try:
                at = self.arm.frame(shape.link)
            except ValueError:
                continue
            if ghost and at.link == ROOT:
                continue
            pose = make_pose(*at.pose) @ shape.pose
            name = f"{self._path(root, at.link)}/shape{k}"
            look = dict(wxyz=geometry.quaternion(pose.rotation), position=pose.translation,
                        cast_shadow=not ghost, receive_shadow=not ghost,
                        opacity=opacity if ghost else (None if shape.rgba[3] >= 1.0 else shape.rgba[3]))
            colour = GHOST if ghost else tuple(int(round(255 * c)) for c in shape.rgba[:3])
            if shape.kind == "box":
                scene.add_box(name, colour, shape.size, **look)
            elif shape.kind == "cylinder":
                scene.add_cylinder(name, *shape.size, colour, **look)
            elif shape.kind == "sphere":
                scene.add_icosphere(name, shape.size[0], colour, **look)
            else:
                mesh = mesh_arrays(shape)
                if mesh is not None:
                    scene.add_mesh_simple(name, *mesh, color=colour, **look)
        return links

    def _inertias(self):
        handles = []
        for i, link in enumerate(self.arm.links):
            found = geometry.inertia_ellipsoid(link)
            if found is None:
                continue
            axes, radii = found
            path, scale = self._path("/arm", i), tuple(np.maximum(radii, 0.004 * self.size))
            handles.append(self.server.scene.add_icosphere(
                f"{path}/inertia", 1.0, (241, 196, 15), scale=scale,
                opacity=0.45, wxyz=geometry.quaternion(axes), position=link.com, cast_shadow=False, visible=False))
            handles.append(self.server.scene.add_icosphere(
                f"{path}/com", 0.016 * self.size, (30, 30, 30), position=link.com, cast_shadow=False, visible=False))
        return handles

    def _marks(self):
        scene, size = self.server.scene, self.size
        fade = np.linspace(0.0, 1.0, TRAIL_POINTS)[:, None]
        colours = (np.array([255, 255, 255]) * (1 - fade) + np.array([230, 126, 34]) * fade).astype(np.uint8)
        self._trail_points = np.zeros((TRAIL_POINTS, 3))
        self._trail = scene.add_line_segments("/trail", np.zeros((TRAIL_POINTS - 1, 2, 3)),
                                              np.stack([colours[:-1], colours[1:]], axis=1), thickness=2.5,
                                              thickness_units="screen")
        turn = np.linspace(0.0, 2.0 * np.pi, 33)
        normal = self.plane.normal if self.plane is not None else np.array([0.0, 0.0, 1.0])
        frame = geometry.frame_with_z(normal)
        ring = 0.058 * size * (frame[:, :1] * np.cos(turn) + frame[:, 1:2] * np.sin(turn)).T
        self.target = scene.add_icosphere("/target", 0.032 * size, TARGET, cast_shadow=False)
        scene.add_line_segments("/target/ring", np.stack([ring[:-1], ring[1:]], axis=1), TARGET,
                                thickness=2.5, thickness_units="screen")
        at = self.arm.frame()
        self.handle = scene.add_icosphere(f"{self._path('/arm', at.link)}/tip", 0.045 * size, PUSH, opacity=0.25,
                                          position=at.pose.translation, cast_shadow=False)
        arrow = dict(shaft_radius=0.008 * size, head_radius=0.020 * size, head_length=0.05 * size, visible=False)
        self._force = scene.add_arrows("/force", np.zeros((1, 2, 3)), PUSH, **arrow)
        self._contact = scene.add_arrows("/contact", np.zeros((1, 2, 3)), (243, 156, 18), **arrow)
        self._pull = scene.add_line_segments("/spring", np.zeros((19, 2, 3)), (90, 90, 90), thickness=2.0,
                                             thickness_units="screen", visible=False)
        self._started = False

    # -- updating -----------------------------------------------------------------------------------------------------
    def update(self, q):
        """Moves the arm to q (n,)."""
        if self._q is not None and np.array_equal(q, self._q):
            return
        self._q = np.array(q, float)
        self._place(self._links, self._q)
        self.tip = frame_pose(self.arm, self._q)[1]

    def _place(self, handles, q):
        for handle, joint, turn, variable in zip(handles, self.arm.joints, self._turns, self.arm.variables(q)):
            if joint.kind == PRISMATIC:
                handle.position = joint.origin.translation + joint.origin.rotation @ joint.axis * variable
            else:
                handle.wxyz = turn[0] * np.cos(0.5 * variable) + turn[1] * np.sin(0.5 * variable)

    def ghost(self, q):
        """Shows the arm's ghost at q (n,), hides it for None or where it would cover the arm."""
        near = q is None or self._q is None or np.abs(np.asarray(q) - self._q).max() < 0.01
        self._ghost.visible = self.shown["ghost"] and not near
        if near or not self.shown["ghost"] or (self._ghost_q is not None and np.array_equal(q, self._ghost_q)):
            return
        self._ghost_q = np.array(q, float)
        self._place(self._ghosts, self._ghost_q)

    def torques(self, effort):
        """Draws the joint efforts (n,) as arcs."""
        for i, joint in enumerate(self.arm.joints):
            k = joint.coordinate
            value = None if effort is None or joint.follows else effort[k]
            share = float(value / self.scale[k]) if value is not None and np.isfinite(value) else 0.0
            visible = self.shown["torques"] and abs(share) > 0.01
            if visible and abs(share - self._shares[i]) > QUIET:
                self._shares[i] = share
                self._arcs[i].points = geometry.effort_segments(joint, share, 0.11 * self.size)
            self._arcs[i].visible = visible

    def forces(self, force, contact=None):
        """Draws the force (3,) [N] on the tip and the environment's contact force."""
        for handle, value in ((self._force, force), (self._contact, contact)):
            length = 0.0 if value is None else float(np.linalg.norm(value)) * self.force_scale
            handle.visible = length > 0.005 * self.size
            if handle.visible:
                vector = np.asarray(value) * self.force_scale * min(1.0, 1.2 * self.size / length)
                handle.points = np.array([[self.tip, self.tip + vector]])

    def spring(self, cursor):
        """Draws the spring from the tip to the cursor (3,); None removes it."""
        self._pull.visible = cursor is not None
        if cursor is not None:
            normal = self.plane.normal if self.plane is not None else np.array([0.0, 0.0, 1.0])
            self._pull.points = geometry.spring_segments(self.tip, cursor, normal, 0.028 * self.size)

    def trail(self):
        """Adds the tip's position to its trail."""
        if not self._started:
            self._trail_points[:] = self.tip
            self._started = True
        self._trail.visible = self.shown["trail"]
        if not np.ptp(self._trail_points, axis=0).any() and np.array_equal(self._trail_points[-1], self.tip):
            return
        self._trail_points[:-1] = self._trail_points[1:]
        self._trail_points[-1] = self.tip
        if self.shown["trail"]:
            self._trail.points = np.stack([self._trail_points[:-1], self._trail_points[1:]], axis=1)

    def show(self, what, on):
        """Turns 'torques', 'trail', 'ghost' or 'masses' on or off."""
        self.shown[what] = bool(on)
        if what == "masses":
            for handle in self._masses:
                handle.visible = bool(on)


def turning(joint):
    """The two quaternions (w, x, y, z) a and b with which a joint turned by θ is a cos(θ/2) + b sin(θ/2)."""
    w, *v = a = geometry.quaternion(joint.origin.rotation)
    b = np.array([-np.dot(v, joint.axis), *(w * joint.axis + np.cross(v, joint.axis))])
    return a, b


def sticks(arm, size):
    """Shapes for an arm that has no visuals: a rod from every joint to the next and to the tip, a ball at joints."""
    shapes = []
    bone, ball = (0.25, 0.47, 0.72, 1.0), (0.35, 0.38, 0.42, 1.0)
    # one frame per moving link that sits exactly on it, whatever the URDF calls it
    names = {frame.link: frame for frame in reversed(arm.frames)}

    def on(link, pose, kind, dimensions, colour):
        frame = names.get(link)
        if frame is not None:
            inverse = make_pose(frame.pose.rotation.T, -frame.pose.rotation.T @ frame.pose.translation)
            shapes.append(Shape(frame.name, kind, dimensions, inverse @ pose, colour))

    def rod(link, end):
        length = float(np.linalg.norm(end))
        if length > 1e-3 * size:
            pose = make_pose(geometry.frame_with_z(end), 0.5 * np.asarray(end))
            on(link, pose, "cylinder", (0.022 * size, length), bone)

    for i, joint in enumerate(arm.joints):
        if joint.parent != ROOT:
            rod(joint.parent, joint.origin.translation)
        pose = make_pose(geometry.frame_with_z(joint.axis))
        on(i, pose, "cylinder", (0.035 * size, 0.07 * size), ball)
    tip = arm.frame()
    if tip.link != ROOT:
        rod(tip.link, tip.pose.translation)
        on(tip.link, make_pose(translation=tip.pose.translation), "sphere", (0.028 * size,), ball)
    return tuple(shapes)
