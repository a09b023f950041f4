"""Residual learning: it learns what the model lacks, only that, and its guard rails hold."""
import json
import threading
from dataclasses import replace

import numpy as np
import pytest
from arms import build_arm

from twolink_dynamics import cli
from twolink_dynamics.arm import CONTINUOUS
from twolink_dynamics.dynamics import Dynamics
from twolink_dynamics.errors import InputError, ModelError
from twolink_dynamics.identification import Log
from twolink_dynamics.model_tests.motions import Oscillation
from twolink_dynamics.residual import Residual, training
from twolink_dynamics.residual.compiled import compile_python
from twolink_dynamics.trajectory import Trajectory

LESS = 0.6  # tracking RMS must fall by this share: what the literature reports for learnt residuals
BITS = 1e-9  # machine code against NumPy: the order of summation differs, weights are of order 10
STEP = 2e-3  # [s] of the closed loops below


def spring(q, qd):
    """A cable that pulls both joints back [N m]."""
    return 3.0 * (q[0] - 0.2), 1.0 * (q[1] + 0.3)


def ripple(q, qd):
    """Torque ripple of the gears."""
    return 1.5 * np.sin(12.0 * q[0]), 0.6 * np.sin(9.0 * q[1] + 0.4)


def stribeck(q, qd):
    """Friction whose force falls with speed before it rises."""
    return tuple(c * ((1.0 + 0.5 * np.exp(-(v / 0.15) ** 2)) * np.tanh(v / 0.02) + 0.3 * v)
                 for c, v in zip((1.0, 0.4), qd))


def nothing(q, qd):
    return 0.0, 0.0


EFFECTS = (spring, ripple, stribeck)
SEEDS = (1, 2, 3)


def motion(seed, size, duration):
    rng = np.random.default_rng(seed)
    amplitudes = rng.uniform(0.2, 1.0, (2, 3))
    amplitudes *= size / amplitudes.sum(1, keepdims=True)
    return Oscillation([-0.3, 0.2], amplitudes, 2.0 * np.pi * rng.uniform(0.1, 0.6, 3), rng.uniform(0.0, 6.28, (2, 3)),
                       duration, 1.0)


def sampled(motions):
    """A function t -> q, q̇, q̈ (B, n) of all motions at once; they share their envelope."""
    centre, w = np.array([m.q0 for m in motions]), np.array([m.omegas for m in motions])[:, None, :]
    size, phase = (np.array([getattr(m, name) for m in motions]) for name in ("amplitudes", "phases"))

    def sample(t):
        s, sd, sdd = motions[0]._envelope(t)
        sine, cosine = size * np.sin(w * t + phase), size * np.cos(w * t + phase)
        x, xd, xdd = sine.sum(2), (cosine * w).sum(2), -(sine * w * w).sum(2)
        return centre + s * x, s * xd + sd * x, s * xdd + 2.0 * sd * xd + sdd * x
    for name, value in zip(("q", "qd", "qdd"), sample(1.7)):  # the same as each of them says
        np.testing.assert_allclose(value[-1], getattr(motions[-1].sample(1.7), name), rtol=1e-12, atol=1e-12)
    return sample


def closed_loops(arm, effects, motions, duration, learnt=None, noise=2e-5):
    """Computed torque with the exact rigid model on plants with an effect more; all at once as one batch. Logs and the
    RMS tracking errors (B,) [rad]. Integrated here with RK4, apart from the package's simulation."""
    dynamics, rng = Dynamics(arm), np.random.default_rng(5)
    together = sampled(motions)
    q, qd, _ = together(0.0)
    rows, errors = [], []

    groups = [(effect, [i for i, other in enumerate(effects) if other is effect]) for effect in set(effects)]

    def acceleration(q, qd, tau):
        lost = np.empty_like(q)
        for effect, at in groups:
            lost[at, 0], lost[at, 1] = effect(q[at].T, qd[at].T)
        return dynamics.forward_dynamics(q, qd, tau - lost)
    for k in range(int(duration / STEP)):
        qr, qdr, qddr = together(k * STEP)
        seen, rate = q + noise * rng.normal(size=q.shape), qd + 10 * noise * rng.normal(size=q.shape)
        tau = dynamics.inverse_dynamics(seen, rate, qddr + 100.0 * (qr - seen) + 20.0 * (qdr - rate))
        if learnt is not None:
            tau = tau + np.array([r.torque(a, b, c) for r, a, b, c in zip(learnt, seen, rate, qddr)])
        rows.append((seen, rate, tau))
        errors.append(qr - q)
        a1 = acceleration(q, qd, tau)
        a2 = acceleration(q + STEP / 2 * qd, qd + STEP / 2 * a1, tau)
        a3 = acceleration(q + STEP / 2 * qd + STEP**2 / 4 * a1, qd + STEP / 2 * a2, tau)
        a4 = acceleration(q + STEP * qd + STEP**2 / 2 * a2, qd + STEP * a3, tau)
        q, qd = q + STEP * qd + STEP**2 / 6 * (a1 + a2 + a3), qd + STEP / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
    columns = [np.array(column) for column in zip(*rows)]
    logs = [Trajectory(STEP * np.arange(len(rows)), *(column[:, b] for column in columns)) for b in range(len(motions))]
    return logs, np.sqrt(np.mean(np.sum(np.square(errors), axis=2), axis=0))


@pytest.fixture(scope="module")
def trained(twolink):
    """{(effect, seed): (residual, tracking RMS of the model alone, and with the residual)}, unseen motions."""
    keys = [(effect, seed) for effect in EFFECTS for seed in SEEDS] + [(nothing, 1)]
    effects = [effect for effect, _ in keys]
    motions = [motion(seed + more, 1.5, 12.0) for more in (0, 10) for _, seed in keys]
    logs, _ = closed_loops(twolink, 2 * effects, motions, 12.0)
    learnt = [training.fit([one, two], twolink, samples=2500, iterations=80, seed=seed).compile()
              for one, two, (_, seed) in zip(logs, logs[len(keys):], keys)]
    unseen = [motion(100 + seed, 1.1, 5.0) for _, seed in keys]
    _, before = closed_loops(twolink, effects, unseen, 5.0)
    _, after = closed_loops(twolink, effects, unseen, 5.0, learnt)
    return {key: result for key, *result in zip(keys, learnt, before, after)}


@pytest.fixture(scope="module")
def learnt(trained):
    return trained[spring, 1][0]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("effect", EFFECTS)
def test_tracking_error_falls_by_sixty_percent(trained, effect, seed):
    _, before, after = trained[effect, seed]
    assert before > 0.01, "the effect must spoil the tracking for this to mean anything"
    assert after <= (1.0 - LESS) * before


def test_an_exact_model_is_left_alone(trained):
    residual, before, after = trained[nothing, 1]
    assert not residual.clip.any() and residual.notes["useful"] == [False, False]
    assert after == before


def test_ripple_is_found_where_it_is(trained):
    found = dict(map(tuple, trained[ripple, 1][0].notes["harmonics"]))
    assert found["joint1"] == pytest.approx(12.0, abs=0.2) and found["joint2"] == pytest.approx(9.0, abs=0.2)


def test_output_is_bounded_finite_and_fades(learnt):
    rng = np.random.default_rng(0)
    wild = rng.normal(size=(3, 500, 2)) * 10.0 ** rng.uniform(-3, 6, (3, 500, 1))
    wild.reshape(-1)[rng.integers(0, wild.size, 300)] = rng.choice([np.nan, np.inf, -np.inf], 300)
    tau = learnt.torque(*wild)
    assert np.isfinite(tau).all() and (np.abs(tau) <= learnt.clip).all() and tau.any()
    assert not tau[~np.isfinite(wild).all(axis=(0, 2))].any()
    inside, zero = learnt.centre[:2], np.zeros(2)
    assert learnt.fade(inside, zero, zero) == 1.0
    edge = learnt.centre[0] + learnt.half[0] * np.linspace(1.0, 1.3, 301)
    fade = np.array([learnt.fade(np.array([q, inside[1]]), zero, zero) for q in edge])
    assert fade[0] == 1.0 and fade[-1] == 0.0 and (np.diff(fade) <= 0.0).all()
    assert np.abs(np.diff(fade)).max() < 0.01  # smooth: no step among 300


@pytest.mark.parametrize("kind", ["machine", "Python"])
def test_straight_line_code_equals_numpy(learnt, kind):
    if kind == "machine":
        pytest.importorskip("llvmlite", reason="llvmlite is not installed")
        assert type(learnt._fast) is type(len)  # a C function
    one = replace(learnt)
    object.__setattr__(one, "_fast", compile_python(learnt) if kind == "Python" else learnt._fast)
    rng = np.random.default_rng(1)
    states = learnt.centre + learnt.half * rng.uniform(-1.4, 1.4, (400, 6))
    states[::17, rng.integers(0, 6)] = np.nan
    states[3], states[5, 0], states[7, :2] = 1e308, -np.inf, (np.inf, -np.inf)
    slow = learnt.torque(*np.split(states, 3, axis=1))
    assert np.count_nonzero(slow) > 50 and (slow[[3, 5, 7]] == 0.0).all()
    for state, expected in zip(states, slow):
        fast = one.torque(*np.split(state, 3))
        assert type(fast) is np.ndarray and np.abs(fast - expected).max() <= BITS
    q = states[1, :2]
    assert np.abs(one.torque(q.tolist(), q.tolist(), q.tolist()) - one.torque(q, q, q)).max() <= BITS
    with pytest.raises(InputError, match="joint1, joint2"):
        one.torque(np.zeros(3), np.zeros(3), np.zeros(3))


def test_threads_share_one_residual(learnt):
    q = learnt.centre[:2] + 0.1
    expected, wrong = learnt.torque(q, q, q), []

    def work():
        for _ in range(500):
            if not np.array_equal(learnt.torque(q, q, q), expected):
                wrong.append(1)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_continuous_joints_wrap(twolink):
    arm = build_arm(3, (CONTINUOUS,), (-1,))
    rng = np.random.default_rng(2)
    t = np.arange(4000) * 5e-3
    q = (3.0 + 0.8 * np.sin(1.3 * t) + 0.3 * np.sin(2.9 * t))[:, None]  # across ±π
    qd, qdd = np.gradient(q, t, axis=0), np.gradient(np.gradient(q, t, axis=0), t, axis=0)
    tau = Dynamics(arm).inverse_dynamics(q, qd, qdd) + 0.5 * np.sin(7.0 * q) + 1e-3 * rng.normal(size=q.shape)
    residual = training.fit([Trajectory(t, q, qd, tau, qdd)], arm, iterations=60)
    still = np.zeros((1, 1))
    here = np.array([[3.3]])
    assert abs(residual.torque(here, still, still)).max() > 0.2
    np.testing.assert_allclose(residual.torque(here - 2.0 * np.pi, still, still), residual.torque(here, still, still),
                               atol=1e-9)
    assert all(k == round(k) for k in residual.harmonic)
    residual.compile()
    np.testing.assert_allclose(residual.torque(here[0] - 2.0 * np.pi, still[0], still[0]),
                               residual.torque(here, still, still)[0], atol=1e-9)


def test_files_round_trip_and_refuse_another_arm(learnt, twolink, tmp_path):
    path = tmp_path / "residual.npz"
    learnt.save(path)
    again = Residual.load(path, twolink)
    q = learnt.centre[:2]
    np.testing.assert_array_equal(again.torque(q, q * 0, q * 0), learnt.torque(q, q * 0, q * 0))
    Residual.load(path, twolink.with_gravity((0.0, 9.81, 0.0)))  # mounted on a wall it still lacks the same spring
    with pytest.raises(ModelError, match="learn it again"):
        Residual.load(path, twolink.with_payload(1.0))
    with pytest.raises(ModelError, match="this arm has joint1"):
        Residual.load(path, build_arm(3, (CONTINUOUS,), (-1,)))
    with np.load(path, allow_pickle=False) as data:  # nothing in it needs pickle
        assert json.loads(str(data["header"]))["joint_names"] == ["joint1", "joint2"]


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04broken"])
def test_other_files_are_refused_in_one_line(content, tmp_path):
    path = tmp_path / "x.npz"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        Residual.load(path)
    assert "\n" not in str(caught.value) and "x.npz" in str(caught.value)
    with pytest.raises(InputError, match="no residual file"):
        Residual.load(tmp_path / "missing.npz")


def test_damaged_arrays_are_refused(learnt, tmp_path):
    learnt.save(tmp_path / "good.npz")
    with np.load(tmp_path / "good.npz") as data:
        content = {name: data[name] for name in data.files}
    for name, value in (("clip", np.array([1.0, np.nan])), ("hidden", content["hidden"][:, :-1]),
                        ("harmonic_joint", content["harmonic_joint"] + 7), ("scale", -content["scale"])):
        np.savez(tmp_path / "bad.npz", **{**content, name: value})
        with pytest.raises(InputError, match="bad.npz"):
            Residual.load(tmp_path / "bad.npz")


def test_bad_logs_are_named(twolink):
    t = np.arange(200) * 0.01
    zero = np.zeros((200, 2))

    class Log:
        pass

    def log(**change):
        one = Log()
        one.__dict__.update(dict(t=t, q=zero, qd=zero, tau=zero, qdd=None), **change)
        return one
    broken = zero.copy()
    broken[7, 1] = np.nan
    back = t.copy()
    back[50] = 0.1
    for bad, words in ((log(tau=broken), "tau of joint 2 is nan at sample 7"), (log(t=back), "at sample 50"),
                       (log(q=zero[:, :1]), "q has shape"),
                       (log(t=t[:20], q=zero[:20], qd=zero[:20], tau=zero[:20]), "too few")):
        with pytest.raises(InputError, match=words):
            training.fit([bad], twolink)
    with pytest.raises(InputError, match="no log"):
        training.fit([], twolink)


def test_a_log_with_breaks_and_without_velocities_will_do(twolink):
    logs, _ = closed_loops(twolink, [spring], [motion(8, 1.5, 8.0)], 8.0)
    one, half = logs[0], len(logs[0].t) // 2
    t = np.concatenate([one.t[:half], one.t[half:] - one.t[half]])  # the clock was set back
    log = Log("cut", t, one.q, None, one.tau, breaks=(half,))
    residual = training.fit([log], twolink, iterations=20, samples=800)
    assert residual.notes["useful"] == [True, True]
    with pytest.raises(InputError, match="time goes from"):
        training.fit([Log("cut", t, one.q, None, one.tau)], twolink)


def test_interrupted_training_keeps_the_best(twolink):
    logs, _ = closed_loops(twolink, [spring], [motion(8, 1.5, 4.0)], 4.0)

    def progress(iteration, error):
        if iteration == 5:
            raise KeyboardInterrupt
    residual = training.fit(logs, twolink, iterations=50, samples=500, progress=progress)
    assert residual.notes["interrupted"] and residual.notes["iterations"] == 4


def test_command_learns_and_reports(twolink, tmp_path, capsys):
    logs, _ = closed_loops(twolink, [spring, nothing], [motion(8, 1.5, 6.0)] * 2, 6.0)
    for name, log in zip(("spring", "nothing"), logs):
        log.to_csv(tmp_path / f"{name}.csv", twolink.joint_names)
    out = str(tmp_path / "r.npz")
    fast = ["--iterations", "30", "--urdf", "twolink", "--out", out]
    assert cli.main(["learn-residual", str(tmp_path / "spring.csv"), *fast]) == 0
    text = capsys.readouterr()
    assert "joint1: unseen residual" in text.out and "learning: step" in text.err
    assert Residual.load(out, twolink).clip.all()
    assert cli.main(["learn-residual", str(tmp_path / "nothing.csv"), *fast]) == 1
    assert "its output is 0" in capsys.readouterr().out
    good = str(tmp_path / "spring.csv")
    for arguments in (["missing.csv", *fast], [good, "--cutoff", "0"], [good, "--out", "/nowhere/r.npz"]):
        assert cli.main(["learn-residual", *arguments]) == 2
        error = capsys.readouterr().err.strip().splitlines()[-1]
        assert error.startswith("twolink: error:")
