"""Recordings in rosbag2 (mcap or sqlite3): joint states, and commanded efforts if asked for. Needs `rosbags`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..errors import InputError, choices
from .logs import make_log

STATE_TYPE, COMMAND_TYPE = "sensor_msgs/msg/JointState", "std_msgs/msg/Float64MultiArray"


def read_bag(path, arm, fmt):
    """The Log of the state topic, joints matched by name; times are the messages' stamps.

    Efforts are the states' own, or with ``effort="commanded"`` the command topic's, each held until the next.
    """
    try:
        from rosbags.highlevel import AnyReader, AnyReaderError
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise InputError("reading a bag needs the package `rosbags`: pip install rosbags") from None
    try:
        with AnyReader([path], default_typestore=get_typestore(Stores.LATEST)) as reader:
            states = _messages(reader, path, fmt.state_topic, STATE_TYPE)
            commands = _messages(reader, path, fmt.command_topic, COMMAND_TYPE) if fmt.effort == "commanded" else None
    except (AnyReaderError, OSError, ValueError, KeyError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"cannot read bag '{path}': {' '.join(str(error).split())[:200]}") from None
    found = _states(states, arm, path.name, fmt.state_topic, need_effort=commands is None)
    t, q, qd, tau, rows, received, remarks = found
    sources = {
        quantity: tuple(f"{fmt.state_topic}/{joint}/{quantity}" for joint in arm.joint_names)
        for quantity in ("position", "velocity", "effort")
    }
    sources["time"] = (f"{fmt.state_topic}/header/stamp",)
    if commands is not None:
        tau = _held(commands, arm, fmt, received, path.name)
        sources["effort"] = tuple(f"{fmt.command_topic}/{joint}" for joint in arm.joint_names)
        early = int((received < commands[0][0]).sum()) if commands else len(received)
        if early:
            remarks.append(
                f"topic '{fmt.command_topic}': nothing was commanded before {early} of {len(received)} joint states, "
                "their effort is taken as zero"
            )
    log = make_log(path.name, arm, fmt, t - t[0], q, qd, tau, sources, rows)
    return replace(log, remarks=(*remarks, *log.remarks))


def _messages(reader, path, topic, kind):
    """[(time received [s], message)] of the one topic whose name ends so."""
    wanted = topic.strip("/")
    there = sorted({connection.topic for connection in reader.connections if connection.msgtype == kind})
    named = [name for name in there if name.strip("/") == wanted] or [
        name for name in there if name.endswith("/" + wanted)
    ]
    if not named:
        raise InputError(f"{path.name}: no topic '{topic}' of type {kind}; of this type there are {choices(there)}")
    if len(named) > 1:
        raise InputError(f"{path.name}: several topics end in '{topic}', name one: {choices(named)}")
    connections = [connection for connection in reader.connections if connection.topic == named[0]]
    return [
        (stamp * 1e-9, reader.deserialize(raw, connection.msgtype))
        for connection, stamp, raw in reader.messages(connections=connections)
    ]


def _states(messages, arm, name, topic, need_effort):
    t, q, qd, tau, rows, arrivals, others, unstamped = [], [], [], [], [], [], [], []
    for row, (received, message) in enumerate(messages, 1):
        names = list(message.name)
        missing = [joint for joint in arm.joint_names if joint not in names]
        if missing and len(missing) < arm.n:
            raise InputError(f"{name}: topic '{topic}', message {row}: no joint '{missing[0]}' among {choices(names)}")
        if missing:  # another robot on the same topic
            others.append((row, names))
            continue
        order = [names.index(joint) for joint in arm.joint_names]
        for label, values in (("position", message.position), ("effort", message.effort)):
            if (label == "position" or need_effort) and len(values) != len(names):
                raise InputError(
                    f"{name}: topic '{topic}', message {row}: {len(values)} {label} values for {len(names)} joints"
                )
        stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
        if stamp <= 0.0:
            unstamped.append(row)
        t.append(stamp if stamp > 0.0 else received)
        q.append(np.asarray(message.position, float)[order])
        qd.append(np.asarray(message.velocity, float)[order] if len(message.velocity) == len(names) else None)
        tau.append(np.asarray(message.effort, float)[order] if need_effort else np.zeros(arm.n))
        rows.append(row)
        arrivals.append(received)
    if not t:
        raise InputError(f"{name}: topic '{topic}' never names the joints {choices(arm.joint_names)}")
    velocity = None if any(v is None for v in qd) else np.array(qd)
    remarks = []
    if others:
        row, names = others[0]
        remarks.append(
            f"topic '{topic}': {len(others)} of {len(messages)} messages name none of the arm's joints and are left "
            f"out, first message {row} ({choices(names)})"
        )
    if unstamped:
        remarks.append(
            f"topic '{topic}': {len(unstamped)} messages are not stamped, first message {unstamped[0]}; the time they "
            "were received is taken"
        )
    if velocity is None and any(v is not None for v in qd):
        lacking = [row for row, v in zip(rows, qd) if v is None]
        remarks.append(
            f"topic '{topic}': {len(lacking)} messages have no velocities, first message {lacking[0]}; those of the "
            "others are left out"
        )
    return np.array(t), np.array(q), velocity, np.array(tau), np.array(rows), np.array(arrivals), remarks


def _held(commands, arm, fmt, received, name):
    """(N, n) the last command received at each of the times; zero before the first one."""
    order = tuple(fmt.command_joints) or arm.joint_names
    if sorted(order) != sorted(arm.joint_names):
        raise InputError(f"command_joints: {choices(order)} is not an order of {choices(arm.joint_names)}")
    place = [order.index(joint) for joint in arm.joint_names]
    values = np.zeros((len(commands) + 1, arm.n))
    for row, (_, message) in enumerate(commands, 1):
        if len(message.data) != arm.n:
            raise InputError(
                f"{name}: topic '{fmt.command_topic}', message {row}: {len(message.data)} values for {arm.n} joints"
            )
        values[row] = np.asarray(message.data, float)[place]
    return values[np.searchsorted([stamp for stamp, _ in commands], received, side="right")]
