"""The motions of the experiments: `sample(t) -> Reference` and `duration`, as all references have them."""
from __future__ import annotations

from bisect import bisect_right

import numpy as np

from ..arm import Reference


class Oscillation:
    """q0 + s(t) Σ_k A_k sin(ω_k t + φ_k), with s rising from 0 to 1 within `ramp` seconds and falling at the end.

    q0 (n,), amplitudes and phases (n, K), omegas (K,) [rad/s]; starts and ends at rest at q0.
    """

    def __init__(self, q0, amplitudes, omegas, phases, duration, ramp):
        self.q0 = np.asarray(q0, float)
        self.amplitudes, self.omegas, self.phases = (np.asarray(x, float) for x in (amplitudes, omegas, phases))
        self.duration, self.ramp = float(duration), float(ramp)

    def _envelope(self, t):
        side = 1.0
        if t > 0.5 * self.duration:
            t, side = self.duration - t, -1.0
        x = min(max(t / self.ramp, 0.0), 1.0)
        return (x**3 * (10.0 - 15.0 * x + 6.0 * x * x), side * 30.0 * x * x * (1.0 - x) ** 2 / self.ramp,
                60.0 * x * (1.0 - x) * (1.0 - 2.0 * x) / self.ramp**2)

    def sample(self, t):
        s, sd, sdd = self._envelope(t)
        angle = self.omegas * t + self.phases
        w = self.omegas
        sine, cosine = self.amplitudes * np.sin(angle), self.amplitudes * np.cos(angle)
        x, xd, xdd = sine.sum(1), cosine @ w, -(sine @ (w * w))
        return Reference(self.q0 + s * x, s * xd + sd * x, s * xdd + 2.0 * sd * xd + sdd * x)


class Sequence:
    """Motions one after the other; `starts[i]` is when part i begins."""

    def __init__(self, parts):
        self.parts = tuple(parts)
        self.starts = np.concatenate([[0.0], np.cumsum([part.duration for part in self.parts])]).tolist()
        self.duration = self.starts.pop()

    def sample(self, t):
        i = max(bisect_right(self.starts, t) - 1, 0)
        return self.parts[i].sample(t - self.starts[i])


class Rest:
    """Stay at q0 for a while."""

    def __init__(self, q0, duration):
        self.q0, self.duration = np.asarray(q0, float), float(duration)

    def sample(self, t):
        zero = np.zeros_like(self.q0)
        return Reference(self.q0, zero, zero)
