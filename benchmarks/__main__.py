"""`python -m benchmarks [single] [batch] [start] [ros] [viewer]`: tables, and benchmarks/results/<time>.json."""
from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import platform
import sys

from .models import ROOT

PARTS = ("single", "batch", "start", "ros", "viewer")


def machine():
    """What the figures were measured on."""
    cpu = platform.processor() or "unknown"
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            cpu = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), cpu)
    except OSError:
        pass
    from twolink_dynamics.kernels import compile as compiler
    code = f"{compiler.target().version}, {compiler.target().width} doubles" if compiler.available() else "no llvmlite"
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return {"cpu": cpu, "cores": os.cpu_count(), "python": platform.python_version(), "code": code, "load": load,
            "system": platform.platform()}


def main(argv=None):
    """Runs the named parts, all by default."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (default: all)")
    parser.add_argument("--output", metavar="FILE", help="JSON file (default: benchmarks/results/<time>.json)")
    args = parser.parse_args(argv)
    if (wrong := [part for part in args.parts if part not in PARTS]):
        parser.error(f"no part '{wrong[0]}'; there are {', '.join(PARTS)}")
    about = machine()
    print(f"{about['cpu']}, {about['cores']} cores, load {about['load']:.1f}, Python {about['python']}, "
          f"{about['code']}")
    if about["load"] > 1.0:
        print("the machine is busy: look at the ratios, not at the times", file=sys.stderr)
    results = {"machine": about}
    for part in args.parts or PARTS:
        results[part] = importlib.import_module(f".{part}", __package__).run()
    path = args.output or ROOT / "benchmarks" / "results" / f"{datetime.datetime.now():%Y%m%d-%H%M%S}.json"
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
    print(f"\n{path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
