"""The worked state of a lecture: what torque holds, turns and bends the shipped arm, and why."""
import numpy as np

from twolink_dynamics import Dynamics, load_urdf
from twolink_dynamics.resources import find_urdf

arm = load_urdf(find_urdf("twolink"))
dynamics = Dynamics(arm)

q = np.radians([30.0, 45.0])      # [rad] joint 1 from the horizontal, joint 2 from link 1
qd = np.array([1.0, -0.5])        # [rad/s]
qdd = np.array([2.0, 1.0])        # [rad/s²]

inertia = dynamics.mass_matrix(q) @ qdd
coriolis = dynamics.coriolis_matrix(q, qd) @ qd
gravity = dynamics.gravity(q)
total = dynamics.inverse_dynamics(q, qd, qdd)
for name, torque in (("M q̈", inertia), ("C q̇", coriolis), ("g", gravity), ("τ", total)):
    print(f"{name:5s} {torque[0]:8.4f} {torque[1]:8.4f} N m")

# Try next: a 1 kg payload at the tip.
print("with 1 kg at the tip:", Dynamics(arm.with_payload(1.0)).inverse_dynamics(q, qd, qdd).round(3), "N m")
