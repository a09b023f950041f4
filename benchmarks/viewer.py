"""What the web page costs beside a 1 kHz simulation: python -m benchmarks.viewer [seconds]

A swinging arm, simulator and dynamics composed. First without a viewer, then with one whose client takes every message
but draws nothing (drawing is the browser's and its graphics card's work, not the node's)."""
from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time

os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
os.environ.setdefault("ROS_DOMAIN_ID", str(101 + os.getpid() % 100))

SWING = ["urdf:=twolink", "controller:='off'", "on_timeout:=zero", "initial_positions:=[0.5, 0.9]"]


def start(module, *parameters, **options):
    """A node as a process of its own."""
    command = [sys.executable, "-m", f"twolink_dynamics.nodes.{module}", "--ros-args"]
    for parameter in parameters:
        command += ["-p", parameter]
    return subprocess.Popen(command, **options)


def end(process):
    """SIGINT, then patience."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(10.0)
    except subprocess.TimeoutExpired:
        process.kill()


def cpu_seconds(pid):
    """Processor time [s] a process has used."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Lateness:
    """Listens to the simulator's diagnostics."""

    def __init__(self):
        import rclpy
        from diagnostic_msgs.msg import DiagnosticArray
        rclpy.init()
        self.node = rclpy.create_node("bench_viewer")
        self.rows, self.keep = [], False
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._take, 10)

    def _take(self, msg):
        for status in msg.status:
            if self.keep and status.name.endswith("simulator"):
                self.rows.append({pair.key: pair.value for pair in status.values})

    def measure(self, seconds):
        """Medians of (rate [Hz], median, 99 % lateness [µs]) over so many seconds, and ticks missed meanwhile."""
        import numpy as np
        import rclpy
        self.rows, self.keep = [], True
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            rclpy.spin_once(self.node, timeout_sec=0.2)
        self.keep = False
        columns = ("rate [Hz]", "jitter median [us]", "jitter 99 % [us]")
        figures = [float(np.median([float(row[column]) for row in self.rows])) for column in columns]
        return *figures, int(self.rows[-1]["missed ticks"]) - int(self.rows[0]["missed ticks"])


def client(url, stop):
    """A page that takes everything and draws nothing."""
    import msgspec
    import viser
    from viser import _messages
    from websockets.sync.client import connect
    camera = _messages.ViewerCameraMessage((1.0, 0.0, 0.0, 0.0), (0.0, -2.0, 0.0), 0.8, 0.01, 100.0, 600, 800,
                                           (0.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    fields = {name: getattr(camera, name) for name in ("wxyz", "position", "fov", "near", "far", "image_height",
                                                       "image_width", "look_at", "up_direction")}
    taken = 0
    with connect(url.replace("http", "ws"), origin=url, subprotocols=[f"viser-v{viser.__version__}"],
                 max_size=None) as socket:
        socket.send(msgspec.msgpack.encode({"type": "ViewerCameraMessage", **fields}))
        while not stop.is_set():
            try:
                taken += len(socket.recv(timeout=0.2))
            except TimeoutError:
                pass
    client.taken = taken


def run(seconds=20.0):
    """Print the comparison; {figure: value}."""
    try:
        import viser  # noqa: F401
        watch = Lateness()
    except ImportError as error:
        print(f"\nthe web page: not measured, {error}")
        return {"missing": str(error)}
    nodes = start("composed", *SWING, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    viewer, stop = None, threading.Event()
    try:
        watch.measure(5.0)
        alone = watch.measure(seconds)
        viewer = start("viewer_node", "urdf:=twolink", "port:=0", stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                       text=True)
        url = next(match.group() for line in viewer.stderr if (match := re.search(r"http://\S+\d", line)))
        thread = threading.Thread(target=client, args=(url, stop))
        thread.start()
        watch.measure(5.0)
        used, began = cpu_seconds(viewer.pid), time.monotonic()
        beside = watch.measure(seconds)
        share = (cpu_seconds(viewer.pid) - used) / (time.monotonic() - began)
        stop.set()
        thread.join()
    finally:
        stop.set()
        for process in filter(None, (viewer, nodes)):
            end(process)
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {load:.1f}; {seconds:g} s each; median of the seconds' figures")
    print(f"{'':24}{'rate [Hz]':>12}{'late p50 [µs]':>15}{'late p99 [µs]':>15}{'missed ticks':>14}")
    for name, (rate, median, p99, missed) in (("simulator alone", alone), ("with the viewer", beside)):
        print(f"{name:24}{rate:12.0f}{median:15.1f}{p99:15.1f}{missed:14d}")
    names = ("rate_hz", "late_p50_us", "late_p99_us", "missed_ticks")
    print(f"viewer, a process of its own: {100.0 * share:.1f} % of one core, "
          f"{client.taken / 1e3 / (seconds + 5.0):.0f} kB/s to one client")
    return {"alone": dict(zip(names, alone)), "with_viewer": dict(zip(names, beside)), "viewer_core_share": share}


if __name__ == "__main__":
    run(*(float(word) for word in sys.argv[1:]))
