"""The viewer's ROS side without a browser: topics into the Feed, calls to nodes that are not there, scenarios."""
import time

import numpy as np
import pytest

from twolink_dynamics.viewer import Feed

rclpy = pytest.importorskip("rclpy", reason="these are ROS messages")
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue  # noqa: E402
from geometry_msgs.msg import PoseStamped, WrenchStamped  # noqa: E402
from rclpy.qos import QoSProfile  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

from twolink_dynamics.kinematics import frame_pose  # noqa: E402
from twolink_dynamics.nodes import viewer_topics  # noqa: E402
from twolink_dynamics.nodes.diagnostics import Reporter  # noqa: E402
from twolink_dynamics.nodes.viewer_actions import RosActions  # noqa: E402
from twolink_dynamics.nodes.viewer_scenarios import Plan, menu  # noqa: E402
from twolink_dynamics.scenarios import SCENARIOS  # noqa: E402

NAMES = {"simulator": "simulator", "dynamics": "dynamics"}
PATIENCE = 30.0  # [s] for a message on a loaded machine


class Bench:
    """A node that publishes by hand, in a namespace, and the FeedTopics that listen."""

    def __init__(self, arm):
        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        self.node = rclpy.create_node("bench", namespace="left", context=self.context)
        self.feed, self.reporter = Feed(arm), Reporter(self.node.get_logger())
        self.topics = viewer_topics.FeedTopics(self.node, self.feed, NAMES, "left_", self.reporter)
        self.publishers = {}

    def put(self, topic, message, until):
        """Publish until `until()` holds: discovery and best effort may lose the first ones."""
        if topic not in self.publishers:
            self.publishers[topic] = self.node.create_publisher(type(message), topic, QoSProfile(depth=10))
        deadline = time.monotonic() + PATIENCE
        while not until() and time.monotonic() < deadline:
            self.publishers[topic].publish(message)
            time.sleep(0.02)
            for _ in range(viewer_topics.SLOW):
                self.topics.look()
        assert until(), f"nothing came of {topic}"

    def state(self, t=5, **fields):
        message = JointState(**fields)
        message.header.stamp.sec = t
        return message

    def close(self):
        self.topics.destroy()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)


@pytest.fixture(scope="module")
def bench(twolink):
    bench = Bench(twolink)
    good = bench.state(name=["joint2", "gripper", "joint1"], position=[-0.4, 0.0, 0.3], velocity=[2.0, 0.0, 1.0],
                       effort=[20.0, 0.0, 10.0])
    bench.put("joint_states", good, lambda: bench.feed.q is not None)
    yield bench
    bench.close()


def test_states_are_taken_by_name(bench):
    assert bench.feed.q.tolist() == [0.3, -0.4] and bench.feed.qd.tolist() == [1.0, 2.0]
    assert bench.feed.effort.tolist() == [10.0, 20.0] and bench.feed.stamp == 5.0


def test_bad_states_are_counted_and_left_out(bench):
    bad = bench.state(6, name=["joint1", "joint2"], position=[float("nan"), 0.0])
    bench.put("joint_states", bad, lambda: bench.reporter.counts["rejected joint_states"] > 0)
    assert bench.feed.stamp == 5.0


def test_a_force_in_a_links_axes_is_turned_into_the_roots(bench, twolink):
    message = WrenchStamped()
    message.header.frame_id = "left_link2"
    message.wrench.force.x = 10.0
    bench.put("external_wrench", message, lambda: np.any(bench.feed.wrench))
    expected = frame_pose(twolink, bench.feed.q, "link2")[0] @ (10.0, 0.0, 0.0)
    assert np.allclose(bench.feed.wrench, expected) and abs(expected[0]) < 9.99  # the link is turned
    deadline = time.monotonic() + PATIENCE
    while np.any(bench.feed.wrench) and time.monotonic() < deadline:
        bench.topics.look()
        time.sleep(0.02)
    assert not np.any(bench.feed.wrench)  # stale


def test_a_target_in_a_links_frame_is_placed(bench, twolink):
    message = PoseStamped()
    message.header.frame_id = "left_tool0"
    message.pose.orientation.w = 1.0
    bench.put("target_pose", message, lambda: bench.feed.target is not None)
    rotation, position = frame_pose(twolink, bench.feed.q)
    assert np.allclose(bench.feed.target[0], rotation) and np.allclose(bench.feed.target[1], position)


def test_diagnostics_tell_of_pause_and_rate(bench):
    status = DiagnosticStatus(name="left/simulator", level=DiagnosticStatus.WARN, message="paused",
                              values=[KeyValue(key="rate [Hz]", value="998.5")])
    bench.put("/diagnostics", DiagnosticArray(status=[status]), lambda: bench.feed.paused)
    assert bench.feed.loop["rate"] == 998.5 and bench.feed.problems["simulator"] == "paused"


def test_a_node_that_fell_silent_is_missed_until_it_speaks(bench, monkeypatch):
    status = DiagnosticStatus(name="left/dynamics", message="running")
    monkeypatch.setattr(viewer_topics, "SILENT", -1.0)
    bench.put("/diagnostics", DiagnosticArray(status=[status]), lambda: "dynamics" in bench.feed.missing)
    monkeypatch.setattr(viewer_topics, "SILENT", 1e3)
    bench.put("/diagnostics", DiagnosticArray(status=[status]), lambda: bench.feed.missing == ())


def test_nodes_that_are_not_there_are_named(bench):
    actions, answers = RosActions(bench.node, bench.feed, NAMES, "left_base_link"), []
    actions.press("reset", answers.append)
    actions.set("dynamics", "kp", [1.0], answers.append)
    actions.scenario("push", answers.append)
    assert answers == ["no answer: node 'simulator' is not there", "no answer: node 'dynamics' is not there",
                       "there are no scenarios here"]


# -- scenarios on running nodes ----------------------------------------------------------------------------------------
def test_the_menu_is_about_this_arm(twolink):
    names = [name for name, _ in menu(twolink)]
    assert "push" in names and "four_bar" not in names


def test_a_scenario_puts_back_what_another_one_changed(twolink):
    assert Plan(SCENARIOS["payload"], twolink).parameters["simulator", "payload.mass"] > 0.0
    push = Plan(SCENARIOS["push"], twolink)
    assert push.fixed == [] and push.q0 == [0.5, 0.9]
    assert push.parameters["simulator", "payload.mass"] == 0.0
    assert push.parameters["dynamics", "controller"] == "impedance"
    tracking = Plan(SCENARIOS["tracking"], twolink)
    assert tracking.parameters["dynamics", "controller"] == "computed_torque"
    assert tracking.script[0].kind == "trajectory" and len(tracking.q0) == 2


def test_walls_and_springs_can_be_put_into_running_nodes(twolink):
    for name, parameter in (("wall", "contact.enabled"), ("flexible", "flexible.stiffness")):
        plan = Plan(SCENARIOS[name], twolink)
        assert plan.fixed == [] and plan.parameters["simulator", parameter]
        back = Plan(SCENARIOS["push"], twolink).parameters
        assert back["simulator", "contact.enabled"] is False and back["simulator", "flexible.stiffness"] == []
