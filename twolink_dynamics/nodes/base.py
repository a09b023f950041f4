"""What both nodes share: parameters from the table, the arm from parameter, file or topic, topics that are only filled
when someone looks, and a main loop that keeps absolute deadlines in the main thread."""
from __future__ import annotations

import ctypes
import re
import signal
import sys
import time
import warnings
from contextlib import contextmanager

import numpy as np
import rclpy
from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor, SetParametersResult
from rclpy.exceptions import ParameterException
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import String

from ..errors import TwolinkError, TwolinkWarning
from ..resources import find_urdf
from ..urdf import load_urdf
from .diagnostics import Reporter
from .models import outfitted
from .parameters import NUMBER, TABLES, ParameterSet, unknown

RELIABLE = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
COMMANDS = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
BEST_EFFORT = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
LATCHED = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)
HEARING = 1e-3  # [s]
IDLE = 0.02  # longest wait of the loop [s]: how soon a signal is answered


class View:
    """A publisher of something one merely looks at: `fill(msg)` runs, at the node's publish_rate, only when someone
    subscribes; it may return False to publish nothing."""

    def __init__(self, node, message, topic, fill, qos=RELIABLE):
        self.publisher = node.create_publisher(message, topic, qos)
        self.msg, self.fill = message(), fill

    def update(self):
        """Publish once, if anyone looks and it can be computed."""
        if not self.publisher.get_subscription_count():
            return
        try:
            if self.fill(self.msg) is not False:
                self.publisher.publish(self.msg)
        except (TwolinkError, np.linalg.LinAlgError):
            pass  # a state in which it does not exist


class ArmNode(Node):
    """A node that serves one arm. Subclasses implement `build(arm)`, `apply(values, names)` and `tick(now)`."""

    def __init__(self, name, overrides=None, **options):
        super().__init__(name, **options)
        self.reporter = Reporter(self.get_logger())
        self.arm = None
        self.views = []
        self.due = time.perf_counter()
        self.listening = False  # True: a deadline is kept waiting for a message
        self.by_topic = True  # False: what drives the arm does not come by topic
        self.parameters = ParameterSet(TABLES[name])
        self._declare(overrides or {})
        self.add_on_set_parameters_callback(self._on_set)
        self._find_arm()

    # -- parameters --------------------------------------------------------------------------------------------------
    def _declare(self, overrides):
        given = {}
        for name, row in self.parameters.table.items():
            descriptor = ParameterDescriptor(description=f"{row.description} [{row.unit}]" if row.unit else
                                             row.description, dynamic_typing=True, read_only=not row.live,
                                             additional_constraints=row.bounds)
            if row.type == NUMBER and row.lower > -1e308 and row.upper < 1e308:
                descriptor.floating_point_range = [FloatingPointRange(from_value=row.lower, to_value=row.upper)]
                descriptor.additional_constraints = ""
            default = overrides.get(name, row.default)
            descriptor.floating_point_range = []  # an integer given for a double would be refused by rclpy
            value = self.declare_parameter(name, default, descriptor).value
            if value is not None and value != row.default:
                given[name] = value
        known = set().union(*({row.name for row in table} for table in TABLES.values()), {"use_sim_time"})
        for name in self._parameter_overrides:
            if name not in known and not name.startswith("qos_overrides."):
                self.get_logger().warning(f"{unknown(name, self.parameters.table)} It is ignored")
        self.parameters.accept(self.parameters.propose(given, running=False))

    def _on_set(self, requested):
        changes = {p.name: p.value for p in requested if p.name in self.parameters}
        try:
            change = self.parameters.propose(changes)
            if change.names:
                with self.remarks():
                    self.apply(self.parameters.accepted(change), change.names)
        except (TwolinkError, np.linalg.LinAlgError) as error:
            return SetParametersResult(successful=False, reason=str(error))
        self.parameters.accept(change)
        return SetParametersResult(successful=True)

    def apply(self, p, names):
        """Make the ParameterSet p effective, which differs in `names`; raises TwolinkError to refuse them all, and then
        nothing has changed."""

    @contextmanager
    def remarks(self):
        """Warnings of the library become log lines."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", TwolinkWarning)
            warnings.simplefilter("ignore", RuntimeWarning)  # overflow ends in an error of its own
            yield
        for warning in caught:
            self.reporter.warn(str(warning.message)[:40], warning.message)

    # -- the arm -----------------------------------------------------------------------------------------------------
    def _find_arm(self):
        text, file = self.parameters["robot_description"], self.parameters["urdf"]
        if text or file:
            self._take_arm(text or find_urdf(file))
            return
        # Two subscriptions: a transient_local one hears what was latched before, and only a volatile one hears a
        # volatile publisher.
        for qos in (LATCHED, COMMANDS):
            self.create_subscription(String, "robot_description", self._on_description, qos)
        self.get_logger().info("waiting for the topic 'robot_description' (parameters robot_description and urdf are "
                               "empty)")
        self._description = None

    def _on_description(self, msg):
        if msg.data == self._description:
            return
        if self.arm is not None:
            self.reporter.reject("robot_description", "a different robot_description arrived: restart the node to "
                          "use it")
            return
        try:
            self._take_arm(msg.data)
            self._description = msg.data
        except TwolinkError as error:
            self.reporter.reject("robot_description", f"robot_description: {error}")

    def _take_arm(self, source):
        p = self.parameters
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            arm = load_urdf(source, tip=p["tip"] or None, gravity=p["gravity"])
        for remark in arm.warnings:
            self.get_logger().warning(remark)
        p.fit(arm.n)
        self.bare_arm, arm = arm, outfitted(arm, p)
        names = p["command_joints"] or list(arm.joint_names)
        self.command_index = [arm.index(name) for name in names]
        self.command_joints = names
        with self.remarks():
            self.build(arm)
        self.arm = arm
        shown = {name: value for name, value in p.changed().items() if name != "robot_description"}
        self.get_logger().info(f"arm '{arm.name}', joints {', '.join(arm.joint_names)}, tip {arm.tip}; "
                               + (", ".join(f"{name}={value}" for name, value in shown.items()) or "default "
                                             "parameters"))

    def build(self, arm):
        """Prepare everything for this arm; raises TwolinkError when it cannot be used."""
        raise NotImplementedError

    def alone(self, topic, what, count):
        """'' when this topic has at most one publisher, else a problem, which is also said."""
        if count <= 1:
            return ""
        problem = f"{topic} has {count} publishers: only one {what} can be obeyed"
        self.reporter.warn(f"publishers of {topic}", problem, every=10.0)
        return problem

    # -- looking -----------------------------------------------------------------------------------------------------
    def view(self, message, topic, fill, qos=RELIABLE):
        """Add a View to what `look` publishes."""
        self.views.append(View(self, message, topic, fill, qos))

    def look(self):
        """Publish all views that have subscribers."""
        for view in self.views:
            view.update()

    def now(self):
        """The node's ROS time [s]."""
        return self.get_clock().now().nanoseconds * 1e-9

    def tick(self, now):
        """Called when perf_counter() reaches `self.due`; must advance it."""
        raise NotImplementedError


class Stop:
    """Turns SIGINT and SIGTERM into a flag; what was installed before is put back at the end."""

    def __init__(self):
        self.signal = None

    def __enter__(self):
        self._before = {number: signal.signal(number, self._on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_):
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number, frame):
        self.signal = number


def precise_timers():
    """Ask Linux to wake this thread within a microsecond instead of fifty (timer slack)."""
    try:
        ctypes.CDLL(None).prctl(29, 1000, 0, 0, 0)  # PR_SET_TIMERSLACK [ns]
    except (OSError, AttributeError):
        pass  # another system: timers are coarser


def executor_for(nodes):
    """The fast events executor where this rclpy has it, else the single-threaded one, with the nodes added."""
    try:
        from rclpy.experimental import EventsExecutor
        executor = EventsExecutor()
    except ImportError:
        from rclpy.executors import SingleThreadedExecutor
        executor = SingleThreadedExecutor()
    for node in nodes:
        executor.add_node(node)
    return executor


def spin(nodes, until):
    """Run callbacks and ticks in this thread until `until()` is true.

    The executor waits to 0.1 ms before the next deadline, a sleep to 20 µs before it, and the rest is spent looking
    at the clock: microseconds of jitter for a few per cent of a core. A loop that is late still listens, but one whose
    nodes do not talk by topics only every HEARING seconds.
    """
    precise_timers()
    executor = executor_for(nodes)
    clock = time.perf_counter
    by_topic = any(node.by_topic for node in nodes)
    heard = clock()
    for node in nodes:
        node.due = max(node.due, heard)  # what the start took is no lateness
    try:
        while not until():
            for node in nodes:
                if node.due <= clock():
                    node.tick(clock())
            wait = min(node.due for node in nodes) - clock()
            if wait > 1.2e-4:
                executor.spin_once(timeout_sec=min(wait - 1e-4, IDLE))
            elif wait > 3e-5:
                time.sleep(wait - 2e-5)
            elif any(node.listening for node in nodes):
                executor.spin_once(timeout_sec=0.002)
            elif wait < 0.0 and by_topic:
                for _ in range(3):  # a state, the command it causes, and one more
                    executor.spin_once(timeout_sec=0.0)
            elif clock() - heard > HEARING:
                heard = clock()
                executor.spin_once(timeout_sec=0.0)
    except ExternalShutdownException:
        pass
    finally:
        for node in nodes:
            executor.remove_node(node)
        executor.shutdown()


def initialise(args=None):
    """rclpy.init with our own signal handling; raises TwolinkError in one line where arguments cannot be read."""
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    except Exception as error:  # rclpy raises RCLError, of a private module
        text = str(error)
        if "same type" in text:
            reason = ("a list of parameters mixes types: write all numbers of a list as doubles ([1.0, 2.0], not "
                      "[1, 2.0])")
            source = re.search(r"'(-[^']*)'", text)
            raise TwolinkError(reason + (f"; in {source.group(1)}" if source else "")) from None
        raise TwolinkError(text.split(", at /")[0].splitlines()[0]) from None


def run(create, args=None):
    """The main of a node: `create()` gives the nodes; returns an exit status and never shows a traceback for bad
    input, a signal or a shutdown."""
    nodes = []
    with Stop() as stop:
        try:
            initialise(args)
            nodes = create()
            spin(nodes, lambda: stop.signal is not None)
            return 0
        except (TwolinkError, ParameterException) as error:
            sys.stderr.write(f"{type(nodes[0]).__name__ if nodes else 'twolink_dynamics'}: error: {error}\n")
            return 2
        finally:
            for node in nodes:
                node.destroy_node()
            rclpy.try_shutdown()
