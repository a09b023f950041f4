"""Let the arm fall, with and without friction, and see where the energy goes."""
import numpy as np

from twolink_dynamics import Plant, Simulation, load_urdf
from twolink_dynamics.friction import Friction
from twolink_dynamics.resources import find_urdf

arm = load_urdf(find_urdf("twolink"))
horizontal = np.array([0.0, 0.5])  # [rad]

for name, friction in (("no friction", Friction(coulomb=[0.0, 0.0], viscous=[0.0, 0.0])),
                       ("dry and viscous", Friction(coulomb=[1.0, 0.4], viscous=[0.3, 0.1]))):  # [N m], [N m s/rad]
    simulation = Simulation(Plant(arm, friction=friction, stops=False), dt=1e-3, q=horizontal)
    simulation.run(3.0)  # seconds, no motor torque
    ledger = simulation.ledger
    print(f"{name:16s} q = {simulation.q.round(3)} rad   kinetic {ledger.kinetic:6.2f} J   potential "
          f"{ledger.potential:7.2f} J   dissipated {ledger.dissipated:6.2f} J   left over {ledger.balance:+.1e} J")

# Try next: `method="semi_implicit"` above, and watch what is left over grow.
