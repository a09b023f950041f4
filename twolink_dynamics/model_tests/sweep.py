"""Sine sweep: the frequency response of each joint against the linearised model, the others held by their loops.

About a pose q0 the model says T(ω) = (K − ω² M) Q(ω) + losses, with K = ∂g/∂q and Q of all joints as measured (the
others move a little). Losses (jω d Q and the first harmonic of Coulomb friction, 4 Fc/π in phase with the velocity) are
left free: the friction test judges them. What remains is inertia, stiffness, and everything the model has not: elastic
joints, delays. The steps are sines of constant frequency, fitted over whole periods.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from .motions import Oscillation, Rest, Sequence
from .result import Result
from .signals import centred

TOLERANCE = 0.12  # of the efforts that make up T: 1 dB, or 7 degrees
SIGMAS = 3.0
LOWEST, HIGHEST, STEPS = 0.6, 8.0, 8  # [Hz]
AMPLITUDE = {False: 0.15, True: 0.03}  # [rad; m] at most
VELOCITY_SHARE, EFFORT_SHARE = 0.3, 0.25  # of the limits
ACCELERATION = {False: 25.0, True: 5.0}  # at most, where no effort limit is known
LEAST_SAMPLES = 12  # of a period, for a first harmonic within 1 %
PERIODS, LEAST = 3, 1.0  # a step lasts so many periods, and so many seconds at least


@dataclass(frozen=True, eq=False)
class Plan:
    """motion, the pose, and for each step: joint, ω [rad/s] and the window of whole periods."""

    motion: object
    pose: np.ndarray
    steps: tuple


def plan(model, workspace, frequencies=None):
    """The Plan for a model's arm at the workspace's centre."""
    arm, q0 = model.arm, workspace.centre
    inertia = np.abs(np.diag(model.mass_matrix(q0)))
    frequencies = np.geomspace(LOWEST, HIGHEST, STEPS) if frequencies is None else np.asarray(frequencies, float)
    if (frequencies <= 0.0).any():
        raise InputError(f"frequencies: {frequencies.tolist()} must be positive")
    parts, steps, clock = [Rest(q0, 0.3)], [], 0.3
    for j in range(arm.n):
        kind = bool(arm.prismatic[j])
        for omega in 2.0 * np.pi * frequencies:
            room = min(AMPLITUDE[kind], workspace.half[j], VELOCITY_SHARE * arm.velocity_limit[j] / omega,
                       ACCELERATION[kind] / omega**2)
            if np.isfinite(arm.effort_limit[j]):
                room = min(room, EFFORT_SHARE * arm.effort_limit[j] / (inertia[j] * omega**2))
            amplitudes = np.zeros((arm.n, 1))
            amplitudes[j] = room
            period = 2.0 * np.pi / omega
            ramp = max(period, 0.3)
            window = np.ceil(max(PERIODS, LEAST / period)) * period
            parts.append(Oscillation(q0, amplitudes, [omega], np.zeros((arm.n, 1)), 2.0 * ramp + window, ramp))
            steps.append((j, omega, clock + ramp, clock + ramp + window))
            clock += parts[-1].duration
    return Plan(Sequence(parts), q0, tuple(steps))


def phasor(t, x, omega):
    """(complex amplitude (n,) of x (N, n) ~ Re(X e^{jωt}) + a + b t, its standard error (n,))."""
    angle = omega * t
    columns = np.stack([np.cos(angle), -np.sin(angle), np.ones_like(t), t - t.mean()], axis=1)
    solution, *_ = np.linalg.lstsq(columns, x, rcond=None)
    return solution[0] + 1j * solution[1], (x - columns @ solution).std(0) * np.sqrt(2.0 / len(t))


def analyse(plan, log, model):
    """The Result of a log of the plan's motion."""
    arm, tau = model.arm, centred(log.tau)
    M, K = model.mass_matrix(plan.pose), model.stiffness(plan.pose)
    error, tolerance, lines, table, bode = [], [], [], {}, {}
    for j, name in enumerate(arm.joint_names):
        rows, slow = [], []
        for joint, omega, low, high in plan.steps:
            if joint != j:
                continue
            inside = (log.t >= low) & (log.t < high)
            if inside.sum() * 2.0 * np.pi < LEAST_SAMPLES * omega * (high - low):
                slow.append(omega / 2.0 / np.pi)
                continue
            Q, _ = phasor(log.t[inside], log.q[inside], omega)
            T, noise = phasor(log.t[inside], tau[inside], omega)
            rows.append((omega, Q[j], T[j], noise[j], K[j] @ Q, -omega**2 * (M[j] @ Q)))
        if not rows:
            raise InputError(f"sweep: no step of joint '{name}' has {LEAST_SAMPLES} samples a period; measure faster")
        omega, Q, T, noise, elastic, inertial = (np.array(column) for column in zip(*rows))
        losses = np.stack([1j * omega * Q, 1j * Q / np.abs(Q)], axis=1)
        left = T - elastic - inertial
        scale = np.abs(elastic) + np.abs(inertial)
        weights = 1.0 / scale
        stacked = np.concatenate([(losses * weights[:, None]).real, (losses * weights[:, None]).imag])
        free, *_ = np.linalg.lstsq(stacked, np.concatenate([(left * weights).real, (left * weights).imag]), rcond=None)
        predicted = elastic + inertial + losses @ free
        scale = scale + np.abs(losses @ free)
        off = np.abs(T - predicted) / scale
        worst = int(np.argmax(off))
        error.append(off[worst])
        tolerance.append(TOLERANCE + SIGMAS * noise[worst] / scale[worst])
        ratio = (Q / T) / (Q / predicted)
        gain, phase = 20.0 * np.log10(np.abs(ratio)), np.degrees(np.angle(ratio))
        top = int(np.argmax(omega))
        lines.append(f"{name}: worst at {omega[worst] / 2 / np.pi:.2g} Hz; at {omega[top] / 2 / np.pi:.2g} Hz gain "
                     f"{gain[top]:+.2f} dB, phase {phase[top]:+.1f} deg from the model")
        if slow:
            lines.append(f"{name}: left out, sampled too slowly: {', '.join(f'{hz:.2g}' for hz in slow)} Hz")
        table[name] = dict(frequency_hz=(omega / 2 / np.pi).tolist(), gain_db=(20 * np.log10(np.abs(Q / T))).tolist(),
                           phase_deg=np.degrees(np.angle(Q / T)).tolist(), gain_off_db=gain.tolist(),
                           phase_off_deg=phase.tolist(), relative_error=off.tolist(), viscous=float(free[0]))
        dense = np.geomspace(0.7 * omega.min(), 1.4 * omega.max(), 200)
        line = 1.0 / (K[j, j] - dense**2 * M[j, j] + 1j * dense * free[0])
        bode[name] = (omega, Q / T, dense, line)
    return Result("sweep", arm.joint_names, np.array(error), np.array(tolerance), "of the effort's amplitude",
                  tuple(lines), dict(response=table), dict(bode=bode))


def run(bench, model, workspace, progress=None, frequencies=None):
    """Plans, runs and judges; returns (Result, log)."""
    planned = plan(model, workspace, frequencies)
    log = bench.follow(planned.motion, progress)
    return analyse(planned, log, model), log
