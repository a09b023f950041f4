"""A true arm, a wrong CAD of it, and recordings of the true one with noise, quantisation and delay."""

from dataclasses import replace

import numpy as np

from twolink_dynamics import newton_euler
from twolink_dynamics.arm import Link
from twolink_dynamics.identification import Log


def wrong_cad(arm, masses=(1.3, 0.8), com=1.1, inertia=1.2):
    """The arm as a drawing office might have it: other masses, centres and inertias, no friction."""
    links = tuple(
        Link(link.name, link.mass * f, link.com * com, link.inertia * f * inertia) for link, f in zip(arm.links, masses)
    )
    return replace(arm, links=links).with_joints(damping=0.0, coulomb=0.0)


def fourier_motion(rng, n, amplitude, period=10.0, harmonics=8):
    """A function t → q, q̇, q̈ of random Fourier series with the given amplitudes (n,) [rad]."""
    k = np.arange(1, harmonics + 1)
    w = 2.0 * np.pi / period * k
    a, b = rng.normal(size=(2, n, harmonics))

    def motion(t):
        phase = np.outer(t, w)
        s, c = np.sin(phase), np.cos(phase)
        return (s @ (a / w).T - c @ (b / w).T, c @ a.T + s @ b.T, -s @ (a * w).T + c @ (b * w).T)

    scale = np.asarray(amplitude) / np.abs(motion(np.linspace(0.0, period, 500))[0]).max(0)
    return lambda t: tuple(x * scale for x in motion(t))


def record(
    arm,
    seed,
    duration=20.0,
    rate=500.0,
    delay=0.0,
    position_noise=1e-4,
    position_quantum=3.8e-4,
    effort_noise=0.1,
    effort_quantum=5.86e-3,
    velocities=False,
    amplitude=(1.5, 1.2),
    torque=None,
):
    """A Log of the arm following a random motion exactly; what sensors do to it is seeded. torque(t, q, qd, qdd) adds
    to τ."""
    rng = np.random.default_rng(seed)
    motion = fourier_motion(rng, arm.n, amplitude)
    t = np.arange(0.0, duration, 1.0 / rate)
    q, qd, qdd = motion(t)
    tau = newton_euler.inverse_dynamics(arm, q, qd, qdd) + arm.damping * qd + arm.coulomb * np.sign(qd)
    if torque is not None:
        tau = tau + torque(t, q, qd, qdd)
    q_seen, qd_seen, _ = motion(t - delay)
    q_seen = q_seen + position_noise * rng.normal(size=q.shape)
    tau = tau + effort_noise * rng.normal(size=q.shape)
    if position_quantum:
        q_seen = position_quantum * np.round(q_seen / position_quantum)
    if effort_quantum:
        tau = effort_quantum * np.round(tau / effort_quantum)
    names = [str(k + 1) for k in range(arm.n)]
    sources = {"time": ("time",)} | {
        what: tuple(stem + k for k in names)
        for what, stem in (("position", "pos"), ("velocity", "vel"), ("effort", "tau"))
    }
    return Log(f"seed{seed}", t, q_seen, qd_seen if velocities else None, tau, sources, np.arange(1, len(t) + 1))


def write_csv(path, log, header="time,pos1,pos2,vel1,vel2,tau1,tau2", qd=None, change=None, t=None):
    """The log as CSV text; change(rows) may spoil the table (N, columns) as strings."""
    velocity = log.qd if qd is None else qd
    table = np.column_stack([log.t if t is None else t, log.q, velocity, log.tau])
    rows = [[repr(float(x)) for x in row] for row in table]
    if change:
        change(rows)
    path.write_text("\n".join([header, *(",".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return path
