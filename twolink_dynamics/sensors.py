"""What a controller is told: the true state with noise, quantisation, delay and lost samples, all from one seed."""
from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from .errors import InputError


@dataclass(frozen=True, eq=False)
class Measurement:
    """When it was taken t [s], q (n,) [rad or m], qd (n,) [rad/s or m/s]; unpacks as ``q, qd``."""

    t: float
    q: np.ndarray
    qd: np.ndarray

    def __iter__(self):
        return iter((self.q, self.qd))


class Sensors:
    """measured = quantum · round((true + σ · normal) / quantum), `delay` later, unless the sample is dropped.

    position_noise, velocity_noise      σ, scalar or (n,) [rad or m, and per second]
    position_quantum, velocity_quantum  step of the encoder, 0 for none, scalar or (n,)
    delay   [s], a sample keeps the time it was taken at;  drop  probability in [0, 1) that a sample is lost
    seed    of the generator; after `reset` the same samples are seen the same way
    Each sample draws the same number of random values whatever the settings, so that one effect switched off leaves the
    others as they were. Raises InputError on a negative or non-finite setting.
    """

    def __init__(self, position_noise=0.0, velocity_noise=0.0, position_quantum=0.0, velocity_quantum=0.0, delay=0.0,
                 drop=0.0, seed=0):
        settings = {"position_noise": position_noise, "velocity_noise": velocity_noise,
                    "position_quantum": position_quantum, "velocity_quantum": velocity_quantum}
        for name, value in settings.items():
            try:
                value = np.array(value, float)
            except (TypeError, ValueError):
                raise InputError(f"sensors: {name} {value!r} is not a number") from None
            if not (np.isfinite(value).all() and (value >= 0.0).all()):
                raise InputError(f"sensors: {name} {value.tolist()} must be finite and not negative")
            value.setflags(write=False)
            setattr(self, name, value)
        if not (math.isfinite(delay) and delay >= 0.0):
            raise InputError(f"sensors: delay {delay!r} must be finite and not negative")
        if not 0.0 <= drop < 1.0:
            raise InputError(f"sensors: drop {drop!r} must be a probability in [0, 1)")
        if not isinstance(seed, (int, np.integer)) or seed < 0:
            raise InputError(f"sensors: seed {seed!r} must be a whole number, not negative")
        self.delay, self.drop, self.seed = float(delay), float(drop), int(seed)
        self.perfect = not (any(getattr(self, name).any() for name in settings) or self.delay or self.drop)
        self.reset()

    def reset(self):
        """Back to the seed, nothing in transit."""
        self._random = np.random.default_rng(self.seed)
        self._transit = deque()

    def measure(self, t, q, qd):
        """Takes a sample of the true state at time t and returns the newest Measurement that has arrived by t, or None
        when none did."""
        q, qd = np.array(q, float), np.array(qd, float)
        if self.perfect:
            return Measurement(t, q, qd)
        lost = self._random.random() < self.drop
        noise = self._random.standard_normal((2, q.size))
        if not lost:
            q = _quantised(q + self.position_noise * noise[0], self.position_quantum)
            qd = _quantised(qd + self.velocity_noise * noise[1], self.velocity_quantum)
            self._transit.append(Measurement(t, q, qd))
        arrived = None
        while self._transit and self._transit[0].t + self.delay <= t + 1e-9:
            arrived = self._transit.popleft()
        return arrived


def _quantised(value, quantum):
    if not quantum.any():
        return value
    step = np.where(quantum > 0.0, quantum, 1.0)
    return np.where(quantum > 0.0, step * np.round(value / step), value)
