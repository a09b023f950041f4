"""Chromium for the viewer's tests and pictures: Debian's browser, driven by Playwright, nothing downloaded."""
from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--use-gl=angle",
         "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--hide-scrollbars", "--mute-audio"]
PATIENCE = 60.0  # [s] a loaded two-core machine draws a picture a second; nothing here measures time
SCENE = "canvas[data-engine]"  # three.js marks its canvas; the plots have canvases, too
FRAMES = """(() => { // software rendering: a few pictures a second, the processor is needed elsewhere
    window.requestAnimationFrame = draw => setTimeout(() => draw(performance.now()), 100);
    window.cancelAnimationFrame = clearTimeout; })()"""
LEAKS = ("LD_LIBRARY_PATH", "LD_PRELOAD")  # set by the ROS wheels for their own libraries; the browser has its own


def missing():
    """Why there can be no browser test here, or ''."""
    if executable() is None:
        return "no Chromium here (apt-get install chromium, or set CHROMIUM)"
    try:
        import playwright  # noqa: F401
    except ImportError:
        return "the package playwright is not installed"
    return ""


def executable():
    """The browser's path: $CHROMIUM, chromium or google-chrome."""
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


def environment():
    """os.environ without what the ROS wheels leave in it."""
    return {name: value for name, value in os.environ.items() if name not in LEAKS and "ROS_WHEELS" not in name.upper()}


@contextlib.contextmanager
def open_browser(width=1280, height=800):
    """A Playwright browser context of that size with a new, empty profile."""
    from playwright.sync_api import sync_playwright
    kept, keep = dict(os.environ), environment()
    for name in set(kept) - set(keep):
        del os.environ[name]  # Playwright's own driver is a child, too
    try:
        with tempfile.TemporaryDirectory() as profile, sync_playwright() as playwright:
            context = playwright.chromium.launch_persistent_context(
                profile, executable_path=executable(), args=FLAGS, env=keep,
                viewport={"width": width, "height": height}, accept_downloads=True)
            context.set_default_timeout(1000 * PATIENCE)
            try:
                yield context
            finally:
                context.close()
    finally:
        os.environ.update(kept)


class Tab:
    """One open page of the viewer, and what it complained about.

    errors    console errors and uncaught exceptions        foreign   requests to anyone but this page's server
    """

    def __init__(self, context, url):
        self.url = url
        self.errors, self.foreign = [], []
        self.page = context.new_page()
        self.page.add_init_script(FRAMES)
        self.page.on("console", lambda message: message.type == "error" and self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        own = url.split("://")[1]
        self.page.on("request", lambda request: self._seen(request.url, own))
        self.page.on("websocket", lambda socket: self._seen(socket.url, own))

    def _seen(self, url, own):
        scheme, _, rest = url.partition("://")
        if scheme in ("http", "https", "ws", "wss") and not rest.startswith(own):
            self.foreign.append(url)

    def open(self):
        """Loads the page and waits for its canvas; closes viser's remark about software rendering."""
        self.page.goto(self.url, wait_until="load", timeout=60000)
        self.page.wait_for_selector(SCENE, state="attached", timeout=60000)
        self.quiet()

    def quiet(self):
        """Closes notifications, among them viser's remark about software rendering."""
        self.page.evaluate("""() => document.querySelectorAll('.mantine-Notification-root button')
                                            .forEach(button => button.click())""")

    def canvas(self):
        """(x, y, width, height) of the 3D picture in pixels of the page."""
        box = self.page.evaluate("name => document.querySelector(name).getBoundingClientRect().toJSON()", SCENE)
        return box["x"], box["y"], box["width"], box["height"]

    def pixel(self, camera, position):
        """Where a point (3,) [m] is on the page, in pixels; `camera` is viser's CameraHandle of this tab."""
        from twolink_dynamics.viewer.geometry import rotation_of_quaternion
        x, y, width, height = self.canvas()
        local = rotation_of_quaternion(camera.wxyz).T @ (np.asarray(position, float) - camera.position)
        focal = 0.5 * height / np.tan(0.5 * camera.fov)
        return x + 0.5 * width + focal * local[0] / local[2], y + 0.5 * height + focal * local[1] / local[2]


def wait_until(condition, seconds, step=0.05, between=None):
    """True as soon as `condition()` is; False after `seconds` (a deadline, never a measurement)."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        (between or time.sleep)(step)
    return bool(condition())


class Nodes:
    """A process that can be killed and started again."""

    def __init__(self, command):
        self.command = command
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command)

    def kill(self):
        """As a crash would: no goodbye."""
        self.process.kill()
        self.process.wait()

    def end(self):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(15.0)
        except subprocess.TimeoutExpired:
            self.kill()


@contextlib.contextmanager
def running_nodes(**parameters):
    """Simulator and dynamics, composed, in a process of their own, with these parameters (and the shipped arm)."""
    from twolink_dynamics.nodes.session import yaml_value
    command = [sys.executable, "-m", "twolink_dynamics.nodes.composed", "--ros-args"]
    for name, value in {"urdf": "twolink", **parameters}.items():
        command += ["-p", f"{name}:={yaml_value(value)}"]
    nodes = Nodes(command)
    try:
        yield nodes
    finally:
        nodes.end()


@contextlib.contextmanager
def spun_viewer(port=0, shadows=False, **parameters):
    """A ViewerNode turned in a thread of this process. While its attribute `frozen` is set the page stands still (a
    picture of a moving scene takes software rendering for ever)."""
    import rclpy
    from rclpy.executors import SingleThreadedExecutor

    from twolink_dynamics.nodes.viewer_node import ViewerNode
    context = rclpy.Context()
    rclpy.init(context=context)
    node = ViewerNode(overrides={"urdf": "twolink", "port": port, "rate": 30.0, **parameters}, context=context)
    node.page.server.scene.configure_default_lights(cast_shadow=shadows)
    node.frozen, stop = threading.Event(), threading.Event()
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)

    def turn():
        while not stop.is_set():
            if node.due <= time.perf_counter():
                if node.frozen.is_set():
                    node.due = time.perf_counter() + 0.05
                else:
                    node.tick(time.perf_counter())
            executor.spin_once(timeout_sec=max(0.0, min(node.due - time.perf_counter(), 0.02)))
    thread = threading.Thread(target=turn, daemon=True)
    thread.start()
    try:
        yield node
    finally:
        stop.set()
        thread.join(10.0)
        executor.shutdown()
        node.destroy_node()
        rclpy.shutdown(context=context)


class Desk:
    """The page as a person has it before them, and the viewer node behind it."""

    def __init__(self, node, tab):
        self.node, self.tab = node, tab

    @property
    def feed(self):
        return self.node.feed

    @property
    def camera(self):
        return next(iter(self.node.page.server.get_clients().values())).camera

    @property
    def tip(self):
        from twolink_dynamics.kinematics import frame_pose
        return frame_pose(self.feed.arm, self.feed.q)[1]

    def wait(self, condition, what, seconds=PATIENCE):
        ok = wait_until(condition, seconds, 0.1, lambda s: self.tab.page.wait_for_timeout(1000 * s))
        assert ok, f"{what} did not happen; page says: {self.node.page.panels.message}; errors {self.tab.errors}"

    def at_rest(self):
        self.wait(lambda: self.feed.qd is not None and np.abs(self.feed.qd).max() < 2e-3, "coming to rest")

    def drag(self, start, end, release=True):
        """Drags from one point (3,) to another; positions are in the arm's plane."""
        mouse = self.tab.page.mouse
        x0, y0 = self.tab.pixel(self.camera, start)
        x1, y1 = self.tab.pixel(self.camera, end)
        mouse.move(x0, y0)
        self.tab.page.wait_for_timeout(300)
        mouse.down()
        for share in (0.2, 0.5, 0.8, 1.0):
            mouse.move(x0 + share * (x1 - x0), y0 + share * (y1 - y0))
            self.tab.page.wait_for_timeout(150)
        if release:
            mouse.up()

    def press(self, text):
        self.tab.page.get_by_role("button", name=text, exact=True).first.evaluate("button => button.click()")

    def parameter(self, node, name):
        """The node's own value, asked anew."""
        from rcl_interfaces.srv import GetParameters
        from rclpy.parameter import parameter_value_to_python
        answer = []
        self.node.actions._call(self.node.actions._get[node], GetParameters.Request(names=[name]),
                                lambda response: answer.append(parameter_value_to_python(response.values[0])),
                                answer.append, node)
        self.wait(lambda: answer, f"an answer about {node}'s {name}")
        return answer[0]
