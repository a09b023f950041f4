"""Dynamics(arm): the equations of one arm, for everyone who calls them."""
from __future__ import annotations

import numpy as np

from . import kinematics, newton_euler
from .arm import Arm
from .errors import InputError


class Dynamics:
    """M(q) q̈ + C(q, q̇) q̇ + g(q) = τ of one arm.

    Every argument is (…, n), an array or nested list: the last axis is the joint, leading axes are a batch.
    Angles [rad], lengths [m], efforts [N m or N].
    """

    def __init__(self, arm):
        if not isinstance(arm, Arm):
            raise InputError(f"Dynamics needs an Arm (load_urdf gives one), not {type(arm).__name__}")
        self.arm = arm
        self.n = arm.n

    def _vectors(self, **named):
        arrays = []
        for name, value in named.items():
            try:
                array = np.asarray(value, float)
            except (TypeError, ValueError):
                raise InputError(f"{name}: not an array of numbers") from None
            if array.ndim == 0 or array.shape[-1] != self.n:
                raise InputError(f"{name}: shape {array.shape}, the last axis must be the {self.n} joints")
            arrays.append(array)
        return arrays

    def inverse_dynamics(self, q, qd, qdd):
        """τ (…, n) that gives the acceleration q̈."""
        return newton_euler.inverse_dynamics(self.arm, *self._vectors(q=q, qd=qd, qdd=qdd))

    def forward_dynamics(self, q, qd, tau):
        """q̈ (…, n) that τ gives."""
        return newton_euler.forward_dynamics(self.arm, *self._vectors(q=q, qd=qd, tau=tau))

    def mass_matrix(self, q):
        """M (…, n, n) [kg m²]."""
        return newton_euler.mass_matrix(self.arm, *self._vectors(q=q))

    def coriolis_matrix(self, q, qd):
        """C (…, n, n), the Christoffel one: Ṁ − 2C is skew-symmetric."""
        return newton_euler.coriolis_matrix(self.arm, *self._vectors(q=q, qd=qd))

    def gravity(self, q):
        """g = ∂P/∂q (…, n)."""
        return newton_euler.gravity_torque(self.arm, *self._vectors(q=q))

    def bias(self, q, qd):
        """h = C q̇ + g (…, n)."""
        return newton_euler.bias(self.arm, *self._vectors(q=q, qd=qd))

    def energy(self, q, qd):
        """(kinetic, potential) (…) [J]; moving links, height 0 at the root."""
        return newton_euler.energy(self.arm, *self._vectors(q=q, qd=qd))

    def tip_pose(self, q, frame=None):
        """(rotation (…, 3, 3), position (…, 3) [m]) of the tip, or of a named link's frame, in the root frame."""
        return kinematics.frame_pose(self.arm, *self._vectors(q=q), frame)

    def jacobian(self, q, frame=None):
        """J (…, 6, n) of the tip (or a named link's frame), linear over angular, root axes."""
        return kinematics.jacobian(self.arm, *self._vectors(q=q), frame)

    def jacobian_rate(self, q, qd, frame=None):
        """J̇ q̇ (…, 6)."""
        return kinematics.jacobian_rate(self.arm, *self._vectors(q=q, qd=qd), frame)

    def regressor(self, q, qd, qdd):
        """Y (…, n, 10 N) with Y π = τ; per link m, m c, Ixx Ixy Iyy Ixz Iyz Izz about the link frame."""
        return newton_euler.regressor(self.arm, *self._vectors(q=q, qd=qd, qdd=qdd))
