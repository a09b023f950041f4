"""Chromium for the viewer's tests and pictures: Debian's browser, driven by Playwright, nothing downloaded."""
from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--use-gl=angle",
         "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--hide-scrollbars", "--mute-audio"]
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
        self.page.wait_for_selector("canvas", timeout=60000)
        with contextlib.suppress(Exception):  # no remark where there is a GPU
            self.page.wait_for_selector(".mantine-Notification-root", timeout=5000)
        self.quiet()

    def quiet(self):
        """Closes notifications, among them viser's remark about software rendering."""
        self.page.evaluate("""() => document.querySelectorAll('.mantine-Notification-root button')
                                            .forEach(button => button.click())""")

    def canvas(self):
        """(x, y, width, height) of the 3D picture in pixels of the page."""
        box = self.page.locator("canvas").first.bounding_box()
        return box["x"], box["y"], box["width"], box["height"]

    def pixel(self, camera, position):
        """Where a point (3,) [m] is on the page, in pixels; `camera` is viser's CameraHandle of this tab."""
        import numpy as np
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
