"""Scenarios of the table on nodes that are already running: parameters, a reset, the start pose, then the script.

What a running node cannot change (another arm, say) is refused before anything is touched, with the command that
starts it afresh."""
from __future__ import annotations

import time

import numpy as np
from rclpy.duration import Duration
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ..errors import TwolinkError
from ..motion import plan_motion
from ..scenarios import PLANNED, SCENARIOS, Action
from .base import RELIABLE
from .parameters import TABLES

START = "initial_positions"  # not a live parameter, but a running simulator takes ~/set_state
SELDOM = (START, "tip", "dt", "joint_state_rate")  # left as they are
NEAR, PATIENCE = 1e-3, 3.0  # [rad], [s] for the arm to be in its start pose
SETTLED = 0.1  # [s] of simulated time between the start pose and the script


def menu(arm):
    """((name, description), …) of the scenarios that are about this arm."""
    return tuple((s.name, s.description) for s in SCENARIOS.values() if s.urdf == arm.name or s.name == "tracking")


class Plan:
    """What a scenario means for running nodes.

    parameters   {(node, name): value} to set; what other scenarios leave behind goes back to its default
    fixed        names of the parameters that a running node cannot change
    q0           start pose (n,) or None        script   its actions in order
    """

    def __init__(self, scenario, arm):
        tables = {node: {row.name: row for row in TABLES[node]} for node in ("simulator", "dynamics")}
        values = {key: tables[key[0]][key[1]].default for key in touched(arm)}
        self.q0 = scenario.simulator.get(START)
        if scenario.script == PLANNED:
            motion = plan_motion(arm, max(scenario.length - 2.0, 1.0))
            self.q0 = motion.q0
            values.update({("dynamics", "kp"): motion.kp.tolist(), ("dynamics", "kd"): motion.kd.tolist(),
                           ("dynamics", "friction_compensation"): True})
            self.script = [Action(0.5, "trajectory", {"joints": arm.joint_names, "points": motion.points})]
        else:
            self.script = sorted(scenario.script(arm, scenario.length), key=lambda action: action.at)
        for node in tables:
            values.update({(node, name): value for name, value in getattr(scenario, node).items()})
        self.fixed = [name for (node, name), value in values.items()
                      if not tables[node][name].live and name not in SELDOM and value != tables[node][name].default]
        self.parameters = {(node, name): value for (node, name), value in values.items() if tables[node][name].live
                           and name not in SELDOM}


def touched(arm):
    """{(node, name)} of all parameters that some scenario of this arm changes."""
    keys = {("dynamics", name) for name in ("kp", "kd", "friction_compensation", "controller")}
    for scenario in SCENARIOS.values():
        if scenario.urdf == arm.name:
            keys |= {(node, name) for node in ("simulator", "dynamics") for name in getattr(scenario, node)}
            if scenario.script != PLANNED:
                keys |= {(action.data["node"], action.data["name"]) for action in scenario.script(arm, scenario.length)
                         if action.kind == "parameter"}
    return keys


class ScenarioRunner:
    """Runs one scenario at a time; `tick` once per picture."""

    def __init__(self, node, feed, simulator):
        self.feed, self.arm, self.actions = feed, feed.arm, None
        self._request = self._script = self._wrench = self._placing = None
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
        plan = Plan(scenario, self.arm)
        if plan.fixed:
            done(f"needs nodes of its own: twolink demo --scenario {name}")
            return
        self._stop()
        steps = []
        for node in ("simulator", "dynamics"):  # each at once: springs need rotors
            values = {name: value for (key, name), value in plan.parameters.items() if key == node}
            if values:
                steps.append(lambda done, node=node, values=values: self.actions.set_all(node, values, done))
        # a controller keeps its reference, so it starts anew where the arm was put; the step tells it where that is
        press = [lambda done, button=button: self.actions.press(button, done)
                 for button in ("reset", "pause", "disable", "step", "enable", "resume")]
        steps += [*press[:3], lambda done: self._place(plan.q0, done), *press[3:]]

        def follow(text=""):
            if text:
                done(text)
            elif steps:
                steps.pop(0)(follow)
            else:
                self._script = (plan.script, None)
                done("")
        follow()

    def _place(self, q0, done):
        if q0 is not None:
            self._set_state.publish(JointState(name=list(self.arm.joint_names), position=[float(x) for x in q0]))
            self._placing = (np.array(q0, float), time.monotonic() + PATIENCE, done)
        else:
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
        if self._placing is not None:
            q0, deadline, done = self._placing
            there = self.feed.q is not None and np.abs(self.feed.q - q0).max() < NEAR
            if there or time.monotonic() > deadline:
                self._placing = None
                done("" if there else "the simulator did not take the start pose")
                return
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
