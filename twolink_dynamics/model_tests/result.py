"""What a test says at its end."""
from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False)
class Result:
    """A verdict with its reasons.

    name      of the test;  passed: the verdict
    error, tolerance   (n,) per joint, what was judged: passed means error ≤ tolerance everywhere
    unit      of both;  lines: text for people;  numbers: what goes into the report (plain lists and floats)
    data      arrays for the figure
    """

    name: str
    joint_names: tuple
    error: np.ndarray
    tolerance: np.ndarray
    unit: str
    lines: tuple = ()
    numbers: dict = field(default_factory=dict)
    data: dict = field(default_factory=dict)

    @property
    def joint_passed(self):
        """(n,) bool; NaN does not pass."""
        return np.asarray(self.error) <= np.asarray(self.tolerance)

    @property
    def passed(self):
        """Whether every joint passed."""
        return bool(self.joint_passed.all())

    def report(self):
        """Text lines: the verdict, each joint against its tolerance, then the remarks."""
        yield f"{self.name}: {'PASS' if self.passed else 'FAIL'}"
        for name, error, tolerance, good in zip(self.joint_names, self.error, self.tolerance, self.joint_passed):
            yield f"  {name}: error {error:.4g} {self.unit}, tolerance {tolerance:.4g}{'' if good else ' <- FAIL'}"
        yield from (f"  {line}" for line in self.lines)

    def as_dict(self):
        """For JSON."""
        return dict(test=self.name, passed=self.passed, joints=list(self.joint_names), unit=self.unit,
                    error=np.asarray(self.error).tolist(), tolerance=np.asarray(self.tolerance).tolist(),
                    **self.numbers)


def rms(values, axis=0):
    """Root of the mean square along an axis."""
    return np.sqrt(np.mean(np.square(values), axis=axis))


def mass_remark(columns, error, names):
    """A line that says which link masses would explain an error, from columns (N, links) = ∂τ/∂(relative mass) and the
    error (N,); None where the columns say nothing."""
    scale, _, rank, _ = np.linalg.lstsq(columns, error, rcond=1e-6)
    if rank == 0:
        return None
    left = rms(error - columns @ scale)
    parts = ", ".join(f"{name} {100.0 * value:+.1f} %" for name, value in zip(names, scale))
    return f"explained best by link masses: {parts} (leaves {left:.3g} of {rms(error):.3g})"
