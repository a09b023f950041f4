"""Is the state fit to control with? And is the loop fast enough for its gains?"""
from __future__ import annotations

import math

from ..errors import InputError, choices

SAFE_MODES = ("zero", "gravity_compensation", "brake")


def finite(vector):
    """Whether every entry is finite; for a few joints ten times as fast as NumPy's reductions."""
    return all(map(math.isfinite, vector.tolist()))


class Supervisor:
    """Judges every state before a law sees it, and measures the loop.

    state_timeout [s]   a state older than this, or none for longer than this, is stale
    safe_mode           what is sent without a trustworthy state: 'zero', 'gravity_compensation' (of the last good
                        positions), 'brake' (nothing is sent: the receiver's own timeout engages its brake)

    Attributes: state (the last good State or None), time (its t), dt and age (smoothed measured period and age [s]).
    Raises InputError on a timeout that is not positive or an unknown mode.
    """

    def __init__(self, arm, state_timeout=0.1, safe_mode="gravity_compensation"):
        if not (math.isfinite(state_timeout) and state_timeout > 0.0):
            raise InputError(f"state_timeout: {state_timeout:g} s must be positive and finite")
        if safe_mode not in SAFE_MODES:
            raise InputError(f"safe_mode '{safe_mode}' is none of {choices(SAFE_MODES)}")
        self.arm, self.state_timeout, self.safe_mode = arm, float(state_timeout), safe_mode
        self.reset()

    def reset(self):
        """Forget everything measured."""
        self.state = self.time = self.dt = None
        self.age = 0.0

    def judge(self, t, state, age=0.0):
        """Why `state` at time t [s], `age` old when it arrived, cannot be used; '' when it can. A state None asks
        whether the last good one still holds. Never raises on numbers."""
        if not math.isfinite(t):
            return f"time {t} is not finite"
        if state is None:
            if self.time is None:
                return "no joint state yet"
            if t - self.time > self.state_timeout:
                return f"no joint state for {t - self.time:.3f} s"
            return ""
        if not finite(state.q) or not finite(state.qd):
            return self._culprit(state)
        if not age <= self.state_timeout:
            return f"joint state is {age:.3f} s old"
        return ""

    def _culprit(self, state):
        for what, values in (("position", state.q), ("velocity", state.qd)):
            for name, value in zip(self.arm.joint_names, values):
                if not math.isfinite(value):
                    return f"{what} of joint '{name}' is {value}"
        return "joint state is not finite"

    def accept(self, t, state, age=0.0):
        """Take a good state: returns the time since the one before [s], None for the first."""
        step = None if self.time is None else t - self.time
        if step is not None and 0.0 < step <= self.state_timeout:
            self.dt = step if self.dt is None else self.dt + 0.05 * (step - self.dt)
        self.age += 0.05 * (max(age, 0.0) - self.age)
        self.state, self.time = state, t
        return step

    def gain_warning(self, rate):
        """A line when a law whose damping acts at `rate` [1/s] is too fast for this loop, else ''.

        The known limits of a sampled damping hold without delay: rate · dt = 2 is unstable, above 1 it rings; with an
        age on top the margin shrinks, so that 0.5 is where this warns."""
        if self.dt is None or rate * (self.dt + self.age) <= 0.5:
            return ""
        return (f"kd (dt + age) = {rate:.3g}/s x ({1e3 * self.dt:.3g} ms + {1e3 * self.age:.3g} ms) = "
                f"{rate * (self.dt + self.age):.2f} is above 0.5: lower the damping or run the loop faster")
