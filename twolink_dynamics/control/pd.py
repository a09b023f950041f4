"""PD control with gravity compensation."""
from __future__ import annotations

import numpy as np

from .law import Law, gains


class PDGravity(Law):
    """τ = Kp (q_d − q) + Kd (q̇_d − q̇) + g(q); kp [N m/rad], kd [N m s/rad], scalars or (n,). Default: 100
    and 20 times each joint's largest inertia over 32 fixed poses.

    Globally asymptotically stable at a constant reference for any positive gains (Siciliano et al., Robotics, §8.5.1).
    Raises InputError on a gain that is negative, not finite or of the wrong length."""

    name = "pd_gravity"

    def __init__(self, dynamics, kp=None, kd=None, friction=None, residual=None):
        super().__init__(dynamics, friction, residual)
        poses = np.random.default_rng(5).uniform(-np.pi, np.pi, (32, self.n))
        inertia = np.diagonal(dynamics.mass_matrix(poses), axis1=-2, axis2=-1).max(axis=0)
        self.kp = gains(100.0 * inertia if kp is None else kp, self.n, "kp")
        self.kd = gains(20.0 * inertia if kd is None else kd, self.n, "kd")

    def _feedback(self, state, reference):
        return self.kp * self.error(reference, state) + self.kd * (reference.qd - state.qd)

    def _terms(self, t, state, reference):
        return {"feedback": self._feedback(state, reference), "gravity": self.dynamics.gravity(state.q)}

    def _efforts(self, t, state, reference):
        return self._feedback(state, reference) + self.dynamics.gravity(state.q)

    def damping_rate(self, state):
        M = self.dynamics.mass_matrix(state.q)
        return float(np.abs(np.linalg.eigvals(np.linalg.solve(M, np.diag(self.kd)))).max())
