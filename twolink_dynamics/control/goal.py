"""The life of a trajectory goal: tolerances, success, abort, cancel, feedback: FollowJointTrajectory without ROS."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..errors import InputError, choices
from .law import gains

EXECUTING, SUCCEEDED, ABORTED, CANCELED = "executing", "succeeded", "aborted", "canceled"

# error codes of control_msgs/action/FollowJointTrajectory
SUCCESSFUL, INVALID_GOAL, INVALID_JOINTS, OLD_HEADER_TIMESTAMP = 0, -1, -2, -3
PATH_TOLERANCE_VIOLATED, GOAL_TOLERANCE_VIOLATED = -4, -5


class Feedback(NamedTuple):
    """desired, actual and error, each (q, qd) of (n,), at time t since the goal's start [s]."""

    time: float
    desired: tuple
    actual: tuple
    error: tuple


class GoalTolerances:
    """Largest |error| of position [rad or m] and velocity [rad/s or m/s], (n,) or scalars; inf is not checked."""

    def __init__(self, n, position=np.inf, velocity=np.inf):
        self.position = _tolerance(position, n, "position tolerance")
        self.velocity = _tolerance(velocity, n, "velocity tolerance")

    def overridden(self, arm, entries):
        """New tolerances with (name, position, velocity) entries as the action defines them: 0 keeps the default, a
        negative value means unchecked. Raises InputError on an unknown joint or a value that is not a number."""
        position, velocity = self.position.copy(), self.velocity.copy()
        for name, *values in entries:
            if name not in arm.joint_names:
                raise InputError(f"tolerance: no joint '{name}'; the joints are {choices(arm.joint_names)}")
            k = arm.index(name)
            for column, value in zip((position, velocity), values):
                if np.isnan(value):
                    raise InputError(f"tolerance of joint '{name}' is {value}")
                if value != 0.0:
                    column[k] = np.inf if value < 0.0 else value
        return GoalTolerances(arm.n, position, velocity)

    def violation(self, arm, position_error, velocity_error):
        """A line naming the first joint out of tolerance, '' when all are within (NaN never is)."""
        for what, error, limit in (("position", position_error, self.position),
                                   ("velocity", velocity_error, self.velocity)):
            outside = ~(np.abs(error) <= limit)
            if outside.any():
                k = int(np.argmax(outside))
                return f"{what} error of joint '{arm.joint_names[k]}' is {abs(error[k]):.4g}, tolerance {limit[k]:.4g}"
        return ""


def _tolerance(value, n, what):
    value = np.asarray(value, float)
    return np.where(np.isinf(value), np.inf, gains(np.where(np.isinf(value), 0.0, value), n, what))


class TrajectoryGoal:
    """One goal that a controller follows.

    trajectory    the source followed (its `start` and `duration`)
    path, goal    GoalTolerances on the way and at the end; None: unchecked on the way, 0.01 rad/s at the end
    goal_time     [s] after the end in which the goal tolerances must be met; 0 waits for ever

    Attributes: status ('executing', 'succeeded', 'aborted', 'canceled'), code (the action's error code), text.
    """

    def __init__(self, arm, trajectory, path=None, goal=None, goal_time=0.0):
        if not (np.isfinite(goal_time) and goal_time >= 0.0):
            raise InputError(f"goal time tolerance {goal_time:g} s must be finite and not negative")
        self.arm, self.trajectory, self.goal_time = arm, trajectory, float(goal_time)
        self.path = GoalTolerances(arm.n) if path is None else path
        self.goal = GoalTolerances(arm.n, velocity=0.01) if goal is None else goal
        self.status, self.code, self.text = EXECUTING, SUCCESSFUL, ""

    @property
    def done(self):
        """True once the status is final; it never changes after that."""
        return self.status != EXECUTING

    def update(self, t, state):
        """Judge the State at controller time t [s]: Feedback until the step that ends it, None after."""
        if self.done:
            return None
        desired = self.trajectory.sample(t)
        position = self.arm.error(desired.q, state.q)
        velocity = desired.qd - state.qd
        late = t - self.trajectory.start - self.trajectory.duration
        if late < 0.0:
            violation = self.path.violation(self.arm, position, velocity) if t >= self.trajectory.start else ""
            if violation:
                self._end(ABORTED, PATH_TOLERANCE_VIOLATED, f"path tolerance: {violation}")
        else:
            violation = self.goal.violation(self.arm, position, velocity)
            if not violation:
                self._end(SUCCEEDED, SUCCESSFUL, "goal reached")
            elif self.goal_time and late > self.goal_time:
                self._end(ABORTED, GOAL_TOLERANCE_VIOLATED, f"goal tolerance {late:.2f} s after the end: {violation}")
        return Feedback(t - self.trajectory.start, (desired.q, desired.qd), (state.q, state.qd), (position, velocity))

    def watch(self, controller):
        """`update` with a Controller's last state; aborts when it is in its safe mode, or follows something else."""
        if self.done:
            return None
        if controller.last.mode != "active":
            reason = controller.last.fault or f"the controller is {controller.last.mode}"
            self._end(ABORTED, INVALID_GOAL, f"aborted: {reason}")
            return None
        if controller.source is not self.trajectory:
            self._end(ABORTED, INVALID_GOAL, "replaced by another reference")
            return None
        return self.update(controller.supervisor.time, controller.supervisor.state)

    def cancel(self):
        """The client gave up; the caller lets the controller hold. False when it was already over."""
        return self._end(CANCELED, SUCCESSFUL, "canceled")

    def preempt(self, reason="replaced by another goal"):
        """Something else takes over. False when it was already over."""
        return self._end(ABORTED, INVALID_GOAL, reason)

    def _end(self, status, code, text):
        if self.done:
            return False
        self.status, self.code, self.text = status, code, text
        return True
