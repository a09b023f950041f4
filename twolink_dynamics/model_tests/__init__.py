"""Does the model describe the arm? Experiments on a bench (simulated or real), each with numbers and a verdict.

Each module has ``plan(model, workspace) -> Plan``, ``analyse(plan, log, model) -> Result`` and ``run(bench, ...)``.
What a test does not judge it leaves free, so that a failure names the culprit.
"""
from . import friction, static, sweep, tracking
from .bench import Bench, BenchStopped, EffortBench, SimulationBench
from .model import Model, Workspace
from .result import Result

TESTS = {"static": static, "friction": friction, "sweep": sweep, "tracking": tracking}

__all__ = ["TESTS", "Bench", "BenchStopped", "EffortBench", "Model", "Result", "SimulationBench", "Workspace"]
