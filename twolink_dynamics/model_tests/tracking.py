"""Trajectory tracking: predicted against applied effort along a fast motion of all joints.

The error e = τ − τ_model is reported whole, and split: what wrong link masses and wrong friction would explain (least
squares on the links' torques and on sign q̇ and q̇ of each joint) belongs to the static and friction tests; what is left
is wrong in the structure: a missing velocity product, an inertia no mass explains. The test fails on that rest, or
where the whole error is so large that the prediction is of no use.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from .motions import Oscillation
from .result import Result, rms
from .signals import even, low_pass

STRUCTURE = 0.15  # of the RMS velocity products: the error that no mass and no friction explains
USELESS = 0.25  # of the RMS effort: the whole error
FLOOR = 0.005  # of the RMS effort: five times what sampling, filtering and usual sensors leave of a perfect model
CUTOFF = 10.0  # [Hz] zero-phase low-pass of both sides
FASTEST = 2.0  # [Hz] of the motion's sines: well below the low-pass
DURATION, WAVES, CANDIDATES = 12.0, 2, 16  # [s], sines per joint, motions tried on paper
VELOCITY_SHARE, MOST_SPEED = 0.5, {False: 4.0, True: 0.6}  # of the limit; [rad/s; m/s]
EFFORT_SHARE = 0.65  # of the limit, by the model


@dataclass(frozen=True, eq=False)
class Plan:
    """The motion."""

    motion: object


def plan(model, workspace, duration=DURATION, seed=0):
    """The Plan: of some random sums of sines, each as large as the workspace and as fast as half of the velocity limits
    and 65 % of the effort limits allow, the one whose velocity products weigh most. Raises InputError where the arm
    cannot carry itself with that effort."""
    rng = np.random.default_rng(seed)
    most = np.array([MOST_SPEED[kind] for kind in model.arm.prismatic.tolist()])
    most = np.minimum(most, VELOCITY_SHARE * model.arm.velocity_limit)
    best, weight = None, -1.0
    for _ in range(CANDIDATES):
        found = _candidate(model, workspace, duration, most, rng)
        if found is not None and found[1] > weight:
            best, weight = found
    if best is None:
        raise InputError(f"tracking: {100 * EFFORT_SHARE:.0f} % of the effort limits {model.arm.effort_limit.tolist()} "
                         "do not carry the arm in this workspace")
    return Plan(best)


def _candidate(model, workspace, duration, most, rng):
    """(motion, weight of its velocity products) or None where the effort limits do not allow it at any speed."""
    n = model.arm.n
    shares, phases = rng.uniform(0.3, 1.0, (n, WAVES)), rng.uniform(0.0, 2.0 * np.pi, (n, WAVES))
    ratios = np.concatenate([[1.0], rng.uniform(1.3, 2.5, WAVES - 1)])
    ramp = min(1.5, 0.25 * duration)
    times = np.linspace(0.0, duration, 400)

    def sampled(speed):
        motion = Oscillation(workspace.centre, shares, speed * ratios, phases, duration, ramp)
        samples = [motion.sample(t) for t in times]
        return motion, *(np.array([getattr(sample, name) for sample in samples]) for name in ("q", "qd", "qdd"))
    _, q, _, _ = sampled(2.0)
    shares = shares * (0.8 * workspace.half / np.abs(q - workspace.centre).max(0))[:, None]
    speed = 2.0 * np.pi * FASTEST / ratios.max()
    for _ in range(40):
        motion, q, qd, qdd = sampled(speed)
        effort = np.asarray(model.inverse(q, qd, qdd), float)
        if ((np.abs(qd) <= most).all() and (np.abs(effort) <= EFFORT_SHARE * model.arm.effort_limit).all()
                and (np.abs(q - workspace.centre) <= workspace.half).all()):
            products = np.asarray(model.inverse(q, qd, np.zeros_like(q)), float) - model.gravity(q)
            return motion, float(np.sum(rms(products) / rms(effort)))
        speed *= 0.88
    return None


def analyse(plan, log, model):
    """The Result of a log of the plan's motion."""
    arm = model.arm
    t, q, qd, tau = even(log)
    step = float(t[1] - t[0])
    qdd = np.gradient(qd, step, axis=0)

    def smooth(x):
        edge = max(int(0.3 / step), 1)
        return low_pass(x, step, CUTOFF)[edge:-edge]
    rigid = np.asarray(model.inverse(q, qd, qdd), float)
    measured = smooth(tau)
    products = rms(smooth(np.asarray(model.inverse(q, qd, np.zeros_like(q)), float) - model.gravity(q)))
    predicted = smooth(rigid + model.friction.torque(qd))
    error = measured - predicted
    links = model.link_torques(q, qd, qdd)
    columns = [smooth(links[..., k]).ravel() for k in range(links.shape[-1])]
    for j in range(arm.n):
        for shape in (np.sign(qd[:, j]), qd[:, j]):
            column = np.zeros_like(error)
            column[:, j] = smooth(shape[:, None])[:, 0]
            columns.append(column.ravel())
    columns = np.stack(columns, axis=1)
    values, *_ = np.linalg.lstsq(columns, error.ravel(), rcond=1e-8)
    left = error - (columns @ values).reshape(error.shape)
    whole, structure = rms(error), rms(left)
    effort = rms(measured)
    limits = STRUCTURE * products + FLOOR * effort, USELESS * effort
    lines = [f"{name}: effort {a:.4g} RMS (velocity products {d:.3g}), "
             f"predicted within {b:.3g}; no mass and no "
             f"friction explains {c:.3g}" for name, a, b, c, d in
             zip(arm.joint_names, effort, whole, structure, products)]
    masses = ", ".join(f"{joint.name} {100.0 * value:+.1f} %" for joint, value in zip(arm.links, values))
    if (whole > 2.0 * (structure + limits[0])).any():
        lines.append(f"most of the error is what other link masses ({masses}) or another friction would give: see the "
                     "static and friction tests")
    useless = whole > limits[1]
    return Result("tracking", arm.joint_names, np.where(useless, whole, structure),
                  np.where(useless, limits[1], limits[0]), "RMS [N m or N]", tuple(lines),
                  dict(whole=whole.tolist(), structure=structure.tolist(), effort=effort.tolist(),
                       velocity_products=products.tolist()),
                  dict(t=t[:len(error)], measured=measured, predicted=predicted, left=left))


def run(bench, model, workspace, progress=None, duration=DURATION, seed=0):
    """Plans, runs and judges; returns (Result, log)."""
    planned = plan(model, workspace, duration, seed)
    log = bench.follow(planned.motion, progress)
    return analyse(planned, log, model), log
