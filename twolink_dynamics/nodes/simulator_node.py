"""The `simulator` node: the plant in real time."""
from __future__ import annotations

import math
import time

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, Float64MultiArray
from std_srvs.srv import SetBool, Trigger

from ..errors import TwolinkError
from . import conversion
from .base import BEST_EFFORT, RELIABLE, ArmNode, run
from .conversion import doubles
from .diagnostics import Meter, diagnostic_array
from .models import build_plant, build_sensors, build_simulation, outfitted, payload, start_positions

LEDGER = ("kinetic", "potential", "elastic", "input", "external", "dissipated", "impact", "edits", "balance")
LAG = 0.25  # [s] the most that is caught up after a pause of the whole process; what is beyond counts as missed
ANSWER = 2.0  # [s] that lockstep waits for a command; then it goes on without until the next one
PLANT = ("friction.", "flexible.", "contact.", "constraint.", "rotor.", "stops", "effort_limits")
BURST = 1e-3  # [s] most simulated time in one go, so that commands are heard in time


class SimulatorNode(ArmNode):
    """Steps a Simulation on absolute deadlines and tells what happens.

    joint_states (out), effort_controller/commands, external_wrench, ~/set_state (in), ~/reset, ~/step, ~/pause, and
    what one may look at: ~/energy/*, ~/true_joint_states, ~/motor_states, ~/constraint_wrench, ~/contact_wrench,
    /diagnostics.
    Stamps count simulated time on from the start of the node (from 0 with publish_clock, where they are /clock).
    A command lasts `command_timeout` of simulated time; then, and before the first one, `on_timeout` holds.
    Attribute `law`: in composed mode a callable (t, q, qd) -> effort that replaces the topic.
    """

    def __init__(self, **options):
        self.law, self.law_burst = None, 2**31
        self.paused = False
        super().__init__("simulator", **options)
        self.joint_states = self.create_publisher(JointState, "joint_states", RELIABLE)
        self.create_subscription(Float64MultiArray, "effort_controller/commands", self._on_command, BEST_EFFORT)
        self.create_subscription(WrenchStamped, "external_wrench", self._on_wrench, BEST_EFFORT)
        self.create_subscription(JointState, "~/set_state", self._on_set_state, RELIABLE)
        self.create_service(Trigger, "~/reset", self._on_reset)
        self.create_service(Trigger, "~/step", self._on_step)
        self.create_service(SetBool, "~/pause", self._on_pause)
        self.clock = self.create_publisher(Clock, "/clock", RELIABLE) if self.parameters["publish_clock"] else None
        self.view(JointState, "~/true_joint_states", self._fill_true)
        self.view(JointState, "~/motor_states", self._fill_motor)
        self.view(WrenchStamped, "~/constraint_wrench", lambda msg: self._fill_wrench(msg, self.sim.constraint_force))
        self.view(WrenchStamped, "~/contact_wrench", lambda msg: self._fill_wrench(msg, self.sim.contact_force))
        for name in LEDGER:
            self.view(Float64, f"~/energy/{name}", lambda msg, name=name: self._fill_energy(msg, name))
        self.diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", RELIABLE)
        self.next_look = self.next_report = time.perf_counter()

    # -- the plant -----------------------------------------------------------------------------------------------------
    def build(self, arm):
        self.sim = build_simulation(arm, self.parameters)
        self.sensors = build_sensors(arm, self.parameters)
        self.edited = self.parameters["payload.mass"] > 0.0
        self.epoch = None  # the stamp of t = 0, known at the first tick: what the start took is no age of a state
        self.lateness, self.missed, self.steps, self.reported = Meter(), 0, 0, (time.perf_counter(), 0)
        self.msg = JointState(name=list(arm.joint_names))
        self.true_msg = JointState(name=list(arm.joint_names))
        self.msg.header.frame_id = self.parameters["frame_prefix"] + arm.root
        self.effort_limit = np.array(arm.effort_limit)
        self._pace(self.parameters.values)
        self._fresh()
        self.due = time.perf_counter()

    def _fresh(self):
        """What a reset brings back, besides the simulation's own state."""
        self.command = np.zeros(len(self.sim.q))
        self.command_time = -math.inf
        self.wrench_time = None
        self.waiting = None  # whether commands are missing; None until the first step decides
        self.since_state = 0
        self.asked, self.answered = None, False  # when lockstep began to wait for a command; whether they come
        self.heard = 0  # commands in the last report

    def set_law(self, law, rate):
        """Call `law(t, q, qd) -> effort or None` inside this loop, at `rate` [Hz], instead of hearing commands."""
        self.law = law
        self.law_burst = max(1, round(1.0 / (rate * self.sim.dt)))
        self._pace(self.parameters.values)

    def _pace(self, p):
        dt = self.sim.dt
        self.per_state = max(1, round(1.0 / (p["joint_state_rate"] * dt)))
        self.burst = max(1, min(self.per_state, round(BURST / dt), self.law_burst))
        self.period = self.burst * dt / p["real_time_factor"]

    def apply(self, p, names):
        if self.arm is None:
            return
        loaded = any(name.startswith("payload.") for name in names)
        if loaded:
            self.arm.with_payload(*payload(p.values))  # refused before anything has changed
        if any(name.startswith(PLANT) for name in names):
            arm = outfitted(self.bare_arm, p)
            plant = build_plant(arm, p, self.sim.q)
            self.sim.set_plant(plant, initial=plant.assemble(start_positions(arm, p)))
            self.arm = arm
        if loaded:
            self.sim.set_payload(*payload(p.values))
            self.edited = True
        if "gravity" in names:
            self.sim.set_gravity(np.array(p["gravity"]))
            self.edited = True
        if any(name.startswith("sensors.") or name == "seed" for name in names):
            self.sensors = build_sensors(self.arm, p)
        if "on_timeout" in names and self.waiting:
            self.sim.brake(p["on_timeout"] == "brake")
        self._pace(p.values)

    def tick(self, now):
        if self.arm is None:
            self.due = now + 0.05
            return
        if self.epoch is None:
            self.epoch = self.sim.dt if self.parameters["publish_clock"] else self.now()
        if self.asked is not None and not self.paused:
            self.listening = now - self.asked < ANSWER
            if self.listening:
                return  # the deadline stays: the loop listens and comes back
            self.asked, self.answered = None, False
        self.listening = False
        late = now - self.due
        if not self.paused:
            self.lateness.add(late)
            self._advance()
        if late > LAG:
            self.missed += int(late / self.period)
            self.due = now
        self.due += self.period
        if now >= self.next_look:
            self.next_look = max(self.next_look + 1.0 / self.parameters["publish_rate"], now)
            if self.paused:
                self._publish_state()
            self.look()
            if now >= self.next_report:
                self.next_report = now + 1.0
                self._report()

    def _advance(self):
        sim = self.sim
        try:
            if self.law is not None:
                told = self._measured()
                tau = None if told is None else self.law(*told)
                if tau is not None:
                    self.command, self.command_time = tau, sim.t
            self._supervise()
            sim.step(self.command, self.burst)
        except (TwolinkError, np.linalg.LinAlgError) as error:
            self.paused = True
            self.get_logger().error(f"paused: {error} (~/reset and ~/pause with false go on)")
            return
        self.steps += self.burst
        if self.clock is not None:
            self._publish_clock()
        self.since_state += self.burst
        if self.since_state >= self.per_state:
            self.since_state = 0
            self._publish_state()
            if self.answered and self.parameters["lockstep"]:
                self.asked = time.perf_counter()

    def _measured(self):
        """What a law inside this loop is told: (t [s], q, q̇), or None where a sample was lost."""
        sim = self.sim
        if self.sensors is None:
            return self.epoch + sim.t, sim.q, sim.qd
        sample = self.sensors.measure(sim.t, sim.q, sim.qd)
        return None if sample is None else (self.epoch + sample.t, sample.q, sample.qd)

    def _supervise(self):
        """Old commands and old wrenches lose their effect."""
        sim, p = self.sim, self.parameters
        if p["command_timeout"] > 0.0 and sim.t - self.command_time > p["command_timeout"]:
            if self.waiting is not True:
                if self.waiting is False:
                    self.reporter.warn("timeout", f"no effort command for {p['command_timeout']:g} s: "
                                       f"{'brake' if p['on_timeout'] == 'brake' else 'zero effort'}")
                self.waiting = True
                self.command = np.zeros(len(sim.q))
                sim.brake(p["on_timeout"] == "brake")
        elif self.waiting is not False:
            self.waiting = False
            sim.brake(False)
        if self.wrench_time is not None and 0.0 < p["wrench_timeout"] < sim.t - self.wrench_time:
            self.wrench_time = None
            sim.set_external_wrench(np.zeros(3), np.zeros(3))

    # -- in ------------------------------------------------------------------------------------------------------------
    def _on_command(self, msg):
        if self.arm is None or self.law is not None:
            return
        try:
            values = conversion.commands(msg, len(self.command_index), self.command_joints)
        except TwolinkError as error:
            self.reporter.reject("command", error)
            return
        command = np.zeros(self.arm.n)
        command[self.command_index] = values
        self.command, self.command_time = command, self.sim.t
        self.asked, self.answered = None, True
        self.reporter.counts["commands"] += 1

    def _on_wrench(self, msg):
        if self.arm is None:
            return
        try:
            force, torque, frame = conversion.wrench(msg, self.parameters["frame_prefix"], self.arm)
            self.sim.set_external_wrench(force, torque, axes=None if frame == self.arm.root else frame)
        except TwolinkError as error:
            self.reporter.reject("external_wrench", error)
            return
        self.wrench_time = self.sim.t

    def _on_set_state(self, msg):
        if self.arm is None:
            return
        try:
            with self.remarks():
                self.sim.set_state(*conversion.partial_state(msg, self.arm, self.sim.q, self.sim.qd))
        except (TwolinkError, np.linalg.LinAlgError) as error:
            self.reporter.reject("set_state", error)

    def _on_reset(self, request, response):
        if self.arm is None:
            response.success, response.message = False, "there is no arm yet"
            return response
        try:
            with self.remarks():
                self.sim.reset(keep_model=self.edited)  # a live change stays, as the parameters do
        except TwolinkError as error:
            self.paused = True
            response.success, response.message = False, f"paused: {error}"
            return response
        self.sensors = build_sensors(self.arm, self.parameters)
        self._fresh()
        self._publish_state()
        response.success, response.message = True, f"back at t = 0, q = {self.sim.q.tolist()}"
        return response

    def _on_pause(self, request, response):
        self.paused = request.data
        response.success, response.message = True, "paused" if self.paused else "running"
        return response

    def _on_step(self, request, response):
        response.success = self.paused and self.arm is not None
        if response.success:
            self._advance()
            response.message = f"t = {self.sim.t:.6f} s"
        else:
            response.message = "there is no arm yet" if self.arm is None else "pause first: ~/pause with data true"
        return response

    # -- out -----------------------------------------------------------------------------------------------------------
    def _publish_state(self):
        told = self._measured()
        if told is None:
            return  # lost on the way
        (t, q, qd), msg = told, self.msg
        conversion.set_stamp(msg.header.stamp, t)
        msg.position, msg.velocity, msg.effort = doubles(q), doubles(qd), doubles(self.sim.effort)
        self.joint_states.publish(msg)

    def _publish_clock(self):
        msg = Clock()
        conversion.set_stamp(msg.clock, self.epoch + self.sim.t)
        self.clock.publish(msg)

    def _fill(self, msg, q, qd, effort):
        if self.arm is None:
            return False
        msg.name = list(self.arm.joint_names)
        conversion.set_stamp(msg.header.stamp, self.epoch + self.sim.t)
        msg.header.frame_id = self.msg.header.frame_id
        msg.position, msg.velocity, msg.effort = doubles(q), doubles(qd), doubles(effort)
        return True

    def _fill_true(self, msg):
        return self.arm is not None and self._fill(msg, self.sim.q, self.sim.qd, self.sim.effort)

    def _fill_motor(self, msg):
        if self.arm is None or self.sim.theta is None:
            return False
        return self._fill(msg, self.sim.theta, self.sim.thetad, self.sim.effort)

    def _fill_wrench(self, msg, force):
        if self.arm is None or force is None:
            return False
        conversion.set_stamp(msg.header.stamp, self.epoch + self.sim.t)
        msg.header.frame_id = self.msg.header.frame_id
        wrench = np.zeros(6)
        force = np.ravel(force)[:6]
        wrench[:len(force)] = force
        for part, values in ((msg.wrench.force, wrench[:3]), (msg.wrench.torque, wrench[3:])):
            part.x, part.y, part.z = values.tolist()
        return True

    def _fill_energy(self, msg, name):
        if self.arm is None:
            return False
        msg.data = float(getattr(self.sim.ledger, name))
        return True

    def _report(self):
        rate, median, p99, worst = self.lateness.take()
        counts = self.reporter.counts
        (before, steps), self.reported = self.reported, (time.perf_counter(), self.steps)
        pace = (self.steps - steps) * self.sim.dt / max(self.reported[0] - before, 1e-9)
        crowd = 0 if self.law is not None else self.count_publishers("effort_controller/commands")
        crowd = self.alone("effort_controller/commands", "controller", crowd)
        if self.paused:
            state = "paused"
        elif self.waiting:
            state = f"no commands, {'braked' if self.parameters['on_timeout'] == 'brake' else 'zero effort'}"
        else:
            state = crowd
        if self.diagnostics.get_subscription_count():
            saturated = [name for name, effort, limit in zip(self.arm.joint_names, self.sim.effort, self.effort_limit)
                         if limit > 0.0 and abs(effort) >= limit]
            self.diagnostics.publish(diagnostic_array(self.now(), self.get_fully_qualified_name().lstrip("/"), state, {
                "rate [Hz]": rate * self.burst, "simulated seconds per second": pace,
                "jitter median [us]": 1e6 * median, "jitter 99 % [us]": 1e6 * p99,
                "jitter max [us]": 1e6 * worst, "missed ticks": self.missed, "simulated time [s]": self.sim.t,
                "commands per second": counts["commands"] - self.heard,
                "saturated": ", ".join(saturated) or "none",
                "energy balance [J]": float(self.sim.ledger.balance),
                **{key: value for key, value in counts.items() if key.startswith("rejected")}}))
        self.heard = counts["commands"]


def main(args=None):
    """Run the simulator node until SIGINT or SIGTERM; returns the exit status."""
    return run(lambda: [SimulatorNode()], args)


if __name__ == "__main__":
    raise SystemExit(main())
