"""RViz markers: the interactive-marker protocol in the server class, the pictures, and the node on real topics."""
import threading
import time

import numpy as np
import pytest

from twolink_dynamics.kinematics import frame_pose, link_poses

rclpy = pytest.importorskip("rclpy", reason="markers are ROS messages")
from geometry_msgs.msg import Point, Pose, PoseStamped, WrenchStamped  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.qos import QoSProfile  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from visualization_msgs.msg import (  # noqa: E402
    InteractiveMarkerControl,
    InteractiveMarkerFeedback,
    InteractiveMarkerUpdate,
    Marker,
    MarkerArray,
)
from visualization_msgs.srv import GetInteractiveMarkers  # noqa: E402

from twolink_dynamics.nodes.marker_server import OWNED, InteractiveServer  # noqa: E402
from twolink_dynamics.nodes.marker_shapes import ArmMarkers, draggable, make_pose_message  # noqa: E402
from twolink_dynamics.viewer import geometry  # noqa: E402

PATIENCE = 40.0  # [s] deadline for messages on a loaded machine
UPDATE, KEEP_ALIVE = InteractiveMarkerUpdate.UPDATE, InteractiveMarkerUpdate.KEEP_ALIVE
Feedback = InteractiveMarkerFeedback


class Client:
    """What RViz does: init by the service, then updates in sequence; `lost` where a number is missing."""

    def __init__(self, server):
        answer = server.describe(GetInteractiveMarkers.Response())
        self.sequence, self.lost = answer.sequence_number, False
        self.poses = {marker.name: marker.pose for marker in answer.markers}

    def take(self, update):
        if update.type == KEEP_ALIVE:
            self.lost |= update.seq_num != self.sequence
            return
        self.lost |= update.seq_num != self.sequence + 1
        self.sequence = update.seq_num
        self.poses.update({marker.name: marker.pose for marker in update.markers})
        self.poses.update({pose.name: pose.pose for pose in update.poses})
        for name in update.erases:
            del self.poses[name]


@pytest.fixture
def served():
    """(server, published updates, received feedback) with one marker 'ball' at x = 1."""
    sent, heard = [], []
    server = InteractiveServer("me", lambda update: sent.append(update))
    server.insert(draggable("ball", "", "base", (1.0, 0.0, 0.0), 0.1, (1.0, 0.0, 0.0, 1.0)), heard.append)
    server.apply()
    return server, sent, heard


def say(event, x=0.0, client="rviz", name="ball", frame="base"):
    message = Feedback(client_id=client, marker_name=name, event_type=event, pose=make_pose_message((x, 0.0, 0.0)))
    message.header.frame_id = frame
    return message


# -- protocol --------------------------------------------------------------------------------------------------------
def test_updates_carry_the_server_and_count_up(served):
    server, sent, _ = served
    assert (sent[0].type, sent[0].server_id, sent[0].seq_num) == (UPDATE, "me", 1)
    assert [marker.name for marker in sent[0].markers] == ["ball"]
    server.apply()
    assert len(sent) == 1  # nothing changed, nothing sent
    server.set_pose("ball", make_pose_message((2.0, 0.0, 0.0)))
    server.keep_alive()
    server.apply()
    assert [(update.type, update.seq_num) for update in sent[1:]] == [(KEEP_ALIVE, 1), (UPDATE, 2)]
    assert sent[-1].markers == [] and sent[-1].poses[0].name == "ball" and sent[-1].poses[0].pose.position.x == 2.0
    assert sent[-1].poses[0].header.frame_id == "base"


def test_a_late_joiner_gets_everything_and_can_follow(served):
    server, sent, _ = served
    for x in (2.0, 3.0):
        server.set_pose("ball", make_pose_message((x, 0.0, 0.0)))
        server.apply()
    client = Client(server)
    assert client.sequence == 3 and client.poses["ball"].position.x == 3.0
    before = len(sent)
    server.insert(draggable("cube", "", "base", (0.0, 0.0, 0.0), 0.1, (1.0, 0.0, 0.0, 1.0)), lambda feedback: None)
    server.apply()
    server.erase("ball")
    server.apply()
    server.keep_alive()
    for update in sent[before:]:
        client.take(update)
    assert not client.lost and set(client.poses) == {"cube"}


def test_a_missed_update_shows_at_the_next_keep_alive(served):
    server, sent, _ = served
    client = Client(server)
    server.set_pose("ball", make_pose_message((5.0, 0.0, 0.0)))
    server.apply()  # and the client does not hear it
    server.keep_alive()
    client.take(sent[-1])
    assert client.lost


def test_what_is_not_applied_is_in_neither_answer_nor_sequence(served):
    server, _, _ = served
    server.insert(draggable("cube", "", "base", (0.0, 0.0, 0.0), 0.1, (1.0, 0.0, 0.0, 1.0)), lambda feedback: None)
    assert set(Client(server).poses) == {"ball"} and Client(server).sequence == 1


def test_feedback_moves_the_marker_for_late_joiners(served):
    server, sent, heard = served
    assert server.feedback(say(Feedback.MOUSE_DOWN), 0.0)
    assert server.feedback(say(Feedback.POSE_UPDATE, 4.0), 0.1)
    assert server.feedback(say(Feedback.MOUSE_UP, 4.0), 0.2)
    assert [message.event_type for message in heard] == [Feedback.MOUSE_DOWN, Feedback.POSE_UPDATE, Feedback.MOUSE_UP]
    assert Client(server).poses["ball"].position.x == 4.0
    server.apply()
    assert sent[-1].poses[0].pose.position.x == 4.0  # other clients see it, too


def test_a_marker_belongs_to_the_one_who_drags_it(served):
    server, _, heard = served
    assert server.feedback(say(Feedback.POSE_UPDATE, 2.0, "first"), 0.0)
    assert not server.feedback(say(Feedback.POSE_UPDATE, 9.0, "second"), 0.5 * OWNED)
    assert len(heard) == 1 and Client(server).poses["ball"].position.x == 2.0
    assert server.feedback(say(Feedback.POSE_UPDATE, 3.0, "second"), 2.0 * OWNED)  # the first one fell silent
    assert server.feedback(say(Feedback.MOUSE_UP, 3.0, "second"), 2.1 * OWNED)
    assert server.feedback(say(Feedback.POSE_UPDATE, 4.0, "first"), 2.2 * OWNED)  # released: free at once


def test_unknown_markers_and_foreign_frames_change_nothing(served):
    server, _, heard = served
    assert not server.feedback(say(Feedback.POSE_UPDATE, 1.0, name="nobody"), 0.0)
    assert server.feedback(say(Feedback.POSE_UPDATE, 7.0, frame="elsewhere"), 0.0)
    assert Client(server).poses["ball"].position.x == 1.0 and len(heard) == 1  # whoever handles it may convert


# -- pictures --------------------------------------------------------------------------------------------------------
def array(point):
    return np.array([point.x, point.y, point.z])


def test_markers_stand_where_kinematics_says(twolink):
    markers, q = ArmMarkers(twolink, "world_base"), np.array([0.4, -0.9])
    drawn = markers.update(q, np.array([30.0, -9.0]), np.array([0.0, 0.0, -20.0]), None, (0.3, 0.0, 0.4))
    rotations, origins = link_poses(twolink, q)
    by_name = {(marker.ns, marker.id): marker for marker in drawn}
    assert len(by_name) == len(drawn)  # no id twice
    assert all(marker.header.frame_id == "world_base" for marker in drawn)
    for i, link in enumerate(twolink.links):
        com = origins[i] + rotations[i] @ link.com
        assert np.allclose(array(by_name["com", i].pose.position), com)
        assert np.allclose(array(by_name["inertia", i].pose.position), com)
    start, end = (array(point) for point in by_name["force", 0].points)
    assert np.allclose(start, frame_pose(twolink, q)[1]) and end[2] < start[2]
    assert by_name["contact", 0].action == Marker.DELETE
    assert by_name["target", 0].action == Marker.ADD and by_name["target", 0].pose.position.z == 0.4
    assert len(by_name["torque", 0].points) % 2 == 0  # a LINE_LIST
    for marker in drawn:
        if marker.action == Marker.ADD:
            assert marker.scale.x > 0.0 and marker.color.a > 0.0
            assert np.isclose(sum(getattr(marker.pose.orientation, k)**2 for k in "xyzw"), 1.0)


def test_markers_vanish_with_what_they_show(twolink):
    markers = ArmMarkers(twolink, "base")
    markers.update(np.zeros(2), np.array([30.0, 9.0]), np.ones(3), np.ones(3), np.zeros(3))
    gone = {marker.ns for marker in markers.update(np.zeros(2)) if marker.action == Marker.DELETE}
    assert gone == {"torque", "force", "contact", "target", "trail"}
    drawn = markers.update(np.array([0.0, 1.0]))
    assert next(marker for marker in drawn if marker.ns == "trail").action == Marker.ADD  # the tip moved


def test_a_planar_arms_marker_moves_in_its_plane(twolink):
    plane = geometry.plane_of(twolink)
    marker = draggable("target", "", "base", (0.5, 0.0, 0.0), 0.03, (1.0, 0.0, 0.0, 1.0), plane, True)
    control, = marker.controls
    assert control.interaction_mode == InteractiveMarkerControl.MOVE_PLANE
    o = control.orientation
    normal = geometry.rotation_of_quaternion((o.w, o.x, o.y, o.z))[:, 0]  # the control's x axis
    assert np.allclose(normal, plane.normal)
    free = draggable("target", "", "base", (0.5, 0.0, 0.0), 0.03, (1.0, 0.0, 0.0, 1.0), None, True)
    modes = [control.interaction_mode for control in free.controls]
    assert modes.count(InteractiveMarkerControl.MOVE_AXIS) == modes.count(InteractiveMarkerControl.ROTATE_AXIS) == 3


# -- the node --------------------------------------------------------------------------------------------------------
class Rig:
    """A MarkersNode, and a node that plays simulator and RViz, turned by one thread."""

    def __init__(self):
        from twolink_dynamics.nodes.markers_node import MarkersNode
        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        self.node = MarkersNode(overrides={"urdf": "twolink", "frame_prefix": "left_"}, context=self.context)
        self.rviz = rclpy.create_node("fake_rviz", context=self.context)
        self.updates, self.arrays, self.targets, self.forces = [], [], [], []
        qos = QoSProfile(depth=100)
        self.states = self.rviz.create_publisher(JointState, "joint_states", qos)
        self.feedback = self.rviz.create_publisher(Feedback, "markers/interactive/feedback", qos)
        self.rviz.create_subscription(InteractiveMarkerUpdate, "markers/interactive/update", self.updates.append, qos)
        self.rviz.create_subscription(MarkerArray, "markers/array", self.arrays.append, qos)
        self.rviz.create_subscription(PoseStamped, "target_pose", self.targets.append, qos)
        self.rviz.create_subscription(WrenchStamped, "external_wrench", self.forces.append, qos)
        self.get = self.rviz.create_client(GetInteractiveMarkers, "markers/interactive/get_interactive_markers")
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.executor.add_node(self.rviz)
        self.q = np.array([0.5, 0.9])
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._turn, daemon=True)
        self.thread.start()

    def _turn(self):
        spoken = 0.0
        while not self.stop.is_set():
            now = time.perf_counter()
            if now > spoken + 0.02:
                spoken = now
                msg = JointState(name=["joint1", "joint2"], position=self.q.tolist(), velocity=[0.0, 0.0],
                                 effort=[20.0, 5.0])
                msg.header.stamp = self.rviz.get_clock().now().to_msg()
                self.states.publish(msg)
            if self.node.due <= now:
                self.node.tick(now)
            self.executor.spin_once(timeout_sec=0.005)

    def wait(self, condition, what):
        deadline = time.monotonic() + PATIENCE
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert condition(), f"{what} did not happen"

    def close(self):
        self.stop.set()
        self.thread.join(10.0)
        self.executor.shutdown()
        self.rviz.destroy_node()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)

    def say(self, event, name, position):
        message = Feedback(client_id="rviz", marker_name=name, event_type=event,
                           pose=Pose(position=Point(x=position[0], y=position[1], z=position[2])))
        message.pose.orientation.w = 1.0
        message.header.frame_id = "left_base_link"
        self.feedback.publish(message)


@pytest.fixture(scope="module")
def rig():
    rig = Rig()
    yield rig
    rig.close()


def test_the_node_answers_a_late_joiner_and_keeps_alive(rig, twolink):
    rig.wait(rig.get.service_is_ready, "the service")
    rig.wait(lambda: any(update.type == KEEP_ALIVE for update in rig.updates), "a keep-alive")
    future = rig.get.call_async(GetInteractiveMarkers.Request())
    rig.wait(future.done, "an answer")
    markers = {marker.name: marker for marker in future.result().markers}
    assert set(markers) == {"target", "push"}
    assert markers["push"].header.frame_id == "left_base_link"
    tip = frame_pose(twolink, rig.q)[1]
    rig.wait(lambda: rig.node.feed.q is not None, "states")
    rig.wait(lambda: any(np.allclose(array(pose.pose.position), tip, atol=1e-3) for update in list(rig.updates)
                         for pose in update.poses if pose.name == "push"), "the push marker sitting on the tip")
    numbers = [update.seq_num for update in list(rig.updates) if update.type == UPDATE]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_the_node_draws_the_arm(rig, twolink):
    rig.wait(lambda: rig.arrays, "a MarkerArray")
    spaces = {marker.ns for marker in rig.arrays[-1].markers}
    assert {"torque", "com", "inertia", "force", "contact", "target", "trail"} == spaces


def test_dragging_the_target_publishes_it_in_the_plane(rig):
    rig.wait(lambda: rig.feedback.get_subscription_count(), "somebody listening")
    rig.say(Feedback.MOUSE_DOWN, "target", (0.5, 0.0, 0.2))
    rig.say(Feedback.POSE_UPDATE, "target", (0.4, 0.3, 0.3))  # RViz may leave the plane by rounding; here by a lot
    rig.wait(lambda: rig.targets, "a target")
    pose = rig.targets[-1].pose
    assert np.allclose(array(pose.position), (0.4, 0.0, 0.3)) and pose.orientation.w == 0.0  # position alone
    assert rig.targets[-1].header.frame_id == "left_base_link"
    rig.say(Feedback.MOUSE_UP, "target", (0.4, 0.0, 0.3))


def test_pushing_pulls_towards_the_marker_and_ends_with_zero(rig, twolink):
    rig.wait(lambda: rig.node.feed.q is not None and rig.feedback.get_subscription_count(), "states")
    rig.forces.clear()
    tip = frame_pose(twolink, rig.q)[1]
    rig.say(Feedback.MOUSE_DOWN, "push", tip)
    rig.say(Feedback.POSE_UPDATE, "push", tip + (0.05, 0.0, 0.1))
    rig.wait(lambda: rig.forces, "a force")
    stiffness = rig.node.parameters["push_stiffness"]
    assert np.allclose(array(rig.forces[-1].wrench.force), stiffness * np.array([0.05, 0.0, 0.1]), atol=1e-6)
    rig.say(Feedback.MOUSE_UP, "push", tip + (0.05, 0.0, 0.1))
    rig.wait(lambda: not np.any(array(rig.forces[-1].wrench.force)), "the force ending on release")
    count = len(rig.forces)
    rig.wait(lambda: rig.updates and any(pose.name == "push" and np.allclose(array(pose.pose.position), tip, atol=1e-3)
                                         for pose in rig.updates[-1].poses) or rig.node.cursor is None, "going back")
    assert len(rig.forces) == count


def test_a_client_that_vanishes_lets_go(rig, twolink, monkeypatch):
    from twolink_dynamics.nodes import markers_node
    monkeypatch.setattr(markers_node, "ABANDONED", 0.3)
    rig.forces.clear()
    tip = frame_pose(twolink, rig.q)[1]
    rig.say(Feedback.POSE_UPDATE, "push", tip + (0.05, 0.0, 0.0))
    rig.wait(lambda: rig.forces, "a force")
    rig.wait(lambda: not np.any(array(rig.forces[-1].wrench.force)), "the force ending without a release")


def test_bad_feedback_is_refused(rig):
    before = len(rig.targets)
    rig.say(Feedback.POSE_UPDATE, "target", (np.nan, 0.0, 0.0))
    rig.say(Feedback.POSE_UPDATE, "nobody", (0.0, 0.0, 0.0))
    rig.wait(lambda: rig.node.reporter.counts["rejected feedback"] >= 1, "the refusal")
    assert len(rig.targets) == before


# -- the RViz configuration ------------------------------------------------------------------------------------------
def test_rviz_looks_at_what_the_nodes_publish(twolink, rig):
    yaml = pytest.importorskip("yaml")
    from twolink_dynamics.resources import resource
    manager = yaml.safe_load(resource("rviz", "twolink.rviz").read_text())["Visualization Manager"]
    displays = {display["Class"].rpartition("/")[2]: display for display in manager["Displays"]}
    assert {"RobotModel", "TF", "MarkerArray", "InteractiveMarkers"} <= set(displays)
    assert all(display["Enabled"] for display in displays.values())
    assert manager["Global Options"]["Fixed Frame"] == twolink.root
    assert displays["RobotModel"]["Description Topic"]["Durability Policy"] == "Transient Local"  # latched before RViz
    published = {topic.lstrip("/") for topic, _ in rig.node.get_publisher_names_and_types_by_node("markers", "/")}
    assert displays["MarkerArray"]["Topic"]["Value"] in published
    space = displays["InteractiveMarkers"]["Interactive Markers Namespace"]
    assert f"{space}/update" in published
    rig.wait(lambda: rig.arrays, "a MarkerArray")
    assert set(displays["MarkerArray"]["Namespaces"]) == {marker.ns for marker in rig.arrays[-1].markers}
