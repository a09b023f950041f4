"""Mouse and keys: moving the target, and pulling the tip by a spring between it and the cursor.

The space key switches between the two; what is dragged (target or tip) does not matter, the mode does, because the
two lie on each other most of the time. Shift-click puts the target anywhere. On a planar arm the cursor is the point
of the arm's plane under the mouse, else the point at the depth of what was grabbed. Whoever drags first holds the arm
until the release, or until that browser goes away."""
from __future__ import annotations

import threading

import numpy as np

from . import geometry

MODES = ("move the target", "push the tip")
FORCE_ON_ARM = 1.0  # the spring pulls the arm towards the cursor: f_ext is the force of the environment on the arm


def spring_force(tip, cursor, stiffness, limit):
    """f = k (cursor − tip) (3,) [N] on the arm, no longer than `limit`."""
    force = FORCE_ON_ARM * stiffness * (np.asarray(cursor, float) - tip)
    size = np.linalg.norm(force)
    return force * (limit / size) if size > limit else force


class Interaction:
    """Connects viser's pointer events to Actions. All callbacks are coroutines: viser keeps their order only then."""

    def __init__(self, server, scene, actions):
        self.scene, self.actions = scene, actions
        strength = float(np.max(scene.scale)) / scene.size  # [N] that the strongest joint can hold at full reach
        self.limit = 2.0 * strength
        self.stiffness = float(np.round(strength / (0.4 * scene.size), -1)) or strength / (0.4 * scene.size)
        self.mode = MODES[0]
        self.moving = False
        self.cursor = None  # while pulling
        self.on_mode = self.on_move = lambda: None  # told of a new mode, of a moved target
        self._offset = np.zeros(3)
        self._gizmo = None
        self._holder = None  # client id of the browser that drags
        self._pulling = threading.Lock()  # a force sent after the release would stay on
        for handle in (scene.target, scene.handle):
            handle.on_drag("left")(self._dragged)
        server.scene.on_click(modifier="shift")(self._clicked)
        server.on_client_disconnect(self._left)
        if scene.plane is None:
            self._add_gizmo(server)

    def _add_gizmo(self, server):
        self._gizmo = server.scene.add_transform_controls("/target_gizmo", scale=0.22 * self.scene.size,
                                                          line_width=3.0, depth_test=False, opacity=0.8)

        @self._gizmo.on_update
        async def _(event):
            if not self._mine(event):
                return
            if event.phase == "end":
                self.release()
                return
            self.moving = True
            position = np.array(self._gizmo.position)
            self.scene.target.position = position
            self.on_move()
            self.actions.target(position, geometry.rotation_of_quaternion(self._gizmo.wxyz))

    def switch(self, mode=None):
        """Changes the mode, to the other one by default; lets go of what is held."""
        self.release()
        self.mode = mode or MODES[1 - MODES.index(self.mode)]
        self.on_mode()

    def place(self, rotation, position):
        """Shows a target that came from elsewhere."""
        if self.moving:
            return
        self.scene.target.position = position
        if self._gizmo is not None:
            self._gizmo.position = position
            self._gizmo.wxyz = geometry.quaternion(rotation)

    def move(self, position):
        """Moves the target to `position` (3,), in the arm's plane for a planar arm, and tells."""
        if self.scene.plane is not None:
            position = self.scene.plane.project(position)
        self.scene.target.position = position
        if self._gizmo is not None:
            self._gizmo.position = position
        self.on_move()
        self.actions.target(np.asarray(position, float))

    def _under(self, event):
        camera = np.array(event.client.camera.position)
        if self.scene.plane is not None:
            return self.scene.plane.hit(camera, np.subtract(event.end_position, camera))
        return np.array(event.end_position)

    def _mine(self, event):
        """Whether this event's browser may move things: the one that began to drag, or anyone while none does."""
        if event.phase == "start" and self._holder is None:
            self._holder = event.client_id
        return self._holder == event.client_id

    async def _left(self, client):
        if client.client_id == self._holder:  # gone while it dragged: no release will come
            self.release()

    async def _dragged(self, event):
        if not self._mine(event):
            return
        if event.phase == "end":
            self.release()
            return
        point = self._under(event)
        if point is None:
            return
        if event.phase == "start":
            self.moving = self.mode == MODES[0]
            self._offset = np.zeros(3)
            if self.moving:  # keep the grabbed point under the mouse, whichever of the two balls was grabbed
                on_target = event.target is self.scene.target
                grabbed = np.array(self.scene.target.position) if on_target else self.scene.tip
                self._offset = grabbed - np.array(event.start_position)
        if self.moving:
            self.move(point + self._offset)
        elif self.mode == MODES[1]:
            self.cursor = point

    async def _clicked(self, event):
        origin, direction = np.array(event.ray_origin), np.array(event.ray_direction)
        plane = self.scene.plane or geometry.Plane(np.array(self.scene.target.position), direction)
        point = plane.hit(origin, direction)
        if point is not None:
            self.move(point)

    def release(self):
        """Lets go of everything; the force on the tip ends."""
        self.moving, self._holder = False, None
        with self._pulling:
            if self.cursor is not None:
                self.cursor = None
                self.scene.spring(None)
                self.actions.push(np.zeros(3))

    def tick(self):
        """Sends the spring's force while the tip is being pulled."""
        with self._pulling:
            if self.cursor is not None:
                self.actions.push(spring_force(self.scene.tip, self.cursor, self.stiffness, self.limit))
                self.scene.spring(self.cursor)
