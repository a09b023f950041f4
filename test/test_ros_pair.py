"""Simulator and dynamics as two processes: holding, tracking, and what happens when one of them dies."""
import signal
import subprocess
import sys

import numpy as np
import pytest
from ros_harness import LATCHED, PATIENCE, RELIABLE, Started, probe, start  # noqa: F401
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Float64, String  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint  # noqa: E402

from twolink_dynamics import Dynamics
from twolink_dynamics.nodes.tables import ENDPOINTS

STEADY = 1e-3  # [rad] allowed at rest: exact model, no friction
SIMULATOR = {"urdf": "twolink", "command_timeout": 1.0, "initial_positions": "[0.2, 0.3]",
             "joint_state_rate": 500}
DYNAMICS = {"urdf": "twolink", "state_timeout": 1.0}  # the machine may be loaded


@pytest.fixture(scope="module")
def nodes(start):  # noqa: F811
    return {"simulator": start("simulator_node", "/left", SIMULATOR),
            "dynamics": start("dynamics_node", "/left", DYNAMICS)}


@pytest.fixture(scope="module")
def states(nodes, probe):  # noqa: F811
    heard = probe.listen(JointState, "/left/joint_states")
    probe.until(lambda: heard, "joint states")
    return heard


@pytest.fixture(scope="module")
def goals(nodes, probe):  # noqa: F811
    return probe.publisher(JointTrajectory, "/left/joint_trajectory")


def stamp(msg):
    return msg.header.stamp.sec + 1e-9 * msg.header.stamp.nanosec


def go(goals, positions, seconds, names=("joint1", "joint2")):
    msg = JointTrajectory(joint_names=list(names), points=[JointTrajectoryPoint(positions=list(map(float, positions)))])
    msg.points[0].time_from_start.sec = seconds
    goals.publish(msg)


def driven(states):
    return any(states[-1].effort)


def test_the_arm_is_held_against_gravity(states, probe, twolink):  # noqa: F811
    probe.until(lambda: driven(states), "efforts")
    began = stamp(states[-1])
    probe.until(lambda: stamp(states[-1]) > began + 1.0, "a second of simulated time")
    q = np.array(states[-1].position)
    assert np.abs(q - [0.2, 0.3]).max() < STEADY
    assert np.allclose(states[-1].effort, Dynamics(twolink).gravity(q), atol=0.05)


def test_a_quintic_is_tracked(states, probe, goals):  # noqa: F811
    errors = probe.listen(JointState, "/left/dynamics/tracking_error")
    balance = probe.listen(Float64, "/left/simulator/energy/balance")
    goal = np.array([0.9, -0.5])
    go(goals, goal[::-1], 2, ("joint2", "joint1"))  # names in any order
    began = stamp(states[-1])
    probe.until(lambda: stamp(states[-1]) > began + 3.5, "the end of the motion")
    assert np.abs(np.array(states[-1].position) - goal).max() < STEADY
    moving = [np.abs(msg.velocity).max() for msg in states if stamp(msg) > began]
    assert max(moving) > 0.3  # it moved, at the pace of two seconds
    assert errors and np.abs(errors[-1].position).max() < STEADY
    assert balance and abs(balance[-1].data) < 1e-6


def test_a_reset_on_the_way_is_taken_as_new_time(states, probe, goals, nodes):  # noqa: F811
    go(goals, [0.5, 0.5], 3)
    probe.until(lambda: max(map(abs, states[-1].velocity)) > 0.05, "motion")
    assert probe.call(Trigger, "/left/simulator/reset").success
    probe.until(lambda: "time went back" in nodes["dynamics"].output(), "the remark")
    began = stamp(states[-1])
    probe.until(lambda: stamp(states[-1]) > began + 1.0, "a second")
    assert np.abs(states[-1].velocity).max() < 0.01  # held near where it is, though a command from before may move it
    assert np.abs(np.array(states[-1].position) - [0.2, 0.3]).max() < 0.2


def test_every_topic_and_service_of_the_tables_is_there(states, probe):  # noqa: F811
    node = probe.node
    for name, rows in ENDPOINTS.items():
        for row in rows:
            if row.name in ("robot_description", "/clock"):
                continue  # only with other parameters
            full = row.name.replace("~", f"/left/{name}") if row.name[0] in "~/" else f"/left/{row.name}"
            package, kind = row.type.split("/")
            look = {"pub": node.get_publisher_names_and_types_by_node,
                    "sub": node.get_subscriber_names_and_types_by_node,
                    "srv": node.get_service_names_and_types_by_node}[row.way]
            kind = f"{package}/{'srv' if row.way == 'srv' else 'msg'}/{kind}"
            probe.until(lambda look=look, full=full, kind=kind, name=name: (full, [kind]) in look(name, "/left"),
                        f"{row.way} {full} of {kind}", 30.0)


def test_nothing_is_there_that_the_tables_do_not_say(states, probe):  # noqa: F811
    own = ("/parameter_events", "/rosout", "get_parameter", "set_parameters", "list_parameters", "describe_parameters",
           "get_type_description")
    for name, rows in ENDPOINTS.items():
        said = {row.name.replace("~", f"/left/{name}") if row.name[0] in "~/" else f"/left/{row.name}" for row in rows}
        for look in (probe.node.get_publisher_names_and_types_by_node,
                     probe.node.get_subscriber_names_and_types_by_node,
                     probe.node.get_service_names_and_types_by_node):
            extra = [topic for topic, _ in look(name,
                                                "/left") if topic not in said and not any(o in topic for o in own)]
            assert not extra


# noqa: F811
def test_killing_the_controller_leaves_a_safe_arm_and_a_restart_recovers(states, probe, goals, nodes, start):  # noqa: F811
    nodes["dynamics"].process.send_signal(signal.SIGKILL)
    nodes["dynamics"].process.wait()
    probe.until(lambda: "braked" in probe.diagnostics.get("left/simulator", (None,))[0].message, "the brake")
    q = tuple(states[-1].position)
    began = stamp(states[-1])
    probe.until(lambda: stamp(states[-1]) > began + 0.5, "half a second")
    assert tuple(states[-1].position) == q and not any(states[-1].velocity)
    nodes["dynamics"] = start("dynamics_node", "/left", DYNAMICS)
    probe.until(lambda: driven(states), "efforts again")
    began = stamp(states[-1])
    probe.until(lambda: stamp(states[-1]) > began + 0.5, "half a second")
    assert np.abs(np.array(states[-1].position) - q).max() < STEADY
    probe.until(lambda: goals.get_subscription_count() >= 1, "the new node listening")
    probe.until(lambda: _goes(goals, states, [0.2, 0.2]), "motion to the new goal")


def _goes(goals, states, goal):
    if np.abs(np.array(states[-1].position) - goal).max() < STEADY:
        return True
    if not any(abs(v) > 1e-3 for v in states[-1].velocity):
        go(goals, goal, 2)
    return False


def test_restarting_the_simulator_needs_nothing_else(states, probe, nodes, start):  # noqa: F811
    nodes["simulator"].process.send_signal(signal.SIGKILL)
    nodes["simulator"].process.wait()
    probe.until(lambda: probe.diagnostics["left/dynamics"][1].get("mode") == "safe", "the safe mode")
    nodes["simulator"] = start("simulator_node", "/left", SIMULATOR)
    del states[:]
    probe.until(lambda: states and driven(states), "efforts again")
    began = stamp(states[-1])
    probe.until(lambda: stamp(states[-1]) > began + 1.0, "a second")
    assert np.abs(np.array(states[-1].position) - [0.2, 0.3]).max() < STEADY


def test_a_second_arm_in_another_namespace_is_another_arm(states, probe, goals, start):  # noqa: F811
    """Composed, and the URDF comes by topic: latched before the nodes start, and with a `: ` in a comment."""
    from twolink_dynamics.resources import find_urdf
    text = find_urdf("twolink").read_text().replace("<robot", "<!-- note: a: b -->\n<robot", 1)
    latched = probe.node.create_publisher(String, "/right/robot_description", LATCHED)
    latched.publish(String(data=text))
    right = probe.listen(JointState, "/right/joint_states")
    node = start("composed", "/right", {"command_timeout": 1.0, "state_timeout": 1.0})
    probe.until(lambda: right and driven(right), "the second arm's efforts")
    before = tuple(right[-1].position)
    go(goals, [0.6, 0.1], 1)
    began = stamp(states[-1])
    probe.until(lambda: stamp(states[-1]) > began + 1.5, "the first arm's motion")
    assert abs(states[-1].position[0] - 0.6) < STEADY
    assert np.abs(np.array(right[-1].position) - before).max() < STEADY
    latched.publish(String(data="<robot/>"))
    probe.until(lambda: "a different robot_description arrived" in node.output(), "the remark")
    assert node.end() == 0


def test_a_volatile_robot_description_is_heard_too(probe, start):  # noqa: F811
    from twolink_dynamics.resources import find_urdf
    node = start("simulator_node", "/late")
    text = find_urdf("twolink").read_text()
    heard = probe.listen(JointState, "/late/joint_states")
    publisher = probe.publisher(String, "/late/robot_description", RELIABLE)

    def refused():
        publisher.publish(String(data="<robot name='x'><link name='a'/></robot>"))
        return "robot_description: " in node.output()
    probe.until(refused, "the refusal of a robot that cannot move")
    assert not heard  # and it goes on waiting

    def alive():
        publisher.publish(String(data=text))
        return heard
    probe.until(alive, "joint states after the description")
    assert node.end() == 0


@pytest.mark.parametrize("parameters, said", [
    ({"urdf": "no_such_arm"}, "no URDF file 'no_such_arm'"), ({"urdf": "twolink", "dt": -1.0}, "parameter 'dt'"),
    ({"urdf": "twolink", "initial_positions": "[1.0, 2.0, 3.0]"}, "'initial_positions'"),
    ({"urdf": "twolink", "initial_positions": "[1, 2.0]"}, "mixes types"),
    ({"urdf": "twolink", "command_joints": "[nose]"}, "no joint 'nose'")])
def test_what_cannot_start_says_so_in_one_line(tmp_path, parameters, said):
    node = Started(tmp_path / "log", "simulator_node", "/bad", parameters)
    assert node.process.wait(PATIENCE) == 2
    lines = [line for line in node.output().splitlines() if "error: " in line]
    assert len(lines) == 1 and said in lines[0]
    assert "Traceback" not in node.output()


def test_a_yaml_file_with_a_mixed_list_is_explained(tmp_path):
    file = tmp_path / "mixed.yaml"
    file.write_text("/**:\n  ros__parameters:\n    kp: [100, 50.0]\n")
    node = Started(tmp_path / "log", "dynamics_node", "", {}, files=[file])
    assert node.process.wait(PATIENCE) == 2
    assert "mixes types" in node.output() and "mixed.yaml" in node.output() and "Traceback" not in node.output()


def test_an_unknown_parameter_in_a_file_gets_a_suggestion(tmp_path, start, probe):  # noqa: F811
    file = tmp_path / "typo.yaml"
    file.write_text("/**:\n  ros__parameters:\n    state_timout: 1.0\n    urdf: twolink\n")
    node = start("dynamics_node", "/typo", {}, files=[file])
    probe.until(lambda: "did you mean 'state_timeout'" in node.output(), "the suggestion")
    assert node.end(signal.SIGINT) == 0


def test_the_nodes_start_with_help_from_nothing_heavy():
    """The modules a node needs at start leave out what is slow to import."""
    program = ("import sys, twolink_dynamics.nodes.dynamics_node, twolink_dynamics.nodes.simulator_node; "
               "print([m for m in ('sympy', 'scipy', 'matplotlib', 'viser', 'sklearn') if m in sys.modules])")
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE,
                            check=True)
    assert result.stdout.strip() == "[]"
