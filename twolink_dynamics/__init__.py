"""Lagrangian dynamics, control and simulation of robot arms described by a URDF."""
import importlib

from .arm import Arm, Joint, Link, Reference, State
from .dynamics import Dynamics
from .errors import InputError, ModelError, SimulationError, TwolinkError, TwolinkWarning, UrdfError
from .urdf import load_urdf

__version__ = "0.1.0"
_LATER = {"Plant": "plant", "Simulation": "simulation", "Trajectory": "trajectory", "simulate_batch": "batch"}
__all__ = ["Arm", "Dynamics", "InputError", "Joint", "Link", "ModelError", "Reference", "SimulationError", "State",
           "TwolinkError", "TwolinkWarning", "UrdfError", "load_urdf", *_LATER]


def __getattr__(name):
    """Imports what a controller does not need when it is first asked for: a node starts sooner."""
    if name in _LATER:
        return getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
