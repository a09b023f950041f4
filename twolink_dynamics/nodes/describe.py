"""The equations of an arm as text, derived in another process so that a control loop is never held up."""
from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile

from rclpy.task import Future

_PROGRAM = ("import pickle, sys; from twolink_dynamics.nodes.describe import text; "
            "sys.stdout.buffer.write(text(pickle.load(sys.stdin.buffer)).encode())")
PATIENCE = 6000  # polls (about a minute)


def text(arm):
    """The symbolic equations; where the arm has too many joints for that, what is known in words."""
    from ..errors import TwolinkError
    from ..lagrangian import equations
    joints = "\n".join(f"  {name}: effort limit {effort:g}, damping {damping:g}, Coulomb friction {coulomb:g}"
                       for name, effort, damping, coulomb in zip(arm.joint_names, arm.effort_limit, arm.damping,
                                                                 arm.coulomb))
    head = f"arm '{arm.name}', {arm.n} joints, tip {arm.tip}, gravity {arm.gravity.tolist()} m/s²\n{joints}\n"
    head += "M(q) q̈ + C(q, q̇) q̇ + g(q) + τ_f(q̇) = τ + Jᵀ f_ext\n"
    try:
        return head + "\n" + equations(arm).text
    except TwolinkError as error:
        return head + f"\n{error}"


class Description:
    """One derivation at a time, kept for the next question; `poll` is called regularly by whoever owns it."""

    def __init__(self):
        self._known, self._process, self._waiting, self._polls = None, None, [], 0

    def of(self, arm):
        """A Future of the text."""
        future = Future()
        if self._known is not None:
            future.set_result(self._known)
            return future
        self._waiting.append(future)
        if self._process is None:
            given, self._output = tempfile.TemporaryFile(), tempfile.TemporaryFile()
            given.write(pickle.dumps(arm))
            given.seek(0)
            self._process = subprocess.Popen(["nice", sys.executable, "-c", _PROGRAM], stdin=given, stdout=self._output,
                                             stderr=subprocess.DEVNULL)
            given.close()
        return future

    def poll(self):
        """Answer what waits, once the derivation is there."""
        if self._process is None:
            return
        self._polls += 1
        if self._process.poll() is None and self._polls < PATIENCE:
            return
        self.close()
        self._output.seek(0)
        text = self._output.read().decode() or "the equations could not be derived"
        self._output.close()
        if self._code == 0:
            self._known = text
        for future in self._waiting:
            future.set_result(text)
        self._process, self._waiting, self._polls = None, [], 0

    def close(self):
        """End a derivation that still runs."""
        if self._process is not None:
            if self._process.poll() is None:
                self._process.kill()
            self._code = self._process.wait()
