"""What a node measures of itself, and its diagnostic_msgs/DiagnosticArray."""
from __future__ import annotations

import re
import time
from collections import Counter

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

from .conversion import set_stamp

WINDOW = 4096  # samples kept between two reports
REPEAT = 5.0  # [s]
NUMBER = re.compile(r"[-+0-9.e]+")


class Meter:
    """Intervals between events and any figure that goes with them, since the last report."""

    def __init__(self):
        self.values = np.empty(WINDOW)
        self.clear()

    def clear(self):
        self.count, self.total, self.began = 0, 0, time.perf_counter()

    def add(self, value=0.0):
        """Count an event that carries `value`; the newest WINDOW values are kept."""
        self.values[self.total % WINDOW] = value
        self.total += 1
        self.count = min(self.total, WINDOW)

    def take(self):
        """(rate [Hz], median, 99th percentile, largest of the values) since the last call; NaN without events."""
        elapsed = time.perf_counter() - self.began
        rate = self.total / elapsed if elapsed > 0.0 else 0.0
        if self.count:
            figures = np.percentile(self.values[:self.count], (50, 99, 100)).tolist()
        else:
            figures = [float("nan")] * 3
        self.clear()
        return rate, *figures


class Reporter:
    """Counts what a node refused or did, says it at most once a second each, and writes the diagnostics."""

    def __init__(self, logger):
        self.logger = logger
        self.counts = Counter()
        self._said = {}

    def reject(self, what, message):
        """Count a rejected message and say why."""
        self.counts[f"rejected {what}"] += 1
        self.warn(what, message)

    def say(self, level, text):
        """Log at level 'info', 'warning' or 'error', a text that differs only in its numbers at most every REPEAT
        seconds."""
        kind, now = NUMBER.sub("", text), time.monotonic()
        if now - self._said.get(kind, -1e9) < REPEAT:
            return
        self._said[kind] = now
        if level == "error":
            self.logger.error(text)
        elif level == "warning":
            self.logger.warning(text)
        else:
            self.logger.info(text)

    def warn(self, key, message, every=1.0):
        """Log `message` unless one of the same key was logged less than `every` seconds ago."""
        now = time.monotonic()
        if now - self._said.get(key, -1e9) >= every:
            self._said[key] = now
            self.logger.warning(str(message))

    def once(self, key, message):
        """Log `message` the first time only."""
        if key not in self._said:
            self._said[key] = float("inf")
            self.logger.warning(str(message))


def diagnostic_array(t, name, problem, figures):
    """A DiagnosticArray with one status: OK, or WARN with the text of the problem; figures is {key: value}."""
    msg = DiagnosticArray()
    set_stamp(msg.header.stamp, t)
    status = DiagnosticStatus(name=name, hardware_id="twolink_dynamics")
    status.level = DiagnosticStatus.WARN if problem else DiagnosticStatus.OK
    status.message = problem or "running"
    status.values = [KeyValue(key=key, value=f"{value:.6g}" if isinstance(value, float) else str(value))
                     for key, value in figures.items()]
    msg.status = [status]
    return msg
