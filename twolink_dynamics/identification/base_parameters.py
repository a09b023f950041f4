"""The combinations of parameters that motion and torque can tell at all, found numerically and named.

Columns of the regressor at random states are taken in order, links from the root outwards and each mass last; one that
depends on those before it is regrouped into them: β = K π, Y π = Y_b β (Gautier & Khalil 1990; numerical: Gautier
1991). The coefficients are then recognised as products of the arm's lengths and gear ratios, on this arm and on a
perturbed copy, so that "I1 + m2 L1²" is never an accident of the numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np

from ..arm import make_pose
from .model import FrictionTerms, Model

DEPENDENT = 1e-5  # part of a column that counts as none: URDFs write 3.1416 for pi, and no sensor sees a part in 10⁵
WITHIN_LINK = (4, 5, 6, 7, 8, 9, 1, 2, 3, 0)


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """β = K π. independent: indices (b,) of the columns that stay; K (b, P); names, e.g. "I1 + m2 L1²"; units.

    unseen    names of parameters no motion of this arm can tell, alone or in a combination
    symbols   {"L1": value, …} the lengths and ratios used in the names
    """

    independent: np.ndarray
    K: np.ndarray
    names: tuple
    units: tuple
    unseen: tuple
    symbols: dict


def base_parameters(arm, friction=None, rotor="none", offset=False, fixed=()):
    """The BaseParameters of an arm (or of a `Model`); by default of its inertial parameters alone."""
    friction = friction or FrictionTerms(viscous=False, coulomb=False)
    model = arm if isinstance(arm, Model) else Model(arm, friction, rotor, offset, fixed)
    arm = model.arm
    W = _random_regressor(model, arm)
    order = _order(model)
    independent = _independent(W, order)
    K = _regrouped(W, independent, model)
    other, symbols, other_symbols = _perturbed(arm)
    twin = Model(other, model.friction, model.rotor, model.offset, tuple(np.array(model.names)[model.fixed]))
    K_twin = _regrouped(_random_regressor(twin, other), independent, twin)
    short = _short_names(model, K)
    names = tuple(
        _name(model, short, K[b], K_twin[b], column, symbols, other_symbols) for b, column in enumerate(independent)
    )
    units = tuple(model.parameters[column].unit for column in independent)
    seen = np.abs(K).max(axis=0) > 0.0
    unseen = tuple(model.names[k] for k in range(len(model.names)) if not seen[k] and not model.fixed[k])
    return BaseParameters(independent, K, names, units, unseen, symbols)


def _random_regressor(model, arm, seed=5):
    rng = np.random.default_rng(seed)
    count = 8 * max(4, len(model.names) // arm.n)
    q, qd, qdd = (scale * rng.uniform(-1.0, 1.0, (count, arm.n)) for scale in (np.pi, 3.0, 10.0))
    W = model.columns(q, qd, qdd).reshape(-1, len(model.names))
    W[:, model.fixed] = 0.0
    return W


def _order(model):
    count = len(model.arm.links)
    return [10 * i + k for i in range(count) for k in WITHIN_LINK] + list(range(10 * count, len(model.names)))


def _independent(W, order):
    """Greedy Gram–Schmidt, each column against the ones before it."""
    basis, chosen = np.zeros((len(W), 0)), []
    sizes = np.linalg.norm(W, axis=0)
    for k in order:
        size = sizes[k]
        if size <= DEPENDENT * sizes.max():
            continue
        rest = W[:, k] / size
        for _ in range(2):
            rest = rest - basis @ (basis.T @ rest)
        left = np.linalg.norm(rest)
        if left > DEPENDENT:
            basis = np.column_stack([basis, rest / left])
            chosen.append(k)
    return np.array(sorted(chosen))


def _regrouped(W, independent, model):
    """K: the coefficients of every column in the independent ones; rounding set to zero."""
    scale = np.linalg.norm(W[:, independent], axis=0)
    K = np.linalg.lstsq(W[:, independent] / scale, W, rcond=None)[0] / scale[:, None]
    K[np.abs(K) < 10.0 * DEPENDENT] = 0.0
    K[:, independent] = np.eye(len(independent))
    K[:, model.fixed] = 0.0
    return K


# -- names -----------------------------------------------------------------------------------------------------------
def _perturbed(arm):
    """(copy with other lengths and gear ratios, symbols of the arm, symbols of the copy)."""
    joints, here, there = [], {}, {}
    gears = 1.0 + 0.1 * np.arange(1, arm.n + 1)
    children = [sum(joint.parent == i for joint in arm.joints) for i in range(len(arm.links))]
    for k, joint in enumerate(arm.joints):
        p = joint.origin.translation
        factors = 1.0 + 0.07 * (k + 1) * np.array([1.0, 1.37, 1.91])
        joints.append(replace(joint, origin=make_pose(joint.origin.rotation, p * factors)))
        seen = np.flatnonzero(np.abs(p) > 1e-12)
        along = [s for s in seen if abs(p[s]) == np.abs(p).max()]
        for s in seen:
            alone = joint.parent >= 0 and children[joint.parent] == 1 and s == along[0]
            label = f"L{joint.parent + 1}" if alone else f"p{'xyz'[s]}{k + 1}"
            sign = np.sign(p[s]) if alone else 1.0
            here[label], there[label] = sign * p[s], sign * p[s] * factors[s]
    ratio = arm.gear_ratio
    for j in range(arm.n):
        if ratio[j] != 1.0:
            here[f"gr{j + 1}"], there[f"gr{j + 1}"] = ratio[j], ratio[j] * gears[j]
    return replace(arm, joints=tuple(joints)).with_joints(gear_ratio=ratio * gears), here, there


def _candidates(here, there):
    """[(text, value here, value there)], simplest first."""
    found = [("", 1.0, 1.0)]
    labels = list(here)
    found += [(label, here[label], there[label]) for label in labels]
    for a, b in combinations_with_replacement(labels, 2):
        found.append((f"{a}²" if a == b else f"{a} {b}", here[a] * here[b], there[a] * there[b]))
    squares = [(f"{a}²", here[a] ** 2, there[a] ** 2) for a in labels]
    found += [(f"({x[0]} + {y[0]})", x[1] + y[1], x[2] + y[2]) for i, x in enumerate(squares) for y in squares[i + 1 :]]
    return [(text, a, b) for text, a, b in found] + [(f"2 {text}".strip(), 2.0 * a, 2.0 * b) for text, a, b in found]


def _short_names(model, K):
    """A link whose only telling moment of inertia is one of the six is planar: call it I1 instead of Iyy1."""
    short = {name: name for name in model.names}
    for i in range(len(model.arm.links)):
        told = [k for k in range(10 * i + 4, 10 * i + 10) if np.abs(K[:, k]).max() > 0.0]
        if len(told) == 1:
            short[model.names[told[0]]] = f"I{i + 1}"
    return short


def _name(model, short, row, twin, own, symbols, other_symbols):
    """ "I1 + (m2 + m3) L1²": the column's own name, then what is regrouped into it, by common factor."""
    candidates = _candidates(symbols, other_symbols)
    groups = {}
    for k in np.flatnonzero(row):
        if k == own:
            continue
        factor = next(
            (text for text, a, b in candidates if _same(row[k], a) and _same(twin[k], b)), f"{abs(row[k]):.5g}"
        )
        groups.setdefault(("-" if row[k] < 0 else "+", factor), []).append(short[model.names[k]])
    terms = [short[model.names[own]]]
    for (sign, factor), members in groups.items():
        text = (
            members[0]
            if len(members) == 1
            else f"({' + '.join(members)})"
            if factor or sign == "-"
            else " + ".join(members)
        )
        if factor:
            text = f"{factor} {text}" if factor[0].isdigit() else f"{text} {factor}"
        terms.append(f"{sign} {text}")
    return " ".join(terms)


def _same(coefficient, symbol):
    return abs(abs(coefficient) - abs(symbol)) < 1e-4 * abs(symbol)
