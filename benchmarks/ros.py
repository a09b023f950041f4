"""The nodes as they are: 1 kHz in two processes over DDS, 5 kHz composed in one; their diagnostics and CPU time."""
from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

from .models import ROOT

SETTLE, DURATION = 4.0, 20.0  # seconds before and while listening
SIMULATOR = {"urdf": "twolink", "initial_positions": [0.4, -0.6]}
DYNAMICS = {"urdf": "twolink", "controller": "gravity_compensation", "enabled": True}
SETUPS = {
    "two processes, 1 kHz": ((SIMULATOR, None), (None, DYNAMICS)),
    "composed, 5 kHz": ((SIMULATOR, {**DYNAMICS, "loop_rate": 5000.0}),),
}
PROGRAM = """
from twolink_dynamics.nodes.base import run
from twolink_dynamics.nodes.{module} import {name}
raise SystemExit(run(lambda: {make}))
"""


def program(simulator, dynamics):
    """The Python text of one process with one or both nodes."""
    if simulator is not None and dynamics is not None:
        return PROGRAM.format(module="composed", name="compose", make=f"compose({simulator!r}, {dynamics!r})")
    if simulator is not None:
        return PROGRAM.format(module="simulator_node", name="SimulatorNode",
                              make=f"[SimulatorNode(overrides={simulator!r})]")
    return PROGRAM.format(module="dynamics_node", name="DynamicsNode", make=f"[DynamicsNode(overrides={dynamics!r})]")


def cpu_seconds(pid):
    """User and system time of a process [s]."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def listen(processes):
    """{node: {figure: median over reports}} of /diagnostics, and CPU use."""
    import rclpy
    from diagnostic_msgs.msg import DiagnosticArray
    from rclpy.executors import SingleThreadedExecutor
    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node("bench", context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    heard = {}

    def on_report(message):
        for status in message.status:
            heard.setdefault(status.name, []).append({value.key: value.value for value in status.values})
    node.create_subscription(DiagnosticArray, "/diagnostics", on_report, 10)
    try:
        def spin(seconds):
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                executor.spin_once(timeout_sec=0.1)
        spin(SETTLE)
        heard.clear()
        start, before = time.monotonic(), [cpu_seconds(p.pid) for p in processes]
        spin(DURATION)
        took = time.monotonic() - start
        use = [(cpu_seconds(p.pid) - b) / took for p, b in zip(processes, before)]
    finally:
        executor.shutdown()
        node.destroy_node()
        rclpy.shutdown(context=context)
    return {name: summary(reports) for name, reports in heard.items()}, use


def summary(reports):
    """Medians of the numeric figures of all reports; of counters what was added."""
    figures = {}
    for key in reports[-1]:
        try:
            values = [float(report[key]) for report in reports if key in report]
        except ValueError:
            figures[key] = reports[-1][key]
            continue
        counter = key.startswith("rejected") or key in ("missed ticks",)
        figures[key] = values[-1] - values[0] if counter else statistics.median(values)
    return figures


def run():
    """Both setups, one after the other."""
    try:
        from twolink_dynamics.nodes.session import private_domain
    except ImportError as error:
        print(f"\nROS loops: not measured, {error}")
        return {"missing": str(error)}
    private_domain()
    results = {}
    for title, nodes in SETUPS.items():
        processes = [subprocess.Popen([sys.executable, "-c", program(*pair)], cwd=ROOT) for pair in nodes]
        try:
            figures, use = listen(processes)
        finally:
            for process in processes:
                process.send_signal(2)
            for process in processes:
                try:
                    process.wait(10.0)
                except subprocess.TimeoutExpired:
                    process.kill()
        results[title] = {"nodes": figures, "cpu": use}
        print(f"\n{title}: {', '.join(f'{100.0 * share:.0f} %' for share in use)} of a core")
        for name, values in figures.items():
            shown = [f"{key} {value:.4g}" for key, value in values.items() if isinstance(value, float)]
            print(f"  {name}: {', '.join(shown)}")
    return results
