"""The topics that pictures are made of, looked at when a picture is due instead of waking Python for every message.

A subscription of depth 1 that no executor waits for: DDS keeps the newest message and `take` fetches it. A page at
60 Hz beside a state at 1 kHz so costs 60 conversions a second, not 1000."""
from __future__ import annotations

import time

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped, WrenchStamped
from rcl_interfaces.msg import ParameterEvent
from rclpy.parameter import parameter_value_to_python
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64

from ..errors import TwolinkError
from ..kinematics import frame_pose
from ..viewer.feed import ENERGIES, TERMS
from . import conversion

LOOK = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
EVENTS = QoSProfile(depth=200, reliability=ReliabilityPolicy.RELIABLE)
SLOW = 3  # every how many looks the topics that change slowly are fetched
SILENT = 4.0  # [s] after which a node that says nothing counts as missing: diagnostics come once a second
STALE = 0.6  # [s] after which a reference, error, wrench or contact that stopped coming is forgotten


class PolledTopics:
    """Subscriptions on a hidden node of their own that nothing spins: `take(topic)` gives the newest message once."""

    def __init__(self, node):
        self._node = rclpy.create_node(f"_{node.get_name()}_listener", namespace=node.get_namespace(),
                                       context=node.context, use_global_arguments=False, enable_rosout=False,
                                       start_parameter_services=False)
        self._resolve = node.resolve_topic_name  # remapped names are the node's own
        self._subscriptions = {}

    def add(self, topic, message, qos=LOOK):
        """Listen to a topic by the name it has for the node this belongs to."""
        name = self._resolve(topic)
        self._subscriptions[topic] = self._node.create_subscription(message, name, lambda msg: None, qos)

    def take(self, topic):
        """The next message not yet taken (the newest one where the depth is 1), or None."""
        subscription = self._subscriptions[topic]
        with subscription.handle:
            taken = subscription.handle.take_message(subscription.msg_type, False)
        return None if taken is None else taken[0]

    def destroy(self):
        """Unsubscribe from everything."""
        self._node.destroy_node()


class FeedTopics:
    """Fills a Feed from the topics of a simulator and a dynamics node.

    node      the ROS node this belongs to         feed   viewer.Feed
    names     {'simulator': name, 'dynamics': name} of the two nodes, relative to the namespace
    prefix    frame_prefix                         reporter   diagnostics.Reporter for what is refused
    """

    def __init__(self, node, feed, names, prefix, reporter, full=True):
        self.feed, self.names, self.prefix, self.reporter = feed, names, prefix, reporter
        arm = feed.arm
        self.topics = PolledTopics(node)
        self._readers = {}
        self._seen = {}
        self._heard = dict.fromkeys(names, time.monotonic())
        self._looks = 0
        simulator, dynamics = names["simulator"], names["dynamics"]
        self._vectors = {f"{dynamics}/reference": ("reference", "position")}
        self._floats = {}
        if full:
            self._vectors[f"{dynamics}/tracking_error"] = ("error", "position")
            self._vectors.update({f"{dynamics}/torque/{term}": (term, "effort") for term in TERMS})
            self._floats = {f"{simulator}/energy/{entry}": entry for entry in ENERGIES}
        self._joints = conversion.JointReader(arm.joint_names)
        self.topics.add("joint_states", JointState)
        for topic in self._vectors:
            self.topics.add(topic, JointState)
        for topic in self._floats:
            self.topics.add(topic, Float64)
        self.topics.add("external_wrench", WrenchStamped)
        self.contact = f"{simulator}/contact_wrench"
        self.topics.add(self.contact, WrenchStamped)
        self.topics.add("target_pose", PoseStamped)
        if full:
            self.topics.add("/diagnostics", DiagnosticArray, QoSProfile(depth=20))
            self.topics.add("/parameter_events", ParameterEvent, EVENTS)
        self._full = full
        self._nodes = {}
        for key, name in names.items():
            full_name = name if name.startswith("/") else f"{node.get_namespace().rstrip('/')}/{name}"
            self._nodes[full_name] = key

    def look(self):
        """Fetch what is new; bad messages are counted and left out."""
        self._looks += 1
        self._take_state()
        if self._looks % SLOW:
            return
        now = time.monotonic()
        for topic, (what, field) in self._vectors.items():
            self._take_vector(topic, what, field, now)
        for topic, entry in self._floats.items():
            msg = self.topics.take(topic)
            if msg is not None:
                self.feed.energy[entry] = msg.data
        for topic, what in (("external_wrench", "wrench"), (self.contact, "contact")):
            self._take_force(topic, what, now)
        self._take_target()
        if self._full:
            self._take_diagnostics(now)
            self._take_parameters()
            self.feed.missing = tuple(key for key, last in self._heard.items() if now - last > SILENT)
        self._forget(now)

    def _take_state(self):
        msg = self.topics.take("joint_states")
        if msg is None or self.feed.q is None and not msg.name:
            return
        try:
            q, qd = self._joints.read(msg)
        except TwolinkError as error:
            self.reporter.reject("joint_states", error)
            return
        effort = None
        if len(msg.effort) == len(msg.name):
            effort = np.array(msg.effort)[[list(msg.name).index(name) for name in self.feed.arm.joint_names]]
        self._heard["simulator"] = time.monotonic()
        self.feed.state(conversion.seconds(msg.header.stamp), q, qd, effort)

    def _take_vector(self, topic, what, field, now):
        msg = self.topics.take(topic)
        if msg is None:
            return
        values = np.array(getattr(msg, field))
        names = list(msg.name)
        try:
            picked = values[[names.index(name) for name in self.feed.arm.joint_names]]
        except (ValueError, IndexError):
            self.reporter.reject(topic, f"{topic}: names {names} with {len(values)} values of {field}")
            return
        if what in TERMS:
            self.feed.terms[what] = picked
        else:
            setattr(self.feed, what, picked)
            self._seen[what] = now

    def _take_force(self, topic, what, now):
        msg = self.topics.take(topic)
        if msg is None:
            return
        try:
            force, _, frame = conversion.wrench(msg, self.prefix, self.feed.arm, topic)
        except TwolinkError as error:
            self.reporter.reject(topic, error)
            return
        if frame != self.feed.arm.root and self.feed.q is not None:
            force = frame_pose(self.feed.arm, self.feed.q, frame)[0] @ force
        setattr(self.feed, what, force)
        self._seen[what] = now

    def _take_target(self):
        msg = self.topics.take("target_pose")
        if msg is None:
            return
        arm, q = self.feed.arm, self.feed.q
        try:
            rotation, position, frame = conversion.pose(msg, self.prefix, arm)
        except TwolinkError as error:
            self.reporter.reject("target_pose", error)
            return
        if frame != arm.root and q is not None:
            R_WF, p_WF = frame_pose(arm, q, frame)
            position = p_WF + R_WF @ position
            rotation = None if rotation is None else R_WF @ rotation
        if rotation is None:
            rotation = np.eye(3) if self.feed.target is None else self.feed.target[0]
        self.feed.target = (rotation, position)

    def _take_diagnostics(self, now):
        for _ in range(20):
            msg = self.topics.take("/diagnostics")
            if msg is None:
                return
            for status in msg.status:
                key = self._nodes.get("/" + status.name.lstrip("/"))
                if key is None:
                    continue
                self._heard[key] = now
                self.feed.problems[key] = "" if status.message == "running" else status.message
                figures = {pair.key: pair.value for pair in status.values}
                if key == "simulator":
                    self.feed.paused = status.message == "paused"
                if key == "dynamics" or "dynamics" not in self.feed.problems:  # the control loop's own, if it tells
                    for name, figure in (("rate", "rate [Hz]"), ("jitter", "jitter 99 % [us]")):
                        try:
                            self.feed.loop[name] = float(figures[figure])
                        except (KeyError, ValueError):
                            pass

    def _take_parameters(self):
        for _ in range(200):
            msg = self.topics.take("/parameter_events")
            if msg is None:
                return
            key = self._nodes.get(msg.node)
            if key is not None:
                for parameter in (*msg.new_parameters, *msg.changed_parameters):
                    if (key, parameter.name) in self.feed.parameters:
                        value = parameter_value_to_python(parameter.value)
                        self.feed.parameters[key, parameter.name] = list(value) if hasattr(value, "typecode") else value

    def _forget(self, now):
        for what, nothing in (("reference", None), ("error", None), ("contact", None), ("wrench", np.zeros(3))):
            if what in self._seen and now - self._seen[what] > STALE:
                del self._seen[what]
                setattr(self.feed, what, nothing)

    def destroy(self):
        """Unsubscribe from everything."""
        self.topics.destroy()
