"""Which joints stick, which stops and contacts hold: the discrete state of a plant, and the impulses that change it.

How stiction is exact. Between events every joint with dry friction either slides in a known direction (its friction
is a smooth force) or is locked: its row leaves the equations, so its velocity is the number 0 and its position does not
change by one bit. `settle` decides at the start of every stretch, by one complementarity problem over all joints at
rest, stops and the contact, at the level of accelerations: A a = f + Σ eᵢ pᵢ with pᵢ boxed by the breakaway friction
(or one-sided at a stop) and aᵢ = 0 unless pᵢ is at its bound. A sliding joint whose velocity changes sign inside a step
ends the stretch there (simulation.py locates the instant); it is brought to rest, and settled again, so that nothing
chatters. Whatever takes velocity at once goes through `impact`: the same problem at the level of velocities,
A Δu = Σ eᵢ pᵢ (Moreau's plastic impact law), which never adds energy: T⁺ − T⁻ = pᵀw⁺ − ½ pᵀD p with pᵀw⁺ ≤ 0.

Forces that only let go (a stop that would pull, stiction that is exceeded) are noticed at the start of the next
stretch, at most one step late; they do no work meanwhile, because what they hold does not move.

Longer than most files, because deciding, holding, striking and projecting are four views of the same rows.
"""
from __future__ import annotations

import numpy as np

from .complementarity import solve_boxed
from .contact import SLOW, TOUCHING
from .errors import SimulationError

OPEN, STICK, SLIP = "open", "stick", "slip"
INF = np.inf
JAM = 0.02  # sliding friction that presses the tip on until the normal force is 1/JAM times as large has jammed
CONTACT = -1  # stands for the contact among coordinates that are held for the rest of a step


class Modes:
    """sign (n,) ±1 where a joint slides against dry friction; locked (m,) bool or None; contact OPEN, STICK or SLIP,
    its sliding direction (t,), the anchor (3,) it sticks to, and the gap it is held at (0 unless it started inside)."""

    __slots__ = ("sign", "locked", "contact", "direction", "anchor", "depth", "smooth")

    def __init__(self, sign, locked=None, contact=OPEN, direction=None, anchor=None, depth=0.0, rows=False):
        self.sign = sign
        self.locked = locked
        self.contact = contact
        self.direction = direction
        self.anchor = anchor
        self.depth = depth
        self.smooth = locked is None and contact == OPEN and not rows


def compliance(A, locked, E):
    """(W (m, m), R (m, k)): u̇ = W f − R γ solves A u̇ = f + Eᵀ λ, E u̇ = −γ with the locked coordinates at rest."""
    m = len(A)
    W = np.zeros((m, m))
    free = np.arange(m) if locked is None else np.flatnonzero(~locked)
    W[free[:, None], free] = solved(A[free[:, None], free], np.eye(free.size)) if free.size else 0.0
    if E is None or not len(E):
        return W, np.zeros((m, 0))
    WE = W @ E.T
    R = WE @ pseudo_inverse(E @ WE)
    return W - R @ WE.T, R


def solved(A, B):
    """A⁻¹ B of a mass matrix A (m, m) and B (m,) or (m, k); small ones by hand, as NumPy's solver costs 10 µs."""
    if len(A) == 1:
        return B / A[0, 0]
    if len(A) == 2:
        (a, b), (c, d) = A.tolist()
        determinant = a * d - b * c
        if determinant > 0.0:
            return np.array(((d / determinant, -b / determinant), (-c / determinant, a / determinant))).dot(B)
    return np.linalg.solve(A, B)


def pseudo_inverse(S):
    """Inverse of a symmetric positive semidefinite matrix where it has one, rows scaled alike; zero elsewhere."""
    scale = np.sqrt(np.maximum(np.diagonal(S), 0.0))
    scale = np.where(scale > 1e-12 * max(scale.max(), 1e-300), scale, INF)
    values, vectors = np.linalg.eigh(S / scale[:, None] / scale)
    keep = values > 1e-11
    part = vectors[:, keep] / scale[:, None]
    return (part / values[keep]) @ part.T


def _hold(W, start, boxes, contact):
    """Efforts (or impulses) on joint rows `boxes` {coordinate: (lower, upper)} and on a contact, that turn `start`
    (m,), the acceleration (or velocity) without them, into start + W g.

    contact     None, or (rows (1 + t, m), offsets (1 + t,), friction, slip direction (t,) or None to find it)
    Returns (g (m,), {coordinate: state}, contact mode, direction)."""
    boxes = {i: box for i, box in boxes.items() if W[i, i] > 0.0}
    coordinates = np.fromiter(boxes, int, len(boxes))
    lower = np.array([box[0] for box in boxes.values()])
    upper = np.array([box[1] for box in boxes.values()])
    count = len(coordinates)

    def solve(rows, columns, offsets, low, high):
        """Joint rows and the given contact rows together; `columns` is where their reactions act."""
        G, C = np.zeros((count + len(rows), len(W))), np.zeros((count + len(rows), len(W)))
        G[np.arange(count), coordinates] = C[np.arange(count), coordinates] = 1.0
        G[count:], C[count:] = rows, columns
        b = G @ start
        b[count:] += offsets
        p, w, state = solve_boxed(G @ W @ C.T, b, np.append(lower, low), np.append(upper, high))
        return p, w, state, C.T @ p

    g, state = np.zeros(len(W)), np.zeros(0, int)
    if count:
        p, _, state = solve_boxed(W[coordinates[:, None], coordinates], start[coordinates], lower, upper)
        g[coordinates] = p
    mode, direction = OPEN, None
    if contact is not None:
        rows, offsets, friction, direction = contact
        tangents = len(rows) - 1
        weight = rows[0] @ W @ rows[0]
        if weight <= 1e-12 * (rows[0] @ rows[0]) * np.abs(W).max():  # everything that could lift it is locked
            return g, dict(zip(boxes, state)), STICK, None
        normal = rows[0] @ (start + W @ g) + offsets[0]
        if normal < -1e-12 * max(1.0, abs(rows[0] @ start)):
            mode = SLIP
            if friction == 0.0 or tangents == 0:
                direction = np.zeros(tangents)
            elif direction is None:
                everything = np.full(tangents, INF)
                p, w, state, g = solve(rows, rows, offsets, np.append(0.0, -everything), np.append(INF, everything))
                tangential = p[count + 1:]
                size = np.linalg.norm(tangential)
                if size <= friction * p[count] * (1.0 + 1e-9):
                    mode = STICK
                else:
                    direction = -tangential / size
            if mode == SLIP:
                fixed = contact[3] is not None or not direction.any()
                consistent = False
                for _ in range(1 if fixed else 25):
                    column = rows[0] - friction * direction @ rows[1:]
                    if rows[0] @ W @ column < JAM * weight:
                        break
                    try:
                        p, w, state, g = solve(rows[:1], column[None], offsets[:1], [0.0], [INF])
                    except SimulationError:
                        break
                    sliding = rows[1:] @ (start + W @ g) + offsets[1:]
                    size = np.linalg.norm(sliding)
                    consistent = state[count] == 0 and (fixed or size == 0.0
                                                        or np.linalg.norm(sliding / size - direction) < 1e-10)
                    if consistent or fixed:
                        break
                    direction = sliding / size if size > 0.0 else direction
                if not consistent and direction.any():
                    p, w, state, g = _bounded(solve, rows, offsets, friction, direction, count)
                    mode = STICK
            if state[count] != 0:
                mode, direction = OPEN, None
    return g, dict(zip(boxes, state[:count])), mode, direction


def _bounded(solve, rows, offsets, friction, direction, count):
    """Coulomb's law by iterating on the bound, |T| ≤ μ N of the round before, along one tangent: for poses where
    sliding with N ≥ 0 has no solution (Painlevé's) or the direction found does not hold. Every round dissipates, so the
    last one may be taken."""
    tangent = direction @ rows[1:]
    both, shift, bound, result = np.stack([rows[0], tangent]), np.append(offsets[0], direction @ offsets[1:]), 0.0, None
    for _ in range(60):
        result = solve(both, both, shift, [0.0, -bound], [INF, bound])
        new = friction * result[0][count]
        if abs(new - bound) <= 1e-10 * (1e-12 + new):
            break
        bound = new
    return result


def settle(mech, x, u, effort, braked, before, forced=()):
    """The Modes that follow a state in which no impact is due; `before` are those of the stretch before, `forced`
    coordinates (and CONTACT) that are held for the rest of the step."""
    drive = u[mech.drive]
    offset = mech.m - mech.n
    sign = np.sign(drive) * mech.dry if mech.has_dry else mech.no_sign
    boxes = {}
    if mech.has_dry and not braked and 0.0 in drive.tolist():
        for i in np.flatnonzero(mech.dry & (drive == 0.0)).tolist():
            boxes[i + offset] = (-mech.friction.static[i], mech.friction.static[i])
    if mech.has_stops and not mech.inside(x):
        q = x[:mech.n]
        for side, reached in ((1, q >= mech.upper), (-1, q <= mech.lower)):
            if reached.any():
                for i in np.flatnonzero(reached & (u[:mech.n] == 0.0)).tolist():
                    low, high = boxes.get(i, (0.0, 0.0))
                    boxes[i] = (low if side < 0 else -INF, high if side > 0 else INF)
    touching = False
    if mech.contact is not None:
        gap = mech.contact.gap(x[:mech.n])
        touching = gap <= TOUCHING or CONTACT in forced
        if touching:
            rows = mech.wide(mech.contact.rows(x[:mech.n]))
            velocity = rows @ u
            touching = velocity[0] <= SLOW or CONTACT in forced
    rows_held = mech.constraints is not None
    if not (boxes or touching or braked or forced):
        return Modes(sign, rows=rows_held)

    if len(boxes) == mech.m and not (touching or braked or forced or rows_held):
        f, _, _ = mech.force(x, u, effort, sign)
        load = (mech.bias(x, u) - f).tolist()  # what holds everything at rest
        if all(boxes[i][0] <= load[i] <= boxes[i][1] for i in boxes):
            return Modes(sign, np.ones(mech.m, bool))
    locked = np.zeros(mech.m, bool)
    if braked:
        locked[mech.drive] = True
    for i in forced:
        if i != CONTACT:
            locked[i] = True
    mode, direction, anchor, depth = OPEN, None, None, 0.0
    if not locked.all() or touching:
        A = mech.mass(x)
        E, rate = mech.constraints.rows(x[:mech.n], u[:mech.n]) if rows_held else (None, None)
        W, R = compliance(A, locked, mech.wide(E) if rows_held else None)
        f, _, _ = mech.force(x, u, effort, np.where(locked[mech.drive], 0.0, sign) if braked or forced else sign)
        start = W @ (f - mech.bias(x, u))
        if rows_held:
            start = start - R @ rate
        contact = None
        if touching:
            sliding = velocity[1:]
            speed = np.linalg.norm(sliding)
            contact = (rows, mech.contact.rates(x[:mech.n], u[:mech.n]), mech.contact.plane.friction,
                       sliding / speed if speed > SLOW else None)
        _, states, mode, direction = _hold(W, start, boxes, contact)
        for i in boxes:
            state = states.get(i, 0)
            if state == 0:
                locked[i] = True
            elif i >= offset and mech.dry[i - offset]:
                sign[i - offset] = -state  # friction at its lower bound: the joint gives way upwards
        if mode == OPEN and touching and CONTACT in forced:
            mode, direction = SLIP, sliding / speed if speed > SLOW else np.zeros(len(sliding))
        if mode != OPEN:
            held = before is not None and before.contact != OPEN
            depth = before.depth if held else min(0.0, gap) if gap < -10 * TOUCHING else 0.0
        if mode == STICK:
            anchor = before.anchor if held and before.contact == STICK else mech.contact.position(x[:mech.n])
    return Modes(sign, locked if locked.any() else None, mode, direction, anchor, depth, rows_held)


def impact_due(mech, x, u):
    """Whether a stop or the contact is being run into."""
    q, qd = x[:mech.n], u[:mech.n]
    if mech.has_stops and not mech.inside(x):
        if (((q >= mech.upper) & (qd > 0.0)) | ((q <= mech.lower) & (qd < 0.0))).any():
            return True
    return (mech.contact is not None and mech.contact.gap(q) <= TOUCHING
            and float((mech.contact.rows(q) @ qd)[0]) < -SLOW)


def impact(mech, x, u, braked=False, rest=(), locked=None):
    """(u⁺, energy taken [J]): the plastic impact that lets no stop or contact be passed, keeps the constraints and the
    brake, and brings the coordinates `rest` to rest; `locked` (m,) bool are coordinates that stay at rest."""
    boxes = {i: (-INF, INF) for i in rest}
    held = locked
    if braked:
        boxes.update({i: (-INF, INF) for i in range(mech.m - mech.n, mech.m)})
    q = x[:mech.n]
    for i in np.flatnonzero(q >= mech.upper).tolist():
        boxes.setdefault(i, (-INF, 0.0))
    for i in np.flatnonzero(q <= mech.lower).tolist():
        boxes.setdefault(i, (0.0, INF))
    E = mech.wide(mech.constraints.jacobian(q)) if mech.constraints is not None else None
    W, R = compliance(mech.mass(x), held, E)
    contact = None
    if mech.contact is not None and mech.contact.gap(q) <= TOUCHING:
        rows = mech.wide(mech.contact.rows(q))
        contact = (rows, np.zeros(len(rows)), mech.contact.plane.friction, None)
    taken = 0.0
    for _ in range(3):  # once, but for a rounding error that would still pass a stop
        g, states, _, _ = _hold(W, u, boxes, contact)
        after = u + W @ g
        for i in boxes:
            if states.get(i, 0) == 0:
                after[i] = 0.0
        if held is not None:
            after[held] = 0.0
        taken -= 0.5 * float(g @ (after + u))
        u, qd = after, after[:mech.n]
        if not (((q >= mech.upper) & (qd > 0.0)) | ((q <= mech.lower) & (qd < 0.0))).any():
            break
    return u, taken


def held_acceleration(mech, x, u, effort, modes):
    """(a (m,), lost, pushed, constraint multipliers (k,), contact forces (1 + t,)) with everything held that Modes
    hold."""
    f, lost, pushed = mech.force(x, u, effort, modes.sign)
    locked = modes.locked
    n, m = mech.n, mech.m
    rows, columns, gamma = [], [], []
    if mech.constraints is not None:
        E, rate = mech.constraints.rows(x[:n], u[:n])
        rows.append(mech.wide(E))
        columns.append(rows[0])
        gamma.append(rate)
    tangents = 0
    if modes.contact != OPEN:
        G = mech.wide(mech.contact.rows(x[:n]))
        rate = mech.contact.rates(x[:n], u[:n])
        tangents = len(G) - 1
        if modes.contact == STICK:
            rows.append(G)
            columns.append(G)
            gamma.append(rate)
        else:
            direction = slip_direction(mech, G, u, modes)
            rows.append(G[:1])
            columns.append(G[:1] - mech.contact.plane.friction * direction[None] @ G[1:])
            gamma.append(rate[:1])
    k = mech.constraints.k if mech.constraints is not None else 0
    lam, normal = np.zeros(k), np.zeros(1 + tangents)
    right = f - mech.bias(x, u)
    A = mech.mass(x)
    free = slice(None)
    if locked is not None:
        free = np.flatnonzero(~locked)
        if not free.size and not rows:
            return np.zeros(m), lost, pushed, lam, normal
        right, A = right[free], A[free[:, None], free]
    a = np.zeros(m)
    if rows:
        G, C, gamma = (stack[0] if len(stack) == 1 else np.concatenate(stack) for stack in (rows, columns, gamma))
        if locked is not None:
            G, C = G[:, free], C[:, free]
        both = solved(A, np.vstack([right, C]).T) if len(A) else np.zeros((0, 1 + len(C)))
        load = reactions(G @ both[:, 1:], -(gamma + G @ both[:, 0]))
        a[free] = both[:, 0] + both[:, 1:] @ load
        lam = load[:k]
        if modes.contact == STICK:
            normal = load[k:]
        elif modes.contact == SLIP:
            normal = load[k] * np.append(1.0, -mech.contact.plane.friction * direction)
            if direction.any():
                drag = np.zeros(m)
                drag[free] = (C[k] - G[k]) * load[k]
                lost = drag if lost is None else lost + drag
    else:
        a[free] = solved(A, right)
    return a, lost, pushed, lam, normal


def reactions(S, b):
    """The reactions S⁻¹ b of rows with the Delassus matrix S (k, k); of least size where rows depend on each other."""
    if len(S) == 1:
        return b / S[0] if abs(S[0, 0]) > 1e-20 else np.zeros(1)
    if len(S) == 2:
        (a, c), (d, e) = S.tolist()
        determinant = a * e - c * d
        if determinant > 1e-10 * abs(a * e):
            return np.array([e * b[0] - c * b[1], a * b[1] - d * b[0]]) / determinant
    scale = np.sqrt(np.maximum(np.abs(np.diagonal(S)), 1e-300))
    return np.linalg.lstsq(S / scale[:, None] / scale, b / scale, rcond=1e-11)[0] / scale


def slip_direction(mech, rows, u, modes):
    """(t,) unit direction the tip slides in; the stored one where there is only one way, or where the velocity has
    no part along it (at a start, and past a stop, so that the end of sliding is a crossing that can be located)."""
    if len(rows) == 3 and modes.direction.any():
        sliding = rows[1:] @ u
        speed = np.linalg.norm(sliding)
        if speed > SLOW and modes.direction @ sliding > 0.0:
            return sliding / speed
    return modes.direction


def jam_margin(mech, x, modes):
    """How far a sliding contact is from jamming: n A⁻¹ (n − μ t)ᵀ / n A⁻¹ nᵀ − JAM, negative where it jams."""
    rows = mech.wide(mech.contact.rows(x[:mech.n]))
    E = mech.wide(mech.constraints.jacobian(x[:mech.n])) if mech.constraints is not None else None
    w = compliance(mech.mass(x), modes.locked, E)[0] @ rows[0]
    drag = mech.contact.plane.friction * modes.direction @ rows[1:]
    return 1.0 - float(w @ drag) / max(float(w @ rows[0]), 1e-300) - JAM


def project(mech, x, u, modes):
    """(x, u): drift of constraints and held contacts removed, positions by Newton and velocities by an impulse,
    both in the mass metric and without the locked coordinates."""
    n = mech.n
    contact = mech.contact if modes.contact != OPEN else None

    def violation(q):
        parts = [mech.constraints.phi(q)] if mech.constraints is not None else []
        if contact is not None:
            parts.append(contact.axes[:1] @ (contact.position(q) - contact.plane.point) - modes.depth)
            if modes.contact == STICK:
                parts.append(contact.tangents @ (contact.position(q) - modes.anchor))
        return np.concatenate(parts)

    def rows(q):
        parts = [mech.constraints.jacobian(q)] if mech.constraints is not None else []
        if contact is not None:
            parts.append(contact.rows(q)[:None if modes.contact == STICK else 1])
        return mech.wide(np.concatenate(parts))

    phi = violation(x[:n])
    worst = np.abs(phi).max()
    if worst > 0.1:
        raise SimulationError(f"constraint drift of {worst:.3g} m in one step cannot be removed; lower dt")
    G, X, S = _towards(mech, x, rows(x[:n]), modes.locked)
    for _ in range(4):
        worst = np.abs(phi).max()
        if worst <= 1e-13:
            break
        x = x - X @ reactions(S, phi)
        phi = violation(x[:n])
        G, X, S = _towards(mech, x, rows(x[:n]), modes.locked)
        if np.abs(phi).max() >= 0.5 * worst:
            break
    return x, u - X @ reactions(S, G @ u)


def _towards(mech, x, G, locked):
    """(G, X = A⁻¹ Gᵀ, S = G X) over the coordinates that are not locked: X S⁻¹ r is the smallest step with G step =
    r."""
    if locked is None:
        X = solved(mech.mass(x), G.T)
        return G, X, G @ X
    free = np.flatnonzero(~locked)
    X = np.zeros((mech.m, len(G)))
    X[free] = solved(mech.mass(x)[free[:, None], free], G[:, free].T) if free.size else 0.0
    return G, X, G @ X
