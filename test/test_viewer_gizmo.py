"""A six-axis arm in a real browser: its target is free in space, and dragging an arrow of its gizmo moves the tip along."""
import numpy as np
import pytest
import viewer_browser
from viewer_browser import Desk, running_nodes, spun_viewer

pytest.importorskip("viser", reason="the viewer needs viser")
rclpy = pytest.importorskip("rclpy", reason="the page's acceptance runs on real nodes")
if viewer_browser.missing():
    pytest.skip(viewer_browser.missing(), allow_module_level=True)

ARM = "sixlink"
START = [0.3, -0.9, 1.2, -0.4, 0.6, 0.2]  # [rad] a bent elbow, away from singular poses


@pytest.fixture(scope="module")
def desk():
    stiffness = [600.0] * 3 + [40.0] * 3  # [N/m], [N m/rad]
    with running_nodes(urdf=ARM, controller="impedance", initial_positions=START, joint_state_rate=250.0,
                       stiffness=stiffness, command_timeout=20.0, state_timeout=20.0), \
            spun_viewer(urdf=ARM) as node, viewer_browser.open_browser(1100, 480) as browser:
        tab = viewer_browser.Tab(browser, node.page.url)
        node.frozen.set()  # loading is slow enough without a moving picture
        tab.open()
        node.frozen.clear()
        desk = Desk(node, tab)
        desk.wait(lambda: node.feed.q is not None and node.page.server.get_clients(), "states and a client")
        desk.wait(lambda: tab.page.get_by_text("live").count() > 0, "the first picture")
        yield desk


def test_dragging_the_gizmo_moves_the_tip_of_a_six_axis_arm(desk):
    desk.at_rest()
    gizmo = desk.node.page.interaction._gizmo
    assert gizmo is not None  # the premise: this arm has no plane of its own
    before, tip = np.array(gizmo.position), desk.tip
    rotation = viewer_rotation(gizmo.wxyz)
    axis = max(rotation.T, key=lambda direction: abs(direction[2]))  # the arrow that points most upwards
    axis = axis * np.sign(axis[2])
    grip = before + 0.93 * gizmo.scale * axis  # the tip of the arrow
    desk.drag(grip, grip + 0.1 * axis)
    desk.wait(lambda: np.linalg.norm(np.array(gizmo.position) - before) > 0.04, "moving the gizmo")
    moved = np.array(gizmo.position) - before
    assert np.linalg.norm(moved - axis * (axis @ moved)) < 0.01  # along the arrow
    desk.wait(lambda: np.linalg.norm(desk.tip - (tip + moved)) < 0.02, "the tip arriving at the target")


def viewer_rotation(wxyz):
    from twolink_dynamics.viewer.geometry import rotation_of_quaternion
    return rotation_of_quaternion(wxyz)
