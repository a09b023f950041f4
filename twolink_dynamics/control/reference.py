"""Where the arm should be: every source has `sample(t) -> Reference`, `start` and `duration`.

t is the controller's time [s] (the stamps of the joint states); a source stands still before `start` and after
`start + duration`.
"""
from __future__ import annotations

import numpy as np

from ..arm import Reference
from ..errors import InputError
from .joint_trajectory import JointTrajectory, TrajectoryPoint
from .point_to_point import PointToPoint, move
from .splines import smooth_step
from .tip_paths import Circle, FigureEight, Line, TipPath

__all__ = ["Circle", "FigureEight", "Hold", "JointTrajectory", "Line", "PointToPoint", "Sequence", "SineSweep", "Stop",
           "TipPath", "TrajectoryPoint", "at_rest", "move"]


def at_rest(q):
    """The Reference that stands at q (n,)."""
    q = np.array(q, float)
    zero = np.zeros_like(q)
    return Reference(q, zero, zero)


class Hold:
    """Stand at q (n,)."""

    def __init__(self, q, start=0.0):
        self.start, self.duration = float(start), 0.0
        self._reference = at_rest(q)

    def sample(self, t):
        """The Reference at rest."""
        return self._reference


class Stop:
    """Come to rest from a Reference at constant deceleration [rad/s² or m/s²], each joint in its own time, and stay."""

    def __init__(self, reference, deceleration, start=0.0):
        self.start = float(start)
        self._q, self._v = np.array(reference.q, float), np.array(reference.qd, float)
        self._a = np.broadcast_to(np.asarray(deceleration, float), self._q.shape)
        if not (self._a > 0.0).all():
            raise InputError(f"stop: deceleration {self._a.tolist()} must be positive")
        self._stop_time = np.abs(self._v) / self._a
        self.duration = float(self._stop_time.max())
        self._end = at_rest(self._q + 0.5 * self._stop_time * self._v)

    def sample(self, t):
        """q = q0 + v t − ½ a t² while a joint still moves."""
        elapsed = max(t - self.start, 0.0)
        if elapsed >= self.duration:
            return self._end
        s = np.minimum(elapsed, self._stop_time)
        a = -np.sign(self._v) * self._a
        return Reference(self._q + s * (self._v + 0.5 * s * a), self._v + s * a,
                         np.where(elapsed < self._stop_time, a, 0.0))


class SineSweep:
    """q = q_center + w(t) A sin φ(t), the frequency rising (or falling) from f0 to f1 [Hz] over `duration` [s].

    center, amplitude (n,); kind 'linear' (f grows by the same amount each second) or 'log' (by the same factor); w
    rises from 0 to 1 and falls back over `ramp` [s] (default a tenth of the duration): at rest at both ends.
    Raises InputError on values that are not finite, times and frequencies that are not positive, an unknown kind."""

    def __init__(self, center, amplitude, f0, f1, duration, kind="linear", ramp=None, start=0.0):
        self.center = np.array(center, float)
        self.amplitude = np.array(np.broadcast_to(np.asarray(amplitude, float), self.center.shape))
        ramp = 0.1 * duration if ramp is None else ramp
        for name, value in (("f0", f0), ("f1", f1), ("duration", duration), ("ramp", ramp)):
            if not (np.isfinite(value) and value > 0.0):
                raise InputError(f"sine sweep: {name} {value:g} must be positive and finite")
        if not (np.isfinite(self.center).all() and np.isfinite(self.amplitude).all()):
            raise InputError("sine sweep: center and amplitude must be finite")
        if 2.0 * ramp > duration:
            raise InputError(f"sine sweep: ramp {ramp:g} s must be at most half the duration {duration:g} s")
        if kind not in ("linear", "log"):
            raise InputError(f"sine sweep: kind '{kind}' is none of linear, log")
        self.start, self.duration, self.f0, self.f1, self.kind, self.ramp = start, duration, f0, f1, kind, ramp

    def sample(self, t):
        """The Reference at t, with exact derivatives."""
        s = min(max(t - self.start, 0.0), self.duration)
        ratio, T = self.f1 / self.f0, self.duration
        if self.kind == "linear":
            rate = (self.f1 - self.f0) / T
            phase, w, dw = 2.0 * np.pi * (self.f0 + 0.5 * rate * s) * s, self.f0 + rate * s, rate
        elif abs(ratio - 1.0) < 1e-12:
            phase, w, dw = 2.0 * np.pi * self.f0 * s, self.f0, 0.0
        else:
            growth = np.log(ratio) / T
            w = self.f0 * np.exp(growth * s)
            phase, dw = 2.0 * np.pi * (w - self.f0) / growth, growth * w
        w, dw = 2.0 * np.pi * w, 2.0 * np.pi * dw
        x, sign = (s, 1.0) if s < 0.5 * T else (T - s, -1.0)
        e, de, dde = smooth_step(x / self.ramp)
        de, dde = sign * de / self.ramp, dde / self.ramp**2
        sine, cosine = np.sin(phase), np.cos(phase)
        return Reference(self.center + self.amplitude * (e * sine),
                         self.amplitude * (de * sine + e * w * cosine),
                         self.amplitude * (dde * sine + 2.0 * de * w * cosine + e * (dw * cosine - w * w * sine)))


class Sequence:
    """Sources one after the other, each moved to start where the one before ends."""

    def __init__(self, *sources, start=0.0):
        if not sources:
            raise InputError("sequence: needs at least one source")
        self.start = float(start)
        self.sources, self._offsets, elapsed = sources, [], 0.0
        for source in sources:
            self._offsets.append(elapsed - source.start)  # local time = t − start − offset
            elapsed += source.duration
        self.duration = elapsed

    def sample(self, t):
        """The Reference of the source whose turn it is."""
        elapsed = t - self.start
        for source, offset in zip(self.sources, self._offsets):
            local = elapsed - offset
            if local < source.start + source.duration or source is self.sources[-1]:
                return source.sample(local)
