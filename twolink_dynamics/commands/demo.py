"""`twolink demo`: an arm, simulated and controlled by real ROS 2 nodes."""
from __future__ import annotations

import importlib.util
import os
import signal
import sys

import numpy as np

from ..errors import InputError, TwolinkError

HELP = "start simulator and dynamics nodes, move the arm, and say how well it went"
MODES = ("gravity_compensation", "computed_torque", "pd_gravity", "impedance")


def add_arguments(parser):
    """The command's options."""
    parser.add_argument("--urdf", help="URDF file, or a shipped arm's name (default: the scenario's, twolink)")
    parser.add_argument("--tip", help="link whose frame is the tip, where the arm has several")
    parser.add_argument("--scenario", default="tracking", metavar="NAME",
                        help="tracking (default), push, wall, flexible, payload, four_bar, five_bar")
    parser.add_argument("--headless", action="store_true", help="no viewer; end by itself with a verdict")
    parser.add_argument("--duration", type=float, metavar="S", help="seconds (default: the scenario's; without "
                  "--headless "
                        "until Ctrl-C)")
    parser.add_argument("--controller", choices=MODES, help="another law than the scenario's")
    parser.add_argument("--loop-rate", type=float, default=0.0, metavar="HZ",
                        help="above 1000: the law runs inside the simulator's loop at this rate")
    parser.add_argument("--record", metavar="FILE", help="write t, q, qd and torque to a CSV file")
    parser.add_argument("--two-processes", action="store_true", help="simulator and dynamics in processes of their own")
    parser.add_argument("--attach", action="store_true", help="start no nodes: play to those that run already")
    parser.add_argument("--namespace", default="", help="namespace of the nodes (with --attach)")
    parser.add_argument("--hidden-payload", type=float, default=0.0, metavar="KG",
                        help="hang a load on the simulated arm that the controller does not know (it must fail the "
                             "verdict)")
    parser.add_argument("--port", type=int, default=8080, help="port of the viewer's web page")


def run(args):
    """Run the demonstration; 0 when the verdict is good, 1 when not."""
    if importlib.util.find_spec("rclpy") is None:
        raise TwolinkError("the demo needs ROS 2's rclpy: source a ROS installation, or in the source folder "
                           "pip install '.[demo]' (x86-64 Linux)")
    if args.duration is not None and not 3.0 <= args.duration < 1e6:
        raise InputError(f"--duration {args.duration:g}: must be at least 3 s")
    if args.two_processes and args.loop_rate > 1000.0:
        raise InputError("--loop-rate above 1000 needs one process: leave --two-processes out")
    from ..nodes.session import play
    mode = "attach" if args.attach else "two processes" if args.two_processes else "composed"
    show = Show(args)
    monitor, ended = play(show.monitor, show.simulator, show.dynamics, mode, show.extra)
    if args.record:
        record_csv(args.record, show.arm, monitor.record)
    if monitor.t is None or not show.judged(monitor.t):
        sys.stderr.write("ended before there was anything to judge\n")
        return 130 if ended == signal.SIGINT else 1
    good = summary(show, monitor)
    return 130 if ended == signal.SIGINT else 0 if good else 1


class Show:
    """The arm, the scenario, both nodes' parameters and the script, from the command line's arguments."""

    def __init__(self, args):
        from ..motion import plan_motion
        from ..resources import find_urdf
        from ..scenarios import PLANNED, Action, scenario
        from ..urdf import load_urdf
        self.scenario = scenario(args.scenario)
        self.path = str(find_urdf(args.urdf or self.scenario.urdf))
        self.tip = args.tip or self.scenario.simulator.get("tip")
        self.arm = load_urdf(self.path, tip=self.tip)
        if self.tip is None and self.arm.tip is None:
            self.tip = self.arm.tips[0]
            self.arm = self.arm.with_tip(self.tip)
            print(f"several tips ({', '.join(self.arm.tips)}): taking {self.tip}; --tip names another", file=sys.stderr)
        self.length = args.duration or (self.scenario.length if args.headless else None)
        self.script_length = self.length or self.scenario.length
        common = {"urdf": self.path, **({"tip": self.tip} if self.tip else {})}
        self.simulator = {**common, "command_timeout": 1.0, "lockstep": True, **self.scenario.simulator}
        self.dynamics = {**common, "state_timeout": 5.0, "loop_rate": args.loop_rate, **self.scenario.dynamics}
        self.stuck = np.zeros(self.arm.n)
        if self.scenario.script == PLANNED:
            start = np.clip(np.zeros(self.arm.n), self.arm.lower, self.arm.upper) if args.attach else None
            motion = plan_motion(self.arm, max(self.script_length - 2.0, 1.0), start)
            self.simulator["initial_positions"] = motion.q0.tolist()
            self.dynamics |= {"kp": motion.kp.tolist(), "kd": motion.kd.tolist(), "friction_compensation": True}
            self.stuck = motion.stuck
            self.actions = [Action(0.5, "trajectory", {"joints": self.arm.joint_names, "points": motion.points})]
        else:
            self.actions = self.scenario.script(self.arm, self.script_length)
        self.namespace = args.namespace
        if args.controller:
            self.dynamics["controller"] = args.controller
        if args.hidden_payload:
            self.simulator["payload.mass"] = args.hidden_payload
        self.extra = () if args.headless else self._viewer(args)

    def _viewer(self, args):
        if importlib.util.find_spec("viser") is None:
            print("no viewer: pip install viser for a picture in the browser", file=sys.stderr)
            return ()
        desktop = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
        return (("viewer_node", {"urdf": self.path, **({"tip": self.tip} if self.tip else {}), "port": args.port,
                                 "open_browser": desktop}),)

    def monitor(self):
        """The Monitor, once rclpy runs."""
        from ..nodes.monitor import Monitor
        return Monitor(self.arm, self.actions, self.length, line, namespace=self.namespace,
                       repeat=self.script_length if self.length is None else None)

    def judged(self, t):
        """Whether enough was seen for a verdict."""
        return t >= self.script_length - 0.1

    def verdict(self, record):
        """The scenario's checks on a record."""
        if self.scenario.name == "tracking":
            return self.scenario.verdict(self.arm, record, self.script_length, self.stuck)
        return self.scenario.verdict(self.arm, record, self.script_length)


def line(monitor):
    """One line per second: q, torque, tracking error, energy balance, rate."""
    record = monitor.record
    parts = [f"t {monitor.t:6.1f} s"]
    for name, title, form in (("q", "q", "{:+.3f}"), ("effort", "torque", "{:+.2f}")):
        if name in record:
            parts.append(f"{title} [{' '.join(form.format(x) for x in record.values(name)[-1])}]")
    if "error" in record:
        parts.append(f"error {np.abs(record.values('error')[-1]).max():.1e}")
    if "energy/balance" in record:
        parts.append(f"balance {record.values('energy/balance')[-1]:+.1e} J")
    if "dynamics" in monitor.rates:
        parts.append(f"{monitor.rates['dynamics']:.0f} Hz")
    print("  ".join(parts), flush=True)


def summary(show, monitor):
    """Print the verdict; True when every check is good."""
    try:
        checks = show.verdict(monitor.record)
    except InputError as error:
        print(f"\n{show.scenario.name}: no verdict: {error}")
        return False
    print(f"\n{show.arm.name}, scenario {show.scenario.name}: {show.scenario.description}")
    width = max(len(check.name) for check in checks)
    for check in checks:
        print(f"  {'ok  ' if check.good else 'FAIL'} {check.name:<{width}}  {check.value: .3e}   {check.limit}")
    good = all(check.good for check in checks)
    print("verdict: " + ("good" if good else "FAILED"))
    return good


def record_csv(path, arm, record):
    """Write what was recorded as a CSV file that `twolink simulate` and `twolink identify` read."""
    from ..trajectory import Trajectory
    Trajectory(record.times("q"), record.values("q"), record.values("qd"), record.values("effort")).to_csv(
        path, arm.joint_names)
