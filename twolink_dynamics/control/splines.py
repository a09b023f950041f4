"""Piecewise polynomials through knots: cubic and quintic Hermite segments, and derivatives for knots that have none."""
from __future__ import annotations

from bisect import bisect_right

import numpy as np

from ..arm import Reference


def hermite(duration, q0, v0, a0, q1, v1, a1):
    """(6, n) coefficients, constant term first, of the segment between two knots over `duration` [s].

    Quintic where both accelerations are given, cubic (a0 or a1 None) otherwise. Biagiotti & Melchiorri, Trajectory
    Planning for Automatic Machines and Robots, eqs. 2.2 and 2.5."""
    T = duration
    zero = np.zeros_like(q0)
    d = q1 - q0
    if a0 is None or a1 is None:
        return np.array([q0, v0, (3.0 * d - (2.0 * v0 + v1) * T) / T**2, (-2.0 * d + (v0 + v1) * T) / T**3, zero, zero])
    return np.array([q0, v0, 0.5 * a0,
                     (20.0 * d - (8.0 * v1 + 12.0 * v0) * T - (3.0 * a0 - a1) * T**2) / (2.0 * T**3),
                     (-30.0 * d + (14.0 * v1 + 16.0 * v0) * T + (3.0 * a0 - 2.0 * a1) * T**2) / (2.0 * T**4),
                     (12.0 * d - 6.0 * (v1 + v0) * T + (a1 - a0) * T**2) / (2.0 * T**5)])


def knot_velocity(before, after, slope_before, slope_after):
    """(n,) velocity at a knot without one, from the durations [s] and mean slopes (n,) of its two segments.

    Zero where the slopes change sign (the knot is a turning point), else their weighted harmonic mean (Fritsch &
    Butland 1984), held below twice the smaller slope: with zero acceleration at the knots the quintic is monotone where
    the waypoints are, so that it never overshoots them."""
    same = slope_before * slope_after > 0.0
    w0, w1 = before + 2.0 * after, 2.0 * before + after
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mean = (w0 + w1) / (w0 / slope_before + w1 / slope_after)
    bound = 2.0 * np.minimum(np.abs(slope_before), np.abs(slope_after))
    return np.where(same, np.clip(np.where(same, mean, 0.0), -bound, bound), 0.0)


def derivative(coefficients):
    """(6, n) coefficients of a polynomial's derivative."""
    return np.concatenate([coefficients[1:] * np.arange(1.0, 6.0)[:, None], np.zeros((1, coefficients.shape[1]))])


class Spline:
    """Segments over [times[i], times[i+1]] with coefficients (6, n) each; held still outside.

    Raises nothing: its makers validate."""

    def __init__(self, times, coefficients):
        self.times = [float(t) for t in times]
        self.coefficients = coefficients
        # (6, 3n): one product with the powers of t gives position, velocity and acceleration
        self._tables = [np.concatenate([c, derivative(c), derivative(derivative(c))], axis=1) for c in coefficients]
        self._n = coefficients[0].shape[1]
        rest = np.zeros_like(coefficients[0][0])
        rest.setflags(write=False)
        self._rest = rest
        self.first = Reference(coefficients[0][0], rest, rest)
        self.last = Reference(self._segment(len(coefficients) - 1, self.times[-1]).q, rest, rest)

    @classmethod
    def through(cls, times, q, qd, qdd):
        """Through knots: q (k, n), lists qd and qdd of (n,) arrays; a None acceleration makes its segments cubic."""
        return cls(times, [hermite(times[i + 1] - times[i], q[i], qd[i], qdd[i], q[i + 1], qd[i + 1], qdd[i + 1])
                           for i in range(len(times) - 1)])

    def sample(self, t):
        """Reference at t [s]; before the first knot and from the last one on it stands still there."""
        if t >= self.times[-1]:
            return self.last
        if t < self.times[0]:
            return self.first
        return self._segment(bisect_right(self.times, t) - 1, t)

    def _segment(self, i, t):
        s = t - self.times[i]
        s2 = s * s
        flat = np.array((1.0, s, s2, s2 * s, s2 * s2, s2 * s2 * s)).dot(self._tables[i])
        n = self._n
        return Reference(flat[:n], flat[n:2 * n], flat[2 * n:])

    def peaks(self):
        """((n,), (n,)) largest |velocity| and |acceleration|, sampled 32 times a segment."""
        n = self._n
        peak = np.zeros(3 * n)
        for table, t0, t1 in zip(self._tables, self.times, self.times[1:]):
            powers = np.linspace(0.0, t1 - t0, 33)[:, None] ** np.arange(6)
            peak = np.maximum(peak, np.abs(powers.dot(table)).max(axis=0))
        return peak[n:2 * n], peak[2 * n:]


def smooth_step(x):
    """(s, s', s'') of the quintic 10x³ − 15x⁴ + 6x⁵ that goes from 0 at x ≤ 0 to 1 at x ≥ 1, at rest at both ends."""
    x = min(max(x, 0.0), 1.0)
    return (x**3 * (10.0 + x * (-15.0 + 6.0 * x)), 30.0 * x**2 * (1.0 - x) ** 2,
            60.0 * x * (1.0 - x) * (1.0 - 2.0 * x))
