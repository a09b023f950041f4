"""`twolink test-model`: experiments that tell whether the model describes the arm."""
from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np

from ..errors import InputError, choices

HELP = "test a model against the simulated or the real arm: static balance, friction, sine sweep, tracking"
TESTS = ("static", "friction", "sweep", "tracking")


def add_arguments(parser):
    parser.add_argument("--urdf", default="twolink", metavar="FILE",
                        help="the model (path or shipped name; default twolink)")
    parser.add_argument("--only", choices=TESTS, action="append", help="only this test (may be given several times)")
    parser.add_argument("--model", metavar="FILE.py:NAME",
                        help="your own equations NAME(q, qd, qdd) -> torque, arrays (N, n); the URDF gives the rest")
    parser.add_argument("--plant-urdf", metavar="FILE", help="what is simulated (default: the model itself)")
    parser.add_argument("--plant-payload", type=float, default=0.0, metavar="KG",
                        help="a mass the plant carries at its tip")
    parser.add_argument("--ros", choices=("effort", "trajectory"), metavar="effort|trajectory",
                        help="test the arm on ROS topics, by effort commands or through its own trajectory controller")
    parser.add_argument("--namespace", default="", help="of the topics (with --ros)")
    parser.add_argument("--joint-states", default="joint_states", metavar="TOPIC")
    parser.add_argument("--commands", default="effort_controller/commands", metavar="TOPIC", help="with --ros effort")
    parser.add_argument("--trajectory", default="joint_trajectory", metavar="TOPIC", help="with --ros trajectory")
    parser.add_argument("--command-joints", metavar="A,B",
                        help="order of the effort commands (default: the URDF's)")
    parser.add_argument("--tip", default=None, help="tip link, for a branched arm")
    parser.add_argument("--centre", metavar="Q1,Q2",
                        help="pose the tests move about (default: the middle of the limits)")
    parser.add_argument("--span", type=float, metavar="RAD", help="at most so far from it (default 1.2 rad, 0.2 m)")
    parser.add_argument("--points", type=int, help="static: poses per joint (default 5 for two joints)")
    parser.add_argument("--rate", type=float, default=500.0, metavar="HZ", help="of the simulated bench (default 500)")
    parser.add_argument("--bandwidth", type=float, default=None, metavar="RAD/S",
                        help="of the bench's position loop (default 25)")
    parser.add_argument("--out", metavar="DIR", help="write logs, figures and results.json there")


def run(args):
    """0: all passed; 1: a test failed; 2: bad input or the arm was stopped to protect it."""
    from .. import model_tests
    from ..resources import find_urdf
    from ..urdf import load_urdf
    if args.ros and (args.plant_urdf or args.plant_payload):
        raise InputError("--plant-urdf and --plant-payload are of the simulated bench, --ros has its own arm")
    if args.points is not None and args.points < 2:
        raise InputError(f"--points {args.points} must be at least 2")
    for name in ("rate", "bandwidth"):
        value = getattr(args, name)
        if value is not None and not (np.isfinite(value) and value > 0.0):
            raise InputError(f"--{name} {value:g} must be positive")
    arm = load_urdf(find_urdf(args.urdf), tip=args.tip)
    workspace = model_tests.Workspace.of(arm, _numbers(args.centre, arm), args.span)
    model = model_tests.Model(arm, _function(args.model) if args.model else None)
    folder = None
    if args.out:
        folder = Path(args.out)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"--out: cannot make '{folder}': {error.strerror}") from None
    bandwidth = args.bandwidth or model_tests.bench.BANDWIDTH
    if args.ros:
        try:
            from ..nodes.bench_client import RosBench
        except ImportError as error:
            raise InputError(f"--ros needs ROS 2 (rclpy and its messages): {error}") from None
        with RosBench(arm, args.ros, namespace=args.namespace, joint_states=args.joint_states, commands=args.commands,
                      trajectory=args.trajectory, bandwidth=bandwidth,
                      command_joints=args.command_joints.split(",") if args.command_joints else None) as bench:
            return _experiments(args, bench, model, workspace, folder)
    plant = load_urdf(find_urdf(args.plant_urdf), tip=args.tip) if args.plant_urdf else arm
    if args.plant_payload:
        plant = plant.with_payload(args.plant_payload)
    bench = model_tests.SimulationBench(plant, arm, q=workspace.centre, rate=args.rate, bandwidth=bandwidth)
    return _experiments(args, bench, model, workspace, folder)


def _experiments(args, bench, model, workspace, folder):
    """Runs the tests in order, prints each verdict as it falls, and goes back to where the arm was."""
    from .. import model_tests
    home = bench.state()[1]
    results = []
    for name in args.only or TESTS:
        def progress(share, name=name):
            print(f"\r{name}: {100.0 * share:.0f} % ", end="", file=sys.stderr, flush=True)
        more = dict(points=args.points) if name == "static" else {}
        result, log = model_tests.TESTS[name].run(bench, model, workspace, progress, **more)
        print("\r\033[K" if sys.stderr.isatty() else "", end="" if sys.stderr.isatty() else "\n", file=sys.stderr)
        for line in result.report():
            print(line)
        results.append(result)
        if folder is not None:
            from ..model_tests import figures
            log.to_csv(folder / f"{name}.csv", model.arm.joint_names)
            (folder / "results.json").write_text(json.dumps([item.as_dict() for item in results], indent=1))
            print(f"  {figures.save(result, folder)}")
    bench.approach(home)
    failed = [result.name for result in results if not result.passed]
    print(f"verdict: {f'FAIL ({choices(failed)})' if failed else 'PASS'}")
    return 1 if failed else 0


def _numbers(text, arm):
    if text is None:
        return None
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--centre '{text}' is not numbers separated by commas") from None
    if len(values) != arm.n:
        raise InputError(f"--centre has {len(values)} values for the joints {choices(arm.joint_names)}")
    return np.array(values)


def _function(text):
    """The callable NAME of FILE.py, given as FILE.py:NAME."""
    path, _, name = text.rpartition(":")
    if not path or not Path(path).is_file():
        raise InputError(f"--model '{text}' is not FILE.py:NAME of a file that is there")
    spec = importlib.util.spec_from_file_location("model_under_test", path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever the user's file raises, in one line
        raise InputError(f"--model: {path} raises {type(error).__name__}: {error}") from None
    function = getattr(module, name, None)
    if not callable(function):
        raise InputError(f"--model: {path} has no function '{name}'")
    return function
