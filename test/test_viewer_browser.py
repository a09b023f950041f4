"""The web page in a real browser, on real nodes: drag the target, pull the tip, press the buttons, restart the viewer.

A wrong sign of the push (FORCE_ON_ARM = -1 in viewer/interaction.py) makes
test_pulling_the_tip_deflects_it_by_F_over_K fail.
"""
import csv

import numpy as np
import pytest
import viewer_browser
from viewer_browser import Desk, running_nodes, spun_viewer

from twolink_dynamics.viewer.panels import CONTROLS

pytest.importorskip("viser", reason="the viewer needs viser")
rclpy = pytest.importorskip("rclpy", reason="the page's acceptance runs on real nodes")
if viewer_browser.missing():
    pytest.skip(viewer_browser.missing(), allow_module_level=True)

STIFFNESS = 400.0  # [N/m]
WIDTH, HEIGHT = 1100, 480  # software rendering: few pixels
NEAR = 0.01  # [m] the tip has arrived at the target (friction-free impedance: the rest is settling)


@pytest.fixture(scope="module")
def nodes():
    """Simulator and dynamics in a process of their own, holding the tip by impedance; patient with a busy machine."""
    with running_nodes(controller="impedance", initial_positions=[0.5, 0.9], joint_state_rate=250.0,
                       stiffness=[STIFFNESS] * 3 + [0.0] * 3, command_timeout=20.0, wrench_timeout=20.0,
                       state_timeout=20.0) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def desk(nodes):
    with spun_viewer() as node, viewer_browser.open_browser(WIDTH, HEIGHT) as browser:
        tab = viewer_browser.Tab(browser, node.page.url)
        node.frozen.set()  # loading is slow enough without a moving picture
        tab.open()
        node.frozen.clear()
        desk = Desk(node, tab)
        desk.wait(lambda: node.feed.q is not None and node.page.server.get_clients(), "states and a client")
        desk.wait(lambda: ("dynamics", "stiffness") in node.feed.parameters, "knowing the parameters")
        desk.wait(lambda: tab.page.get_by_text("live").count() > 0, "the first picture")
        yield desk


def run(desk, name):
    """Chooses a scenario in the menu and runs it."""
    page, menu = desk.tab.page, desk.node.page.panels.scenario
    field, option = page.locator(f"[id='{menu._impl.uuid}']").first, page.get_by_role("option", name=name, exact=True)
    for _ in range(5):  # a click while another field loses the focus only closes the menu again
        field.evaluate("field => { field.focus(); field.click(); }")
        page.wait_for_timeout(1500)
        if option.count() > 0:
            break
    option.first.evaluate("option => option.click()")
    desk.wait(lambda: menu.value == name, "choosing the scenario")
    desk.press("Run")


def test_the_page_loads_without_errors_or_foreign_requests(desk):
    assert desk.tab.page.get_by_text("live").count() > 0  # the status line
    assert desk.tab.page.get_by_role("tab", name="Equations").count() == 1
    assert desk.tab.page.locator(".uplot").count() >= 2
    assert desk.tab.errors == []
    assert desk.tab.foreign == []
    assert desk.node.page.url.startswith("http://127.0.0.1:")


def test_dragging_the_target_moves_the_tip_there(desk):
    desk.at_rest()
    page = desk.node.page
    start, goal = np.array(page.scene.target.position), desk.tip + (0.10, 0.0, -0.12)
    assert np.linalg.norm(goal - desk.tip) > 10 * NEAR  # there is a way to go
    desk.drag(start, goal)
    desk.wait(lambda: np.linalg.norm(np.array(page.scene.target.position) - goal) < 0.03, "moving the target")
    target = np.array(page.scene.target.position)
    assert abs(target[1]) < 1e-9  # in the arm's plane
    desk.wait(lambda: np.linalg.norm(desk.tip - target) < NEAR, "the tip arriving at the target")


def test_shift_click_puts_the_target(desk):
    desk.at_rest()
    goal = desk.tip + (-0.08, 0.0, 0.10)
    x, y = desk.tab.pixel(desk.camera, goal)
    desk.tab.page.keyboard.down("Shift")
    desk.tab.page.mouse.click(x, y, delay=120)
    desk.tab.page.keyboard.up("Shift")
    desk.wait(lambda: np.linalg.norm(desk.tip - goal) < 2 * NEAR, "the tip arriving where shift was clicked")


def test_pulling_the_tip_deflects_it_by_F_over_K(desk):
    desk.at_rest()
    page, start = desk.node.page, desk.tip
    assert desk.parameter("dynamics", "stiffness")[0] == STIFFNESS
    desk.tab.page.keyboard.press("Space")
    desk.wait(lambda: page.interaction.mode == "push the tip", "the space key switching the mode")
    way = np.array((0.06, 0.0, 0.10))
    desk.drag(start, start + way, release=False)
    desk.wait(lambda: np.linalg.norm(desk.feed.wrench) > 5.0, "pulling")
    desk.tab.page.wait_for_timeout(500)
    desk.at_rest()
    force, deflection = np.array(desk.feed.wrench), desk.tip - start
    expected = force / STIFFNESS
    assert np.linalg.norm(expected) > 0.015  # a pull one can see
    assert deflection @ way > 0.9 * np.linalg.norm(deflection) * np.linalg.norm(way)  # towards the mouse
    assert np.linalg.norm(deflection - expected) < 0.05 * np.linalg.norm(expected)
    desk.tab.page.mouse.up()
    desk.wait(lambda: not np.any(desk.feed.wrench), "the force ending on release")
    desk.wait(lambda: np.linalg.norm(desk.tip - start) < 0.2 * np.linalg.norm(expected), "the tip coming back")
    desk.at_rest()
    assert np.linalg.norm(desk.tip - start) < 0.05 * np.linalg.norm(expected)
    desk.tab.page.keyboard.press("Space")
    desk.wait(lambda: page.interaction.mode == "move the target", "the space key switching back")


def test_pause_step_and_reset_act_on_the_simulator(desk):
    desk.press("Pause")
    desk.wait(lambda: desk.feed.paused, "pausing")
    desk.tab.page.wait_for_timeout(500)
    stamp = desk.feed.stamp
    desk.tab.page.wait_for_timeout(500)
    assert desk.feed.stamp == stamp
    desk.press("Step")
    desk.wait(lambda: stamp < desk.feed.stamp < stamp + 0.1, "a step")
    go_on = desk.tab.page.get_by_role("button", name="Go on", exact=True)
    desk.wait(lambda: go_on.count() > 0, "the button's new name")
    desk.press("Go on")
    desk.wait(lambda: desk.feed.stamp > stamp + 0.2, "going on")
    stamp = desk.feed.stamp
    desk.press("Reset")
    desk.wait(lambda: desk.feed.stamp < stamp, "the clock going back")
    desk.wait(lambda: np.abs(desk.feed.q - (0.5, 0.9)).max() < 0.05, "the arm being where it started")


def test_a_finger_pulls_as_a_mouse_does(desk):
    page, start = desk.node.page, desk.tip
    page.interaction.switch("push the tip")
    (x0, y0), (x1, y1) = (desk.tab.pixel(desk.camera, p) for p in (start, start + (0.0, 0.0, 0.12)))
    touch = desk.tab.page.context.new_cdp_session(desk.tab.page)
    for kind, share in (("touchStart", 0.0), ("touchMove", 0.3), ("touchMove", 0.7), ("touchMove", 1.0)):
        points = [{"x": x0 + share * (x1 - x0), "y": y0 + share * (y1 - y0)}]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        desk.tab.page.wait_for_timeout(250)
    desk.wait(lambda: desk.feed.wrench[2] > 3.0, "pulling")
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    desk.wait(lambda: not np.any(desk.feed.wrench), "the force ending with the touch")
    page.interaction.switch("move the target")


def test_the_last_minute_is_saved(desk, tmp_path):
    names = list(desk.feed.arm.joint_names)
    saved = {}
    desk.tab.page.get_by_text("Save the last minute", exact=True).first.evaluate("label => label.click()")
    for label in ("CSV", "rosbag2 (mcap)", "scene (HTML)"):
        with desk.tab.page.expect_download(timeout=1000 * viewer_browser.PATIENCE) as download:
            desk.press(label)
        saved[label] = tmp_path / download.value.suggested_filename
        download.value.save_as(saved[label])
    with open(saved["CSV"], encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    t = [float(row["t"]) for row in rows]
    assert len(rows) > 20 and t == sorted(t) and t[-1] - t[0] <= 61.0
    assert all(np.isfinite(float(rows[-1][f"{what}/{name}"])) for what in ("q", "qd", "effort") for name in names)
    assert max(abs(float(row["force/z"])) for row in rows) > 3.0  # the pull
    readers = pytest.importorskip("mcap_ros2.reader", reason="an independent reader of bags")
    states = [m.ros_msg for m in readers.read_ros2_messages(str(saved["rosbag2 (mcap)"]), topics=["/joint_states"])]
    assert len(states) >= len(rows) and states[0].name == names
    pytest.importorskip("rosbags")
    from rosbags.highlevel import AnyReader
    from rosbags.typesys import Stores, get_typestore
    with AnyReader([saved["rosbag2 (mcap)"]], default_typestore=get_typestore(Stores.ROS2_JAZZY)) as bag:
        assert {"/joint_states", "/external_wrench", "/dynamics/torque/gravity"} <= set(bag.topics)
        assert bag.topics["/joint_states"].msgcount == len(states)
    html = saved["scene (HTML)"].read_text(encoding="utf-8")
    assert html.lstrip().lower().startswith("<!doctype html") and "src=\"http" not in html


def taken(parameters, control, value):
    """Whether the entries of the parameter that the slider sets have the value."""
    return np.allclose(np.ravel(parameters[control.node, control.name])[control.part or slice(None)], value)


def test_every_slider_sets_its_parameter_and_a_refusal_is_shown(desk):
    page, panels = desk.tab.page, desk.node.page.panels
    for folder in dict.fromkeys(control.folder for control in CONTROLS):
        page.get_by_text(folder, exact=True).first.evaluate("label => label.click()")
    before = dict(desk.feed.parameters)
    assert len(panels._sliders) == len(CONTROLS) - 1  # a planar arm has no stiffness against turning
    for i, (handle, shown) in panels._sliders.items():
        node, name, low, step = (getattr(CONTROLS[i], what) for what in ("node", "name", "low", "step"))
        value = round(low + (7.0 if shown != round(low + 7.0 * step, 9) else 8.0) * step, 9)
        field = page.locator(f"[id='{handle._impl.uuid}'] + * input")
        field.wait_for(state="visible", timeout=1000 * viewer_browser.PATIENCE)
        field.fill(f"{value:g}")
        page.keyboard.press("Enter")
        desk.wait(lambda i=i, value=value: taken(panels.feed.parameters, CONTROLS[i], value), f"{node} taking {name}")
        assert taken({(node, name): desk.parameter(node, name)}, CONTROLS[i], value)
        desk.node.actions.set(node, name, before[node, name], lambda text: None)
    panels.send("dynamics", "stiffness", [-1.0] * 6)
    desk.wait(lambda: page.get_by_text("stiffness: ").count() > 0, "the refusal on the page")
    assert list(desk.parameter("dynamics", "stiffness"))[:3] == [STIFFNESS] * 3


def test_the_scenario_menu_runs_a_scenario(desk):
    run(desk, "push")
    desk.wait(lambda: np.allclose(desk.feed.wrench, (6.0, 0.0, -12.0)), "the scenario's push")
    assert list(desk.parameter("dynamics", "stiffness"))[:3] == [400.0] * 3
    start = desk.tip
    desk.wait(lambda: not np.any(desk.feed.wrench) and np.linalg.norm(desk.tip - start) > 0.01, "the end of the push")
    run(desk, "wall")
    contact = desk.node.page.scene._contact
    desk.wait(lambda: contact.visible and desk.feed.contact[0] < -1.0, "the wall pushing back, drawn")
    run(desk, "flexible")
    desk.wait(lambda: desk.parameter("simulator", "flexible.stiffness") and not contact.visible, "springs, no wall")


def test_the_page_says_what_is_missing_and_recovers(nodes, desk):
    nodes.kill()
    desk.wait(lambda: desk.tab.page.get_by_text("no more joint_states").count() > 0, "missing the simulator")
    nodes.start()
    desk.wait(lambda: desk.tab.page.get_by_text("live").count() > 0 and desk.feed.missing == (), "being live again")
    desk.press("Pause")
    desk.wait(lambda: desk.feed.paused, "pausing the new simulator")
    desk.press("Go on")
    desk.wait(lambda: desk.parameter("dynamics", "controller") == "impedance", "the new controller")


def test_the_browser_reconnects_after_the_viewer_restarts(desk):
    port = desk.node.page.server.get_port()
    desk.node.page.close()
    desk.wait(lambda: not desk.node.page.server.get_clients(), "losing the connection")
    with spun_viewer(port) as second:
        assert second.page.server.get_port() == port  # the one the browser still looks at
        desk.wait(lambda: second.page.server.get_clients(), "the browser coming back")
        desk.wait(lambda: second.feed.q is not None, "states")
        again = Desk(second, desk.tab)
        again.at_rest()
        goal = again.tip + (0.0, 0.0, 0.08)
        again.wait(lambda: np.linalg.norm(np.array(second.page.scene.target.position) - again.tip) < 0.2, "a target")
        again.drag(np.array(second.page.scene.target.position), goal)
        again.wait(lambda: np.linalg.norm(again.tip - goal) < 4 * NEAR, "the tip following the target again")
