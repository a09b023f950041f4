"""Batches of states on one thread and on all, growth with N and n, and rollouts."""
from __future__ import annotations

import numpy as np

from twolink_dynamics import Dynamics
from twolink_dynamics.batch import simulate_batch
from twolink_dynamics.kernels import compile as compiler
from twolink_dynamics.kernels.engine import cores

from . import c_code, models
from .timing import race, show

STATES = 16384


def contenders(name, kernel, count=STATES):
    """{contender: (call, states)} of a batch."""
    arm = models.arm(name)
    q, qd, u = np.random.default_rng(1).normal(size=(3, count, arm.n))
    columns = [np.ascontiguousarray(x.T) for x in (q, qd, u)]
    out, out_columns = np.empty((count, arm.n)), np.empty((arm.n, count))
    entries = {}
    if compiler.available():
        one, every = Dynamics(arm, "llvm", threads=1), Dynamics(arm, "llvm")
        compiled = one.kernel(kernel)
        entries["ours, rows"] = (lambda: getattr(one, kernel)(q, qd, u, out=out), count)
        entries["ours, structure of arrays"] = (lambda: compiled.columns(columns, out_columns, 1), count)
        if cores() > 1:
            entries[f"ours, rows, {cores()} threads"] = (lambda: getattr(every, kernel)(q, qd, u, out=out), count)
    generated = Dynamics(arm, "numpy")
    entries["ours without llvmlite (NumPy)"] = (lambda: getattr(generated, kernel)(q, qd, u, out=out), count)
    try:
        pin, model, _ = models.pinocchio(name)
        pool = pin.ModelPool(model, 1)
        loop = pin.rneaInParallel if kernel == "inverse_dynamics" else pin.abaInParallel
        ordered = [np.asfortranarray(c) for c in columns]
        entries["Pinocchio, parallel loop, 1 thread"] = (lambda: loop(1, pool, *ordered), count)
    except (ImportError, AttributeError, ValueError):
        pass
    try:
        library = c_code.library(arm, kernel)
        arguments = [a.ctypes.data for a in (q, qd, u, out)]
        in_columns = [a.ctypes.data for a in (*columns, out_columns)]
        entries["exported C -O3, rows"] = (lambda: library.rows(*arguments, count), count)
        entries["exported C -O3, structure of arrays"] = (lambda: library.columns(*in_columns, count), count)
        if kernel == "inverse_dynamics" and arm.n == 2 and count % 4 == 0:
            hand = c_code.by_hand(arm)
            for call, given, result in ((hand.hand_rows, arguments, out),
                                        (hand.hand_columns, in_columns, out_columns.T)):
                call(*given, count)
                assert np.abs(result - generated.inverse_dynamics(q, qd, u)).max() < 1e-12 * np.abs(result).max()
            entries["hand-written SIMD C -O3, rows"] = (lambda: hand.hand_rows(*arguments, count), count)
            entries["hand-written SIMD C -O3, SoA"] = (lambda: hand.hand_columns(*in_columns, count), count)
    except RuntimeError:
        pass
    return entries


def rollouts(count, steps):
    """{contender: (call, steps)} of RK4 at 1 ms on the shipped arm."""
    name = "twolink (2)"
    arm = models.arm(name).with_joints(damping=0.0, coulomb=0.0)
    q0 = np.random.default_rng(2).normal(size=(count, arm.n))
    rest, tau = np.zeros((count, arm.n)), np.zeros(arm.n)
    entries = {}
    if compiler.available():
        dynamics = Dynamics(arm, "llvm", threads=1)
        entries["ours"] = (lambda: simulate_batch(dynamics, q0, rest, tau, 1e-3, steps, every=steps), count * steps)
    generated = Dynamics(arm, "numpy")
    few = min(steps, 20)
    entries["ours without llvmlite"] = (lambda: simulate_batch(generated, q0, rest, tau, 1e-3, few, every=few),
                                        count * few)
    try:
        mj, model, data = models.mujoco(name)
        from mujoco import rollout
        short = min(steps, 200)
        start = np.concatenate([np.zeros((count, 1)), q0, rest], axis=1)
        if mj.mj_stateSize(model, mj.mjtState.mjSTATE_FULLPHYSICS) != start.shape[1]:
            start = np.zeros((count, mj.mj_stateSize(model, mj.mjtState.mjSTATE_FULLPHYSICS)))
            start[:, 1:1 + arm.n] = q0
        runner = rollout.Rollout(nthread=0)
        entries["MuJoCo rollout"] = (lambda: runner.rollout(model, data, start, nstep=short), count * short)
    except (ImportError, AttributeError, ValueError):
        pass
    try:
        library = c_code.library(arm, "inverse_dynamics")
        states = np.concatenate([q0, rest], axis=1)

        def c_run():
            for row in states[:64]:
                library.rollout(row.ctypes.data, row.ctypes.data + 8 * arm.n, tau.ctypes.data, 1e-3, steps)
        entries["exported C -O3, one by one"] = (c_run, min(count, 64) * steps)
    except RuntimeError:
        pass
    return entries


def run():
    """Batches, growth, rollouts."""
    results = {}
    for name in models.available():
        for kernel in ("inverse_dynamics", "forward_dynamics"):
            table = results[f"{name} {kernel}"] = race(contenders(name, kernel),
                                                       against="Pinocchio, parallel loop, 1 thread", rounds=7)
            show(f"{kernel}, {name}, {STATES} states, per state", table)
    for count in (1, 10, 100, 1000, 10_000, 100_000, 1_000_000):
        entries = contenders("twolink (2)", "inverse_dynamics", count)
        table = results[f"growth {count}"] = race({k: v for k, v in entries.items() if k == "ours, rows"}, rounds=5)
        show(f"twolink, rows, N = {count}", table)
    for count, steps in ((1, 20_000), (1024, 100)):
        table = results[f"rk4 {count}"] = race(rollouts(count, steps), against="MuJoCo rollout", rounds=5)
        show(f"RK4 at 1 ms, twolink, {count} trajectories, per step (x: times faster than MuJoCo)", table)
    return results
