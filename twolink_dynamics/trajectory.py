"""A recorded motion: what a simulation returns, what a log file holds."""
from __future__ import annotations

import csv
import math
import re
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .errors import InputError, TwolinkWarning, choices

# Column names people use for joint k (1-based) or a joint's name, best first: measured before filtered before plain.
PATTERNS = {
    "position": ("pos_meas{k}", "pos{k}", "pos_{name}", "position_{name}", "{name}/position", "{name}.position",
                 "{name}_position", "position{k}", "q{k}", "q_{k}"),
    "velocity": ("vel_meas{k}", "vel{k}", "vel_{name}", "velocity_{name}", "{name}/velocity", "{name}.velocity",
                 "{name}_velocity", "velocity{k}", "qd{k}", "dq{k}", "qd_{k}"),
    "effort": ("tau_meas{k}", "tau{k}", "tau_{name}", "effort_{name}", "{name}/effort", "{name}.effort",
               "{name}_effort", "effort{k}", "torque{k}", "tau_{k}", "tau_con{k}"),
}
TIMES = ("time", "t", "timestamp", "__time", "stamp", "time_s")


@dataclass(frozen=True, eq=False)
class Trajectory:
    """t (N,) [s], not decreasing; q, qd, tau (N, n): positions [rad or m], velocities, efforts [N m or N]; qdd or None.

    From a simulation, ``tau[k]`` is the effort held from ``t[k]`` on (the last row repeats the one before it)."""

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    qdd: np.ndarray | None = None

    def __post_init__(self):
        t = np.asarray(self.t, float)
        if t.ndim != 1 or t.size == 0:
            raise InputError(f"trajectory: t has shape {t.shape}, expected (N,) with N > 0")
        object.__setattr__(self, "t", t)
        for name in ("q", "qd", "tau", "qdd"):
            value = getattr(self, name)
            if value is None and name == "qdd":
                continue
            value = np.asarray(value, float)
            shape = (t.size, value.shape[-1]) if name == "q" and value.ndim == 2 else (t.size, self.n)
            if value.shape != shape:
                raise InputError(f"trajectory: {name} has shape {value.shape}, expected {shape}")
            object.__setattr__(self, name, value)
        if (np.diff(t) < 0.0).any():
            at = int(np.argmax(np.diff(t) < 0.0))
            raise InputError(f"trajectory: time goes back from {t[at]:g} to {t[at + 1]:g} s at sample {at + 1}")

    @property
    def n(self):
        """Number of joints."""
        return np.shape(self.q)[-1]

    def __len__(self):
        return self.t.size

    @property
    def duration(self):
        """t[-1] − t[0] [s]."""
        return float(self.t[-1] - self.t[0])

    def to_csv(self, path, joint_names=None):
        """Writes columns time [s], pos_<joint> [rad or m], vel_<joint>, tau_<joint> [N m or N] (and acc_<joint>)."""
        names = tuple(joint_names) if joint_names is not None else tuple(str(k + 1) for k in range(self.n))
        if len(names) != self.n:
            raise InputError(f"joint_names: {len(names)} names for {self.n} joints")
        kinds = [("pos", self.q), ("vel", self.qd), ("tau", self.tau)]
        if self.qdd is not None:
            kinds.append(("acc", self.qdd))
        separator = "_" if joint_names is not None else ""
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["time", *(f"{kind}{separator}{name}" for kind, _ in kinds for name in names)])
            for row in np.hstack([self.t[:, None], *(values for _, values in kinds)]).tolist():
                writer.writerow([repr(value) for value in row])

    @classmethod
    def from_csv(cls, path, joint_names=None, n=None, columns=None):
        """Reads a log. Columns are found by name: see PATTERNS, e.g. ``pos1`` or ``pos_meas1`` or ``pos_joint1``, and
        the same for vel and tau, plus ``time`` [s].

        joint_names   names of the joints, in the order wanted; without them joints are counted 1, 2, ...
        n             number of joints where no names are given (default: as many positions as there are)
        columns       overrides a pattern, e.g. ``{"effort": "tau_con{k}"}``
        A log without velocities gets central differences of the positions; without efforts, zeros; both with a warning.
        Repeated time stamps are dropped (first kept), with a warning. Raises InputError naming file and column."""
        path = Path(path)
        header, table = _read_table(path)
        joints = list(enumerate(joint_names, 1)) if joint_names is not None else None
        patterns = dict(PATTERNS)
        for kind, pattern in (columns or {}).items():
            if kind not in PATTERNS and kind != "time":
                raise InputError(f"columns: no kind '{kind}'; the kinds are time, {choices(PATTERNS)}")
            patterns[kind] = (pattern,)
        times = [name for name in patterns.get("time", TIMES) if name in header]
        if not times:
            raise InputError(f"{path.name}: no time column; the columns are {choices(header)}")
        if joints is None:
            count = n or next((c for c in (_count(header, p) for p in patterns["position"]) if c), 0)
            joints = [(k, str(k)) for k in range(1, count + 1)]
        if not joints:
            raise InputError(f"{path.name}: no position column such as pos1; the columns are {choices(header)}")
        found = {kind: _find(header, patterns[kind], joints) for kind in PATTERNS}
        if found["position"] is None:
            raise InputError(f"{path.name}: no position columns such as {_example(patterns['position'], joints)}; "
                             f"the columns are {choices(header, 24)}")
        t = table[:, header.index(times[0])]
        keep = np.concatenate([[True], np.diff(t) > 0.0])
        if not keep.all():
            if (np.diff(t) < 0.0).any():
                at = int(np.argmax(np.diff(t) < 0.0))
                raise InputError(f"{path.name}: time goes back from {t[at]:g} to {t[at + 1]:g} s at row {at + 2}")
            warnings.warn(f"{path.name}: {int((~keep).sum())} repeated time stamps dropped", TwolinkWarning,
                          stacklevel=2)
        t, table = t[keep], table[keep]
        q = table[:, found["position"]]
        if found["velocity"] is None:
            warnings.warn(f"{path.name}: no velocity columns, differentiated the positions", TwolinkWarning,
                          stacklevel=2)
            qd = np.gradient(q, t, axis=0) if t.size > 1 else np.zeros_like(q)
        else:
            qd = table[:, found["velocity"]]
        if found["effort"] is None:
            warnings.warn(f"{path.name}: no effort columns, taken as zero", TwolinkWarning, stacklevel=2)
            tau = np.zeros_like(q)
        else:
            tau = table[:, found["effort"]]
        return cls(t, q, qd, tau)


def _read_table(path):
    """Header names (stripped) and the numbers (rows, columns) of a CSV file."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read '{path}': {getattr(error, 'strerror', None) or error}") from None
    if len(rows) < 2:
        raise InputError(f"{path.name}: no data rows")
    header = [name.strip() for name in rows[0]]
    table = np.empty((len(rows) - 1, len(header)))
    for line, row in enumerate(rows[1:], 2):
        if len(row) != len(header):
            raise InputError(f"{path.name}: line {line} has {len(row)} values for {len(header)} columns")
        for column, text in enumerate(row):
            try:
                value = float(text)
            except ValueError:
                value = math.nan
            if not math.isfinite(value):
                raise InputError(f"{path.name}: line {line}, column '{header[column]}': "
                                 f"'{text.strip()}' is not a number")
            table[line - 2, column] = value
    return header, table


def _count(header, pattern):
    """How many joints 1, 2, ... a pattern with {k} (or a bare name) matches."""
    expression = re.compile(re.escape(pattern).replace(r"\{k\}", r"(\d+)").replace(r"\{name\}", r"(\d+)"))
    numbers = {int(match.group(1)) for match in map(expression.fullmatch, header) if match}
    return len(numbers) if numbers == set(range(1, len(numbers) + 1)) else 0


def _find(header, patterns, joints):
    """Column indices of the first pattern that names every joint, or None."""
    for pattern in patterns:
        names = [pattern.format(k=k, name=name) for k, name in joints]
        if all(name in header for name in names):
            return [header.index(name) for name in names]
    return None


def _example(patterns, joints):
    k, name = joints[0]
    return " or ".join(dict.fromkeys(pattern.format(k=k, name=name) for pattern in patterns[:3]))
