"""Flexible joints: a spring and a damper between each motor and its link."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .arm import frozen
from .errors import InputError


@dataclass(frozen=True, eq=False)
class FlexibleJoints:
    """Motors θ (link side) drive the links through springs (Spong, Modeling and control of elastic joint robots, 1987):

        M q̈ + C q̇ + g = K(θ − q) + D(θ̇ − q̇) + Jᵀ f_ext,    B θ̈ + K(θ − q) + D(θ̇ − q̇) = τ − τ_f(θ̇),    B = gr² Ir

    stiffness  K (n,) > 0 [N m/rad or N/m];  damping  D (n,) ≥ 0 [N m s/rad or N s/m]; a scalar spreads over the joints.
    Raises InputError naming the joint's number.
    """

    stiffness: np.ndarray
    damping: np.ndarray = 0.0

    def __post_init__(self):
        n = max(np.size(self.stiffness), np.size(self.damping))
        for name in ("stiffness", "damping"):
            try:
                value = np.broadcast_to(np.asarray(getattr(self, name), float), (n,))
            except (TypeError, ValueError):
                raise InputError(f"flexible joints: {name} {getattr(self, name)!r} is not one number "
                                 "per joint") from None
            object.__setattr__(self, name, frozen(value, (n,), f"flexible joints: {name}"))
        if (self.stiffness <= 0.0).any():
            i = int(np.argmin(self.stiffness))
            raise InputError(f"flexible joints: stiffness of joint {i + 1} is {self.stiffness[i]:g}, must be positive")
        if (self.damping < 0.0).any():
            i = int(np.argmin(self.damping))
            raise InputError(f"flexible joints: damping of joint {i + 1} is {self.damping[i]:g}, must not be negative")

    def spread(self, n):
        """The same with one value for each of n joints."""
        if self.stiffness.size == n:
            return self
        if self.stiffness.size != 1:
            raise InputError(f"flexible joints: {self.stiffness.size} values for {n} joints")
        return FlexibleJoints(np.full(n, self.stiffness[0]), np.full(n, self.damping[0]))

    def energy(self, q, theta):
        """½ (θ − q)ᵀ K (θ − q) [J]."""
        stretch = theta - q
        return 0.5 * float(stretch @ (self.stiffness * stretch))

    def equilibrium(self, q, effort):
        """θ at which the spring alone carries `effort` (n,) on the link side: θ = q + K⁻¹ effort."""
        return q + effort / self.stiffness
