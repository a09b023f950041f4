"""A bench over ROS topics: the simulator node or a real arm with ros2_control, for the experiments of model_tests."""
from __future__ import annotations

import time
from collections import deque

import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ..arm import Reference
from ..errors import InputError, choices
from ..model_tests.bench import BANDWIDTH, BenchStopped, EffortBench, Guard
from ..trajectory import Trajectory
from .base import BEST_EFFORT, RELIABLE

MODES = ("effort", "trajectory")
# A loop wants the newest state only; a recording wants all of them, however late this process is.
QUEUE = {"effort": BEST_EFFORT, "trajectory": QoSProfile(depth=5000, reliability=ReliabilityPolicy.BEST_EFFORT)}
DISCOVERY = 2.0  # [s] to hear of others who command the arm
POINT_EVERY = 0.02  # [s] between the points of a trajectory that is sent
AHEAD = 0.5  # [s] between sending a trajectory and its start: the slowest way to the arm's controller
CHUNK, OVERLAP, STOPPING = 1.0, 1.5, 1.0  # [s] sent at once; beyond that; and from there to rest
SETTLED = 0.5  # [s] recorded after a trajectory's end
REACTION = 0.25  # most that 2 ω (the loop's gain on velocity errors) may be of 1 / (time between the states it sees)
RECENT = 400  # states whose distance in time is looked at


class RosBench(EffortBench):
    """Follows motions on an arm that speaks `joint_states`, and listens to efforts or to trajectories.

    mode       "effort": a command for every joint state on `commands` (std_msgs/Float64MultiArray, in `command_joints`
               order, as forward_command_controller takes it); "trajectory": whole motions on `joint_trajectory`
               (trajectory_msgs/JointTrajectory), followed by the arm's own controller, efforts as joint_states say
    patience   [s] without joint states after which the arm counts as lost, and to wait for it at the start
    bandwidth  [rad/s] of the position loop of "effort", at most: before each motion it is lowered to what the distance
               of the joint states received lately allows (REACTION), since a late loop asks for efforts nobody needs
    recorded   Trajectory of the motion followed last, as far as it came (trajectory mode), or None
    Topics are relative to `namespace`. Use as a context manager. Raises BenchStopped where the arm is not there, stops
    talking, lacks a joint, a velocity or an effort, or where somebody else commands it too.
    """

    def __init__(self, arm, mode="effort", *, namespace="", joint_states="joint_states",
                 commands="effort_controller/commands", trajectory="joint_trajectory", command_joints=None,
                 patience=5.0, bandwidth=BANDWIDTH):
        super().__init__(arm, bandwidth)
        if mode not in MODES:
            raise InputError(f"mode '{mode}' is none of {choices(MODES)}")
        order = arm.joint_names if not command_joints else tuple(command_joints)
        if sorted(order) != sorted(arm.joint_names):
            raise InputError(f"command joints {choices(order)} are not the arm's {choices(arm.joint_names)}")
        self.mode, self.patience = mode, patience
        self.order = [arm.index(name) for name in order]
        self._sample, self._count, self._zero = None, 0, None
        self._queue = []
        self._steps, self.most, self.bandwidth, self.recorded = deque(maxlen=RECENT), bandwidth, bandwidth, None
        self.context = rclpy.Context()
        rclpy.init(context=self.context, signal_handler_options=SignalHandlerOptions.NO)
        try:
            self.node = rclpy.create_node("model_bench", context=self.context, namespace=namespace or None)
            self.executor = SingleThreadedExecutor(context=self.context)
            self.executor.add_node(self.node)
            self.node.create_subscription(JointState, joint_states, self._on_state, QUEUE[mode])
            if mode == "effort":
                self.publisher = self.node.create_publisher(Float64MultiArray, commands, RELIABLE)
            else:
                self.publisher = self.node.create_publisher(JointTrajectory, trajectory, RELIABLE)
            self._wait_for_arm()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Leaves ROS; nothing is commanded any more, so that the arm's own command timeout takes over."""
        if self.context.ok():
            rclpy.shutdown(context=self.context)

    # -- talking -------------------------------------------------------------------------------------------------------
    def _on_state(self, msg):
        names = list(msg.name)
        missing = [name for name in self.arm.joint_names if name not in names]
        if missing:
            return  # a message about other joints
        at = [names.index(name) for name in self.arm.joint_names]
        for what in ("position", "velocity", "effort"):
            if len(getattr(msg, what)) != len(names):
                raise BenchStopped(f"joint_states have {len(getattr(msg, what))} values of {what} for {len(names)} "
                                   "joints; the tests need position, velocity and effort")
        stamp = msg.header.stamp.sec + 1e-9 * msg.header.stamp.nanosec
        values = [np.array(getattr(msg, what))[at] for what in ("position", "velocity", "effort")]
        if not np.isfinite(values).all():
            raise BenchStopped("joint_states are not finite")
        if self._zero is None:
            self._zero = stamp
        if self._sample is not None and stamp - self._zero < self._sample[0]:
            raise BenchStopped("the time of joint_states went back: somebody reset the arm")
        if self._sample is not None:
            self._steps.append(stamp - self._zero - self._sample[0])
        self._sample = (stamp - self._zero, *values)
        if self.mode == "trajectory":
            self._queue.append(self._sample)
        self._count += 1

    def _next(self):
        """The next joint state: (t, q, qd, effort)."""
        seen, deadline = self._count, time.perf_counter() + self.patience
        while self._count == seen:
            self.executor.spin_once(timeout_sec=0.1)
            if time.perf_counter() > deadline:
                raise BenchStopped(f"no joint_states with {choices(self.arm.joint_names)} for {self.patience:g} s")
        return self._sample

    def _drain(self):
        """Takes what is queued, so that the next joint state is a new one. One turn of the executor without any tells
        nothing: it may have served something else."""
        deadline = time.perf_counter() + self.patience
        empty = 0
        while empty < 3 and time.perf_counter() < deadline:
            seen = self._count
            self.executor.spin_once(timeout_sec=0.0)
            empty = empty + 1 if self._count == seen else 0

    def _news(self):
        """All joint states since the last call, at least one: [(t, q, qd, effort)]."""
        if not self._queue:
            self._next()
        self._drain()
        self._queue, news = [], self._queue
        return news

    def _wait_for_arm(self):
        deadline = time.perf_counter() + self.patience
        self._next()
        topic = self.publisher.topic_name
        while self.publisher.get_subscription_count() == 0:
            self.executor.spin_once(timeout_sec=0.05)
            if time.perf_counter() > deadline:
                raise BenchStopped(f"nobody listens to {topic}")
        settled = time.perf_counter() + DISCOVERY
        while time.perf_counter() < settled:
            self.executor.spin_once(timeout_sec=0.05)
        self._check_alone()

    def _check_alone(self):
        topic = self.publisher.topic_name
        if self.node.count_publishers(topic) > 1:
            names = sorted(info.node_name for info in self.node.get_publishers_info_by_topic(topic))
            names.remove(self.node.get_name())
            raise BenchStopped(f"{choices(names)} also commands {topic}: disable it first")

    def state(self):
        self._drain()
        return self._next()[:3]

    def _adapt(self):
        """Sets the loop's bandwidth by the 99 % quantile of the recent distances of joint states."""
        step = float(np.quantile(self._steps, 0.99)) if self._steps else 0.0
        self.bandwidth = min(self.most, 0.5 * REACTION / step) if step > 0.0 else self.most
        self.kp, self.kd = self.bandwidth**2, 2.0 * self.bandwidth

    def exchange(self, effort):
        self.publisher.publish(Float64MultiArray(data=[float(effort[i]) for i in self.order]))
        return self._next()

    # -- whole trajectories --------------------------------------------------------------------------------------------
    def follow(self, motion, progress=None):
        self._check_alone()
        if self.mode == "effort":
            self._adapt()
            return super().follow(motion, progress)
        self.recorded = None
        if np.abs(self.arm.error(motion.sample(0.0).q, self.state()[1])).max() > 0.02:
            self.approach(motion.sample(0.0).q)
        message = self._piece(motion, 0.0)  # made before the clock is read: one that comes late makes the arm jump
        self._drain()
        start = self._next()[0] + AHEAD  # on the arm's own clock, so that both know where it should be when
        self._send(message, start)
        due = CHUNK
        rows, said, guard, self._queue = [], 0.0, Guard(self.arm), []
        try:
            while not rows or rows[-1][0] < motion.duration + SETTLED:
                news = self._news()
                rows += [(t - start, *q.tolist(), *qd.tolist(), *effort.tolist()) for t, q, qd, effort in news
                         if 0.0 <= t - start]
                t, q, qd, effort = news[-1]
                t -= start
                if t < 0.0:
                    continue
                if t > due:
                    due = t + CHUNK
                    if t + AHEAD < motion.duration:
                        self._send(self._piece(motion, t + AHEAD), start + t + AHEAD)
                guard.check(t, q, qd, effort, motion.sample(min(t, motion.duration)).q)
                if progress is not None and t - said > 0.5:
                    said = t
                    progress(min(said / motion.duration, 1.0))
        except (BenchStopped, KeyboardInterrupt):
            self.stop()
            raise
        finally:
            self.recorded = self._trajectory(rows)
        return self.recorded

    def _send(self, message, start):
        """Publishes a trajectory that is to begin at `start` [s] on the clock of the samples."""
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(round((self._zero + start) * 1e9), 10**9)
        self.publisher.publish(message)

    def _piece(self, motion, begin):
        """The motion from `begin` on, as far as it is to be followed before the next message replaces this one, and to
        rest: long messages keep a controller busy, and one whose sender is gone must stop."""
        message = JointTrajectory(joint_names=list(self.arm.joint_names))
        end = min(begin + CHUNK + OVERLAP, motion.duration)
        times = np.append(np.arange(begin, end - 0.5 * POINT_EVERY, POINT_EVERY), end)
        references = [motion.sample(t) for t in times]
        last = references[-1]
        if end < motion.duration:
            rest = np.clip(last.q + 0.5 * STOPPING * last.qd, self.arm.lower, self.arm.upper)
            times = np.append(times, end + STOPPING)
            references.append(Reference(rest, np.zeros(self.arm.n), np.zeros(self.arm.n)))
        for t, reference in zip(times, references):
            point = JointTrajectoryPoint(positions=reference.q.tolist(), velocities=reference.qd.tolist(),
                                         accelerations=reference.qdd.tolist())
            point.time_from_start.sec, point.time_from_start.nanosec = divmod(round((t - begin) * 1e9), 10**9)
            message.points.append(point)
        return message

    def _trajectory(self, rows):
        if not rows:
            return None
        table, n = np.array(rows), self.arm.n
        q, qd, effort = np.split(table[:, 1:], (n, 2 * n), axis=1)
        return Trajectory(table[:, 0], q, qd, np.concatenate([effort[1:], effort[-1:]]))  # τ[k] from t[k] on

    def stop(self):
        if self.mode == "effort":
            super().stop()
        else:  # an empty trajectory is "hold" to a joint trajectory controller
            self.publisher.publish(JointTrajectory(joint_names=list(self.arm.joint_names)))
