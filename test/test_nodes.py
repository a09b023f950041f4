"""The parts of the nodes that need no running node: conversion, ages, diagnostics, the action's shell, motion
planning."""
import warnings
from types import SimpleNamespace as Bag

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from geometry_msgs.msg import PoseStamped, WrenchStamped  # noqa: E402
from ros_harness import probe  # noqa: E402, F401
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Float64MultiArray  # noqa: E402

from twolink_dynamics import Dynamics, InputError, State, load_urdf  # noqa: E402
from twolink_dynamics.control import Controller  # noqa: E402
from twolink_dynamics.motion import EFFORT_SHARE, plan_motion  # noqa: E402
from twolink_dynamics.nodes import conversion  # noqa: E402
from twolink_dynamics.nodes.action import TrajectoryAction  # noqa: E402
from twolink_dynamics.nodes.diagnostics import Meter, Reporter, diagnostic_array  # noqa: E402
from twolink_dynamics.nodes.dynamics_node import DynamicsNode  # noqa: E402
from twolink_dynamics.nodes.monitor import Monitor  # noqa: E402
from twolink_dynamics.nodes.session import yaml_value  # noqa: E402
from twolink_dynamics.scenarios import Action  # noqa: E402

ROTATIONS = 1e-12  # quaternion to matrix and back, a few rounding errors


# -- the demonstration's watcher ---------------------------------------------------------------------------------------
def test_a_person_wins_over_the_demonstrations_script(twolink, probe):  # noqa: F811
    monitor = Monitor(twolink, [], None, repeat=5.0, namespace="/watched")
    try:
        probe.executor.add_node(monitor)
        pushes = probe.publisher(WrenchStamped, "/watched/external_wrench")
        monitor._perform(Action(0.0, "pose", {"position": (0.5, 0.0, 0.2)}))
        heard = probe.listen(PoseStamped, "/watched/target_pose")

        def played():
            monitor._perform(Action(0.0, "pose", {"position": (0.5, 0.0, 0.2)}))
            return heard
        probe.until(played, "its own target")
        assert not monitor.taken_over and monitor.repeat == 5.0
        push = WrenchStamped()
        push.wrench.force.x = 1.0

        def pushed():
            pushes.publish(push)
            return monitor.taken_over
        probe.until(pushed, "the push to be noticed")
        assert monitor.repeat is None and not monitor._actions
    finally:
        probe.executor.remove_node(monitor)
        monitor.destroy_node()


def test_a_demonstration_with_an_end_is_not_given_up(twolink, probe):  # noqa: F811
    monitor = Monitor(twolink, [], 5.0, namespace="/judged")
    topics = {topic for topic, _ in monitor.get_subscriber_names_and_types_by_node("monitor", "/judged")}
    monitor.destroy_node()
    assert "/judged/simulator/true_joint_states" in topics and "/judged/external_wrench" not in topics


# -- the dynamics node's time ------------------------------------------------------------------------------------------
def test_a_step_back_in_time_is_no_old_state(probe):  # noqa: F811
    node = DynamicsNode(overrides={"urdf": "twolink"}, namespace="/back")
    try:
        wall = [1000.0]
        node._wall = lambda: wall[0]
        msg = JointState(name=["joint1", "joint2"], position=[0.2, 0.3], velocity=[0.0, 0.0])

        def state(stamp):
            wall[0] += 0.01
            conversion.set_stamp(msg.header.stamp, stamp)
            node._on_joint_state(msg)
        for k in range(100):
            state(1000.0 + 0.01 * k)
        assert node.ages.known and node.controller.last.mode == "active"  # so that an old one would be noticed
        node.controller.notices.clear()
        state(990.0)
        assert node.controller.last.mode == "active"
        notices = [text for _, text in node.controller.notices]
        assert any("time went back" in text for text in notices) and not any("old" in text for text in notices)
    finally:
        node.destroy_node()


# -- conversion ------------------------------------------------------------------------------------------------------
def test_stamps_go_there_and_back():
    stamp = JointState().header.stamp
    for t in (0.0, 1e-9, 0.25, 1.999999999, 1796053085.125):
        conversion.set_stamp(stamp, t)
        assert abs(conversion.seconds(stamp) - t) < 1e-6 and 0 <= stamp.nanosec < 10**9


def test_quaternions_there_and_back():
    random = np.random.default_rng(3)
    for q in [*random.standard_normal((50, 4)), *np.eye(4), *(np.eye(4) + 1e-9)]:
        q = q / np.linalg.norm(q)
        R = conversion.rotation_matrix(q)
        assert np.abs(R @ R.T - np.eye(3)).max() < ROTATIONS
        assert np.abs(conversion.rotation_matrix(conversion.quaternion(R)) - R).max() < ROTATIONS


def test_a_reader_follows_a_change_of_order():
    reader = conversion.JointReader(["a", "b"])
    for names, position in ((["a", "b"], [1.0, 2.0]), (["b", "x", "a"], [2.0, 9.0, 1.0]), (["a", "b", "x"], [1.0, 2.0,
        9.0]),
                            (["b", "a"], [2.0, 1.0])):
        q, qd = reader.read(JointState(name=names, position=position))
        assert q.tolist() == [1.0, 2.0] and qd is None
    with pytest.raises(InputError, match="no joint 'b', the message has a"):
        reader.read(JointState(name=["a"], position=[1.0]))


def test_differentiation_takes_the_short_way_on_continuous_joints():
    arm = load_urdf("""<robot name="wheel"><link name="base"/><link name="disc"><inertial><mass value="1"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="turn" type="continuous"><parent link="base"/><child link="disc"/></joint></robot>""")
    differentiate = conversion.Differentiator(arm)
    assert differentiate(1.0, np.array([3.1])) is None
    assert differentiate(1.1, np.array([-3.1])) == pytest.approx((2 * np.pi - 6.2) / 0.1)
    assert differentiate(1.1, np.array([-3.1])) is None  # time stands still: unknown, not infinite


def test_commands_wrenches_and_poses_are_checked(twolink):
    assert conversion.commands(Float64MultiArray(data=[1.0, 2.0]), 2, ["a", "b"]).tolist() == [1.0, 2.0]
    for data in ([1.0], [1.0, np.nan], [np.inf, 0.0]):
        with pytest.raises(InputError):
            conversion.commands(Float64MultiArray(data=data), 2, ["a", "b"])
    msg = WrenchStamped()
    msg.header.frame_id = "pre_link2"
    assert conversion.wrench(msg, "pre_", twolink)[2] == "link2"
    msg.header.frame_id = ""
    assert conversion.wrench(msg, "pre_", twolink)[2] == twolink.root
    msg.wrench.torque.y = float("nan")
    with pytest.raises(InputError, match="torque"):
        conversion.wrench(msg, "", twolink)
    pose = PoseStamped()
    pose.pose.orientation.w = 0.0
    assert conversion.pose(pose, "", twolink)[0] is None  # no orientation wanted
    pose.pose.orientation.w = 0.5
    with pytest.raises(InputError, match="length 0.5"):
        conversion.pose(pose, "", twolink)


def test_ages_tell_delays_from_other_clocks():
    ages = conversion.Ages(0.1)
    on_time = [ages(t - 0.002, t) for t in np.arange(0.0, 2.0, 0.01)]
    assert on_time[-1] == pytest.approx(0.002) and ages.known  # steady and small: a delay
    assert ages(2.0 - 0.08, 2.0) == pytest.approx(0.08)  # a late one
    ages.reset()
    paused = [ages(t - 7.0, t) for t in np.arange(0.0, 2.0, 0.01)]
    assert max(paused) < 1e-6  # another clock
    ages.reset()
    slow = [ages(0.5 * t, t) for t in np.arange(0.0, 4.0, 0.01)]
    assert max(slow) == 0.0 and not ages.known  # a simulator at half speed: nobody can tell


# -- diagnostics -----------------------------------------------------------------------------------------------------
def test_huge_messages_and_numbers_stop_at_the_edge(twolink):
    reader = conversion.JointReader(twolink.joint_names)
    names = [f"j{k}" for k in range(100_000)]
    for msg, said in ((JointState(name=[*names, "j99999"], position=[0.0] * 100_001), "more than 1000"),
                      (JointState(name=["joint1", "joint2"], position=[1e300, 0.0]), "beyond 1e\\+09"),
                      (JointState(name=["joint1", "joint2"], position=[1e300, -1e300]), "beyond"),
                      (JointState(name=["joint1", "joint2"], position=[0.0, 0.0], velocity=[0.0, np.nan]), "finite")):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(InputError, match=said):
                reader.read(msg)
    point = Bag(positions=[0.0, 1e10], velocities=[], accelerations=[], effort=[],
                time_from_start=Bag(sec=1, nanosec=0))
    with pytest.raises(InputError, match="point 0: positions"):
        conversion.points(Bag(points=[point]))
    with pytest.raises(InputError, match=f"{conversion.POINTS + 1} points"):
        conversion.points(Bag(points=[point] * (conversion.POINTS + 1)))


def test_a_meter_forgets_what_it_reported():
    meter = Meter()
    for value in (1.0, 2.0, 3.0):
        meter.add(value)
    _, median, _, worst = meter.take()
    assert (median, worst) == (2.0, 3.0)
    assert np.isnan(meter.take()[1])


def test_refusals_are_counted_each_and_said_once_a_second():
    said = []
    reporter = Reporter(Bag(warning=said.append))
    for _ in range(100):
        reporter.reject("thing", "it is bad")
    assert said == ["it is bad"] and reporter.counts["rejected thing"] == 100


def test_diagnostics_warn_with_the_problem():
    msg = diagnostic_array(12.5, "node", "trouble", {"rate [Hz]": 1000.0})
    assert msg.status[0].level == msg.status[0].WARN and msg.status[0].message == "trouble"
    assert msg.header.stamp.sec == 12 and msg.status[0].values[0].value == "1000"


def test_parameters_as_command_line_text():
    assert yaml_value([0, 1.5, True, "a b"]) == "[0, 1.5, true, 'a b']"


# -- the action ------------------------------------------------------------------------------------------------------
class Handle:
    """What rclpy gives a goal's execution."""

    def __init__(self, request):
        self.request, self.is_cancel_requested, self.ended, self.feedback = request, False, None, []
        self.publish_feedback = self.feedback.append

    def succeed(self):
        self.ended = "succeeded"

    def abort(self):
        self.ended = "aborted"

    def canceled(self):
        self.ended = "canceled"


class ActionType:
    Result = Bag

    @staticmethod
    def Feedback():
        return Bag(desired=Bag(), actual=Bag(), error=Bag())


@pytest.fixture
def served(twolink):
    """An action on a controller that follows perfectly; `run(goal, steps)` plays the node."""
    controller = Controller(Dynamics(twolink), "computed_torque")
    controller.step(1.0, State(np.zeros(2), np.zeros(2)))

    def follow(points):
        return controller.trajectory(list(twolink.joint_names), points)
    node = Bag(controller=controller, arm=twolink, follow=follow, reporter=Bag(reject=lambda *_: None))
    action = TrajectoryAction(node, ActionType, lambda *args, **callbacks: None)

    def begin(points, **tolerances):
        handle = Handle(Bag(trajectory=points, path_tolerance=[], goal_tolerance=[],
                            goal_time_tolerance=Bag(sec=1, nanosec=0), **tolerances))
        routine = action.execute(handle).__await__()
        try:
            next(routine)
        except StopIteration as end:
            return handle, end.value, routine
        return handle, None, routine

    def go_on(t0, t1, offset=0.0):
        for t in np.arange(t0, t1, 0.02):
            reference = controller.reference(t)
            controller.step(t, State(reference.q + offset, np.array(reference.qd)))
            action.tick()
    return Bag(action=action, controller=controller, begin=begin, go_on=go_on)


def finished(routine):
    with pytest.raises(StopIteration) as end:
        next(routine)
    return end.value.value


def test_a_goal_that_is_followed_succeeds_with_feedback(served):
    handle, _, routine = served.begin([(0.5, [0.3, 0.2])])
    served.go_on(1.02, 2.0)
    assert finished(routine).error_code == 0 and handle.ended == "succeeded"
    assert len(handle.feedback) > 10 and handle.feedback[-1].joint_names == ["joint1", "joint2"]


def test_a_goal_that_is_not_met_aborts_in_words(served):
    served.action.node.follow(())  # hold first
    handle, _, routine = served.begin([(0.5, [0.3, 0.2])])
    served.action.goal.goal.position[:] = 0.01
    served.go_on(1.02, 4.0, offset=0.05)
    result = finished(routine)
    assert handle.ended == "aborted" and result.error_code == -5 and "joint1" in result.error_string


def test_cancel_holds_and_a_new_goal_replaces(served):
    first, _, routine = served.begin([(0.5, [0.3, 0.2])])
    second, _, other = served.begin([(0.5, [0.1, 0.1])])
    assert finished(routine).error_string == "replaced by another goal" and first.ended == "aborted"
    second.is_cancel_requested = True
    served.go_on(1.02, 1.1)
    finished(other)
    assert second.ended == "canceled"


def test_a_goal_that_cannot_be_is_aborted_at_once(served):
    handle, result, _ = served.begin([(0.5, [0.3])])
    assert handle.ended == "aborted" and result.error_code == -1 and "1 positions" in result.error_string


def test_goals_are_refused_while_nothing_drives(served):
    from rclpy.action import GoalResponse
    assert served.action.judge(None) == GoalResponse.ACCEPT
    served.controller.enable(False)
    served.controller.step(1.02, State(np.zeros(2), np.zeros(2)))
    assert served.action.judge(None) == GoalResponse.REJECT


# -- motions for any arm ---------------------------------------------------------------------------------------------
ARMS = ["ros2_control_rrbot", "drake_acrobot", "dfki_acrobot_C1_m10", "dfki_double_pendulum_A0", "erd_z1"]


@pytest.mark.parametrize("name", ARMS)
def test_a_motion_stays_inside_the_limits(field_cases, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arm = load_urdf(field_cases / "urdf" / f"{name}.urdf")
    motion = plan_motion(arm, 3.0)
    assert motion.effort <= EFFORT_SHARE and motion.duration == pytest.approx(3.0)
    poses = np.array([motion.q0, *(point.positions for point in motion.points)])
    assert (poses >= arm.lower).all() and (poses <= arm.upper).all()
    assert np.ptp(poses, axis=0).max() > 0.02 and np.allclose(poses[-1], motion.q0)


def test_a_weak_arm_moves_less_and_one_too_weak_says_so(twolink):
    weak = twolink.with_joints(effort_limit=[25.0, 6.0])
    strong, small = plan_motion(twolink, 3.0), plan_motion(weak, 3.0)
    assert small.effort <= EFFORT_SHARE
    assert np.abs(small.points[0].positions - small.q0).max() <= np.abs(strong.points[0].positions - strong.q0).max()
    with pytest.raises(InputError, match="do not even hold"):
        plan_motion(twolink.with_joints(effort_limit=[0.5, 0.5]), 3.0, q0=np.zeros(2))


def test_an_arm_too_weak_for_most_poses_starts_hanging(twolink):
    motion = plan_motion(twolink.with_joints(effort_limit=[3.0, 1.5]), 3.0)
    assert Dynamics(twolink).tip_pose(motion.q0)[1][2] < -0.8  # 0.9 m long
    assert motion.effort <= EFFORT_SHARE


