"""A recording of one arm: times, positions, velocities and efforts in the arm's joint order, units and signs.

Nothing is repaired in silence: whatever is left out, split or suspicious stands in ``Log.remarks``, by column and row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..errors import InputError, choices

TIME_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
ANGLE_UNITS = {"rad": 1.0, "deg": np.pi / 180.0, "rev": 2.0 * np.pi}
SPEED_UNITS = {"rad/s": 1.0, "deg/s": np.pi / 180.0, "rpm": np.pi / 30.0}
LENGTH_UNITS = {"m": 1.0, "mm": 1e-3}
EFFORT_UNITS = {"Nm": 1.0, "N": 1.0, "mNm": 1e-3, "Nmm": 1e-3}
UNITS = {
    "time": TIME_UNITS,
    "position": ANGLE_UNITS | LENGTH_UNITS,
    "velocity": SPEED_UNITS | {"m/s": 1.0, "mm/s": 1e-3},
    "effort": EFFORT_UNITS,
}
GAP = 5.0  # a step so many times the usual one ends a piece …
BRIDGED = {True: 0.02, False: 0.01}  # [s] … unless it is no longer than this, with and without recorded velocities
NAMED = 5  # so many findings of one kind are named one by one, the rest are counted


@dataclass(frozen=True)
class LogFormat:
    """How a recording is to be read; everything a file cannot say itself.

    columns          {"time": name, "position": (names in the arm's joint order), "velocity": …, "effort": …}; what is
                     missing is found by name
    joints           order of the joints behind numbered columns (pos1, pos2, …); default: the arm's own order
    units            {"time": "s", "position": "rad", "velocity": "rad/s", "effort": "Nm"}; see UNITS
    position_sign, position_offset   q = sign · recorded + offset, (n,) each [rad or m, after conversion]; velocities
                                     take the sign
    effort_sign      +1: a positive effort accelerates towards positive q (it balances +g(q) at rest)
    effort_side      "joint", or "motor": the joint's effort is gear ratio × the recorded one
    effort           "measured" columns, or "commanded" ones
    state_topic, command_topic       of a bag: sensor_msgs/JointState; std_msgs/Float64MultiArray for commanded efforts
    command_joints   order of the values in the command topic; default: the arm's
    """

    columns: dict = field(default_factory=dict)
    joints: tuple = ()
    units: dict = field(default_factory=dict)
    position_sign: tuple = ()
    position_offset: tuple = ()
    effort_sign: tuple = ()
    effort_side: str = "joint"
    effort: str = "measured"
    state_topic: str = "joint_states"
    command_topic: str = "effort_controller/commands"
    command_joints: tuple = ()

    def __post_init__(self):
        for quantity, unit in self.units.items():
            if quantity not in UNITS:
                raise InputError(f"units: no quantity '{quantity}'; there are {choices(UNITS)}")
            if unit not in UNITS[quantity]:
                raise InputError(f"units: {quantity} unit '{unit}' is none of {choices(UNITS[quantity])}")
        if self.effort_side not in ("joint", "motor"):
            raise InputError(f"effort_side '{self.effort_side}' is none of joint, motor")
        if self.effort not in ("measured", "commanded"):
            raise InputError(f"effort '{self.effort}' is none of measured, commanded")

    def factor(self, quantity):
        """What a recorded value is multiplied by to be in SI units."""
        default = {"time": "s", "position": "rad", "velocity": "rad/s", "effort": "Nm"}[quantity]
        return UNITS[quantity][self.units.get(quantity, default)]

    def per_joint(self, arm, name, default):
        """The (n,) values of a per-joint field."""
        value = getattr(self, name)
        if np.ndim(value) and not len(value):
            return np.full(arm.n, float(default))
        try:
            return np.array(np.broadcast_to(np.asarray(value, float), (arm.n,)))
        except (TypeError, ValueError):
            raise InputError(f"{name}: {value!r} is not one value for each of the {arm.n} joints") from None


@dataclass(frozen=True, eq=False)
class Log:
    """t (N,) [s], rising within each piece; q (N, n) [rad or m]; qd (N, n) or None [rad/s]; tau (N, n) [N m or N],
    joint side.

    sources   {"position": names of the columns used, …}        rows      (N,) row of the file each sample stands in,
              from 1
    breaks    sample indices where something began anew (gap, reset, clock set back)           remarks   what was found
    """

    name: str
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray | None
    tau: np.ndarray
    sources: dict = field(default_factory=dict)
    rows: np.ndarray | None = None
    breaks: tuple = ()
    remarks: tuple = ()

    @property
    def dt(self):
        """Mean sampling interval within pieces [s]."""
        steps = np.concatenate([np.diff(self.t[a:b]) for a, b in self.pieces()])
        return float(steps.mean())

    def pieces(self):
        """[(first, last + 1)] sample ranges without a break."""
        edges = [0, *self.breaks, len(self.t)]
        return [(a, b) for a, b in zip(edges, edges[1:]) if b - a > 1] or [(0, len(self.t))]

    @property
    def duration(self):
        """Recorded time without the breaks [s]."""
        return float(sum(self.t[b - 1] - self.t[a] for a, b in self.pieces()))


def read_log(path, arm, fmt=None, check=True):
    """The Log in a CSV file, or in a rosbag2 (folder, .mcap or .db3; needs the optional `rosbags`).

    check   compare units, side and excitation with the arm (see `plausibility.check`).
    (`Trajectory.from_csv` is for replaying a clean motion without an arm; here stamps, gaps, units and sides are sorted
    out against one, for whoever fits something to a recording.)
    Raises InputError in one line naming file, column and row.
    """
    fmt = fmt or LogFormat()
    path = Path(path)
    if not path.exists():
        raise InputError(f"no log '{path}'")
    if path.is_dir() or path.suffix in (".mcap", ".db3"):
        from .bags import read_bag as read
    else:
        from .csv_logs import read_csv as read
    log = read(path, arm, fmt)
    if check:
        from .plausibility import check as plausible

        log = plausible(log, arm)
    return log


def make_log(name, arm, fmt, t, q, qd, tau, sources, rows=None):
    """A Log from raw columns: finite, in SI units, signs and side applied, time sorted out. Raises InputError."""
    rows = np.arange(1, len(t) + 1) if rows is None else rows
    for quantity, values in (("time", t), ("position", q), ("velocity", qd), ("effort", tau)):
        if values is not None:
            _finite(name, quantity, values, sources, rows)
    sign = fmt.per_joint(arm, "position_sign", 1.0)
    q = sign * fmt.factor("position") * q + fmt.per_joint(arm, "position_offset", 0.0)
    qd = None if qd is None else sign * fmt.factor("velocity") * qd
    tau = fmt.per_joint(arm, "effort_sign", 1.0) * fmt.factor("effort") * tau
    if fmt.effort_side == "motor":
        tau = tau * arm.gear_ratio
    return _ordered(name, fmt.factor("time") * t, q, qd, tau, sources, rows, arm)


def _finite(name, quantity, values, sources, rows):
    bad = np.argwhere(~np.isfinite(values.reshape(len(values), -1)))
    if len(bad):
        row, column = bad[0]
        label = sources[quantity][column]
        value = values.reshape(len(values), -1)[row, column]
        more = f" ({len(bad)} such values in all)" if len(bad) > 1 else ""
        raise InputError(f"{name}: column '{label}', row {rows[row]}: {value} is not a finite number{more}")


def _ordered(name, t, q, qd, tau, sources, rows, arm):
    """Duplicate stamps, gaps, clocks set back and jumps of position: named, and handled as the remark says."""
    remarks, column = [], sources["time"][0]
    if len(t) < 20:
        raise InputError(f"{name}: {len(t)} rows are too few")
    step = np.diff(t)
    if not (step > 0.0).any():
        raise InputError(f"{name}: column '{column}' never rises (first value {t[0]:g})")
    backwards = np.flatnonzero(step < 0.0)
    if len(backwards) > max(3, 0.001 * len(t)):
        raise InputError(
            f"{name}: column '{column}' goes back {len(backwards)} times, first at row "
            f"{rows[backwards[0] + 1]} ({t[backwards[0]]:.9g} to {t[backwards[0] + 1]:.9g}): not a time"
        )
    repeated = np.flatnonzero(step == 0.0) + 1
    if len(repeated):
        listed = ", ".join(str(rows[k]) for k in repeated[:5]) + (", …" if len(repeated) > 5 else "")
        remarks.append(
            f"column '{column}': {len(repeated)} time stamp(s) repeated, at row {listed}; the first of each "
            "kept, the repetition left out"
        )
        if len(repeated) > 0.5 * len(t):
            raise InputError(f"{name}: {remarks[-1]}: the stamps are too coarse to differentiate anything")
        keep = np.setdiff1d(np.arange(len(t)), repeated)
        t, q, tau, rows = t[keep], q[keep], tau[keep], rows[keep]
        qd = None if qd is None else qd[keep]
        step = np.diff(t)
    usual = float(np.median(step[step > 0.0]))
    breaks = set()
    for k in np.flatnonzero(step < 0.0):
        breaks.add(int(k) + 1)
        remarks.append(
            f"column '{column}', row {rows[k + 1]}: the clock goes back from {t[k]:.6g} to {t[k + 1]:.6g} s, "
            "taken as a new piece"
        )
    longest = max(GAP * usual, BRIDGED[qd is not None])
    gaps = np.flatnonzero(step > longest)
    for k in gaps[:NAMED]:
        remarks.append(
            f"column '{column}', row {rows[k + 1]}: gap of {step[k]:.4g} s (usual step {usual:.4g} s), "
            "taken as a new piece"
        )
    if len(gaps) > NAMED:
        remarks.append(f"column '{column}': {len(gaps) - NAMED} more gaps, each taken as a new piece")
    breaks.update(int(k) + 1 for k in gaps)
    small = np.flatnonzero((step > 1.75 * usual) & (step <= longest))
    if len(small):
        worst = small[np.argmax(step[small])]
        remarks.append(
            f"column '{column}': {len(small)} step(s) longer than 1.75 times the usual {usual:.4g} s, bridged by "
            f"interpolation; the longest, at row {rows[worst + 1]}, is {step[worst]:.4g} s"
        )
    q = q.copy()
    for j in range(q.shape[1]):
        _jumps(j, t, q, qd, rows, arm, sources["position"][j], usual, breaks, remarks)
    return Log(name, t, q, qd, tau, sources, rows, tuple(sorted(breaks)), tuple(remarks))


def _jumps(j, t, q, qd, rows, arm, column, usual, breaks, remarks):
    """Positions that jump: whole turns are undone (continuous joints), anything else begins a new piece."""
    difference = np.diff(q[:, j])
    typical = np.quantile(np.abs(difference), 0.99)
    speed = np.abs(qd[:, j]).max() * usual if qd is not None else 0.0
    limit = max(0.05, 10.0 * typical, 5.0 * speed)
    missed = np.maximum(np.diff(t) / usual, 1.0)  # where samples are missing, more motion lies between two
    found = [k for k in np.flatnonzero(np.abs(difference) > limit * missed) if int(k) + 1 not in breaks]
    turns = 2.0 * np.pi
    wrapped = [k for k in found if abs(abs(difference[k]) - turns) < max(limit, 0.5)]
    if wrapped and not arm.prismatic[j]:
        for k in wrapped:
            q[k + 1 :, j] -= np.sign(difference[k]) * turns
        remarks.append(f"column '{column}': {len(wrapped)} whole turn(s) undone, first at row {rows[wrapped[0] + 1]}")
        found = [k for k in found if k not in wrapped]
    for k in found[:NAMED]:
        remarks.append(
            f"column '{column}', row {rows[k + 1]}: jumps by {difference[k]:.4g} in one step (a reset?), "
            "taken as a new piece"
        )
    if len(found) > NAMED:
        remarks.append(f"column '{column}': {len(found) - NAMED} more jumps, each taken as a new piece")
    breaks.update(int(k) + 1 for k in found)
