"""Lagrange's way, with SymPy: energies written from positions, Euler–Lagrange, M, C and g.

    p_c = FK(q),  K = Σ ½ m ṗ_cᵀ ṗ_c + ½ tr(Ṙ J Ṙᵀ),  P = −Σ m gᵀ p_c,  J = ½ tr(I) 1 − I
    τ_i = d/dt ∂K/∂q̇_i − ∂K/∂q_i + ∂P/∂q_i
    M_ij = ∂²K/∂q̇_i∂q̇_j,   C_ij = ½ Σ_k (∂M_ij/∂q_k + ∂M_ik/∂q_j − ∂M_jk/∂q_i) q̇_k,   g_i = ∂P/∂q_i

The rotational energy is written from Ṙ alone (J is the body's second moment of mass), so that neither an angular
velocity nor M is put in by hand. Two derivations: `two_link` with symbols for the textbook's parameters, and `derive`
with the numbers of any arm of up to three coordinates. The latter computes with polynomials in cos θ_j, sin θ_j
(sin² reduced to 1 − cos²: a canonical form, in which equal means equal), q, q̇, q̈, with rational coefficients.
"""
from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
import sympy as sp
from sympy.polys.rings import ring

from .arm import PRISMATIC, ROOT
from .errors import ModelError
from .symbols import Writer, render

MAX_COORDINATES = 3  # C of a six-axis arm has over a million operations
MAX_JOINTS = 5  # with those that mimic
NEGLIGIBLE = 1e-15  # of an entry's scale: what decimals of a rotation leave over where zero is meant


def derive(arm, max_coordinates=MAX_COORDINATES):
    """The Equations of an Arm (revolute, prismatic, mimic joints, trees, rotors).

    Raises ModelError for arms of more than `max_coordinates`, whose equations would fill books and minutes."""
    if arm.n > max_coordinates or len(arm.joints) > max(MAX_JOINTS, max_coordinates):
        raise ModelError(f"arm '{arm.name}' has {arm.n} coordinates and {len(arm.joints)} joints; symbolic equations "
                         f"are derived up to {max_coordinates} coordinates and {MAX_JOINTS} joints")
    return Equations(arm)


class Equations:
    """The symbolic equations of one arm; polynomials of the ring inside, SymPy expressions to the outside.

    q, qd, qdd                       tuples of n SymPy symbols
    kinetic, potential               K, P [J]
    mass_matrix, coriolis_matrix     M, C as SymPy matrices (n, n)
    gravity, torque                  g and Euler–Lagrange's τ(q, q̇, q̈) as SymPy matrices (n, 1)
    """

    def __init__(self, arm):
        self.arm, n = arm, arm.n
        names = [f"{letter}{j}" for j in range(len(arm.joints)) for letter in ("c", "s")]
        names += [f"{letter}{k}" for letter in ("q", "v", "a") for k in range(n)]
        self.ring, *generators = ring(names, sp.QQ)
        count = 2 * len(arm.joints)
        self._cos, self._sin = generators[0:count:2], generators[1:count:2]
        self._q, self._v, self._a = (generators[count + k * n:count + (k + 1) * n] for k in range(3))
        self._energies()
        self._equations()
        symbols = sp.symbols([f"q{k + 1}" for k in range(n)] + [f"qd{k + 1}" for k in range(n)]
                             + [f"qdd{k + 1}" for k in range(n)], real=True)
        self.q, self.qd, self.qdd = tuple(symbols[:n]), tuple(symbols[n:2 * n]), tuple(symbols[2 * n:])

    # -- calculus in the ring ----------------------------------------------------------------------------------------
    def _number(self, value):
        """A double as the rational its shortest decimal spells."""
        fraction = Fraction(repr(float(value)))
        return self.ring(sp.QQ(fraction.numerator, fraction.denominator))

    def _vector(self, values):
        return [self._number(value) for value in values]

    def _partial(self, polynomial, k):
        """∂/∂q_k, with ∂ cos θ_j = −m_j sin θ_j and ∂ sin θ_j = m_j cos θ_j where θ_j = m_j q_k + offset."""
        total = polynomial.diff(self._q[k])
        for j, joint in enumerate(self.arm.joints):
            if joint.coordinate == k and joint.kind != PRISMATIC:
                turned = polynomial.diff(self._sin[j]) * self._cos[j] - polynomial.diff(self._cos[j]) * self._sin[j]
                total += self._number(joint.multiplier) * turned
        return total

    def _rate(self, polynomial):
        """d/dt = Σ q̇_k ∂/∂q_k + q̈_k ∂/∂q̇_k."""
        return sum((self._partial(polynomial, k) * self._v[k] + polynomial.diff(self._v[k]) * self._a[k]
                    for k in range(self.arm.n)), self.ring.zero)

    def _reduced(self, polynomial):
        """sin² θ_j → 1 − cos² θ_j, the canonical form."""
        for c, s in zip(self._cos, self._sin):
            place = self.ring.gens.index(s)
            while any(exponents[place] > 1 for exponents in polynomial):
                kept, swapped = self.ring.zero, self.ring.zero
                for exponents, coefficient in polynomial.items():
                    if exponents[place] > 1:
                        lower = list(exponents)
                        lower[place] -= 2
                        swapped[tuple(lower)] = coefficient
                    else:
                        kept[exponents] = coefficient
                polynomial = kept + swapped * (1 - c**2)
        return polynomial

    def _chopped(self, polynomial, scale):
        kept = self.ring.zero
        for exponents, coefficient in polynomial.items():
            if abs(float(coefficient)) > scale * NEGLIGIBLE:
                kept[exponents] = coefficient
        return kept

    # -- positions, energies -----------------------------------------------------------------------------------------
    def _poses(self):
        """Rotation (3 rows) and origin of every moving link in root axes, as polynomials."""
        poses = []
        for j, joint in enumerate(self.arm.joints):
            R, p = [self._vector(row) for row in joint.origin.rotation], self._vector(joint.origin.translation)
            axis = self._vector(joint.axis)
            if joint.kind == PRISMATIC:
                variable = self._number(joint.multiplier) * self._q[joint.coordinate] + self._number(joint.offset)
                p = _sum(p, [variable * x for x in _product(R, axis)])
            else:
                R = _matmul(R, self._turn(axis, j))
            if joint.parent != ROOT:
                R_P, p_P = poses[joint.parent]
                p, R = _sum(p_P, _product(R_P, p)), _matmul(R_P, R)
            poses.append((R, p))
        return poses

    def _turn(self, axis, j):
        """Rodrigues: R = a aᵀ + cos θ (1 − a aᵀ) + sin θ [a]×."""
        x, y, z = axis
        cross = [[0, -z, y], [z, 0, -x], [-y, x, 0]]
        return [[axis[r] * axis[s] + self._cos[j] * (int(r == s) - axis[r] * axis[s]) + self._sin[j] * cross[r][s]
                 for s in range(3)] for r in range(3)]

    def _energies(self):
        half = sp.QQ(1, 2)
        K = P = self.ring.zero
        poses = self._poses()
        gravity = self._vector(self.arm.gravity)
        for (R, p), link in zip(poses, self.arm.links):
            mass = self._number(link.mass)
            com = _sum(p, _product(R, self._vector(link.com)))
            P -= mass * _dot(gravity, com)
            speed = [self._rate(x) for x in com]
            K += mass * _dot(speed, speed) * half
            second = [self._vector(row) for row in 0.5 * np.trace(link.inertia) * np.eye(3) - link.inertia]
            turning = [[self._rate(x) for x in row] for row in R]
            K += half * sum((_dot(row, _product(second, row)) for row in turning), self.ring.zero)
        for joint in self.arm.joints:
            if joint.rotor_inertia:
                spin = self._number(joint.gear_ratio) * self._number(joint.multiplier) * self._v[joint.coordinate]
                if self.arm.rotor_coupling and joint.parent != ROOT and joint.kind != PRISMATIC:
                    spin += self._carried(poses[joint.parent][0], joint)
                K += self._number(joint.rotor_inertia) * spin * spin * half
        K, P = self._reduced(K), self._reduced(P)
        diagonal = [_largest(K.diff(v).diff(v)) for v in self._v]
        entries = ((i, k) for i in range(self.arm.n) for k in range(i, self.arm.n))
        self._K = self.ring.zero  # entry by entry, each chopped at its own scale: |M_ik| ≤ √(M_ii M_kk)
        for i, k in entries:
            scale = float(np.sqrt(diagonal[i] * diagonal[k]))
            entry = self._chopped(K.diff(self._v[i]).diff(self._v[k]), scale)
            self._K += entry * self._v[i] * self._v[k] * (half if i == k else 1)
        self._P = self._chopped(P, _largest(P))

    def _carried(self, R, joint):
        """a · ω of the rotor's carrier: ω from the skew matrix Rᵀ Ṙ, the axis in the carrier's own frame."""
        axis = self._vector(joint.origin.rotation @ joint.axis)
        turning = [[self._rate(x) for x in row] for row in R]
        skew = [[sum((R[m][r] * turning[m][s] for m in range(3)), self.ring.zero) for s in range(3)] for r in range(3)]
        return self._reduced(_dot(axis, [skew[2][1], skew[0][2], skew[1][0]]))

    # -- equations ---------------------------------------------------------------------------------------------------
    def _equations(self):
        n, half = self.arm.n, sp.QQ(1, 2)
        K, P = self._K, self._P
        self._tau = [self._reduced(self._rate(K.diff(self._v[i])) - self._partial(K, i) + self._partial(P, i))
                     for i in range(n)]
        M = [[K.diff(self._v[i]).diff(self._v[k]) for k in range(n)] for i in range(n)]
        slope = [[[self._partial(M[i][k], m) for m in range(n)] for k in range(n)] for i in range(n)]
        self._M = M
        self._C = [[self._reduced(half * sum(((slope[i][j][k] + slope[i][k][j] - slope[j][k][i]) * self._v[k]
                                              for k in range(n)), self.ring.zero)) for j in range(n)] for i in range(n)]
        self._g = [self._reduced(self._partial(P, i)) for i in range(n)]

    def defect(self):
        """τ − (M q̈ + C q̇ + g) of Euler–Lagrange's τ, as the number of terms that are left: 0, exactly."""
        return sum(len(self._reduced(self._tau[i] - _dot(self._M[i], self._a) - _dot(self._C[i], self._v) - self._g[i]))
                   for i in range(self.arm.n))

    # -- SymPy expressions -------------------------------------------------------------------------------------------
    @cached_property
    def _writer(self):
        return Writer(self.arm, len(self.arm.joints))

    def _expression(self, polynomial):
        """The polynomial as a SymPy expression in q, q̇, q̈ (cosines and sines of sums where that is shorter)."""
        return self._writer.expression(polynomial, self.q, self.qd, self.qdd)

    @cached_property
    def kinetic(self):
        return self._expression(self._K)

    @cached_property
    def potential(self):
        return self._expression(self._P)

    @cached_property
    def mass_matrix(self):
        return sp.Matrix([[self._expression(x) for x in row] for row in self._M])

    @cached_property
    def coriolis_matrix(self):
        return sp.Matrix([[self._expression(x) for x in row] for row in self._C])

    @cached_property
    def gravity(self):
        return sp.Matrix([self._expression(x) for x in self._g])

    @cached_property
    def torque(self):
        return sp.Matrix([self._expression(x) for x in self._tau])

    def text(self):
        """The equations with the arm's numbers, as lines of text."""
        return render(self.arm, self._writer, self._M, self._C, self._g, latex=False)

    def latex(self):
        """The equations with the arm's numbers, as LaTeX (an aligned environment)."""
        return render(self.arm, self._writer, self._M, self._C, self._g, latex=True)


def _dot(a, b):
    return sum((x * y for x, y in zip(a[1:], b[1:])), a[0] * b[0])


def _sum(a, b):
    return [x + y for x, y in zip(a, b)]


def _product(matrix, vector):
    return [_dot(row, vector) for row in matrix]


def _matmul(a, b):
    return [[_dot(row, column) for column in zip(*b)] for row in a]


def _largest(polynomial):
    return max((abs(float(c)) for c in polynomial.values()), default=0.0)


class SymbolicDynamics:
    """The equations of `derive(arm)` as fast enough functions (sympy.lambdify), with the methods of `Dynamics`.

    All arguments (…, n); inverse_dynamics is Euler–Lagrange's τ itself, not M q̈ + C q̇ + g put together."""

    def __init__(self, arm, max_coordinates=MAX_COORDINATES):
        self.arm, self.n = arm, arm.n
        self.equations = e = derive(arm, max_coordinates)
        self._tau = self._function([e.torque], e.q + e.qd + e.qdd)
        self._M = self._function([e.mass_matrix], e.q)
        self._C = self._function([e.coriolis_matrix], e.q + e.qd)
        self._g = self._function([e.gravity], e.q)
        self._energy = self._function([sp.Matrix([e.kinetic, e.potential])], e.q + e.qd)

    @staticmethod
    def _function(matrices, arguments):
        entries = [entry for matrix in matrices for entry in matrix]
        compiled = sp.lambdify(arguments, entries, modules="numpy", cse=True)

        def call(*vectors):
            vectors = np.broadcast_arrays(*(np.asarray(vector, float) for vector in vectors))
            values = compiled(*(vector[..., k] for vector in vectors for k in range(vector.shape[-1])))
            batch = vectors[0].shape[:-1]
            return np.stack([np.broadcast_to(np.asarray(value, float), batch) for value in values], axis=-1)
        return call

    def inverse_dynamics(self, q, qd, qdd):
        """τ (…, n)."""
        return self._tau(q, qd, qdd)

    def mass_matrix(self, q):
        """M (…, n, n)."""
        return self._square(self._M(q))

    def coriolis_matrix(self, q, qd):
        """C (…, n, n), of the Christoffel symbols."""
        return self._square(self._C(q, qd))

    def _square(self, flat):
        return flat.reshape(*flat.shape[:-1], self.n, self.n)

    def gravity(self, q):
        """g (…, n)."""
        return self._g(q)

    def bias(self, q, qd):
        """C q̇ + g (…, n)."""
        return self._tau(q, qd, np.zeros(self.n))

    def forward_dynamics(self, q, qd, tau):
        """q̈ (…, n)."""
        right = np.asarray(tau, float) - self.bias(q, qd)
        return np.linalg.solve(self.mass_matrix(q), right[..., None])[..., 0]

    def energy(self, q, qd):
        """(kinetic, potential) (…) [J]."""
        both = self._energy(q, qd)
        return both[..., 0], both[..., 1]


class Rendered(NamedTuple):
    """The same equations as text and as LaTeX."""

    text: str
    latex: str


def equations(arm):
    """The equations of an arm with its numbers, Rendered(text, latex).

    Beyond three coordinates the entries would fill books: then their number and the general form are stated instead."""
    try:
        derived = derive(arm)
    except ModelError:
        text = (f"{arm.name}: M(q) q̈ + C(q, q̇) q̇ + g(q) = τ with {arm.n} coordinates "
                f"({', '.join(arm.joint_names)}). Beyond {MAX_COORDINATES} coordinates they are too long to read and "
                "are evaluated by recursive algorithms, which agree with Lagrange's equations (docs/proof.md).")
        return Rendered(text, r"M(q)\,\ddot q + C(q,\dot q)\,\dot q + g(q) = \tau,\quad q\in\mathbb{R}^{%d}" % arm.n)
    return Rendered(derived.text(), derived.latex())


# -- the textbook's two-link arm, with symbols -----------------------------------------------------------------------
class TwoLinkSymbols(NamedTuple):
    """`two_link`'s result: parameters by name, angles, rates, accelerations (pairs of symbols), energies and τ (2,)."""

    parameters: dict
    theta: tuple
    rate: tuple
    acceleration: tuple
    kinetic: sp.Expr
    potential: sp.Expr
    torque: tuple


def two_link():
    """Euler–Lagrange of the planar two-link arm with every parameter a symbol (names as in `planar.TwoLinkParameters`).

    K and P are written from the positions of the centres of mass, differentiated in time by SymPy."""
    names = ("L1", "m1", "m2", "lc1", "lc2", "I1", "I2", "g0", "d1", "d2")
    p = dict(zip(names, sp.symbols(names, real=True)))
    t = sp.Symbol("t")
    q1, q2 = sp.Function("q1")(t), sp.Function("q2")(t)

    def along(angle, length, across):
        """A point `length` along and `across` (to the left of) a direction."""
        return sp.Matrix([length * sp.cos(angle) - across * sp.sin(angle),
                          length * sp.sin(angle) + across * sp.cos(angle)])
    p1 = along(q1, p["lc1"], p["d1"])
    p2 = along(q1, p["L1"], 0) + along(q1 + q2, p["lc2"], p["d2"])
    half = sp.Rational(1, 2)
    K = half * (p["m1"] * p1.diff(t).dot(p1.diff(t)) + p["I1"] * q1.diff(t)**2
                + p["m2"] * p2.diff(t).dot(p2.diff(t)) + p["I2"] * (q1.diff(t) + q2.diff(t))**2)
    P = p["g0"] * (p["m1"] * p1[1] + p["m2"] * p2[1])
    L = K - P
    torque = [L.diff(q.diff(t)).diff(t) - L.diff(q) for q in (q1, q2)]
    theta, rate, acceleration = (sp.symbols(f"{name}1 {name}2", real=True) for name in ("theta", "omega", "alpha"))
    swap = [(q.diff(t, 2), a) for q, a in zip((q1, q2), acceleration)]
    swap += [(q.diff(t), w) for q, w in zip((q1, q2), rate)] + list(zip((q1, q2), theta))
    K, P, *torque = (x.subs(swap) for x in (K, P, *torque))
    return TwoLinkSymbols(p, theta, rate, acceleration, K, P, tuple(torque))


def trigonometric_zero(expression, angles):
    """True when an expression, polynomial in sines and cosines of sums of `angles`, is identically zero (exact)."""
    expression = sp.expand(sp.expand_trig(sp.expand(expression)))
    pairs = [sp.symbols(f"c_{k} s_{k}") for k in range(len(angles))]
    for angle, (c, s) in zip(angles, pairs):
        expression = expression.subs({sp.cos(angle): c, sp.sin(angle): s})
    expression = sp.expand(expression)
    if expression == 0:
        return True
    generators = [x for c, s in pairs for x in (s, c)]
    _, rest = sp.reduced(expression, [s**2 + c**2 - 1 for c, s in pairs], *generators)
    return sp.expand(rest) == 0
