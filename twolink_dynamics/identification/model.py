"""τ = Y(q, q̇, q̈) π: which parameters an arm has, what they are called, and their columns.

Per moving link the ten inertial ones (m, m c, inertia about the link frame's origin), then per joint: rotor inertia on
the motor side, viscous, Coulomb and Stribeck friction, offset. Friction opposes motion, so it stands on the left, with
the torque τ = M q̈ + C q̇ + g + b q̇ + [Fc + (Fs − Fc) exp(−(q̇/vs)²)] s(q̇) + offset, s a smooth sign with plateau ±1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .. import newton_euler
from ..arm import Link
from ..errors import InputError, choices

INERTIAL = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
INERTIAL_UNITS = ("kg",) + ("kg m",) * 3 + ("kg m²",) * 6
ROTORS = ("none", "diagonal", "coupled")


@dataclass(frozen=True)
class FrictionTerms:
    """Which friction is fitted. smoothing: "sign", "tanh" or "atan" with scale [rad/s]: tanh(v/scale), (2/π)
    atan(v/scale).

    The plateau of s is 1 for all three, so the Coulomb parameter is the Coulomb torque. (Some publish cf·atan(100 v):
    their torque is cf·π/2, with scale 0.01.) stribeck_velocity: vs [rad/s], None for no Stribeck term.
    """

    viscous: bool = True
    coulomb: bool = True
    stribeck_velocity: float | None = None
    smoothing: str = "tanh"
    scale: float = 0.005

    def __post_init__(self):
        if self.smoothing not in ("sign", "tanh", "atan"):
            raise InputError(f"friction smoothing '{self.smoothing}' is none of sign, tanh, atan")
        if not self.scale > 0.0 or (self.stribeck_velocity is not None and not self.stribeck_velocity > 0.0):
            raise InputError("friction: scale and Stribeck velocity must be positive")

    def sign(self, qd):
        """s(q̇)."""
        if self.smoothing == "sign":
            return np.sign(qd)
        return np.tanh(qd / self.scale) if self.smoothing == "tanh" else 2.0 / np.pi * np.arctan(qd / self.scale)


@dataclass(frozen=True)
class Parameter:
    """name (m2, Iyy1, Ir2, Fv1, Fc1, Fs1, offset1), kind, owner (link or joint name), unit, prior value."""

    name: str
    kind: str
    owner: str
    unit: str
    prior: float


class Model:
    """The regressor of an arm with chosen terms.

    rotor    "none": gr² Ir of the arm stays as known; "diagonal": Ir_i fitted with column gr² q̈_i; "coupled": Ir_i
             fitted with the full coupling of a rotor carried by the joint's parent link
    offset   a constant per joint (sensor bias)
    fixed    names of parameters held at the arm's values (or {name: value})
    """

    def __init__(self, arm, friction=None, rotor="none", offset=False, fixed=()):
        if rotor not in ROTORS:
            raise InputError(f"rotor '{rotor}' is none of {choices(ROTORS)}")
        friction = friction or FrictionTerms()
        self.arm, self.friction, self.rotor, self.offset = arm, friction, rotor, offset
        if rotor != "none":
            self.arm = arm = arm.with_joints(rotor_coupling=rotor == "coupled")
        parameters = [
            Parameter(f"{name}{i + 1}", "inertial", link.name, unit, float(value))
            for i, link in enumerate(arm.links)
            for name, unit, value in zip(INERTIAL, INERTIAL_UNITS, link.parameters)
        ]
        per_joint = [("Ir", "rotor", "kg m²", arm.rotor_inertia)] if rotor != "none" else []
        per_joint += [("Fv", "viscous", "N m s/rad", arm.damping)] if friction.viscous else []
        per_joint += [("Fc", "coulomb", "N m", arm.coulomb)] if friction.coulomb else []
        per_joint += [("Fs", "stribeck", "N m", np.zeros(arm.n))] if friction.stribeck_velocity else []
        per_joint += [("offset", "offset", "N m", np.zeros(arm.n))] if offset else []
        parameters += [
            Parameter(
                f"{label}{j + 1}",
                kind,
                joint,
                unit.replace("N m", "N").replace("/rad", "/m") if arm.prismatic[j] and kind != "rotor" else unit,
                float(prior[j]),
            )
            for label, kind, unit, prior in per_joint
            for j, joint in enumerate(arm.joint_names)
        ]
        self.parameters = tuple(parameters)
        self.names = tuple(parameter.name for parameter in parameters)
        held = dict(fixed) if isinstance(fixed, dict) else dict.fromkeys(fixed)
        for name in held:
            if name not in self.names:
                raise InputError(f"fixed: no parameter '{name}'; there are {choices(self.names, 40)}")
        self.fixed = np.array([name in held for name in self.names])
        self.prior = np.array(
            [
                parameter.prior if held.get(parameter.name) is None else float(held[parameter.name])
                for parameter in parameters
            ]
        )
        self._rotor_arms = [_only_rotor(arm, j) for j in range(arm.n)] if rotor != "none" else []

    def kinds(self, *kinds):
        """(P,) bool: parameters of these kinds."""
        return np.array([parameter.kind in kinds for parameter in self.parameters])

    def columns(self, q, qd, qdd):
        """Y (T, n, P)."""
        arm, terms = self.arm, self.friction
        blocks = [newton_euler.regressor(arm, q, qd, qdd)]
        still = np.zeros(arm.n)
        if self.rotor != "none":
            blocks.append(
                np.stack([newton_euler.inverse_dynamics(alone, q, qd, qdd) for alone in self._rotor_arms], axis=-1)
            )
        eye = np.eye(arm.n)
        sign = terms.sign(qd) if terms.coulomb or terms.stribeck_velocity else still
        for used, values in (
            (terms.viscous, qd),
            (terms.coulomb, sign),
            (terms.stribeck_velocity, sign * np.exp(-((qd / (terms.stribeck_velocity or 1.0)) ** 2))),
            (self.offset, np.ones_like(qd)),
        ):
            if used:
                blocks.append(values[..., None] * eye)
        return np.concatenate(blocks, axis=-1)

    def known(self, q, qd, qdd):
        """(T, n) torque of what is not among the parameters: rotors that are not fitted."""
        if self.rotor != "none" or not self.arm.rotor_inertia.any():
            return np.zeros_like(q)
        return newton_euler.inverse_dynamics(_only_rotor(self.arm, None), q, qd, qdd)

    def arm_with(self, values):
        """The arm with these parameter values (P,): links, rotors, damping and Coulomb friction. Raises ModelError on
        bodies that cannot be."""
        links = []
        for i, link in enumerate(self.arm.links):
            links.append(link_from(link.name, values[10 * i : 10 * i + 10]))
        arm = replace(self.arm, links=tuple(links))
        fields = {"rotor": "rotor_inertia", "viscous": "damping", "coulomb": "coulomb"}
        return arm.with_joints(
            **{fields[kind]: np.maximum(values[self.kinds(kind)], 0.0) for kind in fields if self.kinds(kind).any()}
        )


def link_from(name, parameters):
    """The Link of ten parameters (m, m c, inertia about the origin)."""
    m, *moment = parameters[:4]
    xx, xy, yy, xz, yz, zz = parameters[4:]
    com = np.array(moment) / m if m else np.zeros(3)
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) - m * (com @ com * np.eye(3) - np.outer(com, com))
    return Link(name, m, com, inertia)


def _only_rotor(arm, coordinate):
    """The arm without any mass but the unit rotor of one coordinate (None: all rotors as they are)."""
    links = tuple(Link(link.name, 0.0, np.zeros(3), np.zeros((3, 3))) for link in arm.links)
    bare = replace(arm, links=links)
    return bare if coordinate is None else bare.with_joints(rotor_inertia=np.eye(arm.n)[coordinate])
