"""Controller: laws, reference, limits and supervision in one object that a loop calls at every joint state."""
from __future__ import annotations

from collections import deque

import numpy as np

from ..arm import Reference, State
from ..errors import InputError, choices
from .law import Law
from .laws import LAWS, make_law
from .limits import EffortLimits, Handover
from .reference import JointTrajectory, Stop, move
from .supervision import Supervisor, finite

OFF = "off"


class Output:
    """What one step gives: all (n,) [N m or N].

    efforts     after handover and limits: what to apply; always finite
    wanted      what the law asked for, before both
    reference   the Reference followed
    mode        'active', 'off', 'disabled', 'waiting' (no state yet) or 'safe'
    send        False: send nothing (safe mode 'brake', or disabled for more than one step)
    fault       why the mode is 'safe' or 'waiting', else ''
    """

    __slots__ = ("t", "efforts", "wanted", "reference", "mode", "law", "send", "fault")

    def __init__(self, t, efforts, wanted, reference, mode, law, send=True, fault=""):
        self.t, self.efforts, self.wanted, self.reference = t, efforts, wanted, reference
        self.mode, self.law, self.send, self.fault = mode, law, send, fault

    @property
    def saturated(self):
        """(n,) bool: joints whose torque the effort limit cut (or whose switch is being shaped)."""
        return self.efforts != self.wanted


class Controller:
    """One arm's controller, without ROS.

    dynamics             Dynamics of the model the laws use
    law                  name of the selected law, or 'off'
    laws                 {name: Law}; default: every law the arm allows, default gains
    effort_limit         (n,), default the arm's; torque_rate_limit [N m/s] shapes the change at a switch, None: steps
    state_timeout, safe_mode   see Supervisor
    velocity_limit, acceleration_limit   of `move_to` and of coming to rest; velocity: the arm's, 2 where
                         it has none
    enabled              False: sends nothing until `enable`

    Time is the stamps of the states. `step` each state; `step(t)` without one from a watchdog. What a person should
    know is appended to `notices` as (level, text), level 'info', 'warning' or 'error', once per event.
    Raises InputError on options that make no sense; `step` itself only on arrays of the wrong shape.
    """

    def __init__(self, dynamics, law="gravity_compensation", laws=None, *, effort_limit=None, torque_rate_limit=2000.0,
                 state_timeout=0.1, safe_mode="gravity_compensation", velocity_limit=None, acceleration_limit=10.0,
                 enabled=True):
        self.dynamics, self.arm, self.n = dynamics, dynamics.arm, dynamics.arm.n
        if laws is None:  # impedance needs to know which tip
            laws = {name: make_law(name, dynamics) for name in LAWS if name != "impedance" or self.arm.tip}
        self.laws = dict(laws)
        self.limits = EffortLimits(self.arm.effort_limit if effort_limit is None else effort_limit, self.n)
        self.handover = Handover(torque_rate_limit, self.n)
        self.supervisor = Supervisor(self.arm, state_timeout, safe_mode)
        if velocity_limit is None:
            velocity_limit = np.where(np.isfinite(self.arm.velocity_limit), self.arm.velocity_limit, 2.0)
        self.velocity_limit, self.acceleration_limit = velocity_limit, acceleration_limit
        self.notices = deque(maxlen=100)
        self._zero = np.zeros(self.n)
        self._zero.setflags(write=False)
        self.enabled = bool(enabled)
        self.law = OFF
        self.reset()
        self.select(law)

    # -- commands ------------------------------------------------------------------------------------------------
    def select(self, name):
        """Switch to the law of that name, or 'off', bumplessly from the next step on."""
        if name != OFF and name not in self.laws:
            raise InputError(f"controller '{name}' is none of {choices([OFF, *self.laws])}")
        missing = "" if name == OFF else self.laws[name].missing()
        if missing:
            raise InputError(f"controller '{name}': {missing}")
        if name == self.law:
            return
        self._note("info", f"controller: {self.law} -> {name}")
        if name == OFF or not self.laws[name].uses_reference:
            self._source = None
        self.law, self._switched = name, True

    def set_law(self, name, law):
        """Put a law (new gains, say) in the place of another; bumpless when it is the one that drives."""
        if not isinstance(law, Law):
            raise InputError(f"law '{name}': {type(law).__name__} is no Law")
        self.laws[name] = law
        self._switched = self._switched or name == self.law

    def enable(self, on):
        """Drive, from the measured state and without an impulse; or stop sending at once, after one zero."""
        if bool(on) != self.enabled:
            self._note("info", "enabled" if on else "disabled")
        self.enabled = bool(on)

    def reset(self):
        """As new: no state, reference, target or half-done switch; selected law and gains stay."""
        self.supervisor.reset()
        self.handover.cancel()
        for law in self.laws.values():
            law.reset()
        self._source = self._reference = None
        self._mode, self._switched, self._next_check = "waiting", False, None
        self._warned = False
        self.last = Output(0.0, self._zero, self._zero, None, "waiting", self.law, send=False,
                           fault="no joint state yet")

    def follow(self, source):
        """Follow a source of references (`sample(t)`, absolute time) from the next step on."""
        self._require_reference()
        self._source = source

    def trajectory(self, names, points, *, stamp=0.0, now=None, allow_partial=False, effort="ignore"):
        """A joint trajectory replaces what is followed (see JointTrajectory), no points: hold; returns the source."""
        self._require_reference()
        now = self.supervisor.time if now is None else now
        if not len(points):
            return self.hold()
        if hasattr(self._source, "release"):
            self._source.release(now)
        source = JointTrajectory(self.arm, names, points, now=now, stamp=stamp, previous=self._source,
                                 allow_partial=allow_partial, effort=effort)
        for warning in source.warnings:
            self._note("warning", f"trajectory: {warning}")
        self._source = source
        return source

    def hold(self):
        """Come to rest from the current reference and stay; forgets the laws' targets. Returns the source."""
        self._require_reference()
        for law in self.laws.values():
            law.reset()
        self._source = Stop(self.reference(), self.acceleration_limit, self.supervisor.time)
        return self._source

    def move_to(self, q):
        """Go to rest at q (n,) from the current reference, within the limits. Returns the source."""
        self._require_reference()
        q = np.asarray(q, float)
        if q.shape != (self.n,) or not np.isfinite(q).all():
            raise InputError(f"target: {q.tolist()} is not one finite position for each of the {self.n} joints")
        self._source = move(self.reference(), q, self.velocity_limit, self.acceleration_limit, self.supervisor.time,
                            self.arm)
        return self._source

    def reference(self, t=None):
        """The Reference at t (default: the last state's time); the measured position where nothing is followed."""
        t = self.supervisor.time if t is None else t
        if self._source is None:
            state = self.supervisor.state
            return None if state is None else Reference(state.q, self._zero, self._zero)
        return self._source.sample(t)

    @property
    def source(self):
        """The source followed, None where nothing is."""
        return self._source

    @property
    def driving(self):
        """True while a law that follows references drives: trajectories and targets are accepted."""
        return self._mode == "active" and self._source is not None

    def _require_reference(self):
        if self.driving:
            return
        if self._mode in ("waiting", "safe"):
            reason = self.last.fault
        elif not self.enabled or self._mode == "disabled":
            reason = "the controller is disabled"
        else:
            reason = f"controller '{self.law}' follows no reference"
        raise InputError(f"reference refused: {reason}")

    # -- running -------------------------------------------------------------------------------------------------
    def step(self, t, state=None, age=0.0):
        """Output at time t [s] for the measured State (or (q, qd)), `age` [s] old on arrival; without a state: the last
        output while the last state still holds, then the safe mode. Whatever comes in, only finite efforts leave."""
        if state is not None:
            state = self._array_state(state)
        fault = self.supervisor.judge(t, state, age)
        if fault:
            return self._safe(t, state, fault)
        if state is None:
            return self.last
        before = self.supervisor.time
        if before is not None and t < before:
            self._note("warning", f"time went back from {before:.3f} s to {t:.3f} s: reference and switches are reset")
            self.reset()
        gap = self.supervisor.accept(t, state, age)
        if not self.enabled:
            return self._idle(t)
        return self._drive(t, state, gap)

    def _drive(self, t, state, gap):
        resumed = self._mode == "safe"
        fresh = self._mode != "active" or (gap is not None and gap > self.supervisor.state_timeout)
        if resumed and gap is not None and gap <= self.supervisor.state_timeout and self._source is not None:
            fresh = False  # a pause or a few bad samples: go on where the reference is
        elif self._mode == "active" and fresh:
            self._note("warning", f"no joint state for {gap:.3f} s: starting anew from the measured state")
        law = self.laws.get(self.law)
        if law is not None and law.uses_reference:
            if fresh or self._source is None:
                law.reset()
                self._source = Stop(Reference(state.q, state.qd, self._zero), self.acceleration_limit, t)
            reference = self._source.sample(t)
        else:
            self._source = None
            reference = Reference(state.q, self._zero, self._zero)
        wanted = self._zero if law is None else law.efforts(t, state, reference)
        feedforward = getattr(self._source, "feedforward", None)
        if feedforward is not None:
            extra = feedforward(t)
            wanted = wanted if extra is None else wanted + extra
        if not finite(wanted):
            return self._safe(t, state, f"controller '{self.law}' gave {wanted.tolist()}")
        if resumed:
            self._note("info", "joint states are good again")
        if fresh or resumed:
            if law is not None:
                self.handover.start(self.limits.clamp(self.dynamics.gravity(state.q)), wanted)
        elif self._switched:
            self.handover.start(self.last.efforts, wanted)
        self._switched = False
        self._mode = "off" if law is None else "active"
        shaped = wanted if self.handover.offset is None else self.handover.shape(wanted, gap or 0.0)
        self._reference = reference
        self.last = Output(t, self.limits.clamp(shaped), wanted, reference, self._mode, self.law)
        if self._next_check is None or t >= self._next_check or fresh:
            self._check_gains(t, state, law)
        return self.last

    def _idle(self, t):
        """Disabled: one zero, then silence."""
        self._source = None
        self.handover.cancel()
        send = self._mode in ("active", "off", "safe")
        self._mode = "disabled"
        self.last = Output(t, self._zero, self._zero, None, "disabled", self.law, send=send)
        return self.last

    def _safe(self, t, state, fault):
        known = self.supervisor.state
        if known is None or not self.enabled:
            mode = "waiting" if self.enabled else "disabled"
            self.last = Output(t, self._zero, self._zero, None, mode, self.law, send=False, fault=fault)
            self._mode = mode
            return self.last
        q = known.q if state is None or not finite(state.q) else state.q
        mode = self.supervisor.safe_mode
        efforts = self._zero
        if mode == "gravity_compensation" and self.law != OFF:
            efforts = self.limits.clamp(self.dynamics.gravity(q))
            efforts = efforts if finite(efforts) else self._zero
        if self._mode != "safe":
            self._note("error", f"{fault}: safe mode ({mode})")
        self.handover.cancel()
        self._mode = "safe"
        self.last = Output(t, efforts, efforts, self._reference, "safe", self.law, send=mode != "brake", fault=fault)
        return self.last

    def _check_gains(self, t, state, law):
        """Once a second: is the loop fast enough for the damping?"""
        self._next_check = t + 1.0
        warning = "" if law is None else self.supervisor.gain_warning(law.damping_rate(state))
        if warning and not self._warned:
            self._note("warning", warning)
        self._warned = bool(warning)

    # -- looking -------------------------------------------------------------------------------------------------
    def terms(self, name=None):
        """TorqueTerms of the selected (or a named) law at the last good state, or None without one or when off. Their
        total is `Output.wanted`: before a switch's shaping and the limits."""
        name = self.law if name is None else name
        state = self.supervisor.state
        if state is None or name not in self.laws:
            return None
        t = self.supervisor.time
        terms = self.laws[name].torques(t, state, self.reference(t))
        extra = getattr(self._source, "feedforward", lambda t: None)(t)
        if extra is not None:
            terms.feedforward = terms.feedforward + extra
        return terms

    def efforts_of(self, name):
        """(n,) of any law at the last good state and reference, clamped but not shaped; None without a state."""
        state = self.supervisor.state
        if state is None:
            return None
        efforts = self.laws[name].efforts(self.supervisor.time, state, self.reference())
        return self.limits.clamp(efforts) if finite(efforts) else None

    def _array_state(self, state):
        q, qd = (state.q, state.qd) if isinstance(state, State) else state
        if type(q) is not np.ndarray or type(qd) is not np.ndarray or q.shape != (self.n,) or qd.shape != (self.n,):
            q, qd = np.asarray(q, float), np.asarray(qd, float)
            if q.shape != (self.n,) or qd.shape != (self.n,):
                raise InputError(f"state: q has shape {q.shape} and qd {qd.shape}, expected ({self.n},)")
        return State(q.copy(), qd.copy())  # the caller may use its arrays again

    def _note(self, level, text):
        self.notices.append((level, text))
