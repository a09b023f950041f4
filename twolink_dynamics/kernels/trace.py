"""The recursive algorithms, run once per arm on symbols.

One pass outwards carries ω, α, the acceleration a of each link's origin and U = [α]× + [ω]×[ω]×, so that the point x
of a link accelerates with a + U x (gravity enters as −g at the root). A body (m, h, J) then needs the force
f = m a + U h and the moment n = h × a + curl(U J). One pass inwards projects on the axes. Link frames throughout; see
`model` for the frames and the regrouped bodies. Luh, Walker & Paul (1980); Featherstone, Rigid Body Dynamics
Algorithms, ch. 5 and 6.

One class past 400 lines, because all passes share its frames and one graph: that is where equal subexpressions meet.
"""
from __future__ import annotations

from functools import cached_property

from ..arm import ROOT
from .algebra import (
    NOTHING,
    ZERO,
    apply,
    cross,
    curl,
    dot,
    matrix_plus,
    minus,
    outer,
    plus,
    product,
    symmetric_from,
    times,
    transposed,
)
from .graph import cosine, sine

Z = (0.0, 0.0, 1.0)


class Tracer:
    """The equations of one arm on symbols.

    joints      KernelJoints
    bodies      per link (m, h, J), numbers or expressions
    ground      first moment left at the root
    gravity     three numbers or expressions
    q           n expressions: the coordinates
    """

    def __init__(self, joints, bodies, ground, gravity, q):
        self.joints, self.bodies, self.ground, self.gravity = joints, bodies, ground, gravity
        self.q, self.n, self.count = q, len(q), len(joints)
        self.variables = [scaled(joint.multiplier, q[joint.coordinate]) + joint.offset for joint in joints]
        self.turns = [None if joint.prismatic else ahead(sine(x), cosine(x), *joint.phase)
                      for joint, x in zip(joints, self.variables)]

    # -- moving vectors between a joint's frames -----------------------------------------------------------------
    def outwards(self, i, v):
        """A free vector of the parent's frame in link i's frame."""
        v = apply(transposed(self.joints[i].R), v)
        if self.turns[i] is None:
            return v
        s, c = self.turns[i]
        return (c * v[0] + s * v[1], c * v[1] - s * v[0], v[2])

    def inwards(self, i, v):
        """A free vector of link i's frame in the parent's frame."""
        if self.turns[i] is not None:
            s, c = self.turns[i]
            v = (c * v[0] - s * v[1], s * v[0] + c * v[1], v[2])
        return apply(self.joints[i].R, v)

    def matrix_inwards(self, i, A):
        """R A Rᵀ of any matrix."""
        half = transposed([self.inwards(i, column) for column in transposed(A)])
        return tuple(self.inwards(i, row) for row in half)

    def symmetric_inwards(self, i, J):
        """R J Rᵀ of a symmetric matrix, with half the work."""
        if self.turns[i] is not None:
            s, c = self.turns[i]
            shift = c * c * (J[0][0] - J[1][1]) - 2.0 * (c * s) * J[0][1]
            mixed = c * s * (J[0][0] - J[1][1]) + (c * c - s * s) * J[0][1]
            x, y = c * J[0][2] - s * J[1][2], s * J[0][2] + c * J[1][2]
            J = ((J[1][1] + shift, mixed, x), (mixed, J[0][0] - shift, y), (x, y, J[2][2]))
        R = self.joints[i].R
        return symmetric_from(product(product(R, J), transposed(R)))

    @cached_property
    def offsets(self):
        """Per joint the vector from the parent's origin to the link's, in the parent's frame."""
        return [plus(joint.p, times(variable, transposed(joint.R)[2])) if joint.prismatic else joint.p
                for joint, variable in zip(self.joints, self.variables)]

    def joint_rates(self, values):
        """Joint speeds (accelerations) of coordinate speeds (accelerations)."""
        return [scaled(joint.multiplier, values[joint.coordinate]) for joint in self.joints]

    def gathered(self, efforts):
        """Coordinate efforts of joint efforts."""
        result = [0.0] * self.n
        for joint, effort in zip(self.joints, efforts):
            result[joint.coordinate] = result[joint.coordinate] + scaled(joint.multiplier, effort)
        return result

    # -- Newton–Euler --------------------------------------------------------------------------------------------
    def motions(self, qd, qdd, gravity):
        """Per link (ω, α, a, U); index −1 is the root."""
        rates, accelerations = self.joint_rates(qd), self.joint_rates(qdd)
        motions = {ROOT: (ZERO, ZERO, times(-1.0, gravity), NOTHING)}
        for i, joint in enumerate(self.joints):
            w_p, alpha_p, a_p, U_p = motions[joint.parent]
            a = self.outwards(i, plus(a_p, apply(U_p, self.offsets[i])))
            w, alpha = self.outwards(i, w_p), self.outwards(i, alpha_p)
            rate, acceleration = rates[i], accelerations[i]
            if joint.prismatic:
                a = (a[0] + 2.0 * (w[1] * rate), a[1] - 2.0 * (w[0] * rate), a[2] + acceleration)
            else:
                alpha = (alpha[0] + w[1] * rate, alpha[1] - w[0] * rate, alpha[2] + acceleration)
                w = (w[0], w[1], w[2] + rate)
            motions[i] = (w, alpha, a, swirl(w, alpha))
        return motions

    def inverse_dynamics(self, qd, qdd, gravity=None):
        """τ of q̇ and q̈, n expressions."""
        motions = self.motions(qd, qdd, self.gravity if gravity is None else gravity)
        rates, accelerations = self.joint_rates(qd), self.joint_rates(qdd)
        forces, moments = [], []
        for i, (m, h, J) in enumerate(self.bodies):
            w, _, a, U = motions[i]
            forces.append(plus(apply(U, h), times(m, a)))
            moments.append(plus(turning(U, w, J), cross(h, a)))
        efforts = [0.0] * self.count
        for i in reversed(range(self.count)):
            joint = self.joints[i]
            effort = forces[i][2] if joint.prismatic else moments[i][2]
            couple = ZERO
            if joint.rotor is not None:
                coupling = joint.rotor.inertia * joint.rotor.ratio
                effort = effort + coupling * joint.rotor.ratio * accelerations[i]
                if joint.rotor.axis is not None:
                    w_p, alpha_p = motions[joint.parent][:2]
                    effort = effort + coupling * dot(alpha_p, joint.rotor.axis)
                    couple = times(coupling, plus(times(accelerations[i], joint.rotor.axis),
                                                  times(rates[i], cross(w_p, joint.rotor.axis))))
            efforts[i] = effort
            if joint.parent != ROOT:
                force = self.inwards(i, forces[i])
                moment = plus(plus(self.inwards(i, moments[i]), cross(self.offsets[i], force)), couple)
                forces[joint.parent] = plus(forces[joint.parent], force)
                moments[joint.parent] = plus(moments[joint.parent], moment)
        return self.gathered(efforts)

    # -- mass matrix and forward dynamics --------------------------------------------------------------------------
    def carried(self, i, composite):
        """The composite body (m, h, J) of subtree i, in the parent's frame."""
        m, h, J = composite
        p = self.offsets[i]
        h_rotated = self.inwards(i, h)
        mp = times(m, p)
        middle = plus(h_rotated, times(0.5, mp))
        J = matrix_plus(self.symmetric_inwards(i, J), symmetric_from(matrix_plus(outer(middle, p), outer(p, middle))))
        return m, plus(h_rotated, mp), J

    def mass_matrix(self):
        """M(q) as n lists of n, by composite bodies."""
        M = [[0.0] * self.n for _ in range(self.n)]
        composites = list(self.bodies)

        def enter(i, j, value):
            a, b = self.joints[i], self.joints[j]
            value = scaled(a.multiplier * b.multiplier, value)
            M[a.coordinate][b.coordinate] = M[a.coordinate][b.coordinate] + value
            if i != j:
                M[b.coordinate][a.coordinate] = M[b.coordinate][a.coordinate] + value

        for j in reversed(range(self.count)):
            joint = self.joints[j]
            m, h, J = composites[j]
            force, moment = unit_momentum(joint, m, h, J)
            own = force[2] if joint.prismatic else moment[2]
            couple = ZERO
            if joint.rotor is not None:
                coupling = joint.rotor.inertia * joint.rotor.ratio
                own = own + coupling * joint.rotor.ratio
                couple = times(coupling, joint.rotor.axis or ZERO)
            enter(j, j, own)
            i = j
            while self.joints[i].parent != ROOT:
                force = self.inwards(i, force)
                moment = plus(plus(self.inwards(i, moment), cross(self.offsets[i], force)), couple)
                couple = ZERO
                i = self.joints[i].parent
                enter(i, j, force[2] if self.joints[i].prismatic else moment[2])
            if joint.parent != ROOT:
                composites[joint.parent] = tuple(
                    combine(old, new) for old, new, combine in
                    zip(composites[joint.parent], self.carried(j, composites[j]),
                        (lambda a, b: a + b, plus, matrix_plus)))
        return M

    def forward_dynamics(self, qd, tau):
        """q̈ of q̇ and τ: M q̈ = τ − h by M = Lᵀ D L, last joint first, which keeps the tree's zeros
        (Featherstone §6.5)."""
        bias = self.inverse_dynamics(qd, [0.0] * self.n)
        return solve(self.mass_matrix(), [t - h for t, h in zip(tau, bias)])

    # -- energy, poses, Jacobians ------------------------------------------------------------------------------------
    def energy(self, qd):
        """(kinetic, potential)."""
        rates = self.joint_rates(qd)
        velocities = {ROOT: (ZERO, ZERO)}
        kinetic = 0.0
        composites = [(m, h) for m, h, _ in self.bodies]
        for i, joint in enumerate(self.joints):
            w_p, v_p = velocities[joint.parent]
            v = self.outwards(i, plus(v_p, cross(w_p, self.offsets[i])))
            w = self.outwards(i, w_p)
            if joint.prismatic:
                v = (v[0], v[1], v[2] + rates[i])
            else:
                w = (w[0], w[1], w[2] + rates[i])
            velocities[i] = (w, v)
            m, h, J = self.bodies[i]
            (xx, xy, xz), (_, yy, yz), (_, _, zz) = J
            spin = dot(w, ((yy + zz) * w[0] - xy * w[1] - xz * w[2], (xx + zz) * w[1] - xy * w[0] - yz * w[2],
                           (xx + yy) * w[2] - xz * w[0] - yz * w[1]))
            kinetic = kinetic + m * dot(v, v) + 2.0 * dot(v, cross(w, h)) + spin
            if joint.rotor is not None:
                coupling = joint.rotor.inertia * joint.rotor.ratio * rates[i]
                felt = dot(w_p, joint.rotor.axis) if joint.rotor.axis else 0.0
                kinetic = kinetic + coupling * (joint.rotor.ratio * rates[i] + 2.0 * felt)
        moment = self.ground
        for i in reversed(range(self.count)):
            m, h = composites[i]
            h = plus(self.inwards(i, h), times(m, self.offsets[i]))
            parent = self.joints[i].parent
            if parent == ROOT:
                moment = plus(moment, h)
            else:
                composites[parent] = (composites[parent][0] + m, plus(composites[parent][1], h))
        return 0.5 * kinetic, -dot(self.gravity, moment)

    def chain(self, link):
        """Indices of the joints from the root to `link`."""
        indices = []
        while link != ROOT:
            indices.append(link)
            link = self.joints[link].parent
        return indices[::-1]

    def poses(self, link):
        """Rotation (as three columns) and origin of each link on the way to `link`, in the root frame."""
        columns, origin = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), Z), ZERO
        poses = {ROOT: (columns, origin)}
        for i in self.chain(link):
            columns, origin = poses[self.joints[i].parent]
            origin = plus(origin, combination(columns, self.offsets[i]))
            x, y, z = (combination(columns, unit) for unit in transposed(self.joints[i].R))
            if self.turns[i] is not None:
                s, c = self.turns[i]
                x, y = plus(times(c, x), times(s, y)), minus(times(c, y), times(s, x))
            poses[i] = ((x, y, z), origin)
        return poses

    def tip_pose(self, link, R, p):
        """Rotation rows and position of a frame at pose (R, p) of `link`: nine expressions, then three."""
        columns, origin = self.poses(link)[link]
        rotation = transposed([combination(columns, column) for column in transposed(R)])
        return [x for row in rotation for x in row] + list(plus(origin, combination(columns, p)))

    def jacobian(self, link, p):
        """(6, n) of the point p of `link`, as 6 lists of n."""
        poses = self.poses(link)
        columns, origin = poses[link]
        tip = plus(origin, combination(columns, p))
        J = [[0.0] * self.n for _ in range(6)]
        for i in self.chain(link):
            joint = self.joints[i]
            axis = poses[i][0][2]
            column = (*axis, 0.0, 0.0, 0.0) if joint.prismatic else (*cross(axis, minus(tip, poses[i][1])), *axis)
            for r in range(6):
                J[r][joint.coordinate] = J[r][joint.coordinate] + scaled(joint.multiplier, column[r])
        return J

    def jacobian_rate(self, qd, link, p):
        """J̇ q̇, six expressions: the acceleration at q̈ = 0 without gravity."""
        _, alpha, a, U = self.motions(qd, [0.0] * self.n, ZERO)[link]
        columns = self.poses(link)[link][0]
        return [*combination(columns, plus(a, apply(U, p))), *combination(columns, alpha)]

    # -- Coriolis matrix ---------------------------------------------------------------------------------------------
    def coriolis_matrix(self, qd):
        """C(q, q̇) of the Christoffel symbols, n lists of n: C_ij = Σ ∫ J_i(x)ᵀ J̇_j(x) dm over the bodies.

        Per subtree: P = ∫ ẋ dm and Q = ∫ ẋ xᵀ dm besides (m, h, J). Column j is a force on subtree j,
        f = ∫ J̇_j dm, n = ∫ x × J̇_j dm, projected on the axes further in; row j needs F = ∫ J_j dm, N = ∫ x × J_j dm and
        K = ∫ ẋ × J_j dm. Spin of coupled rotors adds ½ a_j × H to a column."""
        rates = self.joint_rates(qd)
        velocities = {ROOT: (ZERO, ZERO)}
        for i, joint in enumerate(self.joints):
            w_p, v_p = velocities[joint.parent]
            v = self.outwards(i, plus(v_p, cross(w_p, self.offsets[i])))
            w = self.outwards(i, w_p)
            velocities[i] = (w, plus(v, times(rates[i], Z))) if joint.prismatic else \
                (plus(w, times(rates[i], Z)), v)
        subtrees = []
        for i, (m, h, J) in enumerate(self.bodies):
            w, v = velocities[i]
            spun = transposed([cross(w, column) for column in J])  # ω × applied to the columns of J
            subtrees.append([m, h, J, plus(times(m, v), cross(w, h)), matrix_plus(spun, outer(v, h)), ZERO])
        C = [[0.0] * self.n for _ in range(self.n)]

        def enter(i, j, value):
            a, b = self.joints[i], self.joints[j]
            C[a.coordinate][b.coordinate] = C[a.coordinate][b.coordinate] + scaled(a.multiplier * b.multiplier, value)

        for j in reversed(range(self.count)):
            joint = self.joints[j]
            m, h, J, P, Q, H = subtrees[j]
            w, v = velocities[j]
            turn = cross(w, Z)  # the axis moves with ω × z
            F, N = unit_momentum(joint, m, h, J)
            if joint.prismatic:
                f, n = times(m, turn), cross(h, turn)
                K = cross(P, Z)
            else:
                moving = minus(P, times(m, v))
                Q_moving = matrix_plus(Q, times_matrix(-1.0, outer(v, h)))
                f = plus(cross(turn, h), cross(Z, moving))
                n = curl(matrix_plus(crossed(turn, J), crossed(Z, Q_moving)))
                n = plus(n, times(0.5, cross(Z, H)))
                K = plus(kinetic_curl(Q), times(0.5, cross(H, Z)))
            enter(j, j, f[2] if joint.prismatic else n[2])
            couple, couple_N = ZERO, ZERO
            if joint.rotor is not None and joint.rotor.axis is not None:
                coupling = joint.rotor.inertia * joint.rotor.ratio
                couple_N = times(coupling, joint.rotor.axis)
                couple = times(0.5 * coupling, cross(velocities[joint.parent][0], joint.rotor.axis))
            i = j
            first = True
            while self.joints[i].parent != ROOT:
                p = self.offsets[i]
                f, F, K = self.inwards(i, f), self.inwards(i, F), self.inwards(i, K)
                n = plus(self.inwards(i, n), cross(p, f))
                N = plus(self.inwards(i, N), cross(p, F))
                if first:
                    n, N, K = plus(n, couple), plus(N, couple_N), plus(K, couple)
                    first = False
                i = self.joints[i].parent
                w_i, v_i = velocities[i]
                swing = w_i[1] * F[0] - w_i[0] * F[1]
                if self.joints[i].prismatic:
                    enter(i, j, f[2])
                    enter(j, i, swing)
                else:
                    enter(i, j, n[2])
                    enter(j, i, K[2] + (w_i[1] * N[0] - w_i[0] * N[1]) + (v_i[1] * F[0] - v_i[0] * F[1]))
            if joint.parent != ROOT:
                p = self.offsets[j]
                carried_m, carried_h, carried_J = self.carried(j, (m, h, J))
                P = self.inwards(j, P)
                Q = matrix_plus(self.matrix_inwards(j, Q), outer(P, p))
                H = plus(self.inwards(j, H), times(rates[j], couple_N))
                parent = subtrees[joint.parent]
                subtrees[joint.parent] = [parent[0] + carried_m, plus(parent[1], carried_h),
                                          matrix_plus(parent[2], carried_J), plus(parent[3], P),
                                          matrix_plus(parent[4], Q), plus(parent[5], H)]
        return C

    # -- regressor -----------------------------------------------------------------------------------------------------
    def regressor(self, qd, qdd):
        """Y (n, 10 N) as n lists, the parameters in the Arm's own link frames: power of each axis's motion with the
        force and moment that a unit of each parameter needs."""
        motions = self.motions(qd, qdd, self.gravity)
        Y = [[0.0] * (10 * self.count) for _ in range(self.n)]
        axes = {ROOT: {}}
        for i, joint in enumerate(self.joints):
            axes[i] = {j: (self.outwards(i, a), self.outwards(i, plus(v, cross(a, self.offsets[i]))))
                       for j, (a, v) in axes[joint.parent].items()}
            axes[i][i] = (ZERO, Z) if joint.prismatic else (Z, ZERO)
            w, alpha, a = (apply(joint.turn.tolist(), x) for x in motions[i][:3])
            U = swirl(w, alpha)
            columns = transposed(U)
            x, y, z = w
            spins = ((alpha[0], z * x, -(y * x)), (alpha[1] - z * x, alpha[0] + z * y, x * x - y * y),
                     (-(z * y), alpha[1], x * y), (alpha[2] + y * x, z * z - x * x, alpha[0] - y * z),
                     (y * y - z * z, alpha[2] - x * y, alpha[1] + x * z), (y * z, -(x * z), alpha[2]))
            for j, (axis, velocity) in axes[i].items():
                axis, velocity = apply(joint.turn.tolist(), axis), apply(joint.turn.tolist(), velocity)
                lever = cross(a, axis)  # axis · (e_k × a) = e_k · (a × axis)
                entries = [dot(velocity, a)]
                entries += [dot(velocity, columns[k]) + lever[k] for k in range(3)]
                entries += [dot(axis, spin) for spin in spins]
                row = Y[self.joints[j].coordinate]
                for k, entry in enumerate(entries):
                    row[10 * i + k] = row[10 * i + k] + scaled(self.joints[j].multiplier, entry)
        return Y


def scaled(factor, x):
    """factor · x for a number and anything."""
    return x if factor == 1.0 else factor * x


def ahead(s, c, sine_phase, cosine_phase):
    """(sin, cos) of an angle and a constant phase, from those of the angle: a large angle loses nothing."""
    return s * cosine_phase + c * sine_phase, c * cosine_phase - s * sine_phase


def swirl(w, alpha):
    """U = [α]× + [ω]×[ω]×."""
    x, y, z = w
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    return ((-(yy + zz), xy - alpha[2], xz + alpha[1]), (xy + alpha[2], -(xx + zz), yz - alpha[0]),
            (xz - alpha[1], yz + alpha[0], -(xx + yy)))


def turning(U, w, J):
    """curl(U J) with the differences of U's diagonal taken from ω."""
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = J
    x, y, z = w[0] * w[0], w[1] * w[1], w[2] * w[2]
    return (U[2][0] * xy - U[1][0] * xz + U[2][1] * yy - U[1][2] * zz + (z - y) * yz,
            U[0][1] * yz - U[2][1] * xy + U[0][2] * zz - U[2][0] * xx + (x - z) * xz,
            U[1][2] * xz - U[0][2] * yz + U[1][0] * xx - U[0][1] * yy + (y - x) * xy)


def unit_momentum(joint, m, h, J):
    """(∫ J_j dm, ∫ x × J_j dm) for unit speed of a joint: the field z × x, or z where prismatic."""
    if joint.prismatic:
        return times(m, Z), (h[1], -h[0], 0.0)
    return (-h[1], h[0], 0.0), (-J[0][2], -J[1][2], J[0][0] + J[1][1])


def combination(columns, v):
    """Σ columns_k v_k."""
    return plus(plus(times(v[0], columns[0]), times(v[1], columns[1])), times(v[2], columns[2]))


def times_matrix(factor, A):
    """factor · A."""
    return tuple(times(factor, row) for row in A)


def crossed(a, A):
    """[a]× A."""
    return transposed([cross(a, column) for column in transposed(A)])


def kinetic_curl(Q):
    """∫ ẋ × (z × x) dm of Q = ∫ ẋ xᵀ dm: z (ẋ·x) − x (ẋ·z)."""
    return (-Q[2][0], -Q[2][1], Q[0][0] + Q[1][1])


def solve(M, right):
    """x of M x = right for a symmetric positive definite M, by M = Lᵀ D L from the last row up."""
    n = len(M)
    A = [list(row) for row in M]
    inverse = [None] * n
    L = [[0.0] * n for _ in range(n)]
    for k in reversed(range(n)):
        inverse[k] = 1.0 / A[k][k]
        for i in range(k):
            L[k][i] = A[k][i] * inverse[k]
        for i in range(k):
            for j in range(i + 1):
                A[i][j] = A[j][i] = A[i][j] - L[k][i] * A[k][j]
    x = list(right)
    for k in reversed(range(n)):
        for i in range(k):
            x[i] = x[i] - L[k][i] * x[k]
    x = [value * inv for value, inv in zip(x, inverse)]
    for k in range(n):
        for i in range(k):
            x[k] = x[k] - L[k][i] * x[i]
    return x
