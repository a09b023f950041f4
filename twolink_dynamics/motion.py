"""A demonstration motion for any arm: where to start, where to go and with which gains, inside every limit."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .control.joint_trajectory import JointTrajectory, TrajectoryPoint
from .control.reference import Hold
from .dynamics import Dynamics
from .errors import InputError

EFFORT_SHARE, VELOCITY_SHARE = 0.7, 0.8  # of the limits that a planned motion may use
HOLD_SHARE = 0.45  # of the effort limits that holding the start pose may use
STUCK_ERROR = 1e-3  # [rad] what dry friction alone may leave of the error at rest


@dataclass(frozen=True)
class Motion:
    """q0 (n,) start pose; points of a joint trajectory that begins and ends there; kp, kd (n,) for computed torque;
    stuck (n,) the error at rest that dry friction may leave; effort, velocity: the largest shares of the limits that
    the motion uses (0 where there are none)."""

    q0: np.ndarray
    points: tuple
    kp: np.ndarray
    kd: np.ndarray
    stuck: np.ndarray
    effort: float
    velocity: float

    @property
    def duration(self):
        """[s] time of the last point."""
        return self.points[-1].time


def plan_motion(arm, duration=3.0, q0=None):
    """Motion of `duration` [s] through two poses and back; q0 (n,) is chosen when not given.

    The amplitude shrinks until torques (inverse dynamics plus friction) and velocities fit. Raises InputError where the
    arm cannot even hold any pose that was tried.
    """
    dynamics = Dynamics(arm)
    limit = np.where(arm.effort_limit > 0.0, arm.effort_limit, 1e-9)
    low, high = _range(arm)
    if q0 is None:
        q0 = _start(arm, dynamics, limit, low, high)
    q0 = np.array(q0, float)
    step = np.where(arm.prismatic, 0.1, 0.6) * np.where(q0 - low > high - q0, -1.0, 1.0)
    step = np.clip(q0 + step, low, high) - q0
    alternate = np.where(np.arange(arm.n) % 2 == 0, 1.0, -0.5)
    for _ in range(60):
        poses = (q0 + step, np.clip(q0 + alternate * step, low, high), q0)
        points = tuple(TrajectoryPoint(duration * (k + 1) / 3.0, pose.tolist()) for k, pose in enumerate(poses))
        effort, velocity = _shares(arm, dynamics, q0, points, limit)
        if effort <= EFFORT_SHARE and velocity <= VELOCITY_SHARE:
            return Motion(q0, points, *_gains(arm, dynamics, q0), effort, velocity)
        step = 0.8 * step
    raise InputError(f"arm '{arm.name}': its effort limits {arm.effort_limit.tolist()} do not even hold it at "
                     f"{np.round(q0, 3).tolist()}")


def _range(arm):
    """Limits with a margin, and finite where the arm has none."""
    reach = np.where(arm.prismatic, 0.5, np.pi)
    low, high = np.maximum(arm.lower, -reach), np.minimum(arm.upper, reach)
    low, high = np.where(low < high, low, arm.lower), np.where(low < high, high, arm.upper)  # a range beyond ±reach
    margin = 0.05 * (high - low)
    return low + margin, high - margin


def _start(arm, dynamics, limit, low, high):
    """A pose that a share of the effort limits holds: zero, then the middle, then random ones, at last hanging."""
    first = np.clip(np.zeros(arm.n), low, high)
    best, least = first, np.inf
    for make in (lambda: first, lambda: 0.5 * (low + high),
                 *[lambda q=q: q for q in np.random.default_rng(1).uniform(low, high, (200, arm.n))],
                 lambda: _hanging(dynamics, first, low, high)):
        q = make()
        share = np.max((np.abs(dynamics.gravity(q)) + arm.coulomb) / limit)
        if share <= HOLD_SHARE:
            return q
        if share < least:
            best, least = q, share
    return best


def _hanging(dynamics, q, low, high):
    """Downhill on the potential energy, with the mass matrix as metric."""
    q = np.clip(q + 0.1, low, high)
    for _ in range(300):
        q = np.clip(q - 0.02 * np.linalg.solve(dynamics.mass_matrix(q), dynamics.gravity(q)), low, high)
    return q


def _shares(arm, dynamics, q0, points, limit):
    source = JointTrajectory(arm, arm.joint_names, points, previous=Hold(q0))
    references = [source.sample(t) for t in np.linspace(0.0, points[-1].time, 241)]
    q, qd, qdd = (np.array([getattr(r, name) for r in references]) for name in ("q", "qd", "qdd"))
    friction = arm.coulomb + arm.damping * np.abs(qd)
    effort = np.max((np.abs(dynamics.inverse_dynamics(q, qd, qdd)) + friction) / limit)
    return float(effort), float(np.max(np.abs(qd) / arm.velocity_limit))


def _gains(arm, dynamics, q0):
    """(kp, kd, stuck): critically damped, and stiff enough that the error e = Kp⁻¹ M⁻¹ Fc that dry friction leaves at
    rest
    is about STUCK_ERROR, as far as a gain of 2500/s² allows."""
    pull = np.abs(np.linalg.inv(dynamics.mass_matrix(q0))) @ arm.coulomb
    kp = np.clip(pull / STUCK_ERROR, 100.0, 2500.0)
    return kp, 2.0 * np.sqrt(kp), pull / kp
