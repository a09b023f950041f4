"""From here to there within velocity and acceleration limits, all joints together."""
from __future__ import annotations

import numpy as np

from ..arm import Reference
from ..errors import InputError
from .splines import Spline, smooth_step


def _limits(value, n, what):
    try:
        limit = np.array(np.broadcast_to(np.asarray(value, float), (n,)))
    except (TypeError, ValueError):
        raise InputError(f"{what}: {value!r} is not one number or one for each of the {n} joints") from None
    if not (np.isfinite(limit).all() and (limit > 0.0).all()):
        raise InputError(f"{what}: {limit.tolist()} must be positive and finite")
    return limit


class PointToPoint:
    """Rest to rest from q0 to q1 (n,); all joints start and arrive together.

    velocity_limit, acceleration_limit   scalars or (n,), positive and finite
    profile   'trapezoid': the shortest time T = max_i T_i in which constant accelerations can do it (the slowest joint
              at its limits, the others cruise slower); 'quintic': smooth, T = max(15/8 d/v, (10/√3 d/a)^½)
    arm       given, continuous joints take the short way
    (Siciliano et al., Robotics, §4.2.1.) Raises InputError on what is not finite, limits that are not positive, an
    unknown profile.
    """

    PROFILES = ("trapezoid", "quintic")

    def __init__(self, q0, q1, velocity_limit, acceleration_limit, profile="trapezoid", start=0.0, arm=None):
        q0, q1 = np.array(q0, float), np.array(q1, float)
        if q0.shape != q1.shape or q0.ndim != 1:
            raise InputError(f"point to point: q0 has shape {q0.shape}, q1 {q1.shape}; both must be (n,)")
        if not (np.isfinite(q0).all() and np.isfinite(q1).all()):
            raise InputError(f"point to point: q0 {q0.tolist()} and q1 {q1.tolist()} must be finite")
        if profile not in self.PROFILES:
            raise InputError(f"point to point: profile '{profile}' is none of {', '.join(self.PROFILES)}")
        v = _limits(velocity_limit, len(q0), "velocity_limit")
        a = _limits(acceleration_limit, len(q0), "acceleration_limit")
        self.start, self.profile = float(start), profile
        self.q0, self.delta = q0, (q1 - q0 if arm is None else arm.error(q1, q0))
        self.q1 = q0 + self.delta
        d = np.abs(self.delta)
        if profile == "quintic":
            self.duration = float(np.maximum(15.0 / 8.0 * d / v, np.sqrt(10.0 / np.sqrt(3.0) * d / a)).max())
            return
        shortest = np.where(d * a > v * v, d / v + v / a, 2.0 * np.sqrt(d / a))
        T = self.duration = float(shortest.max())
        # Each joint with its own acceleration cruises as slowly as T allows: a cruise (T − cruise/a) = d.
        self._cruise = 0.5 * a * (T - np.sqrt(np.maximum(T * T - 4.0 * d / a, 0.0)))
        self._a, self._ramp, self._sign = a, self._cruise / a, np.sign(self.delta)

    def sample(self, t):
        """The Reference at t [s]."""
        T = self.duration
        s = min(max(t - self.start, 0.0), T)
        if T == 0.0:
            return Reference(self.q1, np.zeros_like(self.q1), np.zeros_like(self.q1))
        if self.profile == "quintic":
            share, rate, curvature = smooth_step(s / T)
            return Reference(self.q0 + share * self.delta, rate / T * self.delta, curvature / T**2 * self.delta)
        a, ramp, cruise = self._a, self._ramp, self._cruise
        left = T - s
        rising, falling = s < ramp, left < ramp
        distance = np.where(rising, 0.5 * a * s * s,
                            np.where(falling, np.abs(self.delta) - 0.5 * a * left * left, cruise * (s - 0.5 * ramp)))
        speed = np.where(rising, a * s, np.where(falling, a * left, cruise))
        push = np.where(rising, a, np.where(falling, -a, 0.0))
        if s >= T or t < self.start:
            push = np.zeros_like(a)
        return Reference(self.q0 + self._sign * distance, self._sign * speed, self._sign * push)


def move(reference, q1, velocity_limit, acceleration_limit, start=0.0, arm=None):
    """A quintic from a moving Reference to rest at q1 (n,), as short as the limits allow (to 2 %): a Spline with
    `start` and `duration`. Where the start alone breaks a limit, the first duration that no longer adds to it."""
    q0 = np.asarray(reference.q, float)
    n = len(q0)
    q1 = q0 + (np.asarray(q1, float) - q0 if arm is None else arm.error(q1, q0))
    v = np.maximum(_limits(velocity_limit, n, "velocity_limit"), np.abs(reference.qd))
    a = np.maximum(_limits(acceleration_limit, n, "acceleration_limit"), np.abs(reference.qdd))
    rest = np.zeros(n)

    def path(T):
        return Spline.through([start, start + T], [q0, q1], [reference.qd, rest], [reference.qdd, rest])

    def fits(T):
        speed, acceleration = path(T).peaks()
        return bool((speed <= 1.001 * v).all() and (acceleration <= 1.001 * a).all())

    high = 1e-2
    while not fits(high) and high < 1e4:
        high *= 2.0
    low = 0.5 * high
    while high > 1.02 * low:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    spline = path(high)
    spline.start, spline.duration = start, high
    return spline
