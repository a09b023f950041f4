"""Friction, separated from everything else: one joint at a time runs to and fro at constant speeds.

Over the same stretch the mean efforts of the two directions differ by twice the friction, and share gravity; at
constant speed of one joint there is neither inertia nor a velocity product. F(v) is then split into

    F(v) = Fc + Fv v + (Fs − Fc) exp(−(v/vs)²)
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..control.point_to_point import PointToPoint
from .motions import Sequence
from .result import Result, rms
from .signals import centred

RELATIVE = 0.1  # of the RMS friction: friction itself drifts by more than that with temperature
LOAD_SHARE = 0.002  # of the RMS effort of the joint: a friction so small does not matter there
SIGMAS = 3.0
CORRELATION = 0.1  # [s] samples nearer than this say the same (the loop's and a stick-slip's time)
SPEEDS = {False: (0.02, 0.05, 0.1, 0.2, 0.4, 0.8), True: (0.004, 0.01, 0.02, 0.04, 0.08, 0.16)}  # [rad/s; m/s]
ACCELERATION = {False: 4.0, True: 0.8}
SHORTEST = {False: 0.06, True: 0.012}  # [rad; m] of travel at the lowest speed
SETTLING = 0.2  # [s] after the ramp of the speed, before samples count: several time constants of the loop


@dataclass(frozen=True, eq=False)
class Plan:
    """motion, and for each run: joint, speed and when its forward and backward samples count."""

    motion: object
    runs: tuple


def plan(model, workspace, speeds=None):
    """The Plan for a model's arm; speeds above 30 % of a joint's limit or too fast for the room are left out."""
    arm, parts, runs, at, clock = model.arm, [], [], workspace.centre, 0.0

    def go(to, speed, acceleration, **more):
        nonlocal at, clock
        parts.append(PointToPoint(at, to, speed, acceleration, **more))
        span = (clock, clock + parts[-1].duration)
        at, clock = to, span[1]
        return span
    for j in range(arm.n):
        kind = bool(arm.prismatic[j])
        acceleration = ACCELERATION[kind]
        unit = np.eye(arm.n)[j]
        for speed in speeds or SPEEDS[kind]:
            lost = speed / acceleration + SETTLING  # of each end of a run
            travel = max(SHORTEST[kind], speed * (2.0 * lost + 0.5))
            if speed > 0.3 * arm.velocity_limit[j] or travel > 2.0 * workspace.half[j]:
                continue
            quick = max(5.0 * speed, SPEEDS[kind][-1])
            go(workspace.centre - 0.5 * travel * unit, quick, acceleration, profile="quintic")
            pair = []
            for side in (1.0, -1.0):
                begin, end = go(workspace.centre + side * 0.5 * travel * unit, speed, acceleration)
                pair.append((begin + lost, end - lost))
            runs.append((j, speed, tuple(pair)))
        go(workspace.centre, SPEEDS[kind][-1], acceleration, profile="quintic")
    return Plan(Sequence(parts), tuple(runs))


def separate(speeds, force, noise):
    """Dict Fc, Fv, Fs, vs (and their standard errors for Fc, Fv) fitted to F(v) ≥ 0 by non-negative least squares; the
    Stribeck part only where it explains more than the noise does (else Fs = Fc, vs None)."""
    from scipy.optimize import nnls
    plain = np.stack([np.ones_like(speeds), speeds], axis=1)

    def fitted(columns):
        values, left = nnls(columns, force)
        return values, left**2
    values, left = fitted(plain)
    best = dict(Fc=values[0], Fv=values[1], Fs=values[0], vs=None)
    columns = plain
    if len(speeds) > 4:
        trials = [(fitted(np.column_stack([plain, np.exp(-(speeds / vs) ** 2)])), vs)
                  for vs in np.geomspace(1.2 * speeds[0], 0.7 * speeds[-1], 40)]
        (values, less), vs = min(trials, key=lambda trial: trial[0][1])
        if left - less > 9.0 * noise**2 and less < 0.5 * left and values[2] > 0.03 * values[0]:
            best = dict(Fc=values[0], Fv=values[1], Fs=values[0] + values[2], vs=float(vs))
            columns, left = np.column_stack([plain, np.exp(-(speeds / vs) ** 2)]), less
    variance = max(left / max(len(speeds) - columns.shape[1], 1), noise**2)
    deviation = np.sqrt(np.diag(variance * np.linalg.pinv(columns.T @ columns)))
    return {key: None if value is None else float(value) for key, value in best.items()} | dict(
        Fc_error=float(deviation[0]), Fv_error=float(deviation[1]))


def analyse(plan, log, model):
    """The Result of a log of the plan's motion."""
    arm, tau = model.arm, centred(log.tau)
    error, tolerance, lines, table, curves = [], [], [], {}, {}
    for j, name in enumerate(arm.joint_names):
        runs = [(speed, pair) for joint, speed, pair in plan.runs if joint == j]
        if not runs:
            error.append(0.0), tolerance.append(0.0)
            lines.append(f"{name}: not tested, its room or velocity limit is too small")
            continue
        rows, load = [], []
        for _, pair in runs:
            ways = [(log.t >= low) & (log.t <= high) for low, high in pair]
            forward, back = (tau[chosen, j] for chosen in ways)
            pace = 0.5 * (log.qd[ways[0], j].mean() - log.qd[ways[1], j].mean())
            alike = min(CORRELATION / (pair[0][1] - pair[0][0]), 1.0)
            spread = 0.5 * np.sqrt((_scatter(forward) + _scatter(back)) * alike)
            rows.append((pace, 0.5 * (forward.mean() - back.mean()), spread))
            load += [forward.mean(), back.mean()]
        speeds, force, spread = np.array(rows).T
        rates = np.zeros((len(speeds), arm.n))
        rates[:, j] = speeds
        predicted = np.asarray(model.friction.torque(rates))[:, j]
        noise = float(rms(spread))
        error.append(rms(force - predicted))
        tolerance.append(RELATIVE * max(rms(force), rms(predicted)) + LOAD_SHARE * rms(load)
                         + SIGMAS * noise / np.sqrt(len(speeds)))
        terms = separate(speeds, force, noise)
        stribeck = "" if terms["vs"] is None else f", static {terms['Fs']:.3g}, Stribeck velocity {terms['vs']:.2g}"
        lines.append(f"{name}: Coulomb {terms['Fc']:.4g} ± {terms['Fc_error']:.1g}, viscous {terms['Fv']:.4g} ± "
                     f"{terms['Fv_error']:.1g}{stribeck}")
        table[name] = terms | dict(speed=speeds.tolist(), friction=force.tolist(), model=predicted.tolist())
        curves[name] = (speeds, force, predicted, terms)
    return Result("friction", arm.joint_names, np.array(error), np.array(tolerance), "RMS [N m or N]", tuple(lines),
                  dict(terms=table), dict(curves=curves))


def _scatter(x):
    """Variance of x about its parabola: gravity changes along the way, that is no noise."""
    t = np.linspace(-1.0, 1.0, len(x))
    return np.var(x - np.polyval(np.polyfit(t, x, min(2, len(x) - 1)), t))


def run(bench, model, workspace, progress=None, speeds=None):
    """Plans, runs and judges; returns (Result, log)."""
    planned = plan(model, workspace, speeds)
    log = bench.follow(planned.motion, progress)
    return analyse(planned, log, model), log
