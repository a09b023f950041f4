"""What sticks, what slides, what touches: a linear complementarity problem with bounds, solved exactly by pivoting."""
from __future__ import annotations

import numpy as np

from .errors import SimulationError


def solve_boxed(D, b, lower, upper, what="contact and friction"):
    """(p, w, state), each (k,): w = D p + b with lower ≤ p ≤ upper and, per row, one of

        state  0   lower ≤ p ≤ upper   w = 0   (holds)
        state −1   p = lower           w ≥ 0   (gives way upwards)
        state +1   p = upper           w ≤ 0   (gives way downwards)

    D (k, k) is a Delassus matrix G A⁻¹ Gᵀ (positive semidefinite; a little of its diagonal is added so that redundant
    rows share their load), p the efforts or impulses, w the accelerations or velocities along the rows.
    Block principal pivoting that falls back to Murty's single pivots, finite for P-matrices (Júdice & Pires, 1994).
    Raises SimulationError if 50 + 10·2^min(k, 8) pivots do not end it.
    """
    k = len(b)
    if k == 1 and D[0, 0] > 0.0:
        return _one(float(D[0, 0]), float(b[0]), lower, upper)
    exact, D = D, D + 1e-12 * max(float(np.trace(D)) / k, 1e-300) * np.eye(k)
    scale = np.abs(b).max()
    w_tolerance = 1e-11 * scale
    state = np.zeros(k, int)
    fewest, patience = k + 1, 3
    for _ in range(50 + 10 * 2 ** min(k, 8)):
        free = state == 0
        p = np.where(state < 0, lower, np.where(state > 0, upper, 0.0))
        if free.any():
            inner = np.flatnonzero(free)
            for _ in range(2):  # the second pass takes the added diagonal's error away again
                p[inner] -= np.linalg.solve(D[inner[:, None], inner], (b + exact @ p)[inner])
        w = exact @ p + b
        slack = 1e-11 * (np.abs(p) + scale / np.diagonal(D))
        under, over = free & (p < lower - slack), free & (p > upper + slack)
        loose = ((state < 0) & (w < -w_tolerance)) | ((state > 0) & (w > w_tolerance))
        wrong = under | over | loose
        count = int(np.count_nonzero(wrong))
        if count == 0:
            return np.clip(p, lower, upper), np.where(free, 0.0, w), state
        if count < fewest:
            fewest, patience = count, 3
        else:
            patience -= 1
        if patience <= 0:  # Murty: only the last wrong row
            wrong = np.arange(k) == np.flatnonzero(wrong)[-1]
        state = np.where(wrong & under, -1, np.where(wrong & over, 1, np.where(wrong & loose, 0, state)))
    raise SimulationError(f"{what}: no consistent set of sticking and sliding was found for {k} rows")


def _one(d, b, lower, upper):
    """`solve_boxed` of a single row with d > 0."""
    p = -b / d
    if p < lower[0]:
        return np.array(lower, float), np.array([d * lower[0] + b]), np.array([-1])
    if p > upper[0]:
        return np.array(upper, float), np.array([d * upper[0] + b]), np.array([1])
    return np.array([p]), np.zeros(1), np.zeros(1, int)
