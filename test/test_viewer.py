"""The viewer without a browser and without ROS: shapes, geometry, feed, mouse, panels, exports, who may connect."""
import asyncio
import csv
import io
import types
import urllib.error
import urllib.request
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from twolink_dynamics import Dynamics, load_urdf
from twolink_dynamics.arm import Link
from twolink_dynamics.kinematics import frame_pose, joint_pose
from twolink_dynamics.viewer import Actions, Feed, geometry, visuals

ROUNDING = 1e-12
ONE_VISUAL = """<robot name="r"><link name="a"><visual>{0}</visual></link></robot>"""


class Noted(Actions):
    """Writes down what the page wants; refuses what `refuse` names."""

    def __init__(self, refuse=()):
        self.refuse = refuse
        self.targets, self.forces, self.calls = [], [], []

    def target(self, position, rotation=None):
        self.targets.append(np.array(position))

    def push(self, force):
        self.forces.append(np.array(force))

    def press(self, name, done):
        self.calls.append(name)
        done("not now" if name in self.refuse else "")

    def set(self, node, name, value, done):
        self.calls.append((node, name, value))
        done("parameter out of bounds" if name in self.refuse else "")

    def scenario(self, name, done):
        self.calls.append(("scenario", name))
        done("")


# -- shapes ----------------------------------------------------------------------------------------------------------
def test_the_shipped_arm_has_its_visuals(twolink):
    from twolink_dynamics.resources import find_urdf
    shapes = visuals.parse_visuals(find_urdf("twolink"))
    assert [shape.kind for shape in shapes] == ["cylinder"] * 5 + ["sphere"]
    rod = next(shape for shape in shapes if shape.link == "link2")
    assert rod.size == (0.02, 0.4) and rod.rgba == (0.90, 0.49, 0.13, 1.0)
    assert np.allclose(rod.pose.translation, (0.2, 0.0, 0.0))
    assert np.allclose(rod.pose.rotation @ (0, 0, 1), (1.0, 0.0, 0.0), atol=ROUNDING)  # along the link


@pytest.mark.parametrize("text", [
    "<geometry><box size='1 2'/></geometry>", "<geometry><box size='1 2 x'/></geometry>", "<geometry/>", "",
    "<geometry><sphere radius='-1'/></geometry>", "<geometry><cylinder radius='1'/></geometry>",
    "<geometry><sphere radius='nan'/></geometry>", "<geometry><cone r='1'/></geometry>",
    "<origin xyz='1 2'/><geometry><sphere radius='1'/></geometry>",
    "<geometry><mesh filename='package://nowhere/part.stl'/></geometry>",
    "<geometry><mesh filename='http://127.0.0.1/part.stl'/></geometry>",
    "<geometry><mesh filename='package://twolink_dynamics/../../../etc/passwd'/></geometry>"])
def test_what_cannot_be_drawn_is_left_out(text):
    assert visuals.parse_visuals(ONE_VISUAL.format(text)) == ()
    good = "<geometry><sphere radius='1'/></geometry>"
    assert len(visuals.parse_visuals(ONE_VISUAL.format(good))) == 1  # the premise


def test_entities_are_not_expanded():
    text = '<!DOCTYPE robot [<!ENTITY a "x">]><robot name="r"><link name="a"/></robot>'
    assert visuals.parse_visuals(text) == ()


def test_a_mesh_on_this_disk_is_read(tmp_path):
    part = tmp_path / "part.stl"
    part.write_text("solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\n"
                    "endfacet\nendsolid a\n")
    trimesh = pytest.importorskip("trimesh")
    assert trimesh
    shape, = visuals.parse_visuals(ONE_VISUAL.format(
        f"<geometry><mesh filename='file://{part}' scale='2 2 2'/></geometry>"))
    vertices, faces = visuals.mesh_arrays(shape)
    assert faces.shape == (1, 3) and vertices.max() == 2.0
    part.write_text("not a mesh")
    assert visuals.mesh_arrays(shape) is None


# -- geometry --------------------------------------------------------------------------------------------------------
def test_planar_arms_are_known_with_their_plane(twolink):
    plane = geometry.plane_of(twolink)
    assert np.allclose(plane.normal, (0.0, -1.0, 0.0))  # positive angles look counter-clockwise from there
    assert np.allclose(plane.project((1.0, 2.0, 3.0)), (1.0, 0.0, 3.0))
    assert np.allclose(plane.hit((0.3, -2.0, 0.1), (0.0, 1.0, 0.0)), (0.3, 0.0, 0.1))
    assert plane.hit((0.0, -2.0, 0.0), (1.0, 0.0, 0.0)) is None  # along the plane
    assert plane.hit((0.0, -2.0, 0.0), (0.0, -1.0, 0.0)) is None  # away from it


def test_a_spatial_arm_has_no_plane(field_cases):
    assert geometry.plane_of(load_urdf(field_cases / "urdf" / "erd_ur5.urdf", tip="tool0")) is None


def test_quaternions_round_trip():
    rng = np.random.default_rng(5)
    for wxyz in (*rng.normal(size=(50, 4)), *np.eye(4)):
        rotation = geometry.rotation_of_quaternion(wxyz)
        back = geometry.quaternion(rotation)
        assert np.abs(geometry.rotation_of_quaternion(back) - rotation).max() < ROUNDING
        assert back[0] >= 0.0 and abs(np.linalg.norm(back) - 1.0) < ROUNDING


def test_a_torque_arc_turns_the_way_the_torque_does():
    axis = np.array([0.0, -1.0, 0.0])
    for share in (0.4, -0.4):
        arc = geometry.torque_arc(axis, share, 0.1)[:geometry.ARC_POINTS]
        turn = sum(axis @ np.cross(a, b) for a, b in zip(arc, arc[1:]))
        assert np.sign(turn) == np.sign(share)
        assert np.allclose(np.linalg.norm(arc, axis=1), 0.1) and np.allclose(arc @ axis, 0.0)


def test_the_inertia_ellipsoid_has_the_links_inertia(twolink):
    link = Link("box", 2.0, (0, 0, 0), np.diag((0.03, 0.02, 0.04)))
    axes, radii = geometry.inertia_ellipsoid(link)
    a2 = radii**2
    body = axes @ np.diag(0.2 * link.mass * (a2.sum() - a2)) @ axes.T  # of a solid ellipsoid
    assert np.abs(body - link.inertia).max() < 1e-9  # radii below a thousandth are lifted
    assert geometry.inertia_ellipsoid(Link("none", 0.0, (0, 0, 0), np.zeros((3, 3)))) is None


def test_a_spring_reaches_from_tip_to_cursor():
    segments = geometry.spring_segments((1.0, 0.0, 0.0), (1.0, 0.0, 2.0), (0.0, 1.0, 0.0), 0.1)
    assert np.allclose(segments[0, 0], (1, 0, 0)) and np.allclose(segments[-1, 1], (1, 0, 2))
    assert np.abs(segments[:, :, 0] - 1.0).max() == pytest.approx(0.1)
    assert np.isfinite(geometry.spring_segments((0, 0, 0), (0, 0, 0), (0, 0, 1), 0.1)).all()


def test_the_push_pulls_the_arm_towards_the_cursor():
    from twolink_dynamics.viewer.interaction import spring_force
    assert np.allclose(spring_force((1.0, 0.0, 0.0), (1.0, 0.0, 0.1), 200.0, 1e9), (0.0, 0.0, 20.0))
    assert np.allclose(spring_force((1.0, 0.0, 0.0), (1.0, 0.0, 0.1), 200.0, 5.0), (0.0, 0.0, 5.0))


# -- feed and exports ------------------------------------------------------------------------------------------------
def fill(feed, seconds=4.0, start=1e9):
    n = feed.arm.n
    feed.energy = {"kinetic": 1.0, "balance": 0.0}
    feed.terms = {"gravity": np.full(n, 3.0)}
    for t in start + np.arange(0.0, seconds, 0.01):
        feed.state(t, np.full(n, t - start), np.ones(n), np.full(n, 2.0))
        feed.sample()


def test_history_keeps_the_last_minute_at_its_rate(twolink):
    feed = Feed(twolink, seconds=2.0, rate=50.0)
    fill(feed, 5.0)
    table = feed.history.table()
    assert len(table) == 100
    assert np.allclose(np.diff(table[:, 0]), 0.02, atol=1e-6)  # stamps near 1e9 s resolve 0.1 µs
    assert table[-1, feed.history.index("q/joint2")] == pytest.approx(4.98, abs=0.011)
    assert np.isnan(table[:, feed.history.index("reference/joint1")]).all()
    assert len(feed.history.table(10)) == 10
    feed.state(5.0, np.zeros(2))
    assert len(feed.history) == 0 and feed.origin == 5.0  # a reset


def test_csv_has_every_column_and_leaves_the_unknown_empty(twolink):
    feed = Feed(twolink)
    fill(feed)
    from twolink_dynamics.viewer import export
    rows = list(csv.DictReader(io.StringIO(export.csv_bytes(feed).decode())))
    assert len(rows) == 200
    assert float(rows[-1]["q/joint1"]) == pytest.approx(3.98, abs=0.011)
    assert float(rows[0]["torque/gravity/joint2"]) == 3.0
    assert rows[0]["reference/joint1"] == "" and rows[0]["energy/impact"] == ""


def test_the_bag_is_read_by_an_independent_reader(twolink, tmp_path):
    pytest.importorskip("rosbags")
    mcap = pytest.importorskip("mcap_ros2.reader")
    feed = Feed(twolink)
    fill(feed)
    from twolink_dynamics.viewer import export
    path = tmp_path / "minute.mcap"
    path.write_bytes(export.mcap_bytes(feed))
    seen = {}
    for message in mcap.read_ros2_messages(str(path)):
        seen.setdefault(message.channel.topic, []).append(message.ros_msg)
    assert len(seen["/joint_states"]) == 200
    last = seen["/joint_states"][-1]
    assert list(last.name) == ["joint1", "joint2"] and last.position[0] == pytest.approx(3.98, abs=0.011)
    assert last.header.stamp.sec == 1_000_000_003
    assert list(seen["/dynamics/torque/gravity"][0].effort) == [3.0, 3.0]
    assert "/dynamics/reference" not in seen  # never known
    assert seen["/simulator/energy/kinetic"][0].data == 1.0
    from mcap.reader import make_reader
    with path.open("rb") as stream:
        assert make_reader(stream).get_header().profile == "ros2"  # what rosbag2 asks for


# -- equations -------------------------------------------------------------------------------------------------------
def test_equations_are_well_formed_mathml_with_the_arms_numbers(twolink):
    from twolink_dynamics.viewer import equations
    pytest.importorskip("sympy")
    q, qd = np.array([0.4, -0.7]), np.array([1.0, 2.0])
    dynamics = Dynamics(twolink)
    numbers = equations.numbers_html(twolink, dynamics, q, qd)
    shown = [float(cell.text.replace("−", "-")) for cell in ElementTree.fromstring(numbers).iter("td")]
    expected = [*np.ravel(dynamics.mass_matrix(q)), *np.ravel(dynamics.coriolis_matrix(q, qd)), *dynamics.gravity(q)]
    assert np.abs(np.subtract(shown, expected)).max() < 6e-4  # three decimals
    assert numbers != equations.numbers_html(twolink, dynamics, q + 0.1, qd)
    ElementTree.fromstring(equations.general_html())
    symbolic = "".join(ElementTree.fromstring(equations.symbolic_html(twolink)).itertext())
    for entry in ("M11=0.856667+0.4cos(q2)", "C11=−0.2q\u03072sin(q2)", "g2=3.924cos(q1+q2)"):
        assert entry in symbolic


# -- the page, without a browser -------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def page():
    pytest.importorskip("viser", reason="the viewer needs viser")
    from twolink_dynamics.resources import find_urdf
    from twolink_dynamics.viewer.page import Page
    arm = load_urdf(find_urdf("twolink"))
    page = Page(arm, Feed(arm), Noted(), find_urdf("twolink"), (("push", "a push"), ("tracking", "a path")), port=0)
    yield page
    page.close()


@pytest.fixture
def actions(page):
    """Fresh notes for one test."""
    page.actions = page.interaction.actions = page.panels.actions = Noted()
    return page.actions


def pose_of(handle):
    """Pose of a scene node in the world, through all its parents."""
    api, name = handle._impl.api, handle.name
    rotation, position = np.eye(3), np.zeros(3)
    while name:
        node = api.get_handle_by_name(name)
        R = geometry.rotation_of_quaternion(node.wxyz)
        rotation, position = R @ rotation, R @ position + node.position
        name = name.rpartition("/")[0]
    return rotation, position


def test_the_drawn_arm_stands_where_kinematics_says(page):
    for q in ([0.3, -1.1], [-2.0, 2.5]):
        page.scene.update(np.array(q))
        expected = frame_pose(page.arm, np.array(q))
        rotation, position = pose_of(page.scene.handle)
        assert np.abs(position - expected[1]).max() < 1e-7  # viser ignores changes below 1e-8 relative
        assert np.abs(rotation - expected[0]).max() < 1e-7


def test_turning_quaternions_are_the_joints_rotation(page):
    from twolink_dynamics.viewer.scene import turning
    for joint in page.arm.joints:
        a, b = turning(joint)
        for angle in (0.0, 0.7, -3.0):
            R = geometry.rotation_of_quaternion(a * np.cos(angle / 2) + b * np.sin(angle / 2))
            assert np.abs(R - joint_pose(joint, angle)[0]).max() < ROUNDING


def test_forces_torques_and_ghost_appear_and_vanish(page):
    scene = page.scene
    scene.update(np.zeros(2))
    scene.torques(np.array([30.0, 0.0]))
    scene.forces(np.array([0.0, 0.0, -10.0]))
    scene.ghost(np.array([0.5, 0.0]))
    assert [arc.visible for arc in scene._arcs] == [True, False]
    start, end = scene._force.points[0]
    assert scene._force.visible and end[2] < start[2] and np.allclose(start, scene.tip, atol=1e-6)
    assert scene._ghost.visible
    scene.torques(None)
    scene.forces(np.zeros(3))
    scene.ghost(None)
    assert not any(arc.visible for arc in scene._arcs) and not scene._force.visible and not scene._ghost.visible


def test_an_arm_without_visuals_is_drawn_as_sticks(twolink):
    from twolink_dynamics.viewer.scene import sticks
    kinds = [(shape.link, shape.kind) for shape in sticks(twolink, 0.9)]
    assert ("link1", "cylinder") in kinds and ("link2", "cylinder") in kinds
    assert any(kind == "sphere" for _, kind in kinds)


def pointer(page, phase, target, world, client_id=1):
    """A viser drag event whose ray meets the arm's plane at `world`."""
    camera = np.array([0.2, -2.0, 0.4])
    client = types.SimpleNamespace(camera=types.SimpleNamespace(position=camera), client_id=client_id)
    end = camera + 0.7 * (np.asarray(world) - camera)  # some depth on the ray
    return types.SimpleNamespace(phase=phase, target=target, client=client, client_id=client_id,
                                 end_position=tuple(end), start_position=tuple(page.scene.target.position))


def drag(page, target, *points):
    for phase, point in zip(("start", *["update"] * (len(points) - 2), "end"), points):
        asyncio.run(page.interaction._dragged(pointer(page, phase, target, point)))
        if phase != "end":
            page.interaction.tick()


def test_dragging_moves_the_target_in_the_plane(page, actions):
    page.interaction.switch("move the target")
    page.scene.target.position = (0.5, 0.0, 0.2)
    drag(page, page.scene.target, (0.5, 0.0, 0.2), (0.4, 0.0, 0.5), (0.4, 0.0, 0.5))
    assert np.allclose(actions.targets[-1], (0.4, 0.0, 0.5), atol=1e-9)
    assert actions.forces == []


def test_pulling_sends_the_springs_force_and_zero_on_release(page, actions):
    page.scene.update(np.array([0.5, 0.9]))
    page.interaction.switch("push the tip")
    page.interaction.stiffness = 100.0
    cursor = page.scene.tip + (0.1, 0.0, -0.05)
    drag(page, page.scene.handle, page.scene.tip, cursor, cursor)
    assert np.allclose(actions.forces[-2], (10.0, 0.0, -5.0), atol=1e-6)
    assert np.array_equal(actions.forces[-1], np.zeros(3))
    page.interaction.tick()
    assert len(actions.forces) == 3 and actions.targets == []  # nothing after the release
    page.interaction.switch()
    assert page.interaction.mode == "move the target"


def test_switching_while_pulling_lets_go(page, actions):
    page.interaction.switch("push the tip")
    asyncio.run(page.interaction._dragged(pointer(page, "start", page.scene.handle, page.scene.tip + (0.1, 0, 0))))
    page.interaction.tick()
    assert np.linalg.norm(actions.forces[-1]) > 0.0
    page.interaction.switch("move the target")
    assert np.array_equal(actions.forces[-1], np.zeros(3))


def test_a_browser_that_goes_away_while_pulling_lets_go(page, actions):
    left = page.server._client_disconnect_cb
    page.interaction.switch("push the tip")
    pull = page.scene.tip + (0.1, 0, 0)
    asyncio.run(page.interaction._dragged(pointer(page, "start", page.scene.handle, pull, client_id=1)))
    page.interaction.tick()
    assert np.linalg.norm(actions.forces[-1]) > 0.0
    for told in left:
        asyncio.run(told(types.SimpleNamespace(client_id=2)))  # somebody who only looked
    assert page.interaction.cursor is not None
    for told in left:
        asyncio.run(told(types.SimpleNamespace(client_id=1)))
    assert page.interaction.cursor is None and np.array_equal(actions.forces[-1], np.zeros(3))


def test_the_first_of_two_browsers_holds_the_arm(page, actions):
    page.interaction.switch("push the tip")
    mine, other = page.scene.tip + (0.1, 0, 0), page.scene.tip - (0.1, 0, 0)
    for phase, point, client_id in (("start", mine, 1), ("start", other, 2), ("update", other, 2), ("end", other, 2)):
        asyncio.run(page.interaction._dragged(pointer(page, phase, page.scene.handle, point, client_id)))
    assert np.allclose(page.interaction.cursor, mine) and actions.forces == []
    asyncio.run(page.interaction._dragged(pointer(page, "end", page.scene.handle, mine, 1)))
    assert page.interaction.cursor is None
    asyncio.run(page.interaction._dragged(pointer(page, "start", page.scene.handle, other, 2)))
    assert np.allclose(page.interaction.cursor, other)
    page.interaction.switch("move the target")


def test_a_silent_node_is_named_on_the_page(page):
    feed, panels = page.feed, page.panels
    feed.state(1.0, np.array([0.5, 0.9]))
    for missing, told in (((), "live"), (("dynamics",), "no dynamics node"), (("simulator",), "no more joint_states")):
        feed.missing = missing
        panels.update()
        assert told in panels.status.content
    feed.missing = ()
    panels.update()
    assert "no dynamics node" not in panels.status.content


def test_moving_the_target_turns_impedance_on(page, actions):
    page.feed.parameters["dynamics", "controller"] = "computed_torque"
    page.interaction.move((0.3, 0.4, 0.2))
    assert ("dynamics", "controller", "impedance") in actions.calls
    assert np.allclose(actions.targets[-1], (0.3, 0.0, 0.2))
    assert len(actions.targets) == 2  # once more when the law is there
    page.interaction.move((0.3, 0.0, 0.25))
    assert len([call for call in actions.calls if call[1] == "controller"]) == 1


def test_sliders_appear_with_the_parameters_and_refusals_are_taken_back(page, actions):
    from twolink_dynamics.viewer.panels import CONTROLS
    panels, feed = page.panels, page.feed
    number = next(i for i, c in enumerate(CONTROLS) if c.name == "kp")
    feed.parameters["dynamics", "kp"] = [100.0, 100.0]
    panels.update()
    handle = panels._sliders[number][0]
    assert handle.value == 100.0
    panels.send("dynamics", "kp", [50.0, 50.0])
    assert actions.calls == [("dynamics", "kp", [50.0, 50.0])]
    panels.update()
    assert handle.value == 50.0
    feed.parameters["dynamics", "kp"] = [70.0, 70.0]  # changed by somebody else
    panels.update()
    assert handle.value == 70.0
    actions.refuse = ("kp",)
    handle.value = 400.0
    panels.send("dynamics", "kp", [400.0, 400.0])
    assert "parameter out of bounds" in panels.message and handle.value == 70.0


def test_a_slider_sets_its_part_of_a_list(page, actions):
    from twolink_dynamics.viewer.panels import CONTROLS
    page.feed.parameters["dynamics", "stiffness"] = [400.0] * 3 + [20.0] * 3
    page.panels.update()
    number = next(i for i, c in enumerate(CONTROLS) if c.name == "stiffness")
    handle = page.panels._sliders[number][0]
    changed, = handle._impl.update_cb
    handle.value = 520.0
    actions.calls.clear()
    asyncio.run(changed(types.SimpleNamespace(client=object())))
    assert actions.calls == [("dynamics", "stiffness", [520.0] * 3 + [20.0] * 3)]
    asyncio.run(changed(types.SimpleNamespace(client=None)))
    assert len(actions.calls) == 1  # the program moved it, nobody else


def test_only_the_newest_value_waits_for_an_answer(page):
    answers = []

    class Slow(Noted):
        def set(self, node, name, value, done):
            super().set(node, name, value, lambda text: None)
            answers.append(done)
    page.panels.actions = slow = Slow()
    for value in (1.0, 2.0, 3.0):
        page.panels.send("dynamics", "damping_ratio", value)
    assert [call[2] for call in slow.calls] == [1.0]
    answers[0]("")
    assert [call[2] for call in slow.calls] == [1.0, 3.0]
    answers[1]("")


def test_a_refused_button_says_so(page, actions):
    actions.refuse = ("step",)
    page.panels.press("step")
    assert "step: not now" in page.panels.message
    page.panels.press("reset")
    assert page.panels.message == ""


def test_the_scene_is_saved_as_one_file(page):
    from twolink_dynamics.viewer import export
    text = export.html_bytes(page.server).decode()
    assert text.lstrip().lower().startswith("<!doctype html")
    assert "<script src=\"http" not in text and len(text) > 100_000


# -- who may connect -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("headers", "welcome"), [
    ({"Host": "127.0.0.1:8080", "Origin": "http://127.0.0.1:8080"}, True),
    ({"Host": "localhost:8080", "Origin": "http://localhost:8080"}, True),
    ({"Host": "127.0.0.1:8080"}, True),  # a page load, or a program that is no browser
    ({"Host": "127.0.0.1:8080", "Origin": "http://evil.example"}, False),
    ({"Host": "127.0.0.1:8080", "Origin": "http://127.0.0.1:9000"}, False),
    ({"Host": "127.0.0.1:8080", "Origin": "null"}, False),
    ({"Host": "evil.example:8080", "Origin": "http://evil.example:8080"}, False),  # a name made to resolve here
    ({}, False)])
def test_who_is_refused(headers, welcome):
    pytest.importorskip("viser")
    from twolink_dynamics.viewer.server import refusal
    assert (refusal(headers, "127.0.0.1") is None) == welcome


def test_a_server_for_other_machines_still_wants_its_own_page():
    pytest.importorskip("viser")
    from twolink_dynamics.viewer.server import refusal
    assert refusal({"Host": "robot:8080", "Origin": "http://robot:8080"}, "0.0.0.0") is None
    assert "evil" in refusal({"Host": "robot:8080", "Origin": "http://evil"}, "0.0.0.0")


def test_the_running_server_refuses_a_foreign_origin(page):
    websockets = pytest.importorskip("websockets.sync.client")
    import viser
    from websockets.exceptions import InvalidStatus
    address = page.url.replace("http", "ws")
    protocol = [f"viser-v{viser.__version__}"]
    with websockets.connect(address, origin=page.url, subprotocols=protocol) as socket:
        assert socket.recv(timeout=20.0)
    with pytest.raises(InvalidStatus) as refused:
        websockets.connect(address, origin="http://evil.example", subprotocols=protocol)
    assert refused.value.response.status_code == 403
    with urllib.request.urlopen(page.url, timeout=20.0) as answer:
        assert answer.status == 200
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(urllib.request.Request(page.url, headers={"Host": "evil.example"}), timeout=20.0)
    assert error.value.code == 403


def test_a_busy_port_moves_on_and_nothing_is_shared(page):
    from twolink_dynamics.viewer.server import Server
    server = Server(port=page.server.get_port())
    try:
        assert server.get_port() != page.server.get_port() and server.url.endswith(str(server.get_port()))
        assert server.get_host() == "127.0.0.1"
        assert server.request_share_url() is None
    finally:
        server.stop()
