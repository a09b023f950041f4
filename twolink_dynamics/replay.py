"""Recorded efforts through a plant, and how far its motion is from the recorded one."""
from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .errors import InputError
from .simulation import Simulation
from .trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class Replay:
    """simulated   Trajectory at the recorded times;  recorded  the log's
    rms_q, rms_qd (n,)   root mean square of simulated − recorded, wrapped on continuous joints [rad or m, and per
    second]
    spread_q, spread_qd (n,)   standard deviation of the recording itself, what the errors are to be compared with
    restarts   how often the plant was put back on the recorded state;  ledger  the energy account at the end
    """

    simulated: Trajectory
    recorded: Trajectory
    rms_q: np.ndarray
    rms_qd: np.ndarray
    spread_q: np.ndarray
    spread_qd: np.ndarray
    restarts: int
    ledger: object


def replay(plant, recorded, dt=1e-3, method="rk4", restart=None, progress=None):
    """Drives `plant` from the first recorded state with the recorded efforts, each held until the next sample.

    recorded   Trajectory; its q and qd are compared with, its tau drives
    restart    [s] put the plant back on the recorded state this often: a prediction error over that horizon, which
               is what
               can be judged where the motion is chaotic; None: never
    progress   called with the fraction done
    Raises InputError on a restart below dt, and what Simulation raises.
    """
    arm = plant.arm
    if recorded.n != arm.n:
        raise InputError(f"the recording has {recorded.n} joints, the arm {arm.n}")
    if restart is not None and not restart >= dt:
        raise InputError(f"restart: {restart!r} s must be at least dt = {dt:g} s")
    t = recorded.t - recorded.t[0]
    sim = Simulation(plant, dt, method, q=recorded.q[0], qd=recorded.qd[0])
    steps = max(1, math.ceil(t[-1] / dt - 1e-9))
    rows = np.clip(np.searchsorted(t, np.arange(steps) * dt + 1e-12, side="right") - 1, 0, None)
    q, qd = np.empty((len(t), arm.n)), np.empty((len(t), arm.n))
    q[0], qd[0] = sim.q, sim.qd
    done, since, restarts = 1, 0.0, 0
    mark = max(1, steps // 100)
    for k in range(steps):
        before = sim.q, sim.qd
        sim.step(recorded.tau[rows[k]])
        while done < len(t) and t[done] <= (k + 1) * dt + 1e-12:  # between two steps: a straight line
            part = min(1.0, t[done] / dt - k)
            q[done] = before[0] + part * (sim.q - before[0])
            qd[done] = before[1] + part * (sim.qd - before[1])
            done += 1
        if restart is not None and (k + 1) * dt - since >= restart - 1e-12 and done < len(t):
            since = (k + 1) * dt
            restarts += 1
            sim.set_state(*([np.interp(since, t, column) for column in values.T]
                            for values in (recorded.q, recorded.qd)))
        if progress is not None and (k + 1) % mark == 0:
            progress((k + 1) / steps)
    simulated = Trajectory(recorded.t[:done], q[:done], qd[:done], recorded.tau[:done])
    error, rate = arm.error(q[:done], recorded.q[:done]), qd[:done] - recorded.qd[:done]
    return Replay(simulated, recorded, np.sqrt(np.mean(error**2, axis=0)), np.sqrt(np.mean(rate**2, axis=0)),
                  recorded.q.std(axis=0), recorded.qd.std(axis=0), restarts, sim.ledger)
