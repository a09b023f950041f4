"""Scenarios of the table on nodes that are already running: parameters, a reset, the start pose, then the script.

What a running node cannot change (contact, springs, linkages) is refused before anything is touched, with the command
that starts it afresh."""
from __future__ import annotations

import numpy as np
from rclpy.duration import Duration
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ..errors import TwolinkError
from ..motion import plan_motion
from ..scenarios import SCENARIOS
from .base import RELIABLE
from .parameters import TABLES

START = "initial_positions"  # not a live parameter, but a running simulator takes ~/set_state
SETTLED = 0.1  # [s] of simulated time between the start pose and the script


def menu(arm):
    """((name, description), …) of the scenarios that are about this arm."""
    return tuple((s.name, s.description) for s in SCENARIOS.values() if s.urdf == arm.name or s.name == "tracking")


class ScenarioRunner:
    """Runs one scenario at a time; `tick` once per picture."""

    def __init__(self, node, feed, simulator):
        self.feed, self.arm, self.actions = feed, feed.arm, None
        self._request = self._script = self._wrench = None
        self._set_state = node.create_publisher(JointState, f"{simulator}/set_state", RELIABLE)
        self._trajectory = node.create_publisher(JointTrajectory, "joint_trajectory", RELIABLE)

    def start(self, name, done):
        """Begin scenario `name` at the next tick; done(text) tells '' or why not. From any thread."""
        self._request = (name, done)

    def _begin(self, name, done):
        scenario = SCENARIOS.get(name)
        if scenario is None:
            done(f"is none of {', '.join(SCENARIOS)}")
            return
        changes, q0 = self._changes(scenario)
        for node, parameter, value in changes:
            row = next(row for row in TABLES[node] if row.name == parameter)
            if not row.live and value != row.default:
                done(f"needs nodes of its own: twolink demo --scenario {name}")
                return
        self._stop()
        steps = [lambda done, change=change: self.actions.set(*change, done) for change in changes
                 if next(row for row in TABLES[change[0]] if row.name == change[1]).live]
        steps.append(lambda done: self.actions.press("enable", done))
        steps.append(lambda done: self.actions.press("reset", done))
        steps.append(lambda done: self._place(q0, done))
        steps.append(lambda done: self.actions.press("hold", done))

        def follow(text=""):
            if text or not steps:
                if not text:
                    self._script = (sorted(scenario.script(self.arm, scenario.length), key=lambda action: action.at), None)
                done(text)
            else:
                steps.pop(0)(follow)
        follow()

    def _changes(self, scenario):
        """[(node, parameter, value)] and the start pose: what any scenario touches goes back to its default first."""
        values = {}
        for other in SCENARIOS.values():
            for node in ("simulator", "dynamics"):
                for name in (*getattr(other, node), *("kp", "kd", "friction_compensation")[:3 * (node == "dynamics")]):
                    values[node, name] = next(row.default for row in TABLES[node] if row.name == name)
                for action in other.script(self.arm, other.length) if other.urdf == self.arm.name else ():
                    if action.kind == "parameter" and action.data["node"] == node:
                        name = action.data["name"]
                        values[node, name] = next(row.default for row in TABLES[node] if row.name == name)
        q0 = scenario.simulator.get(START)
        if scenario.name in ("tracking", "flexible"):
            motion = plan_motion(self.arm, max(scenario.length - 2.0, 1.0))
            q0 = motion.q0
            values["dynamics", "kp"], values["dynamics", "kd"] = motion.kp.tolist(), motion.kd.tolist()
            values["dynamics", "friction_compensation"] = True
        values.update({("simulator", k): v for k, v in scenario.simulator.items()})
        values.update({("dynamics", k): v for k, v in scenario.dynamics.items()})
        fixed = ("tip", START)
        return [(node, name, value) for (node, name), value in values.items() if name not in fixed], q0

    def _place(self, q0, done):
        if q0 is not None:
            self._set_state.publish(JointState(name=list(self.arm.joint_names), position=[float(x) for x in q0]))
        done("")

    def _stop(self):
        self._script = None
        if self._wrench is not None:
            self._wrench = None
            self.actions.push(np.zeros(3))

    def tick(self):
        """Perform what is due."""
        if self._request is not None:
            request, self._request = self._request, None
            try:
                self._begin(*request)
            except TwolinkError as error:
                request[1](str(error))
        t = self.feed.stamp
        if self._script is None or t is None:
            return
        actions, began = self._script
        if began is None or t < began - SETTLED - 1e-3:
            if began is not None:  # somebody reset the simulator
                self._stop()
                return
            self._script = (actions, t + SETTLED)
            return
        while actions and actions[0].at <= t - began:
            self._perform(actions.pop(0), began)
        if self._wrench is not None:
            force, until = self._wrench
            if t >= until:
                self._wrench = None
                self.actions.push(np.zeros(3))
            else:
                self.actions.push(force)
        elif not actions:
            self._script = None

    def _perform(self, action, began):
        data = action.data
        if action.kind == "trajectory":
            msg = JointTrajectory(joint_names=list(data["joints"]))
            msg.points = [JointTrajectoryPoint(positions=[float(x) for x in point.positions],
                                               time_from_start=Duration(seconds=point.time).to_msg())
                          for point in data["points"]]
            self._trajectory.publish(msg)
        elif action.kind == "pose":
            self.actions.target(np.array(data["position"], float))
        elif action.kind == "wrench":
            self._wrench = (np.array(data["force"], float), began + action.at + data["seconds"])
        elif action.kind == "parameter":
            self.actions.set(data["node"], data["name"], data["value"], lambda text: None)
