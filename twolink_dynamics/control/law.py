"""What every control law offers, and how a torque is told apart into its causes."""
from __future__ import annotations

import numpy as np

from ..dynamics import Dynamics
from ..errors import InputError

TERMS = ("inertia", "coriolis", "gravity", "friction", "feedback", "feedforward", "residual")


class TorqueTerms:
    """The torque of a law, told apart; every term (n,) [N m or N], and `total` is their sum.

    inertia      M(q) times the desired acceleration          coriolis   C(q, q̇) q̇ (or C q̇r of a moving target)
    gravity      g(q)                                         friction   compensation of the joints' friction
    feedback     what the errors cause                        feedforward   given from outside (effort, tip wrench)
    residual     a learned or measured correction of the model
    """

    __slots__ = TERMS

    def __init__(self, n, **terms):
        zero = np.zeros(n)
        zero.setflags(write=False)
        for name in TERMS:
            setattr(self, name, terms.pop(name, zero))
        if terms:
            raise InputError(f"torque terms: unknown '{next(iter(terms))}', the terms are {', '.join(TERMS)}")

    @property
    def total(self):
        """(n,) the sum of all terms [N m or N]."""
        return (self.inertia + self.coriolis + self.gravity + self.friction + self.feedback + self.feedforward
                + self.residual)

    def items(self):
        """(name, (n,) term) pairs, in a fixed order, without the total."""
        return [(name, getattr(self, name)) for name in TERMS]

    def __repr__(self):
        return "TorqueTerms(" + ", ".join(f"{name}={term.tolist()}" for name, term in self.items()) + ")"


class Law:
    """τ = law(t, state, reference) of one arm.

    A law implements `_efforts` (the sum, as cheaply as it can) and `_terms` (a dict of its TorqueTerms); both must
    agree. The base class adds what every law may carry:

    friction    a FrictionCompensation, or None
    residual    callable(q, qd, qdd) -> (n,) torque that the model lacks, q̈ being the desired one; or None
    """

    name = ""
    uses_reference = True  # False: the law ignores the joint reference

    def __init__(self, dynamics, friction=None, residual=None):
        if not isinstance(dynamics, Dynamics) and not hasattr(dynamics, "inverse_dynamics"):
            raise InputError(f"{type(self).__name__} needs a Dynamics, not {type(dynamics).__name__}")
        self.dynamics = dynamics
        self.arm = dynamics.arm
        self.n = dynamics.arm.n
        self.friction = friction
        self.residual = residual
        self._wraps = bool(self.arm.continuous.any())

    def torques(self, t, state, reference):
        """TorqueTerms at time t [s] of a State, for a Reference."""
        terms = self._terms(t, state, reference)
        if self.friction is not None:
            terms["friction"] = self.friction.torque(state.qd)
        if self.residual is not None:
            terms["residual"] = self.residual(state.q, state.qd, reference.qdd)
        return TorqueTerms(self.n, **terms)

    def efforts(self, t, state, reference):
        """(n,) the total of `torques` without telling the terms apart: what a fast loop calls."""
        tau = self._efforts(t, state, reference)
        if self.friction is not None:
            tau = tau + self.friction.torque(state.qd)
        if self.residual is not None:
            tau = tau + self.residual(state.q, state.qd, reference.qdd)
        return tau

    def error(self, reference, state):
        """q_d − q (n,), the short way round on continuous joints only."""
        if self._wraps:
            return self.arm.error(reference.q, state.q)
        return reference.q - state.q

    def reset(self):
        """Forget whatever was learnt while running; the laws here remember only targets."""

    def missing(self):
        """Why the law cannot run yet, or '' when it can."""
        return ""

    def damping_rate(self, state):
        """[1/s] the fastest rate at which the law's damping alone would stop the arm (largest eigenvalue of M⁻¹ D).

        A sampled loop needs rate · (dt + delay) well below 1; 0 for a law without damping."""
        return 0.0

    def _terms(self, t, state, reference):
        raise NotImplementedError

    def _efforts(self, t, state, reference):
        raise NotImplementedError


def gains(value, n, what):
    """A gain as a read-only (n,) array, a scalar spread over the joints; raises InputError naming `what`."""
    try:
        array = np.array(np.broadcast_to(np.asarray(value, float), (n,)))
    except (TypeError, ValueError):
        raise InputError(f"{what}: {value!r} is not one number or one for each of the {n} joints") from None
    if not np.isfinite(array).all() or (array < 0.0).any():
        raise InputError(f"{what}: {array.tolist()} must be finite and not negative")
    array.setflags(write=False)
    return array
