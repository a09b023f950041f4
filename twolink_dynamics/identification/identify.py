"""From recordings to a physical arm with error bars: the whole way in one call."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..arm import Link
from ..errors import InputError
from .base_parameters import base_parameters
from .consistent import physically_consistent
from .fit import Block, least_squares
from .model import FrictionTerms, Model
from .result import Identification
from .signals import bandwidth, prepare

REST = 0.02  # rad/s or m/s: a joint slower than this for REST_TIME is at rest, where friction may be anything
REST_TIME = 0.1  # s
STRIBECK_GRID = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)  # rad/s
MAX_DELAY = 0.05  # s


@dataclass(frozen=True)
class Payload:
    """A known body that was on the tip (or the named frame) while recording: mass [kg], com (3,) [m] and inertia (3, 3)
    about its com [kg m²] in that frame. Its torque is subtracted, so that the arm comes out without it."""

    mass: float
    com: tuple = (0.0, 0.0, 0.0)
    inertia: tuple = ((0.0,) * 3,) * 3
    frame: str | None = None


def identify(
    arm,
    logs,
    *,
    validate=(),
    hz=None,
    order=3,
    velocity="position",
    friction=None,
    stribeck=False,
    rotor="none",
    offset=False,
    fixed=(),
    payload=None,
    delay="auto",
    weighted=True,
    robust=True,
    prior_weight=0.1,
    progress=None,
):
    """The Identification of an arm from one or more Logs.

    arm           the Arm as described (CAD): geometry is taken from it, masses and friction serve as the prior
    validate      Logs that take no part in the fit
    hz, order     zero-phase Butterworth filter; None: chosen from the spectra (see `signals.bandwidth`)
    velocity      "position" or "measured" (see `signals.prepare`)
    friction      FrictionTerms (default: viscous and Coulomb); stribeck=True adds that term and searches its velocity
    rotor         "none" (the arm's stay), "diagonal" or "coupled"
    offset        fit a constant effort per joint
    fixed         names of parameters held at the arm's values, or {name: value}
    payload       Payload that was on the arm while recording
    delay         [s] by which positions were recorded later than efforts, or "auto": estimated with its standard error,
                  applied where it is more than twice that; the parameters' intervals contain its uncertainty
    weighted, robust   joint weighting and Huber's function in the least squares
    prior_weight  of the CAD bodies in the physical fit (see `consistent`)
    progress      callable(text), told what is being done

    Ctrl-C while logs are prepared or scans run: goes on with what there is and says so in `remarks`.
    Raises InputError on logs that cannot be used, each in one line.
    """
    logs, validate = _as_list(logs), _as_list(validate)
    if not logs:
        raise InputError("no log to identify from")
    tell = progress or (lambda text: None)
    friction = friction or FrictionTerms()
    automatic = isinstance(delay, str)
    if automatic and delay != "auto":
        raise InputError(f"delay '{delay}' is neither a number of seconds nor auto")
    remarks = [f"{log.name}: {remark}" for log in [*logs, *validate] for remark in log.remarks]
    if hz is None:
        choices_ = [bandwidth(log) for log in logs]
        hz, reason = min(choices_)
    else:
        hz, reason = float(hz), f"{float(hz):g} Hz, as asked for"
    job = _Job(arm, logs, hz, order, velocity, payload, tell)
    model = Model(arm, friction, rotor, offset, fixed)
    interrupted = False
    try:
        job.prepare(0.0 if automatic else float(delay))
    except KeyboardInterrupt:
        if not job.signals:
            raise
        interrupted = True
        remarks.append(f"stopped by Ctrl-C: only {len(job.signals)} of {len(logs)} logs used")
    estimate = (0.0 if automatic else float(delay), 0.0)
    try:
        if stribeck and not interrupted:
            model = _search_stribeck(job, model, weighted, robust, tell)
        base = base_parameters(model)
        _say_rank(base, model, tell)
        blocks = job.blocks(model, base)
        if automatic and not interrupted:
            estimate = _estimate_delay(job, model, base, weighted, robust, tell)
            blocks = job.blocks(model, base)
    except KeyboardInterrupt:
        interrupted = True
        remarks.append("stopped by Ctrl-C: the search for the Stribeck velocity or the delay is not finished")
        base = base_parameters(model)
        blocks = job.blocks(model, base)
    tell("least squares")
    if automatic:
        fit = least_squares(
            _with_delay(blocks, least_squares(blocks, weighted, robust).beta), weighted, robust
        ).without(1)
    else:
        fit = least_squares(blocks, weighted, robust)
    tell("physically consistent fit")
    fit, physical, factor = _reconciled(model, base, fit, prior_weight)
    if factor > 1.05:
        remarks.append(
            f"no physical arm explains these data as well as their noise would allow: all standard errors widened "
            f"{factor:.1f} times"
        )
    for signals in job.signals:
        remarks += [f"{signals.name}: {remark}" for remark in signals.remarks]
    rest = sum(int((~block.used).sum()) for block in blocks)
    if rest:
        total = sum(block.used.size for block in blocks)
        remarks.append(
            f"{rest} of {total} rows (each joint counted) not used: the joint was at rest (|q̇| < {REST} for "
            f"{2 * REST_TIME} s), where friction can be anything"
        )
    result = Identification(
        arm,
        model,
        base,
        fit,
        physical,
        tuple(job.signals),
        (),
        blocks,
        job.payload_values(model),
        hz,
        reason,
        order,
        velocity,
        estimate,
        prior_weight,
        tuple(remarks),
        interrupted,
    )
    checks = []
    for log in validate:
        tell(f"validating on {log.name}")
        checks.append(prepare(log, hz, order, velocity, estimate[0]))
    return replace(result, validation=tuple(checks))


def _reconciled(model, base, fit, prior_weight, rounds=20):
    """(fit, physical, factor): the errors widened until the best physical arm is within them.

    Where the least-squares optimum lies outside every physical arm, the residual is not the noise the errors were
    computed from (the motion was poor, or the model lacks something): its χ² per degree of freedom over 1 is taken out
    (Birge's ratio)."""
    factor = 1.0
    for _ in range(rounds):
        physical = physically_consistent(model, base.K, fit, prior_weight)
        away = base.K @ physical.values - fit.beta
        ratio = float(np.sqrt(away @ fit.information @ away / len(away)))
        if ratio <= 1.05:
            break
        fit = fit.widened(ratio)
        factor *= ratio
    return fit, physical, factor


def _as_list(logs):
    return list(logs) if isinstance(logs, (list, tuple)) else [logs]


class _Job:
    """The logs of one identification and what is made of them."""

    def __init__(self, arm, logs, hz, order, velocity, payload, tell):
        self.arm, self.logs, self.hz, self.order, self.velocity, self.tell = arm, logs, hz, order, velocity, tell
        self.payload = payload
        self.signals = []
        self._columns = (None, {})  # model, {log: (W, known torque)}: a delay shifts efforts only

    def prepare(self, delay):
        done = []
        for k, log in enumerate(self.logs, 1):
            self.tell(f"filtering {log.name} ({k} of {len(self.logs)})")
            done.append(prepare(log, self.hz, self.order, self.velocity, delay))
            if len(self.signals) < len(done):
                self.signals.append(done[-1])
        self.signals = done

    def payload_values(self, model):
        """(P,) parameters of the payload, at the link it was on."""
        values = np.zeros(len(model.names))
        if self.payload is not None:
            at = self.arm.frame(self.payload.frame)
            body = Link("payload", self.payload.mass, self.payload.com, self.payload.inertia).moved(at.pose)
            if at.link >= 0:
                values[10 * at.link : 10 * at.link + 10] = body.parameters
        return values

    def blocks(self, model, base):
        """Blocks of the base regressor; both sides have passed the filter once more than the motion has."""
        blocks = []
        held = np.where(model.fixed, model.prior, 0.0) + self.payload_values(model)
        if self._columns[0] is not model:
            self._columns = (model, {})
        cache = self._columns[1]
        for k, s in enumerate(self.signals, 1):
            if k not in cache:
                self.tell(f"regressor of {s.name} ({k} of {len(self.signals)})")
                Y = model.columns(s.q, s.qd, s.qdd)
                cache[k] = s.filtered(Y[..., base.independent]), s.filtered(Y @ held + model.known(s.q, s.qd, s.qdd))
            W, known = cache[k]
            tau = s.tau - known
            used = _moving(s) if model.friction.coulomb else np.ones(s.tau.shape, bool)
            step = max(1, int(1.0 / (5.0 * self.hz * s.dt)))  # band-limited: five rows a period lose nothing
            for piece in s.pieces:
                rows = slice(piece.start + s.margin, piece.stop - s.margin, step)
                if rows.stop - rows.start > 4 * step:
                    blocks.append(Block(W[rows], tau[rows], s.dt * step, used[rows]))
        if not blocks:
            raise InputError(f"no rows left between the ends that a {self.hz:g} Hz filter needs to settle")
        return blocks


def _moving(signals):
    """(T, n) bool: False where a joint has been at rest for a while."""
    window = 2 * int(REST_TIME / signals.dt) + 1
    moving = np.empty(signals.qd.shape, bool)
    for piece in signals.pieces:
        fast = (np.abs(signals.qd[piece]) > REST).astype(float)
        for j in range(fast.shape[1]):
            moving[piece, j] = np.convolve(fast[:, j], np.ones(window), "same") > 0.5
    return moving


def _with_delay(blocks, beta):
    """Blocks with one more column: the rate of the predicted torque, whose coefficient is a delay [s]."""
    out = []
    for block in blocks:
        rate = np.gradient(np.einsum("tnb,b->tn", block.W, beta), block.dt, axis=0)
        out.append(replace(block, W=np.concatenate([block.W, rate[..., None]], axis=-1)))
    return out


def _estimate_delay(job, model, base, weighted, robust, tell):
    """(delay, standard error) [s] by Gauss–Newton: τ(t − d − δ) = Yβ  ⇒  τ(t − d) = Yβ + δ d(Yβ)/dt."""
    delay = error = 0.0
    for _ in range(4):
        blocks = job.blocks(model, base)
        beta = least_squares(blocks, weighted, robust).beta
        fit = least_squares(_with_delay(blocks, beta), weighted, robust)
        step, error = float(fit.beta[-1]), float(fit.standard_errors[-1])
        delay = float(np.clip(delay + step, -MAX_DELAY, MAX_DELAY))
        tell(f"delay {1e3 * delay:.3g} ms")
        job.prepare(delay)
        if abs(step) < 0.1 * error:
            break
    if abs(delay) < 2.0 * error:
        delay = 0.0
        job.prepare(delay)
    return delay, error


def _search_stribeck(job, model, weighted, robust, tell):
    """The model with the Stribeck velocity of the grid that leaves the least residual."""
    best = (np.inf, None)
    for speed in STRIBECK_GRID:
        tell(f"Stribeck velocity {speed:g} rad/s")
        trial = Model(
            model.arm,
            replace(model.friction, stribeck_velocity=speed),
            model.rotor,
            model.offset,
            dict(zip(np.array(model.names)[model.fixed], model.prior[model.fixed])),
        )
        base = base_parameters(trial)
        fit = least_squares(job.blocks(trial, base), weighted, robust)
        best = min(best, (float((fit.sigma**2).sum()), speed), key=lambda pair: pair[0])
    return Model(
        model.arm,
        replace(model.friction, stribeck_velocity=best[1]),
        model.rotor,
        model.offset,
        dict(zip(np.array(model.names)[model.fixed], model.prior[model.fixed])),
    )


def _say_rank(base, model, tell):
    tell(f"{len(base.names)} base parameters of {int((~model.fixed).sum())}")
