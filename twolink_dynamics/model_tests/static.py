"""Static balance: the effort that carries a grid of poses against g(q).

A joint held still by stiction hides its effort, so each pose is crossed slowly from both sides: with τ₊, τ₋ the mean
efforts of the two crossings, (τ₊ + τ₋)/2 is gravity and (τ₊ − τ₋)/2 the friction at that speed, whatever it is.
"""
from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from ..control.point_to_point import PointToPoint
from .motions import Sequence
from .result import Result, mass_remark, rms
from .signals import centred

RELATIVE = 0.03  # of the RMS gravity effort: motor constants and gear efficiencies are rarely known better
FRICTION_SHARE = 0.05  # of the friction met: friction that differs between the directions looks like gravity
SIGMAS = 3.0
CORRELATION = 0.1  # [s] samples nearer than this say the same (the loop's and a stick-slip's time)
SPEED = {False: 0.1, True: 0.02}  # [rad/s; m/s]
REACH = {False: 0.06, True: 0.012}  # [rad; m] a crossing begins and ends so far from the pose; its middle third counts


@dataclass(frozen=True, eq=False)
class Plan:
    """motion, poses (P, n) and, for each, when its upward and downward crossing is to be averaged."""

    motion: object
    poses: np.ndarray
    windows: tuple


def grid(workspace, points=None):
    """Poses (P, n): a full grid of `points` per joint for one or two joints, else 8 n points of a Halton sequence."""
    n = len(workspace.centre)
    if n <= 2:
        values = np.linspace(-1.0, 1.0, points or (5 if n == 2 else 9))
        unit = [row if i % 2 == 0 else row[::-1] for i, row in enumerate(  # to and fro, so that the ways are short
            np.array(list(product(values, repeat=n))).reshape(len(values), -1, n))]
        unit = np.concatenate(unit) if n == 2 else np.array(unit).reshape(-1, 1)
    else:
        from scipy.stats import qmc
        unit = 2.0 * qmc.Halton(n, scramble=False).random(1 + (points or 8) * n)[1:] - 1.0
    return workspace.centre + unit * workspace.half


def plan(model, workspace, points=None):
    """The Plan for a model's arm."""
    kinds = model.arm.prismatic.tolist()
    speed, reach = (np.array([table[kind] for kind in kinds]) for table in (SPEED, REACH))
    quick = np.minimum(8.0 * speed, 0.3 * model.arm.velocity_limit)
    poses, parts, windows, at, clock = grid(workspace, points), [], [], None, 0.0
    for pose in poses:
        stations = [pose - reach, pose + reach, pose - reach]
        if at is not None:
            parts.append(PointToPoint(at, stations[0], quick, 20.0 * speed, profile="quintic"))
            clock += parts[-1].duration
        pair = []
        for a, b in zip(stations, stations[1:]):
            parts.append(PointToPoint(a, b, speed, 20.0 * speed))
            pair.append((clock + parts[-1].duration / 3.0, clock + parts[-1].duration / 1.5))
            clock += parts[-1].duration
        windows.append(tuple(pair))
        at = stations[-1]
    return Plan(Sequence(parts), poses, tuple(windows))


def analyse(plan, log, model):
    """The Result of a log of the plan's motion."""
    tau = centred(log.tau)
    halves, spreads, predicted, places = [], [], [], []
    for pair in plan.windows:
        inside = [(log.t >= low) & (log.t <= high) for low, high in pair]
        up, down = (tau[chosen].mean(0) for chosen in inside)
        q = np.stack([log.q[chosen].mean(0) for chosen in inside])
        halves.append((0.5 * (up + down), 0.5 * (up - down)))
        spreads.append(0.5 * np.sqrt(sum(tau[chosen].var(0) * min(CORRELATION / (high - low), 1.0)
                                            for chosen, (low, high) in zip(inside, pair))))
        predicted.append(model.gravity(q).mean(0))
        places.append(q.mean(0))
    (measured, friction), places = np.swapaxes(np.array(halves), 0, 1), np.array(places)
    predicted = np.array(predicted)
    error = measured - predicted
    noise = rms(spreads) / np.sqrt(len(error))
    tolerance = RELATIVE * rms(predicted) + FRICTION_SHARE * rms(friction) + SIGMAS * noise
    lines = [f"{name}: gravity effort up to {high:.4g}, friction while crossing {slide:.3g}" for name, high, slide in
             zip(model.arm.joint_names, np.abs(predicted).max(0), rms(friction))]
    still = np.zeros_like(places)
    columns = model.link_torques(places, still, still)
    names = [joint.name for joint in model.arm.links]
    if (rms(error) > tolerance).any():
        remark = mass_remark(columns.reshape(-1, columns.shape[-1]), error.ravel(), names)
        lines += [remark] if remark else []
    return Result("static", model.arm.joint_names, rms(error), tolerance, "RMS [N m or N]", tuple(lines),
                  dict(poses=places.tolist(), measured=measured.tolist(), predicted=predicted.tolist(),
                       friction=rms(friction).tolist(), noise=noise.tolist()),
                  dict(measured=measured, predicted=predicted))


def run(bench, model, workspace, progress=None, points=None):
    """Plans, runs and judges; returns (Result, log)."""
    planned = plan(model, workspace, points)
    log = bench.follow(planned.motion, progress)
    return analyse(planned, log, model), log
