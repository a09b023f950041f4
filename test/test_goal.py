"""The life of a trajectory goal, without ROS."""
import numpy as np
import pytest

from twolink_dynamics import Dynamics, InputError, State
from twolink_dynamics.control import Controller, GoalTolerances, JointTrajectory, TrajectoryGoal
from twolink_dynamics.control import goal as codes
from twolink_dynamics.control.reference import at_rest

NAMES = ["joint1", "joint2"]
END = np.array([0.5, -0.4])


@pytest.fixture
def path(twolink):
    return JointTrajectory(twolink, NAMES, [(1.0, END)], now=10.0, previous=at_rest([0.0, 0.0]))


def on(path, t, offset=0.0, drift=0.0):
    here = path.sample(t)
    return State(here.q + offset, here.qd + drift)


def test_a_goal_that_is_followed_succeeds_at_its_end(twolink, path):
    goal = TrajectoryGoal(twolink, path, GoalTolerances(2, 0.05), GoalTolerances(2, 0.01, 0.02))
    for t in np.arange(10.0, 11.0, 0.05):
        feedback = goal.update(t, on(path, t, 0.02))
        assert goal.status == "executing" and not goal.done
        assert np.allclose(feedback.error[0], -0.02) and np.isclose(feedback.time, t - 10.0)
        assert np.allclose(feedback.desired[0], path.sample(t).q)
        assert np.allclose(feedback.actual[0], feedback.desired[0] + 0.02)
    assert goal.update(11.0, on(path, 11.0, 0.02)) is not None and goal.status == "executing"  # still 0.02 off
    assert goal.update(11.1, on(path, 11.1, 0.005, drift=0.05)) is not None and not goal.done  # not yet at rest
    assert goal.update(11.2, on(path, 11.2, 0.005)) is not None
    assert (goal.status, goal.code, goal.text) == ("succeeded", codes.SUCCESSFUL, "goal reached")
    assert goal.update(11.3, on(path, 11.3)) is None and not goal.cancel() and not goal.preempt()
    assert goal.status == "succeeded"  # final


def test_leaving_the_path_aborts_and_names_the_joint(twolink, path):
    goal = TrajectoryGoal(twolink, path, GoalTolerances(2, [np.inf, 0.05]))
    goal.update(10.3, State(path.sample(10.3).q + [0.5, 0.0], np.zeros(2)))
    assert not goal.done  # joint1 is not checked
    goal.update(10.4, State(path.sample(10.4).q + [0.0, 0.06], np.zeros(2)))
    assert (goal.status, goal.code) == ("aborted", codes.PATH_TOLERANCE_VIOLATED)
    assert goal.text == "path tolerance: position error of joint 'joint2' is 0.06, tolerance 0.05"


def test_the_path_is_not_judged_before_the_start(twolink):
    later = JointTrajectory(twolink, NAMES, [(1.0, END)], now=10.0, stamp=12.0, previous=at_rest([0.0, 0.0]))
    goal = TrajectoryGoal(twolink, later, GoalTolerances(2, 0.05))
    goal.update(11.0, State(np.ones(2), np.zeros(2)))
    assert not goal.done
    goal.update(12.1, State(np.ones(2), np.zeros(2)))
    assert goal.status == "aborted"


def test_not_arriving_in_time_aborts(twolink, path):
    goal = TrajectoryGoal(twolink, path, goal=GoalTolerances(2, 0.01), goal_time=0.5)
    goal.update(11.4, on(path, 11.4, 0.1))
    assert not goal.done
    goal.update(11.6, on(path, 11.6, 0.1))
    assert (goal.status, goal.code) == ("aborted", codes.GOAL_TOLERANCE_VIOLATED)
    assert "0.60 s after the end: position error of joint 'joint1' is 0.1" in goal.text
    patient = TrajectoryGoal(twolink, path, goal=GoalTolerances(2, 0.01))  # 0: waits for ever
    patient.update(500.0, on(path, 500.0, 0.1))
    assert not patient.done


def test_a_state_that_is_not_a_number_is_out_of_every_tolerance(twolink, path):
    goal = TrajectoryGoal(twolink, path, GoalTolerances(2, 0.05))
    goal.update(10.2, State(np.array([np.nan, 0.0]), np.zeros(2)))
    assert goal.status == "aborted"


def test_cancel_and_preempt(twolink, path):
    goal = TrajectoryGoal(twolink, path)
    assert goal.cancel() and goal.status == "canceled" and not goal.cancel()
    other = TrajectoryGoal(twolink, path)
    assert other.preempt() and other.status == "aborted" and "another goal" in other.text


def test_tolerances_as_the_action_defines_them(twolink):
    default = GoalTolerances(2, 0.1, 0.2)
    own = default.overridden(twolink, [("joint2", 0.0, -1.0, 0.0)])
    assert own.position.tolist() == [0.1, 0.1] and own.velocity.tolist() == [0.2, np.inf]
    assert default.overridden(twolink, [("joint1", 0.3)]).position.tolist() == [0.3, 0.1]
    with pytest.raises(InputError, match="tolerance: no joint 'wrist'; the joints are joint1, joint2"):
        default.overridden(twolink, [("wrist", 0.1)])
    with pytest.raises(InputError, match="'joint1' is nan"):
        default.overridden(twolink, [("joint1", np.nan)])
    with pytest.raises(InputError, match="position tolerance"):
        GoalTolerances(2, -0.1)


def running(twolink, t0=0.0):
    controller = Controller(Dynamics(twolink), "computed_torque")
    controller.step(t0, State(np.zeros(2), np.zeros(2)))
    return controller


def run(controller, goal, t0, t1, follow=True):
    """Steps with a plant that is exactly where the reference is, or stands still."""
    for t in np.arange(t0, t1, 0.02):
        reference = controller.reference(t)
        state = State(reference.q, reference.qd) if follow else State(np.zeros(2), np.zeros(2))
        controller.step(float(t), state)
        goal.watch(controller)


def test_watching_a_controller_to_success(twolink):
    controller = running(twolink)
    goal = TrajectoryGoal(twolink, controller.trajectory(NAMES, [(0.5, END)]), goal=GoalTolerances(2, 1e-6, 1e-6))
    run(controller, goal, 0.02, 0.6)
    assert goal.status == "succeeded"


def test_another_reference_preempts(twolink):
    controller = running(twolink)
    goal = TrajectoryGoal(twolink, controller.trajectory(NAMES, [(0.5, END)]))
    run(controller, goal, 0.02, 0.2)
    assert not goal.done
    controller.trajectory(NAMES, [(0.5, -END)])
    run(controller, goal, 0.2, 0.24)
    assert goal.status == "aborted" and goal.text == "replaced by another reference"


def test_canceling_brings_the_arm_to_rest(twolink):
    controller = running(twolink)
    goal = TrajectoryGoal(twolink, controller.trajectory(NAMES, [(0.5, END)]))
    run(controller, goal, 0.02, 0.26)
    assert goal.cancel()
    stop = controller.hold()
    assert stop.duration > 0.0 and not stop.sample(0.26 + stop.duration).qd.any()


@pytest.mark.parametrize("ruin, reason", [
    (lambda c: c.step(0.26, State(np.full(2, np.nan), np.zeros(2))), "position of joint 'joint1' is nan"),
    (lambda c: (c.enable(False), c.step(0.26, State(np.zeros(2), np.zeros(2)))), "the controller is disabled"),
    (lambda c: (c.select("off"), c.step(0.26, State(np.zeros(2), np.zeros(2)))), "the controller is off"),
    (lambda c: (c.select("gravity_compensation"), c.step(0.26, State(np.zeros(2), np.zeros(2)))), "another reference"),
])
def test_a_controller_that_no_longer_follows_aborts_the_goal(twolink, ruin, reason):
    controller = running(twolink)
    goal = TrajectoryGoal(twolink, controller.trajectory(NAMES, [(0.5, END)]))
    run(controller, goal, 0.02, 0.25)
    assert not goal.done
    ruin(controller)
    goal.watch(controller)
    assert goal.status == "aborted" and reason in goal.text


def test_goal_time_must_make_sense(twolink, path):
    with pytest.raises(InputError, match="goal time tolerance -1 s"):
        TrajectoryGoal(twolink, path, goal_time=-1.0)
