"""How long one residual torque takes: python benchmarks/residual.py [--repeat N]; the best of several repeats."""
import argparse
import importlib.util
import platform
import timeit

import numpy as np

from twolink_dynamics import load_urdf
from twolink_dynamics.dynamics import Dynamics
from twolink_dynamics.residual import training
from twolink_dynamics.residual.compiled import compile_python
from twolink_dynamics.resources import find_urdf
from twolink_dynamics.trajectory import Trajectory


def example(arm, ripple, seed=0):
    """A residual learnt on made-up samples: a spring and (if wanted) torque ripple in every joint."""
    rng = np.random.default_rng(seed)
    t = np.arange(3000) * 5e-3
    w = rng.uniform(0.5, 3.0, (arm.n, 2))
    q = np.stack([0.7 * np.sin(a * t) + 0.5 * np.sin(b * t + 1.0) for a, b in w], axis=1)
    qd = np.gradient(q, t, axis=0)
    qdd = np.gradient(qd, t, axis=0)
    extra = 2.0 * q + (0.8 * np.sin(11.0 * q) if ripple else 0.0)
    tau = Dynamics(arm).inverse_dynamics(q, qd, qdd) + extra
    return training.fit([Trajectory(t, q, qd, tau, qdd)], arm, iterations=20, samples=1500), (q[7], qd[7], qdd[7])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=300)
    repeat = parser.parse_args().repeat
    has_llvm = importlib.util.find_spec("llvmlite") is not None
    print(f"{platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}; best of {repeat}")
    for name in ("twolink", "sixlink"):
        arm = load_urdf(find_urdf(name))
        for ripple in (False, True):
            residual, state = example(arm, ripple)
            features, units = residual.mean.size, residual.hidden_bias.size

            def best(number, residual=residual, state=state):
                # few calls a time, so that some repeat falls between what else runs
                return min(timeit.repeat(lambda: residual.torque(*state), number=number, repeat=repeat)) / number * 1e6
            line = f"{name}: {arm.n} joints, {features} features, {units} units{', ripple' if ripple else ''}:"
            numpy = best(50)
            object.__setattr__(residual, "_fast", compile_python(residual))
            python = best(100)
            machine = f"machine code {best(200):.2f} us" if residual.compile() and has_llvm else "no llvmlite"
            print(f"{line} NumPy {numpy:.1f} us, Python {python:.1f} us, {machine}")


if __name__ == "__main__":
    main()
