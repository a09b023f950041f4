"""One state per call, arrays in and out, from Python."""
from __future__ import annotations

import numpy as np

from twolink_dynamics import Dynamics
from twolink_dynamics.kernels import compile as compiler

from . import c_code, models
from .timing import race, show


def contenders(name, kernel):
    """{contender: (call, 1)} for inverse_dynamics or forward_dynamics of an arm."""
    arm = models.arm(name)
    q, qd, u = np.random.default_rng(1).normal(size=(3, arm.n))
    out = np.empty(arm.n)
    entries = {}

    def ours(label, dynamics, given=False):
        getattr(dynamics, kernel)(q, qd, u)
        method = getattr(dynamics, kernel)
        entries[label] = (lambda: method(q, qd, u, out=out), 1) if given else (lambda: method(q, qd, u), 1)

    if compiler.available():
        ours("ours", Dynamics(arm, "llvm"))
        ours("ours, out=", Dynamics(arm, "llvm"), given=True)
        ours("ours, live", Dynamics(arm, "llvm", live=True))
    ours("ours without llvmlite", Dynamics(arm, "numpy"))

    def peer(label, make):
        try:
            entries[label] = (make(), 1)
        except Exception as error:  # not installed, or it cannot read this arm
            def fails(error=error):
                raise error
            entries[label] = (fails, 1)

    def pinocchio():
        pin, model, data = models.pinocchio(name)
        call = pin.rnea if kernel == "inverse_dynamics" else pin.aba
        return lambda: call(model, data, q, qd, u)

    def mujoco():
        mj, model, data = models.mujoco(name)
        assert model.nv == arm.n

        def inverse():
            data.qpos[:], data.qvel[:], data.qacc[:] = q, qd, u
            mj.mj_inverse(model, data)

        def forward():
            data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, qd, u
            mj.mj_forward(model, data)
        return inverse if kernel == "inverse_dynamics" else forward

    def drake():
        from pydrake.multibody.tree import MultibodyForces_
        plant, context = models.drake(name)
        forces = MultibodyForces_[float](plant)

        def inverse():
            plant.SetPositions(context, q)
            plant.SetVelocities(context, qd)
            plant.CalcForceElementsContribution(context, forces)
            plant.CalcInverseDynamics(context, u, forces)

        def forward():
            plant.SetPositions(context, q)
            plant.SetVelocities(context, qd)
            plant.get_applied_generalized_force_input_port().FixValue(context, u)
            plant.get_generalized_acceleration_output_port().Eval(context)
        return inverse if kernel == "inverse_dynamics" else forward

    def casadi():
        evaluate, keep, result = models.casadi(name, kernel)
        inputs = keep[2]

        def call():
            inputs[0][:], inputs[1][:], inputs[2][:] = q, qd, u
            evaluate()
            return keep and result
        assert np.abs(call() - getattr(Dynamics(arm), kernel)(q, qd, u)).max() < 1e-9
        return call

    def c_call():
        one = c_code.library(arm, kernel).one
        addresses = [a.ctypes.data for a in (q, qd, u, out)]
        return lambda: one(*addresses)
    peer("Pinocchio", pinocchio)
    peer("MuJoCo", mujoco)
    peer("Drake", drake)
    peer("CasADi VM, our operations", casadi)
    peer("exported C through ctypes", c_call)
    return entries


def run():
    """All arms, both directions."""
    results = {}
    for name in models.available():
        for kernel in ("inverse_dynamics", "forward_dynamics"):
            table = results[f"{name} {kernel}"] = race(contenders(name, kernel), against="Pinocchio")
            show(f"{kernel}, {name}, one call (x: times faster than Pinocchio)", table)
    return results
