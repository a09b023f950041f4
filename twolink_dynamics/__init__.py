"""Lagrangian dynamics, control and simulation of robot arms described by a URDF."""
from .arm import Arm, Joint, Link, Reference, State
from .dynamics import Dynamics
from .errors import InputError, ModelError, SimulationError, TwolinkError, TwolinkWarning, UrdfError
from .urdf import load_urdf

__version__ = "0.1.0"
__all__ = ["Arm", "Dynamics", "InputError", "Joint", "Link", "ModelError", "Reference", "SimulationError", "State",
           "TwolinkError", "TwolinkWarning", "UrdfError", "load_urdf"]
