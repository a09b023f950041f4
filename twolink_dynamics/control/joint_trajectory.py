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
        """Times (k,) and tables (k, named joints) of positions, velocities and accelerations, NaN where not given."""
        position, velocity, acceleration, _ = (
            _table(names, points, field, what) for field, what in
            enumerate(("positions", "velocities", "accelerations", "effort"), start=1))
        for k in np.flatnonzero(np.isnan(position).any(axis=1)):
            raise InputError(f"trajectory: point {k}: has no positions")
        for k in np.flatnonzero(np.isnan(velocity).any(axis=1) & ~np.isnan(acceleration).any(axis=1)):
            raise InputError(f"trajectory: point {k}: accelerations without velocities")
        times = np.array([point.time for point in points], float)
        good = np.isfinite(times) & (times >= 0.0)
        good[1:] &= times[1:] > times[:-1]
        if not good.all():
            k = int(np.argmin(good))
            raise InputError(f"trajectory: point {k}: time_from_start {times[k]:g} s must be finite, not negative and "
                             "larger than the point's before")
        final = np.nan_to_num(velocity[-1])
        if np.abs(final).max() > 1e-9 and not allow_moving_end:
            k = int(np.argmax(np.abs(final)))
            raise InputError(f"trajectory: joint '{list(names)[k]}' still moves at the last point "
                             f"({final[k]:g} rad/s); the last velocity must be 0")
        return times, (position, velocity, acceleration)

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
        position, velocity, acceleration = (table[first:] for table in knots)
        t = np.append(handover, times[first:])
        q = np.repeat(np.array(current.q, float)[None], len(t), axis=0)
        v, a = np.zeros((2, len(t), arm.n))  # joints that are not named rest
        q[1:, columns], v[1:, columns], a[1:, columns] = position, velocity, acceleration
        v[0], a[0] = current.qd, current.qdd
        if arm.continuous.any():
            q = q[0] + np.concatenate([np.zeros((1, arm.n)), np.cumsum(arm.error(q[1:], q[:-1]), axis=0)])
        free = np.isnan(v).any(axis=1)  # positions alone: at rest or by knot_velocity, without acceleration
        a[free] = 0.0
        if jump:
            t, q, v, a, free = t[1:], q[1:], v[1:], a[1:], free[1:]
        if len(t) == 1:
            t, q, v, a = np.array([t[0], t[0] + 1e-9]), q[[0, 0]], np.zeros((2, arm.n)), np.zeros((2, arm.n))
            free = np.zeros(2, bool)
        spans = np.diff(t)[:, None]
        slopes = np.diff(q, axis=0) / spans
        chosen = np.zeros_like(q)
        chosen[1:-1] = knot_velocity(spans[:-1], spans[1:], slopes[:-1], slopes[1:])
        v[free] = chosen[free]
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
        knots = np.vstack([self._spline.coefficients[:, 0], self._spline.last.q])
        low, high = knots.min(axis=0), knots.max(axis=0)
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


def _table(names, points, field, what):
    """(k, named joints) values of one field of all points, NaN where a point has none; raises InputError naming it."""
    rows = [() if point[field] is None else point[field] for point in points]
    width = len(names)
    if not any(len(row) if hasattr(row, "__len__") else True for row in rows):
        return np.full((len(rows), width), np.nan)
    try:
        table = np.array(rows, dtype=float)
        if table.shape == (len(rows), width) and np.isfinite(table).all():
            return table
    except (TypeError, ValueError, OverflowError):
        pass
    table = np.full((len(rows), width), np.nan)
    for k, row in enumerate(rows):
        try:
            value = np.asarray(row, float)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"trajectory: point {k}: {what} are not numbers") from None
        if value.size == 0:
            continue
        if value.shape != (width,):
            raise InputError(f"trajectory: point {k}: {value.size} {what} for {width} joints")
        if not np.isfinite(value).all():
            raise InputError(f"trajectory: point {k}: {what} {value.tolist()} are not finite")
        table[k] = value
    return table
