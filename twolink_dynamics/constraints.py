"""Equality constraints held by Lagrange multipliers: φ(q) = 0, so J_c q̈ + J̇_c q̇ = 0, with J_cᵀ λ acting on the arm.

Every constraint has one interface: `name`, `bind(dynamics) -> Bound` with φ, J_c, J̇_c q̇ and the meaning of λ. A
set of constraints keeps only the directions the arm can reach, so that a planar arm pinned in space gets two rows, not
three.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, NamedTuple

import numpy as np

from .arm import frozen
from .dynamics import Dynamics
from .errors import InputError, ModelError, SimulationError

REACH = 1e-9      # a combination of rows whose Jacobian is smaller than this (relative) everywhere is out of reach
CLOSED = 1e-12    # [m or rad] assembly ends when every row is closer than this
ACCEPTED = 1e-8   # [m or rad] a given state may miss a constraint by this


class Bound(NamedTuple):
    """A constraint on one arm, before the choice of directions; `k` raw rows.

    phi(q) -> (k,);  rows(q, qd) -> (J (k, n), J̇ q̇ (k,), or None without qd);  force(q, lam (k,)) -> (3,) force on the
    tip [N] in root axes, or None where λ is a joint effort."""

    phi: Callable
    rows: Callable
    force: Callable | None


class Point:
    """The origin of a link's frame: position(q) (3,), jacobian(q) (3, n), rate(q, qd) (3,) = J̇ q̇, in root axes."""

    def __init__(self, dynamics, frame=None):
        arm = dynamics.arm
        self.name = arm.frame(frame).name
        self._of = dynamics if self.name == arm.tip else Dynamics(arm.with_tip(self.name))  # tips are served fastest

    def position(self, q):
        return self._of.tip_pose(q)[1]

    def jacobian(self, q):
        return self._of.jacobian(q)[:3]

    def rate(self, q, qd):
        return self._of.jacobian_rate(q, qd)[:3]

    def rows(self, q, qd):
        """(J (3, n), J̇ q̇ (3,) or None)."""
        return self.jacobian(q), None if qd is None else self.rate(q, qd)


def unit(vector, what):
    """`vector` (3,) scaled to length 1; raises InputError on a zero one."""
    vector = frozen(vector, (3,), what)
    length = np.linalg.norm(vector)
    if length == 0.0:
        raise InputError(f"{what}: (0, 0, 0) has no direction")
    return vector / length


def across(direction):
    """(2, 3) two unit vectors at right angles to a unit vector and to each other."""
    helper = np.eye(3)[int(np.argmin(np.abs(direction)))]
    first = np.cross(direction, helper)
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(direction, first)])


class _Tip:
    """A point-of-the-tip constraint N (p_tip(q) − point) = 0 with rows N (k, 3) in root axes."""

    frame: str | None = None

    def _bind_rows(self, dynamics, N, point):
        tip = Point(dynamics, self.frame)

        def rows(q, qd=None):
            J, rate = tip.rows(q, qd)
            return N @ J, None if qd is None else N @ rate

        return Bound(lambda q: N @ (tip.position(q) - point), rows, force=lambda q, lam: lam @ N)


@dataclass(frozen=True, eq=False)
class TipOnLine(_Tip):
    """The tip stays on the line through `point` (3,) [m] along `direction` (3,), root frame; λ is a force [N]."""

    point: np.ndarray
    direction: np.ndarray
    frame: str | None = None
    name: str = "tip on line"

    def bind(self, dynamics):
        return self._bind_rows(dynamics, across(unit(self.direction, f"{self.name}: direction")),
                               frozen(self.point, (3,), f"{self.name}: point"))


@dataclass(frozen=True, eq=False)
class TipOnPlane(_Tip):
    """The tip stays on the plane through `point` (3,) [m] with `normal` (3,), root frame; λ is a force [N]."""

    point: np.ndarray
    normal: np.ndarray
    frame: str | None = None
    name: str = "tip on plane"

    def bind(self, dynamics):
        return self._bind_rows(dynamics, unit(self.normal, f"{self.name}: normal")[None],
                               frozen(self.point, (3,), f"{self.name}: point"))


@dataclass(frozen=True, eq=False)
class TipPinned(_Tip):
    """The tip stays at `point` (3,) [m], root frame; λ is the force of the pin on the tip [N]. A two-link arm is
    locked."""

    point: np.ndarray
    frame: str | None = None
    name: str = "tip pinned"

    def bind(self, dynamics):
        return self._bind_rows(dynamics, np.eye(3), frozen(self.point, (3,), f"{self.name}: point"))


@dataclass(frozen=True, eq=False)
class TipAtDistance:
    """The tip stays `distance` [m] from `point` (3,), as a rod between pin joints holds it (a four-bar linkage).

    φ = |p − point| − distance; λ [N] is the rod's force along it, positive when it pushes."""

    point: np.ndarray
    distance: float
    frame: str | None = None
    name: str = "tip at distance"

    def bind(self, dynamics):
        tip = Point(dynamics, self.frame)
        centre = frozen(self.point, (3,), f"{self.name}: point")
        distance = float(self.distance)
        if not (np.isfinite(distance) and distance > 0.0):
            raise InputError(f"{self.name}: distance {self.distance!r} must be positive and finite")

        def away(q):
            offset = tip.position(q) - centre
            length = float(np.sqrt(offset @ offset))
            if length == 0.0:
                raise SimulationError(f"{self.name}: the tip is at the centre {centre.tolist()}, no direction to it")
            return offset / length, length

        def rows(q, qd=None):
            direction, length = away(q)
            J, rate = tip.rows(q, qd)
            if qd is None:
                return (direction @ J)[None], None
            v = J @ qd
            return (direction @ J)[None], np.array([direction @ rate + (v @ v - (direction @ v) ** 2) / length])

        return Bound(lambda q: np.array([away(q)[1] - distance]), rows, force=lambda q, lam: lam[0] * away(q)[0])


@dataclass(frozen=True, eq=False)
class CoincidentTips:
    """The origins of two links' frames coincide, as a pin joint between two branches holds them (a five-bar linkage).

    φ = p_first − p_second; λ is the force on the first link [N], the second feels its opposite."""

    first: str
    second: str
    name: str = "coincident tips"

    def bind(self, dynamics):
        first, second = Point(dynamics, self.first), Point(dynamics, self.second)
        if first.name == second.name:
            raise InputError(f"{self.name}: both are link '{first.name}'")

        def rows(q, qd=None):
            (a, a_rate), (b, b_rate) = first.rows(q, qd), second.rows(q, qd)
            return a - b, None if qd is None else a_rate - b_rate

        return Bound(lambda q: first.position(q) - second.position(q), rows, force=lambda q, lam: lam)


@dataclass(frozen=True, eq=False)
class CoupledJoints:
    """q[follower] = ratio q[leader] + offset, as a belt or a gear holds them; λ is the effort on the follower [N m
    or N]."""

    follower: str
    leader: str
    ratio: float = 1.0
    offset: float = 0.0
    name: str = "coupled joints"

    def bind(self, dynamics):
        arm = dynamics.arm
        i, j = arm.index(self.follower), arm.index(self.leader)
        if i == j:
            raise InputError(f"{self.name}: joint '{self.follower}' cannot follow itself")
        if not (np.isfinite(self.ratio) and np.isfinite(self.offset)):
            raise InputError(f"{self.name}: ratio {self.ratio!r} and offset {self.offset!r} must be finite")
        row = np.zeros((1, arm.n))
        row[0, i], row[0, j] = 1.0, -self.ratio
        return Bound(lambda q: row @ q - self.offset, lambda q, qd=None: (row, np.zeros(1)), force=None)


class ConstraintSet:
    """All constraints of one arm as k rows in reachable directions: U_iᵀ φ_i(q) = 0.

    Raises InputError where a constraint is not one; ModelError where nothing of a constraint can be moved or one says
    again what others say; whether they can hold together is found when a pose is assembled."""

    def __init__(self, dynamics, constraints):
        arm = self.arm = dynamics.arm
        self.constraints = tuple(constraints)
        self.bound = []
        for constraint in self.constraints:
            if not hasattr(constraint, "bind"):
                raise InputError(f"constraints: {type(constraint).__name__} is none of TipOnLine, TipOnPlane, "
                                 "TipAtDistance, CoincidentTips, TipPinned, CoupledJoints")
            self.bound.append(constraint.bind(dynamics))
        names = [constraint.name for constraint in self.constraints]
        self.names = [name if names.count(name) == 1 else f"{name} {1 + names[:i].count(name)}"
                      for i, name in enumerate(names)]
        poses = np.random.default_rng(9).uniform(-2.0, 2.0, (7, arm.n))
        self.directions, self.unreachable = [], []
        for name, bound in zip(self.names, self.bound):
            samples = np.concatenate([bound.rows(q)[0] for q in poses], axis=1)
            U, values, _ = np.linalg.svd(samples, full_matrices=True)
            reach = np.zeros(U.shape[1], bool)
            reach[:values.size] = values > REACH * max(1.0, values[0])
            if not reach.any():
                raise ModelError(f"constraint '{name}': no joint moves it")
            self.directions.append(_tidy(U[:, reach]))
            self.unreachable.append((U[:, ~reach], bound.phi(poses[0])))
        alone = len(self.bound) == 1 and np.array_equal(self.directions[0], np.eye(len(self.directions[0])))
        self._plain = self.bound[0] if alone else None  # nothing to select or to stack
        counts = [U.shape[1] for U in self.directions]
        self.k = sum(counts)
        self.parts = [slice(sum(counts[:i]), sum(counts[:i + 1])) for i in range(len(counts))]
        for name, (U, value) in zip(self.names, self.unreachable):
            off = U.T @ value
            if off.size and np.abs(off).max() > ACCEPTED:
                raise ModelError(f"constraint '{name}' can never hold: it stays {np.abs(off).max():.3g} m away in a "
                                 "direction the arm does not move in")

    def phi(self, q):
        """(k,) how far each row is from being met [m or rad]."""
        return np.concatenate([U.T @ bound.phi(q) for U, bound in zip(self.directions, self.bound)])

    def rows(self, q, qd=None):
        """(J_c (k, n), J̇_c q̇ (k,), None without qd)."""
        if self._plain is not None:
            return self._plain.rows(q, qd)
        found = [bound.rows(q, qd) for bound in self.bound]
        J = np.concatenate([U.T @ rows for U, (rows, _) in zip(self.directions, found)])
        if qd is None:
            return J, None
        return J, np.concatenate([U.T @ rate for U, (_, rate) in zip(self.directions, found)])

    def jacobian(self, q):
        """J_c (k, n)."""
        return self.rows(q)[0]

    def forces(self, q, lam):
        """{name: (3,) force on the tip [N] in root axes, or (n,) joint efforts where λ is one}."""
        found = {}
        for name, U, bound, part in zip(self.names, self.directions, self.bound, self.parts):
            raw = U @ lam[part]
            found[name] = raw @ bound.rows(q)[0] if bound.force is None else bound.force(q, raw)
        return found

    def assemble(self, q, mass_matrix, tolerance=CLOSED, tries=60):
        """The pose near q that meets every row, by damped Newton steps in the mass metric; raises SimulationError
        naming what cannot be met, ModelError naming rows that say the same."""
        phi = self.phi(q)
        for _ in range(tries):
            worst = np.abs(phi).max()
            if worst <= tolerance:
                break
            J = self.jacobian(q)
            AJ = np.linalg.solve(mass_matrix(q), J.T)
            step = AJ @ np.linalg.lstsq(J @ AJ, phi, rcond=1e-9)[0]
            step *= min(1.0, 0.5 / max(np.abs(step).max(), 1e-300))
            for _ in range(30):
                trial = self.phi(q - step)
                if np.abs(trial).max() < worst:
                    break
                step = 0.5 * step
            else:
                break
            q, phi = q - step, trial
        worst = np.abs(phi).max()
        if worst > ACCEPTED:
            raise SimulationError(f"constraints cannot be met from here: {self._offenders(phi)}")
        self.check_independent(q, mass_matrix)
        return q

    def check(self, q):
        """Raises SimulationError naming each constraint that pose q does not meet, and by how much."""
        phi = self.phi(q)
        if np.abs(phi).max() > ACCEPTED:
            raise SimulationError(f"{self._offenders(phi)} at the given pose; Plant.assemble(q) finds one that fits")

    def _offenders(self, phi):
        return ", ".join(f"'{name}' is off by {np.abs(phi[part]).max():.3g}"
                         for name, part in zip(self.names, self.parts) if np.abs(phi[part]).max() > ACCEPTED)

    def check_independent(self, q, mass_matrix):
        """Raises ModelError naming constraints whose rows depend on each other at q and at poses around it."""
        combination = self._dependence(q)
        if combination is None:
            return
        rng = np.random.default_rng(3)
        for _ in range(3):  # a singular pose is no redundancy: move a little along the constraints and look again
            near = q + 1e-2 * rng.standard_normal(q.size)
            for _ in range(10):
                J, phi = self.jacobian(near), self.phi(near)
                near = near - np.linalg.lstsq(J, phi, rcond=1e-9)[0]
            if np.abs(self.phi(near)).max() < ACCEPTED and self._dependence(near) is None:
                return
        involved = [name for name, part in zip(self.names, self.parts) if np.abs(combination[part]).max() > 1e-3]
        raise ModelError(f"constraints {', '.join(repr(name) for name in involved)} are redundant: "
                         f"{self.k} rows on {self.arm.n} joints say the same")

    def _dependence(self, q):
        """(k,) a combination of rows that vanishes at q, or None."""
        J = self.jacobian(q)
        J = J / np.maximum(np.linalg.norm(J, axis=1, keepdims=True), 1e-300)
        U, values, _ = np.linalg.svd(J)
        if values.size == self.k and values[-1] > 1e-7:
            return None
        return U[:, -1]


def _tidy(U):
    """The same column space with columns along the coordinate axes where it holds them, for readable multipliers."""
    projector = U @ U.T
    chosen = []
    for e in np.eye(U.shape[0]):
        v = projector @ e
        for c in chosen:
            v = v - (c @ v) * c
        length = np.linalg.norm(v)
        if length > 1e-3 and len(chosen) < U.shape[1]:
            chosen.append(v / length)
    return np.stack(chosen, axis=1) if len(chosen) == U.shape[1] else U
