"""Piecewise polynomials through knots: cubic and quintic Hermite segments, and derivatives for knots that have none."""
from __future__ import annotations

from bisect import bisect_right

import numpy as np

from ..arm import Reference


def hermite(duration, q0, v0, a0, q1, v1, a1):
    """(…, 6, n) coefficients, constant term first, of the segments between two knots over `duration` (…) [s].

    q, v, a (…, n) at both knots. Quintic where both accelerations are given, cubic where one of them is NaN. Biagiotti
    & Melchiorri, Trajectory Planning for Automatic Machines and Robots, eqs. 2.2 and 2.5."""
    T = np.asarray(duration, float)[..., None]
    d, zero = q1 - q0, np.zeros_like(q0)
    cubic = (q0, v0, (3.0 * d - (2.0 * v0 + v1) * T) / T**2, (-2.0 * d + (v0 + v1) * T) / T**3, zero, zero)
    quintic = (q0, v0, 0.5 * a0,
               (20.0 * d - (8.0 * v1 + 12.0 * v0) * T - (3.0 * a0 - a1) * T**2) / (2.0 * T**3),
               (-30.0 * d + (14.0 * v1 + 16.0 * v0) * T + (3.0 * a0 - 2.0 * a1) * T**2) / (2.0 * T**4),
               (12.0 * d - 6.0 * (v1 + v0) * T + (a1 - a0) * T**2) / (2.0 * T**5))
    known = ~np.isnan(a0 + a1).any(axis=-1, keepdims=True)
    return np.stack([np.where(known, high, low) for high, low in zip(quintic, cubic)], axis=-2)


def knot_velocity(before, after, slope_before, slope_after):
    """(…, n) velocity at knots without one, from the durations (…, 1) [s] and mean slopes (…, n) of both segments.

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
    """(…, 6, n) coefficients of the polynomials' derivatives."""
    return np.concatenate([coefficients[..., 1:, :] * np.arange(1.0, 6.0)[:, None],
                           np.zeros_like(coefficients[..., :1, :])], axis=-2)


class Spline:
    """Segments over [times[i], times[i+1]] with coefficients (k, 6, n); held still outside.

    Raises nothing: its makers validate."""

    def __init__(self, times, coefficients):
        self.times = [float(t) for t in times]
        self.coefficients = np.asarray(coefficients)
        # (k, 6, 3n): one product with the powers of t gives position, velocity and acceleration
        rates = derivative(self.coefficients)
        self._tables = np.concatenate([self.coefficients, rates, derivative(rates)], axis=-1)
        self._n = self.coefficients.shape[-1]
        rest = np.zeros(self._n)
        rest.setflags(write=False)
        self._rest = rest
        self.first = Reference(self.coefficients[0, 0], rest, rest)
        self.last = Reference(self._segment(len(self.coefficients) - 1, self.times[-1]).q, rest, rest)

    @classmethod
    def through(cls, times, q, qd, qdd):
        """Through knots at times (k,): q, qd, qdd (k, n); an acceleration of NaN makes its segments cubic."""
        q, qd, qdd = (np.asarray(knots, float) for knots in (q, qd, qdd))
        return cls(times, hermite(np.diff(times), q[:-1], qd[:-1], qdd[:-1], q[1:], qd[1:], qdd[1:]))

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
        spans = np.diff(self.times)
        for first in range(0, len(spans), 1000):  # in pieces, to bound the memory
            piece = slice(first, first + 1000)
            powers = (spans[piece, None] * np.linspace(0.0, 1.0, 33))[..., None] ** np.arange(6)
            peak = np.maximum(peak, np.abs(powers @ self._tables[piece]).max(axis=(0, 1)))
        return peak[n:2 * n], peak[2 * n:]


def smooth_step(x):
    """(s, s', s'') of the quintic 10x³ − 15x⁴ + 6x⁵ that goes from 0 at x ≤ 0 to 1 at x ≥ 1, at rest at both ends."""
    x = min(max(x, 0.0), 1.0)
    return (x**3 * (10.0 + x * (-15.0 + 6.0 * x)), 30.0 * x**2 * (1.0 - x) ** 2,
            60.0 * x * (1.0 - x) * (1.0 - 2.0 * x))
