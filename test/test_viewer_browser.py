"""The web page in a real browser, on real nodes: drag the target, pull the tip, press the buttons, restart the viewer.

A wrong sign of the push (FORCE_ON_ARM = -1 in viewer/interaction.py) makes
test_pulling_the_tip_deflects_it_by_F_over_K fail.
"""
import numpy as np
import pytest
import viewer_browser
from viewer_browser import Desk, running_nodes, spun_viewer

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
                       state_timeout=20.0):
        yield


@pytest.fixture(scope="module")
def desk(nodes):
    with spun_viewer() as node, viewer_browser.open_browser(WIDTH, HEIGHT) as browser:
        tab = viewer_browser.Tab(browser, node.page.url)
        tab.open()
        desk = Desk(node, tab)
        desk.wait(lambda: node.feed.q is not None and node.page.server.get_clients(), "states and a client")
        desk.wait(lambda: ("dynamics", "stiffness") in node.feed.parameters, "knowing the parameters")
        yield desk


def test_the_page_loads_without_errors_or_foreign_requests(desk):
    desk.wait(lambda: desk.tab.page.get_by_text("live").count() > 0, "the status line")
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


def test_the_gain_slider_sets_the_parameter_and_a_refusal_is_shown(desk):
    page = desk.tab.page
    page.get_by_text("Impedance", exact=True).first.evaluate("label => label.click()")
    field = page.locator("input[value='400']:not([type='hidden'])").first
    field.wait_for(state="visible", timeout=1000 * viewer_browser.PATIENCE)
    field.fill("520")
    page.keyboard.press("Enter")
    desk.wait(lambda: desk.feed.parameters["dynamics", "stiffness"][0] == 520.0, "taking the slider's value")
    assert list(desk.parameter("dynamics", "stiffness"))[:3] == [520.0] * 3
    desk.node.page.panels.send("dynamics", "stiffness", [-1.0] * 6)
    desk.wait(lambda: page.get_by_text("stiffness: ").count() > 0, "the refusal on the page")
    assert list(desk.parameter("dynamics", "stiffness"))[:3] == [520.0] * 3


def test_the_scenario_menu_runs_a_scenario(desk):
    page = desk.tab.page
    chosen = page.locator("input[value='tracking']").first
    chosen.evaluate("field => field.click()")
    page.get_by_role("option", name="push", exact=True).first.evaluate("option => option.click()")
    desk.press("Run")
    desk.wait(lambda: np.allclose(desk.feed.wrench, (6.0, 0.0, -12.0)), "the scenario's push")
    assert list(desk.parameter("dynamics", "stiffness"))[:3] == [400.0] * 3
    start = desk.tip
    desk.wait(lambda: not np.any(desk.feed.wrench) and np.linalg.norm(desk.tip - start) > 0.01, "the end of the push")
    refusal = []
    desk.node.runner.start("wall", refusal.append)
    desk.wait(lambda: refusal, "an answer about the wall")
    assert refusal == ["needs nodes of its own: twolink demo --scenario wall"]


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
