"""control_msgs/FollowJointTrajectory for the dynamics node, where control_msgs is installed: a thin shell around the
goal's state machine (control/goal.py)."""
from __future__ import annotations

import importlib.util

from ..control import GoalTolerances, TrajectoryGoal
from ..control.goal import ABORTED, CANCELED, INVALID_GOAL, SUCCEEDED
from ..errors import TwolinkError
from .conversion import seconds

NAME = "~/follow_joint_trajectory"


def trajectory_action(node):
    """A TrajectoryAction of `node`, or None where control_msgs cannot be imported."""
    if importlib.util.find_spec("control_msgs") is None:
        return None
    from control_msgs.action import FollowJointTrajectory
    from rclpy.action import ActionServer
    return TrajectoryAction(node, FollowJointTrajectory, ActionServer)


class TrajectoryAction:
    """One goal at a time; a new one, or a trajectory by topic, aborts the one before, as joint_trajectory_controller
    does.

    `action` is the action's type, `server` what serves it (rclpy's ActionServer)."""

    def __init__(self, node, action, server):
        from rclpy.action import CancelResponse, GoalResponse
        self.node, self.action = node, action
        self.goal = self.handle = self.future = None
        self.answers = {True: GoalResponse.ACCEPT, False: GoalResponse.REJECT}
        self.server = server(node, action, NAME, execute_callback=self.execute, goal_callback=self.judge,
                             cancel_callback=lambda handle: CancelResponse.ACCEPT)

    def judge(self, request):
        """Whether a goal can be taken up at all."""
        controller = self.node.controller
        good = controller is not None and controller.driving
        if not good:
            self.node.reporter.reject("goal", "goal refused: no controller that follows references drives")
        return self.answers[good]

    async def execute(self, handle):
        """Follow a goal to its end; the action's result."""
        from rclpy.task import Future
        request = handle.request
        try:
            source = self.node.follow(request.trajectory)
            arm = self.node.arm
            path, end = (default.overridden(arm, [(t.name, t.position, t.velocity) for t in given])
                         for default, given in ((GoalTolerances(arm.n), request.path_tolerance),
                                                (GoalTolerances(arm.n, velocity=0.01), request.goal_tolerance)))
            goal = TrajectoryGoal(arm, source, path, end, seconds(request.goal_time_tolerance))
        except TwolinkError as error:
            handle.abort()
            return self._result(INVALID_GOAL, str(error))
        if self.goal is not None and self.goal.preempt():
            self._finish()
        self.goal, self.handle, self.future = goal, handle, Future()
        await self.future
        {SUCCEEDED: handle.succeed, CANCELED: handle.canceled, ABORTED: handle.abort}[goal.status]()
        return self._result(goal.code, goal.text)

    def tick(self):
        """Judge the goal by the controller's last state; called at publish_rate."""
        if self.goal is None:
            return
        if self.handle.is_cancel_requested and self.goal.cancel():
            self.node.controller.hold()
        feedback = self.goal.watch(self.node.controller)
        if feedback is not None:
            self.handle.publish_feedback(self._feedback(feedback))
        if self.goal.done:
            self._finish()

    def _finish(self):
        future, self.goal, self.handle, self.future = self.future, None, None, None
        future.set_result(None)

    def _feedback(self, feedback):
        msg = self.action.Feedback()
        msg.joint_names = list(self.node.arm.joint_names)
        for part in ("desired", "actual", "error"):
            q, qd = getattr(feedback, part)
            getattr(msg, part).positions, getattr(msg, part).velocities = q.tolist(), qd.tolist()
        return msg

    def _result(self, code, text):
        result = self.action.Result()
        result.error_code, result.error_string = code, text
        return result
