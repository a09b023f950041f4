"""Page: the whole web page of one arm. Call `tick` sixty times a second; it sends only what changed."""
from __future__ import annotations

import threading
import time

import numpy as np

from ..kinematics import frame_pose
from . import export
from .equations import Equations
from .interaction import Interaction
from .panels import Panels
from .plots import Plots
from .scene import Scene
from .server import Server
from .visuals import parse_visuals

SLOW, PLOT = 3, 15  # ticks between updates of arcs, arrows and trail; of plots and panels


class Page:
    """The web page.

    arm        Arm with a tip                        feed     Feed, filled by whoever makes a page
    actions    Actions, what the page may do         urdf     URDF text or path its shapes are drawn from
    scenarios  ((name, description), …) of the menu  host, port   where it listens; a busy port moves on, see `url`
    """

    def __init__(self, arm, feed, actions, urdf=None, scenarios=(), host="127.0.0.1", port=8080):
        self.arm, self.feed, self.actions = arm, feed, actions
        self.server = Server(host, port)
        self.scene = Scene(self.server, arm, parse_visuals(urdf) if urdf else ())
        self.interaction = Interaction(self.server, self.scene, actions)
        self.plots = Plots(self.server, feed)
        self.equations = Equations(self.server, self.plots.tab("Equations"), arm)
        self.panels = Panels(self.server, feed, actions, self.scene, self.interaction, scenarios, self._exports())
        self._ticks = 0
        self._shown_target = None
        self._derivation = threading.Thread(target=self.equations.write_out, daemon=True)
        self._derivation.start()

    def _exports(self):
        def stamped(suffix):
            return time.strftime(f"twolink-%Y%m%d-%H%M%S.{suffix}")
        return {"CSV": lambda: (stamped("csv"), export.csv_bytes(self.feed)),
                "rosbag2 (mcap)": lambda: (stamped("mcap"), export.mcap_bytes(self.feed)),
                "scene (HTML)": lambda: (stamped("html"), export.html_bytes(self.server))}

    @property
    def url(self):
        """Address of the page, with the port in use."""
        return self.server.url

    def tick(self):
        """Show the newest values; does nearly nothing while nobody looks."""
        feed = self.feed
        feed.sample()
        self._ticks += 1
        if not self.server.get_clients():
            self._ticks = -1  # the first tick with a client updates everything
            return
        if feed.q is not None:
            with self.server.atomic():
                self.scene.update(feed.q)
                self.interaction.tick()
                if self._ticks % SLOW == 0:
                    self._slowly()
        if self._ticks % PLOT == 0:
            self.plots.update()
            self.panels.update()
            if feed.q is not None:
                self.equations.update(feed.q, feed.qd)

    def _slowly(self):
        feed, scene = self.feed, self.scene
        scene.ghost(feed.reference)
        scene.torques(feed.effort)
        scene.forces(feed.wrench, feed.contact)
        scene.trail()
        if feed.target is not None and feed.target is not self._shown_target:
            self._shown_target = feed.target
            self.interaction.place(*feed.target)
        elif feed.target is None and not self.interaction.moving:  # the target is where the reference holds the tip
            self._shown_target = None
            tip = scene.tip if feed.reference is None else frame_pose(self.arm, feed.reference)[1]
            self.interaction.place(np.eye(3), tip)

    def close(self):
        """Stops listening."""
        self.interaction.release()
        self._derivation.join(10.0)
        self.server.stop()
