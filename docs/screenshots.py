"""Takes the pictures of the web page that README.md and docs/viewer.md show: python docs/screenshots.py

Real nodes, the real page, headless Chromium (or CHROMIUM=path). Needs the extra `demo`, Playwright and Pillow.
"""
import os
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test")]
os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
os.environ.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))

import viewer_browser  # noqa: E402

WIDTH, HEIGHT = 1380, 800
IMAGES = ROOT / "docs" / "images"


def take(desk, name, shown=None, clip=None):
    """Freezes the page, opens the tab `shown`, lets shadows fall, and saves a picture."""
    desk.node.frozen.set()
    lights = desk.node.page.server.scene.configure_default_lights
    lights(cast_shadow=True)
    desk.tab.page.wait_for_timeout(3000)  # frames that are on their way
    desk.tab.quiet()
    if shown:
        tab(desk, shown)
    desk.tab.page.wait_for_timeout(3000)
    path = IMAGES / f"{name}.png"
    desk.tab.page.screenshot(path=str(path), timeout=180000, **({"clip": clip} if clip else {}))
    shrink(path)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1024} kB", file=sys.stderr)
    lights(cast_shadow=False)
    desk.node.frozen.clear()


def tab(desk, name):
    """Opens a tab of the left panel, with the mouse (which lets go of whatever it holds)."""
    box = desk.tab.page.get_by_role("tab", name=name).bounding_box(timeout=120000)
    desk.tab.page.mouse.click(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])


def shrink(path):
    """Fewer colours where a picture is large: they go into the repository."""
    if path.stat().st_size < 250_000:
        return
    from PIL import Image
    with Image.open(path) as image:
        small = image.convert("RGB").quantize(200, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def tracking(desk):
    """A trajectory, followed by computed torque: ghost of the reference, torque arcs, plots."""
    desk.node.frozen.clear()
    desk.node.runner.start("tracking", lambda text: text and sys.exit(f"tracking: {text}"))
    before = desk.feed.stamp
    desk.wait(lambda: desk.feed.stamp < before, "the scenario's reset")
    desk.wait(lambda: desk.feed.stamp - desk.feed.origin > 3.0, "the middle of the motion")
    take(desk, "viewer_tracking", "Motion")


def push(desk):
    """Pulling the tip against impedance: spring, force arrow, torque by cause."""
    desk.node.runner.start("push", lambda text: text and sys.exit(f"push: {text}"))
    desk.wait(lambda: np.linalg.norm(desk.feed.wrench) > 5.0, "the scenario's push")
    desk.wait(lambda: np.linalg.norm(desk.feed.wrench) < 1.0, "its end")
    tab(desk, "Torque")
    desk.at_rest()
    desk.node.page.interaction.switch("push the tip")
    desk.drag(desk.tip, desk.tip + (0.20, 0.0, 0.16), release=False)
    desk.wait(lambda: np.linalg.norm(desk.feed.wrench) > 20.0, "pulling")
    desk.at_rest()
    take(desk, "viewer_push")
    desk.tab.page.mouse.up()
    desk.node.page.interaction.switch("move the target")


def equations(desk):
    """The tab with the arm's equations and its current numbers."""
    take(desk, "viewer_equations", "Equations", {"x": 0, "y": 16, "width": 392, "height": 470})


def main():
    """All pictures, or those named on the command line."""
    if viewer_browser.missing():
        sys.exit(viewer_browser.missing())
    IMAGES.mkdir(parents=True, exist_ok=True)
    wanted = sys.argv[1:] or ["tracking", "push", "equations"]
    with viewer_browser.running_nodes(initial_positions=[0.5, 0.9], command_timeout=20.0, state_timeout=20.0,
                                      wrench_timeout=20.0, joint_state_rate=500.0, lockstep=True,
                                      real_time_factor=0.3), \
            viewer_browser.spun_viewer(rate=10.0) as node, viewer_browser.open_browser(WIDTH, HEIGHT) as browser:
        page = viewer_browser.Tab(browser, node.page.url)
        page.open()
        desk = viewer_browser.Desk(node, page)
        desk.wait(lambda: node.feed.q is not None and node.page.server.get_clients(), "the page")
        desk.wait(lambda: ("dynamics", "kp") in node.feed.parameters, "the parameters")
        for name in wanted:
            {"tracking": tracking, "push": push, "equations": equations}[name](desk)


if __name__ == "__main__":
    main()
