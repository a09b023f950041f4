"""Many simulations at once: Runge–Kutta steps of one arm from many states, on all cores, with bounded memory."""
from __future__ import annotations

import sys
import time
import warnings
from typing import NamedTuple

import numpy as np

from .arm import Arm
from .dynamics import NEWTON_EULER, Dynamics
from .errors import InputError, TwolinkWarning

PATIENCE = 1.0  # seconds before a progress bar shows up
PIECE = 200_000_000  # about how many operations between two looks at the clock
MEMORY = 8e9  # bytes of result that are refused


class BatchResult(NamedTuple):
    """t (K + 1,) [s]; q, qd (…, K + 1, n), the initial state first."""

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray


def simulate_batch(arm, q0, qd0, tau, dt, steps, every=1, progress=None):
    """Integrates M q̈ + C q̇ + g + b q̇ = τ by classical RK4 with τ held over each step, for a batch of states.

    arm       Arm, or a Dynamics of it (for its engine, gravity and payload)
    q0, qd0   (…, n) initial states [rad or m, rad/s or m/s]; leading axes broadcast
    tau       effort [N m or N]: (n,) or (…, n) held throughout, or sampled per step as (steps, n) or (…, steps, n)
              (a second-last axis of length `steps` means samples; to hold a batch of exactly `steps`, give it a 1:
              (steps, 1, n))
    dt        step [s];  steps  their number;  every  keep each every-th state (the memory is bounded by this)
    progress  called with the fraction done; None: a bar on stderr when it is a terminal and the run is long

    Smooth viscous friction b of the arm's joints is part of it; Coulomb friction, stops and limits are not (use
    `Simulation`), which is said where the arm has Coulomb friction. The result does not depend on the number of cores.
    Returns BatchResult. Raises InputError on shapes that do not fit, naming them.
    """
    dynamics = arm if isinstance(arm, Dynamics) else Dynamics(arm) if isinstance(arm, Arm) else None
    if dynamics is None:
        raise InputError(f"simulate_batch needs an Arm or a Dynamics, not {type(arm).__name__}")
    n = dynamics.n
    steps, every = _count("steps", steps), _count("every", every)
    if steps % every:
        raise InputError(f"every: {every} does not divide the {steps} steps")
    if not (np.isscalar(dt) and np.isfinite(dt) and dt > 0.0):
        raise InputError(f"dt: {dt!r} must be a positive, finite number of seconds")
    q0, qd0, tau = dynamics._vectors(q0=q0, qd0=qd0, tau=tau)
    sampled = tau.ndim >= 2 and tau.shape[-2] in (1, steps)
    tau_batch = tau.shape[:-2] if sampled else tau.shape[:-1]
    try:
        batch = np.broadcast_shapes(q0.shape[:-1], qd0.shape[:-1], tau_batch)
    except ValueError:
        raise InputError(f"simulate_batch: shapes q0 {q0.shape}, qd0 {qd0.shape} and tau {tau.shape} do not fit "
                         f"{steps} steps of one batch") from None
    if np.any(dynamics.arm.coulomb):
        names = [name for name, c in zip(dynamics.arm.joint_names, dynamics.arm.coulomb) if c]
        warnings.warn(f"Coulomb friction of {', '.join(names)} is left out: it is not smooth (Simulation has it)",
                      TwolinkWarning, stacklevel=2)
    count, kept = int(np.prod(batch)), steps // every
    if count * (kept + 1) * 16 * n > MEMORY:
        raise InputError(f"every: keeping {kept} states of {count} trajectories takes "
                         f"{count * kept * 16 * n / 1e9:.1f} GB; keep fewer")
    state = np.ascontiguousarray(np.broadcast_to(np.stack(np.broadcast_arrays(q0, qd0), axis=-2), (*batch, 2, n)))
    state = state.reshape(count, 2, n)
    if tau_batch == () or not sampled:  # one effort for all, or one per trajectory
        torque = tau if sampled else tau[..., None, :]
        torque = torque.reshape(1, -1, n) if tau_batch == () else \
            np.broadcast_to(torque, (*batch, 1, n)).reshape(count, 1, n)
    else:
        torque = np.broadcast_to(tau, (*batch, *tau.shape[-2:])).reshape(count, -1, n)
    result = np.empty((count, kept + 1, 2, n))
    result[:, 0] = state
    if count:
        _run(dynamics, result, np.ascontiguousarray(torque), float(dt), steps, every, progress)
    result = result.reshape(*batch, kept + 1, 2, n)
    return BatchResult(dt * every * np.arange(kept + 1), result[..., 0, :], result[..., 1, :])


def _count(name, value):
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InputError(f"{name}: {value!r} must be a whole number, at least 1")
    return int(value)


def _run(dynamics, result, torque, dt, steps, every, progress):
    """Fills result (count, kept + 1, 2, n) piece by piece: several kept states at once, or where these lie far apart a
    part of the way from one to the next. Every piece starts from the last state, so that pieces change no bit."""
    if dynamics.engine == NEWTON_EULER:
        raise InputError("simulate_batch runs on kernels: engine 'llvm', 'numpy' or 'python'")
    kernel = dynamics.kernel("rk4_step")
    most = max(1, PIECE // (8 * kernel.weight * len(result)))  # steps
    stride = every if every <= most else most  # steps between two states of a piece
    bar, dt, state, step = _Bar(progress), np.array([dt]), result[:, 0], 0
    while step < steps:
        if every <= most:
            count = min(steps - step, most - most % every)
        else:
            count = stride = min(most, every - step % every)
        out = np.empty((len(result), count // stride, 2, dynamics.n))
        now = torque if torque.shape[1] == 1 else np.ascontiguousarray(torque[:, step:step + count])
        q, qd = (np.ascontiguousarray(state[:, part]) for part in (0, 1))
        kernel.steps(q, qd, now, dt, dynamics.parameters, out, count, stride, dynamics.threads)
        state, before, step = out[:, -1], step // every, step + count
        if step // every > before:
            result[:, before + 1:step // every + 1] = out
        bar.show(step / steps)
    bar.end()


class _Bar:
    """Progress of a long run on a terminal, or through a function."""

    def __init__(self, progress):
        self.progress, self.begun, self.shown = progress, time.monotonic(), False
        self.terminal = progress is None and sys.stderr.isatty()

    def show(self, fraction):
        """Reports a fraction done."""
        if self.progress is not None:
            self.progress(fraction)
        elif self.terminal and time.monotonic() - self.begun > PATIENCE:
            self.shown = True
            done = round(30 * fraction)
            sys.stderr.write(f"\r[{'#' * done}{'.' * (30 - done)}] {100 * fraction:3.0f} %")
            sys.stderr.flush()

    def end(self):
        """Clears the line."""
        if self.shown:
            sys.stderr.write("\r" + " " * 40 + "\r")
