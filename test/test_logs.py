"""Recordings: columns by name, units and signs as stated, and everything wrong told by column and row."""

import re

import numpy as np
import pytest
from identification_helpers import record, write_csv

from twolink_dynamics import InputError, Trajectory
from twolink_dynamics.identification import LogFormat, read_log

CLEAN = dict(position_noise=0.0, position_quantum=0.0, effort_noise=0.0, effort_quantum=0.0)


@pytest.fixture(scope="module")
def log(twolink):
    return record(twolink, 3, duration=6.0, rate=200.0, velocities=True, **CLEAN)


@pytest.mark.parametrize(
    "header",
    [
        "time,pos1,pos2,vel1,vel2,tau1,tau2",
        "time, pos1, pos2, vel1, vel2, tau1, tau2",
        "time,pos_meas1,pos_meas2,vel_meas1,vel_meas2,tau_meas1,tau_meas2",
        "t,q1,q2,qd1,qd2,effort1,effort2",
        "time,pos_joint1,pos_joint2,vel_joint1,vel_joint2,tau_joint1,tau_joint2",
        "__time,/joint_states/joint1/position,/joint_states/joint2/position,/joint_states/joint1/velocity,"
        "/joint_states/joint2/velocity,/joint_states/joint1/effort,/joint_states/joint2/effort",
        "time [s],pos1 [rad],pos2 [rad],vel1 [rad/s],vel2 [rad/s],tau1 [N m],tau2 [Nm]",
    ],
)
def test_columns_are_found_by_name(tmp_path, twolink, log, header):
    found = read_log(write_csv(tmp_path / "a.csv", log, header), twolink)
    for name in ("t", "q", "qd", "tau"):
        np.testing.assert_array_equal(getattr(found, name), getattr(log, name))
    assert found.remarks == () and found.breaks == ()


def test_a_recording_of_the_package_itself_is_read(tmp_path, twolink, log):
    Trajectory(log.t, log.q, log.qd, log.tau).to_csv(tmp_path / "own.csv", twolink.joint_names)
    np.testing.assert_array_equal(read_log(tmp_path / "own.csv", twolink).tau, log.tau)


def test_measured_columns_go_before_filtered_and_desired_ones(tmp_path, twolink, log):
    table = np.column_stack([log.t, log.q, 0.0 * log.q, log.tau, 0.0 * log.tau])
    header = "time,pos_meas1,pos_meas2,pos_filt1,pos_filt2,tau_meas1,tau_meas2,tau_con1,tau_con2"
    np.savetxt(tmp_path / "a.csv", table, delimiter=",", header=header, comments="", fmt="%.17g")
    found = read_log(tmp_path / "a.csv", twolink)
    np.testing.assert_array_equal(found.q, log.q)
    assert found.qd is None and found.sources["effort"] == ("tau_meas1", "tau_meas2")
    commanded = read_log(tmp_path / "a.csv", twolink, LogFormat(effort="commanded"), check=False)
    assert commanded.sources["effort"] == ("tau_con1", "tau_con2") and not commanded.tau.any()


def test_joint_order_columns_units_signs_and_side(tmp_path, twolink, log):
    swapped = read_log(write_csv(tmp_path / "a.csv", log), twolink, LogFormat(joints=("joint2", "joint1")), check=False)
    np.testing.assert_array_equal(swapped.q, log.q[:, ::-1])
    named = LogFormat(columns={"position": ("pos2", "pos1"), "time": "time"})
    np.testing.assert_array_equal(read_log(tmp_path / "a.csv", twolink, named, check=False).q, log.q[:, ::-1])
    fmt = LogFormat(
        units={"time": "ms", "position": "deg", "velocity": "deg/s", "effort": "Nmm"},
        position_sign=(1, -1),
        position_offset=(0.5, 0.0),
        effort_sign=-1.0,
        effort_side="motor",
    )
    raw = read_log(tmp_path / "a.csv", twolink.with_joints(gear_ratio=[10.0, -5.0]), fmt, check=False)
    degree = np.pi / 180.0
    np.testing.assert_allclose(raw.t, 1e-3 * log.t, rtol=1e-15)
    np.testing.assert_allclose(raw.q, log.q * degree * [1, -1] + [0.5, 0.0], rtol=1e-14)
    np.testing.assert_allclose(raw.qd, log.qd * degree * [1, -1], rtol=1e-14)
    np.testing.assert_allclose(raw.tau, -1e-3 * log.tau * [10.0, -5.0], rtol=1e-14)


@pytest.mark.parametrize(
    "scale, message",
    [
        (dict(q=180 / np.pi, qd=180 / np.pi), r"column 'pos\d', row \d+: .*looks like deg: state units position=deg"),
        (dict(qd=180 / np.pi), r"column 'vel1' is 57\.3 times the derivative of column 'pos1'.*velocity=deg/s"),
        (dict(qd=-1.0), r"column 'vel1' is -1 times .*sign flipped"),
        (dict(t=1e3, qd=1.0), r"column 'time': rows are 5 s apart, which looks like ms"),
        (dict(tau=1e3), r"column 'tau1' is 1e\+03 times what the arm's model needs .*effort=Nmm"),
        (dict(tau=1e-3), r"column 'tau1' is only 0\.001 times"),
    ],
)
def test_wrong_units_are_told_by_column(tmp_path, twolink, log, scale, message):
    from dataclasses import replace

    spoilt = replace(log, **{name: getattr(log, name) * factor for name, factor in scale.items()})
    with pytest.raises(InputError) as error:
        read_log(write_csv(tmp_path / "a.csv", spoilt), twolink)
    assert re.search(message, str(error.value)), str(error.value)
    assert "\n" not in str(error.value)


def test_flipped_sign_and_motor_side_are_remarked(tmp_path, twolink, log):
    from dataclasses import replace

    flipped = read_log(write_csv(tmp_path / "a.csv", replace(log, tau=-log.tau)), twolink)
    assert any("column 'tau1' runs against" in remark for remark in flipped.remarks)
    geared = twolink.with_joints(gear_ratio=[20.0, 20.0])
    motor = read_log(write_csv(tmp_path / "b.csv", replace(log, tau=log.tau / 20.0)), geared)
    assert any("motor's side" in remark for remark in motor.remarks)
    assert read_log(tmp_path / "b.csv", geared, LogFormat(effort_side="motor")).remarks == ()


def spoil(row, column, value):
    return lambda rows: rows[row - 1].__setitem__(column, value)


@pytest.mark.parametrize(
    "change, message",
    [
        (spoil(17, 6, "nan"), "column 'tau2', row 17: nan is not a finite number"),
        (spoil(18, 1, "-inf"), "column 'pos1', row 18: -inf is not a finite number"),
        (spoil(19, 3, "fast"), "column 'vel1', row 19: 'fast' is not a number"),
        (
            lambda rows: rows[19].__setitem__(slice(None), rows[19][:4]),
            "column 'vel2', row 20: missing, the row has 4 of 7 cells",
        ),
        (lambda rows: [row.__setitem__(6, "0.25") for row in rows], "column 'tau2' is 0.25 in all 1200 rows"),
        (lambda rows: [row.__setitem__(0, "1.5") for row in rows], "column 'time' never rises"),
    ],
)
def test_bad_cells_are_told_by_column_and_row(tmp_path, twolink, log, change, message):
    with pytest.raises(InputError) as error:
        read_log(write_csv(tmp_path / "a.csv", log, change=change), twolink)
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "header, message",
    [
        ("time,a,b,vel1,vel2,tau1,tau2", "no position columns for 2 joints"),
        ("time,pos1,pos2,vel1,vel2,a,b", "no effort columns for 2 joints"),
        ("when,pos1,pos2,vel1,vel2,tau1,tau2", "no time column"),
        ("time,pos1,pos1,vel1,vel2,tau1,tau2", "two columns are named 'pos1'"),
        ("0,1,2,3,4,5,6", "a header line"),
        ("time,pos1 [deg],pos2 [deg],vel1,vel2,tau1,tau2", "says deg, but position is read as rad"),
    ],
)
def test_headers_that_cannot_be(tmp_path, twolink, log, header, message):
    with pytest.raises(InputError, match=re.escape(message)):
        read_log(write_csv(tmp_path / "a.csv", log, header), twolink)


def test_duplicates_gaps_and_resets_are_named_and_never_silent(tmp_path, twolink, log):
    t = log.t.copy()
    t[10] = t[9]
    t[400:] += 0.5
    t[800:] -= t[800]
    found = read_log(write_csv(tmp_path / "a.csv", log, t=t), twolink)
    text = " | ".join(found.remarks)
    assert "1 time stamp(s) repeated, at row 11" in text
    assert "row 401: gap of 0.505 s" in text
    assert "row 801: the clock goes back" in text
    assert (
        len(found.t) == len(t) - 1
        and found.breaks == (399, 799)
        and [found.rows[k] for k in found.breaks] == [401, 801]
    )


def test_jumps_of_position(tmp_path, twolink, log):
    from dataclasses import replace

    q = log.q.copy()
    q[600:, 1] += 1.0 - np.diff(q[599:601, 1])[0]
    found = read_log(write_csv(tmp_path / "a.csv", replace(log, q=q)), twolink, check=False)
    assert found.breaks == (600,) and "column 'pos2', row 601: jumps by 1" in found.remarks[0]
    q = log.q.copy()
    q[600:, 0] -= 2.0 * np.pi
    turned = read_log(write_csv(tmp_path / "a.csv", replace(log, q=q)), twolink, check=False)
    np.testing.assert_allclose(turned.q, log.q, atol=1e-12)
    assert "column 'pos1': 1 whole turn(s) undone, first at row 601" in turned.remarks


def test_an_arm_at_rest_is_refused(tmp_path, twolink, log):
    from dataclasses import replace

    rng = np.random.default_rng(0)
    still = replace(log, q=1e-4 * rng.normal(size=log.q.shape), qd=0.05 * rng.normal(size=log.q.shape))
    with pytest.raises(InputError, match="too little excitation: column 'pos1' moves by .*column 'pos2'"):
        read_log(write_csv(tmp_path / "a.csv", still), twolink)


def test_formats_that_cannot_be():
    with pytest.raises(InputError, match="unit 'furlong' is none of"):
        LogFormat(units={"position": "furlong"})
    with pytest.raises(InputError, match="effort_side 'gearbox' is none of joint, motor"):
        LogFormat(effort_side="gearbox")


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_bags_by_joint_name_with_states_or_commands(tmp_path, twolink, log, storage):
    rosbag2 = pytest.importorskip("rosbags.rosbag2", reason="rosbags is not installed")
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.LATEST)
    State, Command = store.types["sensor_msgs/msg/JointState"], store.types["std_msgs/msg/Float64MultiArray"]
    Header, Time = store.types["std_msgs/msg/Header"], store.types["builtin_interfaces/msg/Time"]
    Layout = store.types["std_msgs/msg/MultiArrayLayout"]
    plugin = rosbag2.StoragePlugin.MCAP if storage == "mcap" else rosbag2.StoragePlugin.SQLITE3
    with rosbag2.Writer(tmp_path / "bag", version=9, storage_plugin=plugin) as writer:
        states = writer.add_connection("/left/joint_states", State.__msgtype__, typestore=store)
        commands = writer.add_connection("/left/effort_controller/commands", Command.__msgtype__, typestore=store)
        for k in range(len(log.t)):
            stamp = int(1e9 * (100.0 + log.t[k]))
            header = Header(Time(stamp // 10**9, stamp % 10**9), "base_link")
            order = [1, 0]  # the other way round than the arm's, with a gripper between them
            message = State(
                header,
                ["joint2", "gripper", "joint1"],
                *(np.insert(x[k, order], 1, 7.0) for x in (log.q, log.qd, log.tau)),
            )
            command = Command(Layout([], 0), 2.0 * log.tau[k])
            if k >= 20:
                writer.write(commands, stamp, store.serialize_cdr(command, Command.__msgtype__))
            if k % 100 == 50:
                other = State(header, ["wheel"], *(np.ones(1) for _ in range(3)))
                writer.write(states, stamp + 500, store.serialize_cdr(other, State.__msgtype__))
            writer.write(states, stamp + 1000, store.serialize_cdr(message, State.__msgtype__))
    found = read_log(tmp_path / "bag", twolink)
    np.testing.assert_array_equal(found.q, log.q)
    np.testing.assert_array_equal(found.tau, log.tau)
    np.testing.assert_allclose(found.t, log.t, atol=2e-9)
    held = read_log(tmp_path / "bag", twolink, LogFormat(effort="commanded"))
    np.testing.assert_array_equal(held.tau[20:], 2.0 * log.tau[20:])
    assert not held.tau[:20].any()
    assert "nothing was commanded before 20 of 1200 joint states" in " | ".join(held.remarks)
    left_out = (f"12 of {len(log.t) + 12} messages name none of the arm's joints and are left out, "
                "first message 51 (wheel)")
    assert left_out in " | ".join(found.remarks)
    if storage == "mcap":
        np.testing.assert_array_equal(read_log(next((tmp_path / "bag").glob("*.mcap")), twolink).q, log.q)
    with pytest.raises(InputError, match="no topic 'arm_states'.*there are /left/joint_states"):
        read_log(tmp_path / "bag", twolink, LogFormat(state_topic="arm_states"))


def test_what_is_no_bag_is_one_line(tmp_path, twolink):
    pytest.importorskip("rosbags", reason="rosbags is not installed")
    (tmp_path / "broken.mcap").write_bytes(b"not a bag at all")
    with pytest.raises(InputError, match="broken.mcap") as error:
        read_log(tmp_path / "broken.mcap", twolink)
    assert "\n" not in str(error.value)
