"""simulate_batch: the same RK4 steps as one Simulation, for many states, on any number of cores."""
import numpy as np
import pytest
from arms import random_arm, random_state

from twolink_dynamics import Dynamics, InputError, TwolinkWarning
from twolink_dynamics import batch as batch_module
from twolink_dynamics.batch import simulate_batch
from twolink_dynamics.kernels import compile as compiler
from twolink_dynamics.simulation import Simulation

PER_STEP = 1e-12  # relative, per step: two orders of the same roundings
needs_llvm = pytest.mark.skipif(not compiler.available(), reason="llvmlite is not installed")
engines = pytest.mark.parametrize("engine", [pytest.param("llvm", marks=needs_llvm), "numpy", "python"])
DT, STEPS = 1e-3, 16


@pytest.fixture
def damped(twolink):
    return twolink.with_joints(damping=[0.3, 0.1], coulomb=0.0)


def by_hand(arm, q, qd, tau_at, every):
    """RK4 with newton_euler, one array for all."""
    reference = Dynamics(arm, "newton_euler")
    q, qd = np.broadcast_arrays(np.asarray(q, float), np.asarray(qd, float))
    kept = [(q, qd)]
    for step in range(STEPS):
        now = tau_at(step)

        def rate(q, qd, now=now):
            return reference.forward_dynamics(q, qd, np.broadcast_to(now, q.shape) - arm.damping * qd)
        a1 = rate(q, qd)
        v2 = qd + DT / 2 * a1
        a2 = rate(q + DT / 2 * qd, v2)
        v3 = qd + DT / 2 * a2
        a3 = rate(q + DT / 2 * v2, v3)
        v4 = qd + DT * a3
        a4 = rate(q + DT * v3, v4)
        q, qd = q + DT / 6 * (qd + 2 * v2 + 2 * v3 + v4), qd + DT / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        if (step + 1) % every == 0:
            kept.append((q, qd))
    return (np.stack(part, axis=-2) for part in zip(*kept))


@engines
@pytest.mark.parametrize("batch", [(), (2, 3)])
@pytest.mark.parametrize("kind", ["one", "each", "sampled", "sampled each"])
def test_agrees_with_newton_euler(damped, engine, batch, kind):
    rng = np.random.default_rng(3)
    q, qd = rng.normal(size=(2, *batch, 2))
    shape = {"one": (2,), "each": (*batch, 2), "sampled": (STEPS, 2), "sampled each": (*batch, STEPS, 2)}[kind]
    tau = rng.normal(size=shape)
    sampled = kind.startswith("sampled")
    result = simulate_batch(Dynamics(damped, engine), q, qd, tau, DT, STEPS, every=4)
    q_want, qd_want = by_hand(damped, q, qd, lambda s: tau[..., s, :] if sampled else tau, 4)
    assert result.q.shape == (*batch, 5, 2) and np.abs(result.t - 4 * DT * np.arange(5)).max() < 1e-15
    assert np.abs(result.q - q_want).max() < STEPS * PER_STEP
    assert np.abs(result.qd - qd_want).max() < STEPS * PER_STEP * np.abs(qd_want).max()


def test_agrees_with_simulation(damped):
    """The plant without limits: smooth, so that both are the same RK4."""
    arm = damped.with_joints(lower=-np.inf, upper=np.inf, effort_limit=np.inf)
    q, qd, tau = np.array([0.4, -0.9]), np.array([0.5, 1.0]), np.array([3.0, -1.0])
    simulation = Simulation(arm, dt=DT, q=q, qd=qd)
    assert simulation.substeps == 1
    batch = simulate_batch(arm, q, qd, tau, DT, STEPS)
    for step in range(1, STEPS + 1):
        simulation.step(tau)
        assert np.abs(simulation.q - batch.q[step]).max() < step * PER_STEP
        assert np.abs(simulation.qd - batch.qd[step]).max() < step * PER_STEP * 10.0


def test_does_not_depend_on_pieces_or_cores(damped):
    q, qd, _ = random_state(damped, batch=(700,))
    runs = [simulate_batch(Dynamics(damped, threads=threads), q, qd, [0.1, 0.2], DT, 60, every=every)
            for threads in (1, 4) for every in (1, 6)]
    for run in runs:
        assert (run.q[:, -1] == runs[0].q[:, -1]).all() and (run.qd[:, -1] == runs[0].qd[:, -1]).all()
    assert (runs[0].q[:, ::6] == runs[1].q).all()
    alone = simulate_batch(Dynamics(damped, threads=1), q[3], qd[3], [0.1, 0.2], DT, 60, every=6)
    assert np.abs(alone.q - runs[1].q[3]).max() < 60 * PER_STEP


@engines
def test_live_gravity_and_payload(damped, engine):
    live = Dynamics(damped, engine, live=True)
    live.set_payload(2.0)
    live.set_gravity((0.0, 0.0, -1.62))
    changed = damped.with_payload(2.0).with_gravity((0.0, 0.0, -1.62))
    ours = simulate_batch(live, [0.1, 0.2], [0.0, 0.0], [0.5, 0.0], DT, 20)
    theirs = simulate_batch(Dynamics(changed, engine), [0.1, 0.2], [0.0, 0.0], [0.5, 0.0], DT, 20)
    assert np.abs(ours.q - theirs.q).max() < 20 * PER_STEP


def test_trees_with_mimics():
    arm = random_arm(8, n=4)
    q, qd, tau = random_state(arm, batch=(6,))
    results = [simulate_batch(Dynamics(arm, engine), 0.3 * q, 0.1 * qd, 0.1 * tau, 1e-4, 5) for engine in
               ("numpy", None)]
    assert np.abs(results[0].q - results[1].q).max() < 1e-10


def test_energy_is_kept_without_friction(twolink):
    arm = twolink.with_joints(damping=0.0, coulomb=0.0)
    dynamics = Dynamics(arm)
    run = simulate_batch(dynamics, np.array([[1.2, -0.5], [0.0, 2.0]]), [0.0, 0.0], [0.0, 0.0], DT, 2000, every=100)
    energy = sum(dynamics.energy(run.q, run.qd))
    assert np.abs(run.q[:, -1] - run.q[:, 0]).max() > 0.5, "it must have moved"
    assert np.abs(energy - energy[:, :1]).max() < 1e-6  # RK4 at 1 ms over 2 s


def test_progress_is_reported(damped):
    seen = []
    simulate_batch(damped, np.zeros((3000, 2)), [0.0, 0.0], [0.0, 0.0], DT, 60, progress=seen.append)
    assert seen[-1] == 1.0 and seen == sorted(seen) and len(seen) > 1


@pytest.mark.parametrize("every", [1, 7, 42])
def test_pieces_change_no_bit(damped, monkeypatch, every):
    """Also where one kept state is many pieces after the last; only the end may be wanted of a long run."""
    q, qd, tau = np.random.default_rng(4).normal(size=(3, 5, 2))
    tau = tau[:, None] * np.sin(np.arange(42.0))[:, None]
    dynamics = Dynamics(damped)
    whole = simulate_batch(dynamics, q, qd, tau, DT, 42, every=every)
    seen = []
    monkeypatch.setattr(batch_module, "PIECE", 8 * dynamics.kernel("rk4_step").weight * len(q) * 10)
    pieces = simulate_batch(dynamics, q, qd, tau, DT, 42, every=every, progress=seen.append)
    assert (pieces.q == whole.q).all() and (pieces.qd == whole.qd).all()
    assert len(seen) >= 5 and seen == sorted(seen) and seen[-1] == 1.0


def test_coulomb_friction_is_left_out_loudly(damped):
    with pytest.warns(TwolinkWarning, match="Coulomb friction of joint1, joint2 is left out"):
        simulate_batch(damped.with_joints(coulomb=0.3), [0.0, 0.0], [0.0, 0.0], [0.0, 0.0], DT, 2)


@pytest.mark.parametrize("change, message", [
    ({"steps": 0}, "steps: 0 must be a whole number"), ({"steps": 2.5}, "steps: 2.5"),
    ({"every": 3}, "every: 3 does not divide the 16 steps"), ({"dt": 0.0}, "dt: 0.0 must be a positive"),
    ({"dt": np.nan}, "dt: nan"), ({"q0": np.zeros(3)}, r"q0: shape \(3,\)"),
    ({"tau": np.zeros((7, 2))}, r"tau \(7, 2\)"), ({"arm": "twolink"}, "needs an Arm or a Dynamics"),
    ({"q0": np.zeros((10**6, 2)), "steps": 10**6}, "GB")])
def test_refusals(damped, change, message):
    arguments = {"arm": damped, "q0": np.zeros((3, 2)), "qd0": np.zeros(2), "tau": np.zeros(2), "dt": DT,
                 "steps": STEPS, "every": 1, **change}
    with pytest.raises(InputError, match=message):
        simulate_batch(**arguments)


def test_nan_stays_in_its_trajectory(damped):
    q = np.zeros((9, 2))
    q[4, 1] = np.nan
    run = simulate_batch(damped, q, [0.0, 0.0], [0.1, 0.0], DT, 10)
    bad = np.isnan(run.q[:, -1]).any(axis=-1)
    assert bad[4] and bad.sum() == 1
