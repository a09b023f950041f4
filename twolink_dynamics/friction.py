"""Joint friction: Coulomb, viscous, Stribeck, and a bound on what sticks."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .arm import frozen
from .errors import InputError


@dataclass(frozen=True, eq=False)
class Friction:
    """τ_f(q̇) = Fc sign(q̇) + Fv q̇ + (Fs − Fc) exp(−(q̇/vs)²) sign(q̇), per joint, opposing motion (subtract it
    from τ).

    coulomb            Fc (n,) [N m or N], ≥ 0
    viscous            Fv (n,) [N m s/rad or N s/m], ≥ 0
    static             Fs (n,) ≥ Fc: what a joint at rest holds; None: Fc
    stribeck_velocity  vs (n,) > 0 [rad/s or m/s]; None: the sliding force is Fc as soon as the joint moves
    At rest the friction is whatever holds the joint, |τ_f| ≤ Fs (set-valued; the simulation solves for it).
    Power τ_f q̇ is never negative. Source: Olsson et al., Friction models and friction compensation, 1998, eq. 5.
    Raises InputError on a negative or non-finite value, or Fs < Fc, naming the joint's number.
    """

    coulomb: np.ndarray
    viscous: np.ndarray
    static: np.ndarray | None = None
    stribeck_velocity: np.ndarray | None = None

    def __post_init__(self):
        coulomb = np.atleast_1d(np.asarray(self.coulomb, float))
        n = max(coulomb.size, np.size(self.viscous), np.size(self.static) if self.static is not None else 1)
        for name in ("coulomb", "viscous", "static", "stribeck_velocity"):
            value = getattr(self, name)
            if value is None:
                continue
            try:
                value = frozen(np.broadcast_to(np.asarray(value, float), (n,)), (n,), f"friction: {name}")
            except (TypeError, ValueError) as error:
                raise InputError(str(error) if isinstance(error, InputError) else
                                 f"friction: {name}: {value!r} is not one number for each of {n} joints") from None
            if (value < 0.0).any() or (name == "stribeck_velocity" and (value == 0.0).any()):
                i = int(np.argmin(value))
                raise InputError(f"friction: {name} of joint {i + 1} is {value[i]:g}, must "
                                 f"{'be positive' if name == 'stribeck_velocity' else 'not be negative'}")
            object.__setattr__(self, name, value)
        if self.static is None:
            object.__setattr__(self, "static", self.coulomb)
        low = self.static < self.coulomb
        if low.any():
            i = int(np.argmax(low))
            raise InputError(f"friction: static {self.static[i]:g} of joint {i + 1} is below its coulomb "
                             f"{self.coulomb[i]:g}")

    @classmethod
    def from_arm(cls, arm):
        """What the URDF's <dynamics friction damping> say."""
        return cls(arm.coulomb, arm.damping)

    @property
    def n(self):
        """Number of joints."""
        return self.coulomb.size

    def dry(self, qd):
        """Magnitude of the velocity-independent-sign part while sliding, Fc + (Fs − Fc) exp(−(q̇/vs)²), (…, n)."""
        if self.stribeck_velocity is None:
            return self.coulomb
        return self.coulomb + (self.static - self.coulomb) * np.exp(-(qd / self.stribeck_velocity) ** 2)

    def torque(self, qd):
        """τ_f(q̇) (…, n), with sign(0) = 0."""
        qd = np.asarray(qd, float)
        return self.viscous * qd + np.sign(qd) * self.dry(qd)
