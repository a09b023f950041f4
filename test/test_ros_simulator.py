"""The simulator node alone: the test sends the efforts."""
import signal

import numpy as np
import pytest
from geometry_msgs.msg import WrenchStamped  # noqa: E402
from ros_harness import BEST_EFFORT, probe, start  # noqa: F401
from rosgraph_msgs.msg import Clock  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Float64, Float64MultiArray  # noqa: E402
from std_srvs.srv import SetBool, Trigger  # noqa: E402

from twolink_dynamics import Dynamics
from twolink_dynamics.simulation import Simulation

NODE = "/plant/simulator"
START = (0.3, -0.4)


@pytest.fixture(scope="module")
def node(start):  # noqa: F811
    return start("simulator_node", "/plant", {"urdf": "twolink", "initial_positions": list(START),
                                              "command_timeout": 0.5,
                                              "publish_clock": "true", "joint_state_rate": 500, "wrench_timeout": 0.1,
                                              "command_joints": "[joint2, joint1]", "frame_prefix": "left_"})


@pytest.fixture(scope="module")
def states(node, probe):  # noqa: F811
    heard = probe.listen(JointState, "/plant/joint_states", BEST_EFFORT)
    probe.until(lambda: heard, "joint states")
    return heard


@pytest.fixture(scope="module")
def push(node, probe):  # noqa: F811
    """Sends efforts in URDF order; the node was told to expect joint2 first. A best-effort publisher is heard."""
    publisher = probe.publisher(Float64MultiArray, "/plant/effort_controller/commands", BEST_EFFORT)
    return lambda tau: publisher.publish(Float64MultiArray(data=list(map(float, reversed(tau)))))


@pytest.fixture(scope="module")
def holding(twolink):
    return Dynamics(twolink).gravity(np.array(START))


def paused(probe, value):  # noqa: F811
    assert probe.call(SetBool, f"{NODE}/pause", SetBool.Request(data=value)).success


def stamp(msg):
    return msg.header.stamp.sec + 1e-9 * msg.header.stamp.nanosec


def test_before_the_first_command_the_brake_holds(states, probe):  # noqa: F811
    seen = len(states)
    probe.until(lambda: len(states) > seen + 50, "more joint states")
    assert all(tuple(msg.position) == START and not any(msg.velocity) for msg in states)
    msg = states[-1]
    assert msg.name == ["joint1", "joint2"] and msg.header.frame_id == "left_base_link"
    assert all(stamp(msg) > 0.0 for msg in states)
    probe.until(lambda: NODE[1:] in probe.diagnostics, "diagnostics")
    assert "braked" in probe.diagnostics[NODE[1:]][0].message


def test_clock_is_the_stamps(states, probe):  # noqa: F811
    clock = probe.listen(Clock, "/clock")
    probe.until(lambda: len(clock) > 10, "/clock")
    times = {(msg.clock.sec, msg.clock.nanosec) for msg in clock}
    probe.until(lambda: times & {(msg.header.stamp.sec, msg.header.stamp.nanosec) for msg in states}, "a shared stamp")


def test_an_effort_that_holds_holds_and_is_reported(states, probe, push, holding):  # noqa: F811
    def held():
        push(holding)
        return np.allclose(states[-1].effort, holding, atol=1e-12)
    probe.until(held, "the applied effort")
    seen = len(states)

    def longer():
        push(holding)
        return len(states) > seen + 200
    probe.until(longer, "more states")
    assert np.abs(np.array(states[-1].position) - START).max() < 1e-3


def test_efforts_are_clamped_and_reported_after_the_limits(states, probe, push, twolink):  # noqa: F811
    def clamped():
        push([1e4, 0.0])
        return states[-1].effort[0] == twolink.effort_limit[0]
    probe.until(clamped, "the clamped effort")


def test_commands_that_stop_brake_the_arm_and_the_next_releases_it(states, probe, push, holding):  # noqa: F811
    probe.until(lambda: "braked" in probe.diagnostics[NODE[1:]][0].message and not any(states[-1].velocity),
                "the brake")
    rest = tuple(states[-1].position)
    seen = len(states)
    probe.until(lambda: len(states) > seen + 50, "more states")
    assert tuple(states[-1].position) == rest

    def moving():
        push(holding * 0.5)
        return max(map(abs, states[-1].velocity)) > 0.05
    probe.until(moving, "motion")


@pytest.mark.parametrize("data", [[1.0], [1.0, 2.0, 3.0], [], [np.inf, 0.0], [0.0, np.nan]])
def test_bad_commands_are_dropped_and_counted(states, probe, data):  # noqa: F811
    publisher = probe.publisher(Float64MultiArray, "/plant/effort_controller/commands")
    before = probe.rejected(NODE[1:], "command")

    def counted():
        publisher.publish(Float64MultiArray(data=data))
        return probe.rejected(NODE[1:], "command") > before
    probe.until(counted, f"the rejection of {data}")
    probe.node.destroy_publisher(publisher)
    assert np.isfinite(states[-1].position).all()


def test_a_run_after_reset_equals_a_fresh_one_bit_for_bit(states, probe, push, twolink, holding):  # noqa: F811
    tau = 0.7 * holding
    true = probe.listen(JointState, f"{NODE}/true_joint_states")
    results = []
    for _ in range(2):
        paused(probe, True)
        assert probe.call(Trigger, f"{NODE}/reset").success
        probe.diagnostics[NODE[1:]] = (probe.diagnostics[NODE[1:]][0], {})

        def received():
            push(tau)
            return float(probe.diagnostics[NODE[1:]][1].get("commands per second", 0)) > 0
        probe.until(received, "commands received")
        for _ in range(20):
            assert probe.call(Trigger, f"{NODE}/step").success
        del true[:]
        probe.until(lambda: true, "the true state")
        results.append((list(true[-1].position), list(true[-1].velocity)))
    fresh = Simulation(twolink, 1e-3, q=np.array(START))
    fresh.step(np.array(tau), 20)
    assert results[0] == results[1] == (fresh.q.tolist(), fresh.qd.tolist())
    assert np.abs(fresh.qd).max() > 0.01  # it did move
    refused = probe.call(Trigger, f"{NODE}/step")
    paused(probe, False)
    assert refused.success
    refused = probe.call(Trigger, f"{NODE}/step")
    assert not refused.success and "pause" in refused.message


def test_paused_the_same_state_goes_on_being_published(states, probe):  # noqa: F811
    paused(probe, True)
    probe.until(lambda: stamp(states[-1]) == stamp(states[-10]), "the same state again and again")
    paused(probe, False)
    last = stamp(states[-1])
    probe.until(lambda: stamp(states[-1]) > last, "time going on")


def test_set_state_by_name_and_the_ledger(states, probe):  # noqa: F811
    ledger = {name: probe.listen(Float64, f"{NODE}/energy/{name}") for name in ("kinetic", "potential", "edits",
                                                                                "balance")}
    publisher = probe.publisher(JointState, f"{NODE}/set_state")

    def there():
        publisher.publish(JointState(name=["joint2"], position=[1.1]))
        return abs(states[-1].position[1] - 1.1) < 1e-9
    probe.until(there, "joint2 at 1.1")
    probe.until(lambda: all(ledger.values()) and abs(ledger["edits"][-1].data) > 1e-6, "the edit in the ledger")
    assert abs(ledger["balance"][-1].data) < 1e-6
    before = probe.rejected(NODE[1:], "set_state")
    for bad in (JointState(name=["nose"], position=[1.0]), JointState(name=["joint1"], position=[np.nan]),
                JointState(name=["joint1"], position=[])):
        before = probe.rejected(NODE[1:], "set_state")

        def counted(bad=bad, before=before):
            publisher.publish(bad)
            return probe.rejected(NODE[1:], "set_state") > before
        probe.until(counted, "the rejection")


@pytest.mark.parametrize("frame, force", [("", (0.0, 0.0, 30.0)), ("left_tool0", (0.0, 0.0, 30.0))])
def test_a_wrench_pushes_until_it_times_out(states, probe, push, frame, force):  # noqa: F811
    """Tool axes are the root's turned about −y by q1 + q2, so that both forces lift an arm that is stretched out."""
    assert probe.set(NODE, gravity=[0.0, 0.0, 0.0], on_timeout="zero")[0].successful
    assert probe.call(Trigger, f"{NODE}/reset").success
    publisher = probe.publisher(WrenchStamped, "/plant/external_wrench")
    work = probe.listen(Float64, f"{NODE}/energy/external")
    msg = WrenchStamped()
    msg.header.frame_id = frame
    msg.wrench.force.x, msg.wrench.force.y, msg.wrench.force.z = force

    def pushed():
        publisher.publish(msg)
        return work and work[-1].data > 1e-4 and states[-1].velocity[0] > 0.0
    probe.until(pushed, "motion and work")
    last = []

    def over():  # the work stands still once the wrench has timed out
        last.append(work[-1].data)
        return len(last) > 20 and last[-1] == last[-15]
    probe.until(over, "the end of the push")
    assert probe.set(NODE, gravity=[0.0, 0.0, -9.81], on_timeout="brake")[0].successful


def test_a_wrench_in_an_unknown_frame_is_refused_by_name(states, probe, node):  # noqa: F811
    publisher = probe.publisher(WrenchStamped, "/plant/external_wrench")
    msg = WrenchStamped()
    msg.header.frame_id = "moon"
    before = probe.rejected(NODE[1:], "external_wrench")

    def counted():
        publisher.publish(msg)
        return probe.rejected(NODE[1:], "external_wrench") > before
    probe.until(counted, "the rejection")
    assert "'moon' is no link" in node.output() and "left_tool0" in node.output()


def test_springs_and_friction_come_while_it_runs_or_not_at_all(states, probe):  # noqa: F811
    motors = probe.listen(JointState, f"{NODE}/motor_states")
    refused = probe.set_together(NODE, contact__enabled=True, flexible__stiffness=[2000.0], gravity=[0.0, 0.0, -1.0])
    assert not refused.successful and "rotor inertia" in refused.reason
    assert probe.get(NODE, "contact.enabled").bool_value is False
    assert list(probe.get(NODE, "gravity").double_array_value) == [0.0, 0.0, -9.81]
    assert not motors
    result = probe.set_together(NODE, rotor__inertia=[0.02], flexible__stiffness=[2000.0], flexible__damping=[4.0],
                                friction__viscous=[0.5, 0.5])
    assert result.successful, result.reason
    probe.until(lambda: motors, "motor states")
    assert probe.set_together(NODE, rotor__inertia=[], flexible__stiffness=[], friction__viscous=[]).successful
    assert probe.call(Trigger, f"{NODE}/reset").success
    del motors[:]
    seen = len(states)
    probe.until(lambda: len(states) > seen + 100, "more states")
    assert len(motors) <= 1 and np.allclose(states[-1].position, START)


def test_a_floor_put_under_the_tip_carries_it(states, probe):  # noqa: F811
    force = probe.listen(WrenchStamped, f"{NODE}/contact_wrench")
    result = probe.set_together(NODE, contact__enabled=True, contact__point=[0.0, 0.0, 0.0], on_timeout="zero")
    assert result.successful, result.reason
    probe.until(lambda: force and force[-1].wrench.force.z > 1.0, "a contact force")
    assert probe.set_together(NODE, contact__enabled=False, on_timeout="brake").successful
    assert probe.call(Trigger, f"{NODE}/reset").success


@pytest.mark.parametrize("what, position, velocity", [
    ("beyond", [1e300, 0.0], []), ("beyond", [0.0, 0.0], [1e200, 0.0])])
def test_absurd_states_are_refused_without_noise(states, probe, node, what, position, velocity):  # noqa: F811
    publisher = probe.publisher(JointState, f"{NODE}/set_state")
    before = probe.rejected(NODE[1:], "set_state")

    def counted():
        publisher.publish(JointState(name=["joint1", "joint2"], position=position, velocity=velocity))
        return probe.rejected(NODE[1:], "set_state") > before
    probe.until(counted, "the rejection")
    assert what in node.output() and "RuntimeWarning" not in node.output()


def test_a_state_outside_the_stops_is_taken_with_a_log_line(states, probe, node):  # noqa: F811
    publisher = probe.publisher(JointState, f"{NODE}/set_state")

    def said():
        publisher.publish(JointState(name=["joint1"], position=[5.0]))
        return "outside its stops" in node.output()
    probe.until(said, "the log line")
    assert "TwolinkWarning" not in node.output()
    assert probe.call(Trigger, f"{NODE}/reset").success


def test_sigint_ends_it_quietly(states, node):
    assert node.end(signal.SIGINT) == 0
    assert "Traceback" not in node.output()
