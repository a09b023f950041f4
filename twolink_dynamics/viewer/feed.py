"""What the page shows and what it may do: the newest value of everything, the last minute, and the person's wishes."""
from __future__ import annotations

import numpy as np

ENERGIES = ("kinetic", "potential", "elastic", "input", "external", "dissipated", "impact", "edits", "balance")
TERMS = ("inertia", "coriolis", "gravity", "friction", "feedback", "feedforward", "residual")
LOOP = ("rate", "jitter")


class History:
    """The last rows of a fixed set of named columns, in a ring: `append` costs one row, `table` copies in order."""

    def __init__(self, columns, rows):
        self.columns = tuple(columns)
        self._at = {name: i for i, name in enumerate(self.columns)}
        self._data = np.full((rows, len(self.columns)), np.nan)
        self._count = 0

    def __len__(self):
        return min(self._count, len(self._data))

    def append(self, row):
        """Adds a row (len(columns),), forgetting the oldest one when full."""
        self._data[self._count % len(self._data)] = row
        self._count += 1

    def clear(self):
        """Forgets everything."""
        self._count = 0

    def table(self, last=None):
        """(rows, columns) oldest first; only the newest `last` rows when given."""
        count = len(self)
        start = self._count % len(self._data) if self._count > len(self._data) else 0
        ordered = np.roll(self._data, -start, axis=0)[:count] if start else self._data[:count].copy()
        return ordered if last is None else ordered[max(count - last, 0):]

    def index(self, name):
        """Column number of a name."""
        return self._at[name]


class Feed:
    """The newest values, written by one thread and read by the page. Vectors over joints are in the order of q.

    stamp      time of the last state [s]; `origin` that of the first one since start or reset
    q, qd, effort   (n,) or None before the first state
    reference  (n,) or None                            error           (n,) tracking error or None
    terms      {term: (n,)} torque by its cause        energy          {entry of the ledger: J}
    wrench     (3,) force on the tip, root axes [N]    target          (rotation (3, 3), position (3,)) or None
    contact    (3,) force of the environment or None   loop            {'rate' [Hz], 'jitter' [µs]}
    parameters {(node, name): value} of the nodes that answer            paused     True, False or None (unknown)
    problems   {node: text} of what the nodes report as wrong            missing    names of nodes that fell silent
    """

    def __init__(self, arm, seconds=60.0, rate=50.0):
        self.arm = arm
        self.rate = float(rate)
        joints = arm.joint_names
        columns = ["t"]
        for group in ("q", "qd", "effort", "reference", "error", *(f"torque/{term}" for term in TERMS)):
            columns += [f"{group}/{name}" for name in joints]
        columns += [f"energy/{name}" for name in ENERGIES] + [f"loop/{name}" for name in LOOP]
        columns += [f"force/{axis}" for axis in "xyz"] + [f"target/{axis}" for axis in "xyz"]
        self.history = History(columns, int(seconds * rate))
        self.q = self.qd = self.effort = self.stamp = None
        self.reference = self.error = self.target = self.contact = None
        self.terms, self.energy, self.loop, self.parameters, self.problems = {}, {}, {}, {}, {}
        self.paused, self.missing = None, ()
        self.wrench = np.zeros(3)
        self.origin = 0.0
        self._sampled = -np.inf

    def state(self, stamp, q, qd=None, effort=None):
        """A new joint state. A stamp that goes back (a reset) empties the history and forgets the target."""
        if self.stamp is None or stamp < self.stamp:
            self.history.clear()
            self.origin, self.target, self._sampled = float(stamp), None, -np.inf
        self.stamp, self.q, self.qd, self.effort = float(stamp), q, qd, effort

    def sample(self):
        """Puts the newest values into the history if they are due (`rate`) and the clock moved."""
        if self.q is None or self.stamp - self._sampled < (1.0 - 1e-6) / self.rate:
            return
        self._sampled = self.stamp
        n = self.arm.n
        missing = np.full(n, np.nan)
        vectors = [self.q, self.qd, self.effort, self.reference, self.error, *(self.terms.get(term) for term in TERMS)]
        row = [[self.stamp]] + [missing if v is None else v for v in vectors]
        row.append([self.energy.get(name, np.nan) for name in ENERGIES])
        row.append([self.loop.get(name, np.nan) for name in LOOP])
        row += [self.wrench, np.full(3, np.nan) if self.target is None else self.target[1]]
        self.history.append(np.concatenate(row))


class Actions:
    """What a person can do on the page. Every method returns at once; `done(text)` is called later from any thread,
    with '' on success and the refusal in one line otherwise. These do nothing: a node overrides them."""

    def target(self, position, rotation=None):
        """Moves the target: position (3,) [m] and rotation (3, 3) or None for unchanged, root frame."""

    def push(self, force):
        """Force (3,) [N] of the environment on the tip, root axes; zero ends it."""

    def press(self, name, done):
        """One of 'pause', 'resume', 'step', 'reset', 'hold', 'enable', 'disable'."""
        done("")

    def set(self, node, name, value, done):
        """Sets parameter `name` of 'simulator' or 'dynamics'."""
        done("")

    def scenario(self, name, done):
        """Starts a scenario of the table."""
        done("")
