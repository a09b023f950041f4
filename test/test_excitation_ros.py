"""The whole loop with real nodes: an excitation is played to an arm that differs from its CAD, recorded, identified."""
import os
import re
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from twolink_dynamics import InputError, load_urdf  # noqa: E402
from twolink_dynamics.cli import main  # noqa: E402
from twolink_dynamics.identification import FrictionTerms, identify, optimise_excitation, read_log  # noqa: E402
from twolink_dynamics.identification.model import Model  # noqa: E402
from twolink_dynamics.identification.playback import read_motion, write_yaml  # noqa: E402
from twolink_dynamics.resources import resource  # noqa: E402

PATIENCE = 300.0  # [s] only ends what would never end


@pytest.fixture(scope="module")
def files(tmp_path_factory, twolink):
    """(YAML of a short excitation, URDF of the true arm: other masses, and friction)."""
    folder = tmp_path_factory.mktemp("play")
    found = optimise_excitation(twolink, iterations=6, period=5.0, velocity=2.5)
    write_yaml(folder / "e.yaml", twolink, found.points())
    text = resource("urdf", "twolink.urdf").read_text()
    text = text.replace('<mass value="3.0"/>', '<mass value="3.6"/>').replace('<mass value="2.0"/>',
                                                                              '<mass value="1.5"/>')
    friction = iter(((0.4, 1.0), (0.2, 0.5)))

    def add(limit):
        damping, coulomb = next(friction)
        return f'{limit.group(0)}\n    <dynamics damping="{damping}" friction="{coulomb}"/>'
    (folder / "true.urdf").write_text(re.sub(r"<limit [^>]*/>", add, text))
    return folder / "e.yaml", folder / "true.urdf"


def test_excite_play_record_identify(files, twolink, tmp_path):
    excitation, true = files
    truth = load_urdf(true)
    assert truth.links[0].mass == 3.6 and truth.coulomb.tolist() == [1.0, 0.5]  # the arm is not its CAD
    environment = {key: value for key, value in os.environ.items() if key != "ROS_DOMAIN_ID"}
    done = subprocess.run([sys.executable, "-m", "twolink_dynamics", "excite", "--play", str(excitation),
                           "--simulate", str(true), "--record", str(tmp_path / "log.csv")],
                          capture_output=True, text=True, timeout=PATIENCE, env=environment)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stdout + done.stderr
    log = read_log(tmp_path / "log.csv", twolink)
    assert log.duration > 4.5
    result = identify(twolink, log)
    expected = result.base.K @ Model(truth, FrictionTerms()).prior
    for row, value in zip(result.rows, expected):
        # 3 %: two hundred samples a second of a loaded machine, with steps bridged
        assert abs(row.value - value) < max(4.0 * row.error, 0.03 * abs(value)), row.name
    assert result.total_rms(log) < 0.3 * result.total_rms(log, "cad")


def test_a_motion_is_read_back_from_its_first_point(files, twolink, tmp_path):
    motion = read_motion(files[0], twolink)
    assert motion.duration == pytest.approx(5.0) and not np.any(motion.sample(0.0).qd)
    (tmp_path / "other.yaml").write_text(files[0].read_text().replace("joint2", "wrist"))
    with pytest.raises(InputError, match="wrist"):
        read_motion(tmp_path / "other.yaml", twolink)


@pytest.mark.parametrize("text, word", [("hello: 3", "is not a joint trajectory"), ("[", "is not a joint trajectory"),
                                        ("joint_names: [joint1, joint2]\npoints: []", "a point without positions")])
def test_what_cannot_be_played_is_one_line(tmp_path, capsys, text, word):
    (tmp_path / "x.yaml").write_text(text)
    assert main(["excite", "--play", str(tmp_path / "x.yaml")]) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1 and word in error[0]


def test_without_nodes_it_says_so(files, capsys, monkeypatch):
    from twolink_dynamics.nodes import bench_client
    monkeypatch.setattr(bench_client.RosBench.__init__, "__kwdefaults__",
                        bench_client.RosBench.__init__.__kwdefaults__ | {"patience": 0.5})
    assert main(["excite", "--play", str(files[0]), "--namespace", "/nobody"]) == 2
    assert "no joint_states with joint1, joint2" in capsys.readouterr().err
