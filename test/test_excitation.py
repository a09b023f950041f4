"""Excitation: within the limits, at rest at its ends, better than what one would draw by hand, and playable."""

import numpy as np
import pytest
import yaml
from identification_helpers import fourier_motion

from twolink_dynamics import Dynamics, InputError, Reference
from twolink_dynamics.cli import main
from twolink_dynamics.control.joint_trajectory import JointTrajectory
from twolink_dynamics.identification import base_parameters, identify, optimise_excitation, read_log
from twolink_dynamics.identification.model import FrictionTerms, Model
from twolink_dynamics.identification.playback import read_yaml, write_csv, write_yaml


@pytest.fixture(scope="module")
def found(twolink):
    return optimise_excitation(
        twolink,
        iterations=20,
        velocity=[3.0, 4.0],
        acceleration=[8.0, 12.0],
        effort=[25.0, 10.0],
        lower=[-1.0, -2.0],
        upper=[2.0, 2.0],
    )


def test_it_respects_every_limit_and_uses_them(twolink, found):
    t = np.linspace(0.0, found.period, 4001)
    q, qd, qdd = found.sample(t)
    tau = Dynamics(twolink).inverse_dynamics(q, qd, qdd)
    assert (q > [-1.0, -2.0]).all() and (q < 2.0).all()
    assert (np.abs(qd) < [3.0, 4.0]).all() and (np.abs(qdd) < [8.0, 12.0]).all() and (np.abs(tau) < [25.0, 10.0]).all()
    assert max(share.max() for share in found.limits.values()) > 0.85


def test_it_begins_and_ends_at_rest_and_repeats(found):
    for t in (0.0, found.period):
        q, qd, qdd = found.sample(t)
        assert np.abs(qd).max() < 1e-12 and np.abs(qdd).max() < 1e-11
    np.testing.assert_allclose(found.sample(1.234)[0], found.sample(1.234 + found.period)[0], atol=1e-12)
    q, qd, qdd = found.sample(np.linspace(0.0, found.period, 2001))
    h = found.period / 2000
    np.testing.assert_allclose(np.gradient(q, h, axis=0)[1:-1], qd[1:-1], atol=1e-4 * np.abs(qd).max())
    np.testing.assert_allclose(np.gradient(qd, h, axis=0)[1:-1], qdd[1:-1], atol=1e-3 * np.abs(qdd).max())


def condition(model, base, motion):
    W = model.columns(*motion)[..., base.independent].reshape(-1, len(base.independent))
    return np.linalg.cond(W / np.linalg.norm(W, axis=0))


def test_it_is_better_conditioned_than_random_motions(twolink, found):
    model = Model(twolink, FrictionTerms())
    base = base_parameters(model)
    t = np.linspace(0.0, 10.0, 200)
    random = [
        condition(model, base, fourier_motion(np.random.default_rng(seed), 2, (1.5, 2.0), harmonics=5)(t))
        for seed in range(8)
    ]
    best = condition(model, base, found.sample(t))
    assert best == pytest.approx(found.condition, rel=0.1)
    assert best < min(random) and best < 0.7 * np.median(random)


def test_the_search_improves_and_is_reproducible(twolink):
    told = []
    first = optimise_excitation(twolink, iterations=8, seed=4, progress=lambda k, value: told.append(value))
    assert told[-1] == first.condition < told[0] and sorted(told, reverse=True) == told
    again = optimise_excitation(twolink, iterations=8, seed=4)
    np.testing.assert_array_equal(first.a, again.a)


def test_ctrl_c_keeps_the_best(twolink):
    def stop(iteration, value):
        if iteration == 3:
            raise KeyboardInterrupt

    assert optimise_excitation(twolink, iterations=50, progress=stop).interrupted


@pytest.mark.parametrize(
    "limits, message",
    [
        (dict(velocity=0.0), "velocity 0 of joint 'joint1' leaves no motion"),
        (dict(lower=1.0, upper=0.5), "upper − lower -0.5 of joint 'joint1' leaves no motion"),
        (dict(effort=[0.5, 0.1], lower=-0.2, upper=0.2), "effort limits may be below what holds the arm"),
        (dict(period=-1.0), "period -1 s must be positive"),
        (dict(effort=[1.0, 2.0, 3.0]), "is not one value for each of the 2 joints"),
    ],
)
def test_limits_that_leave_nothing(twolink, limits, message):
    with pytest.raises(InputError, match=message):
        optimise_excitation(twolink, iterations=2, **limits)


def test_the_files_are_played_by_the_trajectory_follower(tmp_path, twolink, found):
    points = found.points(rate=50.0, lead=2.0)
    write_yaml(tmp_path / "e.yaml", twolink, points)
    names, read = read_yaml(tmp_path / "e.yaml")
    trajectory = JointTrajectory(twolink, names, read, now=0.0, previous=Reference(*np.zeros((3, 2))))
    for t in np.linspace(2.0, 2.0 + found.period, 37):
        played, expected = trajectory.sample(t), found.sample(t - 2.0)
        np.testing.assert_allclose(played.q, expected[0], atol=1e-5)
        np.testing.assert_allclose(played.qd, expected[1], atol=1e-3)
    message = yaml.safe_load((tmp_path / "e.yaml").read_text())
    assert set(message["points"][0]) == {"positions", "velocities", "accelerations", "time_from_start"}
    write_csv(tmp_path / "e.csv", twolink, points)
    assert read_log(tmp_path / "e.csv", twolink).duration == pytest.approx(found.period)


def test_a_recording_of_it_identifies_the_arm(twolink, found):
    """The loop closed in the package's own simulation: computed torque follows the excitation, the log gives the arm
    back."""
    from identification_helpers import wrong_cad

    from twolink_dynamics import Simulation
    from twolink_dynamics.identification import Log

    arm = twolink.with_joints(damping=[0.3, 0.2], coulomb=[0.8, 0.4])
    dynamics = Dynamics(arm)
    t = np.arange(0.0, found.period, 2e-3)
    q, qd, qdd = found.sample(t)
    simulation = Simulation(arm, dt=2e-3, q=q[0], qd=qd[0])
    states, efforts = [], []
    for k in range(len(t)):
        states.append(np.array(simulation.q))
        feedback = qdd[k] + 400.0 * (q[k] - simulation.q) + 40.0 * (qd[k] - simulation.qd)
        tau = (
            dynamics.inverse_dynamics(simulation.q, simulation.qd, feedback)
            + arm.damping * qd[k]
            + arm.coulomb * np.sign(qd[k])
        )
        simulation.step(tau)
        efforts.append(np.array(simulation.effort))
    rng = np.random.default_rng(6)
    names = {what: ("a", "b") for what in ("position", "velocity", "effort")} | {"time": ("t",)}
    log = Log(
        "played",
        t,
        np.array(states) + 1e-4 * rng.normal(size=q.shape),
        None,
        np.array(efforts) + 0.05 * rng.normal(size=q.shape),
        names,
    )
    result = identify(wrong_cad(twolink), log, hz=10.0)
    true = result.base.K @ Model(arm, FrictionTerms()).prior
    for row, value in zip(result.rows, true):
        assert abs(row.value - value) < max(5.0 * row.error, 0.02 * abs(value)), row.name
    assert all(row.verdict == "identified" for row in result.rows if not row.name.startswith("mz"))


def test_the_command(tmp_path, capsys):
    assert main(["excite", "--iterations", "3", "--out", str(tmp_path / "e"), "--velocity", "2", "--rate", "20"]) == 0
    out = capsys.readouterr().out
    assert "condition" in out and (tmp_path / "e.csv").is_file() and (tmp_path / "e.yaml").is_file()
    assert main(["excite", "--out", str(tmp_path / "no" / "e")]) == 2
    assert "there is no folder" in capsys.readouterr().err
