"""`markers`: what RViz draws of the arm's dynamics, and a target and a push one can drag there."""
from __future__ import annotations

import os
import time

import numpy as np
from rclpy.qos import QoSProfile
from visualization_msgs.msg import InteractiveMarkerFeedback, InteractiveMarkerUpdate, MarkerArray
from visualization_msgs.srv import GetInteractiveMarkers

from ..errors import TwolinkError
from ..kinematics import frame_pose
from ..viewer import geometry
from ..viewer.feed import Feed
from ..viewer.interaction import spring_force
from . import conversion
from .base import COMMANDS, ArmNode, run
from .marker_server import InteractiveServer
from .marker_shapes import PUSH, TARGET, ArmMarkers, draggable, make_pose_message
from .viewer_actions import RosActions
from .viewer_topics import FeedTopics

SPACE = "~/interactive"
KEEP_ALIVE = 0.5  # [s]
ABANDONED = 2.0  # [s] without feedback after which a drag counts as released: its client is gone
FOLLOW = 5  # ticks between looks whether the markers still sit on target and tip


class MarkersNode(ArmNode):
    """Publishes a MarkerArray and serves two interactive markers, `target` and `push`.

    Parameters   robot_description, urdf, tip, frame_prefix; rate, push_stiffness, simulator, dynamics
    Subscribes   joint_states, external_wrench, target_pose, <simulator>/contact_wrench, <dynamics>/reference
    Publishes    ~/array (MarkerArray, only when someone looks); target_pose and external_wrench while dragged
    Interactive  ~/interactive/update, ~/interactive/feedback, service ~/interactive/get_interactive_markers
    """

    def __init__(self, **options):
        self.topics = None
        super().__init__("markers", **options)

    def build(self, arm):
        p = self.parameters
        names = {"simulator": p["simulator"], "dynamics": p["dynamics"]}
        self.frame = p["frame_prefix"] + arm.root
        self.feed = Feed(arm, seconds=1.0)
        self.topics = FeedTopics(self, self.feed, names, p["frame_prefix"], self.reporter, full=False)
        self.actions = RosActions(self, self.feed, names, self.frame)
        self.plane, size = geometry.plane_of(arm), geometry.reach(arm)
        self.limit = 2.0 * float(np.max(geometry.effort_scale(arm))) / size
        self.drawn = ArmMarkers(arm, self.frame)
        self.array = self.create_publisher(MarkerArray, "~/array", COMMANDS)
        updates = self.create_publisher(InteractiveMarkerUpdate, f"{SPACE}/update", QoSProfile(depth=100))
        self.server = InteractiveServer(f"{self.get_fully_qualified_name()}-{os.getpid()}", updates.publish)
        self.create_service(GetInteractiveMarkers, f"{SPACE}/get_interactive_markers",
                            lambda request, response: self.server.describe(response))
        self.create_subscription(InteractiveMarkerFeedback, f"{SPACE}/feedback", self._on_feedback,
                                 QoSProfile(depth=50))
        tip = frame_pose(arm, np.zeros(arm.n))[1]
        self.server.insert(draggable("target", "target", self.frame, tip, 0.035 * size, TARGET, self.plane, True),
                           self._target_dragged)
        self.server.insert(draggable("push", "push", self.frame, tip, 0.05 * size, (*PUSH[:3], 0.4), self.plane),
                           self._push_dragged)
        self.server.apply()
        self.cursor, self.heard, self.holding_target = None, 0.0, 0.0
        self.ticks, self.next_keep_alive, self._placed = 0, 0.0, {}
        self.period = 1.0 / p["rate"]
        self.due = time.perf_counter()

    def apply(self, values, names):
        if self.topics is not None and "rate" in names:
            self.period = 1.0 / values["rate"]

    # -- in ------------------------------------------------------------------------------------------------------------
    def _on_feedback(self, msg):
        if not self.server.feedback(msg, time.monotonic()):
            self.reporter.warn("feedback", f"interactive feedback for '{msg.marker_name}' refused: unknown, or another "
                                           "client holds it")

    def _pose_of(self, msg):
        """(rotation, position) of feedback in the root frame; raises TwolinkError on a foreign frame or bad numbers."""
        rotation, position, frame = conversion.pose(msg, self.parameters["frame_prefix"], self.arm, "feedback")
        if frame != self.arm.root:
            if self.feed.q is None:
                raise TwolinkError(f"feedback in frame '{frame}' before the first joint state")
            R, p = frame_pose(self.arm, self.feed.q, frame)
            position, rotation = p + R @ position, None if rotation is None else R @ rotation
        return rotation, position

    def _target_dragged(self, msg):
        if msg.event_type != InteractiveMarkerFeedback.POSE_UPDATE:
            return
        try:
            rotation, position = self._pose_of(msg)
        except TwolinkError as error:
            self.reporter.reject("feedback", error)
            return
        if self.plane is not None:
            rotation, position = None, self.plane.project(position)
        self.holding_target = time.monotonic()
        self._placed.pop("target", None)
        self.actions.target(position, rotation)

    def _push_dragged(self, msg):
        self.heard = time.monotonic()
        if msg.event_type == InteractiveMarkerFeedback.MOUSE_UP:
            self._let_go()
        elif msg.event_type == InteractiveMarkerFeedback.POSE_UPDATE:
            try:
                position = self._pose_of(msg)[1]
            except TwolinkError as error:
                self.reporter.reject("feedback", error)
                return
            self.cursor = position if self.plane is None else self.plane.project(position)

    def _let_go(self):
        if self.cursor is not None:
            self.cursor = None
            self._placed.pop("push", None)
            self.actions.push(np.zeros(3))
            self._follow()

    # -- out -----------------------------------------------------------------------------------------------------------
    def tick(self, now):
        if self.arm is None:
            self.due = now + 0.05
            return
        self.due = max(self.due + self.period, now - 0.5 * self.period)
        self.ticks += 1
        self.topics.look()
        if now >= self.next_keep_alive:
            self.next_keep_alive = now + KEEP_ALIVE
            self.server.keep_alive()
        if self.feed.q is None:
            return
        if self.cursor is not None and time.monotonic() - self.heard > ABANDONED:
            self._let_go()
        if self.cursor is not None:
            self.actions.push(spring_force(frame_pose(self.arm, self.feed.q)[1], self.cursor,
                                           self.parameters["push_stiffness"], self.limit))
        if self.ticks % FOLLOW == 0:
            self._follow()
        if self.array.get_subscription_count():
            feed = self.feed
            target = None if feed.target is None else feed.target[1]
            self.array.publish(MarkerArray(markers=self.drawn.update(feed.q, feed.effort, feed.wrench, feed.contact,
                                                                     target)))

    def _follow(self):
        """Puts the markers nobody drags back on the target and the tip."""
        tip = frame_pose(self.arm, self.feed.q)[1]
        rotation, target = (None, tip) if self.feed.target is None else self.feed.target
        if time.monotonic() - self.holding_target > KEEP_ALIVE:
            self._put("target", target, rotation)
        if self.cursor is None:
            self._put("push", tip, None)
        self.server.apply()

    def _put(self, name, position, rotation):
        placed = self._placed.get(name)
        key = np.concatenate([position, [] if rotation is None else np.ravel(rotation)])
        if placed is None or placed.shape != key.shape or np.abs(placed - key).max() > 5e-4:
            self._placed[name] = key
            self.server.set_pose(name, make_pose_message(position, rotation))

    def destroy_node(self):
        if self.topics is not None:
            self.topics.destroy()
        super().destroy_node()


def main(args=None):
    """Run the markers node until SIGINT or SIGTERM; returns the exit status."""
    return run(lambda: [MarkersNode()], args)


if __name__ == "__main__":
    raise SystemExit(main())
