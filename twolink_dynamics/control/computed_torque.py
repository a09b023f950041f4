"""Computed torque (inverse dynamics control): exact linearisation."""
from __future__ import annotations

from .law import Law, gains


class ComputedTorque(Law):
    """τ = M(q) [q̈_d + Kd (q̇_d − q̇) + Kp (q_d − q)] + C(q, q̇) q̇ + g(q); kp [1/s²], kd [1/s], scalars or (n,).

    With the true model and without sampling the error obeys ë + Kd ė + Kp e = 0 (Siciliano et al., Robotics, §8.5.2);
    held over dt it deviates by O(dt), and a step of dt·kd > 1 or so is unstable.
    Raises InputError on a gain that is negative, not finite or of the wrong length."""

    name = "computed_torque"

    def __init__(self, dynamics, kp=100.0, kd=20.0, friction=None, residual=None):
        super().__init__(dynamics, friction, residual)
        self.kp = gains(kp, self.n, "kp")
        self.kd = gains(kd, self.n, "kd")

    def _correction(self, state, reference):
        return self.kp * self.error(reference, state) + self.kd * (reference.qd - state.qd)

    def _terms(self, t, state, reference):
        dynamics = self.dynamics
        M = dynamics.mass_matrix(state.q)
        gravity = dynamics.gravity(state.q)
        return {"inertia": M.dot(reference.qdd), "feedback": M.dot(self._correction(state, reference)),
                "coriolis": dynamics.bias(state.q, state.qd) - gravity, "gravity": gravity}

    def _efforts(self, t, state, reference):
        return self.dynamics.inverse_dynamics(state.q, state.qd, reference.qdd + self._correction(state, reference))

    def damping_rate(self, state):
        return float(self.kd.max())
