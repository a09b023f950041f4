"""The nearest physical arm: every body has positive mass and a density, friction dissipates, and CAD speaks only where
data do not.

A body's ten parameters are those of a positive density if and only if its pseudo-inertia is positive definite,

    J = [[Σ, h], [hᵀ, m]],   Σ = ½ tr(I_o) 1 − I_o,   h = m c

(Wensing, Kim & Slotine 2018): positive mass, positive moments and the triangle rule in one. The fit minimises the
convex function

    ½ (Kπ − β̂)ᵀ Q (Kπ − β̂) + w Σ_i [tr(J_i J0_i⁻¹) − log det(J_i J0_i⁻¹) − 4]
                              + w Σ_k [x_k / x0_k − log(x_k / x0_k) − 1]

Q being the data's information. The second term is the entropic divergence from the CAD bodies J0 (Lee, Wensing & Park
2020), whose log det keeps J inside the cone; x_k are the rotor inertias. A body's size is believed to 1/(2√w) of itself
(w = 0.1: 160 %), so where data know better the prior does not matter, and where they are silent it alone decides.
Friction x ≥ 0 is kept by a vanishing barrier, and is believed to the URDF's value ± three times the usual effort
(viscous: at the velocity limit), as offsets are. Solved by Newton's method.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import SimulationError

BARRIER = 1e-3  # of −log(friction): the pull away from zero, in units of the data's χ²
TINY_BODY = 1e-3  # smallest extent of a prior body in its thin directions, of the arm's longest link


@dataclass(frozen=True, eq=False)
class Consistent:
    """values (P,) physical parameters; covariance (P, P) of data and prior together; prior_variance (P,) of the prior
    alone; share (P,) of what is known of each parameter that comes from the data, 0 … 1; iterations."""

    values: np.ndarray
    covariance: np.ndarray
    prior_variance: np.ndarray
    share: np.ndarray
    iterations: int


def pseudo_inertia(parameters):
    """J (4, 4) of ten parameters m, m c, Ixx Ixy Iyy Ixz Iyz Izz (about the origin)."""
    return np.tensordot(np.asarray(parameters, float), _BASIS, axes=1)


def _basis():
    """∂J/∂π_k, (10, 4, 4)."""
    basis = np.zeros((10, 4, 4))
    basis[0, 3, 3] = 1.0
    for k in range(3):
        basis[1 + k, k, 3] = basis[1 + k, 3, k] = 1.0
    for index, (r, s) in zip((4, 5, 6, 7, 8, 9), ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))):
        inertia = np.zeros((3, 3))
        inertia[r, s] = inertia[s, r] = 1.0
        basis[index, :3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    return basis


_BASIS = _basis()
FRICTION = ("viscous", "coulomb", "stribeck")


def physically_consistent(model, K, fit, prior_weight=0.1, iterations=200):
    """The Consistent parameters of a `Model` with base map K (b, P), from a Fit. Raises SimulationError if Newton
    stalls."""
    names = model.parameters
    links = len(model.arm.links)
    free = ~model.fixed
    start = _prior_bodies(model)
    priors = [np.linalg.inv(pseudo_inertia(start[10 * i : 10 * i + 10])) for i in range(links)]
    scalars = {}  # index: (prior value or None, barrier weight)
    given, precision = model.prior, np.zeros(len(names))  # Gaussian beliefs in friction and offsets
    typical = np.abs(fit.beta * fit.reach).max() + 1e-9
    for k in np.flatnonzero(free):
        if names[k].kind == "rotor":
            base = _moment_scale(model, names[k])
            start[k] = start[k] if start[k] > 0.0 else 0.1 * base
            scalars[k] = (start[k], prior_weight)
        elif names[k].kind in FRICTION:
            start[k] = max(start[k], 1e-2 * typical)
            scalars[k] = (None, BARRIER)
        if names[k].kind in FRICTION + ("offset",):
            precision[k] = _belief(model, fit, names[k]) ** -2.0
    Q = fit.information
    x = start.copy()
    bodies = [i for i in range(links) if free[10 * i : 10 * i + 10].any()]

    def value(x):
        total = 0.5 * (K @ x - target) @ Q @ (K @ x - target) + 0.5 * precision @ (x - given) ** 2
        for i in bodies:
            J = pseudo_inertia(x[10 * i : 10 * i + 10])
            sign, logdet = np.linalg.slogdet(J)
            if sign <= 0 or np.linalg.eigvalsh(J)[0] <= 0.0:
                return np.inf
            total += prior_weight * (np.trace(J @ priors[i]) - logdet)
        for k, (prior, weight) in scalars.items():
            if x[k] <= 0.0:
                return np.inf
            total += weight * ((x[k] / prior if prior else 0.0) - np.log(x[k]))
        return total

    target = fit.beta

    def derivatives(x):
        """Gradient and Hessian of the whole, and the prior's part of the Hessian."""
        H_prior = np.diag(precision)
        g = K.T @ Q @ (K @ x - target) + precision * (x - given)
        for i in bodies:
            at = slice(10 * i, 10 * i + 10)
            inverse = np.linalg.inv(pseudo_inertia(x[at]))
            M = inverse @ _BASIS
            g[at] += prior_weight * (
                np.tensordot(_BASIS, priors[i], axes=((1, 2), (0, 1))) - np.trace(M, axis1=1, axis2=2)
            )
            H_prior[at, at] += prior_weight * np.einsum("kab,lba->kl", M, M)
        for k, (prior, weight) in scalars.items():
            g[k] += weight * ((1.0 / prior if prior else 0.0) - 1.0 / x[k])
            H_prior[k, k] += weight / x[k] ** 2
        return g, H_prior

    f = value(x)
    for iteration in range(iterations):
        g, H_prior = derivatives(x)
        H = K.T @ Q @ K + H_prior
        step = np.zeros(len(x))
        step[free] = -_solve(H[np.ix_(free, free)], g[free])
        decrement = -float(g @ step)
        if decrement < 1e-10:
            break
        length = 1.0
        while length > 1e-12:
            trial = value(x + length * step)
            if trial <= f - 1e-4 * length * decrement + 1e-13 * abs(f):
                break
            length *= 0.5
        else:
            if decrement < 1e-6:
                break
            raise SimulationError(
                f"the physically consistent fit stalls after {iteration} steps (decrement {decrement:.2g})"
            )
        x, f = x + length * step, trial
    return _uncertainty(model, K, Q, x, precision, derivatives, free, iteration + 1)


def _solve(H, g):
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(H), 1e-300))
    scaled = H * np.outer(scale, scale)
    return scale * np.linalg.lstsq(scaled, scale * g, rcond=1e-14)[0]


def _uncertainty(model, K, Q, x, precision, derivatives, free, iterations):
    """Covariance of data and prior together, and each parameter's share of knowledge that is the data's."""
    _, H_prior = derivatives(x)
    friction = np.flatnonzero(model.kinds(*FRICTION))
    H_prior[friction, friction] = precision[friction]  # the barrier knows nothing
    H = K.T @ Q @ K + H_prior
    size = len(x)
    covariance, prior = np.zeros((size, size)), np.full(size, np.inf)
    index = np.flatnonzero(free)
    diagonal = np.diagonal(H)[index].copy()
    blind = diagonal <= 0.0
    diagonal[blind] = 1.0
    scale = 1.0 / np.sqrt(diagonal)
    scaled = H[np.ix_(index, index)] * np.outer(scale, scale)
    covariance[np.ix_(index, index)] = np.linalg.pinv(scaled, rcond=1e-13, hermitian=True) * np.outer(scale, scale)
    inertial = np.flatnonzero(np.diagonal(H_prior) > 0.0)
    d = 1.0 / np.sqrt(np.diagonal(H_prior)[inertial])
    P0 = np.linalg.inv(H_prior[np.ix_(inertial, inertial)] * np.outer(d, d)) * np.outer(d, d)
    prior[inertial] = np.diagonal(P0)
    share = np.where(np.isfinite(prior), 1.0 - np.diagonal(covariance) / np.where(np.isfinite(prior), prior, 1.0), 1.0)
    share[model.fixed] = 0.0
    return Consistent(x, covariance, prior, np.clip(share, 0.0, 1.0), iterations)


def _prior_bodies(model):
    """(P,) the CAD values, with every body that is none (massless, a point, thin) given a little mass and extent."""
    arm, values = model.arm, model.prior.copy()
    reach = max(
        [np.linalg.norm(joint.origin.translation) for joint in arm.joints]
        + [np.linalg.norm(frame.pose.translation) for frame in arm.frames]
        + [1e-2]
    )
    heaviest = max(link.mass for link in arm.links)
    for i in range(len(arm.links)):
        at = slice(10 * i, 10 * i + 10)
        if model.fixed[at].all():
            continue
        if values[10 * i] <= 0.0:
            values[at] = 0.0
            values[10 * i] = 0.01 * heaviest
        mass = values[10 * i]
        com = values[10 * i + 1 : 10 * i + 4] / mass
        J = pseudo_inertia(values[at])
        S_com = J[:3, :3] - mass * np.outer(com, com)
        moments, axes = np.linalg.eigh(S_com)
        floor = mass * (TINY_BODY * reach) ** 2
        if moments[0] < floor:
            S = axes @ np.diag(np.maximum(moments, floor)) @ axes.T + mass * np.outer(com, com)
            inertia = np.trace(S) * np.eye(3) - S
            values[10 * i + 4 : 10 * i + 10] = inertia[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
    return values


def _belief(model, fit, parameter):
    """How far friction or an offset may be from the URDF's value: three times the usual effort, for viscous friction at
    its velocity limit."""
    j = model.arm.joint_names.index(parameter.owner)
    limit = model.arm.velocity_limit[j]
    return 3.0 * float(fit.effort[j]) / ((limit if np.isfinite(limit) else 2.0) if parameter.kind == "viscous" else 1.0)


def _moment_scale(model, parameter):
    """A rotor inertia [kg m²] that reflects to the arm's smallest diagonal inertia."""
    from ..newton_euler import mass_matrix

    j = model.arm.joint_names.index(parameter.owner)
    M = mass_matrix(model.arm, np.zeros(model.arm.n))
    return max(float(np.diagonal(M)[j]), 1e-9) / model.arm.gear_ratio[j] ** 2
