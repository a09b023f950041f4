"""The plant: an arm and everything that acts on it, and the forces and energies that follow.

Coordinates of the motion: x (m,) and u = ẋ, which are q (n,) when rigid and (q, θ) with flexible joints, m = 2n. The
motors act on the "drive" coordinates: q when rigid, θ with flexible joints; friction and the brake sit there too.
"""
from __future__ import annotations

import numpy as np

from .arm import Arm, frozen
from .constraints import ConstraintSet
from .contact import Plane
from .dynamics import Dynamics
from .errors import InputError, ModelError
from .friction import Friction


class Plant:
    """What is simulated (immutable):  M(q) q̈ + C q̇ + g + τ_f = τ + Jᵀ f_ext + J_cᵀ λ.

    arm            Arm; its rotor inertias are part of M (of the motors' B with flexible joints)
    friction       Friction; None: what the URDF says
    flexible       FlexibleJoints; None: rigid
    constraints    of constraints.py; contact: a Plane the tip cannot pass, or None
    stops          False: the position limits of the arm are ignored
    effort_limits  False: efforts are not clamped
    Raises InputError where sizes do not fit, ModelError where flexible joints have no rotor inertia or the arm is
    coupled to its rotors, and what the constraints raise.
    """

    def __init__(self, arm, *, friction=None, flexible=None, constraints=(), contact=None, stops=True,
                 effort_limits=True):
        if not isinstance(arm, Arm):
            raise InputError(f"Plant needs an Arm (load_urdf gives one), not {type(arm).__name__}")
        self.arm = arm
        self.n = arm.n
        self.friction = Friction.from_arm(arm) if friction is None else friction
        if self.friction.n != self.n:
            if self.friction.n != 1:
                raise InputError(f"friction: {self.friction.n} values for {self.n} joints")
            one = self.friction
            speed = one.stribeck_velocity
            self.friction = Friction(np.full(self.n, one.coulomb[0]), np.full(self.n, one.viscous[0]),
                                     np.full(self.n, one.static[0]),
                                     None if speed is None else np.full(self.n, speed[0]))
        self.flexible = None if flexible is None else flexible.spread(self.n)
        self.constraints = tuple(constraints)
        if contact is not None and not isinstance(contact, Plane):
            raise InputError(f"contact must be a Plane, not {type(contact).__name__}")
        self.contact = contact
        self.stops = bool(stops)
        self.effort_limits = bool(effort_limits)
        if self.flexible is not None:
            if arm.rotor_coupling:
                raise ModelError("flexible joints with the full rotor coupling are not modelled; use the diagonal one")
            inertia = arm.gear_ratio**2 * arm.rotor_inertia
            if (inertia <= 0.0).any():
                name = arm.joint_names[int(np.argmin(inertia))]
                raise ModelError(f"joint '{name}': a flexible joint needs a rotor inertia, gr² Ir is 0 kg m²")
        Mechanism(self)  # everything that can be refused is refused here

    def assemble(self, q):
        """The pose (n,) nearest to q (in the mass metric) that meets the constraints; raises SimulationError if none
        is found from there."""
        mechanism = Mechanism(self)
        q = frozen(q, (self.n,), "q")
        if not self.constraints:
            return np.array(q)
        return mechanism.constraints.assemble(np.array(q), mechanism.link_mass)


class Mechanism:
    """The live equations of a Plant: gravity, payload and external wrench may change while it runs.

    n, m, drive   numbers of joints and of coordinates; the slice of the drive coordinates in x
    """

    def __init__(self, plant):
        self.plant = plant
        self.arm = plant.arm
        self.n = plant.n
        self.flexible = plant.flexible
        self.rigid = plant.flexible is None
        self.m = self.n if self.rigid else 2 * self.n
        self.drive = slice(self.m - self.n, self.m)
        friction = plant.friction
        self.friction = friction
        self.damped = bool(friction.viscous.any())
        self.dry = friction.static > 0.0  # joints that can stick
        self.dry_count = int(np.count_nonzero(self.dry))
        self.has_dry = self.dry_count > 0
        self.stribeck = friction.stribeck_velocity is not None and bool((friction.static > friction.coulomb).any())
        self.no_sign = np.zeros(self.n)
        self.lower = self.arm.lower if plant.stops else np.full(self.n, -np.inf)
        self.upper = self.arm.upper if plant.stops else np.full(self.n, np.inf)
        self.has_stops = bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any())
        self._bounds = list(zip(self.lower.tolist(), self.upper.tolist()))
        self.motor_inertia = self.arm.gear_ratio**2 * self.arm.rotor_inertia
        self._base = self.arm if self.rigid else self.arm.with_joints(rotor_inertia=0.0)
        self._own = Dynamics(self._base)
        self._live = None  # made when gravity or payload first change
        self.restore()
        self.constraints = ConstraintSet(self._own, plant.constraints) if plant.constraints else None
        self.contact = plant.contact.bind(self._own) if plant.contact is not None else None

    # -- live changes ----------------------------------------------------------------------------------------------
    def restore(self):
        """Back to the plant's own gravity and payload, no external wrench."""
        self.gravity = self._base.gravity
        self.payload = None
        self.wrench = None
        self.dynamics = self._own

    def set_gravity(self, gravity):
        """Gravity (3,) [m/s²], root frame."""
        gravity = frozen(gravity, (3,), "gravity")
        self._run_live().set_gravity(gravity)
        self.gravity = gravity

    def set_payload(self, mass, com, inertia):
        """The tip's payload, in place of the last one."""
        self._run_live().set_payload(mass, com, inertia)
        self.payload = (mass, com, inertia)

    def _run_live(self):
        """The Dynamics whose gravity and payload can change, from now on in use."""
        if self._live is None:
            self._live = Dynamics(self._base, live=True)
        if self.dynamics is not self._live:
            self._live.set_gravity(self.gravity)
            self._live.set_payload(*(self.payload or (0.0,)))
            self.dynamics = self._live
        return self._live

    def set_wrench(self, force, torque, frame, point, axes):
        """See Simulation.set_external_wrench."""
        force, torque = frozen(force, (3,), "external force"), frozen(torque, (3,), "external torque")
        point = frozen(point, (3,), "external wrench's point")
        if not force.any() and not torque.any():
            self.wrench = None
            return
        frame = self.arm.frame(frame).name
        if axes is not None:
            axes = self.arm.frame(axes).name
        self.wrench = (force, torque, frame, point, axes)

    # -- forces ----------------------------------------------------------------------------------------------------
    def push(self, q):
        """(n,) Jᵀ f_ext of the external wrench at pose q."""
        force, torque, frame, point, axes = self.wrench
        if axes is not None:
            rotation = self.dynamics.tip_pose(q, axes)[0]
            force, torque = rotation @ force, rotation @ torque
        J = self.dynamics.jacobian(q) if frame == self.arm.tip else self.dynamics.jacobian(q, frame)
        if point.any():
            torque = torque + np.cross(self.dynamics.tip_pose(q, frame)[0] @ point, force)
        return force @ J[:3] + torque @ J[3:]

    @property
    def push_is_constant(self):
        """Whether the external wrench is one constant force in root axes, whose work is fᵀΔx."""
        return self.wrench[4] is None and not self.wrench[1].any()

    def push_work(self, q0, q1):
        """fᵀΔx [J] of a constant force while its point moves from pose q0 to q1."""
        force, _, frame, point, _ = self.wrench
        (R0, p0), (R1, p1) = self.dynamics.tip_pose(q0, frame), self.dynamics.tip_pose(q1, frame)
        return float(force @ (p1 - p0 + (R1 - R0) @ point))

    def force(self, x, u, effort, sign):
        """(f, lost, pushed), each (m,) or None: all generalised forces but the arm's own bias and the reactions;
        `sign` (n,) is the direction each joint slides in, 0 where it sticks or has no dry friction."""
        n = self.n
        lost = pushed = None
        if self.rigid:
            f = effort
            if self.damped:
                lost = -self.friction.viscous * u
            if self.has_dry:
                slide = sign * self.friction.dry(u)
                lost = -slide if lost is None else lost - slide
            if lost is not None:
                f = f + lost
        else:
            q, theta, rate = x[:n], x[n:], u[n:] - u[:n]
            damper = self.flexible.damping * rate
            lost = np.concatenate([damper, -damper - self.friction.viscous * u[n:]
                                   - sign * self.friction.dry(u[n:])])
            spring = self.flexible.stiffness * (theta - q)
            f = lost + np.concatenate([spring, effort - spring])
        if self.wrench is not None:
            push = self.push(x[:n])
            if not self.rigid:
                push = np.concatenate([push, np.zeros(n)])
            f = f + push
            if not self.push_is_constant:
                pushed = push
        return f, lost, pushed

    def free_acceleration(self, x, u, f):
        """A⁻¹ (f − bias) (m,) where nothing holds."""
        n = self.n
        if self.rigid:
            return self.dynamics.forward_dynamics(x, u, f)
        return np.concatenate([self.dynamics.forward_dynamics(x[:n], u[:n], f[:n]), f[n:] / self.motor_inertia])

    def link_mass(self, q):
        """M(q) (n, n) of the links (with the rotors when rigid)."""
        return self.dynamics.mass_matrix(q)

    def mass(self, x):
        """A(x) (m, m): M, or M and B on the diagonal."""
        M = self.dynamics.mass_matrix(x[:self.n])
        if self.rigid:
            return M
        A = np.zeros((self.m, self.m))
        A[:self.n, :self.n] = M
        A[self.n:, self.n:] = np.diag(self.motor_inertia)
        return A

    def bias(self, x, u):
        """C q̇ + g (m,), zero for the motors."""
        h = self.dynamics.bias(x[:self.n], u[:self.n])
        return h if self.rigid else np.concatenate([h, np.zeros(self.n)])

    def wide(self, rows):
        """Rows (k, n) over the joints as rows (k, m) over the coordinates."""
        return rows if self.rigid else np.concatenate([rows, np.zeros_like(rows)], axis=1)

    def energies(self, x, u):
        """(kinetic, potential, elastic) [J]."""
        n = self.n
        kinetic, potential = self.dynamics.energy(x[:n], u[:n])
        if self.rigid:
            return float(kinetic), float(potential), 0.0
        return (float(kinetic) + 0.5 * float(u[n:] @ (self.motor_inertia * u[n:])), float(potential),
                self.flexible.energy(x[:n], x[n:]))

    def inside(self, x):
        """Whether every joint is strictly between its stops."""
        for value, (low, high) in zip(x.tolist(), self._bounds):
            if not low < value < high:
                return False
        return True

    # -- how fast is it ----------------------------------------------------------------------------------------------
    def fastest_mode(self):
        """(|λ| [1/s], joint name): the largest eigenvalue of the springs', dampers' and viscous friction's linear
        motion, u̇ = A⁻¹(−K x − D u), over 24 fixed pseudo-random poses, and the joint that moves most in it."""
        n, m = self.n, self.m
        if self.rigid and not self.damped:
            return 0.0, ""
        D = np.zeros((m, m))
        D[self.drive, self.drive] = np.diag(self.friction.viscous)
        K = np.zeros((m, m))
        if not self.rigid:
            for matrix, values in ((K, self.flexible.stiffness), (D, self.flexible.damping)):
                block = np.diag(values)
                matrix += np.block([[block, -block], [-block, block]])
        fastest, where = 0.0, 0
        for q in np.random.default_rng(24).uniform(-np.pi, np.pi, (24, n)):
            A = self.mass(np.concatenate([q, q])[:m])
            system = np.block([[np.zeros((m, m)), np.eye(m)], [-np.linalg.solve(A, K), -np.linalg.solve(A, D)]])
            values, vectors = np.linalg.eig(system)
            k = int(np.argmax(np.abs(values)))
            if np.abs(values[k]) > fastest:
                fastest, where = float(np.abs(values[k])), int(np.argmax(np.abs(vectors[m:, k]))) % n
        return fastest, self.arm.joint_names[where]

    def name(self, i):
        """What coordinate i is called in messages."""
        joint = self.arm.joint_names[i % self.n]
        return f"joint '{joint}'" if i < self.n else f"the motor of joint '{joint}'"
