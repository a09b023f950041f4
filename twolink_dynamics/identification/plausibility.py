"""Does a recording fit the arm? Wrong units, the motor's side, flipped signs and missing motion, each told by column.

Evidence comes from the recording itself (velocity against differentiated position) and from the arm as it is described
(its limits; its own torque for the recorded motion). A CAD model may be wrong by a factor of a few, not of a hundred.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..dynamics import Dynamics
from ..errors import InputError
from .signals import bandwidth, prepare

LITTLE_MOTION = 0.02  # rad or m, peak to peak: below, sensors' noise is what one would fit


def check(log, arm):
    """The log with remarks added; raises InputError where the columns cannot be what they are said to be."""
    _time(log)
    _excitation(log, arm)
    _angles(log, arm)
    remarks = list(log.remarks)
    signals = prepare(log, min(bandwidth(log)[0], 0.2 / log.dt))
    if log.qd is not None:
        _velocity(log, signals, arm)
    remarks += _effort(log, signals, arm)
    return replace(log, remarks=tuple(remarks))


def _time(log):
    column = log.sources.get("time", ("time",))[0]
    if log.dt > 0.2:
        guess = next(
            (unit for unit, size in (("ms", 1e3), ("us", 1e6), ("ns", 1e9)) if 2e-4 < log.dt / size < 0.2), None
        )
        raise InputError(
            f"{log.name}: column '{column}': rows are {log.dt:.4g} s apart, "
            + (f"which looks like {guess}: state units time={guess}" if guess else "too slow a recording for dynamics")
        )


def _excitation(log, arm):
    for j, joint in enumerate(arm.joint_names):
        column = log.sources.get("effort", arm.joint_names)[j]
        if np.ptp(log.tau[:, j]) == 0.0:
            raise InputError(
                f"{log.name}: column '{column}' is {log.tau[0, j]:g} in all {len(log.t)} rows: no effort was recorded "
                f"for joint '{joint}'"
            )
    moved = np.ptp(log.q, axis=0)
    if (moved < LITTLE_MOTION).all():
        worst = ", ".join(
            f"column '{column}' moves by {m:.2g}"
            for column, m in zip(log.sources.get("position", arm.joint_names), moved)
        )
        raise InputError(
            f"{log.name}: too little excitation: {worst} in all {len(log.t)} rows, nothing can be identified at rest"
        )


def _angles(log, arm):
    for j, joint in enumerate(arm.joint_names):
        span = np.abs(log.q[:, j]).max()
        limit = max(abs(arm.lower[j]), abs(arm.upper[j]))
        limit = limit if np.isfinite(limit) else 4.0 * np.pi
        k = int(np.abs(log.q[:, j]).argmax())
        if span > 10.0 * max(limit, 0.1) or (not arm.continuous[j] and span > 3.0 * max(limit, 1.0)):
            unit = "mm" if arm.prismatic[j] else "deg"
            raise InputError(
                f"{log.name}: column '{log.sources['position'][j]}', row {_row(log, k)}: {log.q[k, j]:.4g} is far "
                f"beyond the "
                f"limit {limit:.4g} of joint '{joint}', which looks like {unit}: state units position={unit}"
            )


def _row(log, k):
    return int(log.rows[k]) if log.rows is not None else k + 1


def _velocity(log, signals, arm):
    """Slope of the recorded velocity over the differentiated position: 1 when units agree."""
    measured = prepare(log, signals.hz, velocity="measured")
    for j, column in enumerate(log.sources["velocity"]):
        reference = signals.qd[signals.settled, j]
        if np.ptp(log.q[:, j]) < LITTLE_MOTION:
            continue
        slope = float(reference @ measured.qd[measured.settled, j] / (reference @ reference))
        causes = {
            180.0 / np.pi: "velocity=deg/s (or positions are not what they say)",
            np.pi / 180.0: "position=deg",
            1e3: "time=ms",
            30.0 / np.pi: "velocity=rpm",
            -1.0: "nothing, but one of the two has its sign flipped",
            1e-3: "position=mm" if arm.prismatic[j] else "time in s (it is said to be ms)",
        }
        if not 0.7 < slope < 1.4:
            cause = next((text for value, text in causes.items() if 0.8 < slope / value < 1.25), None)
            raise InputError(
                f"{log.name}: column '{column}' is {slope:.4g} times the derivative of column "
                f"'{log.sources['position'][j]}' (1 is right)"
                + (f": state units {cause}" if cause else ": check units and signs")
            )


def _effort(log, signals, arm):
    """Compare with the arm's own torque for this motion, and with the effort limits."""
    good = signals.settled
    model = Dynamics(arm).inverse_dynamics(signals.q[good], signals.qd[good], signals.qdd[good])
    remarks, near_gear = [], []
    for j, joint in enumerate(arm.joint_names):
        column = log.sources.get("effort", arm.joint_names)[j]
        tau, own = signals.tau[good, j], model[:, j]
        expected = float(np.sqrt((own**2).mean()))
        if expected < 1e-9 or np.ptp(log.q[:, j]) < LITTLE_MOTION:
            continue
        ratio = float(np.sqrt((tau**2).mean())) / expected
        limit = arm.effort_limit[j]
        beyond = np.isfinite(limit) and limit > 0.0 and np.abs(log.tau[:, j]).max() > 20.0 * limit
        if ratio > 200.0 or beyond:
            raise InputError(
                f"{log.name}: column '{column}' is {ratio:.3g} times what the arm's model needs for joint '{joint}'"
                f"{f' and beyond its limit {limit:g}' if beyond else ''}: does it hold N mm? state units effort=Nmm"
            )
        if ratio < 1.0 / 200.0:
            raise InputError(
                f"{log.name}: column '{column}' is only {ratio:.3g} times what the arm's model needs for joint "
                f"'{joint}': "
                "check its unit"
            )
        correlation = float(np.corrcoef(tau, own)[0, 1])
        gear = abs(arm.gear_ratio[j])
        near_gear.append(gear > 2.0 and abs(correlation) > 0.8 and 0.75 < ratio * gear < 1.33)
        if correlation < -0.6:
            remarks.append(
                f"column '{column}' runs against the model's torque of joint '{joint}' (correlation "
                f"{correlation:.2f}): "
                "is its sign flipped? (effort_sign)"
            )
        elif np.ptp(log.q[:, j]) < 10 * LITTLE_MOTION:
            remarks.append(
                f"column '{log.sources['position'][j]}': joint '{joint}' moves by {np.ptp(log.q[:, j]):.2g} only: "
                "too little excitation to know its own parameters"
            )
    if near_gear and all(near_gear):
        remarks.append(
            f"columns {', '.join(log.sources.get('effort', arm.joint_names))} are the model's torques divided by "
            f"the gear "
            "ratios: are they the motor's side? (effort_side)"
        )
    return remarks
