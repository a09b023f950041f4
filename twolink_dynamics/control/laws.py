"""The laws by name, for parameters and menus."""
from __future__ import annotations

from ..errors import InputError, choices
from .computed_torque import ComputedTorque
from .gravity import GravityCompensation
from .impedance import Impedance
from .pd import PDGravity

LAWS = {law.name: law for law in (GravityCompensation, ComputedTorque, PDGravity, Impedance)}


def make_law(name, dynamics, **gains):
    """The law of that name (`gravity_compensation`, `computed_torque`, `pd_gravity`, `impedance`) with its gains as
    keyword arguments; raises InputError listing the names, or the gains the law knows."""
    if name not in LAWS:
        raise InputError(f"no control law '{name}'; the laws are {choices(LAWS)}")
    try:
        return LAWS[name](dynamics, **gains)
    except TypeError as error:
        unknown = str(error).partition("argument ")[2].strip("'") or str(error)
        raise InputError(f"control law '{name}' has no gain '{unknown}'") from None
