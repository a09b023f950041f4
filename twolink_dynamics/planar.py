"""The two-link arm in closed form, as textbooks derive it: for reading, for teaching, and as an oracle.

Two revolute joints with parallel axes move every mass in parallel planes. In such a plane let x be horizontal and y up,
θ1 the angle of link 1 from x, θ2 that of link 2 relative to link 1, counter-clockwise positive, and

    L1        distance between the two axes [m]
    m1 m2     masses [kg];  I1 I2  inertias about the centres of mass, normal to the plane [kg m²]
    lc1 lc2   distances of the centres of mass from their joint along the link [m]
    d1 d2     their distances across the link line, 0 in textbooks [m]
    g0        gravity in the plane, along −y [m/s²] (gravity along the axes does no work)

With s2 = sin θ2, c12 = cos(θ1 + θ2), ... Euler–Lagrange gives (docs/equations.md)

    τ1 = M11 θ̈1 + M12 θ̈2 − b (2 θ̇1 θ̇2 + θ̇2²) + g1      β = m2 L1 lc2,  h = β c2 − m2 L1 d2 s2
    τ2 = M12 θ̈1 + M22 θ̈2 + b θ̇1²             + g2      b = −∂h/∂θ2 = β s2 + m2 L1 d2 c2

The same formulas take numbers, arrays or SymPy symbols: `lib` is the module whose cos and sin are used.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .arm import PRISMATIC, ROOT
from .errors import ModelError


@dataclass(frozen=True)
class TwoLinkParameters:
    """Parameters of the closed form (module docstring), and how an arm's joint positions give the textbook's angles.

    θ1 = q1 + start1, θ2 = elbow · q2 + start2, where elbow is −1 when the second axis points against the first.
    R11, R12, R22 are the rotors' constant entries of M (in q); P0 [J] the part of P that the angles do not change.
    """

    L1: Any
    m1: Any
    m2: Any
    lc1: Any
    lc2: Any
    I1: Any
    I2: Any
    g0: Any = 9.81
    d1: Any = 0.0
    d2: Any = 0.0
    start1: Any = 0.0
    start2: Any = 0.0
    elbow: float = 1.0
    R11: Any = 0.0
    R12: Any = 0.0
    R22: Any = 0.0
    P0: Any = 0.0

    @classmethod
    def point_masses(cls, m1, m2, l1, l2, g0=9.81):
        """All mass at the links' ends: I = 0, lc = L (Modern Robotics §8.1.1, eq. 8.9)."""
        return cls(L1=l1, m1=m1, m2=m2, lc1=l1, lc2=l2, I1=0, I2=0, g0=g0, d1=0, d2=0, start1=0, start2=0, R11=0, R12=0,
                   R22=0, P0=0, elbow=1)

    @classmethod
    def from_arm(cls, arm):
        """The parameters of an Arm of two revolute joints, one carried by the other, with parallel axes; offsets along
        the axes, mounts, inertias and gravity are arbitrary. Raises ModelError saying why another arm has no such form.
        """
        if arm.n != 2 or len(arm.joints) != 2:
            raise ModelError(f"arm '{arm.name}' has {len(arm.joints)} joints, the two-link closed form needs exactly "
                             "two")
        first, second = arm.joints
        for joint in arm.joints:
            if joint.kind == PRISMATIC:
                raise ModelError(f"joint '{joint.name}' is prismatic, the two-link closed form needs revolute joints")
        if second.parent == ROOT:
            raise ModelError(f"joint '{second.name}' hangs on the root beside '{first.name}', the two-link closed form "
                             "needs a chain")
        axis = first.axis  # all vectors below in link 1's axes at q = 0, which for q1 = 0 are the first joint's
        other = second.origin.rotation @ second.axis
        if np.linalg.norm(np.cross(axis, other)) > 1e-9:
            angle = np.degrees(np.arccos(np.clip(axis @ other, -1, 1)))
            raise ModelError(f"the axes of '{first.name}' and '{second.name}' are not parallel (angle {angle:.6g} "
                             "deg), so the motion is not planar")
        elbow = float(np.sign(axis @ other))
        gravity = first.origin.rotation.T @ arm.gravity
        in_plane = gravity - (gravity @ axis) * axis
        g0 = float(np.linalg.norm(in_plane))
        if g0 <= 1e-12 * np.linalg.norm(arm.gravity):
            g0, in_plane = 0.0, _across(axis)
        y = -in_plane / np.linalg.norm(in_plane)
        x = np.cross(y, axis)
        com1, com2 = arm.links[0].com, second.origin.rotation @ arm.links[1].com

        def plane(vector):
            return complex(vector @ x, vector @ y)  # a turn by θ is a product with e^{iθ}
        elbow_at = plane(second.origin.translation)
        line1 = elbow_at if abs(elbow_at) > 1e-12 else plane(com1)
        start1 = float(np.angle(line1)) if abs(line1) > 1e-12 else 0.0
        end2 = _end_of_second_link(arm, plane)
        start2 = float(np.angle(end2)) - start1 if end2 else -start1
        c1, c2 = plane(com1) * np.exp(-1j * start1), plane(com2) * np.exp(-1j * (start1 + start2))
        at_root = arm.gravity @ first.origin.translation
        along = (arm.links[0].mass * (com1 @ axis) + arm.links[1].mass * ((com2 + second.origin.translation) @ axis))
        r1, r2 = first.rotor_inertia, second.rotor_inertia
        carried = elbow if arm.rotor_coupling else 0.0  # the elbow's rotor turns with link 1
        return cls(L1=abs(elbow_at), m1=arm.links[0].mass, m2=arm.links[1].mass, lc1=float(c1.real), lc2=float(c2.real),
                   I1=float(axis @ arm.links[0].inertia @ axis),
                   I2=float(second.axis @ arm.links[1].inertia @ second.axis), g0=g0, d1=float(c1.imag),
                   d2=float(c2.imag), start1=start1, start2=float(np.angle(np.exp(1j * start2))), elbow=elbow,
                   R11=first.gear_ratio**2 * r1 + carried**2 * r2, R12=carried * second.gear_ratio * r2,
                   R22=second.gear_ratio**2 * r2,
                   P0=float(-(arm.links[0].mass + arm.links[1].mass) * at_root - (gravity @ axis) * along))


def _across(axis):
    """A unit vector normal to `axis`."""
    vector = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    return vector / np.linalg.norm(vector)


def _end_of_second_link(arm, plane):
    """Where link 2 points to at q = 0: to its tip, else its centre of mass; None when both are on the axis."""
    rotation = arm.joints[1].origin.rotation
    points = [arm.links[1].com]
    if arm.tip is not None and arm.frame().link == 1:
        points.insert(0, arm.frame().pose.translation)
    return next((end for end in (plane(rotation @ point) for point in points) if abs(end) > 1e-9), None)


class Terms(NamedTuple):
    """The named intermediate quantities of the equations, in the textbook's angles."""

    M11: Any
    M12: Any
    M22: Any
    b: Any
    g1: Any
    g2: Any


def gravity_coefficients(p):
    """(G1, G2) = ((m1 lc1 + m2 L1) g0, m2 lc2 g0) [N m]: g1 = G1 c1 + G2 c12, g2 = G2 c12 (d1 = d2 = 0)."""
    return (p.m1 * p.lc1 + p.m2 * p.L1) * p.g0, p.m2 * p.lc2 * p.g0


def beta(p):
    """β = m2 L1 lc2 [kg m²]."""
    return p.m2 * p.L1 * p.lc2


def terms(p, theta1, theta2, lib=np):
    """The Terms at the textbook's angles."""
    c1, s1, c2, s2 = lib.cos(theta1), lib.sin(theta1), lib.cos(theta2), lib.sin(theta2)
    c12, s12 = lib.cos(theta1 + theta2), lib.sin(theta1 + theta2)
    h = beta(p) * c2 - p.m2 * p.L1 * p.d2 * s2
    M22 = p.m2 * (p.lc2**2 + p.d2**2) + p.I2
    M12 = M22 + h
    M11 = p.m1 * (p.lc1**2 + p.d1**2) + p.I1 + p.m2 * p.L1**2 + M22 + 2 * h
    b = beta(p) * s2 + p.m2 * p.L1 * p.d2 * c2
    G1, G2 = gravity_coefficients(p)
    g2 = G2 * c12 - p.m2 * p.d2 * p.g0 * s12
    g1 = G1 * c1 - p.m1 * p.d1 * p.g0 * s1 + g2
    return Terms(M11, M12, M22, b, g1, g2)


def _split(p, q, lib=np):
    return terms(p, q[..., 0] + p.start1, p.elbow * q[..., 1] + p.start2, lib)


def _matrix(m11, m12, m21, m22):
    rows = np.broadcast_arrays(m11, m12, m21, m22)
    return np.stack(rows, axis=-1).reshape(*rows[0].shape, 2, 2)


def mass_matrix(p, q):
    """M(q) (…, 2, 2) [kg m²] in the arm's joint positions."""
    t = _split(p, np.asarray(q, float))
    return _matrix(t.M11 + p.R11, p.elbow * t.M12 + p.R12, p.elbow * t.M12 + p.R12, t.M22 + p.R22)


def coriolis_matrix(p, q, qd):
    """C(q, q̇) (…, 2, 2), the Christoffel matrix: [[−b θ̇2, −b (θ̇1 + θ̇2)], [b θ̇1, 0]] for elbow = 1."""
    qd = np.asarray(qd, float)
    t = _split(p, np.asarray(q, float))
    rate1, rate2 = qd[..., 0], p.elbow * qd[..., 1]
    return _matrix(-t.b * rate2, -p.elbow * t.b * (rate1 + rate2), p.elbow * t.b * rate1, 0.0 * t.b)


def gravity_torque(p, q):
    """g(q) = ∂P/∂q (…, 2) [N m]."""
    t = _split(p, np.asarray(q, float))
    return np.stack([t.g1, p.elbow * t.g2], axis=-1)


def inverse_dynamics(p, q, qd, qdd):
    """τ (…, 2) [N m], term by term as in the module docstring."""
    q, qd, qdd = (np.asarray(x, float) for x in (q, qd, qdd))
    t = _split(p, q)
    rate1, rate2 = qd[..., 0], p.elbow * qd[..., 1]
    turn1, turn2 = qdd[..., 0], p.elbow * qdd[..., 1]
    tau1 = t.M11 * turn1 + t.M12 * turn2 - t.b * (2 * rate1 * rate2 + rate2**2) + t.g1
    tau2 = t.M12 * turn1 + t.M22 * turn2 + t.b * rate1**2 + t.g2
    return np.stack([tau1 + p.R11 * qdd[..., 0] + p.R12 * qdd[..., 1],
                     p.elbow * tau2 + p.R12 * qdd[..., 0] + p.R22 * qdd[..., 1]], axis=-1)


def bias(p, q, qd):
    """C q̇ + g (…, 2) [N m]."""
    return inverse_dynamics(p, q, qd, np.zeros(2))


def forward_dynamics(p, q, qd, tau):
    """q̈ (…, 2) by Cramer's rule."""
    M, right = mass_matrix(p, q), np.asarray(tau, float) - bias(p, q, qd)
    m11, m12, m22 = M[..., 0, 0], M[..., 0, 1], M[..., 1, 1]
    determinant = m11 * m22 - m12**2
    return np.stack([(m22 * right[..., 0] - m12 * right[..., 1]) / determinant,
                     (m11 * right[..., 1] - m12 * right[..., 0]) / determinant], axis=-1)


def energy(p, q, qd):
    """(kinetic, potential) (…) [J], K = ½ q̇ᵀ M q̇."""
    q, qd = np.asarray(q, float), np.asarray(qd, float)
    theta1 = q[..., 0] + p.start1
    theta12 = theta1 + p.elbow * q[..., 1] + p.start2
    height1 = p.lc1 * np.sin(theta1) + p.d1 * np.cos(theta1)
    height2 = p.L1 * np.sin(theta1) + p.lc2 * np.sin(theta12) + p.d2 * np.cos(theta12)
    kinetic = 0.5 * np.einsum("...i,...ij,...j->...", qd, mass_matrix(p, q), qd)
    return kinetic, p.g0 * (p.m1 * height1 + p.m2 * height2) + p.P0


# -- the point-mass arm without gravity, in p1, p2, p3 ---------------------------------------------------------------
def point_mass_parameters(m1, m2, l1, l2):
    """(p1, p2, p3) = (m1 l1² + m2 l1², m2 l2², m2 l1 l2) [kg m²]."""
    return m1 * l1**2 + m2 * l1**2, m2 * l2**2, m2 * l1 * l2


def point_mass_matrix(p1, p2, p3, theta2, lib=np):
    """D(q) as rows: [[p1 + p2 + 2 p3 c2, p2 + p3 c2], [p2 + p3 c2, p2]]."""
    c2 = lib.cos(theta2)
    return [[p1 + p2 + 2 * p3 * c2, p2 + p3 * c2], [p2 + p3 * c2, p2]]


def point_mass_coriolis(p3, theta2, rate1, rate2, lib=np):
    """C(q, q̇) as rows: [[−p3 s2 θ̇2, −p3 s2 (θ̇1 + θ̇2)], [p3 s2 θ̇1, 0]]."""
    s2 = lib.sin(theta2)
    return [[-p3 * s2 * rate2, -p3 * s2 * (rate1 + rate2)], [p3 * s2 * rate1, 0 * rate1]]
