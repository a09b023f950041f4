"""Friction compensation that stays on the safe side of the plant's friction."""
from __future__ import annotations

import numpy as np

from ..errors import InputError
from .law import gains


class FrictionCompensation:
    """τ = share · [(Fc + (Fs − Fc) exp(−(q̇/vs)²)) tanh(q̇/ε) + Fv q̇], from the measured velocity; all (n,) or scalars.

    coulomb Fc [N m], viscous Fv [N m s/rad], static Fs (default Fc), stribeck_velocity vs [rad/s]
    (None: sliding costs Fc at once), smoothing ε [rad/s].
    The plant opposes motion with the same curve and a sign instead of the tanh, so that |τ| never exceeds its friction
    and never has another sign: what is left over still dissipates, and there is no limit cycle at rest.
    Raises InputError on values that are negative, not finite, of the wrong length, or on a share outside [0, 1]."""

    def __init__(self, coulomb, viscous, static=None, stribeck_velocity=None, smoothing=0.05, share=1.0, n=None):
        if n is None:
            n = max(np.size(value) for value in (coulomb, viscous, static, stribeck_velocity) if value is not None)
        self.coulomb = gains(coulomb, n, "friction compensation: coulomb")
        self.viscous = gains(viscous, n, "friction compensation: viscous")
        self.static = self.coulomb if static is None else gains(static, n, "friction compensation: static")
        self.stribeck_velocity = None if stribeck_velocity is None else gains(
            stribeck_velocity, n, "friction compensation: stribeck_velocity")
        self.smoothing = gains(smoothing, n, "friction compensation: smoothing")
        self.share = gains(share, n, "friction compensation: share")
        for name in ("smoothing", "stribeck_velocity"):
            if getattr(self, name) is not None and (getattr(self, name) <= 0.0).any():
                raise InputError(f"friction compensation: {name} {getattr(self, name).tolist()} must be positive")
        if (self.share > 1.0).any():
            raise InputError(f"friction compensation: share {self.share.tolist()} must lie in 0 ... 1")
        if (self.static < self.coulomb).any():
            raise InputError(f"friction compensation: static {self.static.tolist()} must not be below coulomb "
                             f"{self.coulomb.tolist()}")
        self._stribeck = stribeck_velocity is not None and bool((self.static > self.coulomb).any())

    @classmethod
    def from_arm(cls, arm, **options):
        """From the URDF's <dynamics damping friction>."""
        return cls(arm.coulomb, arm.damping, n=arm.n, **options)

    @classmethod
    def from_friction(cls, friction, **options):
        """From a plant's Friction (anything with coulomb, viscous, static and stribeck_velocity)."""
        return cls(friction.coulomb, friction.viscous, friction.static, friction.stribeck_velocity,
                   n=len(friction.coulomb), **options)

    def torque(self, qd):
        """(n,) compensation at the velocity q̇ (n,) [N m or N]."""
        level = self.coulomb
        if self._stribeck:
            level = level + (self.static - self.coulomb) * np.exp(-(qd / self.stribeck_velocity) ** 2)
        return self.share * (level * np.tanh(qd / self.smoothing) + self.viscous * qd)
