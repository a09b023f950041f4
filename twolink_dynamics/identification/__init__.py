"""Know the arm: from recordings to a physically consistent model with error bars, and the motion to record."""

from .base_parameters import BaseParameters, base_parameters
from .excitation import Excitation, optimise_excitation
from .identify import Payload, identify
from .logs import Log, LogFormat, read_log
from .model import FrictionTerms
from .report import write_all
from .result import Identification
from .signals import bandwidth, prepare

__all__ = [
    "BaseParameters",
    "Excitation",
    "FrictionTerms",
    "Identification",
    "Log",
    "LogFormat",
    "Payload",
    "bandwidth",
    "base_parameters",
    "identify",
    "optimise_excitation",
    "prepare",
    "read_log",
    "write_all",
]
