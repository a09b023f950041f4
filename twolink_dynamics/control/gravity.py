"""Gravity compensation: the arm floats."""
from __future__ import annotations

from .law import Law


class GravityCompensation(Law):
    """τ = g(q). Passive: the closed loop's energy is the kinetic one, and only friction or a hand changes it.

    Raises InputError when `dynamics` is none. (Siciliano et al., Robotics, §8.5.1, with both gains zero.)"""

    name = "gravity_compensation"
    uses_reference = False

    def _terms(self, t, state, reference):
        return {"gravity": self.dynamics.gravity(state.q)}

    def _efforts(self, t, state, reference):
        return self.dynamics.gravity(state.q)
