"""The experiments over ROS topics: a simulator node in a process of its own, by efforts and by trajectories."""
import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from ros_harness import Started  # noqa: E402

from twolink_dynamics import cli  # noqa: E402
from twolink_dynamics.model_tests import BenchStopped  # noqa: E402
from twolink_dynamics.model_tests.motions import Oscillation, Rest  # noqa: E402
from twolink_dynamics.nodes.bench_client import RosBench  # noqa: E402

PATIENCE = 60.0  # [s] of the loaded machine, not of the arm
MOTION = Oscillation([0.2, -0.3], [[0.25], [0.3]], [3.0], [[0.0], [1.0]], 4.0, 1.0)


@pytest.fixture
def simulator(tmp_path):
    """A simulator in namespace /bench, in lockstep so that a loaded machine slows time and not the loop."""
    node = Started(tmp_path / "simulator.log", "simulator_node", "/bench",
                   {"urdf": "twolink", "joint_state_rate": 100.0, "lockstep": "true", "command_timeout": 1.0})
    yield node
    node.end()


def test_effort_bench_follows_and_measures(simulator, twolink):
    with RosBench(twolink, namespace="/bench", patience=PATIENCE, bandwidth=12.0) as bench:
        log = bench.follow(MOTION)
        assert log.duration > 3.5 and np.diff(log.t).max() < 1.0
        off = np.array([MOTION.sample(t).q for t in log.t]) - log.q
        assert np.abs(off).max() < 0.2  # [rad] it follows; how well is the machine's affair
        assert np.abs(log.tau).max() > 5.0  # carrying the arm takes up to 21 N m
        with pytest.raises(BenchStopped, match="also commands"):
            with RosBench(twolink, namespace="/bench", patience=PATIENCE) as second:
                for _ in range(100):  # a loaded machine discovers late; every motion looks again
                    second.follow(Rest(second.state()[1], 0.1))


def test_trajectory_bench_lets_the_arms_controller_follow(simulator, tmp_path, twolink):
    controller = Started(tmp_path / "dynamics.log", "dynamics_node", "/bench",
                         {"urdf": "twolink", "controller": "computed_torque", "enabled": "true", "state_timeout": 2.0})
    try:
        with RosBench(twolink, "trajectory", namespace="/bench", patience=PATIENCE) as bench:
            log = bench.follow(MOTION)
        assert log.duration > 3.5 and np.ptp(log.q, axis=0).min() > 0.3
    finally:
        controller.end()


def test_without_an_arm_it_says_so_in_one_line(twolink, capsys):
    with pytest.raises(BenchStopped, match="no joint_states with joint1, joint2"):
        RosBench(twolink, namespace="/nobody", patience=0.5)
    assert cli.main(["test-model", "--ros", "telepathy"]) == 2
    assert "effort" in capsys.readouterr().err
