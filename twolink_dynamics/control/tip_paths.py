"""Paths of the tip (circle, line, figure-eight), turned into joint motion by inverse kinematics."""
from __future__ import annotations

import numpy as np

from ..errors import InputError
from .splines import Spline, smooth_step
from .task_space import TaskSpace, quaternion


class TipPath:
    """Joint motion that takes the tip along p(s), s = 0 … 1, at rest at both ends, `laps` times.

    dynamics     of the arm; q0 (n,) the pose whose inverse kinematics branch (elbow) is kept
    period [s]   of one lap; laps; ramp [s] to come up to speed and back (default a quarter of the period)
    nodes        inverse kinematics solutions per lap, joined by quintics; the tip leaves the path by less than 1e-5 of
                 its size with the default
    keep_orientation   True: keep the tip's orientation at q0 (refused without the joints for it); None: where n allows

    Subclasses give `_place(s)` → p (3,), p', p'' in the root frame [m]. Attributes: start, duration, q (n,) first pose.
    Raises InputError where the path leaves the arm's reach, naming the point, and on values that make no sense.
    """

    def __init__(self, dynamics, q0, period, laps=1, ramp=None, start=0.0, nodes=96, keep_orientation=None, frame=None):
        ramp = 0.25 * period if ramp is None else ramp
        for name, value in (("period", period), ("laps", laps), ("ramp", ramp)):
            if not (np.isfinite(value) and value > 0.0):
                raise InputError(f"{self._label}: {name} {value:g} must be positive and finite")
        self.dynamics, self.frame, self.start = dynamics, frame, float(start)
        q0 = np.array(q0, float)
        if q0.shape != (dynamics.arm.n,) or not np.isfinite(q0).all():
            raise InputError(f"{self._label}: q0 {q0.tolist()} is not one finite position for each joint")
        self._task = TaskSpace(dynamics, oriented=keep_orientation is not False, frame=frame)
        if keep_orientation and not self._task.rotations:
            raise InputError(f"{self._label}: {dynamics.arm.n} joints cannot keep the tip's orientation")
        self._rotation = dynamics.tip_pose(q0, frame)[0]
        self._laps, self._period, self._ramp = laps, float(period), float(ramp)
        self.duration = laps * period + ramp  # two ramps, each half a ramp longer than at full speed
        count = int(np.ceil(nodes * laps)) + 1
        # knots evenly in path length, and more at the ends, where the speed changes
        times = np.unique(np.concatenate([np.linspace(0.0, self.duration, count),
                                          np.linspace(0.0, min(2.0 * ramp, self.duration), 17),
                                          self.duration - np.linspace(0.0, min(2.0 * ramp, self.duration), 17)]))
        times = times[np.concatenate([[True], np.diff(times) > 1e-6 * self.duration])]
        q, qd, qdd = q0, [], []
        poses = []
        for t in times:
            q, rate, acceleration = self._joints(t, q)
            poses.append(q)
            qd.append(rate)
            qdd.append(acceleration)
        self._spline = Spline.through(times, np.array(poses), qd, qdd)
        self.q = poses[0]
        self._check_stops(dynamics.arm, np.array(poses))

    _label = "tip path"

    def sample(self, t):
        """Reference at t [s]."""
        return self._spline.sample(t - self.start)

    def tip(self, t):
        """(p, ṗ, p̈) (3,) of the path itself at t [s], root frame."""
        u, rate, curvature = self._progress(min(max(t - self.start, 0.0), self.duration))
        p, dp, ddp = self._place(u)
        return p, dp * rate, ddp * rate**2 + dp * curvature

    def _progress(self, t):
        """Laps done, their rate [1/s] and its derivative: up to speed along a smooth step's rate and back."""
        ramp, T = self._ramp, self.duration
        mirrored = t > 0.5 * T
        s = T - t if mirrored else t
        x = s / ramp
        share, slope, _ = smooth_step(x)
        # ∫ (10x³ − 15x⁴ + 6x⁵) = 2.5x⁴ − 3x⁵ + x⁶, which is ½ at x = 1
        done = ramp * (x**4 * (2.5 + x * (-3.0 + x))) if x < 1.0 else s - 0.5 * ramp
        done, share, slope = done / self._period, share / self._period, slope / (ramp * self._period)
        return (self._laps - done, share, -slope) if mirrored else (done, share, slope)

    def _joints(self, t, guess):
        """(q, q̇, q̈) (n,) at path time t, by damped Newton steps from the pose before."""
        p, v, a = TipPath.tip(self, t + self.start)
        q = guess.copy()
        S = self._task.selector
        for _ in range(50):
            rotation, position = self._task.tip_pose(q)
            error = S @ np.concatenate([p - position, rotation_vector(self._rotation @ rotation.T)])
            J = S @ self._task.jacobian(q)
            step = J.T @ np.linalg.solve(J @ J.T + 1e-12 * np.trace(J @ J.T) * np.eye(len(J)), error)
            q = q + step * min(1.0, 0.5 / max(np.abs(step).max(), 1e-300))
            if np.abs(error).max() < 1e-12:
                break
        missed = p - self._task.tip_pose(q)[1]
        distance = float(np.linalg.norm(missed))
        if distance > 1e-8 or not np.isfinite(distance):
            raise InputError(f"{self._label}: point ({', '.join(f'{x:.4g}' for x in p)}) is out of the arm's reach"
                             f"{f' by {distance:.3g} m' if np.isfinite(distance) else ''}")
        J = S @ self._task.jacobian(q)
        gram = J @ J.T
        if np.linalg.cond(gram) > 1e10:
            raise InputError(f"{self._label}: point ({', '.join(f'{x:.4g}' for x in p)}) is singular for this arm "
                             "(stretched or folded)")
        inverse = J.T @ np.linalg.inv(gram)
        qd = inverse @ (S[:, :3] @ v)
        qdd = inverse @ (S[:, :3] @ a - S @ self._task.jacobian_rate(q, qd))
        return q, qd, qdd

    def _check_stops(self, arm, q):
        for k, name in enumerate(arm.joint_names):
            low, high = q[:, k].min(), q[:, k].max()
            if low < arm.lower[k] - 1e-9 or high > arm.upper[k] + 1e-9:
                raise InputError(f"{self._label}: joint '{name}' would go from {low:.4g} to {high:.4g}, its range is "
                                 f"{arm.lower[k]:.4g} to {arm.upper[k]:.4g}")

    def _place(self, u):
        raise NotImplementedError


class Line(TipPath):
    """To `to` (3,) [m] and back each lap, harmonically, from `origin` (3,) (default: the tip at q0)."""

    _label = "line"

    def __init__(self, dynamics, q0, to, period, *, origin=None, **options):
        self._from, self._way = _origin(dynamics, q0, origin, options), np.asarray(to, float)
        self._way = self._way - self._from
        super().__init__(dynamics, q0, period, **options)

    def _place(self, u):
        w = 2.0 * np.pi
        return (self._from + 0.5 * (1.0 - np.cos(w * u)) * self._way, 0.5 * w * np.sin(w * u) * self._way,
                0.5 * w * w * np.cos(w * u) * self._way)


class Circle(TipPath):
    """A circle of `radius` [m] through the tip at q0 (or `origin`), its center away along `toward` (3,), in the plane
    of `toward` and `sideways` (3,) (default: the arm's first two reachable directions)."""

    _label = "circle"

    def __init__(self, dynamics, q0, radius, period, *, toward=None, sideways=None, origin=None, **options):
        self._from = _origin(dynamics, q0, origin, options)
        self._x, self._y = _plane(dynamics, toward, sideways, self._label, options)
        self._radius = _positive(radius, f"{self._label}: radius")
        super().__init__(dynamics, q0, period, **options)

    def _place(self, u):
        w, r = 2.0 * np.pi, self._radius
        c, s = np.cos(w * u), np.sin(w * u)
        return (self._from + r * ((1.0 - c) * self._x + s * self._y), r * w * (s * self._x + c * self._y),
                r * w * w * (c * self._x - s * self._y))


class FigureEight(TipPath):
    """An eight centred at the tip at q0 (or `origin`): size sin 2πs along `toward`, ½ size sin 4πs along `sideways`."""

    _label = "figure-eight"

    def __init__(self, dynamics, q0, size, period, *, toward=None, sideways=None, origin=None, **options):
        self._from = _origin(dynamics, q0, origin, options)
        self._x, self._y = _plane(dynamics, toward, sideways, self._label, options)
        self._size = _positive(size, f"{self._label}: size")
        super().__init__(dynamics, q0, period, **options)

    def _place(self, u):
        w, r = 2.0 * np.pi, self._size
        s1, c1, s2, c2 = np.sin(w * u), np.cos(w * u), np.sin(2.0 * w * u), np.cos(2.0 * w * u)
        return (self._from + r * (s1 * self._x + 0.5 * s2 * self._y), r * w * (c1 * self._x + c2 * self._y),
                -r * w * w * (s1 * self._x + 2.0 * s2 * self._y))


def rotation_vector(R):
    """(3,) axis times angle of a rotation matrix, the short way."""
    eta, eps = quaternion(R)
    eta, eps = (-eta, -eps) if eta < 0.0 else (eta, eps)
    length = float(np.linalg.norm(eps))
    return 2.0 * eps if length < 1e-9 else eps * (2.0 * np.arctan2(length, eta) / length)


def _origin(dynamics, q0, origin, options):
    if origin is not None:
        return np.asarray(origin, float)
    return dynamics.tip_pose(np.asarray(q0, float), options.get("frame"))[1]


def _positive(value, what):
    if not (np.isfinite(value) and value > 0.0):
        raise InputError(f"{what} {value:g} must be positive and finite")
    return float(value)


def _plane(dynamics, toward, sideways, label, options):
    """Two orthonormal directions (3,) of the path's plane."""
    task = TaskSpace(dynamics, oriented=False, frame=options.get("frame"))
    if task.translations < 2:
        raise InputError(f"{label}: the tip moves in {task.translations} direction(s), a plane needs 2")
    directions = task.selector[:, :3]
    x = directions[0] if toward is None else np.asarray(toward, float)
    if not np.linalg.norm(x) > 0.0:
        raise InputError(f"{label}: toward {np.ravel(x).tolist()} has no direction")
    x = x / np.linalg.norm(x)
    candidates = directions if sideways is None else [np.asarray(sideways, float)]
    y = max((candidate - (candidate @ x) * x for candidate in candidates), key=np.linalg.norm)
    if not np.linalg.norm(y) > 1e-9:
        raise InputError(f"{label}: toward and sideways are parallel")
    return x, y / np.linalg.norm(y)
