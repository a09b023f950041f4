"""Where experiments run: anything that can follow a motion and say what it measured, with the arm's limits guarded."""
from __future__ import annotations

import numpy as np

from ..arm import State
from ..control.point_to_point import PointToPoint
from ..dynamics import Dynamics
from ..errors import TwolinkError, choices
from ..simulation import Simulation
from ..trajectory import Trajectory

BANDWIDTH = 25.0  # [rad/s] of the position loop on an effort bench: 4 Hz, slow enough for 200 Hz of state
SATURATED = 0.1  # [s] a joint may want more effort than it has
LOST = 0.5  # [rad or m] between reference and arm: it does not follow, whatever the reason
APPROACH_SPEED = {False: 0.6, True: 0.1}  # [rad/s; m/s for prismatic joints] between experiments, at most
APPROACH_ACCELERATION = {False: 2.0, True: 0.4}


class BenchStopped(TwolinkError, RuntimeError):
    """An experiment was ended to protect the arm; the message says which joint and which limit."""


class Guard:
    """Raises BenchStopped when a joint leaves its position or velocity limits, wants more than its effort limit for
    longer than SATURATED (a late message may ask for that once), or does not follow. One guard per motion."""

    def __init__(self, arm, lost=LOST):
        self.arm, self.lost = arm, lost
        self._since = np.full(arm.n, np.inf)  # when the effort was first wanted that is beyond its limit since

    def check(self, t, q, qd, effort, reference):
        """The effort (n,) after its limits, for a state and reference position (n,) and the effort wanted."""
        arm = self.arm
        for what, value, low, high in (
                ("position", q, arm.lower, arm.upper), ("velocity", qd, -arm.velocity_limit, arm.velocity_limit),
                ("tracking error", arm.error(reference, q), np.full(arm.n, -self.lost), np.full(arm.n, self.lost))):
            self._within(t, what, value, low, high, (value >= low) & (value <= high))
        low, high = -arm.effort_limit, arm.effort_limit
        self._since = np.where((effort >= low) & (effort <= high), np.inf, np.minimum(self._since, t))
        self._within(t, "effort", effort, low, high, (t - self._since <= SATURATED) & np.isfinite(effort))
        return np.minimum(np.maximum(effort, low), high)

    def _within(self, t, what, value, low, high, good):
        if not good.all():  # NaN is not good
            i = int(np.argmin(good))
            raise BenchStopped(f"stopped at {t:.2f} s: {what} of joint '{self.arm.joint_names[i]}' is {value[i]:.4g}, "
                               f"allowed {low[i]:.4g} to {high[i]:.4g}")


class Bench:
    """What an experiment needs. `arm` is the nominal model: names, limits, and whatever a bench controls with."""

    def __init__(self, arm):
        self.arm = arm

    def state(self):
        """(t [s], q (n,), qd (n,)) as measured now."""
        raise NotImplementedError

    def follow(self, motion, progress=None):
        """Moves along `motion` (sample(t) -> Reference, duration) and returns the Trajectory measured: τ[k] is the
        effort applied from t[k] on. `progress(share)` is called now and then. Raises BenchStopped."""
        raise NotImplementedError

    def approach(self, q):
        """Slowly to rest at q (n,)."""
        now = self.state()[1]
        kinds = self.arm.prismatic.tolist()
        speed = np.minimum([APPROACH_SPEED[kind] for kind in kinds], 0.3 * self.arm.velocity_limit)
        acceleration = [APPROACH_ACCELERATION[kind] for kind in kinds]
        way = PointToPoint(now, q, speed, acceleration, profile="quintic", arm=self.arm)
        if way.duration > 0.0:
            self.follow(way)


class EffortBench(Bench):
    """A bench that commands efforts: computed torque with the nominal model, one command for each measured state.

    M(q) (q̈_r + 2ω ė + ω² e) + C q̇ + g + friction of the reference's velocity. How well it controls does not enter the
    verdicts (they compare measured with predicted efforts), it only has to follow."""

    def __init__(self, arm, bandwidth=BANDWIDTH):
        super().__init__(arm)
        self.dynamics = Dynamics(arm)
        self.kp, self.kd = bandwidth**2, 2.0 * bandwidth

    def exchange(self, effort):
        """Commands the effort (n,) and waits for the next measurement: (t, q, qd, applied effort since the last)."""
        raise NotImplementedError

    def effort(self, state, reference):
        """The command (n,) for a State and a Reference."""
        e, ed = self.arm.error(reference.q, state.q), reference.qd - state.qd
        return self.dynamics.inverse_dynamics(state.q, state.qd, reference.qdd + self.kd * ed + self.kp * e)

    def follow(self, motion, progress=None):
        t, q, qd = self.state()
        start, rows, said, guard = t, [], 0.0, Guard(self.arm)
        try:
            if np.abs(self.arm.error(motion.sample(0.0).q, q)).max() > 0.02:
                self.approach(motion.sample(0.0).q)
                t, q, qd = self.state()
                start = t
            while t - start < motion.duration:
                reference = motion.sample(t - start)
                effort = guard.check(t - start, q, qd, self.effort(State(q, qd), reference), reference.q)
                rows.append((t - start, *q.tolist(), *qd.tolist()))
                t, q, qd, applied = self.exchange(effort)
                rows[-1] += tuple(applied.tolist())
                if progress is not None and t - start - said > 0.5:
                    said = t - start
                    progress(min(said / motion.duration, 1.0))
        except (BenchStopped, KeyboardInterrupt):
            self.stop()
            raise
        n = self.arm.n
        table = np.array(rows)
        return Trajectory(table[:, 0], *np.split(table[:, 1:], (n, 2 * n), axis=1))

    def stop(self):
        """Brings the arm to rest without a reference: gravity and damping for at most a second, unguarded."""
        t, q, qd = self.state()
        end = t + 1.0
        while t < end and np.isfinite(q).all() and np.abs(qd).max() > 0.02:
            effort = self.dynamics.inverse_dynamics(q, np.zeros_like(q), -self.kd * qd)
            t, q, qd, _ = self.exchange(np.clip(effort, -self.arm.effort_limit, self.arm.effort_limit))


class SimulationBench(EffortBench):
    """A simulated arm.

    plant     Plant or Arm: what is simulated;  arm: the nominal model, the plant's own when None
    sensors   Sensors or None;  effort_noise [N m or N] σ of the measured effort
    rate      [Hz] of commands and measurements; the simulation steps `steps` times in between
    """

    def __init__(self, plant, arm=None, *, q=None, sensors=None, effort_noise=0.0, rate=500.0, steps=1, seed=0,
                 bandwidth=BANDWIDTH):
        self.simulation = Simulation(plant, dt=1.0 / (rate * steps), q=q)
        super().__init__(self.simulation.arm if arm is None else arm, bandwidth)
        if tuple(self.arm.joint_names) != tuple(self.simulation.arm.joint_names):
            raise BenchStopped(f"the plant's joints are {choices(self.simulation.arm.joint_names)}, "
                               f"the model's {choices(self.arm.joint_names)}")
        self.sensors, self.steps = sensors, steps
        self.effort_noise, self._random = effort_noise, np.random.default_rng(seed)
        self._last = (0.0, np.array(self.simulation.q), np.array(self.simulation.qd))

    def state(self):
        return self._last

    def exchange(self, effort):
        sim = self.simulation
        sim.step(effort, self.steps)
        applied = sim.effort + self.effort_noise * self._random.standard_normal(sim.n)
        if self.sensors is None:
            self._last = (sim.t, np.array(sim.q), np.array(sim.qd))
        else:
            measured = self.sensors.measure(sim.t, sim.q, sim.qd)
            if measured is not None:
                self._last = (sim.t, measured.q, measured.qd)
            else:
                self._last = (sim.t, *self._last[1:])
        return (*self._last, applied)
