"""Real nodes in processes of their own, and one probe node in the test process that talks to them."""
import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

import rclpy  # noqa: E402
from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402
from rcl_interfaces.srv import GetParameters, SetParameters, SetParametersAtomically  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy  # noqa: E402

from twolink_dynamics.nodes.base import executor_for  # noqa: E402

PATIENCE = 90.0  # [s] nothing here asserts a time; this only ends a test that would never end
BEST_EFFORT = QoSProfile(depth=50, reliability=ReliabilityPolicy.BEST_EFFORT)
RELIABLE = QoSProfile(depth=50, reliability=ReliabilityPolicy.RELIABLE)
LATCHED = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class Started:
    """A node process; its output is kept in a file."""

    def __init__(self, log, module, namespace="", parameters=None, remaps=(), files=()):
        command = [sys.executable, "-m", f"twolink_dynamics.nodes.{module}", "--ros-args"]
        if namespace:
            command += ["-r", f"__ns:={namespace}"]
        for name, value in (parameters or {}).items():
            command += ["-p", f"{name}:={value}"]
        for rule in remaps:
            command += ["-r", rule]
        for file in files:
            command += ["--params-file", str(file)]
        self.log = log
        with open(log, "wb") as stream:
            self.process = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT, env=dict(os.environ))

    def output(self):
        """What it has written so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def end(self, number=signal.SIGINT):
        """Send a signal; the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            pytest.fail(f"the node did not end on signal {number}: {self.output()[-2000:]}")


class Probe:
    """Publishers, subscriptions that keep everything, service calls, and waiting."""

    def __init__(self):
        if not rclpy.ok():
            rclpy.init(args=[])
        self.node = rclpy.create_node(f"probe_{os.getpid()}")
        self.executor = executor_for([self.node])
        self.diagnostics = {}
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, RELIABLE)

    def _on_diagnostics(self, msg):
        for status in msg.status:
            self.diagnostics[status.name] = (status, {item.key: item.value for item in status.values})

    def until(self, condition, what, patience=PATIENCE):
        """Spin until `condition()` is true and return its value; fail with `what` otherwise."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            value = condition()
            if value:
                return value
            self.executor.spin_once(timeout_sec=0.05)
        pytest.fail(f"waited {patience:g} s for {what}")

    def listen(self, message, topic, qos=RELIABLE):
        """A list that fills with the messages of a topic."""
        heard = []
        self.node.create_subscription(message, topic, heard.append, qos)
        return heard

    def publisher(self, message, topic, qos=RELIABLE, matched=1):
        """A publisher that somebody listens to already."""
        publisher = self.node.create_publisher(message, topic, qos)
        self.until(lambda: publisher.get_subscription_count() >= matched, f"a subscriber of {topic}")
        return publisher

    def call(self, service, name, request=None):
        """The response of a service."""
        client = self.node.create_client(service, name)
        self.until(client.service_is_ready, f"service {name}")
        future = client.call_async(request or service.Request())
        self.until(future.done, f"the answer of {name}")
        self.node.destroy_client(client)
        return future.result()

    def set(self, node, **values):
        """Set parameters ('.' written as '__'); the results."""
        parameters = [Parameter(name.replace("__", "."), value=value).to_parameter_msg()
                      for name, value in values.items()]
        return self.call(SetParameters, f"{node}/set_parameters", SetParameters.Request(parameters=parameters)).results

    def set_together(self, node, **values):
        """Set parameters all or none; the result."""
        parameters = [Parameter(name.replace("__", "."), value=value).to_parameter_msg()
                      for name, value in values.items()]
        return self.call(SetParametersAtomically, f"{node}/set_parameters_atomically",
                         SetParametersAtomically.Request(parameters=parameters)).result

    def get(self, node, name):
        """The value of a parameter, as its message."""
        return self.call(GetParameters, f"{node}/get_parameters", GetParameters.Request(names=[name])).values[0]

    def rejected(self, node, what):
        """How many messages of a kind a node has reported as rejected."""
        return int(self.diagnostics.get(node, (None, {}))[1].get(f"rejected {what}", 0))

    def close(self):
        """Put everything away."""
        self.executor.remove_node(self.node)
        self.executor.shutdown()
        self.node.destroy_node()


@pytest.fixture(scope="module")
def probe():
    """The test process's node."""
    probe = Probe()
    yield probe
    probe.close()


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """Start nodes as processes; what still runs at the end is ended."""
    folder, started = tmp_path_factory.mktemp("nodes"), []

    def begin(module, *args, **options):
        started.append(Started(folder / f"{len(started)}_{module}.log", module, *args, **options))
        return started[-1]
    yield begin
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()
