"""Messages to arrays and back. Bad input stops here, with an InputError that names what is wrong.

Works on anything that has the messages' fields; rclpy is not needed.
"""
from __future__ import annotations

import math
from array import array

import numpy as np

from ..control import TrajectoryPoint
from ..errors import InputError, choices

MOST = 1e9  # [rad, rad/s, m, N, N m] a larger number is a mistake, and would overflow in what follows
NAMES = 1000  # joints in one message
POINTS = 10_000  # of a trajectory: reading the message takes some 30 µs a point, and the loop waits for it


def seconds(stamp):
    """A builtin_interfaces/Time as seconds."""
    return stamp.sec + 1e-9 * stamp.nanosec


def set_stamp(stamp, t):
    """Write t [s] into a builtin_interfaces/Time."""
    whole = math.floor(t)
    nanosec = int((t - whole) * 1e9)
    stamp.sec, stamp.nanosec = int(whole), min(nanosec, 999_999_999)


def doubles(values):
    """A float64 array as an array.array, which message fields take without a look at every number."""
    out = array("d")
    out.frombytes(values.tobytes())
    return out


def reals(data, what):
    """A float64 array of a message's numbers; raises InputError naming the first that is not finite or beyond MOST."""
    values = np.array(data, float)
    good = np.abs(values) < MOST
    if not good.all():
        bad = int(np.argmin(good))
        raise InputError(f"{what}: entry {bad} is {values[bad]}, {_wrong(values[bad])}")
    return values


def _wrong(value):
    return f"beyond {MOST:g}" if math.isfinite(value) else "not a finite number"


class JointReader:
    """Picks an arm's joints out of JointState messages, by name, whatever their order.

    The index map is kept as long as the names stay the same, so that a message costs a few microseconds.
    """

    def __init__(self, joint_names, what="joint_states"):
        self.joint_names = list(joint_names)
        self.what = what
        self._names, self._index = None, None

    def _map(self, names):
        names = list(names)
        if len(names) > NAMES:
            raise InputError(f"{self.what}: {len(names)} joints, more than {NAMES}")
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"{self.what}: joint '{twice}' stands twice")
        missing = [name for name in self.joint_names if name not in names]
        if missing:
            raise InputError(f"{self.what}: no joint '{missing[0]}', the message has {choices(names)}")
        index = [names.index(name) for name in self.joint_names]
        self._names = names
        self._index = slice(0, len(index)) if index == list(range(len(index))) else np.array(index)

    def read(self, msg):
        """(q (n,), qd (n,) or None where the message has no velocities); raises InputError."""
        if msg.name != self._names:
            self._map(msg.name)
        count = len(msg.name)
        if len(msg.position) != count:
            raise InputError(f"{self.what}: {len(msg.position)} positions for {count} names")
        q = self._pick(msg.position, "position")
        if not msg.velocity:
            return q, None
        if len(msg.velocity) != count:
            raise InputError(f"{self.what}: {len(msg.velocity)} velocities for {count} names")
        return q, self._pick(msg.velocity, "velocity")

    def _pick(self, values, field):
        picked = np.array(values)[self._index]
        for k, value in enumerate(picked.tolist()):
            if not -MOST < value < MOST:
                raise InputError(f"{self.what}: {field} of '{self.joint_names[k]}' is {value}, {_wrong(value)}")
        return picked


class Differentiator:
    """Velocities for publishers that send none: q̇ = (q − q_last)/(t − t_last), the short way round on continuous
    joints; unknown (None) on the first message and whenever the stamps do not advance."""

    def __init__(self, arm):
        self.arm = arm
        self.reset()

    def reset(self):
        self.t, self.q = None, None

    def __call__(self, t, q):
        """q̇ (n,) at t [s], or None while it is not known."""
        last_t, last_q = self.t, self.q
        self.t, self.q = t, q
        if last_t is None or t <= last_t:
            return None
        return self.arm.error(q, last_q) / (t - last_t)


def commands(msg, count, names):
    """(count,) efforts of a Float64MultiArray in `names` order; raises InputError on a wrong length or NaN, inf."""
    if len(msg.data) != count:
        raise InputError(f"effort command: {len(msg.data)} values, expected {count} ({choices(names)})")
    return reals(msg.data, "effort command")


def frame_name(frame_id, prefix, arm, what):
    """The link that a frame_id names ('' is the root); raises InputError naming the links there are."""
    name = frame_id.lstrip("/")
    if not name:
        return arm.root
    if prefix and name.startswith(prefix):
        name = name[len(prefix):]
    known = [frame.name for frame in arm.frames]
    if name not in known:
        raise InputError(f"{what}: frame '{frame_id}' is no link of the arm, the links are "
                         f"{choices([prefix + name for name in known])}")
    return name


def wrench(msg, prefix, arm, what="external_wrench"):
    """(force (3,) [N], torque (3,) [N m], link whose axes they are in)."""
    frame = frame_name(msg.header.frame_id, prefix, arm, what)
    force, torque = msg.wrench.force, msg.wrench.torque
    return (reals((force.x, force.y, force.z), f"{what}: force"),
            reals((torque.x, torque.y, torque.z), f"{what}: torque"), frame)


def pose(msg, prefix, arm, what="target_pose"):
    """(rotation (3, 3) or None where the quaternion is all zero, position (3,) [m], link they are given in)."""
    frame = frame_name(msg.header.frame_id, prefix, arm, what)
    p, o = msg.pose.position, msg.pose.orientation
    position = reals((p.x, p.y, p.z), f"{what}: position")
    quaternion = reals((o.x, o.y, o.z, o.w), f"{what}: orientation")
    length = np.linalg.norm(quaternion)
    if length == 0.0:
        return None, position, frame
    if abs(length - 1.0) > 1e-2:
        raise InputError(f"{what}: the quaternion {quaternion.tolist()} has length {length:g}, must be 1 "
                         "(or all zero for a position alone)")
    return rotation_matrix(quaternion / length), position, frame


def rotation_matrix(quaternion):
    """R (3, 3) of a unit quaternion (x, y, z, w)."""
    x, y, z, w = quaternion
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                     [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                     [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]])


def quaternion(rotation):
    """(x, y, z, w), w ≥ 0, of R (3, 3), from the largest of the four (Shepperd's method)."""
    r = np.asarray(rotation)
    squares = np.array([1 + r[0, 0] - r[1, 1] - r[2, 2], 1 - r[0, 0] + r[1, 1] - r[2, 2],
                        1 - r[0, 0] - r[1, 1] + r[2, 2], 1 + r[0, 0] + r[1, 1] + r[2, 2]])
    k = int(np.argmax(squares))
    rows = np.array([
        [squares[0], r[1, 0] + r[0, 1], r[0, 2] + r[2, 0], r[2, 1] - r[1, 2]],
        [r[1, 0] + r[0, 1], squares[1], r[2, 1] + r[1, 2], r[0, 2] - r[2, 0]],
        [r[0, 2] + r[2, 0], r[2, 1] + r[1, 2], squares[2], r[1, 0] - r[0, 1]],
        [r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1], squares[3]]])
    q = rows[k] / (2.0 * math.sqrt(squares[k]))
    return q if q[3] >= 0.0 else -q


def symmetric_from_six(values):
    """(3, 3) inertia of (ixx, ixy, ixz, iyy, iyz, izz)."""
    ixx, ixy, ixz, iyy, iyz, izz = values
    return np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])


def points(msg):
    """The points of a JointTrajectory as TrajectoryPoints; raises InputError where there are too many or a number is
    beyond MOST."""
    if len(msg.points) > POINTS:
        raise InputError(f"trajectory: {len(msg.points)} points, more than {POINTS}")
    for k, point in enumerate(msg.points):
        for field in ("positions", "velocities", "accelerations", "effort"):
            if max(map(abs, getattr(point, field)), default=0.0) >= MOST:
                reals(getattr(point, field), f"trajectory: point {k}: {field}")
    return [TrajectoryPoint(seconds(point.time_from_start), point.positions, point.velocities, point.accelerations,
                            point.effort) for point in msg.points]


def partial_state(msg, arm, q, qd, what="set_state"):
    """(q, qd) with the joints that a JointState names replaced; a joint without a velocity gets 0.

    Raises InputError on unknown joints, wrong lengths and numbers that are not finite."""
    names = list(msg.name)
    if not names or len(set(names)) != len(names):
        raise InputError(f"{what}: must name joints, each once, of {choices(arm.joint_names)}")
    if len(msg.position) != len(names) or len(msg.velocity) not in (0, len(names)):
        raise InputError(f"{what}: {len(msg.position)} positions and {len(msg.velocity)} velocities for "
                         f"{len(names)} names")
    for name in names:
        if name not in arm.joint_names:
            raise InputError(f"{what}: no joint '{name}', the joints are {choices(arm.joint_names)}")
    index = [arm.joint_names.index(name) for name in names]
    q, qd = np.array(q, float), np.array(qd, float)
    q[index] = reals(msg.position, f"{what}: position")
    qd[index] = reals(msg.velocity, f"{what}: velocity") if msg.velocity else 0.0
    return q, qd


class Ages:
    """How old states are on arrival, whoever's clock stamped them.

    The least lag of the stamps behind this clock, in windows of WINDOW seconds, is a delay while it stays the same
    and is no larger than `timeout` [s]. A large one (another clock, a simulator that was paused) is not; then only what
    comes on top of it counts. While it drifts (a simulator slower than time) nothing can be told: 0 is given, and
    `known` is False."""

    WINDOW, STEADY, DRIFT = 0.05, 10, 0.005  # [s], windows without drift, [s] of change that is none

    def __init__(self, timeout=0.1):
        self.timeout = timeout
        self.reset()

    def reset(self):
        """Forget what was seen."""
        self.before = self.least = math.inf  # of the last window, of this one
        self.steady, self.until, self.known = 0, -math.inf, False

    def __call__(self, stamp, now):
        """The age [s] of a state stamped `stamp` that arrives at `now`, both [s]."""
        lag = now - stamp
        if not self.until - self.WINDOW <= now < self.until:
            self.steady = self.steady + 1 if abs(self.least - self.before) < self.DRIFT else 0
            self.before, self.least, self.until = self.least, lag, now + self.WINDOW
        self.least = min(self.least, lag)
        self.known = self.steady > 0
        if not self.known:
            return 0.0
        base = min(self.least, self.before)
        return lag if self.steady >= self.STEADY and 0.0 <= base <= self.timeout else max(lag - base, 0.0)
