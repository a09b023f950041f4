"""The four-way proof of an arm's equations, with figures.

1. Lagrange, symbolic    Euler–Lagrange from positions = the planar closed form, exactly; both against the model in use
2. Newton–Euler          recursive, against the model in use, relative 1e-12
3. Lagrange, numeric     nested central differences of L with step 1e-4, relative 1e-7
4. Energy                free fall with DOP853 (rtol 1e-10, atol 1e-12), 5 s, 5001 instants, below 2e-8 J

Energy alone does not see an error that does no work; the other three do. What does not apply to an arm says so.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import newton_euler, planar
from .dynamics import Dynamics
from .errors import InputError, ModelError, SimulationError
from .kinematics import link_poses, mass_matrix

ENGINES = 1e-12  # relative, between two ways that only round differently
DIFFERENCES = 1e-7  # relative, of nested central differences: truncation h² and rounding ε/h² meet near it
STEP = 1e-4  # of those differences, ≈ ε^¼
DRIFT = 2e-8  # [J] over 5 s on an arm that swings some 20 J,
RELATIVE_DRIFT = 1e-9  # and relative to the largest kinetic energy on heavier ones
TIGHTNESS = ((1e-10, 1e-12), (1e-12, 1e-14))  # rtol, atol; the second where the first leaves the integrator's own error
INSTANTS = 5001
MAX_EVALUATIONS = 2_000_000  # of forward dynamics in the free fall


@dataclass(frozen=True)
class Check:
    """One figure of the proof: `value` must not exceed `tolerance`; value None where the check does not apply."""

    way: str
    name: str
    value: float | None
    tolerance: float = 0.0
    unit: str = "relative"
    note: str = ""

    @property
    def passed(self):
        """True, False, or None where the check does not apply."""
        return None if self.value is None else bool(self.value <= self.tolerance)


@dataclass(frozen=True)
class Proof:
    """All checks of one arm; `passed` when none of those that apply failed."""

    arm: str
    checks: tuple

    @property
    def passed(self):
        return all(check.passed is not False for check in self.checks)

    def failed_ways(self):
        """Names of the ways that disagree, in order."""
        return tuple(dict.fromkeys(check.way for check in self.checks if check.passed is False))

    def text(self):
        """A line per check."""
        verdict = "all ways agree" if self.passed else f"DISAGREEMENT in {', '.join(self.failed_ways())}"
        lines = [f"{self.arm}: {verdict}"]
        for check in self.checks:
            mark = {True: "ok  ", False: "FAIL", None: "-   "}[check.passed]
            if check.value is None:
                figure = "does not apply"
            elif check.tolerance == 0.0:
                figure = f"{check.value:g} {check.unit} (must be 0)"
            else:
                figure = f"{check.value:.2e} {check.unit} (limit {check.tolerance:.0e})"
            note = f"; {check.note}" if check.note else ""
            lines.append(f"  {mark} {check.way:20} {check.name}: {figure}{note}")
        return "\n".join(lines)


def verify(arm, model=None, samples=50, duration=5.0, progress=None):
    """The Proof for an arm.

    model      what is judged: anything with the methods of Dynamics (default: Dynamics(arm))
    samples    number of random states; duration [s] of the free fall (0 leaves it out)
    progress   called with a line of text before each slow part
    """
    if samples < 1 or not 0.0 <= duration < np.inf:
        raise InputError(f"verify: samples {samples} and duration {duration} must be at least 1 and 0")
    model = Dynamics(arm) if model is None else model
    say = progress or (lambda line: None)
    rng = np.random.default_rng(6)
    q, qd, qdd = (rng.uniform(-bound, bound, (samples, arm.n)) for bound in (np.pi, 2.0, 4.0))
    checks = [*_symbolic(arm, model, q, qd, qdd, say)]
    say("Newton-Euler")
    engine = getattr(model, "engine", None)
    worst = _worst(_Numeric(arm), model, q, qd, qdd)
    checks.append(Check("Newton-Euler", f"recursive = {_name(model)}", worst, ENGINES,
                        note="the model in use is Newton-Euler itself" if engine == "newton_euler" else ""))
    say("Lagrange by finite differences")
    tau = model.inverse_dynamics(q, qd, qdd)
    checks.append(Check("Lagrange, numeric", f"finite differences = {_name(model)}",
                        _relative(finite_difference_torque(arm, q, qd, qdd), tau), DIFFERENCES))
    if duration:
        say(f"free fall of {duration:g} s")
        checks.append(_energy(arm, model, duration, say))
    return Proof(arm.name, tuple(checks))


def _name(model):
    engine = getattr(model, "engine", None)
    return f"{type(model).__name__} ({engine})" if engine else type(model).__name__


def _relative(ours, theirs):
    """Largest difference over the largest entry (at least 1); inf where something is not finite."""
    ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
    error = np.abs(ours - theirs).max() / max(1.0, np.abs(theirs).max())
    return float(error) if np.isfinite(error) else np.inf


class _Numeric:
    """newton_euler or planar functions of one arm behind the methods of Dynamics."""

    def __init__(self, arm, module=newton_euler):
        self.arm, self.module = arm, module

    def __getattr__(self, name):
        function = getattr(self.module, "gravity_torque" if name == "gravity" else name)
        return lambda *arguments: function(self.arm, *arguments)


def _worst(one, model, q, qd, qdd):
    """Largest relative difference over everything that both compute."""
    pairs = [(one.inverse_dynamics(q, qd, qdd), model.inverse_dynamics(q, qd, qdd)),
             (one.mass_matrix(q), model.mass_matrix(q)), (one.coriolis_matrix(q, qd), model.coriolis_matrix(q, qd)),
             (one.gravity(q), model.gravity(q)), (one.bias(q, qd), model.bias(q, qd))]
    pairs += zip(one.energy(q, qd), model.energy(q, qd))
    # forward dynamics is compared through M q̈, so that an ill-conditioned M does not speak for the model
    M = one.mass_matrix(q)
    tau = one.inverse_dynamics(q, qd, qdd)
    pairs.append(((M @ model.forward_dynamics(q, qd, tau)[..., None])[..., 0], (M @ qdd[..., None])[..., 0]))
    return max(_relative(theirs, ours) for ours, theirs in pairs)


def _symbolic(arm, model, q, qd, qdd, say):
    way = "Lagrange, symbolic"
    try:
        parameters, reason = planar.TwoLinkParameters.from_arm(arm), ""
    except ModelError as error:
        parameters, reason = None, str(error)
    if parameters is not None:
        say("Euler-Lagrange of the two-link arm with every parameter a symbol")
        yield Check(way, "Euler-Lagrange - closed form, all parameters symbols", two_link_defects(),
                    unit="equations differ")
        worst = _worst(_Numeric(parameters, planar), model, q, qd, qdd)
        yield Check(way, f"closed form = {_name(model)}", worst, ENGINES)
    else:
        yield Check(way, "closed form", None, note=reason)
    try:
        from . import lagrangian
        say(f"Euler-Lagrange of {arm.name} with its numbers")
        symbolic = lagrangian.SymbolicDynamics(arm)
    except ModelError as error:
        yield Check(way, "Euler-Lagrange with the arm's numbers", None, note=str(error))
        return
    yield Check(way, "Euler-Lagrange - (M q̈ + C q̇ + g), the arm's numbers", symbolic.equations.defect(),
                unit="terms left")
    yield Check(way, f"Euler-Lagrange = {_name(model)}", _worst(symbolic, model, q, qd, qdd), ENGINES)


def two_link_defects():
    """How many of the two equations of `lagrangian.two_link` differ from `planar`'s closed form: 0, exactly."""
    import sympy

    from .lagrangian import trigonometric_zero, two_link
    derived = two_link()
    p = planar.TwoLinkParameters(**derived.parameters)
    t = planar.terms(p, *derived.theta, lib=sympy)
    (w1, w2), (a1, a2) = derived.rate, derived.acceleration
    closed = (t.M11 * a1 + t.M12 * a2 - t.b * (2 * w1 * w2 + w2**2) + t.g1,
              t.M12 * a1 + t.M22 * a2 + t.b * w1**2 + t.g2)
    return sum(not trigonometric_zero(tau - ours, derived.theta) for tau, ours in zip(derived.torque, closed))


def finite_difference_torque(arm, q, qd, qdd, step=STEP):
    """τ (…, n) by Euler–Lagrange with nested central differences of L along q(t) = q + q̇ t + ½ q̈ t²."""
    q, qd, qdd = (np.asarray(x, float)[..., None, :] for x in (q, qd, qdd))
    units = step * np.eye(arm.n)

    def momentum(time):
        at, rate = q + qd * time + 0.5 * qdd * time**2, qd + qdd * time
        return (_lagrangian(arm, at, rate + units) - _lagrangian(arm, at, rate - units)) / (2.0 * step)
    slope = (_lagrangian(arm, q + units, qd) - _lagrangian(arm, q - units, qd)) / (2.0 * step)
    return (momentum(step) - momentum(-step)) / (2.0 * step) - slope


def _lagrangian(arm, q, qd):
    """L = K − P from the velocities (Jacobians) and positions of the centres of mass."""
    q, qd = np.broadcast_arrays(q, qd)
    kinetic = 0.5 * np.einsum("...i,...ij,...j->...", qd, mass_matrix(arm, q), qd)
    rotations, origins = link_poses(arm, q)
    return kinetic + sum(link.mass * ((origins[i] + rotations[i] @ link.com) @ arm.gravity)
                         for i, link in enumerate(arm.links))


def free_fall(arm, model, duration=5.0, start=None, say=None, rtol=1e-10, atol=1e-12):
    """(times, energy drift E − E0 [J], largest kinetic energy [J]) of the arm let go at rest in `start` (q = 0), τ = 0.

    The energy is Newton–Euler's, whatever the model. Raises SimulationError where the integration gives up."""
    from scipy.integrate import solve_ivp
    n, idle = arm.n, np.zeros(arm.n)
    heard = {"calls": 0, "next": 1.0}

    def rate(time, x):
        heard["calls"] += 1
        if heard["calls"] > MAX_EVALUATIONS:
            raise SimulationError(f"free fall of '{arm.name}': more than {MAX_EVALUATIONS} evaluations by "
                                  f"t = {time:.3g} s")
        if say and time >= heard["next"]:
            say(f"free fall at t = {time:.1f} s of {duration:g} s")
            heard["next"] = time + 1.0
        return np.concatenate([x[n:], model.forward_dynamics(x[:n], x[n:], idle)])
    instants = max(2, int(round(INSTANTS * duration / 5.0)))
    with np.errstate(over="ignore", invalid="ignore"):
        run = solve_ivp(rate, (0.0, duration), np.append(np.zeros(n) if start is None else start, np.zeros(n)),
                        method="DOP853", rtol=rtol, atol=atol, t_eval=np.linspace(0.0, duration, instants))
    if not run.success or len(run.t) < instants:
        raise SimulationError(f"free fall of '{arm.name}' stopped at t = {run.t[-1] if len(run.t) else 0.0:.3g} s: "
                              f"{run.message}")
    kinetic, potential = newton_euler.energy(arm, run.y[:n].T, run.y[n:].T)
    total = kinetic + potential
    return run.t, total - total[0], float(kinetic.max())


def _energy(arm, model, duration, say):
    start = np.zeros(arm.n)
    balanced = np.abs(newton_euler.gravity_torque(arm, start)).max() <= 1e-9 * sum(link.mass for link in arm.links)
    if balanced:  # an arm that points straight up would not move at all
        start = start + 0.5
    name = f"drift in free fall, {duration:g} s from rest in q = {0.5 if balanced else 0:g}"
    if not arm.gravity.any():
        return Check("Energy", name, None, note="there is no gravity")
    for rtol, atol in TIGHTNESS:
        try:
            _, drift, swing = free_fall(arm, model, duration, start, say, rtol, atol)
        except SimulationError as error:
            return Check("Energy", name, np.inf, DRIFT, "J", str(error))
        check = Check("Energy", name, float(np.abs(drift).max()), max(DRIFT, RELATIVE_DRIFT * swing), "J",
                      f"rtol {rtol:.0e}, kinetic energy up to {swing:.3g} J")
        if check.passed or check.value > 1e4 * check.tolerance:  # a model that is wrong stays wrong with smaller steps
            break
    return Check("Energy", name, None, note="gravity moves nothing here") if swing == 0.0 else check


# -- models that are wrong on purpose --------------------------------------------------------------------------------
class WrongModel:
    """A model whose velocity torques are off by `change(q, q̇)` (…, n): what the proof has to catch."""

    def __init__(self, model, change):
        self.model, self.change = model, change

    def __getattr__(self, name):
        return getattr(self.model, name)

    def inverse_dynamics(self, q, qd, qdd):
        return self.model.inverse_dynamics(q, qd, qdd) + self.change(np.asarray(q, float), np.asarray(qd, float))

    def bias(self, q, qd):
        return self.model.bias(q, qd) + self.change(np.asarray(q, float), np.asarray(qd, float))

    def forward_dynamics(self, q, qd, tau):
        change = self.change(np.asarray(q, float), np.asarray(qd, float))
        return self.model.forward_dynamics(q, qd, np.asarray(tau, float) - change)


def lost_factor(arm):
    """The two-link arm with 2 q̇1 q̇2 written as q̇1 q̇2 in τ1: an energy drift of 18.6 J on the shipped arm."""
    p = planar.TwoLinkParameters.from_arm(arm)

    def change(q, qd):
        b = planar.terms(p, q[..., 0] + p.start1, p.elbow * q[..., 1] + p.start2).b
        return np.stack([p.elbow * b * qd[..., 0] * qd[..., 1], np.zeros(q.shape[:-1])], axis=-1)
    return WrongModel(Dynamics(arm), change)


def workless_error(arm, size=0.05):
    """A model with a torque S q̇, S skew: q̇ᵀ S q̇ = 0, so that its energy balances and it is wrong all the same."""
    if arm.n < 2:
        raise ModelError(f"arm '{arm.name}' has one coordinate; a workless velocity torque needs two")
    S = np.zeros((arm.n, arm.n))
    S[0, 1], S[1, 0] = size, -size
    return WrongModel(Dynamics(arm), lambda q, qd: qd @ S.T)
