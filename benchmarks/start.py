"""From a new process to the first torque: cold (no object cache) and warm, and the memory a process takes."""
from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

from .models import ROOT

FIRST_TORQUE = """
import numpy as np
from twolink_dynamics import Dynamics, load_urdf
dynamics = Dynamics(load_urdf("urdf/twolink.urdf"))
dynamics.inverse_dynamics(np.zeros(2), np.zeros(2), np.zeros(2))
import resource, time
usage = resource.getrusage(resource.RUSAGE_SELF)
print(time.time(), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
"""
ONLY_NUMPY = """
import numpy as np
import resource, time
usage = resource.getrusage(resource.RUSAGE_SELF)
print(time.time(), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
"""


def once(code, **environment):
    """(wall [ms], CPU [ms], memory [MB]) of one process up to its last line."""
    import time
    start = time.time()
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env={**os.environ, **environment}, text=True,
                          capture_output=True, check=True)
    end, cpu, memory = map(float, done.stdout.split())
    return 1e3 * (end - start), 1e3 * cpu, memory


def run(rounds=7):
    """Medians, interleaved."""
    rows = {"Python and NumPy alone": [], "first torque, warm": [], "first torque, cold": [],
            "first torque without llvmlite": []}
    with tempfile.TemporaryDirectory() as warm:
        once(FIRST_TORQUE, TWOLINK_CACHE=warm)
        for _ in range(rounds):
            rows["Python and NumPy alone"].append(once(ONLY_NUMPY))
            rows["first torque, warm"].append(once(FIRST_TORQUE, TWOLINK_CACHE=warm))
            with tempfile.TemporaryDirectory() as cold:
                rows["first torque, cold"].append(once(FIRST_TORQUE, TWOLINK_CACHE=cold))
            rows["first torque without llvmlite"].append(once(FIRST_TORQUE, TWOLINK_ENGINE="numpy"))
    print("\nfrom a new process to the first torque, twolink (median)")
    results = {}
    for name, samples in rows.items():
        wall, cpu, memory = (statistics.median(column) for column in zip(*samples))
        best = min(sample[0] for sample in samples)
        results[name] = {"wall_ms": wall, "best_wall_ms": best, "cpu_ms": cpu, "memory_mb": memory}
        print(f"  {name:34}{wall:9.0f} ms wall{cpu:9.0f} ms CPU{memory:8.0f} MB")
    return results
