"""Live plots with uPlot: motion, torque by cause (stacked), energy ledger, loop. One Feed history behind all."""
from __future__ import annotations

import numpy as np

from .feed import ENERGIES, TERMS

SECONDS, POINTS = 10.0, 160
COLOURS = ("#2069b4", "#e67e22", "#2ca25f", "#8e44ad", "#c0392b", "#16a085", "#7f8c8d")
TERM_COLOURS = {"inertia": "#5dade2", "coriolis": "#58d68d", "gravity": "#f5b041", "friction": "#a569bd",
                "feedback": "#ec7063", "feedforward": "#45b39d", "residual": "#aab7b8"}
NO_POINTS = {"show": False}


class Plots:
    """Tabs of a panel at the left edge. `update(feed)` pushes the last ten seconds."""

    def __init__(self, server, feed):
        self.feed, arm = feed, feed.arm
        self.names = arm.joint_names
        self._units = ["N" if p else "N m" for p in arm.prismatic]
        self._plots = []  # (handle, function of the table -> data)
        self.panel = server.gui.add_panel()
        motion, effort = self.panel.add_tab("Motion"), self.panel.add_tab("Torque")
        energy, loop = self.panel.add_tab("Energy"), self.panel.add_tab("Loop")
        unit = "rad" if not arm.prismatic.any() else "rad, m"
        with motion:
            self._plot(server, f"position [{unit}], dashed: reference",
                       [(f"q/{n}", n, {}) for n in self.names]
                       + [(f"reference/{n}", f"{n} ref", {"dash": [6, 5]}) for n in self.names], 260)
            self._plot(server, f"tracking error [{unit}]", [(f"error/{n}", n, {}) for n in self.names], 200, 1e-3)
        with effort:
            self._stacks(server)
        with energy:
            lines = [(f"energy/{name}", name, {}) for name in ENERGIES if name != "balance"]
            self._plot(server, "energy [J], since the reset", lines, 260, 0.01)
            self._plot(server, "left over in the balance [J]", [("energy/balance", "balance", {})], 170, 1e-3)
        with loop:
            self._plot(server, "loop rate [Hz]", [("loop/rate", "rate", {})], 190, 1.0)
            self._plot(server, "lateness of the loop, 99 % [ms]", [("loop/jitter", "jitter", {})], 190, 0.1, 1e-3)
        self.panel.dock_left()
        self.panel.set_width(390)

    def tab(self, name):
        """One more tab of the same panel."""
        return self.panel.add_tab(name)

    def _add(self, server, title, series, height, read, least=None, legend=True):
        """The vertical axis holds at least −least … least, so that rounding errors look like what they are."""
        soft = {} if least is None else {"y": {"range": {end: {"soft": sign * least, "mode": 2, "pad": 0.1}
                                                          for end, sign in (("min", -1.0), ("max", 1.0))}}}
        empty = tuple(np.zeros(1) for _ in range(len(series) + 1))
        handle = server.gui.add_uplot(
            empty, ({"label": "t [s]"}, *series), title=title, height=height, scales={"x": {"time": False}, **soft},
            axes=({"size": 36, "font": "11px sans-serif"}, {"size": 46, "font": "11px sans-serif"}),
            legend={"show": legend, "live": False}, padding=(6, 14, 0, 0))
        self._plots.append((handle, read))

    def _plot(self, server, title, lines, height, least=None, factor=1.0):
        series, columns, group = [], [], max(1, len(self.names))
        for i, (column, label, style) in enumerate(lines):
            colour = COLOURS[i % (group if column.startswith(("q/", "reference/", "error/")) else len(COLOURS))
                             % len(COLOURS)]
            series.append({"label": label, "stroke": colour, "width": 1.6, "points": NO_POINTS, **style})
            columns.append(self.feed.history.index(column))
        self._add(server, title, series, height, lambda table: [factor * table[:, c] for c in columns], least)

    def _stacks(self, server):
        server.gui.add_html(legend_html())
        if len(self.names) > 3:
            choice = server.gui.add_dropdown("joint", list(self.names))
            self._stack(server, "torque by cause", lambda: choice.value)
        else:
            for i, name in enumerate(self.names):
                self._stack(server, f"{name} [{self._units[i]}], by cause", lambda name=name: name)

    def _stack(self, server, title, chosen):
        """Areas stacked away from zero on both sides, outermost first so that the inner ones are painted over it."""
        series = [{"label": term, "stroke": TERM_COLOURS[term], "fill": TERM_COLOURS[term], "width": 0,
                   "points": NO_POINTS} for _ in ("up", "down") for term in reversed(TERMS)]
        series.append({"label": "total", "stroke": "#222222", "width": 1.6, "points": NO_POINTS})
        history = self.feed.history

        def read(table):
            parts = np.stack([np.nan_to_num(table[:, history.index(f"torque/{term}/{chosen()}")]) for term in TERMS])
            up, down = np.cumsum(np.maximum(parts, 0.0), axis=0), np.cumsum(np.minimum(parts, 0.0), axis=0)
            return [*up[::-1], *down[::-1], parts.sum(axis=0)]
        self._add(server, title, series, 240 if len(self.names) <= 2 else 200, read, 0.01, legend=False)

    def update(self):
        """Shows the last SECONDS of the feed's history, thinned to POINTS per line."""
        rows = int(SECONDS * self.feed.rate)
        table = self.feed.history.table(rows)
        if len(table) < 2:
            return
        table = table[table[:, 0] >= table[-1, 0] - SECONDS]  # a busy machine takes fewer rows a second
        table = table[::-1][::max(1, -(-len(table) // POINTS))][::-1]
        t = table[:, 0] - self.feed.origin
        for handle, read in self._plots:
            handle.data = (t, *read(table))


def legend_html():
    """The colours of the stacked torque plots, as HTML."""
    chips = "".join(f'<span style="display:inline-block;margin-right:.9em;white-space:nowrap"><span style="display:'
                    f'inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.3em;background:{colour}">'
                    f"</span>{term}</span>" for term, colour in TERM_COLOURS.items())
    return (f'<div style="font:12px sans-serif;padding:4px 10px;line-height:1.7">{chips}<span style="white-space:'
            'nowrap"><b>―</b> total</span></div>')
