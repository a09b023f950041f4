"""The kernels there are: what goes in, what comes out, and the trace that makes each."""
from __future__ import annotations

from typing import Callable, NamedTuple

import numpy as np

from ..arm import Arm
from ..errors import InputError, choices
from . import model

VERSION = 1  # of the traces and emitters together; part of every cache key
PARAMETERS = "parameters"  # the run-time input of live kernels: gravity (3), then `model.base_parameters`


class Kernel(NamedTuple):
    """inputs: names of the (n,) arguments, `dt` of size 1; shape: of one result; outputs(tracer, …): the trace."""

    inputs: tuple
    shape: Callable
    outputs: Callable
    frame: bool = False  # whether it belongs to a frame of the arm (the tip, or a named link)
    damping: bool = False  # whether viscous joint friction is part of it


def flat(matrix):
    """The entries of nested lists, row by row."""
    return [x for row in matrix for x in row]


def rk4(tracer_at, damping, q, qd, tau, dt):
    """One classical Runge–Kutta step of q̈ = M⁻¹ (τ − h − b q̇) with τ held: q, q̇, and (n,) ∫ b q̇² by its quadrature."""
    def rate(q, qd):
        return tracer_at(q).forward_dynamics(qd, [t - b * v for t, b, v in zip(tau, damping, qd)])

    def moved(x, step, rate):
        return [a + step * b for a, b in zip(x, rate)]

    half = 0.5 * dt
    a1 = rate(q, qd)
    v2 = moved(qd, half, a1)
    a2 = rate(moved(q, half, qd), v2)
    v3 = moved(qd, half, a2)
    a3 = rate(moved(q, half, v2), v3)
    v4 = moved(qd, dt, a3)
    a4 = rate(moved(q, dt, v3), v4)
    sixth = dt * (1.0 / 6.0)

    def combined(x, k1, k2, k3, k4):
        return [value + sixth * ((a + d) + 2.0 * (b + c)) for value, a, b, c, d in zip(x, k1, k2, k3, k4)]

    squares = [[v * v for v in stage] for stage in (qd, v2, v3, v4)]
    lost = [b * work for b, work in zip(damping, combined([0.0] * len(q), *squares))]
    return combined(q, qd, v2, v3, v4), combined(qd, a1, a2, a3, a4), lost


KERNELS = {
    "inverse_dynamics": Kernel(("q", "qd", "qdd"), lambda n, links: (n,),
                               lambda t, at, q, qd, qdd: t.inverse_dynamics(qd, qdd)),
    "forward_dynamics": Kernel(("q", "qd", "tau"), lambda n, links: (n,),
                               lambda t, at, q, qd, tau: t.forward_dynamics(qd, tau)),
    "bias": Kernel(("q", "qd"), lambda n, links: (n,), lambda t, at, q, qd: t.inverse_dynamics(qd, [0.0] * t.n)),
    "gravity": Kernel(("q",), lambda n, links: (n,),
                      lambda t, at, q: t.inverse_dynamics([0.0] * t.n, [0.0] * t.n)),
    "mass_matrix": Kernel(("q",), lambda n, links: (n, n), lambda t, at, q: flat(t.mass_matrix())),
    "coriolis_matrix": Kernel(("q", "qd"), lambda n, links: (n, n), lambda t, at, q, qd: flat(t.coriolis_matrix(qd))),
    "energy": Kernel(("q", "qd"), lambda n, links: (2,), lambda t, at, q, qd: list(t.energy(qd))),
    "tip_pose": Kernel(("q",), lambda n, links: (12,),
                       lambda t, at, q: t.tip_pose(at.link, at.pose.rotation, at.pose.translation), frame=True),
    "jacobian": Kernel(("q",), lambda n, links: (6, n),
                       lambda t, at, q: flat(t.jacobian(at.link, at.pose.translation)), frame=True),
    "jacobian_rate": Kernel(("q", "qd"), lambda n, links: (6,),
                            lambda t, at, q, qd: t.jacobian_rate(qd, at.link, at.pose.translation), frame=True),
    "regressor": Kernel(("q", "qd", "qdd"), lambda n, links: (n, 10 * links),
                        lambda t, at, q, qd, qdd: flat(t.regressor(qd, qdd))),
    "rk4_step": Kernel(("q", "qd", "tau", "dt"), lambda n, links: (2, n), None, damping=True),
}

# For the simulation alone: viscous friction (n,) is an input, the energy it takes (n,) [J] a third row of the result.
DAMPED_STEP = Kernel(("q", "qd", "tau", "damping", "dt"), lambda n, links: (3, n), None)


def kernel(name):
    """The Kernel of that name; raises InputError listing what there is."""
    if name == "damped_step":
        return DAMPED_STEP
    try:
        return KERNELS[name]
    except KeyError:
        raise InputError(f"no kernel '{name}'; there are {choices(KERNELS, 20)}") from None


def parameter_values(arm):
    """(6 + 10 N,) what a live kernel of this arm takes: gravity, then the base parameters."""
    return np.concatenate([arm.gravity, model.base_parameters(arm, model.kernel_joints(arm))])


def trace(arm: Arm, name, live=False, frame=None, damping=None):
    """The Function of kernel `name` for this arm.

    live       gravity and the links' inertias stay inputs (the vector `parameters`) instead of being folded
    frame      name of the link frame of tip_pose, jacobian, jacobian_rate; None: the tip
    damping    (n,) viscous friction of rk4_step [N m s/rad]; None: none
    """
    from .graph import Function, Graph  # a warm start runs on cached code and needs neither
    from .trace import Tracer
    spec = kernel(name)
    joints = model.kernel_joints(arm)
    graph = Graph()
    values = parameter_values(arm)
    if live:
        keep = ~np.concatenate([[False] * 3, model.emptied(joints)])
        symbols = [graph.input(PARAMETERS, i) if keep[i] else 0.0 for i in range(len(values))]
    else:
        symbols = values.tolist()
    bodies = []
    for i in range(len(joints)):
        m, hx, hy, hz, xx, xy, yy, xz, yz, zz = symbols[6 + model.BODY * i:6 + model.BODY * (i + 1)]
        bodies.append((m, (hx, hy, hz), ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))))

    def tracer_at(q):
        return Tracer(joints, tuple(bodies), tuple(symbols[3:6]), tuple(symbols[:3]), q)

    sizes = [(argument, 1 if argument == "dt" else arm.n) for argument in spec.inputs]
    arguments = [[graph.input(argument, k) for k in range(size)] for argument, size in sizes]
    if spec is DAMPED_STEP:
        outputs = flat(rk4(tracer_at, arguments[3], *arguments[:3], arguments[4][0]))
    elif spec.outputs is None:
        friction = [0.0] * arm.n if damping is None else np.asarray(damping, float).tolist()
        outputs = flat(rk4(tracer_at, friction, *arguments[:3], arguments[3][0])[:2])
    else:
        at = arm.frame(frame) if spec.frame else None
        if at is not None:  # the frame in the kernel's own link axes
            turn = joints[at.link].turn if at.link >= 0 else np.eye(3)
            rotation, translation = model.snapped(turn.T @ at.pose.rotation), turn.T @ at.pose.translation
            at = at._replace(pose=type(at.pose)(model.rows(rotation), tuple(map(float, translation))))
        outputs = spec.outputs(tracer_at(arguments[0]), at, *arguments)
    if live:
        sizes.append((PARAMETERS, len(values)))
    return Function(graph, name, sizes, outputs, spec.shape(arm.n, len(joints)))
