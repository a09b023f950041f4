"""The dynamics node alone: the test plays the arm, so that every answer is known."""
import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402, F401
from geometry_msgs.msg import PoseStamped, WrenchStamped  # noqa: E402
from ros_harness import BEST_EFFORT, RELIABLE, probe, start  # noqa: F401
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Float64MultiArray  # noqa: E402
from std_srvs.srv import SetBool, Trigger  # noqa: E402
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint  # noqa: E402

from twolink_dynamics import Dynamics

EXACT = 1e-9  # the same equations, once here and once there
NODE = "/alone/dynamics"


class Hand:
    """Publishes joint states stamped by a clock of its own, and hears the efforts."""

    def __init__(self, probe):  # noqa: F811
        self.probe = probe
        self.states = probe.publisher(JointState, "/alone/joint_states")
        self.efforts = probe.listen(Float64MultiArray, "/alone/effort_controller/commands")
        self.t = 100.0

    def message(self, q, qd=(0.0, 0.0), names=("joint1", "joint2"), dt=0.01):
        self.t += dt
        msg = JointState(name=list(names), position=list(map(float, q)),
                         velocity=[] if qd is None else list(map(float, qd)))
        msg.header.stamp.sec, msg.header.stamp.nanosec = int(self.t), int(round((self.t % 1.0) * 1e9)) % 10**9
        return msg

    def send(self, *args, **options):
        self.states.publish(self.message(*args, **options))

    def answer(self, *args, count=1, **options):
        """Publish states until the node has answered `count` new times; the last effort."""
        want = len(self.efforts) + count

        def enough():
            self.send(*args, **options)
            return len(self.efforts) >= want
        self.probe.until(enough, "efforts")
        return np.array(self.efforts[-1].data)

    def settled(self, expected, *args, **options):
        """Publish states until the efforts are `expected`."""
        def there():
            self.send(*args, **options)
            return self.efforts and np.allclose(self.efforts[-1].data, expected, atol=EXACT, rtol=0.0)
        self.probe.until(there, f"efforts {expected}, the last ones were "
                         f"{self.efforts[-1].data if self.efforts else None}")


@pytest.fixture(scope="module")
def node(start):  # noqa: F811
    return start("dynamics_node", "/alone", {"urdf": "twolink", "controller": "gravity_compensation",
                                             "state_timeout": "60.0", "kp": "[100, 100]"})


@pytest.fixture(scope="module")
def hand(node, probe):  # noqa: F811
    return Hand(probe)


@pytest.fixture(scope="module")
def model(twolink):
    return Dynamics(twolink)


def test_gravity_compensation_is_sent_for_every_state(hand, model):
    q = np.array([0.3, -0.4])
    assert np.abs(model.gravity(q)).min() > 1.0  # there is something to compensate
    hand.settled(model.gravity(q), q)


def test_joints_are_matched_by_name_and_others_ignored(hand, model):
    q = np.array([0.5, 0.2])
    hand.settled(model.gravity(q), [q[1], 7.0, q[0]], qd=[0.0, 0.0, 0.0], names=("joint2", "gripper", "joint1"))
    hand.settled(model.gravity(q), [q[1], q[0], np.nan], qd=[0.0, 0.0, np.nan], names=("joint2", "joint1", "gripper"))


@pytest.mark.parametrize("what, options", [
    ("nan", dict(q=[np.nan, 0.0])), ("inf velocity", dict(q=[0.0, 0.0], qd=[0.0, np.inf])),
    ("short velocity", dict(q=[0.0, 0.0], qd=[0.1])), ("short position", dict(q=[0.0])),
    ("joint missing", dict(q=[0.0], qd=[0.0], names=("joint1",))),
    ("joint twice", dict(q=[0.0] * 3, qd=[0.0] * 3, names=("joint1", "joint2", "joint1"))),
    ("nothing", dict(q=[], qd=[], names=()))])
def test_bad_states_are_dropped_and_counted(hand, probe, what, options):  # noqa: F811
    hand.answer([0.1, 0.1], count=3)
    probe.until(lambda: NODE[1:] in probe.diagnostics, "diagnostics")
    before = probe.rejected(NODE[1:], "joint_states")

    def counted():
        hand.send(**options)
        return probe.rejected(NODE[1:], "joint_states") > before
    probe.until(counted, f"the rejection of {what}")
    assert np.isfinite(hand.answer([0.1, 0.1])).all()


def test_without_velocities_positions_are_differentiated(hand, probe, model, node):  # noqa: F811
    assert all(r.successful for r in probe.set(NODE, controller="computed_torque", torque_rate_limit=0.0))
    q, qd = np.array([0.2, 0.1]), np.array([0.5, -0.3])
    heard = probe.listen(JointState, f"{NODE}/tracking_error")
    start = hand.t  # noqa: F811

    def moving():
        hand.send(q + qd * (hand.t + 0.01 - start), None)
        return len(heard) > 5 and np.allclose(heard[-1].velocity, -qd, atol=1e-4)
    probe.until(moving, "the differentiated velocity")
    probe.until(lambda: "positions are differentiated" in node.output(), "the warning")
    probe.set(NODE, controller="gravity_compensation")


def test_time_that_goes_back_resets_the_reference(hand, probe, node):  # noqa: F811
    assert probe.set(NODE, controller="computed_torque")[0].successful
    q = np.array([0.4, 0.3])
    hand.answer(q, count=20)
    reference = probe.listen(JointState, f"{NODE}/reference")
    hand.t -= 50.0
    moved = q + 0.2

    def there():
        hand.send(moved)
        return reference and np.allclose(reference[-1].position, moved)
    probe.until(there, "a reference at the new position")
    probe.until(lambda: "time went back" in node.output(), "the remark about time")
    probe.set(NODE, controller="gravity_compensation")


def test_other_laws_are_published_for_whoever_subscribes(hand, probe, model):  # noqa: F811
    q = np.array([0.3, 0.3])
    heard = {name: probe.listen(Float64MultiArray, f"/alone/{name}/commands", BEST_EFFORT)
             for name in ("gravity_compensation", "computed_torque", "impedance")}

    def all_there():
        hand.send(q)
        return all(heard.values())
    probe.until(all_there, "the commands of all laws")
    assert np.allclose(heard["gravity_compensation"][-1].data, model.gravity(q), atol=EXACT)
    assert np.allclose(heard["computed_torque"][-1].data, model.gravity(q), atol=1e-6)  # at rest on the reference


def test_torque_terms_sum_up(hand, probe, model):  # noqa: F811
    q, qd = np.array([0.3, 0.3]), np.array([1.0, -2.0])
    assert probe.set(NODE, controller="computed_torque")[0].successful
    names = ("inertia", "coriolis", "gravity", "friction", "feedback", "feedforward", "residual", "total")
    heard = {name: probe.listen(JointState, f"{NODE}/torque/{name}") for name in names}

    def complete():
        hand.send(q, qd)
        stamps = [{(m.header.stamp.sec, m.header.stamp.nanosec): m for m in heard[name]} for name in names]
        shared = set.intersection(*map(set, stamps))
        newest = [one[max(shared)] for one in stamps] if shared else None
        return newest if newest and np.abs(newest[1].effort).max() > 0.01 else None  # of the state that moves
    terms = dict(zip(names, probe.until(complete, "all terms")))
    assert terms["total"].name == ["joint1", "joint2"]
    values = {name: np.array(msg.effort) for name, msg in terms.items()}
    assert np.allclose(sum(values[name] for name in names[:-1]), values["total"], atol=EXACT)
    assert np.allclose(values["gravity"], model.gravity(q), atol=EXACT)
    assert np.allclose(values["coriolis"], model.bias(q, qd) - model.gravity(q), atol=EXACT)
    probe.set(NODE, controller="gravity_compensation")


def test_mass_matrix_and_pose(hand, probe, model):  # noqa: F811
    q = np.array([0.7, -0.9])
    matrices = probe.listen(Float64MultiArray, f"{NODE}/mass_matrix")
    poses = probe.listen(PoseStamped, f"{NODE}/current_pose")

    def there():
        hand.send(q)
        return matrices and poses and np.allclose(np.reshape(matrices[-1].data, (2, 2)), model.mass_matrix(q),
                                                  atol=EXACT) \
            and np.isclose(poses[-1].pose.position.x, model.tip_pose(q)[1][0], atol=EXACT)
    probe.until(there, "M and the tip's pose at this state")
    assert poses[-1].header.frame_id == "base_link"
    o = poses[-1].pose.orientation
    assert np.isclose(o.x**2 + o.y**2 + o.z**2 + o.w**2, 1.0)


def test_parameters_live_and_refused(hand, probe, model):  # noqa: F811
    q = np.array([0.3, -0.2])
    results = probe.set(NODE, payload__mass=2)  # a whole number for a double
    assert results[0].successful, results[0].reason
    hand.settled(Dynamics(model.arm.with_payload(2.0)).gravity(q), q)
    assert probe.set(NODE, gravity=[0.0, 0.0, 0.0])[0].successful
    hand.settled([0.0, 0.0], q)
    assert probe.set(NODE, payload__mass=0.0, gravity=[0.0, 0.0, -9.81])[1].successful
    hand.settled(model.gravity(q), q)
    for name, value, said in (("kp", [1.0, 2.0, 3.0], "2 joints"), ("payload__mass", -1.0, "0 to"),
                              ("controller", "magic", "gravity_compensation"), ("urdf", "other", "read"),
                              ("kd", "stiff", "list"), ("residual__enabled", True, "residual.file"),
                              ("effort_to_command", [0.0, 1.0], "not 0")):
        result = probe.set(NODE, **{name: value})[0]
        assert not result.successful and said in result.reason, (name, result.reason)
        assert "\n" not in result.reason
    hand.settled(model.gravity(q), q)  # and nothing of it stuck


def test_parameters_set_together_are_taken_or_refused_together(hand, probe, model):  # noqa: F811
    q = np.array([0.3, -0.2])
    refused = probe.set_together(NODE, controller="impedance", kp=[7.0], payload__mass=1.0,
                                 payload__inertia=[-1.0, 0.0, 0.0, 1.0, 0.0, 1.0])
    assert not refused.successful and "not positive definite" in refused.reason and "\n" not in refused.reason
    assert probe.get(NODE, "controller").string_value == "gravity_compensation"
    assert probe.get(NODE, "payload.mass").double_value == 0.0
    hand.settled(model.gravity(q), q)
    assert probe.set_together(NODE, controller="gravity_compensation", payload__mass=1.0).successful
    hand.settled(Dynamics(model.arm.with_payload(1.0)).gravity(q), q)
    assert probe.set_together(NODE, payload__mass=0.0).successful


def test_rotors_change_the_model_while_it_runs(hand, probe, model):  # noqa: F811
    q = np.array([0.3, -0.2])
    masses = probe.listen(Float64MultiArray, f"{NODE}/mass_matrix")
    expected = model.mass_matrix(q)
    for inertia, extra in (([0.02, 0.05], np.diag([0.02, 0.05])), ([], 0.0)):
        assert probe.set_together(NODE, rotor__inertia=inertia).successful

        def there(extra=extra):
            hand.send(q)
            return masses and np.allclose(np.reshape(masses[-1].data, (2, 2)), expected + extra, atol=EXACT)
        probe.until(there, f"M with rotors {inertia}")
    hand.settled(model.gravity(q), q)


def test_a_second_source_of_states_is_named(hand, probe, node):  # noqa: F811
    second = probe.node.create_publisher(JointState, "/alone/joint_states", RELIABLE)

    def warned():
        hand.send([0.1, 0.2])
        return NODE[1:] in probe.diagnostics and "2 publishers" in probe.diagnostics[NODE[1:]][0].message
    probe.until(warned, "the warning")
    assert "joint_states has 2 publishers" in node.output()
    probe.node.destroy_publisher(second)


def test_effort_to_command_scales_what_is_sent(hand, probe, model):  # noqa: F811
    q = np.array([0.3, -0.2])
    assert probe.set(NODE, effort_to_command=[0.5, -2.0])[0].successful
    hand.settled(model.gravity(q) * [0.5, -2.0], q)
    assert probe.set(NODE, effort_to_command=[1.0, 1.0])[0].successful
    hand.settled(model.gravity(q), q)


def test_enable_and_hold(hand, probe, model):  # noqa: F811
    q = np.array([0.1, 0.2])
    hand.settled(model.gravity(q), q)
    assert probe.call(SetBool, f"{NODE}/enable", SetBool.Request(data=False)).success
    hand.settled([0.0, 0.0], q)  # one zero, then silence
    silent = len(hand.efforts)
    for _ in range(20):
        hand.send(q)
        probe.executor.spin_once(timeout_sec=0.05)
    assert len(hand.efforts) - silent <= 1
    refused = probe.call(Trigger, f"{NODE}/hold")
    assert not refused.success and "disabled" in refused.message
    assert probe.call(SetBool, f"{NODE}/enable", SetBool.Request(data=True)).success
    hand.settled(model.gravity(q), q)
    assert probe.get(NODE, "enabled").bool_value is True


def trajectory(*points, names=("joint1", "joint2")):
    msg = JointTrajectory(joint_names=list(names))
    for seconds, positions in points:
        point = JointTrajectoryPoint(positions=list(positions))
        point.time_from_start.sec, point.time_from_start.nanosec = int(seconds), int(seconds % 1 * 1e9)
        msg.points.append(point)
    return msg


def test_wrong_goals_are_refused_and_counted(hand, probe, node):  # noqa: F811
    assert probe.set(NODE, controller="computed_torque")[0].successful
    q = np.array([0.1, 0.2])
    hand.answer(q, count=20)
    goals = probe.publisher(JointTrajectory, "/alone/joint_trajectory")
    targets = probe.publisher(JointState, "/alone/target_joint")
    poses = probe.publisher(PoseStamped, "/alone/target_pose")
    wrenches = probe.publisher(WrenchStamped, "/alone/target_wrench")
    bent = PoseStamped()
    bent.pose.orientation.w = 3.0
    nowhere = PoseStamped()
    nowhere.header.frame_id = "moon"
    lost = WrenchStamped()
    lost.header.frame_id = "moon"
    for publisher, msg, what in (
            (goals, trajectory((1.0, [0.1])), "trajectory"),
            (goals, trajectory((1.0, [0.1]), names=("joint1",)), "trajectory"),
            (goals, trajectory((1.0, [0.1, np.nan])), "trajectory"),
            (goals, trajectory((1.0, [0.1, 0.2]), (0.5, [0.1, 0.2])), "trajectory"),
            (goals, trajectory((1.0, [0.1, 0.2]), names=("joint1", "nose")), "trajectory"),
            (goals, trajectory((1.0, [1e300, 0.2])), "trajectory"),
            (targets, JointState(name=["joint1"], position=[np.inf]), "target_joint"),
            (targets, JointState(name=["joint1"], position=[1e300]), "target_joint"),
            (targets, JointState(name=["nose"], position=[0.0]), "target_joint"),
            (poses, bent, "target_pose"), (poses, nowhere, "target_pose"), (wrenches, lost, "target_wrench")):
        before = probe.rejected(NODE[1:], what)

        def counted(publisher=publisher, msg=msg, what=what, before=before):
            publisher.publish(msg)
            hand.send(q)
            return probe.rejected(NODE[1:], what) > before
        probe.until(counted, f"the rejection of a {what}")
    assert "moon" in node.output() and "nose" in node.output()
    probe.set(NODE, controller="gravity_compensation")


def test_a_trajectory_is_followed_in_the_states_own_time(hand, probe):  # noqa: F811
    assert probe.set(NODE, controller="computed_torque")[0].successful
    q = np.array([0.1, 0.2])
    hand.answer(q, count=20)
    reference = probe.listen(JointState, f"{NODE}/reference")
    goal = [0.5, -0.3]
    probe.publisher(JointTrajectory, "/alone/joint_trajectory").publish(
        trajectory((2.0, goal[::-1]), names=("joint2", "joint1")))

    def arrived():
        hand.send(q, dt=0.05)  # 2 s of the arm's time are 40 messages, however long they take
        return reference and np.allclose(reference[-1].position, goal, atol=1e-9)
    probe.until(arrived, "the reference at the goal")
    assert probe.call(Trigger, f"{NODE}/hold").success
    probe.set(NODE, controller="gravity_compensation")


def test_describe_tells_the_equations_while_the_loop_goes_on(hand, probe):  # noqa: F811
    client = probe.node.create_client(Trigger, f"{NODE}/describe")
    probe.until(client.service_is_ready, "~/describe")
    future = client.call_async(Trigger.Request())
    heard = len(hand.efforts)

    def answered():
        hand.send([0.1, 0.2])
        return future.done()
    probe.until(answered, "the description")
    text = future.result().message
    assert future.result().success and "joint1" in text and "cos(q2)" in text.replace("c2", "cos(q2)")
    assert "gravity_compensation" in text
    assert len(hand.efforts) > heard  # efforts went out meanwhile


def test_safe_mode_when_states_stop(hand, probe, model, node):  # noqa: F811
    q = np.array([0.2, 0.1])
    hand.settled(model.gravity(q), q)
    assert probe.set(NODE, state_timeout=0.05, safe_mode="zero")[1].successful
    probe.until(lambda: hand.efforts and not any(hand.efforts[-1].data), "zero efforts")
    probe.until(lambda: probe.diagnostics.get(NODE[1:], (None, {}))[1].get("mode") == "safe", "diagnostics of it")
    assert probe.set(NODE, state_timeout=60.0, safe_mode="gravity_compensation")[0].successful
    hand.settled(model.gravity(q), q)


def test_states_slower_than_the_timeout_get_one_clear_line(hand, probe, node):  # noqa: F811
    assert probe.set(NODE, state_timeout=0.001)[0].successful

    def said():
        hand.send([0.1, 0.2])
        return "set state_timeout to" in node.output()
    probe.until(said, "the advice")
    for _ in range(20):
        hand.send([0.1, 0.2])
        probe.executor.spin_once(timeout_sec=0.02)
    assert node.output().count("set state_timeout to") == 1
    assert node.output().count("joint states are good again") < 20  # though the safe mode came and went each time
    assert probe.set(NODE, state_timeout=60.0)[0].successful


def test_sigterm_ends_it_quietly(hand, node):
    import signal
    assert node.end(signal.SIGTERM) == 0
    assert "Traceback" not in node.output()
