"""Three-vectors and matrices of numbers and expressions, as plain tuples."""
from __future__ import annotations

ZERO = (0.0, 0.0, 0.0)
IDENTITY = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
NOTHING = (ZERO, ZERO, ZERO)


def plus(a, b):
    """a + b."""
    return tuple(x + y for x, y in zip(a, b))


def minus(a, b):
    """a − b."""
    return tuple(x - y for x, y in zip(a, b))


def times(factor, a):
    """factor · a."""
    return tuple(factor * x for x in a)


def dot(a, b):
    """a · b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a, b):
    """a × b."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def transposed(A):
    """Aᵀ."""
    return tuple(zip(*A))


def apply(A, v):
    """A v."""
    return tuple(dot(row, v) for row in A)


def product(A, B):
    """A B."""
    columns = transposed(B)
    return tuple(tuple(dot(row, column) for column in columns) for row in A)


def matrix_plus(A, B):
    """A + B."""
    return tuple(plus(a, b) for a, b in zip(A, B))


def outer(a, b):
    """a bᵀ."""
    return tuple(tuple(x * y for y in b) for x in a)


def symmetric_from(A):
    """A symmetric matrix from its upper triangle."""
    return tuple(tuple(A[min(i, j)][max(i, j)] for j in range(3)) for i in range(3))


def curl(A):
    """The vector (A₃₂ − A₂₃, A₁₃ − A₃₁, A₂₁ − A₁₂): Σ x × y of A = Σ y xᵀ."""
    return (A[2][1] - A[1][2], A[0][2] - A[2][0], A[1][0] - A[0][1])
