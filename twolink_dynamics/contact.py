"""Contact of the tip with a plane: a wall or a table it cannot pass, with Coulomb friction."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .arm import frozen
from .constraints import REACH, Point, across, unit
from .errors import InputError, ModelError

TOUCHING = 1e-9  # [m] a gap smaller than this is contact
SLOW = 1e-9      # [m/s] a velocity of the tip smaller than this is rest


@dataclass(frozen=True, eq=False)
class Plane:
    """The tip stays on the side `normal` points to: gap = normal · (p_tip − point) ≥ 0, force N ≥ 0 along the normal.

    point (3,) [m] on the plane, normal (3,) out of the material (any length), root frame; friction μ ≥ 0: the
    tangential force obeys |T| ≤ μ N and opposes sliding. Impacts are plastic (no rebound), by impulses that obey the
    same law.
    frame: which link's origin touches (default: the tip). Raises InputError on a bad value."""

    point: np.ndarray
    normal: np.ndarray
    friction: float = 0.0
    frame: str | None = None

    def __post_init__(self):
        object.__setattr__(self, "point", frozen(self.point, (3,), "contact plane: point"))
        object.__setattr__(self, "normal", unit(self.normal, "contact plane: normal"))
        if not (np.isfinite(self.friction) and self.friction >= 0.0):
            raise InputError(f"contact plane: friction {self.friction!r} must be finite and not negative")

    def bind(self, dynamics):
        """This plane for one arm; raises ModelError where no joint moves the tip along the normal."""
        return TipContact(dynamics, self)


class TipContact:
    """A Plane and an arm: gap, and rows of the tip's velocity along the normal and the reachable tangents (t of
    them)."""

    def __init__(self, dynamics, plane):
        self.plane = plane
        self.point = Point(dynamics, plane.frame)
        poses = np.random.default_rng(9).uniform(-2.0, 2.0, (7, dynamics.n))
        samples = np.concatenate([self.point.jacobian(q) for q in poses], axis=1)
        scale = max(1.0, np.linalg.norm(samples))
        if np.linalg.norm(plane.normal @ samples) <= REACH * scale:
            raise ModelError(f"contact plane: no joint moves '{self.point.name}' along the normal "
                             f"{plane.normal.tolist()}")
        tangents = across(plane.normal)
        U, values, _ = np.linalg.svd(tangents @ samples)
        self.tangents = U[:, values > REACH * scale].T @ tangents  # (t, 3)
        self.axes = np.concatenate([plane.normal[None], self.tangents])  # (1 + t, 3)

    def position(self, q):
        """(3,) the touching point [m], root frame."""
        return self.point.position(q)

    def gap(self, q):
        """Distance from the plane [m], negative inside."""
        return float(self.plane.normal @ (self.position(q) - self.plane.point))

    def rows(self, q):
        """(1 + t, n) Jacobian along the normal, then the tangents."""
        return self.axes @ self.point.jacobian(q)

    def rates(self, q, qd):
        """(1 + t,) J̇ q̇."""
        return self.axes @ self.point.rate(q, qd)
