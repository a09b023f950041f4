"""The one who watches a demonstration: performs a script of actions and records what the nodes publish."""
from __future__ import annotations

import time
from collections import deque

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped, WrenchStamped
from rcl_interfaces.msg import ParameterEvent
from rcl_interfaces.srv import SetParameters
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ..errors import InputError
from ..scenarios import Record
from .base import RELIABLE
from .conversion import JointReader
from .simulator_node import LEDGER

PERIOD = 0.02  # [s] between looks at the script; a wrench is repeated as often


class Monitor(Node):
    """Waits for both nodes, then runs `actions` and fills `record`; `line(monitor)` is called once a second.

    Times are seconds of the joint states' stamps since the script began, so that a slow machine changes no verdict.
    Without a length (a demonstration that goes on) a person wins: after a goal, a wrench, a reset or a choice of the
    controller that is not the script's, the script is over and this one only watches.
    """

    def __init__(self, arm, actions, length, line=None, repeat=None, namespace=""):
        super().__init__("monitor", namespace=namespace)
        self.arm, self.length, self.line, self.repeat = arm, length, line, repeat
        self.record, self.rates = Record(), {}
        self._actions = sorted(actions, key=lambda action: action.at)
        self._done = 0
        self._began = self._stamp = None
        self._wrench, self._wrench_until = None, -np.inf
        self._last_line, self._sent = 0, deque(maxlen=50)
        self.taken_over = False  # a person steers: the script is over
        self.due, self.listening, self.by_topic = time.perf_counter(), False, False
        self._reader = JointReader(arm.joint_names, "true_joint_states")
        self.trajectory = self.create_publisher(JointTrajectory, "joint_trajectory", RELIABLE)
        self.pose = self.create_publisher(PoseStamped, "target_pose", RELIABLE)
        self.wrench = self.create_publisher(WrenchStamped, "external_wrench", RELIABLE)
        self.parameters = {node: self.create_client(SetParameters, f"{node}/set_parameters")
                           for node in ("simulator", "dynamics")}
        for topic, take in (("simulator/true_joint_states", self._on_state), ("dynamics/tracking_error",
                                                                              self._on_error),
                            ("dynamics/torque/total", lambda msg: self._add("total", np.array(msg.effort))),
                            ("dynamics/torque/feedback", lambda msg: self._add("feedback", np.array(msg.effort))),
                            ("simulator/motor_states", self._on_motor)):
            self.create_subscription(JointState, topic, take, RELIABLE)
        self.create_subscription(PoseStamped, "dynamics/current_pose", self._on_pose, RELIABLE)
        for name in ("contact", "constraint"):
            self.create_subscription(WrenchStamped, f"simulator/{name}_wrench",
                                     lambda msg, name=name: self._on_wrench(name, msg), RELIABLE)
        for name in LEDGER:
            self.create_subscription(Float64, f"simulator/energy/{name}",
                                     lambda msg, name=name: self._add(f"energy/{name}", msg.data), RELIABLE)
        self.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, RELIABLE)
        if length is None:
            for message, topic in ((JointTrajectory, "joint_trajectory"), (JointState, "target_joint"),
                                   (PoseStamped, "target_pose"), (WrenchStamped, "external_wrench")):
                self.create_subscription(message, topic, self._on_goal, RELIABLE)
            self.create_subscription(ParameterEvent, "/parameter_events", self._on_parameters, RELIABLE)

    # -- listening -----------------------------------------------------------------------------------------------------
    @property
    def t(self):
        """Seconds since the script began, None before."""
        return None if self._began is None else self._stamp - self._began

    @property
    def finished(self):
        """True when the length has passed."""
        return self.t is not None and self.length is not None and self.t >= self.length

    def _add(self, name, value):
        if self._began is not None:
            self.record.add(name, self.t, value)

    def _restart(self):
        """Somebody pressed reset on the page: the record begins again, and the script is over."""
        self._began, self._last_line = self._stamp, 0
        self.record = Record()
        self._take_over()

    def _take_over(self):
        """A person steers from now on; this one only watches."""
        if not self.taken_over:
            self.taken_over = True
            self.get_logger().warning("you steer: the demonstration no longer repeats its motion")
        self._actions, self._done, self._wrench, self.repeat = [], 0, None, None

    def _on_goal(self, msg):
        if msg not in self._sent:
            self._take_over()

    def _on_parameters(self, event):
        names = {parameter.name for parameter in event.changed_parameters}
        if self._began is not None and event.node.endswith("/dynamics") and names & {"controller", "enabled"}:
            self._take_over()

    def _publish(self, publisher, msg):
        self._sent.append(msg)
        publisher.publish(msg)

    def _on_state(self, msg):
        self._stamp = msg.header.stamp.sec + 1e-9 * msg.header.stamp.nanosec
        if self._began is not None and self._stamp < self._began:
            if self.length is not None:
                raise InputError("the simulator was reset during the demonstration")
            self._restart()
        q, qd = self._reader.read(msg)
        self._add("q", q)
        self._add("qd", qd)
        self._add("effort", np.array(msg.effort))

    def _on_error(self, msg):
        self._heard_error = True
        self._add("error", np.array(msg.position))

    _heard_error = False

    def _on_motor(self, msg):
        self._add("motor", np.array(msg.position))

    def _on_pose(self, msg):
        p = msg.pose.position
        self._add("tip", np.array([p.x, p.y, p.z]))

    def _on_wrench(self, name, msg):
        f = msg.wrench.force
        self._add(name, np.array([f.x, f.y, f.z]))

    def _on_diagnostics(self, msg):
        for status in msg.status:
            for item in status.values:
                if item.key == "rate [Hz]":
                    self.rates[status.name.rsplit("/", 1)[-1]] = float(item.value)

    # -- acting --------------------------------------------------------------------------------------------------------
    def tick(self, now):
        """Begin when all is there; perform what is due; a line each second."""
        self.due = now + PERIOD
        if self._began is None:
            ready = self._stamp is not None and self._heard_error and all(
                publisher.get_subscription_count() for publisher in (self.trajectory, self.pose, self.wrench))
            if ready:
                self._began = self._stamp
            return
        t = self.t
        while self._done < len(self._actions) and self._actions[self._done].at <= t:
            self._perform(self._actions[self._done])
            self._done += 1
        if self._wrench is not None:
            if t >= self._wrench_until:
                self._push((0.0, 0.0, 0.0))
                self._wrench = None
            else:
                self._push(self._wrench)
        if self.repeat and self._done == len(self._actions) and t >= self._actions[-1].at + self.repeat:
            self._actions = [action._replace(at=action.at + self.repeat) for action in self._actions]
            self._done = 0
        if self.line is not None and t >= self._last_line + 1.0:
            self._last_line = int(t)
            self.line(self)

    def _perform(self, action):
        data = action.data
        if action.kind == "trajectory":
            msg = JointTrajectory(joint_names=list(data["joints"]))
            for point in data["points"]:
                msg.points.append(JointTrajectoryPoint(positions=list(point.positions),
                                                       time_from_start=Duration(seconds=point.time).to_msg()))
            self._publish(self.trajectory, msg)
        elif action.kind == "pose":
            msg = PoseStamped()
            p, o = msg.pose.position, msg.pose.orientation
            (p.x, p.y, p.z), o.w = map(float, data["position"]), 0.0
            self._publish(self.pose, msg)
        elif action.kind == "wrench":
            self._wrench, self._wrench_until = data["force"], action.at + data["seconds"]
        elif action.kind == "parameter":
            parameter = Parameter(data["name"], value=data["value"]).to_parameter_msg()
            self.parameters[data["node"]].call_async(SetParameters.Request(parameters=[parameter]))
        else:
            raise InputError(f"action '{action.kind}' is none of trajectory, pose, wrench, parameter")

    def _push(self, force):
        msg = WrenchStamped()
        msg.wrench.force.x, msg.wrench.force.y, msg.wrench.force.z = map(float, force)
        self._publish(self.wrench, msg)
