"""Effort limits, the shape of a switch, and the unit of the effort interface."""
from __future__ import annotations

import numpy as np

from ..errors import InputError


class EffortLimits:
    """Clamp |τ_i| ≤ limit_i [N m or N], (n,); inf is no limit, 0 an unactuated joint.

    Raises InputError on a limit that is negative, not a number or of the wrong length."""

    def __init__(self, limit, n):
        try:
            self.limit = np.array(np.broadcast_to(np.asarray(limit, float), (n,)))
        except (TypeError, ValueError):
            raise InputError(f"effort_limit: {limit!r} is not one number or one for each of the {n} joints") from None
        if not (self.limit >= 0.0).all():
            raise InputError(f"effort_limit: {self.limit.tolist()} must be numbers and not negative")
        self._lower, self._upper = -self.limit, self.limit
        self._free = bool(np.isinf(self.limit).all())

    def clamp(self, tau):
        """τ (n,) inside the limits, a finite one; the caller has thrown out what is not finite."""
        return tau if self._free else np.minimum(np.maximum(tau, self._lower), self._upper)


class Handover:
    """Shapes the change at a switch of laws, and nothing else.

    At the switch the old torque is kept and the difference Δ = τ_applied − τ_new is worked off at `rate` [N m/s]:
    τ = τ_new + Δ(t). Once Δ is gone the law acts undelayed; a law that takes over from nothing starts from gravity
    compensation, which is never built up from zero. `rate` None or inf: switches are steps.
    """

    def __init__(self, rate, n):
        try:
            self.rate = np.array(np.broadcast_to(np.asarray(np.inf if rate is None else rate, float), (n,)))
        except (TypeError, ValueError):
            raise InputError(f"torque_rate_limit: {rate!r} is not one number or one for each of the {n} joints") \
                from None
        if not (self.rate > 0.0).all():
            raise InputError(f"torque_rate_limit: {self.rate.tolist()} must be positive")
        self._steps = bool(np.isinf(self.rate).all())
        self.offset = None

    @property
    def busy(self):
        """True while a difference is being worked off."""
        return self.offset is not None

    def start(self, applied, wanted):
        """A switch: `applied` (n,) is the torque until now, `wanted` (n,) what the new law asks at this instant."""
        self.offset = None if self._steps else applied - wanted

    def cancel(self):
        """Forget the difference at once."""
        self.offset = None

    def shape(self, wanted, dt):
        """`wanted` (n,) plus what is left of the difference after dt [s]."""
        if self.offset is None:
            return wanted
        left = np.abs(self.offset) - self.rate * max(dt, 1e-9)
        if (left <= 0.0).all():
            self.offset = None
            return wanted
        self.offset = np.sign(self.offset) * np.maximum(left, 0.0)
        return wanted + self.offset


class EffortToCommand:
    """The number an effort interface takes for an effort: command = sign · effort / torque_constant, per joint.

    torque_constant [N m per command unit, e.g. N m/A], positive; sign ±1 turns a motor mounted the other way.
    Raises InputError on anything else."""

    def __init__(self, torque_constant, sign=1.0, n=None):
        n = n or max(np.size(torque_constant), np.size(sign))
        try:
            constant = np.array(np.broadcast_to(np.asarray(torque_constant, float), (n,)))
            sign = np.array(np.broadcast_to(np.asarray(sign, float), (n,)))
        except (TypeError, ValueError):
            raise InputError(f"effort_to_command: needs one torque constant and one sign for each of the {n} joints") \
                from None
        if not (np.isfinite(constant).all() and (constant > 0.0).all()):
            raise InputError(f"effort_to_command: torque constant {constant.tolist()} must be positive and finite")
        if not (np.abs(sign) == 1.0).all():
            raise InputError(f"effort_to_command: sign {sign.tolist()} must be 1 or -1")
        self.factor = sign / constant

    @classmethod
    def from_factors(cls, factors, n):
        """From signed factors [command unit per N m], one for all joints or one for each."""
        try:
            factors = np.array(np.broadcast_to(np.asarray(factors, float), (n,)))
        except (TypeError, ValueError):
            raise InputError(f"effort_to_command: {factors!r} is not one factor or one for each of the {n} joints") \
                from None
        if not np.isfinite(factors).all() or (factors == 0.0).any():
            raise InputError(f"effort_to_command: {factors.tolist()} must be finite and not 0")
        return cls(1.0 / np.abs(factors), np.sign(factors), n)

    def __call__(self, effort):
        """(n,) commands for efforts (n,)."""
        return effort * self.factor
