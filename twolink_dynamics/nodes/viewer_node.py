"""`viewer`: the web page of the arm, from live topics."""
from __future__ import annotations

import os
import time
import webbrowser

from ..errors import TwolinkError
from ..viewer.feed import Feed
from .base import ArmNode, run
from .viewer_actions import RosActions
from .viewer_scenarios import ScenarioRunner, menu
from .viewer_topics import FeedTopics

NICE = 5  # a picture may be late, a tick of the simulation not


class ViewerNode(ArmNode):
    """Serves the web page on http://127.0.0.1:8080 (a busy port moves on to the next free one, the log tells which).

    Parameters      robot_description, urdf, tip, frame_prefix; host, port, rate, open_browser, simulator, dynamics
    Subscribes      joint_states, external_wrench, target_pose, <simulator>/energy/…, <simulator>/contact_wrench,
                    <dynamics>/reference, tracking_error, torque/…, /diagnostics, /parameter_events
    Publishes       target_pose (PoseStamped; orientation all zero: position only), external_wrench (WrenchStamped,
                    root axes, zero on release), joint_trajectory and <simulator>/set_state for scenarios
    Calls           <simulator>/pause, step, reset; <dynamics>/enable, hold; both nodes' parameter services
    """

    def __init__(self, **options):
        self.page = self.topics = self.actions = None
        super().__init__("viewer", **options)

    def build(self, arm):
        from ..viewer.page import Page  # viser only when a page is wanted
        from ..viewer.panels import needed_parameters
        p = self.parameters
        names = {"simulator": p["simulator"], "dynamics": p["dynamics"]}
        self.feed = Feed(arm)
        self.topics = FeedTopics(self, self.feed, names, p["frame_prefix"], self.reporter)
        self.runner = ScenarioRunner(self, self.feed, p["simulator"])
        self.actions = RosActions(self, self.feed, names, p["frame_prefix"] + arm.root, needed_parameters(),
                                  self.runner)
        self.runner.actions = self.actions
        self.page = Page(arm, self.feed, self.actions, self._source, menu(arm), p["host"], p["port"])
        self.period = 1.0 / p["rate"]
        self._next_discovery = 0.0
        self.due = time.perf_counter()
        self.get_logger().info(f"the page is here:\n\n    {self.page.url}\n")
        if p["open_browser"]:
            webbrowser.open(self.page.url)

    def _take_arm(self, source):
        self._source = source  # the page draws the same text
        super()._take_arm(source)

    def apply(self, values, names):
        if self.page is not None and "rate" in names:
            self.period = 1.0 / values["rate"]

    def tick(self, now):
        if self.arm is None:
            self.due = now + 0.05
            return
        self.topics.look()
        self.actions.update()
        self.runner.tick()
        if now >= self._next_discovery:
            self._next_discovery = now + 0.5
            self.actions.discover()
        self.page.tick()
        self.due = max(self.due + self.period, now - 0.5 * self.period)

    def destroy_node(self):
        if self.page is not None:
            self.page.close()
        if self.topics is not None:
            self.topics.destroy()
        super().destroy_node()


def create():
    """The node; raises TwolinkError in one line where viser is not installed."""
    try:
        import viser  # noqa: F401
    except ImportError:
        raise TwolinkError("the viewer needs viser: pip install viser") from None
    return [ViewerNode()]


def main(args=None):
    """Run the viewer node until SIGINT or SIGTERM, behind whatever simulates or controls; returns the exit status."""
    os.nice(NICE)
    return run(create, args)


if __name__ == "__main__":
    raise SystemExit(main())
