"""A plant the control tests trust: the textbook's two links, typed here in scalars, apart from all engines."""
from math import cos, sin

import numpy as np
from scipy.integrate import solve_ivp

from twolink_dynamics import State


def textbook_acceleration(q, qd, tau, push=(0.0, 0.0)):
    """q̈ of the shipped arm (L 0.5/0.4 m, m 3/2 kg), tau (2,), and a force (x, z) [N] on the tip in the root frame."""
    (q1, q2), (w1, w2) = q, qd
    c2, s2 = cos(q2), sin(q2)
    m11 = 3.0 * 0.25**2 + 0.0625 + 2.0 * (0.5**2 + 0.2**2 + 2.0 * 0.5 * 0.2 * c2) + 2.0 * 0.16 / 12.0
    m12 = 2.0 * (0.2**2 + 0.5 * 0.2 * c2) + 2.0 * 0.16 / 12.0
    m22 = 2.0 * 0.2**2 + 2.0 * 0.16 / 12.0
    beta = 0.2 * s2
    c1, c12, s1, s12 = cos(q1), cos(q1 + q2), sin(q1), sin(q1 + q2)
    fx, fz = push
    r1 = tau[0] + beta * (2.0 * w1 * w2 + w2 * w2) - 9.81 * (1.75 * c1 + 0.4 * c12) \
        + fx * (-0.5 * s1 - 0.4 * s12) + fz * (0.5 * c1 + 0.4 * c12)
    r2 = tau[1] - beta * w1 * w1 - 9.81 * 0.4 * c12 + fx * (-0.4 * s12) + fz * 0.4 * c12
    d = m11 * m22 - m12 * m12
    return np.array([(m22 * r1 - m12 * r2) / d, (m11 * r2 - m12 * r1) / d])


def textbook_energy(q, qd):
    """Kinetic plus potential energy of the same arm [J]."""
    (q1, q2), (w1, w2) = q, qd
    c2 = cos(q2)
    m11, m12, m22 = 0.8566666666666667 + 0.4 * c2, 0.10666666666666667 + 0.2 * c2, 0.10666666666666667
    return (0.5 * (m11 * w1 * w1 + 2.0 * m12 * w1 * w2 + m22 * w2 * w2)
            + 9.81 * (1.75 * sin(q1) + 0.4 * sin(q1 + q2)))


def tip(q):
    """(x, z) of the tip."""
    return np.array([0.5 * cos(q[0]) + 0.4 * cos(q[0] + q[1]), 0.5 * sin(q[0]) + 0.4 * sin(q[0] + q[1])])


def run_continuous(law, reference, q0, qd0, times, push=None, rtol=1e-9, atol=1e-11):
    """q, qd (N, 2) at `times` with the law inside the integrator (DOP853); push(t, q, qd) -> (x, z) [N]."""
    def rate(t, x):
        tau = law.efforts(t, State(x[:2], x[2:]), reference(t))
        force = (0.0, 0.0) if push is None else push(t, x[:2], x[2:])
        return np.concatenate([x[2:], textbook_acceleration(x[:2], x[2:], tau, force)])

    result = solve_ivp(rate, (times[0], times[-1]), np.concatenate([q0, qd0]), method="DOP853", t_eval=times,
                       rtol=rtol, atol=atol)
    assert result.success, result.message
    return result.y[:2].T, result.y[2:].T


def run_sampled(efforts, q0, qd0, dt, duration, substeps=4, push=None):
    """Like `run_continuous` with efforts(t, q, qd) held over each dt; returns (times, q, qd, tau), RK4 in between."""
    q, qd = np.array(q0, float), np.array(qd0, float)
    count = round(duration / dt)
    rows = []
    h = dt / substeps
    for k in range(count + 1):
        t = k * dt
        tau = efforts(t, q.copy(), qd.copy())
        rows.append((t, q.copy(), qd.copy(), np.array(tau)))
        if k == count:
            break
        for i in range(substeps):
            def force(a, b, s=t + i * h):
                return (0.0, 0.0) if push is None else push(s, a, b)
            k1 = textbook_acceleration(q, qd, tau, force(q, qd))
            k2 = textbook_acceleration(q + 0.5 * h * qd, qd + 0.5 * h * k1, tau, force(q, qd))
            k3 = textbook_acceleration(q + 0.5 * h * qd + 0.25 * h * h * k1, qd + 0.5 * h * k2, tau, force(q, qd))
            k4 = textbook_acceleration(q + h * qd + 0.5 * h * h * k2, qd + h * k3, tau, force(q, qd))
            q = q + h * qd + h * h / 6.0 * (k1 + k2 + k3)
            qd = qd + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return tuple(np.array(column) for column in zip(*rows))
