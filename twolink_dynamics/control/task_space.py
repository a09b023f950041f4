"""What the tip of an arm can do, and the matrices of that task."""
from __future__ import annotations

import numpy as np


class TaskSpace:
    """The reachable directions of the tip as an orthonormal selector S (r, 6): task velocity = S J q̇.

    Found from the Jacobians of fixed pseudo-random poses, not from the arm's drawing: two parallel axes give the plane
    they move in, six axes give space. Rotations are in it when `oriented` and when the arm has joints for them.
    """

    def __init__(self, dynamics, oriented, frame=None, poses=16):
        self.dynamics, self.arm, self.n, self.frame = dynamics, dynamics.arm, dynamics.arm.n, frame
        q = np.random.default_rng(3).uniform(-2.0, 2.0, (poses, self.n))
        J = np.array([self.jacobian(pose) for pose in q])
        linear, angular = reachable(J[:, :3, :]), reachable(J[:, 3:, :])
        if not oriented or len(linear) + len(angular) > self.n:
            angular = np.zeros((0, 3))
        self.translations, self.rotations = len(linear), len(angular)
        self.selector = np.zeros((len(linear) + len(angular), 6))
        self.selector[:len(linear), :3] = linear
        self.selector[len(linear):, 3:] = angular
        tasks = np.array([self.selector @ jacobian for jacobian in J])
        mobility = [task @ np.linalg.solve(dynamics.mass_matrix(pose), task.T) for task, pose in zip(tasks, q)]
        self._mobility_scale = self._typical(mobility)
        self._square_scale = self._typical([task @ task.T for task in tasks])
        self._chain = len(self.arm.joints) == self.n  # without mimic joints every column is one joint's

    # without a frame the call goes straight to the compiled function
    def tip_pose(self, q):
        """(rotation (3, 3), position (3,) [m]) of the frame."""
        return self.dynamics.tip_pose(q) if self.frame is None else self.dynamics.tip_pose(q, self.frame)

    def jacobian(self, q):
        """(6, n) of the frame, all six rows."""
        return self.dynamics.jacobian(q) if self.frame is None else self.dynamics.jacobian(q, self.frame)

    def jacobian_rate(self, q, qd):
        """J̇ q̇ (6,)."""
        if self.frame is None:
            return self.dynamics.jacobian_rate(q, qd)
        return self.dynamics.jacobian_rate(q, qd, self.frame)

    def _typical(self, matrices):
        """(r,) the median over the poses of the mean diagonal, one value for translations and one for rotations: so
        that the base's orientation does not matter."""
        diagonal, k = np.diagonal(matrices, axis1=1, axis2=2), self.translations
        return np.concatenate([np.full(part.shape[1], np.median(part.mean(axis=1))) if part.shape[1] else part[0]
                               for part in (diagonal[:, :k], diagonal[:, k:])])

    def _bounded(self, A, scale, share):
        """A symmetric (r, r) matrix with its smallest eigenvalue, in units of a typical pose's (`scale`), lifted to at
        least about `share`: exactly A away from singular poses, smooth (C¹) where the lifting begins."""
        if len(A) == 2 and self.translations != 1:  # NumPy's solvers cost tens of µs, whatever the size
            (a, b), (_, d) = A.tolist()
            smallest = (0.5 * (a + d) - (0.25 * (a - d) ** 2 + b * b) ** 0.5) / scale[0]
        else:
            try:  # much cheaper than the eigenvalue, and nearly always enough
                np.linalg.cholesky(A - np.diag(share * scale))
                return A
            except np.linalg.LinAlgError:
                root = np.sqrt(scale)
                smallest = float(np.linalg.eigvalsh(A / np.outer(root, root))[0])
        if smallest >= share:
            return A
        return A + np.diag(scale * (share * (1.0 - max(smallest, 0.0) / share) ** 2))

    def _mobility(self, M, J):
        """J M⁻¹ Jᵀ (r, r) [1/kg, 1/(kg m²)], bounded below by some hundredth of a typical one."""
        A = J.dot(inverse_2x2(M)).dot(J.T) if self.n == 2 else J.dot(np.linalg.solve(M, J.T))
        return self._bounded(0.5 * (A + A.T), self._mobility_scale, 0.01)

    def inertia(self, M, J):
        """Λ = (J M⁻¹ Jᵀ)⁻¹ (r, r): the tip's apparent inertia [kg, kg m²], bounded near singular poses."""
        return np.linalg.inv(self._mobility(M, J))

    def modal_damping(self, M, J, K, ratio):
        """D (r, r) with damping ratio `ratio` in every mode of Λ ẍ + D ẋ + K x = 0: with Λ = G Gᵀ,
        D = 2ζ G (G⁻¹ K G⁻ᵀ)^½ Gᵀ = 2ζ Λ (Λ⁻¹ K)^½, whatever the factor G."""
        A = self._mobility(M, J)
        if len(A) == 2:  # (A K)^½ = (A K + s 1) / t for 2 × 2, s² = det A K, t² = tr A K + 2 s
            (a, b), (_, d) = A.tolist()
            (k, m), (_, o) = K.tolist()
            det = a * d - b * b
            s = (max(det * (k * o - m * m), 0.0)) ** 0.5
            t = (a * k + 2.0 * b * m + d * o + 2.0 * s) ** 0.5
            if t == 0.0:
                return np.zeros((2, 2))
            f, share = 2.0 * ratio / t, s / det
            return np.array(((f * (k + share * d), f * (m - share * b)), (f * (m - share * b), f * (o + share * a))))
        L = np.linalg.cholesky(A)  # Λ⁻¹ = L Lᵀ, G = L⁻ᵀ
        squares, modes = np.linalg.eigh(L.T @ K @ L)
        root = np.linalg.solve(L.T, modes)
        return (root * (2.0 * ratio * np.sqrt(np.maximum(squares, 0.0)))) @ root.T

    def inverse(self, J):
        """J⁺ (n, r), exact away from singular poses, bounded near them: Jᵀ (J Jᵀ + μ)⁻¹, μ only where J Jᵀ is small."""
        square = self._bounded(J.dot(J.T), self._square_scale, 1e-4)
        return J.T.dot(inverse_2x2(square) if len(square) == 2 else np.linalg.inv(square))

    def null_motion(self, J, qd):
        """N q̇ (n,), N = 1 − Jᵀ (J Jᵀ + μ)⁻¹ J symmetric and positive semidefinite: what of q̇ does not move the task."""
        return qd - np.linalg.solve(J.dot(J.T) + np.diag(1e-6 * self._square_scale), J.dot(qd)).dot(J)

    def rate(self, q, qd, joint_rate):
        """S J̇(q, q̇) u (r,) for any joint velocity u (n,), not only q̇."""
        if not self._chain:
            h = 1e-6
            ahead, behind = (self.jacobian(q + s * h * qd) for s in (1.0, -1.0))
            return self.selector @ ((ahead - behind) @ joint_rate) / (2.0 * h)
        # ∂v_i/∂q_j = ω_min(i,j) × v_max(i,j), ∂ω_i/∂q_j = ω_j × ω_i for j < i (columns v_i, ω_i of J)
        J = self.jacobian(q)
        total = np.zeros(6)
        w = np.zeros(3)  # Σ_{j<i} ω_j q̇_j
        v = J[:3].dot(qd)  # Σ_{j≥i} v_j q̇_j
        for i in range(self.n):
            linear, angular, u = J[:3, i], J[3:, i], joint_rate[i]
            total[3:] += u * cross(w, angular)
            w = w + angular * qd[i]
            v = v - linear * qd[i]
            total[:3] += u * (cross(w, linear) + cross(angular, v))
        return self.selector.dot(total)


def reachable(J):
    """Orthonormal rows (r, 3) spanning the columns of all J (k, 3, n); root axes where those span the same."""
    spread = np.concatenate(list(J), axis=1)
    square = spread @ spread.T
    values, vectors = np.linalg.eigh(square)
    span = vectors[:, values > 1e-12 * max(values[-1], np.finfo(float).tiny)].T
    if values[-1] == 0.0:
        return np.zeros((0, 3))
    inside = [axis for axis in np.eye(3) if np.linalg.norm(axis - span.T @ (span @ axis)) < 1e-9]
    return np.array(inside) if len(inside) == len(span) else span


def inverse_2x2(matrix):
    """The inverse of a 2 × 2 matrix, by hand."""
    (a, b), (c, d) = matrix.tolist()
    det = a * d - b * c
    return np.array(((d / det, -b / det), (-c / det, a / det)))


def cross(a, b):
    """a × b of two (3,) vectors; np.cross costs ten times this."""
    ax, ay, az = a.tolist()
    bx, by, bz = b.tolist()
    return np.array((ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx))


def quaternion(R):
    """(η, ε (3,)) of a rotation (3, 3), from its largest diagonal combination (Shepperd 1978); the sign is free."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = R.tolist()
    squares = (1.0 + xx + yy + zz, 1.0 + xx - yy - zz, 1.0 - xx + yy - zz, 1.0 - xx - yy + zz)
    k = max(range(4), key=squares.__getitem__)
    big = 0.5 * max(squares[k], 0.0) ** 0.5
    s = 0.25 / big
    if k == 0:
        return big, np.array(((zy - yz) * s, (xz - zx) * s, (yx - xy) * s))
    if k == 1:
        return (zy - yz) * s, np.array((big, (xy + yx) * s, (xz + zx) * s))
    if k == 2:
        return (xz - zx) * s, np.array(((xy + yx) * s, big, (yz + zy) * s))
    return (yx - xy) * s, np.array(((xz + zx) * s, (yz + zy) * s, big))


def orientation_moment(R, R_d, K):
    """(moment (3,) on the tip, R R_dᵀ) of the potential 2 εᵀ K ε, ε of R R_dᵀ: −2 (η K ε + ε × K ε), root axes [N m].

    For small angles it is K times the rotation vector from R to R_d; the quaternion's sign cancels."""
    R_error = R.dot(R_d.T)
    eta, eps = quaternion(R_error)
    pull = K.dot(eps)
    return -2.0 * (eta * pull + cross(eps, pull)), R_error
