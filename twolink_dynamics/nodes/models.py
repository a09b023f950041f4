"""From checked parameter values to the library's objects; no ROS here."""
from __future__ import annotations

import numpy as np

from ..errors import InputError
from .conversion import symmetric_from_six


def payload(values):
    """(mass [kg], com (3,) [m], inertia (3, 3) [kg m²]) of the payload parameters."""
    return (values["payload.mass"], np.array(values["payload.com"]),
            symmetric_from_six(values["payload.inertia"]))


def outfitted(arm, p):
    """The arm with the limits and rotors of the parameters."""
    fields = {"effort_limit": "effort_limit", "velocity_limit": "velocity_limit", "rotor_inertia": "rotor.inertia",
              "gear_ratio": "rotor.gear_ratio"}
    replaced = {field: p.per_joint(name) for field, name in fields.items() if p[name]}
    if replaced or p["rotor.coupling"]:
        return arm.with_joints(rotor_coupling=p["rotor.coupling"], **replaced)
    return arm


def build_plant(arm, parameters, q=None):
    """The Plant that the simulator's parameters describe; what a constraint leaves open is as at pose q (n,), by
    default the start."""
    from ..plant import Plant
    p = parameters
    return Plant(arm, friction=_friction(arm, p), flexible=_flexible(p),
                 constraints=_constraints(arm, p, start_positions(arm, p) if q is None else q),
                 contact=_contact(p), stops=p["stops"], effort_limits=p["effort_limits"])


def build_simulation(arm, parameters):
    """The Simulation that the simulator's parameters describe."""
    from ..simulation import Simulation
    p = parameters
    plant = build_plant(arm, p)
    sim = Simulation(plant, dt=p["dt"], method=p["integrator"], q=plant.assemble(start_positions(arm, p)),
                     qd=np.array(p.per_joint("initial_velocities", [0.0] * arm.n)))
    if p["payload.mass"] > 0.0:
        sim.set_payload(*payload(p.values))
    return sim


def start_positions(arm, parameters):
    """(n,) initial_positions, or 0 moved inside the stops."""
    q = np.array(parameters.per_joint("initial_positions", np.clip(0.0, arm.lower, arm.upper)), float)
    outside = (q < arm.lower) | (q > arm.upper)
    if outside.any():
        i = int(np.argmax(outside))
        raise InputError(f"parameter 'initial_positions': joint '{arm.joint_names[i]}' at {q[i]:g} is outside its "
                         f"limits {arm.lower[i]:g} to {arm.upper[i]:g}")
    return q


def _friction(arm, p):
    from ..friction import Friction
    names = ("coulomb", "viscous", "static", "stribeck_velocity")
    given = {name: p.per_joint(f"friction.{name}") for name in names}
    if all(value is None for value in given.values()):
        return None
    base = Friction.from_arm(arm)
    for name in ("coulomb", "viscous"):
        given[name] = getattr(base, name) if given[name] is None else given[name]
    return Friction(**given)


def _flexible(p):
    from ..flexible import FlexibleJoints
    stiffness = p.per_joint("flexible.stiffness")
    if stiffness is None:
        return None
    return FlexibleJoints(np.array(stiffness), np.array(p.per_joint("flexible.damping", [0.0] * len(stiffness))))


def _contact(p):
    from ..contact import Plane
    if not p["contact.enabled"]:
        return None
    return Plane(np.array(p["contact.point"]), np.array(p["contact.normal"]), p["contact.friction"])


def _constraints(arm, p, q):
    """The constraint the parameters describe, () without one; what is not given is as at pose q (n,)."""
    kind = p["constraint.kind"]
    if kind == "none":
        return ()
    from .. import constraints
    from ..dynamics import Dynamics
    if kind == "coincident_tips":
        tips = p["constraint.tips"] or list(arm.tips)
        if len(tips) != 2:
            raise InputError(f"parameter 'constraint.tips': {tips} must name two links")
        return (constraints.CoincidentTips(*tips),)
    if kind == "coupled_joints":
        joints = p["constraint.joints"]
        if len(joints) != 2:
            raise InputError(f"parameter 'constraint.joints': {joints} must name the following joint and the leading "
                          f"one")
        follower, leader = (q[arm.index(name)] for name in joints)
        return (constraints.CoupledJoints(*joints, p["constraint.ratio"], follower - p["constraint.ratio"] * leader),)
    tip = Dynamics(arm).tip_pose(q)[1]
    point = np.array(p["constraint.point"]) if p["constraint.point"] else tip
    direction = np.array(p["constraint.direction"])
    if kind == "tip_on_line":
        return (constraints.TipOnLine(point, direction),)
    if kind == "tip_on_plane":
        return (constraints.TipOnPlane(point, direction),)
    if kind == "tip_pinned":
        return (constraints.TipPinned(point),)
    return (constraints.TipAtDistance(point, p["constraint.distance"] or float(np.linalg.norm(tip - point))),)


def build_sensors(arm, parameters):
    """Sensors, or None where they are perfect."""
    fields = ("position_noise", "velocity_noise", "position_quantum", "velocity_quantum", "delay", "drop")
    given = {name: parameters[f"sensors.{name}"] for name in fields}
    if not any(given.values()):
        return None
    from ..sensors import Sensors
    return Sensors(**given, seed=parameters["seed"])


def build_laws(arm, dynamics, values, residual=None):
    """{name: law} of every law this arm can run, from parameter values."""
    from ..control import ComputedTorque, FrictionCompensation, GravityCompensation, Impedance, PDGravity

    def joints(name, default):
        return np.array(np.broadcast_to(values[name] if values[name] else default, (arm.n,)))

    extras = {"residual": residual, "friction": None}
    if values["friction_compensation"]:
        extras["friction"] = FrictionCompensation(joints("friction.coulomb", arm.coulomb),
                                                  joints("friction.viscous", arm.damping), n=arm.n)
    kp, kd = joints("kp", 0.0), joints("kd", 0.0)
    inertia = largest_inertia(arm, dynamics) if not (values["pd.kp"] and values["pd.kd"]) else 0.0
    laws = [GravityCompensation(dynamics, **extras), ComputedTorque(dynamics, kp, kd, **extras),
            PDGravity(dynamics, joints("pd.kp", kp * inertia), joints("pd.kd", kd * inertia), **extras)]
    if arm.tip is not None:
        damping = np.array(values["damping"]) if values["damping"] else None
        laws.append(Impedance(dynamics, np.array(values["stiffness"]), damping,
                              None if damping is not None else values["damping_ratio"], **extras))
    return {law.name: law for law in laws}


def largest_inertia(arm, dynamics):
    """(n,) largest diagonal of M over a few poses inside the limits [kg m²]: always the same ones, spread by the
    fractional parts of k πⁱ (numpy.random is slow to import)."""
    low, high = np.maximum(arm.lower, -np.pi), np.minimum(arm.upper, np.pi)
    spread = np.modf(np.outer(np.arange(1, 33), np.pi ** np.arange(1, arm.n + 1)))[0]
    return np.max([np.diag(dynamics.mass_matrix(q)) for q in low + (high - low) * spread], axis=0)
