"""Joint trajectories with the semantics of ros2_controllers' joint_trajectory_controller, free of ROS."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arm import Reference
from ..errors import InputError, choices
from .splines import Spline, knot_velocity


class TrajectoryPoint(NamedTuple):
    """One waypoint: time [s] from the start, and per named joint positions, velocities, accelerations, efforts; an
    empty or None field is not given."""

    time: float
    positions: object
    velocities: object = None
    accelerations: object = None
    effort: object = None


class JointTrajectory:
    """Waypoints joined by splines, from where the reference is now.

    arm, names      the arm and the names the points' values belong to, in any order
    points          TrajectoryPoint, or anything with its fields in this order; an empty list is refused (what it means,
                    hold, is the caller's to do)
    now, stamp      controller time [s], and when the trajectory starts; stamp 0 is now
    previous        the source followed until then (its sample at the start is the first knot), or a Reference
    allow_partial   joints that are not named stay where the reference has them
    effort          'ignore' or 'add': what the points' effort does (linear between points, `feedforward(t)`)

    Positions only → quintic through the waypoints (see knot_velocity), at rest at the last one; with velocities → cubic
    Hermite; with accelerations too → quintic. A first point at time 0 is where the reference jumps to, as there. A
    start in the future keeps the previous source until then; of a start in the past only the points ahead are used.
    Continuous joints take the short way from point to point.

    Attributes: start, duration [s], final (n,) position, ignored_effort, warnings (text: limits of the arm exceeded).
    Raises InputError naming the joint or point: unknown, repeated or missing names, wrong lengths, values that are not
    finite, times that do not increase, a moving last point, an end in the past.
    """

    def __init__(self, arm, names, points, *, now=0.0, stamp=0.0, previous=None, allow_partial=False, effort="ignore",
                 allow_moving_end=False):
        columns = self._columns(arm, names, allow_partial)
        points = [point if isinstance(point, TrajectoryPoint) else TrajectoryPoint(*point) for point in points]
        if not points:
            raise InputError("trajectory: no points")
        if effort not in ("ignore", "add"):
            raise InputError(f"trajectory effort '{effort}' is none of ignore, add")
        if not np.isfinite(stamp):
            raise InputError(f"trajectory: stamp {stamp} is not finite")
        times, knots = self._checked(names, points, allow_moving_end)
        start = float(stamp) if stamp > 0.0 else float(now)
        handover = max(start, float(now))  # until then the previous source leads
        times = start + times
        if times[-1] <= now and not (start == now and len(times) == 1):
            raise InputError(f"trajectory: ends at {times[-1]:.3f} s, which is in the past (now {now:.3f} s)")
        self._previous = previous if hasattr(previous, "sample") else None
        self._handover = handover
        current = previous.sample(handover) if self._previous is not None else previous
        self.start, self.ignored_effort = start, False
        self._build(arm, columns, times, knots, current, handover)
        self._efforts(arm, columns, times, points, effort)
        self.duration = self._spline.times[-1] - start
        self.final = self._spline.last.q
        self.warnings = self._against_limits(arm)

    # -- reading -------------------------------------------------------------------------------------------------
    @staticmethod
    def _columns(arm, names, allow_partial):
        names = list(names)
        unknown = [name for name in names if name not in arm.joint_names]
        if unknown:
            raise InputError(f"trajectory: no joint '{unknown[0]}'; the joints are {choices(arm.joint_names)}")
        repeated = [name for name in names if names.count(name) > 1]
        if repeated:
            raise InputError(f"trajectory: joint '{repeated[0]}' is named {names.count(repeated[0])} times")
        missing = [name for name in arm.joint_names if name not in names]
        if not names or (missing and not allow_partial):
            raise InputError(f"trajectory: joint '{missing[0]}' is missing, and partial goals are not allowed "
                             "(allow_partial_joints_goal)" if names else "trajectory: names no joint")
        return np.array([arm.index(name) for name in names])

    @staticmethod
    def _checked(names, points, allow_moving_end):
        times, knots = [], []
        for k, point in enumerate(points):
            fields = []
            for what, value in zip(("positions", "velocities", "accelerations", "effort"), point[1:]):
                try:
                    value = None if value is None or len(value) == 0 else np.asarray(value, float)
                except (TypeError, ValueError):
                    raise InputError(f"trajectory: point {k}: {what} are not numbers") from None
                if value is not None and value.shape != (len(names),):
                    raise InputError(f"trajectory: point {k}: {value.size} {what} for {len(names)} joints")
                if value is not None and not np.isfinite(value).all():
                    raise InputError(f"trajectory: point {k}: {what} {value.tolist()} are not finite")
                fields.append(value)
            if fields[0] is None:
                raise InputError(f"trajectory: point {k}: has no positions")
            if fields[1] is None and fields[2] is not None:
                raise InputError(f"trajectory: point {k}: accelerations without velocities")
            time = float(point.time)
            if not np.isfinite(time) or time < 0.0 or (times and not time > times[-1]):
                raise InputError(f"trajectory: point {k}: time_from_start {time:g} s must be finite, not negative and "
                                 "larger than the point's before")
            times.append(time)
            knots.append(fields[:3])
        final = knots[-1][1]
        if final is not None and np.abs(final).max() > 1e-9 and not allow_moving_end:
            moving = names[int(np.argmax(np.abs(final)))]
            raise InputError(f"trajectory: joint '{moving}' still moves at the last point "
                             f"({final[list(names).index(moving)]:g} rad/s); the last velocity must be 0")
        return np.array(times), knots

    # -- building ------------------------------------------------------------------------------------------------
    def _build(self, arm, columns, times, knots, current, handover):
        """The spline over all joints, its first knot where the reference is at the handover."""
        jump = times[0] == self.start == handover  # a point at the very start: no way leads to it
        first = 0 if jump else int(np.searchsorted(times, handover, side="right"))
        if current is None:
            if len(columns) < arm.n:
                raise InputError("trajectory: a partial goal needs a current reference")
            current = Reference(np.zeros(arm.n), np.zeros(arm.n), np.zeros(arm.n))
            if not jump:
                raise InputError("trajectory: without a current reference the first point must be at time 0")
        zero = np.zeros(arm.n)
        t, q, v, a = [handover], [np.array(current.q, float)], [current.qd], [current.qdd]
        for time, (position, velocity, acceleration) in zip(times[first:], knots[first:]):
            target = q[0].copy()
            target[columns] = position
            if arm.continuous.any():
                target = q[-1] + arm.error(target, q[-1])
            t.append(float(time))
            q.append(target)
            v.append(_spread(velocity, columns, zero))
            # positions alone: the velocity is chosen below and the acceleration is 0; velocities alone: cubic
            a.append(zero if velocity is None else _spread(acceleration, columns, zero))
        if jump:
            del t[0], q[0], v[0], a[0]
            v[0] = zero if v[0] is None else v[0]
        if v[-1] is None:
            v[-1] = zero
        q = np.array(q)
        if len(t) == 1:
            t, q, v, a = [t[0], t[0] + 1e-9], np.array([q[0], q[0]]), [zero, zero], [zero, zero]
        spans = np.diff(t)
        slopes = np.diff(q, axis=0) / spans[:, None]
        for k in range(1, len(t) - 1):
            if v[k] is None:
                v[k] = knot_velocity(spans[k - 1], spans[k], slopes[k - 1], slopes[k])
        self._spline = Spline.through(t, q, v, a)

    def _efforts(self, arm, columns, times, points, effort):
        given = [k for k, point in enumerate(points) if point.effort is not None and len(point.effort)]
        self.ignored_effort = bool(given) and effort == "ignore"
        self._effort = None
        if given and effort == "add":
            table = np.zeros((len(given), arm.n))
            table[:, columns] = [points[k].effort for k in given]
            self._effort = (times[given], table)

    def _against_limits(self, arm):
        speed, _ = self._spline.peaks()
        found = [f"joint '{name}' reaches {speed[i]:.3g} rad/s, its limit is {arm.velocity_limit[i]:.3g}"
                 for i, name in enumerate(arm.joint_names) if speed[i] > 1.001 * arm.velocity_limit[i]]
        knots = [c[0] for c in self._spline.coefficients] + [self._spline.last.q]
        low, high = np.min(knots, axis=0), np.max(knots, axis=0)
        found += [f"joint '{name}' is sent from {low[i]:.4g} to {high[i]:.4g}, its range is "
                  f"{arm.lower[i]:.4g} to {arm.upper[i]:.4g}" for i, name in enumerate(arm.joint_names)
                  if not arm.continuous[i] and (low[i] < arm.lower[i] - 1e-9 or high[i] > arm.upper[i] + 1e-9)]
        return tuple(found)

    # -- running -------------------------------------------------------------------------------------------------
    def sample(self, t):
        """Reference at controller time t [s]; the previous source until the start, at rest after the last point."""
        if t < self._handover and self._previous is not None:
            return self._previous.sample(t)
        return self._spline.sample(t)

    def release(self, t):
        """Forget the previous source once it has handed over."""
        if t >= self._handover:
            self._previous = None

    def feedforward(self, t):
        """(n,) effort of the points at t, linear in between, or None where there is none to add."""
        if self._effort is None or not self._effort[0][0] <= t <= self._effort[0][-1]:
            return None
        times, table = self._effort
        return np.array([np.interp(t, times, column) for column in table.T])


def _spread(values, columns, zero):
    """Values of the named joints in a vector over all joints, the others 0; None stays None."""
    if values is None:
        return None
    full = zero.copy()
    full[columns] = values
    return full
