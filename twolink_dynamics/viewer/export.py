"""The last minute as CSV, as a bag that rosbag2 plays, and the picture as one HTML file."""
from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path

import numpy as np

from ..errors import TwolinkError
from .feed import ENERGIES, TERMS


def csv_bytes(feed):
    """The history as CSV text (UTF-8): one column per quantity and joint, first the time [s]; unknown values empty."""
    history = feed.history
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(history.columns)
    for row in history.table():
        writer.writerow(["" if np.isnan(value) else repr(float(value)) for value in row])
    return text.getvalue().encode()


def mcap_bytes(feed):
    """The history as an mcap file that `ros2 bag info` and `ros2 bag play` take: joint_states, dynamics/reference,
    dynamics/tracking_error, dynamics/torque/<term>, simulator/energy/<entry> and external_wrench, with their stamps.

    Raises TwolinkError without the package rosbags."""
    try:
        from rosbags.rosbag2 import StoragePlugin, Writer
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise TwolinkError("saving a bag needs the package 'rosbags' (pip install rosbags)") from None
    store = get_typestore(Stores.ROS2_JAZZY)
    with tempfile.TemporaryDirectory() as folder:
        bag = Path(folder) / "bag"
        with Writer(bag, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
            _write(writer, store, feed)
        return next(bag.glob("*.mcap")).read_bytes()


def _write(writer, store, feed):
    types, names = store.types, list(feed.arm.joint_names)
    state, wrench = types["sensor_msgs/msg/JointState"], types["geometry_msgs/msg/WrenchStamped"]
    number, header = types["std_msgs/msg/Float64"], types["std_msgs/msg/Header"]
    time, force = types["builtin_interfaces/msg/Time"], types["geometry_msgs/msg/Wrench"]
    vector = types["geometry_msgs/msg/Vector3"]
    history, table, links = feed.history, feed.history.table(), {}
    empty = np.zeros(0)

    def columns(group):
        return [history.index(f"{group}/{name}") for name in names]

    def put(topic, kind, stamp_ns, message):
        if topic not in links:
            links[topic] = writer.add_connection(topic, kind.__msgtype__, typestore=store)
        writer.write(links[topic], stamp_ns, store.serialize_cdr(message, kind.__msgtype__))

    def known(values):
        return values if np.isfinite(values).all() else empty
    picks = {group: columns(group) for group in ("q", "qd", "effort", "reference", "error",
                                                 *(f"torque/{term}" for term in TERMS))}
    others = {"/dynamics/reference": ("reference", "position"), "/dynamics/tracking_error": ("error", "position"),
              **{f"/dynamics/torque/{term}": (f"torque/{term}", "effort") for term in TERMS}}
    ledger = [history.index(f"energy/{entry}") for entry in ENERGIES]
    push = [history.index(f"force/{axis}") for axis in "xyz"]
    for row in table:
        ns = int(round(row[0] * 1e9))
        head = header(stamp=time(sec=ns // 10**9, nanosec=ns % 10**9), frame_id=feed.arm.root)
        put("/joint_states", state, ns, state(header=head, name=names, position=row[picks["q"]],
                                              velocity=known(row[picks["qd"]]), effort=known(row[picks["effort"]])))
        for topic, (group, field) in others.items():
            values = row[picks[group]]
            if np.isfinite(values).all():
                fields = {"position": empty, "velocity": empty, "effort": empty, field: values}
                put(topic, state, ns, state(header=head, name=names, **fields))
        for entry, column in zip(ENERGIES, ledger):
            if np.isfinite(row[column]):
                put(f"/simulator/energy/{entry}", number, ns, number(data=float(row[column])))
        fx, fy, fz = (float(value) for value in row[push])
        put("/external_wrench", wrench, ns, wrench(header=head, wrench=force(force=vector(x=fx, y=fy, z=fz),
                                                                             torque=vector(x=0.0, y=0.0, z=0.0))))


def html_bytes(server):
    """The scene as it stands, as one HTML file that needs neither server nor network."""
    return server.scene.as_html().encode()
