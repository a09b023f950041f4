"""Lagrangian dynamics, control and simulation of robot arms described by a URDF."""
from .arm import Arm, Joint, Link, Reference, State
from .batch import simulate_batch
from .dynamics import Dynamics
from .errors import InputError, ModelError, SimulationError, TwolinkError, TwolinkWarning, UrdfError
from .plant import Plant
from .simulation import Simulation
from .trajectory import Trajectory
from .urdf import load_urdf

__version__ = "0.1.0"
__all__ = ["Arm", "Dynamics", "InputError", "Joint", "Link", "ModelError", "Plant", "Reference", "Simulation",
           "SimulationError", "State", "Trajectory", "TwolinkError", "TwolinkWarning", "UrdfError", "load_urdf",
           "simulate_batch"]
