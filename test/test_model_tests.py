"""Model tests: the right model passes all of them, each wrong one fails the right one and not the others."""
import json
from dataclasses import replace

import numpy as np
import pytest

from twolink_dynamics import cli
from twolink_dynamics.arm import Link
from twolink_dynamics.dynamics import Dynamics
from twolink_dynamics.errors import InputError
from twolink_dynamics.flexible import FlexibleJoints
from twolink_dynamics.friction import Friction
from twolink_dynamics.model_tests import (
    TESTS,
    BenchStopped,
    EffortBench,
    Model,
    SimulationBench,
    Workspace,
    static,
    sweep,
    tracking,
)
from twolink_dynamics.model_tests import friction as friction_test
from twolink_dynamics.model_tests.bench import Guard
from twolink_dynamics.model_tests.motions import Oscillation, Rest, Sequence
from twolink_dynamics.plant import Plant
from twolink_dynamics.resources import find_urdf
from twolink_dynamics.sensors import Sensors
from twolink_dynamics.urdf import load_urdf

RATE = 200.0  # [Hz] of the bench
SHORT = {"static": dict(points=2), "friction": dict(speeds=(0.05, 0.2, 0.6)),
         "sweep": dict(frequencies=(0.8, 2.0, 6.0)), "tracking": dict(duration=10.0)}


@pytest.fixture(scope="module")
def arm(twolink):
    """The shipped arm with friction, so that there is something to separate."""
    return twolink.with_joints(coulomb=[0.6, 0.2], damping=[0.3, 0.1])


def with_mass(arm, scale):
    """The arm with its last link heavier, inertia and all."""
    last = arm.links[-1]
    return replace(arm, links=(*arm.links[:-1], Link(last.name, last.mass * scale, last.com, last.inertia * scale)))


def half_coriolis(arm):
    """The shipped arm's inverse dynamics with q̇1 q̇2 where 2 q̇1 q̇2 belongs (β sin q2 = 0.2 sin q2)."""
    dynamics = Dynamics(arm)

    def inverse(q, qd, qdd):
        tau = np.array(dynamics.inverse_dynamics(q, qd, qdd))
        tau[..., 0] += 0.2 * np.sin(q[..., 1]) * qd[..., 0] * qd[..., 1]
        return tau
    return inverse


@pytest.fixture(scope="module")
def experiments(arm):
    """{test: (plan, log)} on the true plant, with noisy sensors; models are judged on these logs afterwards."""
    workspace, model = Workspace.of(arm), Model(arm)
    made = {}
    for name, test in TESTS.items():
        bench = SimulationBench(arm, q=workspace.centre, rate=RATE, effort_noise=0.02,
                                sensors=Sensors(position_noise=1e-5, velocity_noise=1e-3, seed=1))
        plan = test.plan(model, workspace, **SHORT[name])
        made[name] = plan, bench.follow(plan.motion)
    return made


def verdicts(experiments, model):
    return {name: TESTS[name].analyse(plan, log, model).passed for name, (plan, log) in experiments.items()}


def test_right_model_passes_all(experiments, arm):
    assert all(verdicts(experiments, Model(arm)).values())


@pytest.mark.parametrize("scale", [0.92, 1.08])
def test_wrong_mass_fails_the_static_test_alone(experiments, arm, scale):
    model = Model(with_mass(arm, scale))
    assert verdicts(experiments, model) == dict(static=False, friction=True, sweep=True, tracking=True)
    result = static.analyse(*experiments["static"], model)
    assert f"link2 {100.0 * (1.0 / scale - 1.0):+.1f} %" in result.lines[-1]  # and it says which mass


@pytest.mark.parametrize("wrong", [dict(coulomb=[0.4, 0.1]), dict(coulomb=[0.6, 0.4]), dict(coulomb=0.0, damping=0.0)])
def test_wrong_friction_fails_the_friction_test_alone(experiments, arm, wrong):
    model = Model(arm.with_joints(**wrong))
    assert verdicts(experiments, model) == dict(static=True, friction=False, sweep=True, tracking=True)


def test_missing_velocity_product_fails_the_tracking_test_alone(experiments, arm):
    right, wrong = Model(arm), Model(arm, half_coriolis(arm))
    log = experiments["tracking"][1]
    still = np.zeros_like(log.q)
    assert np.abs(right.inverse(log.q, log.qd, still) - wrong.inverse(log.q, log.qd, still)).max() > 0.5  # [N m]
    assert verdicts(experiments, wrong) == dict(static=True, friction=True, sweep=True, tracking=False)


def test_much_too_heavy_a_model_is_useless_and_says_so(experiments, arm):
    result = tracking.analyse(*experiments["tracking"], Model(with_mass(arm, 2.0)))
    assert not result.passed and "link masses" in result.lines[-1]


def test_friction_terms_are_separated():
    """Coulomb, viscous and Stribeck of the plant come back from the low-speed experiment."""
    one = load_urdf(find_urdf("twolink"), locked={"joint2": 0.3})
    truth, workspace = Friction([0.5], [0.4], [0.9], [0.06]), Workspace.of(one)
    bench = SimulationBench(Plant(one, friction=truth), q=workspace.centre, rate=RATE)
    speeds = (0.02, 0.04, 0.07, 0.12, 0.25, 0.5, 0.9)
    result, log = friction_test.run(bench, Model(one, friction=truth), workspace, speeds=speeds)
    assert result.passed
    terms = result.numbers["terms"]["joint1"]
    for key, value in (("Fc", 0.5), ("Fv", 0.4), ("Fs", 0.9), ("vs", 0.06)):
        assert terms[key] == pytest.approx(value, rel=0.12), key
    plain = Model(one, friction=Friction([0.5], [0.4]))  # without the Stribeck term
    assert not friction_test.analyse(friction_test.plan(plain, workspace, speeds), log, plain).passed


def test_separation_of_exact_curves():
    v = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.8])
    plain = friction_test.separate(v, 0.6 + 0.3 * v, 1e-3)
    assert plain["vs"] is None and plain["Fc"] == pytest.approx(0.6) and plain["Fv"] == pytest.approx(0.3)
    full = friction_test.separate(v, 0.6 + 0.3 * v + 0.4 * np.exp(-(v / 0.1) ** 2), 1e-3)
    assert full["Fs"] == pytest.approx(1.0, rel=0.02) and full["vs"] == pytest.approx(0.1, rel=0.05)


def test_elastic_joints_fail_the_sweep(twolink):
    """A compliance the rigid model has not, one of its modes near 9 Hz."""
    arm = twolink.with_joints(rotor_inertia=4e-3, gear_ratio=10.0)
    plant = Plant(arm, flexible=FlexibleJoints([4000.0, 300.0], [10.0, 3.0]))
    workspace = Workspace.of(arm)
    bench = SimulationBench(plant, arm, q=workspace.centre, rate=RATE, bandwidth=8.0)
    result, _ = sweep.run(bench, Model(arm), workspace, frequencies=(1.0, 2.5, 5.0))
    assert not result.passed


# -- motions and plans -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("test", TESTS.values(), ids=TESTS)
def test_plans_are_continuous_and_stay_inside(arm, test):
    workspace = Workspace.of(arm, [0.3, -0.4], 0.7)
    motion = test.plan(Model(arm), workspace).motion
    times = np.linspace(0.0, motion.duration, 4001)
    q = np.array([motion.sample(t).q for t in times])
    reach = 1e-9 + 0.06 * (test is static)  # a static crossing starts that far beyond its pose
    assert (np.abs(q - workspace.centre) <= workspace.half + reach).all()
    assert np.abs(np.diff(q, axis=0)).max() <= 1.01 * np.max(arm.velocity_limit) * times[1]
    assert (np.array([motion.sample(t).qd for t in times]) <= 0.5 * arm.velocity_limit + 1e-9).all()


def test_oscillation_derivatives():
    motion = Oscillation([0.1, -0.2], [[0.3, 0.1], [0.2, 0.4]], [2.0, 5.0], [[0.1, 0.2], [1.0, 2.0]], 4.0, 1.0)
    for t in (0.3, 0.9, 2.0, 3.4, 3.9):
        step = 1e-5
        before, at, after = (motion.sample(t + k * step) for k in (-1, 0, 1))
        np.testing.assert_allclose(at.qd, (after.q - before.q) / (2 * step), atol=1e-8)
        np.testing.assert_allclose(at.qdd, (after.qd - before.qd) / (2 * step), atol=1e-7)
    assert motion.sample(0.0).q.tolist() == motion.sample(4.0).q.tolist() == [0.1, -0.2]
    chain = Sequence([Rest([0.1, -0.2], 1.0), motion])
    assert chain.duration == 5.0 and chain.sample(3.0).q.tolist() == motion.sample(2.0).q.tolist()


def test_more_joints_get_a_spread_of_poses():
    arm = load_urdf(find_urdf("sixlink"))
    poses = static.grid(Workspace.of(arm))
    assert poses.shape == (48, 6) and (np.ptp(poses, axis=0) > Workspace.of(arm).half).all()


def test_workspace_refuses_what_cannot_be(arm):
    with pytest.raises(InputError, match="joint2"):
        Workspace.of(arm, [0.0, 2.9])
    with pytest.raises(InputError, match="span"):
        Workspace.of(arm, span=-1.0)


# -- guards ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("change, word", [(dict(q=[3.5, 0.0]), "position of joint 'joint1'"),
                                          (dict(qd=[0.0, 11.0]), "velocity of joint 'joint2'"),
                                          (dict(effort=[np.nan, 0.0]), "effort of joint 'joint1'"),
                                          (dict(q=[0.0, np.nan]), "position of joint 'joint2'"),
                                          (dict(reference=[0.0, 0.8]), "tracking error of joint 'joint2'")])
def test_guard_names_joint_and_limit(arm, change, word):
    values = {name: np.array(change.get(name, [0.0, 0.0])) for name in ("q", "qd", "effort", "reference")}
    with pytest.raises(BenchStopped, match=word):
        Guard(arm).check(0.0, **values)


def test_guard_clamps_once_and_stops_what_lasts(arm):
    guard, zero = Guard(arm), np.zeros(2)
    assert guard.check(0.0, zero, zero, np.array([70.0, -5.0]), zero).tolist() == [60.0, -5.0]
    with pytest.raises(BenchStopped, match="effort of joint 'joint1' is 70, allowed -60 to 60"):
        guard.check(0.2, zero, zero, np.array([70.0, 0.0]), zero)


def test_guard_forgives_what_a_late_message_asks_for(arm):
    guard, zero = Guard(arm), np.zeros(2)
    guard.check(0.0, zero, zero, zero, zero)
    wild, calm = np.array([122.0, 0.0]), np.array([20.0, 0.0])
    for t, effort in ((0.4, wild), (0.45, wild), (0.48, calm), (0.9, wild)):  # states went missing before 0.4 and 0.9
        assert guard.check(t, zero, zero, effort, zero)[0] <= 60.0
    with pytest.raises(BenchStopped, match="effort"):
        guard.check(1.05, zero, zero, wild, zero)


def test_arm_that_does_not_follow_is_brought_to_rest(arm):
    class Weak(SimulationBench):
        stopped = False

        def effort(self, state, reference):
            return 0.03 * super().effort(state, reference)

        def stop(self):
            super().stop()
            self.stopped = True
    bench = Weak(arm, q=[0.0, 0.0], rate=RATE)
    with pytest.raises(BenchStopped, match="tracking error"):
        bench.follow(Rest(np.zeros(2), 5.0))
    assert bench.stopped and np.abs(bench.simulation.qd).max() < 0.1


def test_effort_bench_is_only_an_interface(arm):
    with pytest.raises(NotImplementedError):
        EffortBench(arm).follow(Rest(np.zeros(2), 1.0))


# -- command -----------------------------------------------------------------------------------------------------------
def test_command_writes_report_and_figures(tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    out = tmp_path / "report"
    arguments = ["test-model", "--rate", "125", "--points", "2", "--only", "static", "--out", str(out)]
    assert cli.main(arguments) == 0
    assert "static: PASS" in capsys.readouterr().out
    assert cli.main([*arguments, "--plant-payload", "0.3"]) == 1
    text = capsys.readouterr().out
    assert "verdict: FAIL (static)" in text and "explained best by link masses" in text
    assert not json.loads((out / "results.json").read_text())[0]["passed"]
    assert (out / "static.png").stat().st_size > 5000 and (out / "static.csv").is_file()


def test_command_tests_own_equations(tmp_path, capsys):
    """A student's derivation with the factor 2 forgotten."""
    (tmp_path / "mine.py").write_text("""
import numpy as np
def torque(q, qd, qdd, k=1.0):
    c2, s2 = np.cos(q[:, 1]), np.sin(q[:, 1])
    M11, M12, M22 = 0.8566666667 + 0.4 * c2, 0.1066666667 + 0.2 * c2, 0.1066666667
    g2 = 3.924 * np.cos(q[:, 0] + q[:, 1])
    return np.stack([M11 * qdd[:, 0] + M12 * qdd[:, 1] - 0.2 * s2 * (k * qd[:, 0] * qd[:, 1] + qd[:, 1]**2)
                     + 17.1675 * np.cos(q[:, 0]) + g2,
                     M12 * qdd[:, 0] + M22 * qdd[:, 1] + 0.2 * s2 * qd[:, 0]**2 + g2], axis=1)
def right(q, qd, qdd):
    return torque(q, qd, qdd, 2.0)
""")
    arguments = ["test-model", "--rate", "125", "--only", "tracking", "--model"]
    assert cli.main([*arguments, f"{tmp_path}/mine.py:right"]) == 0
    assert cli.main([*arguments, f"{tmp_path}/mine.py:torque"]) == 1
    assert "tracking: FAIL" in capsys.readouterr().out


@pytest.mark.parametrize("arguments, word", [
    (["--urdf", "nowhere.urdf"], "nowhere.urdf"), (["--points", "1"], "--points"), (["--centre", "1,2,3"], "--centre"),
    (["--centre", "a,b"], "numbers"), (["--model", "x.py:f"], "FILE.py:NAME"), (["--rate", "-3"], "--rate"),
    (["--ros", "effort", "--plant-payload", "1"], "--plant-payload"), (["--span", "nan"], "span")])
def test_command_refuses_in_one_line(arguments, word, capsys):
    assert cli.main(["test-model", *arguments]) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1 and error[0].startswith("twolink: error:") and word in error[0]
