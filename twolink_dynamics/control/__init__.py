"""Control laws, references, limits and supervision; usable without ROS.

    law = ComputedTorque(Dynamics(arm), kp=100.0, kd=20.0)
    tau = law.torques(t, State(q, qd), reference).total
"""
from .computed_torque import ComputedTorque
from .controller import Controller, Output
from .friction_compensation import FrictionCompensation
from .goal import GoalTolerances, TrajectoryGoal
from .gravity import GravityCompensation
from .impedance import Impedance
from .law import Law, TorqueTerms
from .laws import LAWS, make_law
from .limits import EffortLimits, EffortToCommand, Handover
from .pd import PDGravity
from .reference import (
                        Circle,
                        FigureEight,
                        Hold,
                        JointTrajectory,
                        Line,
                        PointToPoint,
                        Sequence,
                        SineSweep,
                        Stop,
                        TrajectoryPoint,
)
from .supervision import SAFE_MODES, Supervisor

__all__ = ["Circle", "ComputedTorque", "Controller", "EffortLimits", "EffortToCommand", "FigureEight",
           "FrictionCompensation", "GoalTolerances", "GravityCompensation", "Handover", "Hold", "Impedance",
           "JointTrajectory", "LAWS", "Law", "Line", "Output", "PDGravity", "PointToPoint", "SAFE_MODES", "Sequence",
           "SineSweep", "Stop", "Supervisor", "TorqueTerms", "TrajectoryGoal", "TrajectoryPoint", "make_law"]
