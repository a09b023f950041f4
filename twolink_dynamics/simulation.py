"""Simulation: a plant stepped in time, with its ledger.

Longer than most files here, because one class holds all of a run's state, so that a reset can be seen to restore all
of it.
"""
from __future__ import annotations

import math
import warnings
from functools import partial

import numpy as np

from . import integrators, modes
from .arm import Arm, frozen
from .errors import InputError, SimulationError, TwolinkWarning
from .events import locate
from .ledger import Ledger
from .modes import OPEN, SLIP
from .plant import Mechanism, Plant
from .trajectory import Trajectory

MAX_SUBSTEPS = 100
MAX_EVENTS = 200  # stretches within one (sub)step
ZERO3 = (0.0, 0.0, 0.0)


class Simulation:
    """Steps a plant with efforts held constant over each dt (zero-order hold).

    plant    Plant or Arm;  dt [s];  method "rk4", "semi_implicit" or "dop853" (adaptive inside each dt)
    q, qd    initial state (n,), zeros when not given; flexible joints start with the springs carrying gravity

    Fixed steps are divided so that the fastest mode of springs and dampers is resolved (|λ| h ≤ 0.4); a plant that
    would need more than 100 sub-steps is refused. Sliding that ends, stops and contacts are located inside the step,
    and all that changes a velocity at once does so by an impulse (modes.py says how).

    Read: t [s], q, qd, theta, thetad ((n,), None when rigid), effort (n,) applied after limits, ledger (Ledger),
    external_wrench, constraint_force (3,), constraint_forces, constraint_effort (n,), contact_force (3,), substeps.
    Raises SimulationError where it cannot go on, and then still holds the last good state; InputError on bad arguments.
    """

    def __init__(self, plant, dt=1e-3, method="rk4", q=None, qd=None):
        self.plant = Plant(plant) if isinstance(plant, Arm) else plant
        if not isinstance(self.plant, Plant):
            raise InputError(f"Simulation needs a Plant or an Arm, not {type(plant).__name__}")
        self.arm = self.plant.arm
        self.n = self.plant.n
        if not (isinstance(dt, (int, float)) and math.isfinite(dt) and dt > 0.0):
            raise InputError(f"dt: {dt!r} must be a positive, finite number of seconds")
        self.dt = float(dt)
        self.method = method
        self._scheme = integrators.scheme(method)
        self._mech = Mechanism(self.plant)
        self._limit = self.arm.effort_limit if self.plant.effort_limits else np.full(self.n, np.inf)
        self._choose_substeps()
        mech = self._mech
        self._kernel = None
        self._compiled = method == "rk4" and mech.rigid and mech.constraints is None and not mech.stribeck
        self._initial = (frozen(np.zeros(self.n) if q is None else q, (self.n,), "q"),
                         frozen(np.zeros(self.n) if qd is None else qd, (self.n,), "qd"))
        self.reset()

    def _choose_substeps(self):
        """Sub-steps per dt from the fastest linear mode; refuses what would need too many."""
        fastest, joint = self._mech.fastest_mode()
        self.substeps = 1
        if self.method != "dop853":
            self.substeps = max(1, math.ceil(fastest * self.dt / integrators.RESOLVED))
        if self.substeps > MAX_SUBSTEPS:
            longest = integrators.RESOLVED * MAX_SUBSTEPS / fastest
            raise SimulationError(f"joint '{joint}': its fastest mode, {fastest:.4g} rad/s, needs {self.substeps} "
                                  f"sub-steps of dt = {self.dt:g} s, more than {MAX_SUBSTEPS}; use "
                                  f"dt ≤ {longest:.2g} s, a softer spring or damper, or method 'dop853'")
        self._h = self.dt / self.substeps

    # -- state -----------------------------------------------------------------------------------------------------
    def reset(self, keep_model=False):
        """Everything as constructed: time, state, motor side, brake, external wrench, ledger, gravity and payload (the
        last two stay with keep_model=True). A run from here equals a fresh one bit for bit."""
        gravity, payload = self._mech.gravity, self._mech.payload
        self._mech.restore()
        if keep_model:
            self._mech.set_gravity(gravity)
            if payload is not None:
                self._mech.set_payload(*payload)
        self._steps = 0
        self._braked = False
        self._sums = np.zeros(6)  # input, external, dissipated, impact, edits, projection
        self.effort = _readonly(np.zeros(self.n))
        self._place(*self._initial)
        self._stored = sum(self._mech.energies(self._x, self._u))

    def _place(self, q, qd):
        """Sets x and u from joint state, after checking it against constraints, stops and contact."""
        mech = self._mech
        if mech.constraints is not None:
            mech.constraints.check(q)
            mech.constraints.check_independent(q, mech.link_mass)
            off = np.abs(mech.constraints.jacobian(q) @ qd).max()
            if off > 1e-6:
                raise SimulationError(f"the given velocity leaves the constraints at {off:.3g} m/s")
        for i in np.flatnonzero((q > mech.upper) | (q < mech.lower)):
            warnings.warn(f"joint '{self.arm.joint_names[i]}' starts at {q[i]:g}, outside its stops "
                          f"{mech.lower[i]:g} to {mech.upper[i]:g}; it can only move inwards", TwolinkWarning,
                          stacklevel=4)
        if mech.contact is not None and mech.contact.gap(q) < -modes.TOUCHING:
            warnings.warn(f"the tip starts {-mech.contact.gap(q):.3g} m inside the contact plane; it can only move out",
                          TwolinkWarning, stacklevel=4)
        if mech.rigid:
            x, u = np.array(q), np.array(qd)
        else:
            theta = mech.flexible.equilibrium(q, mech.dynamics.gravity(q))
            x, u = np.concatenate([q, theta]), np.concatenate([qd, qd])
        self._x, self._u = _readonly(x), _readonly(u)
        self._modes = self._resting = None  # the discrete state; the effort everything rested under, if it did

    def set_state(self, q, qd=None):
        """Puts the arm at q (n,), qd (n,) (zero when not given), motors in equilibrium; enters `edits`."""
        q = frozen(q, (self.n,), "q")
        qd = frozen(np.zeros(self.n) if qd is None else qd, (self.n,), "qd")
        before = sum(self._mech.energies(self._x, self._u))
        self._place(q, qd)
        self._sums[4] += sum(self._mech.energies(self._x, self._u)) - before

    def _edit(self, change, *arguments):
        before = sum(self._mech.energies(self._x, self._u))
        change(*arguments)
        self._sums[4] += sum(self._mech.energies(self._x, self._u)) - before
        self._modes = self._resting = None

    def set_gravity(self, gravity):
        """Gravity (3,) [m/s²] in the root frame from now on; enters `edits`."""
        self._edit(self._mech.set_gravity, gravity)

    def set_payload(self, mass, com=ZERO3, inertia=(ZERO3, ZERO3, ZERO3)):
        """A body at the tip, replacing the last one: mass [kg], com (3,) [m], inertia (3, 3) about the com [kg m²], tip
        axes; mass 0 takes it away. Joint velocities stay; the energy it brings enters `edits`."""
        self._edit(self._mech.set_payload, mass, com, inertia)

    def set_plant(self, plant, initial=None):
        """Another Plant for the same joints from now on (friction, springs, contact, constraints, rotors changed).

        Time, q, q̇, effort, brake, external wrench, gravity and payload stay; constraints are met by the nearest pose
        and velocity, and motors start with the springs carrying gravity unless they were there before. The energy all
        this brings enters `edits`. initial: (n,) pose of later resets (default: as before). Raises InputError for other
        joints, and whatever Plant and Simulation raise; then nothing has changed.
        """
        if not isinstance(plant, Plant) or plant.arm.joint_names != self.arm.joint_names:
            raise InputError(f"set_plant: needs a Plant with the joints {', '.join(self.arm.joint_names)}")
        other = Simulation(plant, self.dt, self.method, q=plant.assemble(self.q))
        old, new, n = self._mech, other._mech, self.n
        if (old.gravity != new.gravity).any():
            new.set_gravity(old.gravity)
        if old.payload is not None:
            new.set_payload(*old.payload)
        new.wrench, q, qd = old.wrench, other.q, np.array(self.qd)
        if new.constraints is not None:
            J = new.constraints.jacobian(q)
            pull = np.linalg.solve(new.link_mass(q), J.T)
            qd -= pull @ np.linalg.lstsq(J @ pull, J @ qd, rcond=1e-9)[0]
        other._place(q, qd)
        if not old.rigid and not new.rigid:
            other._x = _readonly(np.concatenate([q, self.theta]))
            other._u = _readonly(np.concatenate([qd, self.thetad]))
        other._initial = (self._initial[0] if initial is None else frozen(initial, (n,), "initial"), self._initial[1])
        other._steps, other._braked, other.effort = self._steps, self._braked, self.effort
        other._stored, other._sums = self._stored, self._sums.copy()
        other._sums[4] += sum(new.energies(other._x, other._u)) - sum(old.energies(self._x, self._u))
        self.__dict__.update(other.__dict__)

    def set_external_wrench(self, force, torque=ZERO3, frame=None, point=ZERO3, axes=None):
        """Force (3,) [N] and torque (3,) [N m] of the environment on the arm until changed, at `point` (3,) [m] of link
        `frame` (default: the tip's origin), in the axes of link `axes` (default: the root's, constant in space)."""
        self._mech.set_wrench(force, torque, frame, point, axes)
        self._modes = self._resting = None

    def brake(self, engaged=True):
        """Engages or releases the brakes of all drives: an impulse to rest, then a hold of any strength."""
        if engaged and not self._braked:
            after, taken = modes.impact(self._mech, self._x, self._u, braked=True)
            self._u = _readonly(after)
            self._sums[3] += taken
        self._braked = bool(engaged)
        self._modes = self._resting = None

    @property
    def braked(self):
        """Whether the brakes are engaged."""
        return self._braked

    @property
    def t(self):
        """Time since the reset [s]."""
        return self._steps * self.dt

    @property
    def q(self):
        """(n,) joint positions of the links [rad or m], read-only."""
        return self._x if self._mech.rigid else self._x[:self.n]

    @property
    def qd(self):
        """(n,) joint velocities of the links, read-only."""
        return self._u if self._mech.rigid else self._u[:self.n]

    @property
    def theta(self):
        """(n,) motor positions on the link side, None when rigid."""
        return None if self._mech.rigid else self._x[self.n:]

    @property
    def thetad(self):
        """(n,) motor velocities on the link side, None when rigid."""
        return None if self._mech.rigid else self._u[self.n:]

    @property
    def dynamics(self):
        """Dynamics of the plant as it is now (with its gravity and payload)."""
        return self._mech.dynamics

    @property
    def external_wrench(self):
        """(force (3,), torque (3,), frame, point (3,), axes) as set, or None."""
        return self._mech.wrench

    # -- reactions -------------------------------------------------------------------------------------------------
    def _reactions(self):
        mech = self._mech
        settled = modes.settle(mech, self._x, self._u, self.effort, self._braked, self._modes)
        return modes.held_acceleration(mech, self._x, self._u, self.effort, settled)

    @property
    def acceleration(self):
        """(n,) q̈ under the effort and wrench in force now."""
        return self._reactions()[0][:self.n]

    @property
    def constraint_forces(self):
        """{name: (3,) force on the tip [N], root axes; (n,) joint efforts for coupled joints}, now."""
        if self._mech.constraints is None:
            return {}
        return self._mech.constraints.forces(self.q, self._reactions()[3])

    @property
    def constraint_force(self):
        """(3,) sum of the constraints' forces on the tip [N], root axes (without coupled joints), now."""
        mech = self._mech
        total = np.zeros(3)
        if mech.constraints is not None:
            for bound, force in zip(mech.constraints.bound, self.constraint_forces.values()):
                if bound.force is not None:
                    total += force
        return total

    @property
    def constraint_effort(self):
        """(n,) J_cᵀ λ [N m or N], now."""
        if self._mech.constraints is None:
            return np.zeros(self.n)
        return self._reactions()[3] @ self._mech.constraints.jacobian(self.q)

    @property
    def contact_force(self):
        """(3,) force of the plane on the tip [N], root axes, now; zero without contact."""
        contact = self._mech.contact
        if contact is None:
            return np.zeros(3)
        forces = self._reactions()[4]
        return forces @ contact.axes[:len(forces)]

    @property
    def ledger(self):
        """The energy account as it stands (Ledger)."""
        kinetic, potential, elastic = self._mech.energies(self._x, self._u)
        put, external, dissipated, impact, edits, projection = self._sums.tolist()
        balance = (kinetic + potential + elastic - self._stored - put - external + dissipated + impact - edits
                   - projection)
        return Ledger(kinetic, potential, elastic, put, external, dissipated, impact, edits, projection, balance)

    # -- stepping --------------------------------------------------------------------------------------------------
    def limited(self, tau):
        """τ (n,) after the effort limits, each joint on its own; raises SimulationError naming a joint that is not
        finite, InputError on a wrong shape."""
        try:
            tau = np.asarray(tau, float)
        except (TypeError, ValueError):
            raise InputError("effort: not an array of numbers") from None
        if tau.shape != (self.n,):
            raise InputError(f"effort: shape {tau.shape}, expected ({self.n},)")
        if not math.isfinite(tau @ tau):
            for name, value in zip(self.arm.joint_names, tau.tolist()):
                if not math.isfinite(value):
                    raise SimulationError(f"effort of joint '{name}' is {value} at t = {self.t:g} s")
        return np.minimum(np.maximum(tau, -self._limit), self._limit)

    def step(self, tau=None, count=1):
        """Advances count·dt with effort τ (n,) held (None: zero)."""
        effort = _readonly(self.limited(np.zeros(self.n) if tau is None else tau))
        for _ in range(count):
            if self._resting is not None and (effort == self._resting).all():
                self._steps += 1  # everything is locked, and nothing has changed
                continue
            kept = self._x, self._u, self._modes, self._sums.copy(), self.effort
            try:
                self.effort = effort
                self._advance(effort)
            except BaseException as error:
                self._x, self._u, self._modes, self._sums, self.effort = kept
                self._resting = None
                if isinstance(error, np.linalg.LinAlgError):
                    raise SimulationError(f"the equations became singular at t = {self.t:g} s: {error}") from None
                raise
            self._steps += 1

    def _advance(self, effort):
        x, u = self._x, self._u
        self._resting = None
        if self._compiled and self._mech.wrench is None and not self._braked and self._compiled_step(x, u, effort):
            return
        for _ in range(self.substeps):
            x, u = self._substep(x, u, effort, self._h)
        if not (math.isfinite(x @ x) and math.isfinite(u @ u)):
            for what, values in (("position", x), ("velocity", u)):
                for i, value in enumerate(values.tolist()):
                    if not math.isfinite(value) or abs(value) > 1e150:
                        raise SimulationError(f"{what} of {self._mech.name(i)} became {value:g} at t = {self.t:g} s; "
                                              "the state is kept at the last good one")
        x.flags.writeable = u.flags.writeable = False
        self._x, self._u = x, u

    def _compiled_step(self, x, u, effort):
        """One RK4 step by the compiled kernel, where all dry friction keeps sliding (a constant effort then) and
        neither stop nor contact comes into it; else (or where no kernel can be had) False, and nothing is done."""
        mech = self._mech
        if self._kernel is None or self._kernel.dynamics is not mech.dynamics:
            try:
                self._kernel = integrators.RungeKuttaKernel(mech.dynamics, self._h)
            except InputError:
                self._compiled = False
                return False
        tau, sign = effort, None
        if mech.has_dry:
            sign = np.sign(u) * mech.dry
            if np.count_nonzero(sign) < mech.dry_count:
                return False  # a joint at rest: does it stick?
            tau = effort - sign * mech.friction.coulomb
        x1, u1, taken = x, u, 0.0
        for _ in range(self.substeps):
            if not mech.inside(x1) or (mech.contact is not None and mech.contact.gap(x1) <= modes.TOUCHING):
                return False
            x1, u1, lost = self._kernel(x1, u1, tau, mech.friction.viscous)
            if mech.damped:
                taken += lost.sum()
            if sign is not None and (sign * u1 < 0.0).any():
                return False
        if not mech.inside(x1) or not math.isfinite(u1 @ u1):  # not inside either where it is not a number
            return False
        if mech.contact is not None and mech.contact.gap(x1) < 0.0:
            return False
        moved = x1 - x
        self._sums[0] += effort @ moved
        if sign is not None:
            taken += (effort - tau) @ moved
        self._sums[2] += taken
        x1.flags.writeable = u1.flags.writeable = False
        self._x, self._u, self._modes = x1, u1, None
        return True

    def _substep(self, x, u, effort, h):
        """One (sub)step: smooth stretches between events."""
        mech, sums = self._mech, self._sums
        remaining, forced = h, ()
        for k in range(MAX_EVENTS):
            if modes.impact_due(mech, x, u):
                u, taken = modes.impact(mech, x, u, self._braked)
                sums[3] += taken
            now = modes.settle(mech, x, u, effort, self._braked, self._modes, forced)
            self._modes = now
            if now.locked is not None and now.locked.all():
                if not forced:
                    self._resting = effort
                return x, u
            flow = self._flow(effort, now)
            span, end, hit = remaining, self._scheme(flow, x, u, remaining), ()
            watch = self._watch(x, now, end[0])
            if watch is not None:
                span, end, hit = locate(partial(self._scheme, flow, x, u), watch, (x, u), end, remaining)
            x1, u1, lost, pushed = end
            if now.locked is not None:  # sums of zeros already, but this is what "locked" means
                x1[now.locked], u1[now.locked] = x[now.locked], 0.0
            if mech.constraints is not None or now.contact != OPEN:
                x1, u1 = self._project(x1, u1, now)
            sums[0] += effort @ (x1[mech.drive] - x[mech.drive])
            sums[1] += pushed
            sums[2] -= lost
            if mech.wrench is not None and mech.push_is_constant:
                sums[1] += mech.push_work(x[:self.n], x1[:self.n])
            remaining -= span
            x, u = x1, u1
            if not hit:
                return x, u
            u, taken, forced = self._arrive(x, u, now, hit, forced, span <= 1e-9 * h or k >= 20)
            sums[3] += taken
            if remaining <= 1e-12 * h:
                return x, u
        raise SimulationError(f"more than {MAX_EVENTS} events within {h:g} s at t = {self.t:g} s; lower dt")

    def _flow(self, effort, now):
        mech = self._mech
        if now.smooth:
            def flow(x, u):
                f, lost, pushed = mech.force(x, u, effort, now.sign)
                return mech.free_acceleration(x, u, f), lost, pushed
        else:
            def flow(x, u):
                return modes.held_acceleration(mech, x, u, effort, now)[:3]
        return flow

    def _project(self, x, u, now):
        """Drift removed; what that changes in energy is booked."""
        mech = self._mech
        before = sum(mech.energies(x, u))
        x, u = modes.project(mech, x, u, now)
        self._sums[5] += sum(mech.energies(x, u)) - before
        return x, u

    def _watch(self, x0, now, x1):
        """(names, function (x, u) -> values that turn negative at an event) for a stretch that would lead from x0 to
        x1, or None when nothing can happen."""
        mech = self._mech
        n, drive = self.n, mech.drive
        sliding = np.flatnonzero(now.sign) if mech.has_dry else ()
        keys, parts = [], []
        if len(sliding):
            signs = now.sign[sliding]
            keys += [("rest", int(i)) for i in sliding]
            parts.append(lambda x, u: signs * u[drive][sliding])
        if mech.has_stops and not mech.inside(x1):
            upper, lower = np.maximum(mech.upper, x0[:n]), np.minimum(mech.lower, x0[:n])
            keys += [("stop", i) for i in range(n)] * 2
            parts.append(lambda x, u: upper - x[:n])
            parts.append(lambda x, u: x[:n] - lower)
        if mech.contact is not None:
            if now.contact == OPEN:
                floor = min(0.0, mech.contact.gap(x0[:n]))
                keys.append(("touch", 0))
                parts.append(lambda x, u: np.array([mech.contact.gap(x[:n]) - floor]))
            elif now.contact == SLIP and now.direction.any():
                keys.append(("slip", 0))
                parts.append(lambda x, u: np.array([now.direction @ mech.contact.rows(x[:n])[1:] @ u[:n]]))
                if mech.contact.plane.friction > 0.0:
                    keys.append(("jam", 0))  # settled as sticking; nothing is to be done at the event itself
                    parts.append(lambda x, u: np.array([modes.jam_margin(mech, x, now)]))
        if not parts:
            return None
        if len(parts) == 1:
            return keys, parts[0]
        return keys, lambda x, u: np.concatenate([part(x, u) for part in parts])

    def _arrive(self, x, u, now, hit, forced, stuck):
        """What an event does: the coordinate is put exactly on its stop or at rest, by an impulse that leaves what
        sticks in place. With `stuck`, nothing moves between events: what was hit is held for the rest of the step,
        which does no work."""
        mech = self._mech
        offset = mech.m - self.n
        rest = [i + offset for kind, i in hit if kind == "rest"]
        for kind, i in hit:
            for bound in (mech.upper[i], mech.lower[i]) if kind == "stop" else ():
                if abs(x[i] - bound) < 1e-9:
                    x[i] = bound
        taken = 0.0
        if rest:
            u, taken = modes.impact(mech, x, u, self._braked, rest, now.locked)
        if stuck:
            forced = {*forced, *rest, *(i for kind, i in hit if kind == "stop")}
            if any(kind in ("touch", "slip", "jam") for kind, _ in hit):
                forced.add(modes.CONTACT)
        return u, taken, forced

    def run(self, duration, tau=None, every=1, progress=None):
        """Advances round(duration/dt) steps and returns a Trajectory with every `every`-th state.

        tau       None (zero), (n,) held, (N, n) one row per step, or a function (t, q, qd) -> (n,) called at each step
        progress  called with the fraction done, about a hundred times
        """
        if not (math.isfinite(duration) and duration >= 0.0):
            raise InputError(f"duration: {duration!r} must be finite and not negative")
        if not (isinstance(every, int) and every >= 1):
            raise InputError(f"every: {every!r} must be a whole number, at least 1")
        steps = round(duration / self.dt)
        if tau is None or callable(tau):
            rows = None
            held = np.zeros(self.n)
        else:
            held = np.asarray(tau, float)
            rows = held if held.ndim == 2 else None
            if rows is not None and len(rows) < steps:
                raise InputError(f"tau: {len(rows)} rows for {steps} steps")
        samples = steps // every + 1
        t, q, qd, efforts = np.empty(samples), *(np.empty((samples, self.n)) for _ in range(3))
        efforts[0] = self.effort
        mark = max(1, steps // 100)
        for k in range(steps + 1):
            if k % every == 0:
                j = k // every
                t[j], q[j], qd[j] = self.t, self.q, self.qd
            if k == steps:
                break
            self.step(tau(self.t, self.q, self.qd) if callable(tau) else held if rows is None else rows[k])
            if k % every == 0:
                efforts[j] = self.effort
            if progress is not None and (k + 1) % mark == 0:
                progress((k + 1) / steps)
        if steps % every == 0:
            efforts[-1] = self.effort
        return Trajectory(t, q, qd, efforts)


def _readonly(array):
    array.flags.writeable = False
    return array
