"""The nodes' topics, services and parameters as tables, and the launch files' scenario parameters, all generated.

    python -m twolink_dynamics.nodes.tables            print the tables
    python -m twolink_dynamics.nodes.tables --write    renew docs/ros.md and config/scenario_*.yaml in a source tree
"""
from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

from ..errors import InputError
from ..scenarios import SCENARIOS
from .parameters import DYNAMICS, MARKERS, SIMULATOR, VIEWER, documentation

MARK = "<!-- {edge} generated: {name} -->"


class Endpoint(NamedTuple):
    """A topic or service; `way` is 'pub', 'sub' or 'srv'."""

    name: str
    type: str
    way: str
    note: str


SIMULATOR_ENDPOINTS = (
    Endpoint("joint_states", "sensor_msgs/JointState", "pub", "position, velocity, applied effort after limits (of the "
             "motors with flexible joints); at `joint_state_rate`"),
    Endpoint("effort_controller/commands", "std_msgs/Float64MultiArray", "sub", "efforts in `command_joints` order; "
                  "wrong "
             "length or non-finite is dropped and reported"),
    Endpoint("external_wrench", "geometry_msgs/WrenchStamped", "sub", "at the tip; frame_id: any link, empty is the "
                  "root; "
             "lasts `wrench_timeout`"),
    Endpoint("robot_description", "std_msgs/String", "sub", "transient_local and volatile; only without parameters "
             "`robot_description` and `urdf`"),
    Endpoint("/clock", "rosgraph_msgs/Clock", "pub", "only with `publish_clock`"),
    Endpoint("~/set_state", "sensor_msgs/JointState", "sub", "positions, and velocities (else 0), of the joints it "
                  "names"),
    Endpoint("~/true_joint_states", "sensor_msgs/JointState", "pub", "without the sensors' errors"),
    Endpoint("~/motor_states", "sensor_msgs/JointState", "pub", "motor side of flexible joints"),
    Endpoint("~/constraint_wrench", "geometry_msgs/WrenchStamped", "pub", "of the constraint on the tip, root axes"),
    Endpoint("~/contact_wrench", "geometry_msgs/WrenchStamped", "pub", "of the plane on the tip, root axes"),
    Endpoint("~/energy/kinetic", "std_msgs/Float64", "pub", "the energy ledger [J], as are"),
    *(Endpoint(f"~/energy/{name}", "std_msgs/Float64", "pub", note) for name, note in (
        ("potential", "height 0 at the root"), ("elastic", "springs of flexible joints"),
        ("input", "work of the efforts"), ("external", "work of the external wrench"),
        ("dissipated", "taken by friction and damping"), ("impact", "taken by stops, brakes and impacts"),
        ("edits", "put in by set_state, payload or gravity changes"), ("balance", "what is left over: stays ~0"))),
    Endpoint("/diagnostics", "diagnostic_msgs/DiagnosticArray", "pub", "rate, jitter, missed ticks, saturation, "
                  "rejected "
             "messages; once a second"),
    Endpoint("~/reset", "std_srvs/Trigger", "srv", "everything as at the start, t = 0; parameters stay"),
    Endpoint("~/step", "std_srvs/Trigger", "srv", "one step while paused"),
    Endpoint("~/pause", "std_srvs/SetBool", "srv", "true pauses, false goes on; paused, the same state goes on being "
             "published"),
)

DYNAMICS_ENDPOINTS = (
    Endpoint("joint_states", "sensor_msgs/JointState", "sub", "by name, other joints ignored; the stamps are the "
             "controller's time, one that goes back resets it; without velocities the positions are differentiated"),
    Endpoint("robot_description", "std_msgs/String", "sub", "transient_local and volatile; only without parameters "
             "`robot_description` and `urdf`"),
    Endpoint("joint_trajectory", "trajectory_msgs/JointTrajectory", "sub", "as joint_trajectory_controller: stamp 0 "
                  "is now, "
             "a new one replaces, empty holds"),
    Endpoint("target_joint", "sensor_msgs/JointState", "sub", "goal that is approached within the limits and held"),
    Endpoint("target_pose", "geometry_msgs/PoseStamped", "sub", "of the impedance; frame_id any link; an all-zero "
             "quaternion leaves the orientation"),
    Endpoint("target_wrench", "geometry_msgs/WrenchStamped", "sub", "feed-forward wrench of the impedance"),
    Endpoint("effort_controller/commands", "std_msgs/Float64MultiArray", "pub", "the selected law after limits, at "
                  "every "
             "joint state, in `command_joints` order, times `effort_to_command`"),
    Endpoint("gravity_compensation/commands", "std_msgs/Float64MultiArray", "pub", "this law, whatever drives"),
    Endpoint("computed_torque/commands", "std_msgs/Float64MultiArray", "pub", "this law, whatever drives"),
    Endpoint("impedance/commands", "std_msgs/Float64MultiArray", "pub", "this law, whatever drives"),
    *(Endpoint(f"~/torque/{name}", "sensor_msgs/JointState", "pub", note) for name, note in (
        ("inertia", "M(q) times the desired acceleration"), ("coriolis", "C(q, q̇) q̇"), ("gravity", "g(q)"),
        ("friction", "friction compensation"), ("feedback", "what the errors cause"),
        ("feedforward", "given from outside"), ("residual", "the learnt part"), ("total", "their sum, before limits"))),
    Endpoint("~/mass_matrix", "std_msgs/Float64MultiArray", "pub", "M(q), n × n, row by row"),
    Endpoint("~/reference", "sensor_msgs/JointState", "pub", "desired position and velocity"),
    Endpoint("~/tracking_error", "sensor_msgs/JointState", "pub", "desired minus measured"),
    Endpoint("~/current_pose", "geometry_msgs/PoseStamped", "pub", "of the tip in the root frame"),
    Endpoint("/diagnostics", "diagnostic_msgs/DiagnosticArray", "pub", "rate, jitter, age of the state, work, "
                  "saturation, "
             "rejected messages; once a second"),
    Endpoint("~/enable", "std_srvs/SetBool", "srv", "drive, or send nothing"),
    Endpoint("~/hold", "std_srvs/Trigger", "srv", "come to rest and stay; forgets targets"),
    Endpoint("~/describe", "std_srvs/Trigger", "srv", "the equations and the parameters in use, as text"),
)

ENDPOINTS = {"simulator": SIMULATOR_ENDPOINTS, "dynamics": DYNAMICS_ENDPOINTS}


def endpoint_table(rows):
    """Endpoints as a Markdown table."""
    return "\n".join(["| name | type | | |", "|---|---|---|---|",
                      *(f"| `{row.name}` | {row.type} | {row.way} | {row.note} |" for row in rows)])


def scenario_table():
    """The scenarios as a Markdown table."""
    return "\n".join(["| scenario | arm | |", "|---|---|---|",
                      *(f"| `{s.name}` | {s.urdf} | {s.description} |" for s in SCENARIOS.values())])


TABLES = {
    "simulator topics": lambda: endpoint_table(SIMULATOR_ENDPOINTS),
    "dynamics topics": lambda: endpoint_table(DYNAMICS_ENDPOINTS),
    "simulator parameters": lambda: documentation(SIMULATOR),
    "dynamics parameters": lambda: documentation(DYNAMICS),
    "viewer parameters": lambda: documentation(VIEWER),
    "markers parameters": lambda: documentation(MARKERS),
    "scenarios": scenario_table,
}


def renewed(text):
    """`text` with every generated table between its marks replaced by the present one; raises InputError on a name
    that is no table."""
    begin = re.escape(MARK).replace(r"\{edge\}", "begin").replace(r"\{name\}", "(.+?)")
    end = re.escape(MARK).replace(r"\{edge\}", "end").replace(r"\{name\}", r"\1")

    def table(match):
        name = match.group(1)
        if name not in TABLES:
            raise InputError(f"no generated table '{name}', there are {', '.join(TABLES)}")
        return "\n".join([MARK.format(edge="begin", name=name), TABLES[name](), MARK.format(edge="end", name=name)])
    return re.sub(f"{begin}.*?{end}", table, text, flags=re.DOTALL)


def scenario_files():
    """{file name: text} of the parameter files the launch files use for each scenario."""
    files = {}
    for s in SCENARIOS.values():
        lines = [f"# {s.description}.", "# Generated by `python -m twolink_dynamics.nodes.tables --write`."]
        for node, common, values in (("simulator", {"command_timeout": 1.0, "lockstep": True}, s.simulator),
                                     ("dynamics", {"state_timeout": 5.0}, s.dynamics)):
            lines += [f"/**/{node}:", "  ros__parameters:"]
            lines += [f"    {name}: {_yaml(value)}" for name, value in {**common, **values}.items()]
        files[f"scenario_{s.name}.yaml"] = "\n".join(lines) + "\n"
    return files


def _yaml(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    return repr(float(value)) if isinstance(value, (int, float)) else str(value)


def main(args=None):
    """Print the tables, or renew the files that hold them."""
    args = sys.argv[1:] if args is None else args
    if args != ["--write"]:
        sys.stdout.write("\n\n".join(f"### {name}\n\n{make()}" for name, make in TABLES.items()) + "\n")
        return 0
    source = Path(__file__).resolve().parents[2]
    for page in ("docs/ros.md", "README.md"):
        if (source / page).is_file():
            text = (source / page).read_text(encoding="utf-8")
            (source / page).write_text(renewed(text), encoding="utf-8")
    for name, text in scenario_files().items():
        (source / "config" / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
