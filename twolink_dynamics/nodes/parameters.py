"""One declarative table of every node parameter, its checking, and nothing of ROS.

A row says name, type, default, unit, bounds, whether it may change while the node runs, and what it does. The
documentation is generated from it, the nodes declare from it, and every value passes `Parameter.check`.
"""
from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from typing import NamedTuple

from ..errors import InputError, choices

BOOL, INT, NUMBER, TEXT, NUMBERS, TEXTS = "bool", "int", "double", "string", "double[]", "string[]"
JOINTS = "n"  # size of a list with one entry per joint; one entry spreads over all, none means "not set"


@dataclass(frozen=True)
class Parameter:
    """One row. `lower`, `upper` bound every number (inclusive); `size` is the length of a list (JOINTS: one per
    joint); an empty list, where allowed, means "not set"."""

    name: str
    type: str
    default: object
    unit: str
    description: str
    live: bool = False
    lower: float = -math.inf
    upper: float = math.inf
    size: object = None
    options: tuple = ()
    optional: bool = False

    def check(self, value, n=None):
        """`value` in this row's type; raises InputError naming the parameter, the value and what is allowed.

        Integers are taken where doubles are declared. `n` is the number of joints, where it is known.
        """
        if self.type == BOOL:
            if not isinstance(value, bool):
                self._refuse(value, "must be true or false")
            return value
        if self.type == TEXT:
            if not isinstance(value, str):
                self._refuse(value, "must be text")
            if self.options and value not in self.options:
                self._refuse(value, f"is none of {choices(self.options)}")
            return value
        if self.type in (NUMBER, INT):
            return self._number(value)
        if value is None or isinstance(value, (str, bytes)) or not hasattr(value, "__len__"):
            if self.type == NUMBERS and _is_number(value) and self.size == JOINTS:
                value = [value]
            else:
                self._refuse(value, "must be a list")
        if self.type == TEXTS:
            if not all(isinstance(item, str) for item in value):
                self._refuse(value, "must be a list of text")
            if len(set(value)) != len(value):
                self._refuse(value, "names something twice")
            return list(value)
        values = [self._number(item, value) for item in value]
        self._length(values, n)
        return values

    def _number(self, value, whole=None):
        shown = value if whole is None else whole
        if not _is_number(value):
            self._refuse(shown, f"must be {'a number' if whole is None else 'a list of numbers'}")
        if self.type == INT and not (isinstance(value, int) or float(value).is_integer()):
            self._refuse(shown, "must be a whole number")
        if math.isnan(value) or (math.isinf(value) and not math.isinf(self.upper)) or math.isinf(value) and value < 0:
            self._refuse(shown, "must be finite")
        if not self.lower <= value <= self.upper:
            self._refuse(shown, f"must be {self.bounds}")
        return int(value) if self.type == INT else float(value)

    def _length(self, values, n):
        if not values and (self.optional or self.size == JOINTS):
            return
        if self.size == JOINTS:
            if n is not None and len(values) not in (1, n):
                self._refuse(values, f"has {len(values)} entries, must have one for each of the {n} joints, or one "
                              f"for all")
        elif self.size is not None and len(values) != self.size:
            self._refuse(values, f"has {len(values)} entries, must have {self.size}")

    def _refuse(self, value, reason):
        shown = repr(list(value) if hasattr(value, "typecode") else value)
        raise InputError(f"parameter '{self.name}': {shown if len(shown) < 80 else shown[:77] + '...'} {reason}")

    @property
    def bounds(self):
        """The bounds as text: '' where there are none."""
        if self.options:
            return ", ".join(f"`{option}`" if option else "empty" for option in self.options)
        low, high = math.isfinite(self.lower), math.isfinite(self.upper)
        if low and high:
            return f"{self.lower:g} to {self.upper:g}"
        return f"at least {self.lower:g}" if low else f"at most {self.upper:g}" if high else ""


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _joints(name, unit, description, default=(), **more):
    """A row with one number per joint."""
    return Parameter(name, NUMBERS, list(default), unit, description, size=JOINTS, **more)


def _payload(whose):
    return (
        Parameter("payload.mass", NUMBER, 0.0, "kg", f"mass {whose} at the tip", live=True, lower=0.0, upper=1e6),
        Parameter("payload.com", NUMBERS, [0.0, 0.0, 0.0], "m", "its centre of mass in the tip frame", live=True,
                  size=3,
                  upper=1e3, lower=-1e3),
        Parameter("payload.inertia", NUMBERS, [0.0] * 6, "kg m²",
                  "its ixx ixy ixz iyy iyz izz about the centre of mass, in tip axes", live=True, size=6, lower=-1e6,
                  upper=1e6),
    )


MODEL = (
    Parameter("robot_description", TEXT, "", "", "URDF text; when empty `urdf` is read, else the topic "
                  "`robot_description`"),
    Parameter("urdf", TEXT, "", "", "path of a URDF file, or the name of a shipped one (`twolink`)"),
    Parameter("tip", TEXT, "", "", "link whose frame is the tip; empty: the only leaf link"),
    Parameter("gravity", NUMBERS, [0.0, 0.0, -9.81], "m/s²", "gravity in the root frame", live=True, size=3, lower=-1e3,
              upper=1e3),
    Parameter("command_joints", TEXTS, [], "", "joints of `effort_controller/commands`, in order; empty: all, in the "
              "URDF's order"),
    Parameter("frame_prefix", TEXT, "", "", "put before every frame_id, as robot_state_publisher does"),
    Parameter("publish_rate", NUMBER, 50.0, "Hz", "rate of everything one merely looks at", live=True, lower=0.1,
              upper=1000.0),
    _joints("effort_limit", "N m", "overrides the URDF's effort limits; 0: unactuated", lower=0.0),
    _joints("velocity_limit", "rad/s", "overrides the URDF's velocity limits (references and warnings only)",
            lower=0.0),
    _joints("rotor.inertia", "kg m²", "motor-side rotor inertia Ir", live=True, lower=0.0, upper=1e6),
    _joints("rotor.gear_ratio", "", "signed gear ratio gr; gr² Ir adds to the mass matrix", live=True, lower=-1e6,
            upper=1e6),
    Parameter("rotor.coupling", BOOL, False, "", "rotors also feel the rotation of the link that carries them",
              live=True),
)

SIMULATOR = MODEL + (
    Parameter("dt", NUMBER, 1e-3, "s", "integration step", lower=1e-5, upper=0.05),
    Parameter("integrator", TEXT, "rk4", "", "scheme of one step", options=("rk4", "semi_implicit", "dop853")),
    Parameter("joint_state_rate", NUMBER, 1000.0, "Hz", "rate of `joint_states`", live=True, lower=1.0, upper=1e4),
    Parameter("real_time_factor", NUMBER, 1.0, "", "simulated seconds per second", live=True, lower=0.01, upper=100.0),
    Parameter("lockstep", BOOL, False, "", "wait for the command that answers a state before going on, as long as "
                  "commands "
              "come: a machine that is too slow then slows time, not the controller", live=True),
    Parameter("publish_clock", BOOL, False, "", "publish `/clock` and stamp with it; else stamps count on from the "
                  "start"),
    Parameter("command_timeout", NUMBER, 0.2, "s", "simulated time after which a command is old; 0: never", live=True,
              lower=0.0, upper=3600.0),
    Parameter("on_timeout", TEXT, "brake", "", "what an old command leads to", live=True, options=("brake", "zero")),
    Parameter("wrench_timeout", NUMBER, 0.5, "s", "simulated time an `external_wrench` lasts; 0: until the next",
              live=True, lower=0.0, upper=3600.0),
    _joints("initial_positions", "rad", "positions at the start and after a reset; empty: 0, inside the stops"),
    _joints("initial_velocities", "rad/s", "velocities at the start and after a reset; empty: 0"),
    _joints("friction.coulomb", "N m", "Coulomb friction; empty: the URDF's `<dynamics friction>`", lower=0.0,
            upper=1e6, live=True),
    _joints("friction.viscous", "N m s/rad", "viscous friction; empty: the URDF's `<dynamics damping>`", lower=0.0,
            upper=1e6, live=True),
    _joints("friction.static", "N m", "break-away friction; empty: as Coulomb", lower=0.0, upper=1e6, live=True),
    _joints("friction.stribeck_velocity", "rad/s", "Stribeck velocity vs", lower=0.0, upper=1e6, live=True),
    _joints("flexible.stiffness", "N m/rad", "joint stiffness K; empty: rigid joints", lower=0.0, upper=1e9, live=True),
    _joints("flexible.damping", "N m s/rad", "joint damping D", lower=0.0, upper=1e6, live=True),
    *_payload("carried"),
    Parameter("stops", BOOL, True, "", "position limits are bounce-free stops", live=True),
    Parameter("effort_limits", BOOL, True, "", "applied effort is clamped to the effort limits", live=True),
    Parameter("contact.enabled", BOOL, False, "", "the tip can touch a plane", live=True),
    Parameter("contact.point", NUMBERS, [0.0, 0.0, 0.0], "m", "a point of the plane, root frame", size=3, lower=-1e3,
              upper=1e3, live=True),
    Parameter("contact.normal", NUMBERS, [0.0, 0.0, 1.0], "", "its normal, towards the arm, root frame", size=3,
              lower=-1e3, upper=1e3, live=True),
    Parameter("contact.friction", NUMBER, 0.0, "", "its friction coefficient", lower=0.0, upper=10.0, live=True),
    Parameter("constraint.kind", TEXT, "none", "", "a constraint with Lagrange multipliers",
              options=("none", "tip_on_line", "tip_on_plane", "tip_at_distance", "coincident_tips", "tip_pinned",
                       "coupled_joints"), live=True),
    Parameter("constraint.point", NUMBERS, [], "m", "point of the line or plane, or centre of the distance; empty: "
              "where the tip is", size=3, optional=True, lower=-1e3, upper=1e3, live=True),
    Parameter("constraint.direction", NUMBERS, [1.0, 0.0, 0.0], "", "direction of the line, or normal of the plane",
              size=3, lower=-1e3, upper=1e3, live=True),
    Parameter("constraint.distance", NUMBER, 0.0, "m", "distance to the point; 0: as it is", lower=0.0,
              upper=1e3, live=True),
    Parameter("constraint.tips", TEXTS, [], "", "the two links whose frames coincide; empty: the arm's two tips",
              live=True),
    Parameter("constraint.joints", TEXTS, [], "", "coupled joints: the one that follows, the one that leads",
              live=True),
    Parameter("constraint.ratio", NUMBER, 1.0, "", "coupled joints: follower = ratio · leader, shifted to fit the pose",
              lower=-1e3, upper=1e3, live=True),
    Parameter("sensors.position_noise", NUMBER, 0.0, "rad", "standard deviation", lower=0.0, upper=10.0, live=True),
    Parameter("sensors.velocity_noise", NUMBER, 0.0, "rad/s", "standard deviation", lower=0.0, upper=100.0, live=True),
    Parameter("sensors.position_quantum", NUMBER, 0.0, "rad", "encoder step", lower=0.0, upper=10.0, live=True),
    Parameter("sensors.velocity_quantum", NUMBER, 0.0, "rad/s", "velocity step", lower=0.0, upper=100.0, live=True),
    Parameter("sensors.delay", NUMBER, 0.0, "s", "age of what `joint_states` tells", lower=0.0, upper=1.0, live=True),
    Parameter("sensors.drop", NUMBER, 0.0, "", "share of `joint_states` that is lost", lower=0.0, upper=1.0, live=True),
    Parameter("seed", INT, 0, "", "seed of the sensors' noise", lower=0, upper=2**31, live=True),
)

CONTROLLERS = ("off", "gravity_compensation", "computed_torque", "pd_gravity", "impedance")

DYNAMICS = MODEL + (
    Parameter("controller", TEXT, "computed_torque", "", "the law that drives", live=True, options=CONTROLLERS),
    Parameter("enabled", BOOL, True, "", "drive at start (`~/enable` changes it)", live=True),
    _joints("kp", "1/s²", "computed torque: stiffness of the error's equation", (100.0,), live=True, lower=0.0,
            upper=1e6),
    _joints("kd", "1/s", "computed torque: damping of the error's equation", (20.0,), live=True, lower=0.0, upper=1e5),
    _joints("pd.kp", "N m/rad", "PD + gravity: stiffness; empty: `kp` times the largest inertia", live=True, lower=0.0,
            upper=1e7),
    _joints("pd.kd", "N m s/rad", "PD + gravity: damping; empty: `kd` times the largest inertia", live=True, lower=0.0,
            upper=1e6),
    Parameter("stiffness", NUMBERS, [400.0, 400.0, 400.0, 20.0, 20.0, 20.0], "N/m, N m/rad",
              "impedance: diagonal of K, translation then rotation, root axes", live=True, size=6, lower=0.0,
              upper=1e7),
    Parameter("damping", NUMBERS, [], "N s/m, N m s/rad", "impedance: diagonal of D; empty: from `damping_ratio`",
              live=True, size=6, optional=True, lower=0.0, upper=1e6),
    Parameter("damping_ratio", NUMBER, 1.0, "", "impedance: damping ratio where `damping` is empty", live=True,
              lower=0.0,
              upper=10.0),
    *_payload("the model assumes"),
    _joints("friction.coulomb", "N m", "the model's Coulomb friction; empty: the URDF's", live=True, lower=0.0,
            upper=1e6),
    _joints("friction.viscous", "N m s/rad", "the model's viscous friction; empty: the URDF's", live=True, lower=0.0,
            upper=1e6),
    Parameter("friction_compensation", BOOL, False, "", "add the model's friction torque, smooth at zero "
                  "speed", live=True),
    Parameter("torque_rate_limit", NUMBER, 2000.0, "N m/s", "largest rate of the step that a switch would make; 0: "
                  "none",
              live=True, lower=0.0, upper=1e9),
    Parameter("state_timeout", NUMBER, 0.1, "s", "age of `joint_states` that leads to the safe mode", live=True,
              lower=1e-3, upper=60.0),
    Parameter("safe_mode", TEXT, "gravity_compensation", "", "what is sent without a trustworthy state; `brake` sends "
              "nothing, so that the plant's own timeout acts", live=True, options=("zero", "gravity_compensation",
                                                                                   "brake")),
    _joints("effort_to_command", "", "factor from effort to command, e.g. 1 / torque constant, with sign", live=True,
            lower=-1e6, upper=1e6),
    Parameter("allow_partial_joints_goal", BOOL, False, "", "accept trajectories that leave joints out", live=True),
    Parameter("trajectory_effort", TEXT, "ignore", "", "what a trajectory's `effort` does", live=True,
              options=("ignore", "add")),
    Parameter("loop_rate", NUMBER, 0.0, "Hz", "composed mode: above 1 kHz the law runs inside the simulator's loop",
              lower=0.0, upper=2e4),
    Parameter("residual.file", TEXT, "", "", "a learnt residual torque model"),
    Parameter("residual.enabled", BOOL, False, "", "add the residual torque to the command", live=True),
)

WATCHED = (
    Parameter("simulator", TEXT, "simulator", "", "name of the simulator node whose topics and services are used"),
    Parameter("dynamics", TEXT, "dynamics", "", "name of the dynamics node whose topics and services are used"),
)

VIEWER = MODEL + WATCHED + (
    Parameter("host", TEXT, "127.0.0.1", "", "address the page listens on; other machines need another one"),
    Parameter("port", INT, 8080, "", "port of the page; a busy one moves on to the next free one", lower=0,
              upper=65535),
    Parameter("rate", NUMBER, 60.0, "Hz", "pictures per second", live=True, lower=1.0, upper=120.0),
    Parameter("open_browser", BOOL, False, "", "open the page in the default browser"),
)

MARKERS = MODEL + WATCHED + (
    Parameter("rate", NUMBER, 30.0, "Hz", "pictures per second", live=True, lower=1.0, upper=120.0),
    Parameter("push_stiffness", NUMBER, 200.0, "N/m", "spring between the tip and the dragged push marker", live=True,
              lower=0.0, upper=1e6),
)

TABLES = {"simulator": SIMULATOR, "dynamics": DYNAMICS, "viewer": VIEWER, "markers": MARKERS}


class Change(NamedTuple):
    """What a request to change parameters would give: the new values, and the names that differ."""

    values: dict
    names: frozenset


class ParameterSet:
    """The values of one node's parameters: ``parameters["kp"]``.

    A change is first proposed (all rows checked, nothing kept), then, when whoever owns the values could apply it,
    accepted.
    """

    def __init__(self, table, n=None):
        self.table = {row.name: row for row in table}
        self.values = {row.name: row.default for row in table}
        self.n = n

    def __getitem__(self, name):
        return self.values[name]

    def __contains__(self, name):
        return name in self.table

    def fit(self, n):
        """Check the lists that have one entry per joint, now that the joints are known."""
        self.n = n
        for name, row in self.table.items():
            row.check(self.values[name], n)

    def per_joint(self, name, default=None):
        """The n values of a per-joint row as a list, `default` when it is not set."""
        values = self.values[name]
        if not values:
            return default
        return list(values) * (self.n if len(values) == 1 and self.n else 1)

    def propose(self, changes, running=True):
        """Change(values, names) for {name: value}; raises InputError on an unknown, read-only or wrong one."""
        values = dict(self.values)
        for name, value in changes.items():
            row = self.table.get(name)
            if row is None:
                raise InputError(unknown(name, self.table))
            checked = row.check(value, self.n)
            if running and not row.live and checked != self.values[name]:
                raise InputError(f"parameter '{name}' is read-only: restart the node with {value!r} to change it")
            values[name] = checked
        return Change(values, frozenset(name for name in changes if values[name] != self.values[name]))

    def accept(self, change):
        """Keep the values of a Change."""
        self.values = change.values

    def accepted(self, change):
        """A ParameterSet as this one will be when the Change is accepted."""
        after = ParameterSet(self.table.values(), self.n)
        after.values = change.values
        return after

    def changed(self):
        """{name: value} of everything that is not at its default."""
        return {name: value for name, value in self.values.items() if value != self.table[name].default}


def unknown(name, table):
    """The message for a name that is in no table, with the nearest one that is."""
    near = difflib.get_close_matches(name, list(table), n=1)
    return f"no parameter '{name}'" + (f"; did you mean '{near[0]}'?" if near else "")


def documentation(table):
    """A Markdown table of the rows."""
    lines = ["| parameter | type | default | unit | allowed | live | |", "|---|---|---|---|---|---|---|"]
    for row in table:
        kind = row.type if row.size is None else f"double[{row.size}]"
        lines.append(f"| `{row.name}` | {kind} | {_shown(row.default)} | {row.unit} | {row.bounds} | "
                     f"{'yes' if row.live else ''} | {row.description} |")
    return "\n".join(lines)


def _shown(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(_shown(item) for item in value)}]"
    return f"{value:g}" if isinstance(value, float) else str(value) or '""'

