"""The `dynamics` node: torques for an arm, from its joint states."""
from __future__ import annotations

import time

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped, WrenchStamped
from rclpy.parameter import Parameter as RosParameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from ..arm import State
from ..control import Controller, EffortToCommand, Handover
from ..control.law import TERMS
from ..dynamics import Dynamics
from ..errors import InputError, TwolinkError
from . import conversion
from .action import trajectory_action
from .base import BEST_EFFORT, COMMANDS, RELIABLE, ArmNode, run
from .describe import Description
from .diagnostics import Meter, diagnostic_array
from .models import build_laws, outfitted, payload

SHOWN_LAWS = ("gravity_compensation", "computed_torque", "impedance")
WATCH = 0.01  # [s] how often the watchdog looks
UNKNOWN = "unknown: the stamps do not keep pace with this clock"
HISTORY = 1000.0  # [s] how far before the first state a stamp may lie


class DynamicsNode(ArmNode):
    """Runs a Controller at every joint state.

    joint_states, joint_trajectory, target_joint, target_pose, target_wrench (in), effort_controller/commands and the
    commands of each law (out), ~/enable, ~/hold, ~/describe, and what one may look at: ~/torque/*, ~/mass_matrix,
    ~/reference, ~/tracking_error, ~/current_pose, /diagnostics.
    The controller's time is the joint states' stamps; only the watchdog measures time of its own.
    ~/follow_joint_trajectory is served where control_msgs is installed.
    Attribute `direct`: True in composed mode, when the simulator's loop calls `law` and the topic is not listened to.
    """

    def __init__(self, **options):
        self.controller = None
        self.direct = False
        super().__init__("dynamics", **options)
        self.create_subscription(JointState, "joint_states", self._on_joint_state, BEST_EFFORT)
        self.create_subscription(JointTrajectory, "joint_trajectory", self._guarded(self.follow, "trajectory"),
                                 RELIABLE)
        self.create_subscription(JointState, "target_joint", self._guarded(self._target_joint), RELIABLE)
        self.create_subscription(PoseStamped, "target_pose", self._guarded(self._target_pose), RELIABLE)
        self.create_subscription(WrenchStamped, "target_wrench", self._guarded(self._target_wrench), RELIABLE)
        self.create_service(SetBool, "~/enable", self._on_enable)
        self.create_service(Trigger, "~/hold", self._on_hold)
        self.create_service(Trigger, "~/describe", self._on_describe)
        self.efforts = self.create_publisher(Float64MultiArray, "effort_controller/commands", COMMANDS)
        self.command = Float64MultiArray()
        self.law_topics = [(name, self.create_publisher(Float64MultiArray, f"{name}/commands", COMMANDS))
                           for name in SHOWN_LAWS]
        self.wanted_laws = []
        for term in (*TERMS, "total"):
            self.view(JointState, f"~/torque/{term}", lambda msg, term=term: self._fill_term(msg, term))
        self.view(Float64MultiArray, "~/mass_matrix", self._fill_mass_matrix)
        self.view(JointState, "~/reference", self._fill_reference)
        self.view(JointState, "~/tracking_error", self._fill_error)
        self.view(PoseStamped, "~/current_pose", self._fill_pose)
        self.diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", RELIABLE)
        self.action = trajectory_action(self)
        self.next_look = self.next_report = time.perf_counter()

    # -- the controller ------------------------------------------------------------------------------------------------
    def build(self, arm):
        p = self.parameters
        self.dynamics = Dynamics(arm, live=True)
        if p["payload.mass"] > 0.0:
            self.dynamics.set_payload(*payload(p.values))
        self.residual = self._load_residual(arm)
        laws = build_laws(arm, self.dynamics, p.values, self._residual_of(p.values))
        self.to_command = self._to_command(arm, p.values)
        self.whole = self.command_index == list(range(arm.n)) and self.to_command is None
        self.controller = Controller(
            self.dynamics, p["controller"], laws, torque_rate_limit=p["torque_rate_limit"] or None,
            state_timeout=p["state_timeout"], safe_mode=p["safe_mode"], enabled=p["enabled"])
        self.reader = conversion.JointReader(arm.joint_names)
        self.differentiate = conversion.Differentiator(arm)
        self.ages = conversion.Ages(min(p["state_timeout"], 0.1))
        self.base = None
        self.intervals, self.age, self.work = Meter(), Meter(), Meter()
        self.last_arrival, self.was_late, self.too_slow = None, False, 0
        self.pose_target = None
        self.terms = None
        self.frame_id = p["frame_prefix"] + arm.root
        self.description = Description()

    def _load_residual(self, arm):
        if not self.parameters["residual.file"]:
            return None
        from ..residual import Residual
        return Residual.load(self.parameters["residual.file"], arm)

    def _residual_of(self, values):
        if not values["residual.enabled"]:
            return None
        if self.residual is None:
            raise InputError("parameter 'residual.enabled': no residual.file is given")
        return self.residual.torque

    @staticmethod
    def _to_command(arm, values):
        if not values["effort_to_command"]:
            return None
        return EffortToCommand.from_factors(values["effort_to_command"], arm.n)

    def apply(self, p, names):
        if self.controller is None:
            return
        values, arm, dynamics, controller = p.values, self.arm, self.dynamics, self.controller
        loaded = any(name.startswith("payload.") for name in names)
        rotors = any(name.startswith("rotor.") for name in names)
        # first everything that can be refused ...
        if loaded:
            arm.with_payload(*payload(values))
        if rotors:
            arm = outfitted(self.bare_arm, p)
            dynamics = Dynamics(arm, live=True)
            dynamics.set_gravity(np.array(values["gravity"]))
            if values["payload.mass"] > 0.0:
                dynamics.set_payload(*payload(values))
        rebuilt = ("kp", "kd", "pd.kp", "pd.kd", "stiffness", "damping", "damping_ratio", "friction.coulomb",
                   "friction.viscous", "friction_compensation", "residual.enabled")
        laws = {}
        if rotors or names & set(rebuilt):
            laws = build_laws(arm, dynamics, values, self._residual_of(values))
        to_command = self._to_command(arm, values)
        if "controller" in names:
            controller.select(values["controller"])
        # ... then what cannot
        if loaded and not rotors:
            dynamics.set_payload(*payload(values))
        if "gravity" in names:
            dynamics.set_gravity(np.array(values["gravity"]))
        self.arm, self.dynamics, controller.arm, controller.dynamics = arm, dynamics, arm, dynamics
        for name, law in laws.items():
            controller.set_law(name, law)
        if "impedance" in laws and self.pose_target is not None:
            laws["impedance"].set_target(*self.pose_target)
        if "enabled" in names:
            controller.enable(values["enabled"])
        if "torque_rate_limit" in names:
            controller.handover = Handover(values["torque_rate_limit"] or None, arm.n)
        if "state_timeout" in names:
            self.too_slow = 0
        controller.supervisor.state_timeout = values["state_timeout"]
        controller.supervisor.safe_mode = values["safe_mode"]
        self.to_command = to_command
        self.whole = self.command_index == list(range(self.arm.n)) and to_command is None

    # -- the loop ------------------------------------------------------------------------------------------------------
    def time_of(self, stamp):
        """Controller time [s] of a stamp: since HISTORY before the first state, so that a double resolves
        picoseconds."""
        if self.base is None:
            self.base = stamp.sec - HISTORY
        return stamp.sec - self.base + 1e-9 * stamp.nanosec

    def _wall(self):
        return self.now() if self.parameters_use_sim_time() else time.time()

    def parameters_use_sim_time(self):
        """True when this node's clock is /clock."""
        return self._time_source.ros_time_is_active

    def _on_joint_state(self, msg):
        if self.controller is None or self.direct:
            return
        began = time.perf_counter()
        try:
            q, qd = self.reader.read(msg)
        except TwolinkError as error:
            self.reporter.reject("joint_states", error)
            return
        stamp, now = msg.header.stamp, self._wall()
        if stamp.sec == 0 and stamp.nanosec == 0:
            self.reporter.once("stamp", "joint_states are not stamped: their arrival is taken as their time")
            conversion.set_stamp(stamp, now)
        t = self.time_of(stamp)
        before = self.controller.supervisor.time
        if before is not None and t < before:  # before its age is judged, which would be large
            self._stepped_back()
        if qd is None:
            self.reporter.once("velocity", "joint_states have no velocities: positions are differentiated")
            qd = self.differentiate(t, q)
            if qd is None:
                return
        age = self.ages(t, now - self.base)
        self._step(t, State(q, qd), age)
        if self.last_arrival is not None:
            self.intervals.add(began - self.last_arrival)
            if began - self.last_arrival > self.controller.supervisor.state_timeout:
                self._say_too_slow(began - self.last_arrival)
        self.last_arrival, self.last_wall = began, now
        if self.ages.known:
            self.age.add(age)
        self.work.add(time.perf_counter() - began)

    def law(self, t, q, qd):
        """The effort (n,) at time t [s] of the state q, q̇ (n,), or None to send nothing: for a simulator's own
        loop."""
        began = time.perf_counter()
        if self.base is None:
            self.base = 0.0
        before = self.controller.supervisor.time
        if before is not None and t < before:
            self._stepped_back()
        out = self._step(t, State(q, qd), 0.0)
        if self.last_arrival is not None:
            self.intervals.add(began - self.last_arrival)
        self.last_arrival, self.last_wall = began, self._wall()
        self.work.add(time.perf_counter() - began)
        return out.efforts if out.send else None

    def _stepped_back(self):
        self.ages.reset()
        self.differentiate.reset()
        self.pose_target = None

    def _say_too_slow(self, interval):
        """States that are always older than state_timeout allow no control: say so, once."""
        self.too_slow += 1
        if self.too_slow == 5:
            timeout = self.controller.supervisor.state_timeout
            self.reporter.warn("slow", f"joint_states come every {interval:.3g} s, and state_timeout is {timeout:g} s: "
                               f"set state_timeout to {3.0 * interval:.2g} or publish faster")

    def _step(self, t, state, age):
        out = self.controller.step(t, state, age)
        if out.send and not self.direct:
            self._publish(self.efforts, out.efforts)
        for name, publisher in self.wanted_laws:
            efforts = out.efforts if name == out.law else self.controller.efforts_of(name)
            if efforts is not None:
                self._publish(publisher, efforts)
        return out

    def _publish(self, publisher, efforts):
        if not self.whole:
            efforts = (efforts if self.to_command is None else self.to_command(efforts))[self.command_index]
        self.command.data = conversion.doubles(efforts)
        publisher.publish(self.command)

    def tick(self, now):
        late, self.due = now - self.due > WATCH, now + WATCH
        if self.controller is None:
            return
        # held up itself (a long trajectory, a stopped process): the states that wait are read before any is missed
        held_up, self.was_late = late and not self.was_late, late
        if self.last_arrival is not None and not self.direct and not held_up:
            silent = self._wall() - self.last_wall if self.parameters_use_sim_time() else now - self.last_arrival
            if silent > self.controller.supervisor.state_timeout:
                self._step(self.controller.supervisor.time + silent, None, 0.0)
        while self.controller.notices:
            self.reporter.say(*self.controller.notices.popleft())
        self.description.poll()
        if now >= self.next_look:
            self.next_look = max(self.next_look + 1.0 / self.parameters["publish_rate"], now)
            self.wanted_laws = [(name, topic) for name, topic in self.law_topics
                                if topic.get_subscription_count() and name in self.controller.laws]
            self.terms = None
            if self.action is not None:
                self.action.tick()
            self.look()
            if now >= self.next_report:
                self.next_report = now + 1.0
                self._report()

    # -- in ------------------------------------------------------------------------------------------------------------
    def _guarded(self, handle, what=None):
        """A callback that reports what `handle(msg)` refuses, as `what`."""
        what = what or handle.__name__.lstrip("_")

        def callback(msg):
            if self.controller is None:
                self.reporter.reject(what, "there is no arm yet")
                return
            try:
                handle(msg)
            except TwolinkError as error:
                self.reporter.reject(what, error)
        return callback

    def follow(self, msg):
        """Follow a trajectory_msgs/JointTrajectory; the source followed. Raises TwolinkError where it is refused."""
        p, stamp = self.parameters, msg.header.stamp
        if self.controller.supervisor.time is None:
            raise InputError(f"trajectory: {self.controller.last.fault}")
        points = conversion.points(msg)
        start = self.time_of(stamp) if stamp.sec or stamp.nanosec else 0.0
        if start < 0.0:
            raise InputError(f"trajectory: its stamp lies {self.controller.supervisor.time - start:.0f} s in the past")
        source = self.controller.trajectory(list(msg.joint_names), points, stamp=start,
                                            allow_partial=p["allow_partial_joints_goal"], effort=p["trajectory_effort"])
        if getattr(source, "ignored_effort", False):
            self.reporter.once("trajectory effort", "the trajectory's effort is ignored; trajectory_effort: add uses "
                          "it")
        return source

    def _target_joint(self, msg):
        reference = self.controller.reference()
        if reference is None:
            raise InputError(f"target_joint: {self.controller.last.fault}")
        q, _ = conversion.partial_state(msg, self.arm, reference.q, reference.qd, "target_joint")
        self.controller.move_to(q)

    def _impedance(self, what):
        if "impedance" not in self.controller.laws:
            raise InputError(f"{what}: arm '{self.arm.name}' has no single tip, set parameter tip")
        return self.controller.laws["impedance"]

    def _axes(self, frame):
        """Pose (rotation, position) of a link's frame in the root frame, now."""
        if frame == self.arm.root:
            return np.eye(3), np.zeros(3)
        state = self.controller.supervisor.state
        if state is None:
            raise InputError(f"frame '{frame}' moves with the arm, and there is no joint state yet")
        return self.dynamics.tip_pose(state.q, frame)

    def _target_pose(self, msg):
        law = self._impedance("target_pose")
        rotation, position, frame = conversion.pose(msg, self.parameters["frame_prefix"], self.arm)
        R, p = self._axes(frame)
        self.pose_target = (R @ position + p, None if rotation is None else R @ rotation)
        law.set_target(*self.pose_target)

    def _target_wrench(self, msg):
        law = self._impedance("target_wrench")
        force, torque, frame = conversion.wrench(msg, self.parameters["frame_prefix"], self.arm, "target_wrench")
        R, _ = self._axes(frame)
        law.set_wrench(R @ force, R @ torque)

    def _on_enable(self, request, response):
        if self.controller is None:
            response.success, response.message = False, "there is no arm yet"
            return response
        self.set_parameters([RosParameter("enabled", value=request.data)])
        self.controller.enable(request.data)
        response.success, response.message = True, "enabled" if request.data else "disabled"
        return response

    def _on_hold(self, request, response):
        try:
            if self.controller is None:
                raise InputError("there is no arm yet")
            self.controller.hold()
            self.pose_target = None
            response.success, response.message = True, "holding"
        except TwolinkError as error:
            response.success, response.message = False, str(error)
        return response

    async def _on_describe(self, request, response):
        if self.controller is None:
            response.success, response.message = False, "there is no arm yet"
            return response
        text = await self.description.of(self.arm)
        changed = ", ".join(f"{name} = {value}" for name, value in self.parameters.changed().items()
                            if name != "robot_description")
        response.success = True
        response.message = (f"{text}\n\ncontroller: {self.controller.law}, "
                            f"{'enabled' if self.controller.enabled else 'disabled'}, mode "
                            f"{self.controller.last.mode}\n"
                            f"parameters: {changed or 'all at their defaults'}")
        return response

    # -- out -----------------------------------------------------------------------------------------------------------
    def _head(self, msg):
        t = self.controller.supervisor.time
        if t is None:
            return False
        conversion.set_stamp(msg.header.stamp, t + self.base)
        msg.header.frame_id = self.frame_id
        return True

    def _fill_term(self, msg, term):
        if self.terms is None:
            self.terms = self.controller.terms()
        if self.terms is None or not self._head(msg):
            return False
        msg.name, msg.effort = list(self.arm.joint_names), getattr(self.terms, term).tolist()
        return True

    def _fill_mass_matrix(self, msg):
        state, n = self.controller.supervisor.state, self.arm.n
        if state is None:
            return False
        msg.layout.dim = [MultiArrayDimension(label="row", size=n, stride=n * n),
                          MultiArrayDimension(label="column", size=n, stride=n)]
        msg.data = np.ravel(self.dynamics.mass_matrix(state.q)).tolist()
        return True

    def _fill_reference(self, msg):
        reference = self.controller.last.reference
        if reference is None or not self._head(msg):
            return False
        msg.name = list(self.arm.joint_names)
        msg.position, msg.velocity = np.array(reference.q).tolist(), np.array(reference.qd).tolist()
        return True

    def _fill_error(self, msg):
        reference, state = self.controller.last.reference, self.controller.supervisor.state
        if reference is None or state is None or not self._head(msg):
            return False
        msg.name = list(self.arm.joint_names)
        msg.position = self.arm.error(reference.q, state.q).tolist()
        msg.velocity = (reference.qd - state.qd).tolist()
        return True

    def _fill_pose(self, msg):
        state = self.controller.supervisor.state
        if state is None or self.arm.tip is None or not self._head(msg):
            return False
        rotation, position = self.dynamics.tip_pose(state.q)
        p, o = msg.pose.position, msg.pose.orientation
        p.x, p.y, p.z = position.tolist()
        o.x, o.y, o.z, o.w = conversion.quaternion(rotation).tolist()
        return True

    def _report(self):
        rate, interval, interval99, interval_max = self.intervals.take()
        _, age, age99, _ = self.age.take()
        _, work, work99, _ = self.work.take()
        if not self.diagnostics.get_subscription_count():
            return
        out = self.controller.last
        limit = self.controller.limits.limit
        saturated = [name for name, effort, most in zip(self.arm.joint_names, out.efforts, limit)
                     if most > 0.0 and abs(effort) >= most]
        problem = (out.fault or self.alone("joint_states", "simulator", self.count_publishers("joint_states"))
                   or ("" if out.mode == "active" else out.mode))
        self.diagnostics.publish(diagnostic_array(
            self.now(), self.get_fully_qualified_name().lstrip("/"), problem, {
                "mode": out.mode, "controller": out.law, "rate [Hz]": rate, "interval median [us]": 1e6 * interval,
                "jitter 99 % [us]": 1e6 * (interval99 - interval), "jitter max [us]": 1e6 * (interval_max - interval),
                **({"age median [us]": 1e6 * age, "age 99 % [us]": 1e6 * age99} if age == age else
                   {"age median [us]": UNKNOWN, "age 99 % [us]": UNKNOWN}), "work median [us]": 1e6 * work,
                "work 99 % [us]": 1e6 * work99, "saturated": ", ".join(saturated) or "none",
                **{key: value for key, value in self.reporter.counts.items() if key.startswith("rejected")}}))


def main(args=None):
    """Run the dynamics node until SIGINT or SIGTERM; returns the exit status."""
    return run(lambda: [DynamicsNode()], args)


if __name__ == "__main__":
    raise SystemExit(main())
