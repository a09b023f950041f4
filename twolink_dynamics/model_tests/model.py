"""The model under test, and where the arm may move."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arm import Arm, frozen
from ..dynamics import Dynamics
from ..errors import InputError
from ..friction import Friction


class Model:
    """τ = inverse(q, q̇, q̈) + τ_f(q̇), all (…, n): what is put to the test.

    arm        limits, names and link masses
    inverse    callable of three (N, n) arrays; None: the rigid-body dynamics of `arm`. One's own equations go here.
    friction   Friction; None: the URDF's
    """

    def __init__(self, arm, inverse=None, friction=None):
        if not isinstance(arm, Arm):
            raise InputError(f"Model needs an Arm (load_urdf gives one), not {type(arm).__name__}")
        self.arm = arm
        self.n = arm.n
        self.dynamics = Dynamics(arm)
        self.inverse = self.dynamics.inverse_dynamics if inverse is None else inverse
        self.friction = Friction.from_arm(arm) if friction is None else friction

    def gravity(self, q):
        """g(q) (N, n)."""
        rest = np.zeros_like(q)
        return np.asarray(self.inverse(q, rest, rest), float)

    def mass_matrix(self, q):
        """M(q) (n, n) at one pose (n,): column i is what unit acceleration of joint i takes."""
        poses = np.tile(q, (self.n, 1))
        return (np.asarray(self.inverse(poses, np.zeros_like(poses), np.eye(self.n)), float) - self.gravity(poses)).T

    def stiffness(self, q, step=1e-5):
        """∂g/∂q (n, n) at one pose, by central differences."""
        shift = step * np.eye(self.n)
        return ((self.gravity(q + shift) - self.gravity(q - shift)) / (2.0 * step)).T

    def link_torques(self, q, qd, qdd):
        """(N, n, links): what each link of the arm contributes to τ, which is what its mass being wrong looks like."""
        regressor = self.dynamics.regressor(q, qd, qdd)
        parameters = np.stack([link.parameters for link in self.arm.links])
        return np.sum(regressor.reshape(*regressor.shape[:-1], *parameters.shape) * parameters, axis=-1)


@dataclass(frozen=True, eq=False)
class Workspace:
    """Where the tests move the arm: centre (n,) ± half (n,) [rad or m]."""

    centre: np.ndarray
    half: np.ndarray

    @classmethod
    def of(cls, arm, centre=None, span=None):
        """Around `centre` (the middle of the limits), at most `span` (1.2 rad, 0.2 m) each way and 60 % of the room.

        Raises InputError for a centre outside of the limits or a span that is not positive."""
        limited = np.isfinite(arm.lower) & np.isfinite(arm.upper)
        middle = np.where(limited, 0.5 * (np.where(limited, arm.lower, 0.0) + np.where(limited, arm.upper, 0.0)), 0.0)
        centre = frozen(middle if centre is None else centre, (arm.n,), "centre")
        room = np.minimum(arm.upper - centre, centre - arm.lower)
        for name, value in zip(arm.joint_names, room):
            if not value > 0.0:
                raise InputError(f"centre: joint '{name}' would stand at or beyond its limit")
        if span is not None and not (np.isfinite(span) and span > 0.0):
            raise InputError(f"span: {span} must be positive")
        most = np.where(arm.prismatic, 0.2, 1.2) if span is None else np.full(arm.n, float(span))
        return cls(centre, np.minimum(most, 0.6 * room))
