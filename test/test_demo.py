"""`twolink demo` as a user starts it: every scenario and other people's arms in real nodes, judged by the exit
status."""
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from twolink_dynamics.cli import main  # noqa: E402
from twolink_dynamics.commands import demo  # noqa: E402
from twolink_dynamics.scenarios import SCENARIOS  # noqa: E402
from twolink_dynamics.trajectory import Trajectory  # noqa: E402

FIELD = ("ros2_control_rrbot", "drake_acrobot", "dfki_acrobot_C1_m10", "dfki_double_pendulum_A0")
AT_ONCE = 2  # demonstrations side by side: they mostly wait for time to pass
PATIENCE = 300.0  # [s] only ends what would never end
COMMAND = [sys.executable, "-m", "twolink_dynamics", "demo", "--headless"]


def environment():
    """Without the domain of this test process: each demonstration finds one of its own."""
    return {key: value for key, value in os.environ.items() if key != "ROS_DOMAIN_ID"}


@pytest.fixture(scope="module")
def shows(request, tmp_path_factory):
    """run(name, arguments) -> CompletedProcess; all that were announced at collection run side by side."""
    pool, running = ThreadPoolExecutor(AT_ONCE), {}

    def work(arguments):
        return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=PATIENCE,
                              env=environment())

    def show(*arguments):
        if arguments not in running:
            running[arguments] = pool.submit(work, arguments)
        return running[arguments]
    yield show
    pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def scenario_shows(shows):
    return {name: shows("--scenario", name) for name in SCENARIOS}


def judged_good(done):
    assert done.returncode == 0, done.stdout + done.stderr
    assert "verdict: good" in done.stdout and "FAIL" not in done.stdout and "Traceback" not in done.stderr


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_ends_with_a_good_verdict(scenario_shows, name):
    judged_good(scenario_shows[name].result())


def test_there_is_a_line_per_second(scenario_shows):
    lines = [line for line in scenario_shows["tracking"].result().stdout.splitlines() if line.startswith("t ")]
    assert len(lines) >= 3
    assert re.match(r"t +\d+\.\d s  q \[.*\]  torque \[.*\]  error \S+  balance \S+ J", lines[-1])


@pytest.fixture(scope="module")
def variations(shows, tmp_path_factory):
    recording = tmp_path_factory.mktemp("demo") / "run.csv"
    return {"hidden payload": shows("--duration", "3", "--hidden-payload", "0.2"),
            "two processes": shows("--duration", "3", "--two-processes", "--record", str(recording)),
            "fast loop": shows("--duration", "3", "--loop-rate", "5000"), "recording": recording}


def test_a_wrong_model_fails(variations):
    done = variations["hidden payload"].result()
    assert done.returncode == 1 and "verdict: FAILED" in done.stdout
    assert re.search(r"ok +energy balance", done.stdout)  # the plant is sound, the model is wrong


def test_two_processes_do_as_well_and_can_be_recorded(variations, twolink):
    judged_good(variations["two processes"].result())
    recorded = Trajectory.from_csv(variations["recording"], joint_names=twolink.joint_names)
    assert recorded.q.shape[1] == 2 and recorded.duration > 2.0 and abs(recorded.tau).max() > 10.0


def test_the_law_inside_the_loop(variations):
    judged_good(variations["fast loop"].result())


@pytest.fixture(scope="module")
def field_shows(shows, field_cases):
    return {name: shows("--duration", "3", "--urdf", str(field_cases / "urdf" / f"{name}.urdf")) for name in FIELD}


@pytest.mark.parametrize("name", FIELD)
def test_other_peoples_arms(field_shows, name):
    judged_good(field_shows[name].result())


def test_a_ur5(shows):
    paths = [Path(folder) / "cmeel.prefix/share/example-robot-data/robots/ur_description/urdf/ur5_robot.urdf"
             for folder in sys.path]
    found = [path for path in paths if path.is_file()]
    if not found:
        pytest.skip("example-robot-data is not installed")
    done = shows("--duration", "3", "--urdf", str(found[0]), "--tip", "tool0").result()
    judged_good(done)


def test_ctrl_c_ends_it_at_once_and_quietly():
    process = subprocess.Popen([*COMMAND, "--duration", "1000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True,
                               env=environment())
    assert process.stdout.readline().startswith("t ")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130 and "Traceback" not in err + out


@pytest.mark.parametrize("arguments, said", [
    (["--urdf", "no_such_arm"], "no URDF file 'no_such_arm'"), (["--scenario", "dance"], "the scenarios are tracking"),
    (["--duration", "1"], "at least 3 s"), (["--two-processes", "--loop-rate", "5000"], "one process"),
    (["--tip", "nose"], "tip 'nose' is no link")])
def test_wrong_arguments_are_one_line(capsys, arguments, said):
    assert main(["demo", "--headless", *arguments]) == 2
    line = capsys.readouterr().err.strip()
    assert said in line and line.startswith("twolink: error: ")


def test_without_rclpy_it_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setattr(demo.importlib.util, "find_spec", lambda name: None)
    assert main(["demo", "--headless"]) == 2
    assert "pip install" in capsys.readouterr().err


def test_without_viser_it_goes_on_with_the_text(capsys, monkeypatch):
    monkeypatch.setattr(demo.importlib.util, "find_spec", lambda name: None if name == "viser" else True)
    import argparse
    parser = argparse.ArgumentParser()
    demo.add_arguments(parser)
    assert demo.Show(parser.parse_args([])).extra == ()
    assert "pip install viser" in capsys.readouterr().err
