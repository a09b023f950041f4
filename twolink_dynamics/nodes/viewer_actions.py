"""What a person does on the page, as messages, service calls and parameters."""
from __future__ import annotations

import threading
import time

import numpy as np
from geometry_msgs.msg import PoseStamped, WrenchStamped
from rcl_interfaces.srv import GetParameters, SetParameters, SetParametersAtomically
from rclpy.parameter import Parameter, parameter_value_to_python
from std_srvs.srv import SetBool, Trigger

from ..viewer.feed import Actions
from . import conversion
from .base import COMMANDS, RELIABLE

ANSWER = 3.0  # [s] until a silent node is given up
BUTTONS = {"pause": ("simulator", "pause", True), "resume": ("simulator", "pause", False),
           "step": ("simulator", "step", None), "reset": ("simulator", "reset", None),
           "hold": ("dynamics", "hold", None), "enable": ("dynamics", "enable", True),
           "disable": ("dynamics", "enable", False)}


class RosActions(Actions):
    """Actions over ROS. Calls never wait: answers arrive through the executor, and `update` gives up on late ones.

    node   rclpy node           feed   viewer.Feed          names   {'simulator': name, 'dynamics': name}
    frame  frame_id of targets and pushes, the root link's
    needed {node key: [parameter names]} to read as soon as the nodes are there
    """

    def __init__(self, node, feed, names, frame, needed=None, scenarios=None):
        self.feed, self.frame, self.scenarios = feed, frame, scenarios
        self._clock = node.get_clock()
        self._lock = threading.Lock()
        self._waiting = []  # (deadline, future, done, who)
        self._needed, self._known = needed or {}, {}
        self._target = node.create_publisher(PoseStamped, "target_pose", RELIABLE)
        self._wrench = node.create_publisher(WrenchStamped, "external_wrench", COMMANDS)
        self._names = names
        self._calls = {}
        for key, service, data in BUTTONS.values():
            if (key, service) not in self._calls:
                kind = Trigger if data is None else SetBool
                self._calls[key, service] = node.create_client(kind, f"{names[key]}/{service}")
        self._get = {key: node.create_client(GetParameters, f"{name}/get_parameters") for key, name in names.items()}
        self._set = {key: node.create_client(SetParameters, f"{name}/set_parameters") for key, name in names.items()}
        self._set_all = {key: node.create_client(SetParametersAtomically, f"{name}/set_parameters_atomically")
                         for key, name in names.items()}

    def _stamped(self, msg):
        conversion.set_stamp(msg.header.stamp, self._clock.now().nanoseconds * 1e-9)
        msg.header.frame_id = self.frame
        return msg

    def target(self, position, rotation=None):
        msg = self._stamped(PoseStamped())
        p, o = msg.pose.position, msg.pose.orientation
        p.x, p.y, p.z = (float(value) for value in position)
        if rotation is None:
            o.x = o.y = o.z = o.w = 0.0  # a position alone
        else:
            o.x, o.y, o.z, o.w = (float(value) for value in conversion.quaternion(rotation))
        self._target.publish(msg)

    def push(self, force):
        msg = self._stamped(WrenchStamped())
        f = msg.wrench.force
        f.x, f.y, f.z = (float(value) for value in force)
        self._wrench.publish(msg)
        self.feed.wrench = np.array(force, float)

    def press(self, name, done):
        key, service, data = BUTTONS[name]
        request = Trigger.Request() if data is None else SetBool.Request(data=data)

        def answered(response):
            if response.success and service == "pause":
                self.feed.paused = data
            if response.success and service == "hold":
                self.feed.target = None  # wherever the arm is now
            if response.success and service == "enable":
                self.feed.parameters[key, "enabled"] = data
            done("" if response.success else response.message or "refused")
        self._call(self._calls[key, service], request, answered, done, key)

    def set(self, node, name, value, done):
        request = SetParameters.Request(parameters=[Parameter(name, value=value).to_parameter_msg()])

        def answered(response):
            result = response.results[0]
            done("" if result.successful else result.reason or "refused")
        self._call(self._set[node], request, answered, done, node)

    def set_all(self, node, values, done):
        """Sets all of {name: value} of a node, or none."""
        parameters = [Parameter(name, value=value).to_parameter_msg() for name, value in values.items()]
        self._call(self._set_all[node], SetParametersAtomically.Request(parameters=parameters),
                   lambda response: done("" if response.result.successful else response.result.reason or "refused"),
                   done, node)

    def scenario(self, name, done):
        if self.scenarios is None:
            done("there are no scenarios here")
        else:
            self.scenarios.start(name, done)

    def _call(self, client, request, answered, failed, key):
        if not client.service_is_ready():
            failed(f"no answer: node '{self._names[key]}' is not there")
            return
        future = client.call_async(request)
        with self._lock:
            self._waiting.append((time.monotonic() + ANSWER, future, answered, failed, key))

    def update(self):
        """Hand out answers, give up on late ones, and read the parameters of nodes that appeared."""
        with self._lock:
            ready = [entry for entry in self._waiting if entry[1].done() or time.monotonic() > entry[0]]
            self._waiting = [entry for entry in self._waiting if entry not in ready]
        for _, future, answered, failed, key in ready:
            if future.done() and future.exception() is None:
                answered(future.result())
            else:
                failed(f"no answer from node '{self._names[key]}'")

    def discover(self):
        """Ask nodes that (re)appeared for their parameters. Call about once a second. A killed node's services are seen
        for some time yet, its silence tells earlier."""
        for key, names in self._needed.items():
            there = self._get[key].service_is_ready() and key not in self.feed.missing
            if there and not self._known.get(key):
                self._known[key] = True
                self._call(self._get[key], GetParameters.Request(names=names),
                           lambda response, key=key, names=names: self._learn(key, names, response),
                           lambda text, key=key: self._known.pop(key, None), key)
            elif not there:
                self._known[key] = False

    def _learn(self, key, names, response):
        for name, value in zip(names, response.values):
            value = parameter_value_to_python(value)
            if value is not None:
                self.feed.parameters[key, name] = list(value) if hasattr(value, "typecode") else value
