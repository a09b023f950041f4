"""A thousand arms at once: how far do small differences of the start spread in a free fall?"""
import numpy as np

from twolink_dynamics import load_urdf, simulate_batch
from twolink_dynamics.resources import find_urdf

arm = load_urdf(find_urdf("twolink"))
random = np.random.default_rng(0)
start = np.array([0.0, 0.5]) + random.normal(0.0, 1e-3, (1000, 2))  # [rad]

result = simulate_batch(arm, start, np.zeros((1000, 2)), np.zeros(2), dt=1e-3, steps=3000, every=500)
for t, q in zip(result.t, np.moveaxis(result.q, -2, 0)):
    print(f"t = {t:4.1f} s   spread of q {q.std(axis=0)[0]:.1e} {q.std(axis=0)[1]:.1e} rad")

# Try next: your own URDF, load_urdf("my_arm.urdf"), with as many columns as it has joints.
