"""Demonstrations: one table that the command line, the launch files, the viewer's menu and the tests use.

A Scenario names an arm, the parameters of both nodes, a script of timed actions, and a verdict on what was measured.
Nothing here knows ROS: whoever runs it (nodes/monitor.py) performs the actions and fills a Record.
"""
from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Callable, NamedTuple

import numpy as np

from .control.joint_trajectory import TrajectoryPoint
from .dynamics import Dynamics
from .errors import InputError, choices

MOVING, STEADY = 2e-2, 1e-3  # [rad or m] tracking error allowed while moving, and at rest
UNEXPLAINED, FAST = 0.05, 0.15  # share of the torque that may come from feedback while faster than this [rad/s]
BALANCE = 1e-5  # energy left over, relative to the largest energy that moved
SETTLE = 0.4  # [s] at the end of a stretch that count as "at rest"


class Action(NamedTuple):
    """At `at` [s] do `kind`: 'trajectory' (joints, points), 'pose' (position), 'wrench' (force, seconds) or
    'parameter' (node, name, value)."""

    at: float
    kind: str
    data: dict


class Check(NamedTuple):
    """One measured figure, what is allowed, and whether it holds."""

    name: str
    value: float
    limit: str
    good: bool


class Record:
    """Time series by name: `add(name, t, value)`, then arrays by `times(name)`, `values(name)`."""

    def __init__(self):
        self._series = defaultdict(lambda: ([], []))

    def add(self, name, t, value):
        """One sample (a number or a vector) at t [s] since the script began."""
        times, values = self._series[name]
        times.append(t)
        values.append(value)

    def __contains__(self, name):
        return bool(self._series[name][0])

    def times(self, name):
        """(N,) [s]."""
        return np.array(self._series[name][0])

    def values(self, name, since=-np.inf, until=np.inf):
        """(M, ...) the samples between `since` and `until` [s]; raises InputError where there are none."""
        times = self.times(name)
        chosen = (times >= since) & (times <= until)
        if not chosen.any():
            raise InputError(f"nothing was received of '{name}'" + (f" from {since:g} s on" if since > 0.0 else ""))
        return np.array(self._series[name][1])[chosen]

    def rest(self, name, at):
        """Mean over the last SETTLE seconds before `at` [s]."""
        return self.values(name, at - SETTLE, at).mean(axis=0)


@dataclass(frozen=True)
class Scenario:
    """urdf: a shipped name; simulator, dynamics: parameters; script(arm, length) -> actions, or PLANNED; verdict(arm,
    record, length)
    -> checks; length: seconds it takes."""

    name: str
    description: str
    script: Callable | str
    verdict: Callable
    length: float = 5.0
    urdf: str = "twolink"
    simulator: dict = field(default_factory=dict)
    dynamics: dict = field(default_factory=dict)


# -- building blocks -------------------------------------------------------------------------------------------------
def energy_check(record):
    """The ledger's balance, against the largest energy that moved."""
    moved = max(np.abs(record.values(f"energy/{name}")).max() for name in ("kinetic", "input", "external", "dissipated",
                                                                          "edits") if f"energy/{name}" in record)
    left = np.abs(record.values("energy/balance")).max()
    allowed = BALANCE * max(moved, 0.01)
    return Check("energy balance [J]", float(left), f"< {allowed:.2g}", bool(left < allowed))


def _below(name, value, limit):
    return Check(name, float(value), f"< {limit:.3g}", bool(value < limit))


def _near(name, value, expected, tolerance):
    return Check(name, float(value), f"{expected:.4g} ± {tolerance:.2g}", bool(abs(value - expected) <= tolerance))


def _reached(name, value, least):
    return Check(name, float(value), f"> {least:.3g}", bool(value > least))


def tip_at(arm, q):
    """(3,) tip position [m]."""
    return Dynamics(arm).tip_pose(np.asarray(q, float))[1]


# -- tracking --------------------------------------------------------------------------------------------------------
PLANNED = "planned"  # instead of a script: a motion planned for the arm, with its start pose and gains


def _tracking_verdict(arm, record, length, stuck=0.0):
    """Followed, and while moving the model alone gave nearly all of the torque: feedback carries what the model lacks
    (at
    rest, dry friction too)."""
    speed = np.abs(record.values("qd")).max(axis=1)
    rms = {}
    for name in ("feedback", "total"):
        moving = np.interp(record.times(name), record.times("qd"), speed) > FAST
        rms[name] = np.sqrt(np.mean(record.values(name)[moving] ** 2, axis=0)).max() if moving.any() else 0.0
    share = rms["feedback"] / max(rms["total"], 1e-9)
    return [*tracking_checks(arm, record, length, stuck),
            _below("share of the torque that the model lacks", share, UNEXPLAINED)]


def tracking_checks(arm, record, length, stuck=0.0):
    """Moved, followed and came to rest; `stuck` (n,) is the error that dry friction may leave."""
    error, rest = np.abs(record.values("error")), np.abs(record.rest("error", length))
    q, beyond = record.values("q"), " beyond dry friction's" if np.any(stuck) else ""
    return [_reached("largest motion [rad]", np.ptp(q, axis=0).max(), 0.02),
            _below(f"tracking error, moving{beyond} [rad]", np.maximum(error - 3.0 * stuck, 0.0).max(), MOVING),
            _below(f"tracking error, at rest{beyond} [rad]", np.maximum(rest - stuck, 0.0).max(), STEADY),
            energy_check(record)]


# -- push: impedance -------------------------------------------------------------------------------------------------
PUSH, PUSH_K = np.array([6.0, 0.0, -12.0]), 400.0
BENT = (0.5, 0.9)


def _push_verdict(arm, record, length):
    before, pushed, after = (record.rest("tip", t) for t in (1.0, 3.4, length))
    deflection, expected = pushed - before, PUSH / PUSH_K
    return [_near("deflection x [m]", deflection[0], expected[0], 0.01 * np.linalg.norm(expected)),
            _near("deflection z [m]", deflection[2], expected[2], 0.01 * np.linalg.norm(expected)),
            _below("distance from the start after the push [m]", np.linalg.norm(after - before), 5e-4),
            energy_check(record)]


# -- wall: contact force ---------------------------------------------------------------------------------------------
WALL, DEPTH, WALL_K = 0.62, 0.05, 400.0


def _wall_script(arm, length):
    x, y, z = tip_at(arm, BENT)
    return [Action(0.5, "pose", {"position": (WALL + DEPTH, y, z)})]


def _wall_verdict(arm, record, length):
    force, tip = record.rest("contact", length), record.rest("tip", length)
    return [_near("contact force [N]", -force[0], WALL_K * DEPTH, 0.01 * WALL_K * DEPTH),
            _below("sideways force [N]", abs(force[2]), 1e-3 * WALL_K * DEPTH),
            _near("tip at the wall [m]", tip[0], WALL, 1e-6), energy_check(record)]


# -- flexible joints -------------------------------------------------------------------------------------------------
FLEXIBLE_K = 2000.0


def _flexible_verdict(arm, record, length):
    twist = record.rest("motor", length) - record.rest("q", length)
    torque = record.rest("effort", length)
    worst = int(np.argmax(np.abs(torque)))
    return [_near("spring twist [rad]", twist[worst], torque[worst] / FLEXIBLE_K,
                  0.02 * abs(torque[worst]) / FLEXIBLE_K),
            _reached("largest elastic energy [J]", np.max(record.values("energy/elastic")), 1e-3),
            *tracking_checks(arm, record, length, stuck=2e-3)]


# -- payload: a wrong model, then the right one ----------------------------------------------------------------------
LOAD = 0.4


def _payload_script(arm, length):
    return [Action(length - 2.5, "parameter", {"node": "dynamics", "name": "payload.mass", "value": LOAD})]


def _payload_verdict(arm, record, length):
    wrong, right = record.rest("error", length - 2.5), record.rest("error", length)
    q = record.rest("q", length - 2.5)
    model, plant = Dynamics(arm), Dynamics(arm.with_payload(LOAD))
    expected = np.linalg.solve(model.mass_matrix(q), plant.gravity(q) - model.gravity(q)) / 100.0
    return [*(_near(f"error of '{name}' without the payload in the model [rad]", wrong[i], expected[i],
                    0.03 * np.abs(expected).max()) for i, name in enumerate(arm.joint_names)),
            _below("error with it [rad]", np.abs(right).max(), STEADY), energy_check(record)]


# -- linkages --------------------------------------------------------------------------------------------------------
def _crank(*joints, by):
    def script(arm, length):
        def point(t, share):
            return TrajectoryPoint(t, [share * step for step in by])
        return [Action(0.5, "trajectory", {"joints": joints, "points": (point(1.2, 1.0), point(length - 2.0, 0.0))})]
    return script


def _linkage_verdict(drive, closed):
    def verdict(arm, record, length):
        index = [arm.index(name) for name in drive]
        q = record.values("q")
        miss = max(abs(closed(arm, row)) for row in q[:: max(1, len(q) // 50)])
        return [_reached("motion of the driven joints [rad]", np.ptp(q[:, index], axis=0).min(), 0.3),
                _reached("motion of the others [rad]", np.delete(np.ptp(q, axis=0), index).min(), 0.05),
                _below("linkage open by [m]", miss, 1e-7),
                _reached("largest constraint force [N]", np.linalg.norm(record.values("constraint"), axis=-1).max(),
                         0.1),
                _below("error of the driven joints at rest [rad]", np.abs(record.rest("error", length)[index]).max(),
                       5e-3),
                energy_check(record)]
    return verdict


ROCKER, ROCKER_LENGTH = (0.675, 0.0, 0.0), 0.525


def _four_bar_gap(arm, q):
    return np.linalg.norm(tip_at(arm, q) - ROCKER) - ROCKER_LENGTH


def _five_bar_gap(arm, q):
    dynamics = Dynamics(arm)
    return np.linalg.norm(dynamics.tip_pose(q, "left_tip")[1] - dynamics.tip_pose(q, "right_tip")[1])


_IMPEDANCE = {"controller": "impedance", "damping_ratio": 1.0}
_SLOWER = {"dt": 2e-3, "joint_state_rate": 500.0}  # constraints and contacts cost more per step
_BENT = {"initial_positions": list(BENT)}

SCENARIOS = {scenario.name: scenario for scenario in (
    Scenario("tracking", "a joint trajectory, followed by computed torque", PLANNED, _tracking_verdict),
    Scenario("push", "impedance: a shove of the tip deflects it by K⁻¹F, and it comes back",
             lambda arm, length: [Action(1.0, "wrench", {"force": tuple(PUSH), "seconds": 2.4})], _push_verdict, 6.0,
             simulator=_BENT, dynamics={**_IMPEDANCE, "stiffness": [PUSH_K] * 3 + [0.0] * 3}),
    Scenario("wall", "impedance: the tip is sent into a wall and presses with K times the depth", _wall_script,
             _wall_verdict, 5.0,
             simulator={**_BENT, **_SLOWER, "contact.enabled": True, "contact.point": [WALL, 0.0, 0.0],
                        "contact.normal": [-1.0, 0.0, 0.0]},
             dynamics={**_IMPEDANCE, "stiffness": [WALL_K] * 3 + [0.0] * 3}),
    Scenario("flexible", "springs in the joints: they twist by the torque over K while the links follow",
             PLANNED, _flexible_verdict, 6.0,
             simulator={"flexible.stiffness": [FLEXIBLE_K], "flexible.damping": [4.0], "rotor.inertia": [0.02]},
             dynamics={"rotor.inertia": [0.02]}),
    Scenario("payload", "a load the model does not know, then the model is told", _payload_script, _payload_verdict,
             5.0,
             simulator={**_BENT, "payload.mass": LOAD}),
    Scenario("four_bar", "a crank drives a four-bar linkage, closed by a Lagrange multiplier",
             _crank("crank_joint", by=(0.8,)), _linkage_verdict(("crank_joint",), _four_bar_gap), 5.0, urdf="four_bar",
             simulator={**_SLOWER, "constraint.kind": "tip_at_distance", "constraint.point": list(ROCKER),
                        "constraint.distance": ROCKER_LENGTH},
             dynamics={"controller": "pd_gravity", "pd.kp": [6.0, 0.0], "pd.kd": [0.8, 0.0],
                       "allow_partial_joints_goal": True}),
    Scenario("five_bar", "two shoulders drive a five-bar linkage, its two tips held together",
             _crank("left_shoulder", "right_shoulder", by=(0.4, 0.5)),
             _linkage_verdict(("left_shoulder", "right_shoulder"), _five_bar_gap), 5.0, urdf="five_bar",
             simulator={**_SLOWER, "tip": "left_tip", "constraint.kind": "coincident_tips",
                        "constraint.tips": ["left_tip", "right_tip"]},
             dynamics={"tip": "left_tip", "controller": "pd_gravity", "pd.kp": [40.0, 0.0, 40.0, 0.0],
                       "pd.kd": [2.5, 0.0, 2.5, 0.0], "allow_partial_joints_goal": True}),
)}


def scenario(name):
    """The Scenario of that name; raises InputError listing the names."""
    if name not in SCENARIOS:
        raise InputError(f"no scenario '{name}'; the scenarios are {choices(SCENARIOS)}")
    return SCENARIOS[name]
