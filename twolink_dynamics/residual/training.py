"""Learns a Residual from logs: prepare the signals, choose features, fit, and keep only what unseen samples confirm.

The target is what the model leaves over, r = τ − τ_model(q, q̇, q̈), never the torque itself. NumPy, and SciPy's L-BFGS.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..dynamics import Dynamics
from ..errors import InputError, choices
from ..friction import Friction
from .network import Residual, model_digest

CUTOFF = 30.0  # [Hz] zero-phase low-pass before q̇ is differentiated: above any tracking bandwidth, below encoder noise
HELD_OUT = 0.2  # share at the end of every log that is never trained on
MOST_SAMPLES = 10_000  # logs are decimated to this after filtering: more samples of the same motion teach little
RIDGE = 1e-4  # of the normalised loss, on the weights: keeps unused units at rest
WORTH_EXPLAINED = 0.1  # a joint keeps its output only if it explains this share of unseen residual variance ...
WORTH_TORQUE = 0.005  # ... and this share of the torque (RMS) that the joint needs; else it would only add noise
CLIP_ROOM = 1.2  # the output's bound: this times the 99.5 % quantile of what was to be learnt
PATIENCE = 40  # iterations without 0.1 % less error on held-out samples end the training
GAP, BRIDGED = 5.0, 0.02  # a time step this many times the usual one, and longer than this [s], ends a segment


class Samples(NamedTuple):
    """Aligned samples of logs: q, qd, qdd, tau, target (N, n), and held (N,) bool: not to be trained on."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray
    target: np.ndarray
    held: np.ndarray


# -- signals -----------------------------------------------------------------------------------------------------
def rigid_model(arm, friction=None):
    """The callable τ_model(q, q̇, q̈) (N, n) of an arm: rigid-body torque, and `friction(qd)` (the URDF's when None)."""
    dynamics = Dynamics(arm)
    friction = friction or Friction.from_arm(arm).torque
    return lambda q, qd, qdd: dynamics.inverse_dynamics(q, qd, qdd) + friction(qd)


def _segments(t, breaks):
    """Slices of a log without gaps and breaks; raises InputError where time does not go on elsewhere."""
    step = np.diff(t)
    cut = np.zeros(len(step), bool)
    cut[np.asarray(breaks, int) - 1] = True
    if (bad := (step <= 0.0) & ~cut).any():
        row = int(np.argmax(bad)) + 1
        raise InputError(f"log: time goes from {t[row - 1]:g} s to {t[row]:g} s at sample {row}")
    ends = [0, *(np.flatnonzero(cut | (step > max(GAP * np.median(step), BRIDGED))) + 1), len(t)]
    return [slice(a, b) for a, b in zip(ends, ends[1:])]


def prepare(log, model, n, cutoff=CUTOFF):
    """The Samples of one log, its last fifth held out: a Trajectory, an identification's Log, or anything with `t`
    (N,), `q`, `tau` (N, n), `qd` and `qdd` (N, n) or None, and maybe `breaks`: samples where something began anew.

    Without q̈ in the log, q, q̇, τ and the model's torque go through one zero-phase Butterworth low-pass (fourth order
    each way, `cutoff` [Hz], at most 0.4 of the sampling rate) and q̇ is differentiated; without q̇, the filtered q is.
    Segments end at gaps.
    Raises InputError for shapes, times and values that cannot be.
    """
    t = np.asarray(log.t, float)
    names = ("q", "qd", "tau") if log.qd is not None else ("q", "tau")
    signals = {name: np.asarray(getattr(log, name), float) for name in names}
    given = getattr(log, "qdd", None) if log.qd is not None else None
    if given is not None:
        signals["qdd"] = np.asarray(given, float)
    for name, value in signals.items():
        if value.shape != (len(t), n):
            raise InputError(f"log: {name} has shape {value.shape}, expected {(len(t), n)}")
        if not np.isfinite(value).all():
            row, column = np.argwhere(~np.isfinite(value))[0]
            raise InputError(f"log: {name} of joint {column + 1} is {value[row, column]} at sample {row}")
    if not np.isfinite(t).all():
        raise InputError(f"log: time is not finite at sample {int(np.argmax(~np.isfinite(t)))}")
    parts = []
    for part in _segments(t, getattr(log, "breaks", ())):
        if part.stop - part.start < 50:
            continue  # shorter than the filter's transient; `fit` counts what is used
        q, tau = signals["q"][part], signals["tau"][part]
        qd = signals["qd"][part] if log.qd is not None else None
        if given is not None:
            qdd = signals["qdd"][part]
            target = tau - model(q, qd, qdd)
        else:
            q, qd, qdd, tau, target = _filtered(t[part], q, qd, tau, model, cutoff)
        held = np.arange(len(q)) >= (1.0 - HELD_OUT) * len(q)
        parts.append(Samples(q, qd, qdd, tau, target, held))
    if not parts:
        raise InputError(f"log: {len(t)} samples without a stretch of 50 in a row are too few to learn from")
    return Samples(*(np.concatenate(arrays) for arrays in zip(*parts)))


def _filtered(t, q, qd, tau, model, cutoff):
    from scipy.signal import butter, sosfiltfilt
    step = np.median(np.diff(t))
    low_pass = butter(4, min(cutoff * step, 0.4), fs=1.0, output="sos")

    def smooth(x):
        return sosfiltfilt(low_pass, x, axis=0)
    if np.ptp(np.diff(t)) > 0.1 * step:  # uneven stamps: onto an even grid first
        grid = np.arange(t[0], t[-1], step)
        q, qd, tau = (None if x is None else np.stack([np.interp(grid, t, column) for column in x.T], axis=1)
                      for x in (q, qd, tau))
    if qd is None:
        qd = np.gradient(smooth(q), step, axis=0)
    left = tau - model(q, qd, np.gradient(qd, step, axis=0))  # the same filter for both sides: friction's jumps too
    slow = smooth(qd)
    return smooth(q), slow, np.gradient(slow, step, axis=0), smooth(tau), smooth(left)


# -- features ----------------------------------------------------------------------------------------------------
def _explained(rest, columns):
    """Share of the variance of `rest` (N,) that the columns (N, c) explain, and what they leave."""
    solution, *_ = np.linalg.lstsq(columns, rest, rcond=None)
    left = rest - columns @ solution
    return 1.0 - left.var() / max(rest.var(), 1e-300), left


def _ripple(k, rest, q):
    """Share of the variance of `rest` that sin kq and cos kq explain."""
    return _explained(rest, np.stack([np.sin(k * q), np.cos(k * q)], axis=1))[0]


def find_harmonics(samples, arm, most=3, highest=60):
    """[(joint, k)]: ripples sin(k q_j + φ) in the target of each joint, strongest first, after k = 1 of revolute ones.

    A scan of least-squares fits after a smooth baseline; k is whole for continuous joints, real for the others.
    A ripple counts if it explains 2 % of the target and can be told from its neighbours (two periods were seen).
    """
    from scipy.optimize import minimize_scalar
    found = [(j, 1.0) for j in range(arm.n) if not arm.prismatic[j]]
    every = slice(None, None, max(1, len(samples.q) // 4000))
    for j in range(arm.n):
        q, qd = samples.q[every, j], samples.qd[every]
        rest = samples.target[every, j]
        total = max(rest.var(), 1e-300)
        speed = max(qd[:, j].std(), 1e-9)
        baseline = [np.ones_like(q), q, np.sin(q), np.cos(q), *qd.T, *samples.qdd[every].T]
        baseline += [np.tanh(qd[:, j] / (share * speed)) for share in (0.02, 0.1, 0.5)]
        lowest = 4.0 * np.pi / max(np.ptp(q), 1e-9)
        if arm.continuous[j]:
            candidates = np.arange(max(2, np.ceil(lowest)), highest + 1)
        else:
            candidates = np.arange(max(lowest, 2.0), highest, 0.25)
        columns = baseline
        for _ in range(most):
            left = _explained(rest, np.stack(columns, axis=1))[1]
            if not len(candidates) or left.var() < 1e-12 * total:
                break
            best = max(candidates, key=lambda k, left=left, q=q: _ripple(k, left, q))
            if not arm.continuous[j]:
                best = minimize_scalar(lambda k, left=left, q=q: -_ripple(k, left, q), method="bounded",
                                       bounds=(best - 0.25, best + 0.25)).x
            if _ripple(best, left, q) * left.var() < 0.02 * total:
                break
            found.append((j, float(best)))
            columns = [*columns, np.sin(best * q), np.cos(best * q)]
    return found


def _range(q, continuous):
    """Centre and half width of the positions seen; inf where a continuous joint has been all the way round."""
    centre, half = 0.5 * (q.max(0) + q.min(0)), 0.5 * np.ptp(q, axis=0)
    for j in np.flatnonzero(continuous):
        angles = np.sort(np.remainder(q[:, j], 2.0 * np.pi))
        gaps = np.diff(np.append(angles, angles[0] + 2.0 * np.pi))
        widest = int(np.argmax(gaps))
        seen = 2.0 * np.pi - gaps[widest]
        centre[j] = angles[(widest + 1) % len(angles)] + 0.5 * seen
        half[j] = np.inf if gaps[widest] < 0.3 else 0.5 * seen
    return centre, half


# -- fit ---------------------------------------------------------------------------------------------------------
def _unpack(vector, units, width, n):
    sizes = np.cumsum([units * width, units, n * units, n * width])
    hidden, hidden_bias, readout, straight, bias = np.split(vector, sizes)
    return hidden.reshape(units, width), hidden_bias, readout.reshape(n, units), straight.reshape(n, width), bias


def _loss(vector, x, y, units):
    """Mean squared error of the normalised target plus ridge, and its gradient (back-propagation)."""
    (count, width), n = x.shape, y.shape[1]
    hidden, hidden_bias, readout, straight, bias = _unpack(vector, units, width, n)
    h = np.tanh(x @ hidden.T + hidden_bias)
    error = h @ readout.T + x @ straight.T + bias - y
    back = error * (2.0 / (count * n))
    inner = (back @ readout) * (1.0 - h * h)
    gradient = np.concatenate([(inner.T @ x).ravel(), inner.sum(0), (back.T @ h).ravel(), (back.T @ x).ravel(),
                               back.sum(0)])
    return np.mean(error**2) + RIDGE * vector @ vector / len(vector), gradient + 2.0 * RIDGE * vector / len(vector)


def _start(x, y, units, speeds, rng):
    """First weights: half of the units steep in one joint's speed (friction), half random, the rest least squares."""
    width, n = x.shape[1], y.shape[1]
    hidden = rng.normal(size=(units, width)) / np.sqrt(width)
    hidden_bias = rng.normal(size=units) * 0.5
    for unit in range(units // 2):
        hidden[unit] = 0.0
        hidden[unit, speeds + unit % n] = 2.0 * 3.0 ** (unit // n)  # slopes 2, 6, 18 per standard deviation
        hidden_bias[unit] = 0.0
    a = np.hstack([np.tanh(x @ hidden.T + hidden_bias), x, np.ones((len(x), 1))])
    solution = np.linalg.solve(a.T @ a + 1e-3 * len(a) * np.eye(a.shape[1]), a.T @ y).T
    return np.concatenate([hidden.ravel(), hidden_bias, solution[:, :units].ravel(), solution[:, units:-1].ravel(),
                           solution[:, -1]])


def fit(logs, arm, *, model=None, validate=(), units=12, seed=0, iterations=300, cutoff=CUTOFF, samples=MOST_SAMPLES,
        progress=None):
    """The Residual that explains what the model leaves over in the logs.

    logs, validate   Trajectory-like objects: t (N,) [s], q, qd, tau (N, n) and qdd or None; `validate` only judges
    model            callable τ_model(q, q̇, q̈) (N, n); None: `rigid_model(arm)`
    samples          at most so many, evenly decimated
    units            tanh units; iterations: L-BFGS steps at most, the best on held-out samples is kept
    progress         called with (iteration, held-out RMS over all joints in standard deviations of the residual);
                     KeyboardInterrupt there, or anywhere in the fit, ends it with the best so far (notes "interrupted")
    Raises InputError for logs that cannot be used.
    """
    from scipy.optimize import minimize
    if units < 1 or iterations < 1:
        raise InputError(f"units {units} and iterations {iterations} must be at least 1")
    model = model or rigid_model(arm)
    parts = [prepare(log, model, arm.n, cutoff) for log in logs]
    if not parts:
        raise InputError("no log to learn from")
    judges = [prepare(log, model, arm.n, cutoff) for log in validate]
    if judges:  # then everything else may be trained on
        parts = [part._replace(held=np.zeros(len(part.q), bool)) for part in parts]
        parts += [judge._replace(held=np.ones(len(judge.q), bool)) for judge in judges]
    everything = Samples(*(np.concatenate(arrays) for arrays in zip(*parts)))
    every = slice(None, None, -(-len(everything.q) // samples))
    everything = Samples(*(array[every] for array in everything))
    seen, held = (Samples(*(array[which] for array in everything)) for which in (~everything.held, everything.held))

    harmonics = find_harmonics(seen, arm)
    linear = np.flatnonzero(~arm.continuous)
    shape = dict(harmonic_joint=np.array([j for j, _ in harmonics], int), harmonic=np.array([k for _, k in harmonics]),
                 linear=linear)
    q, qd, qdd = seen.q, seen.qd, seen.qdd
    phase = shape["harmonic"] * q[:, shape["harmonic_joint"]]
    features = np.concatenate([np.sin(phase), np.cos(phase), q[:, linear], qd, qdd], axis=1)
    mean, spread = features.mean(0), features.std(0)
    spread = np.where(spread > 1e-9, spread, 1.0)  # a joint that never moved
    unit = np.where(seen.target.std(0) > 1e-12, seen.target.std(0), 1.0)
    centre, half = _range(q, arm.continuous)
    limits = [np.quantile(rate, (0.001, 0.999), axis=0) for rate in (qd, qdd)]
    centre = np.concatenate([centre, *(0.5 * (low + high) for low, high in limits)])
    half = np.concatenate([half, *(0.5 * (high - low) for low, high in limits)])
    clip = CLIP_ROOM * np.quantile(np.abs(seen.target), 0.995, axis=0)

    def network(vector, **more):
        hidden, hidden_bias, readout, straight, bias = _unpack(vector, units, features.shape[1], arm.n)
        return Residual(tuple(arm.joint_names), model_digest(arm), arm.continuous.copy(), mean=mean.copy(),
                        scale=spread.copy(), hidden=hidden, hidden_bias=hidden_bias, readout=unit[:, None] * readout,
                        straight=unit[:, None] * straight, bias=unit * bias, centre=centre.copy(), half=half.copy(),
                        **{name: value.copy() for name, value in shape.items()},
                        **{"clip": clip.copy(), **more})

    x, y = (features - mean) / spread, seen.target / unit
    x_held = network(np.zeros(_size(units, x.shape[1], arm.n))).features(held.q, held.qd, held.qdd)
    y_held = held.target / unit
    start = _start(x, y, units, 2 * len(harmonics) + len(linear), np.random.default_rng(seed))
    best, count, lately = [np.inf, start], [0], [0, np.inf]

    def judged(vector):
        score = _loss(vector, x_held, y_held, units)[0]
        if score < best[0]:
            best[:] = score, vector.copy()
        count[0] += 1
        if progress is not None:
            progress(count[0], float(np.sqrt(best[0])))
        if best[0] < 0.999 * lately[1]:
            lately[:] = count[0], best[0]
        elif count[0] - lately[0] > PATIENCE:
            raise StopIteration
    interrupted = False
    try:
        judged(start)
        minimize(_loss, start, args=(x, y, units), jac=True, method="L-BFGS-B", callback=judged,
                 options=dict(maxiter=iterations, maxcor=20, ftol=1e-9))
    except KeyboardInterrupt:
        interrupted = True
    return _gated(network, best[1], held, clip, dict(
        samples=int(len(seen.q)), held_out=int(len(held.q)), iterations=count[0] - 1, interrupted=interrupted,
        harmonics=[[arm.joint_names[j], round(k, 3)] for j, k in harmonics if k != 1.0], units=units, seed=seed,
        cutoff_hz=float(cutoff)))


def _size(units, width, n):
    return units * width + units + n * units + n * width + n


def _gated(network, vector, held, clip, notes):
    """The network with every joint switched off that held-out samples do not confirm, and the numbers in its notes."""
    residual = network(vector)
    left = held.target - residual.torque(held.q, held.qd, held.qdd)
    before, after = (np.sqrt(np.mean(e**2, axis=0)) for e in (held.target, left))
    needed = np.sqrt(np.mean(held.tau**2, axis=0))
    useful = ((after**2 <= (1.0 - WORTH_EXPLAINED) * before**2)
              & (np.sqrt(np.maximum(before**2 - after**2, 0.0)) >= WORTH_TORQUE * needed))
    notes |= dict(residual_rms=before.tolist(), left_rms=np.where(useful, after, before).tolist(),
                  torque_rms=needed.tolist(), useful=useful.tolist())
    return network(vector, clip=np.where(useful, clip, 0.0), notes=notes)


def summary(residual):
    """Lines that say what was learnt, joint by joint."""
    notes = residual.notes
    for name, before, after, useful in zip(residual.joint_names, notes["residual_rms"], notes["left_rms"],
                                           notes["useful"]):
        ripple = choices([f"sin {k:g} q" for joint, k in notes["harmonics"] if joint == name])
        if useful:
            yield (f"{name}: unseen residual {before:.4g} -> {after:.4g} ({100.0 * (1.0 - after / before):.0f} % less)"
                   + (f", ripple {ripple}" if ripple != "(none)" else ""))
        else:
            yield f"{name}: unseen residual {before:.4g} is noise to this network; its output is 0"
