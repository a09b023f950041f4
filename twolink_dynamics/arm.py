"""The arm: an immutable tree of moving links, and nothing else. Every engine takes it as an argument.

A moving link carries everything that is welded to it (fixed joints are folded away when the URDF is read).
Frames: a link's frame is its joint's frame, moved by the joint; monogram names ``R_PJ``, ``p_PJ`` give the joint
frame J in the parent link's frame P. Joint variables follow from the n independent coordinates q by
``variable = multiplier * q[coordinate] + offset`` (multiplier 1 and offset 0 but for mimic joints).
"""
from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .errors import InputError, ModelError, choices

REVOLUTE, CONTINUOUS, PRISMATIC = "revolute", "continuous", "prismatic"
KINDS = (REVOLUTE, CONTINUOUS, PRISMATIC)
ROOT = -1  # parent index of what is fixed to the root frame
IDENTITY, NO_INERTIA = np.eye(3), np.zeros((3, 3))
IDENTITY.setflags(write=False)
NO_INERTIA.setflags(write=False)


def frozen(value, shape, what):
    """`value` as a read-only float64 array of `shape`; raises InputError naming `what`."""
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{what}: {value!r} is not an array of numbers") from None
    if array.shape != shape:
        raise InputError(f"{what}: shape {array.shape}, expected {shape}")
    if not np.isfinite(array).all():
        raise InputError(f"{what}: {array.tolist()} is not finite")
    array.setflags(write=False)
    return array


class Pose(NamedTuple):
    """Rotation (3, 3) and translation (3,) [m] of a frame B in a frame A: ``p_A = rotation @ p_B + translation``."""

    rotation: np.ndarray
    translation: np.ndarray

    def __matmul__(self, other):
        """X_AC = X_AB @ X_BC."""
        return make_pose(self.rotation @ other.rotation, self.rotation @ other.translation + self.translation)


def make_pose(rotation=IDENTITY, translation=(0.0, 0.0, 0.0), what="pose"):
    """A read-only Pose; entries of the rotation within 1e-15 of an integer become that integer (cos π/2 = 0)."""
    rotation = np.array(rotation, float)
    nearest = np.round(rotation)
    rotation = np.where(np.abs(rotation - nearest) < 1e-15, nearest, rotation) + 0.0
    return Pose(frozen(rotation, (3, 3), what), frozen(translation, (3,), what))


@dataclass(frozen=True, eq=False)
class Link:
    """A rigid body: mass [kg], com (3,) [m] and inertia (3, 3) about the com [kg m²], in link axes."""

    name: str
    mass: float
    com: np.ndarray
    inertia: np.ndarray

    def __post_init__(self):
        try:
            object.__setattr__(self, "mass", float(self.mass))
        except (TypeError, ValueError):
            raise ModelError(f"link '{self.name}': mass {self.mass!r} is not a number") from None
        if not np.isfinite(self.mass) or self.mass < 0.0:
            raise ModelError(f"link '{self.name}': mass {self.mass:g} kg must be finite and not negative")
        object.__setattr__(self, "com", frozen(self.com, (3,), f"link '{self.name}': com"))
        inertia = frozen(self.inertia, (3, 3), f"link '{self.name}': inertia")
        scale = np.abs(inertia).max()
        if scale and np.abs(inertia - inertia.T).max() > 1e-9 * scale:
            raise ModelError(f"link '{self.name}': inertia {inertia.tolist()} is not symmetric")
        moments = np.linalg.eigvalsh(inertia)
        rounding = 1e-9 * max(moments[-1], -moments[0]) + 1e-12 * self.mass  # (1 µm)² m is no inertia
        if moments[0] < -rounding:
            raise ModelError(f"link '{self.name}': inertia is not positive definite, its principal moments are "
                             f"{', '.join(f'{moment:g}' for moment in moments)} kg m²")
        if self.mass == 0.0 and scale > 0.0:
            raise ModelError(f"link '{self.name}': mass 0 with inertia {moments[-1]:g} kg m² is no body")
        object.__setattr__(self, "inertia", inertia)

    @property
    def inertia_origin(self):
        """(3, 3) inertia about the link frame's origin: I_o = I_c + m (cᵀc 1 − c cᵀ) (parallel axes) [kg m²]."""
        return self.inertia + self.mass * (self.com @ self.com * np.eye(3) - np.outer(self.com, self.com))

    @property
    def parameters(self):
        """(10,) m, m c, then Ixx Ixy Iyy Ixz Iyz Izz about the link frame's origin (Pinocchio's order)."""
        i = self.inertia_origin
        return np.array([self.mass, *(self.mass * self.com), i[0, 0], i[0, 1], i[1, 1], i[0, 2], i[1, 2], i[2, 2]])

    def moved(self, pose, name=None):
        """This body expressed in frame A, where `pose` is X_AB and the body is given in B: I_A = R I_B Rᵀ."""
        rotation, translation = pose
        return Link(name or self.name, self.mass, rotation @ self.com + translation,
                    symmetric(rotation @ self.inertia @ rotation.T))

    def welded(self, other):
        """This body and `other`, both in this frame, as one rigid body."""
        mass = self.mass + other.mass
        if mass == 0.0:
            return self
        com = (self.mass * self.com + other.mass * other.com) / mass
        inertia = np.zeros((3, 3))
        for body in (self, other):
            d = body.com - com
            inertia += body.inertia + body.mass * (d @ d * np.eye(3) - np.outer(d, d))
        return Link(self.name, mass, com, symmetric(inertia))


def symmetric(matrix):
    """The symmetric part of a matrix, to remove rounding."""
    return 0.5 * (matrix + matrix.T)


@dataclass(frozen=True, eq=False)
class Joint:
    """One moving joint. Angles [rad] and N m, or [m] and N when prismatic.

    parent      index of the parent link in the arm, ROOT (−1) for the root frame
    origin      Pose of the joint frame in the parent link's frame, X_PJ
    axis        (3,) unit axis in the joint frame
    lower, upper, velocity_limit, effort_limit   ±inf when unlimited; an effort limit of 0 means unactuated
    damping, coulomb       viscous [N m s/rad] and Coulomb [N m] friction of the URDF's <dynamics>
    rotor_inertia, gear_ratio   motor-side inertia Ir [kg m²] and signed ratio gr; gr² Ir adds to the mass matrix
    coordinate, multiplier, offset   variable = multiplier q[coordinate] + offset
    follows     name of the joint this one mimics, '' for a joint with a coordinate of its own
    """

    name: str
    kind: str
    parent: int
    origin: Pose
    axis: np.ndarray
    lower: float = -np.inf
    upper: float = np.inf
    velocity_limit: float = np.inf
    effort_limit: float = np.inf
    damping: float = 0.0
    coulomb: float = 0.0
    rotor_inertia: float = 0.0
    gear_ratio: float = 1.0
    coordinate: int = 0
    multiplier: float = 1.0
    offset: float = 0.0
    follows: str = ""

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ModelError(f"joint '{self.name}': kind '{self.kind}' is none of {choices(KINDS)}")
        axis = frozen(self.axis, (3,), f"joint '{self.name}': axis")
        length = np.linalg.norm(axis)
        if length == 0.0:
            raise ModelError(f"joint '{self.name}': axis (0, 0, 0) has no direction")
        object.__setattr__(self, "axis", frozen(axis / length, (3,), "axis"))
        for name in ("damping", "coulomb", "rotor_inertia", "velocity_limit", "effort_limit"):
            value = getattr(self, name)
            if not value >= 0.0:
                raise ModelError(f"joint '{self.name}': {name} {value:g} must not be negative")
        for name in ("damping", "coulomb", "rotor_inertia", "gear_ratio", "multiplier", "offset"):
            if not np.isfinite(getattr(self, name)):
                raise ModelError(f"joint '{self.name}': {name} {getattr(self, name):g} is not finite")
        if not self.lower <= self.upper or self.lower == np.inf or self.upper == -np.inf:
            raise ModelError(f"joint '{self.name}': lower limit {self.lower:g} is above the upper one {self.upper:g}")


class Frame(NamedTuple):
    """A named frame fixed in moving link `link` (ROOT for the root frame) at `pose` X_LF."""

    name: str
    link: int
    pose: Pose


def _flags(values):
    flags = np.array(list(values))
    flags.setflags(write=False)
    return flags


def _per_coordinate(attribute, doc):
    def read(self):
        values = np.array([getattr(self.joints[i], attribute) for i in self.owners], float)
        values.setflags(write=False)
        return values
    read.__doc__ = doc
    return cached_property(read)


@dataclass(frozen=True, eq=False)
class Arm:
    """A fixed-base tree of moving links; `joints[i]` moves `links[i]`, parents before children.

    name, root          the robot's and the root link's name
    joints, links       tuples of N entries; N > n only where joints mimic others
    frames              every URDF link as a Frame, so that any of them can be a tip or a frame_id
    tips, tip           names of the leaf links; the chosen tip, or None where a branched arm was given none
    gravity             (3,) [m/s²] in the root frame
    rotor_coupling      True: rotors also feel their carrier's rotation (see DESIGN of the equation); False: gr² Ir only
    warnings, lumped    what the reader accepted with a remark; what was welded to what (text lines)
    """

    name: str
    joints: tuple
    links: tuple
    frames: tuple
    tips: tuple = ()
    tip: str | None = None
    gravity: np.ndarray = (0.0, 0.0, -9.81)
    root: str = "root"
    rotor_coupling: bool = False
    warnings: tuple = field(default=())
    lumped: tuple = field(default=())

    def __post_init__(self):
        object.__setattr__(self, "gravity", frozen(self.gravity, (3,), "gravity"))
        if not self.joints:
            raise ModelError(f"arm '{self.name}' has no moving joint")
        if len(self.joints) != len(self.links):
            raise ModelError(f"arm '{self.name}': {len(self.joints)} joints but {len(self.links)} links")
        for i, joint in enumerate(self.joints):
            if not ROOT <= joint.parent < i:
                raise ModelError(f"joint '{joint.name}': parent {joint.parent} does not stand before it")
        leading = [joint.coordinate for joint in self.joints if not joint.follows]
        if sorted(leading) != list(range(len(leading))) or not {j.coordinate for j in self.joints} <= set(leading):
            raise ModelError(f"arm '{self.name}': coordinates {[joint.coordinate for joint in self.joints]} must count "
                             "from 0, each led by one joint")
        for frame in self.frames:
            if not ROOT <= frame.link < len(self.links):
                raise ModelError(f"frame '{frame.name}': link {frame.link} is none of the {len(self.links)} links")
        if self.tip is not None:
            self.frame(self.tip)

    # -- coordinates ---------------------------------------------------------------------------------------------
    @cached_property
    def owners(self):
        """For each coordinate the index of the joint it is named after."""
        count = 1 + max(joint.coordinate for joint in self.joints)
        return tuple(next(i for i, joint in enumerate(self.joints) if joint.coordinate == k and not joint.follows)
                     for k in range(count))

    @property
    def n(self):
        """Number of independent coordinates."""
        return len(self.owners)

    @cached_property
    def joint_names(self):
        """Names of the coordinates, in the order of q."""
        return tuple(self.joints[i].name for i in self.owners)

    lower = _per_coordinate("lower", "(n,) lower position stops, −inf where there is none.")
    upper = _per_coordinate("upper", "(n,) upper position stops, inf where there is none.")
    velocity_limit = _per_coordinate("velocity_limit", "(n,) velocity limits, inf where there is none.")
    effort_limit = _per_coordinate("effort_limit", "(n,) effort limits, inf where there is none, 0 where unactuated.")
    gear_ratio = _per_coordinate("gear_ratio", "(n,) signed gear ratios.")
    rotor_inertia = _per_coordinate("rotor_inertia", "(n,) motor-side rotor inertias [kg m²].")

    @cached_property
    def damping(self):
        """(n,) viscous friction; a mimic joint's comes in with its multiplier squared (its power is the same)."""
        return self._gathered(lambda joint: joint.damping * joint.multiplier**2)

    @cached_property
    def coulomb(self):
        """(n,) Coulomb friction; a mimic joint's comes in with its multiplier's magnitude."""
        return self._gathered(lambda joint: joint.coulomb * abs(joint.multiplier))

    def _gathered(self, share):
        total = np.zeros(self.n)
        for joint in self.joints:
            total[joint.coordinate] += share(joint)
        total.setflags(write=False)
        return total

    @cached_property
    def continuous(self):
        """(n,) bool: coordinates whose errors wrap to ±π."""
        return _flags(self.joints[i].kind == CONTINUOUS for i in self.owners)

    @cached_property
    def prismatic(self):
        """(n,) bool: coordinates in metres and newtons."""
        return _flags(self.joints[i].kind == PRISMATIC for i in self.owners)

    def variables(self, q):
        """(…, N) joint variables of the coordinates q (…, n); N = n without mimic joints."""
        return np.stack([joint.multiplier * q[..., joint.coordinate] + joint.offset for joint in self.joints], axis=-1)

    def index(self, joint_name):
        """Position of a joint name in q; raises ModelError listing the names."""
        try:
            return self.joint_names.index(joint_name)
        except ValueError:
            raise ModelError(f"no joint '{joint_name}'; the joints are {choices(self.joint_names)}") from None

    def error(self, desired, actual):
        """desired − actual (…, n), the short way round on continuous joints only."""
        difference = np.asarray(desired, float) - np.asarray(actual, float)
        if self.continuous.any():
            wrapped = np.remainder(difference + np.pi, 2.0 * np.pi) - np.pi
            difference = np.where(self.continuous, wrapped, difference)
        return difference

    # -- frames --------------------------------------------------------------------------------------------------
    def frame(self, name=None):
        """The Frame of that name, the chosen tip when None; raises ModelError listing what there is."""
        if name is None:
            if self.tip is None:
                raise ModelError(f"arm '{self.name}' has {len(self.tips)} tips, name one: {choices(self.tips)}")
            name = self.tip
        for frame in self.frames:
            if frame.name == name:
                return frame
        raise ModelError(f"no link '{name}'; the links are {choices([frame.name for frame in self.frames])}")

    def ancestors(self, link):
        """Indices of the joints between the root and moving link `link`, root first, itself last."""
        chain = []
        while link != ROOT:
            chain.append(link)
            link = self.joints[link].parent
        return tuple(reversed(chain))

    # -- variations (each returns a new Arm) -----------------------------------------------------------------------
    def with_payload(self, mass, com=(0.0, 0.0, 0.0), inertia=NO_INERTIA, frame=None):
        """A new Arm with a body welded to `frame` (the tip): mass [kg], com (3,) [m], inertia (3, 3) about its com
        [kg m²], in that frame's axes. Raises ModelError on a body that cannot be."""
        at = self.frame(frame)
        body = Link("payload", mass, com, inertia)
        if at.link == ROOT:
            return self
        links = list(self.links)
        links[at.link] = links[at.link].welded(body.moved(at.pose))
        return replace(self, links=tuple(links))

    def with_gravity(self, gravity):
        """A new Arm with gravity (3,) [m/s²] in the root frame."""
        return replace(self, gravity=gravity)

    def with_tip(self, name):
        """A new Arm whose tip is the link of that name."""
        return replace(self, tip=self.frame(name).name)

    def with_joints(self, rotor_coupling=None, **values):
        """A new Arm with per-coordinate joint fields replaced, e.g. ``effort_limit=[20, 8]``, ``rotor_inertia=1e-4``,
        ``gear_ratio``, ``damping``, ``coulomb``, ``lower``, ``upper``, ``velocity_limit`` (scalars spread over all)."""
        joints = list(self.joints)
        for attribute, value in values.items():
            if attribute not in ("lower", "upper", "velocity_limit", "effort_limit", "damping", "coulomb",
                                 "rotor_inertia", "gear_ratio"):
                raise InputError(f"joints have no field '{attribute}' to replace")
            try:
                value = np.broadcast_to(np.asarray(value, float), (self.n,))
            except (TypeError, ValueError):
                raise InputError(f"{attribute}: {value!r} is not one value for each of the {self.n} joints") from None
            if np.isnan(value).any():
                raise InputError(f"{attribute}: {value.tolist()} is not a number")
            for k, i in enumerate(self.owners):
                joints[i] = replace(joints[i], **{attribute: float(value[k])})
        coupling = self.rotor_coupling if rotor_coupling is None else bool(rotor_coupling)
        return replace(self, joints=tuple(joints), rotor_coupling=coupling)

    @cached_property
    def fingerprint(self):
        """Hex digest of everything that enters the equations; equal arms have equal fingerprints."""
        digest = hashlib.sha256()
        for joint, link in zip(self.joints, self.links):
            digest.update(f"{joint.kind == PRISMATIC} {joint.parent} {joint.coordinate}".encode())
            for part in (joint.origin.rotation, joint.origin.translation, joint.axis, link.mass, link.com, link.inertia,
                         (joint.rotor_inertia, joint.gear_ratio, joint.multiplier, joint.offset)):
                digest.update(np.asarray(part, float).tobytes())
        if self.tip is not None:
            at = self.frame()
            digest.update(bytes(str(at.link), "ascii") + at.pose.rotation.tobytes() + at.pose.translation.tobytes())
        digest.update(self.gravity.tobytes() + bytes([self.rotor_coupling]))
        return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class State:
    """Measured state: q (n,) [rad or m], qd (n,) [rad/s or m/s]."""

    q: np.ndarray
    qd: np.ndarray


@dataclass(frozen=True, eq=False)
class Reference:
    """Desired motion: q, qd, qdd, each (n,)."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
