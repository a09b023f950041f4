"""Computed torque follows a trajectory; then the arm carries a load that the model does not know."""
import numpy as np

from twolink_dynamics import Dynamics, Simulation, State, load_urdf
from twolink_dynamics.control import ComputedTorque, PointToPoint
from twolink_dynamics.resources import find_urdf

arm = load_urdf(find_urdf("twolink"))
law = ComputedTorque(Dynamics(arm), kp=100.0, kd=20.0)  # [1/s²], [1/s]
move = PointToPoint([0.0, 0.0], [1.0, -0.8], velocity_limit=2.0, acceleration_limit=6.0)  # rad, rad/s, rad/s²

for name, plant in (("exact model", arm), ("0.5 kg unknown", arm.with_payload(0.5))):
    simulation = Simulation(plant, dt=1e-3, q=np.zeros(2))
    worst = 0.0
    while simulation.t < move.duration + 1.0:
        reference = move.sample(simulation.t)
        worst = max(worst, np.abs(reference.q - simulation.q).max())
        simulation.step(law.torques(simulation.t, State(simulation.q, simulation.qd), reference).total)
    print(f"{name:16s} worst error {worst:.1e} rad, at the end {np.abs(reference.q - simulation.q).max():.1e} rad")

# Try next: higher gains, or `law = ComputedTorque(Dynamics(arm.with_payload(0.5)), ...)`.
