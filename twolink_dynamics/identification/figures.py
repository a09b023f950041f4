"""Line figures as inline SVG, without any plotting library."""

from __future__ import annotations

from html import escape

import numpy as np

COLOURS = ("#1f5fa8", "#d9661f", "#3a8f4d", "#8a4fb0")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 240, 64, 12, 26, 36


def line_figure(x, curves, *, title, x_label, y_label, log_x=False, log_y=False, points=1500):
    """SVG text of curves {label: y} over x; long ones are thinned so that extremes stay. Gaps where y is not finite."""
    x = np.asarray(x, float)
    usable = np.isfinite(x) & ((x > 0.0) if log_x else True)
    x = x[usable]
    values = {label: np.asarray(y, float)[usable] for label, y in curves.items()}
    if log_y:
        values = {label: np.where(y > 0.0, y, np.nan) for label, y in values.items()}
    axis_x = _Axis(x, LEFT, WIDTH - RIGHT, log_x)
    axis_y = _Axis(np.concatenate(list(values.values())), HEIGHT - BOTTOM, TOP, log_y)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}"><title>{escape(title)}</title>',
        f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" height="{HEIGHT - TOP - BOTTOM}" class="frame"/>',
    ]
    for value, text in axis_x.ticks():
        at = axis_x(value)
        parts.append(
            f'<path d="M{at:.1f} {TOP}V{HEIGHT - BOTTOM}" class="grid"/><text x="{at:.1f}" y="{HEIGHT - BOTTOM + 14}" '
            f'text-anchor="middle">{text}</text>'
        )
    for value, text in axis_y.ticks():
        at = axis_y(value)
        parts.append(
            f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" class="grid"/><text x="{LEFT - 6}" y="{at + 4:.1f}" '
            f'text-anchor="end">{text}</text>'
        )
    for k, (label, y) in enumerate(values.items()):
        colour = COLOURS[k % len(COLOURS)]
        parts.append(
            f'<path d="{_path(x, y, axis_x, axis_y, points)}" fill="none" stroke="{colour}" stroke-width="1.2"/>'
        )
        parts.append(f'<text x="{LEFT + 8 + 190 * k}" y="{TOP - 8}" fill="{colour}">{escape(label)}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 4}" text-anchor="middle">{escape(x_label)}</text>')
    parts.append(
        f'<text transform="translate(13 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">'
        f"{escape(y_label)}</text></svg>"
    )
    return "\n".join(parts)


class _Axis:
    def __init__(self, values, start, stop, log):
        values = values[np.isfinite(values)]
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
        if log:
            low, high = np.log10(low), np.log10(high)
        if high - low < 1e-12 * max(1.0, abs(high)):
            low, high = low - 0.5, high + 0.5
        self.low, self.high, self.start, self.stop, self.log = low, high, start, stop, log

    def __call__(self, value):
        value = np.log10(value) if self.log else value
        return self.start + (value - self.low) / (self.high - self.low) * (self.stop - self.start)

    def ticks(self):
        if self.log:
            exponents = np.arange(np.ceil(self.low), np.floor(self.high) + 1)
            if len(exponents) > 2:
                return [(10.0**e, f"{10.0**e:g}") for e in exponents[:: max(1, len(exponents) // 6)]]
            decades = np.arange(np.floor(self.low), np.ceil(self.high) + 1)
            found = [m * 10.0**e for e in decades for m in (1.0, 2.0, 5.0)]
            return [(value, f"{value:g}") for value in found if self.low <= np.log10(value) <= self.high]
        raw = (self.high - self.low) / 6.0
        size = 10.0 ** np.floor(np.log10(raw))
        step = size * next(m for m in (1.0, 2.0, 5.0, 10.0) if m * size >= raw)
        first = np.ceil(self.low / step)
        return [(k * step, f"{k * step + 0.0:.6g}") for k in np.arange(first, np.floor(self.high / step) + 1)]


def _path(x, y, axis_x, axis_y, points):
    """SVG path data; of every bin of samples the least and the greatest are kept, in order."""
    index = np.arange(len(x))
    if len(x) > points:
        kept = []
        for piece in np.array_split(index, points // 2):
            inside = y[piece]
            if np.isfinite(inside).any():
                kept += sorted({int(piece[np.nanargmin(inside)]), int(piece[np.nanargmax(inside)])})
        index = np.array(kept, int)
    commands, pen = [], "M"
    with np.errstate(invalid="ignore", divide="ignore"):
        for at_x, at_y in zip(axis_x(x[index]), axis_y(y[index])):
            if np.isfinite(at_y):
                commands.append(f"{pen}{at_x:.1f} {at_y:.1f}")
                pen = "L"
            else:
                pen = "M"
    return "".join(commands)
