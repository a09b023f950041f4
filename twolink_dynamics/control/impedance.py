"""Cartesian impedance: the tip behaves like a mass on springs and dampers."""
from __future__ import annotations

import numpy as np

from ..arm import frozen
from ..errors import InputError
from .law import Law
from .task_space import TaskSpace, cross, orientation_moment

CORIOLIS = ("natural", "cancel")


class Impedance(Law):
    """τ = Jᵀ [K (x_d − x) + D (ẋ_d − ẋ) + F_ff] + g(q), and for a moving target + M q̈_r + C(q, q̇) q̇_r.

    The arm keeps its natural inertia, which makes the law passive: with V = ½ sᵀM s + ½ eᵀK e, s = q̇ − q̇_r and
    J q̇_r = ẋ_d, V̇ = −ėᵀD ė + sᵀJᵀ f_ext (Albu-Schäffer, Ott & Hirzinger 2007; Ott, Cartesian Impedance Control, ch. 3).

    stiffness      K: a scalar or (3,) [N/m] for translation alone, (6,) [N/m; N m/rad] with orientation, or (3, 3),
                   (6, 6) matrices, in the axes of `axes` (3, 3) (columns in root axes; default: root axes)
    damping        D in the same forms [N s/m; N m s/rad]; or None:
    damping_ratio  ζ per mode against the task inertia Λ, D = 2ζ Λ^½ (Λ^−½ K Λ^−½)^½ Λ^½, Λ bounded near singular poses
    coriolis       'natural' (passive), or 'cancel': adds C q̇, the textbook form; not passive, it can feed energy in
    desired_inertia   Λ_d (kg, kg m²) in the same forms: then
                   τ = Jᵀ{Λ [ẍ_d − J̇q̇ + Λ_d⁻¹ (D ė + K e + F_ff + f_ext)] − f_ext} + C q̇ + g, Λ damped near singular
                   poses; needs the measured tip force (`set_measured_wrench`) and refuses to run before the first
    null_damping   [N m s/rad] of the motion that does not move the task, where n is larger than the task

    The task is what the tip can do: directions found from the Jacobian, orientation only with stiffness for it and
    enough joints (two links: the plane; six axes: all six). The target is `set_target`, else the joint reference's tip.
    Orientation potential 2 εᵀK ε of the quaternion of R R_dᵀ (Siciliano et al., §9.2.2, Caccavale 1999), for any angle.
    Raises InputError on values that are not finite, not positive, not symmetric or of a wrong shape.
    """

    name = "impedance"

    def __init__(self, dynamics, stiffness=400.0, damping=None, damping_ratio=None, *, axes=None,
                 coriolis="natural", desired_inertia=None, null_damping=2.0, frame=None, friction=None, residual=None):
        super().__init__(dynamics, friction, residual)
        if coriolis not in CORIOLIS:
            raise InputError(f"impedance: coriolis '{coriolis}' is none of {', '.join(CORIOLIS)}")
        if damping is not None and damping_ratio is not None:
            raise InputError("impedance: give damping or damping_ratio, not both")
        ratio = 1.0 if damping is None and damping_ratio is None else damping_ratio
        if ratio is not None and not (np.isfinite(ratio) and ratio >= 0.0):
            raise InputError(f"impedance: damping_ratio {ratio:g} must be finite and not negative")
        if not (np.isfinite(null_damping) and null_damping >= 0.0):
            raise InputError(f"impedance: null_damping {null_damping:g} must be finite and not negative")
        axes = frozen(np.eye(3) if axes is None else axes, (3, 3), "impedance: axes")
        if np.abs(axes @ axes.T - np.eye(3)).max() > 1e-6:
            raise InputError(f"impedance: axes {axes.tolist()} are not orthonormal")
        K = task_matrix(stiffness, axes, "stiffness")
        self.task = TaskSpace(dynamics, oriented=bool(K[3:, 3:].any()), frame=frame)
        self.frame, self.coriolis, self.damping_ratio, self.null_damping = frame, coriolis, ratio, float(null_damping)
        S = self.task.selector
        self._oriented = self.task.rotations > 0
        self._S, self._S_linear = S, np.ascontiguousarray(S[:, :3])
        self.stiffness = K
        k = self.task.translations
        self._K = S @ K @ S.T
        self._K_linear, self._K_rotation = np.array(K[:3, :3]), np.array(K[3:, 3:])
        self._pull = self._K[:k, :k].dot(self._S_linear[:k])
        self._D = None if damping is None else S @ task_matrix(damping, axes, "damping") @ S.T
        self._Ld_inverse = None
        if desired_inertia is not None:
            Ld = S @ task_matrix(desired_inertia, axes, "desired_inertia") @ S.T
            if np.linalg.eigvalsh(Ld)[0] <= 0.0:
                raise InputError("impedance: desired_inertia must be positive in every direction of the task")
            self._Ld_inverse = np.linalg.inv(Ld)
        self._wrench = self._measured = None
        self.reset()

    # -- inputs --------------------------------------------------------------------------------------------------
    def set_target(self, position, rotation=None, velocity=None, acceleration=None):
        """The tip's target in the root frame: position (3,) [m], rotation (3, 3) (None: keep the last one, free where
        there is none), velocity and acceleration (6,) or (3,), linear over angular. Raises InputError."""
        position = frozen(position, (3,), "target position")
        if rotation is not None:
            rotation = frozen(rotation, (3, 3), "target rotation")
            if np.abs(rotation @ rotation.T - np.eye(3)).max() > 1e-6 or np.linalg.det(rotation) < 0.0:
                raise InputError(f"target rotation {rotation.tolist()} is no rotation")
        elif self._target is not None:
            rotation = self._target[1]
        motion = [None if value is None else six(value, what)
                  for value, what in ((velocity, "target velocity"), (acceleration, "target acceleration"))]
        self._target = (position, rotation, *motion)

    def clear_target(self):
        """Follow the tip of the joint reference again."""
        self._target = None

    def set_wrench(self, force, torque=(0.0, 0.0, 0.0)):
        """Feed-forward wrench F_ff of the tip on the environment, root axes [N, N m]."""
        self._wrench = six([*np.ravel(force), *np.ravel(torque)], "wrench")
        if not self._wrench.any():
            self._wrench = None

    def set_measured_wrench(self, force, torque=(0.0, 0.0, 0.0)):
        """Measured wrench f_ext of the environment on the tip, root axes [N, N m]; used with `desired_inertia` only."""
        self._measured = six([*np.ravel(force), *np.ravel(torque)], "measured wrench")

    def reset(self):
        """Forget target and feed-forward wrench; the joint reference leads."""
        self._target = self._wrench = None

    def missing(self):
        if self._Ld_inverse is not None and self._measured is None:
            return "desired_inertia needs the measured tip force (set_measured_wrench)"
        return ""

    # -- the law -------------------------------------------------------------------------------------------------
    def _desired(self, reference):
        """(position, rotation, velocity or None, acceleration or None), six-vectors, root axes."""
        if self._target is not None:
            return self._target
        rotation, position = self.task.tip_pose(reference.q)
        if not any(reference.qd.tolist()):
            return position, rotation, None, None
        J = self.task.jacobian(reference.q)
        velocity = J.dot(reference.qd)
        acceleration = (J.dot(reference.qdd)
                        + self.task.jacobian_rate(reference.q, reference.qd))
        return position, rotation, velocity, acceleration

    def _errors(self, state, reference):
        """Task Jacobian, K e, ẋ_r − ẋ, and the target's velocity and acceleration in task coordinates (or None)."""
        S = self._S
        rotation, position = self.task.tip_pose(state.q)
        whole = self.task.jacobian(state.q)
        J = S.dot(whole)
        position_d, rotation_d, velocity, acceleration = self._desired(reference)
        if self._oriented:
            moment = np.zeros(3)
            if rotation_d is not None:
                moment, R_error = orientation_moment(rotation, rotation_d, self._K_rotation)
                if velocity is not None:  # the target's turning as the tip would have to follow it: R R_dᵀ ω_d
                    w = R_error.dot(velocity[3:])
                    alpha = np.zeros(3) if acceleration is None else R_error.dot(acceleration[3:])
                    slip = whole[3:].dot(state.qd) - w
                    velocity = np.concatenate([velocity[:3], w])
                    acceleration = np.concatenate([np.zeros(3) if acceleration is None else acceleration[:3],
                                                   alpha + cross(slip, w)])
            force = S.dot(np.concatenate([self._K_linear.dot(position_d - position), moment]))
        else:
            force = self._pull.dot(position_d - position)
        if velocity is None:
            return J, force, -J.dot(state.qd), None, None
        velocity = S.dot(velocity)
        acceleration = np.zeros(len(S)) if acceleration is None else S.dot(acceleration)
        return J, force, velocity - J.dot(state.qd), velocity, acceleration

    def _damping_matrix(self, state, J):
        if self._D is not None:
            return self._D
        return self.task.modal_damping(self.dynamics.mass_matrix(state.q), J, self._K, self.damping_ratio)

    def _parts(self, state, reference):
        """(inertia, coriolis, feedback, feedforward) torques, each (n,) or None for none; gravity apart."""
        J, force, slip, velocity, acceleration = self._errors(state, reference)
        force = force + self._damping_matrix(state, J).dot(slip)
        wrench = None if self._wrench is None else self._S.dot(self._wrench)
        dynamics = self.dynamics
        inertia = coriolis = feedforward = None
        if self._Ld_inverse is not None:
            M = dynamics.mass_matrix(state.q)
            inverse = self.task.inertia(M, J)
            outside = np.zeros(len(J)) if self._measured is None else self._S @ self._measured
            drift = self._S @ self.task.jacobian_rate(state.q, state.qd)
            wanted = -drift if acceleration is None else acceleration - drift
            inertia = J.T @ (inverse @ wanted)
            feedback = J.T @ (inverse @ (self._Ld_inverse @ (force + outside)) - outside)
            if wrench is not None:
                feedforward = J.T @ (inverse @ (self._Ld_inverse @ wrench))
            coriolis = dynamics.bias(state.q, state.qd) - dynamics.gravity(state.q)
        else:
            feedback = force.dot(J)
            if wrench is not None:
                feedforward = wrench.dot(J)
            if velocity is not None:
                inverse = self.task.inverse(J)
                joint_rate = inverse.dot(velocity)
                drift = self.task.rate(state.q, state.qd, joint_rate)
                inertia = dynamics.mass_matrix(state.q).dot(inverse.dot(acceleration - drift))
                if self.coriolis == "natural":
                    coriolis = dynamics.coriolis_matrix(state.q, state.qd).dot(joint_rate)
            if self.coriolis == "cancel":
                coriolis = dynamics.bias(state.q, state.qd) - dynamics.gravity(state.q)
        if self.n > len(J) and self.null_damping:
            feedback = feedback - self.null_damping * self.task.null_motion(J, state.qd)
        return inertia, coriolis, feedback, feedforward

    def _terms(self, t, state, reference):
        names = ("inertia", "coriolis", "feedback", "feedforward")
        terms = {name: part for name, part in zip(names, self._parts(state, reference)) if part is not None}
        terms["gravity"] = self.dynamics.gravity(state.q)
        return terms

    def _efforts(self, t, state, reference):
        tau = self.dynamics.gravity(state.q)
        for part in self._parts(state, reference):
            if part is not None:
                tau = tau + part
        return tau

    def damping_rate(self, state):
        J = self._S @ self.task.jacobian(state.q)
        M = self.dynamics.mass_matrix(state.q)
        rate = np.linalg.eigvals(np.linalg.solve(M, J.T @ self._damping_matrix(state, J) @ J))
        return float(np.abs(rate).max())


def six(value, what):
    """A six-vector, linear over angular, from (3,) or (6,)."""
    array = np.ravel(np.asarray(value, float))
    if array.size == 3:
        array = np.concatenate([array, np.zeros(3)])
    return frozen(array, (6,), what)


def task_matrix(value, axes, what):
    """(6, 6) symmetric, positive semidefinite, in root axes, from a scalar, (3,), (6,), (3, 3) or (6, 6) in `axes`."""
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        raise InputError(f"impedance: {what} {value!r} is not made of numbers") from None
    full = np.zeros((6, 6))
    if array.shape in ((), (1,)):
        full[:3, :3] = array * np.eye(3)
    elif array.shape in ((3,), (6,)):
        full[:array.size, :array.size] = np.diag(array)
    elif array.shape in ((3, 3), (6, 6)):
        full[:len(array), :len(array)] = array
    else:
        raise InputError(f"impedance: {what} has shape {array.shape}, expected a number, (3,), (6,), (3, 3) or (6, 6)")
    if not np.isfinite(full).all():
        raise InputError(f"impedance: {what} {array.tolist()} is not finite")
    if full[:3, 3:].any() or full[3:, :3].any():
        raise InputError(f"impedance: {what} couples translation and rotation, which has no potential here")
    if np.abs(full - full.T).max() > 1e-9 * max(np.abs(full).max(), 1.0) or np.linalg.eigvalsh(full)[0] < -1e-9:
        raise InputError(f"impedance: {what} {array.tolist()} is not symmetric and positive semidefinite")
    turn = np.zeros((6, 6))
    turn[:3, :3] = turn[3:, 3:] = axes
    return turn @ full @ turn.T
