"""Trajectories as files, `twolink simulate`, and other people's recordings replayed."""

import math
import re
import warnings

import numpy as np
import pytest

from twolink_dynamics import InputError, TwolinkWarning, load_urdf
from twolink_dynamics.cli import main
from twolink_dynamics.friction import Friction
from twolink_dynamics.plant import Plant
from twolink_dynamics.replay import replay
from twolink_dynamics.simulation import Simulation
from twolink_dynamics.trajectory import Trajectory


@pytest.fixture(scope="module")
def path(twolink):
    return Simulation(twolink, 2e-3, q=[0.3, 0.2]).run(
        0.4, lambda t, q, qd: [9.0 * math.sin(20 * t), 4.0 * math.cos(15 * t)]
    )


def test_csv_round_trip_is_exact(path, twolink, tmp_path):
    for names in (None, twolink.joint_names):
        path.to_csv(tmp_path / "a.csv", names)
        again = Trajectory.from_csv(tmp_path / "a.csv", names)
        for field in ("t", "q", "qd", "tau"):
            assert getattr(again, field).tobytes() == getattr(path, field).tobytes()


@pytest.mark.parametrize(
    "header",
    [
        "time,pos1,pos2,vel1,vel2,tau1,tau2",
        "time, pos_meas1, pos_meas2, vel_meas1, vel_meas2, tau_meas1, tau_meas2",
        "t,q1,q2,qd1,qd2,effort1,effort2",
    ],
)
def test_columns_are_found_by_pattern(tmp_path, header):
    (tmp_path / "a.csv").write_text(header + "\n0,1,2,3,4,5,6\n0.1,1,2,3,4,5,7\n")
    found = Trajectory.from_csv(tmp_path / "a.csv")
    assert found.q.tolist() == [[1, 2]] * 2 and found.qd[0].tolist() == [3, 4] and found.tau[1].tolist() == [5, 7]


@pytest.mark.parametrize(
    "text, message",
    [
        ("time,pos1\n", "no data rows"),
        ("pos1\n1\n", "no time column"),
        ("time,x\n0,1\n", "no position column"),
        ("time,pos1\n0,nan\n", "line 2, column 'pos1': 'nan' is not a number"),
        ("time,pos1\n0\n", "line 2 has 1 values for 2 columns"),
        ("time,pos1,vel1,tau1\n1,0,0,0\n0,0,0,0\n", "time goes back from 1 to 0 s"),
    ],
)
def test_broken_files_are_refused_by_line(tmp_path, text, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InputError, match=re.escape(message)):
        Trajectory.from_csv(tmp_path / "a.csv")


def test_what_is_missing_or_repeated_is_said(tmp_path):
    (tmp_path / "a.csv").write_text("time,pos1\n0,0\n0,0\n0.1,0.2\n0.2,0.4\n")
    with pytest.warns(TwolinkWarning) as said:
        found = Trajectory.from_csv(tmp_path / "a.csv")
    assert len(found) == 3 and found.qd[:, 0] == pytest.approx([2.0, 2.0, 2.0])
    assert {re.sub(".*: ", "", str(w.message)) for w in said} == {
        "1 repeated time stamps dropped",
        "no velocity columns, differentiated the positions",
        "no effort columns, taken as zero",
    }


def test_trajectory_shapes_are_checked():
    with pytest.raises(InputError, match=r"qd has shape \(2, 1\), expected \(2, 2\)"):
        Trajectory([0.0, 1.0], np.zeros((2, 2)), np.zeros((2, 1)), np.zeros((2, 2)))


def test_replay_of_its_own_recording_reproduces_it(path, twolink):
    result = replay(Plant(twolink), path, 2e-3)
    assert np.abs(path.q).max() > 0.5  # premise: it moved
    assert result.rms_q.max() < 1e-12 and result.rms_qd.max() < 1e-10 and result.restarts == 0
    other = replay(Plant(twolink.with_payload(0.5)), path, 2e-3)
    assert other.rms_q.max() > 1e-2
    assert replay(Plant(twolink.with_payload(0.5)), path, 2e-3, restart=0.05).rms_q.max() < 0.2 * other.rms_q.max()
    with pytest.raises(InputError, match="restart"):
        replay(Plant(twolink), path, 2e-3, restart=1e-4)


def dfki(field_cases, design):
    """The arm of a published parameter set, its pivot inertias moved to the centres of mass, and its friction."""
    text = (field_cases / "data" / "dfki" / "params" / f"design_{design}.yml").read_text()
    p = {key: float(value) for key, value in re.findall(r"^(\w+): (\S+)$", text, re.MULTILINE)}
    links = "".join(
        f'<link name="link{i}"><inertial><origin xyz="0 0 {-p[f"r{i}"]}"/><mass value="{p[f"m{i}"]}"/>'
        f'<inertia ixx="{I}" '
        f'iyy="{I}" izz="1e-5" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        for i in (1, 2)
        for I in [max(p[f"I{i}"] - p[f"m{i}"] * p[f"r{i}"] ** 2, 1e-4)]
    )
    arm = load_urdf(f"""<robot name="{design}"><link name="base"/>{links}
        <joint name="j1" type="continuous"><parent link="base"/><child link="link1"/><axis xyz="0 -1 0"/></joint>
        <joint name="j2" type="continuous"><parent link="link1"/><child link="link2"/><origin xyz="0 0 {-p["l1"]}"/>
        <axis xyz="0 -1 0"/></joint></robot>""")
    arm = arm.with_joints(rotor_inertia=p["Ir"], gear_ratio=-p["gr"], rotor_coupling=True)
    return Plant(arm, friction=Friction([p["cf1"] * np.pi / 2, p["cf2"] * np.pi / 2], [p["b1"], p["b2"]]))


@pytest.mark.parametrize(
    "log, design, urdf",
    [
        ("A0/20220812_061705_sysid", "A.0_model_2.0", "dfki_double_pendulum_A0"),
        ("C1/20230629_154220_sysid", "C.1_model_1.0", "dfki_acrobot_C1_m10"),
    ],
)
def test_other_peoples_arms_move_as_recorded(field_cases, log, design, urdf):
    """Nobody tuned to this: over horizons of 0.1 s the published parameters, read with the right meaning of their
    inertias,
    predict the motion to a few percent of its spread, better than the same people's URDF, whose inertias are wrong."""
    recorded = Trajectory.from_csv(field_cases / "data" / "dfki" / f"{log}.csv")
    good = replay(dfki(field_cases, design), recorded, 2e-3, restart=0.1)
    assert (good.rms_q < 0.05 * good.spread_q).all(), good.rms_q / good.spread_q
    wrong = replay(Plant(load_urdf(field_cases / "urdf" / f"{urdf}.urdf")), recorded, 2e-3, restart=0.1)
    assert good.rms_q.sum() < wrong.rms_q.sum()
    assert abs(good.ledger.balance) < 1e-3


def test_simulate_command_writes_what_it_says(tmp_path, capsys):
    csv_file, picture = tmp_path / "run.csv", tmp_path / "run.png"
    arguments = [
        "simulate",
        "twolink",
        "--duration",
        "0.2",
        "--q0",
        "0.3",
        "0.2",
        "--qd0",
        "0.1",
        "0",
        "--tau",
        "2",
        "1",
        "--coulomb",
        "0.1",
        "--csv",
        str(csv_file),
        "--plot",
        str(picture),
        "--every",
        "5",
    ]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "twolink: 0.2 s with rk4, dt = 0.001 s" in said and "dissipated" in said and "balance" in said
    found = Trajectory.from_csv(csv_file, ("joint1", "joint2"))
    assert len(found) == 41 and found.q[0].tolist() == [0.3, 0.2] and found.tau[0].tolist() == [2.0, 1.0]
    assert picture.read_bytes()[:4] == b"\x89PNG"


def test_simulate_command_replays_a_log(field_cases, capsys):
    log = field_cases / "data" / "dfki" / "C1" / "20230629_154220_sysid.csv"
    urdf = field_cases / "urdf" / "dfki_acrobot_C1_m10.urdf"
    assert main(["simulate", str(urdf), "--effort", str(log), "--restart", "0.2", "--dt", "0.002"]) == 0
    said = capsys.readouterr().out
    assert "replayed with rk4" in said and "restarted 29 times" in said
    rows = re.findall(r"^ +\w+ +([\d.]+) +([\d.]+)% +([\d.]+) +([\d.]+)%$", said, re.MULTILINE)
    assert len(rows) == 2 and all(0.0 < float(row[0]) < 3.0 for row in rows)


def test_replay_says_what_the_arm_cannot_do_and_when_to_restart(tmp_path, capsys):
    """A recording beyond the shipped arm's limits (60 N m, 2.9 rad), and of a motion that is not this arm's."""
    t = np.arange(200) * 5e-3
    swing = np.stack([np.sin(3 * t), 3.0 * np.sin(2 * t)], axis=1)
    rate = np.stack([3 * np.cos(3 * t), 6.0 * np.cos(2 * t)], axis=1)
    Trajectory(t, swing, rate, np.full((200, 2), [70.0, 1.0])).to_csv(tmp_path / "log.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("always")  # the suite hides them
        assert main(["simulate", "twolink", "--effort", str(tmp_path / "log.csv")]) == 0
    said = capsys.readouterr()
    assert "joint 'joint1': recorded efforts reach 70, above the arm's limit 60" in said.err
    assert re.search("joint 'joint2': recorded from .* to 3, beyond the arm's stops -2.9 to 2.9; --no-stops", said.err)
    assert "hint: the simulated arm left the recorded path" in said.out
    options = ["--no-stops", "--no-effort-limits", "--restart", "0.1"]
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["simulate", "twolink", "--effort", str(tmp_path / "log.csv"), *options]) == 0
    said = capsys.readouterr()
    assert "limit" not in said.err and "stops" not in said.err and "hint" not in said.out


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--q0", "1", "2", "3"], "--q0: 3 values for the 2 joints joint1, joint2"),
        (["--stiffness", "100"], "joint 'joint1': a flexible joint needs a rotor inertia"),
        (["--effort", "missing.csv"], "missing.csv"),
        (["--duration", "0.01", "--plot", "a.nothing"], "--plot"),
        (["--static", "0.1", "--coulomb", "0.2"], "static 0.1 of joint 1 is below"),
    ],
)
def test_simulate_command_refuses_in_one_line(capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", "twolink", *arguments]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1
