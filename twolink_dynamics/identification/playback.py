"""An excitation as files: a CSV like any log's, and the YAML of a trajectory_msgs/JointTrajectory that the dynamics
node plays; and that YAML read back as a motion."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..arm import Reference
from ..control.joint_trajectory import JointTrajectory
from ..dynamics import Dynamics
from ..errors import InputError
from ..trajectory import Trajectory


def write_csv(path, arm, points):
    """time, pos_, vel_, tau_ (the model's, with its friction) and acc_ columns by joint name."""
    t, q, qd, qdd = points
    tau = Dynamics(arm).inverse_dynamics(q, qd, qdd) + arm.damping * qd + arm.coulomb * np.sign(qd)
    try:
        Trajectory(t, q, qd, tau, qdd).to_csv(path, arm.joint_names)
    except OSError as error:
        raise InputError(f"cannot write '{path}': {error.strerror}") from None


def write_yaml(path, arm, points):
    """One flow-style line per point, as `ros2 topic pub` takes it."""
    lines = [f"joint_names: [{', '.join(arm.joint_names)}]", "points:"]
    for t, *values in zip(*points):
        nanoseconds = int(round(t * 1e9))
        fields = ", ".join(
            f"{name}: [{', '.join(f'{x:.9g}' for x in value)}]"
            for name, value in zip(("positions", "velocities", "accelerations"), values)
        )
        lines.append(
            f"- {{{fields}, time_from_start: {{sec: {nanoseconds // 10**9}, nanosec: {nanoseconds % 10**9}}}}}"
        )
    try:
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write '{path}': {error.strerror}") from None


def read_yaml(path):
    """(joint names, [(time [s], positions, velocities, accelerations)]) of such a file; raises InputError naming the
    path."""
    import yaml

    try:
        data = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        return data["joint_names"], [
            (
                p["time_from_start"]["sec"] + 1e-9 * p["time_from_start"]["nanosec"],
                p["positions"],
                p.get("velocities"),
                p.get("accelerations"),
            )
            for p in data["points"]
        ]
    except OSError as error:
        raise InputError(f"cannot read '{path}': {error.strerror}") from None
    except (yaml.YAMLError, KeyError, TypeError) as error:
        raise InputError(f"'{path}' is not a joint trajectory in YAML: {' '.join(str(error).split())[:120]}") from None


def read_motion(path, arm):
    """The motion of such a file from its first point on: sample(t) -> Reference, and duration [s].

    Raises InputError naming the file, and the joint or point that cannot be played by this arm.
    """
    names, points = read_yaml(path)
    try:
        begin = points[0][0]
        shifted = [(time - begin, *rest) for time, *rest in points]
        order = [list(names).index(name) for name in arm.joint_names]
        start = np.array(points[0][1], float)[order]
        return JointTrajectory(arm, names, shifted, previous=Reference(start, np.zeros(arm.n), np.zeros(arm.n)))
    except (IndexError, TypeError):
        raise InputError(f"'{path}' is not a joint trajectory in YAML: a point without positions") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise InputError(f"'{path}': {error}") from None
        raise InputError(f"'{path}': its joints {', '.join(map(str, names))} are not the arm's "
                         f"{', '.join(arm.joint_names)}") from None
