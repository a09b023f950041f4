"""Starts simulator and dynamics for a demonstration: composed in this process, or as two processes of their own."""
from __future__ import annotations

import os
import socket
import subprocess
import sys
import time

import rclpy

from ..errors import TwolinkError
from .base import Stop, initialise, spin

QUIET = ("--log-level", "warn")  # a demonstration says what it does itself
PATIENCE = 30.0  # [s] for both nodes to be heard of


def private_domain():
    """Choose, unless the user did, a ROS_DOMAIN_ID nobody here uses, and stay on this machine. Before rclpy.init."""
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    if "ROS_DOMAIN_ID" in os.environ:
        return
    for k in range(100):
        domain = 1 + (os.getpid() + 7 * k) % 100
        try:  # the unicast port of the domain's first participant (DDSI-RTPS 2.5, §9.6.1.1)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.bind(("", 7400 + 250 * domain + 10))
        except OSError:
            continue
        os.environ["ROS_DOMAIN_ID"] = str(domain)
        return


def yaml_value(value):
    """A parameter value as the text that `-p name:=` takes."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(yaml_value(item) for item in value) + "]"
    return repr(value) if not isinstance(value, str) else f"'{value}'"


def start_process(module, parameters, quiet=()):
    """A node as a process of its own, as `python -m twolink_dynamics.nodes.<module>`.

    It starts with SIGINT ignored: after a Ctrl-C while it still imports, `end_processes` ends it, without a traceback
    of the interpreter's own."""
    command = [sys.executable, "-m", f"twolink_dynamics.nodes.{module}", "--ros-args", *quiet]
    for name, value in parameters.items():
        if value != []:
            command += ["-p", f"{name}:={yaml_value(value)}"]
    return subprocess.Popen(["/bin/sh", "-c", 'trap "" INT; exec "$@"', "sh", *command])


def end_processes(processes):
    """SIGTERM, then patience, then SIGKILL; only to processes started here."""
    for process in processes:
        if process.poll() is None:
            process.terminate()
    for process in processes:
        try:
            process.wait(5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def play(make_monitor, simulator, dynamics, mode="composed", extra=()):
    """Run both nodes and a Monitor until it has finished; returns (monitor, signal that ended it or None).

    mode: 'composed', 'two processes', or 'attach' to nodes that run already; make_monitor() -> Monitor; simulator,
    dynamics: {parameter: value}; extra: (module, parameters) of more processes.
    Raises TwolinkError when a node does not come up or goes away.
    """
    if mode != "attach":
        private_domain()
    nodes, processes = [], []
    with Stop() as stop:
        try:
            initialise(["--ros-args", *QUIET])
            processes += [start_process(module, parameters) for module, parameters in extra]
            watched = []
            if mode == "two processes":
                watched = [start_process(f"{node}_node", parameters, QUIET)
                           for node, parameters in (("simulator", simulator), ("dynamics", dynamics))]
                processes += watched
            elif mode == "composed":
                from .composed import compose
                nodes += compose(simulator, dynamics)
            monitor = make_monitor()
            nodes.append(monitor)
            deadline = time.monotonic() + PATIENCE

            def until():
                if any(process.poll() is not None for process in watched):
                    raise TwolinkError("a node ended before the demonstration did")
                if monitor.t is None and time.monotonic() > deadline:
                    raise TwolinkError(f"the nodes were not heard of within {PATIENCE:g} s "
                                       f"(ROS_DOMAIN_ID {os.environ.get('ROS_DOMAIN_ID', '0')})")
                return stop.signal is not None or monitor.finished
            spin(nodes, until)
            return monitor, stop.signal
        finally:
            end_processes(processes)
            for node in reversed(nodes):
                node.destroy_node()
            rclpy.try_shutdown()
