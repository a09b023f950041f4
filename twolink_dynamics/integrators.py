"""Schemes that advance a smooth stretch of motion: ẋ = u, u̇ = a(x, u).

A scheme is called as ``scheme(flow, x, u, h)`` with ``flow(x, u) -> (a, lost, pushed)``: the acceleration (m,) and the
generalised forces (m,) whose work is wanted, friction's and the environment's (either may be None). It returns
``(x, u, work of lost, work of pushed)`` after h seconds; x and u are never changed in place. The works use the scheme's
own quadrature, so that they fit the motion to the scheme's order.
"""
from __future__ import annotations

import numpy as np

from .errors import InputError, SimulationError, choices


def rk4(flow, x, u, h):
    """Classical Runge–Kutta, order 4 (Hairer, Nørsett & Wanner, Solving ODEs I, table 1.2)."""
    half = 0.5 * h
    a1, lost1, pushed1 = flow(x, u)
    u2 = u + half * a1
    a2, lost2, pushed2 = flow(x + half * u, u2)
    u3 = u + half * a2
    a3, lost3, pushed3 = flow(x + half * u2, u3)
    u4 = u + h * a3
    a4, lost4, pushed4 = flow(x + h * u3, u4)
    sixth = h / 6.0
    taken = given = 0.0
    if lost1 is not None:
        taken = sixth * float(lost1 @ u + 2.0 * (lost2 @ u2 + lost3 @ u3) + lost4 @ u4)
    if pushed1 is not None:
        given = sixth * float(pushed1 @ u + 2.0 * (pushed2 @ u2 + pushed3 @ u3) + pushed4 @ u4)
    return x + sixth * (u + 2.0 * (u2 + u3) + u4), u + sixth * (a1 + 2.0 * (a2 + a3) + a4), taken, given


def semi_implicit(flow, x, u, h):
    """Semi-implicit (symplectic) Euler, order 1: u⁺ = u + h a(x, u), x⁺ = x + h u⁺."""
    a, lost, pushed = flow(x, u)
    u = u + h * a
    taken = h * float(lost @ u) if lost is not None else 0.0
    given = h * float(pushed @ u) if pushed is not None else 0.0
    return x + h * u, u, taken, given


def dop853(flow, x, u, h, rtol=1e-10, atol=1e-12):
    """Dormand–Prince 8(5,3) with error control (SciPy's), the works being two more integrated states."""
    from scipy.integrate import DOP853
    m = x.size

    def rate(_, y):
        speed = y[m:2 * m]
        a, lost, pushed = flow(y[:m], speed)
        return np.concatenate([speed, a, [0.0 if lost is None else lost @ speed,
                                          0.0 if pushed is None else pushed @ speed]])

    start = np.concatenate([x, u, [0.0, 0.0]])
    solver = DOP853(rate, 0.0, start, h, rtol=rtol, atol=atol, first_step=h)
    while solver.status == "running":
        message = solver.step()
    if solver.status == "failed":
        raise SimulationError(f"dop853: {message}")
    y = solver.y
    return y[:m], y[m:2 * m], float(y[-2]), float(y[-1])


class RungeKuttaKernel:
    """One RK4 step of q̈ = M⁻¹ (τ − h − b q̇) in machine code, through buffers that stay where they are.

    Called as ``kernel(q, qd, tau, damping)``, each (n,); returns (q, qd, energy that b takes (n,) [J]) after dt.
    Raises InputError where the engine has no machine code."""

    def __init__(self, dynamics, dt):
        self.dynamics = dynamics
        n = dynamics.n
        _, self._step = dynamics.pointer("damped_step")
        self._input = np.empty((4, n))
        self._dt, self._output = np.array([dt]), np.empty((3, n))
        live = [] if dynamics.parameters is None else [dynamics.parameters]
        buffers = [*self._input, self._dt, *live, self._output]
        self._addresses = [buffer.ctypes.data for buffer in buffers]
        self._keep = buffers

    def __call__(self, q, qd, tau, damping):
        self._input[0], self._input[1], self._input[2], self._input[3] = q, qd, tau, damping
        self._step(*self._addresses)
        return self._output.copy()


METHODS = {"rk4": rk4, "semi_implicit": semi_implicit, "dop853": dop853}

# |λ| h that fixed steps may reach, λ being the plant's fastest linear mode: far inside the stability limits (2.78 of
# RK4 and 2 of semi-implicit Euler on the imaginary axis), so that RK4 damps such a mode by only 3e-5 per step.
RESOLVED = 0.4


def scheme(name):
    """The scheme of that name; raises InputError listing them."""
    try:
        return METHODS[name]
    except (KeyError, TypeError):
        raise InputError(f"no integration method '{name}'; the methods are {choices(METHODS)}") from None
