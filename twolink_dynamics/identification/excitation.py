"""Motions that tell the parameters apart: finite Fourier series within the arm's limits, optimised for conditioning.

    q_i(t) = c_i + Σ_k [a_ik sin(k ω t) − b_ik cos(k ω t)] / (k ω)

(Swevers et al. 1997). Periodic, so it can be averaged over periods; and at rest at the ends of each period, since the
coefficients are kept in the null space of q̇(0) = Σ a_ik = 0 and q̈(0) = Σ k b_ik = 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..dynamics import Dynamics
from ..errors import InputError
from .base_parameters import base_parameters
from .model import FrictionTerms, Model

SAMPLES = 120  # per period, in the optimisation
FINE = 1000  # per period, where limits are enforced
MARGIN = 0.95  # of every limit is used


@dataclass(frozen=True, eq=False)
class Excitation:
    """A periodic motion. names; period [s]; centre (n,); a, b (n, K) [rad/s]; condition of the scaled base regressor;
    interrupted.

    `limits` {"position": …, "velocity": …, "acceleration": …, "effort": …}: the largest share of each limit that is
    used, (n,) each."""

    names: tuple
    period: float
    centre: np.ndarray
    a: np.ndarray
    b: np.ndarray
    condition: float
    limits: dict
    interrupted: bool = False

    def sample(self, t):
        """(q, q̇, q̈), each (…, n), at times t (…) [s]."""
        return _series(self.centre, self.a, self.b, self.period, np.asarray(t, float))

    def points(self, periods=1, rate=50.0, lead=3.0):
        """(t (N,), q, qd, qdd) to be played: `lead` seconds from wherever the arm is to the start, then `periods`
        periods."""
        t = np.arange(int(round(periods * self.period * rate)) + 1) / rate
        q, qd, qdd = self.sample(t)
        for values in (qd, qdd):  # the last point is one of rest, to rounding
            values[0] = values[-1] = 0.0
        return lead + t, q, qd, qdd


def _series(centre, a, b, period, t):
    k = np.arange(1, a.shape[1] + 1)
    w = 2.0 * np.pi / period * k
    sine, cosine = np.sin(t[..., None] * w), np.cos(t[..., None] * w)
    q = centre + sine @ (a / w).T - cosine @ (b / w).T
    return q, cosine @ a.T + sine @ b.T, -sine @ (a * w).T + cosine @ (b * w).T


def optimise_excitation(
    arm,
    *,
    period=10.0,
    harmonics=5,
    lower=None,
    upper=None,
    velocity=None,
    acceleration=None,
    effort=None,
    friction=None,
    rotor="none",
    seed=0,
    iterations=300,
    progress=None,
):
    """The Excitation with the best-conditioned base regressor that was found.

    lower, upper, velocity, effort   (n,) limits, default: the arm's; where it has none: ±π/2 [rad] (±0.1 m), 2 rad/s,
                                     none
    acceleration                     (n,) [rad/s²], default 4 × velocity limit per second
    friction, rotor                  what is to be identified (see `Model`)
    iterations                       of a (1 + 6) evolution strategy with step-size control; `progress(iteration,
    condition)` Ctrl-C returns the best so far, marked `interrupted`. Raises InputError on limits that leave no motion.
    """
    n = arm.n
    if not period > 0.0 or harmonics < 2:
        raise InputError(f"excitation: period {period:g} s must be positive and harmonics {harmonics} at least 2")
    low, high, speed, rise, torque = _limits(arm, lower, upper, velocity, acceleration, effort)
    model = Model(arm, friction or FrictionTerms(), rotor)
    base = base_parameters(model)
    dynamics = Dynamics(arm)
    rng = np.random.default_rng(seed)
    free_a = _null_space(np.ones(harmonics))
    free_b = _null_space(np.arange(1.0, harmonics + 1))
    size = harmonics - 1

    def shaped(z):
        """(centre, a, b) within position, velocity and acceleration limits; z (n, 2 size + 1)."""
        a, b = z[:, :size] @ free_a.T, z[:, size : 2 * size] @ free_b.T
        t = np.arange(FINE // 2) * (2.0 * period / FINE)
        q, qd, qdd = _series(np.zeros(n), a, b, period, t)
        span = np.ptp(q, axis=0)
        factor = np.minimum.reduce([(high - low) / span, speed / np.abs(qd).max(0), rise / np.abs(qdd).max(0)]) * MARGIN
        a, b = a * factor[:, None], b * factor[:, None]
        lowest, highest = q.min(0) * factor, q.max(0) * factor
        room = (high - low) - (highest - lowest)
        place = 1.0 / (1.0 + np.exp(-z[:, -1]))
        centre = low + room * (0.5 * (1.0 - MARGIN) + MARGIN * place) - lowest
        return centre, a, b

    def regressor_condition(centre, a, b):
        t = np.arange(SAMPLES) * (period / SAMPLES)
        W = model.columns(*_series(centre, a, b, period, t))[..., base.independent].reshape(-1, len(base.independent))
        lengths = np.linalg.norm(W, axis=0)
        if lengths.min() < 1e-9 * lengths.max():
            return np.inf
        singular = np.linalg.svd(W / lengths, compute_uv=False)
        return float(singular[0] / max(singular[-1], 1e-300))

    def within_torque(centre, a, b):
        """The same motion with smaller amplitude until the torque fits; None where holding the arm already does not."""
        if not np.isfinite(torque).any():
            return centre, a, b
        t = np.arange(FINE // 4) * (4.0 * period / FINE)
        for factor in 0.85 ** np.arange(24):
            q, qd, qdd = _series(centre, factor * a, factor * b, period, t)
            tau = dynamics.inverse_dynamics(q, qd, qdd) + arm.damping * qd + arm.coulomb * np.sign(qd)
            if (np.abs(tau).max(0) <= MARGIN * torque).all():
                return centre, factor * a, factor * b
        return None

    def cost(z):
        fitting = within_torque(*shaped(z))
        return (regressor_condition(*fitting), fitting) if fitting is not None else (np.inf, None)

    best_z, best, interrupted, step = None, (np.inf, None), False, 0.5
    try:
        for _ in range(8):
            z = rng.normal(size=(n, 2 * size + 1))
            trial = cost(z)
            if best_z is None or trial[0] < best[0]:
                best_z, best = z, trial
        for iteration in range(iterations):
            candidates = [best_z + step * rng.normal(size=best_z.shape) for _ in range(6)]
            results = [cost(z) for z in candidates]
            k = int(np.argmin([value for value, _ in results]))
            if results[k][0] < best[0]:
                best_z, best, step = candidates[k], results[k], min(1.3 * step, 1.0)
            else:
                step = max(0.85 * step, 1e-3)
            if progress:
                progress(iteration + 1, best[0])
    except KeyboardInterrupt:
        if best[1] is None:
            raise
        interrupted = True
    if best[1] is None:
        raise InputError(
            "excitation: no motion found within these limits; the effort limits may be below what holds the arm "
            f"({', '.join(f'{x:g}' for x in torque)})"
        )
    centre, a, b = best[1]
    return Excitation(
        arm.joint_names,
        float(period),
        centre,
        a,
        b,
        best[0],
        _used(arm, dynamics, centre, a, b, period, (low, high, speed, rise, torque)),
        interrupted,
    )


def _null_space(row):
    return np.linalg.svd(row[None, :])[2][1:].T


def _limits(arm, lower, upper, velocity, acceleration, effort):
    def given(value, default, what):
        try:
            return np.array(np.broadcast_to(np.asarray(default if value is None else value, float), (arm.n,)))
        except (TypeError, ValueError):
            raise InputError(f"excitation: {what} {value!r} is not one value for each of the {arm.n} joints") from None

    half = np.where(arm.prismatic, 0.1, 0.5 * np.pi)
    low = given(lower, np.where(np.isfinite(arm.lower), arm.lower, -half), "lower")
    high = given(upper, np.where(np.isfinite(arm.upper), arm.upper, half), "upper")
    speed = given(velocity, np.where(np.isfinite(arm.velocity_limit), arm.velocity_limit, 2.0), "velocity")
    rise = given(acceleration, 4.0 * speed, "acceleration")
    torque = given(effort, arm.effort_limit, "effort")
    for what, values in (
        ("velocity", speed),
        ("acceleration", rise),
        ("effort", torque),
        ("upper − lower", high - low),
    ):
        if not (values > 0.0).all():
            j = int(np.argmin(values))
            raise InputError(f"excitation: {what} {values[j]:g} of joint '{arm.joint_names[j]}' leaves no motion")
    return low, high, speed, rise, torque


def _used(arm, dynamics, centre, a, b, period, limits):
    low, high, speed, rise, torque = limits
    q, qd, qdd = _series(centre, a, b, period, np.arange(FINE) * (period / FINE))
    tau = dynamics.inverse_dynamics(q, qd, qdd) + arm.damping * qd + arm.coulomb * np.sign(qd)
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    return {
        "position": (np.abs(q - middle) / half).max(0),
        "velocity": (np.abs(qd) / speed).max(0),
        "acceleration": (np.abs(qdd) / rise).max(0),
        "effort": (np.abs(tau) / torque).max(0),
    }
