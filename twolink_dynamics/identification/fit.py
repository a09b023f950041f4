"""Weighted and robust least squares of the base parameters, with standard errors that know the residual is coloured.

Rows are weighted by each joint's residual level (found by iteration) and, robustly, by Huber's function. After low-pass
filtering neighbouring residuals are alike, so the textbook (WᵀW)⁻¹σ² is far too small: with r_j(k) the residual's
autocovariance,

    cov β = G⁻¹ S G⁻¹,   G = Σ ψ′ W Wᵀ,   S = Σ_j Σ_k w(k) r_j(k) Σ_t W_j[t] W_j[t + k]ᵀ

of the residuals after Huber's ψ, with a Parzen window w (Newey & West 1987; Söderström & Stoica, System Identification,
ch. 7). That takes the residual for stationary and the joints' for independent. Where noise is low the residual is what
the model and the filter make of friction's jumps instead: it comes in bursts, at the same motion, in all joints. So the
spread of β with each second of the logs left out in turn (delete-a-group jackknife, Shao & Wu 1989),

    cov′ β = (G − 1)/G Σ_g (β₍g₎ − β)(β₍g₎ − β)ᵀ,   β₍g₎ − β = −(G − G_g)⁻¹ Σ_{t ∈ g} W[t] ψ(r[t])

is computed too, and a parameter's variance is the larger of the two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..errors import InputError

HUBER = 1.345  # 95 % efficient on Gaussian residuals
LAG = 1.0  # s: longest correlation of residuals that is counted


@dataclass(frozen=True, eq=False)
class Block:
    """One uninterrupted piece: W (T, n, b) base regressor and tau (T, n), both filtered, dt [s] between rows; used (T,
    n) bool."""

    W: np.ndarray
    tau: np.ndarray
    dt: float
    used: np.ndarray


@dataclass(frozen=True, eq=False)
class Fit:
    """beta (b,), covariance (b, b), sigma (n,) residual level per joint [N m], condition and singular values of the
    column-scaled weighted regressor, information (b, b) = WᵀW deflated to independent residuals, reach (b,) RMS torque
    of each column (over the whole arm), outliers: share of rows that Huber weighted below one half, rows: used ones,
    effort (n,) RMS measured [N m]."""

    beta: np.ndarray
    covariance: np.ndarray
    sigma: np.ndarray
    condition: float
    singular_values: np.ndarray
    information: np.ndarray
    reach: np.ndarray
    outliers: float
    rows: int
    effort: np.ndarray

    def without(self, last):
        """This fit with the `last` columns marginalised out: they stay uncertain, but are no longer listed."""
        if not last:
            return self
        keep = len(self.beta) - last
        A, B, C = self.information[:keep, :keep], self.information[:keep, keep:], self.information[keep:, keep:]
        return replace(
            self,
            beta=self.beta[:keep],
            covariance=self.covariance[:keep, :keep],
            reach=self.reach[:keep],
            information=A - B @ np.linalg.pinv(C) @ B.T,
        )

    def widened(self, factor):
        """This fit with all standard errors times `factor`."""
        return replace(self, covariance=self.covariance * factor**2, information=self.information / factor**2)

    @property
    def standard_errors(self):
        """(b,) one standard deviation of each base parameter."""
        return np.sqrt(np.diagonal(self.covariance))


def least_squares(blocks, weighted=True, robust=True, iterations=8):
    """The Fit of Blocks. `weighted` by joint, `robust` by Huber; both off is plain least squares."""
    W = np.concatenate([block.W for block in blocks])
    tau = np.concatenate([block.tau for block in blocks])
    used = np.concatenate([block.used for block in blocks])
    rows, n, b = W.shape
    if used.sum() < 2 * b:
        raise InputError(f"{int(used.sum())} usable rows are too few for {b} base parameters")
    weight = np.where(used, 1.0, 0.0)
    huber = np.ones_like(weight)
    scale = np.ones(n)
    beta = _solve(W, tau, weight)
    for _ in range(iterations if weighted or robust else 1):
        residual = tau - np.einsum("tnb,b->tn", W, beta)
        scale = np.array([_level(residual[used[:, j], j], robust) for j in range(n)])
        if robust:
            huber = np.minimum(1.0, HUBER * scale / np.maximum(np.abs(residual), 1e-300))
        per_joint = 1.0 / scale if weighted else np.ones(n)
        new = _solve(W, tau, weight * per_joint * np.sqrt(huber))
        change = np.abs((new - beta) * np.sqrt((W**2).sum((0, 1)))).max() / max(np.sqrt((tau**2).sum()), 1e-300)
        beta = new
        if change < 1e-7:
            break
    residual = tau - np.einsum("tnb,b->tn", W, beta)
    sigma = np.array([np.sqrt((residual[used[:, j], j] ** 2).mean()) if used[:, j].any() else np.inf for j in range(n)])
    sigma = np.maximum(sigma, 1e-12)
    row_weight = weight * (1.0 / sigma if weighted else np.full(n, 1.0 / sigma.mean()))
    inside = np.sqrt(huber >= 1.0) if robust else np.ones_like(huber)  # ψ′ of Huber's function
    A = W * (row_weight * inside)[..., None]
    e = residual * row_weight * huber
    outer = W * row_weight[..., None]
    flat = A.reshape(-1, b)
    lengths = np.linalg.norm(flat, axis=0)
    lengths[lengths == 0.0] = 1.0
    _, singular, V = np.linalg.svd(flat / lengths, full_matrices=False)
    gram = V.T @ np.diag(np.maximum(singular, 1e-9 * singular[0]) ** 2) @ V * np.outer(lengths, lengths)
    inverse = np.linalg.inv(gram)
    S = _long_run(blocks, outer, e)
    jackknife = _jackknife(blocks, gram, A, np.einsum("tnb,tn->tb", outer, e))
    wider = np.sqrt(np.maximum(np.diagonal(jackknife) / np.diagonal(inverse @ S @ inverse), 1.0))
    inflation = max(1.0, float(np.trace(inverse @ S)) / b, float(np.trace(gram @ jackknife)) / b)
    independent = max(
        used.sum() / inflation, 2.0 * b
    )  # rows' worth of information: what b parameters take from it is given back
    fixed_b = 1.0 + 1.5 * LAG / max(
        sum(len(block.tau) * block.dt for block in blocks), LAG
    )  # Kiefer & Vogelsang 2005, Bartlett's
    covariance = inverse @ S @ inverse * (fixed_b / (1.0 - b / independent)) ** 2 * np.outer(wider, wider)
    return Fit(
        beta,
        0.5 * (covariance + covariance.T),
        sigma,
        float(singular[0] / max(singular[-1], 1e-300)),
        singular,
        gram / inflation,
        np.sqrt((W**2).sum(1).mean(0)),
        float((huber[used] < 0.5).mean()),
        int(used.sum()),
        np.maximum(np.sqrt((tau**2).mean(0)), 1e-9),
    )


def _solve(W, tau, weight):
    A = (W * weight[..., None]).reshape(-1, W.shape[-1])
    lengths = np.linalg.norm(A, axis=0)
    lengths[lengths == 0.0] = 1.0
    return np.linalg.lstsq(A / lengths, (tau * weight).ravel(), rcond=1e-9)[0] / lengths


def _level(residual, robust):
    """Residual level of one joint: RMS, or 1.4826 × the median magnitude."""
    if not len(residual):
        return np.inf
    level = 1.4826 * np.median(np.abs(residual)) if robust else np.sqrt((residual**2).mean())
    return max(float(level), 1e-9)


def _long_run(blocks, A, e):
    """S of the module's docstring; the window spans a sixth of each piece, at most a few seconds."""
    b = A.shape[-1]
    n = e.shape[1]
    S = np.zeros((b, b))
    starts = np.cumsum([0, *(len(block.tau) for block in blocks)])
    lags = [max(1, min(len(block.tau) // 6, int(LAG / block.dt))) for block in blocks]
    reach = max(lags)
    covariance, count = np.zeros((reach + 1, n)), np.zeros(reach + 1)
    for a, z, last in zip(starts, starts[1:], lags):
        for k in range(last + 1):
            covariance[k] += (e[a : z - k] * e[a + k : z]).sum(0)
            count[k] += z - a - k
    covariance /= np.maximum(count, 1.0)[:, None]
    used_share = np.maximum((np.abs(e) > 0).mean(0), 1e-9)
    covariance /= used_share
    for a, z, last in zip(starts, starts[1:], lags):
        for k in range(last + 1):
            window = _parzen(k / (last + 1))
            for j in range(n):
                C = A[a : z - k, j].T @ A[a + k : z, j]
                S += window * covariance[k, j] * (C if k == 0 else C + C.T)
    values, vectors = np.linalg.eigh(0.5 * (S + S.T))
    return vectors @ np.diag(np.maximum(values, 1e-12 * values.max())) @ vectors.T


def _jackknife(blocks, gram, A, scores):
    """cov′ β of the module's docstring, (b, b); A (T, n, b) weighted regressor, scores (T, b)."""
    changes = []
    starts = np.cumsum([0, *(len(block.tau) for block in blocks)])
    for a, z, block in zip(starts, starts[1:], blocks):
        for group in np.array_split(np.arange(a, z), max(1, round((z - a) * block.dt / LAG))):
            rows = A[group].reshape(-1, A.shape[-1])
            changes.append(_solve_symmetric(gram - rows.T @ rows, scores[group].sum(0)))
    changes = np.array(changes)
    count = len(changes)
    return (count - 1.0) / count * changes.T @ changes if count > 3 else np.zeros_like(gram)


def _solve_symmetric(G, g):
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(G), 1e-300))
    return scale * np.linalg.lstsq(G * np.outer(scale, scale), scale * g, rcond=1e-12)[0]


def _parzen(x):
    return 1.0 - 6.0 * x**2 * (1.0 - x) if x < 0.5 else 2.0 * (1.0 - x) ** 3
