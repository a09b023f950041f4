"""The arms that are timed, and the peers' models of the very same URDF."""
from __future__ import annotations

import logging
import sysconfig
import warnings
from pathlib import Path

from twolink_dynamics import load_urdf

ROOT = Path(__file__).resolve().parent.parent
SITE = Path(sysconfig.get_path("purelib"))
ROBOTS = SITE / "cmeel.prefix" / "share" / "example-robot-data" / "robots"
FINGERS = {"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0}
ARMS = {  # name: (URDF, joints held at 0, tip)
    "twolink (2)": (ROOT / "urdf" / "twolink.urdf", {}, None),
    "sixlink (6)": (ROOT / "urdf" / "sixlink.urdf", {}, None),
    "UR5 (6)": (ROBOTS / "ur_description" / "urdf" / "ur5_robot.urdf", {}, "tool0"),
    "Panda (7)": (ROBOTS / "panda_description" / "urdf" / "panda.urdf", FINGERS, "panda_hand"),
}


def available():
    """Names of the arms whose URDF is here (the real robots' come with example-robot-data)."""
    return [name for name, (path, _, _) in ARMS.items() if path.is_file()]


def arm(name):
    """The Arm."""
    path, locked, tip = ARMS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_urdf(path, locked=locked, tip=tip)


def pinocchio(name):
    """(module, model, data)."""
    import numpy as np
    import pinocchio as pin
    path, locked, _ = ARMS[name]
    model = pin.buildModelFromUrdf(str(path))
    if locked:
        ids = [model.getJointId(joint) for joint in locked if model.existJointName(joint)]
        model = pin.buildReducedModel(model, ids, np.zeros(model.nq))
    return pin, model, model.createData()


def text_of(name):
    """The URDF without what peers stumble over: meshes; raises ValueError where joints would have to be held."""
    import xml.etree.ElementTree as xml
    path, locked, _ = ARMS[name]
    if locked:
        raise ValueError("joints to hold: not set up for this peer")
    tree = xml.fromstring(path.read_bytes())
    for link in tree.iter("link"):
        for tag in ("visual", "collision"):
            for element in link.findall(tag):
                link.remove(element)
    return xml.tostring(tree, encoding="unicode")


def mujoco(name):
    """(module, model, data), without contact, limits and friction: the bare equations."""
    import mujoco as mj
    model = mj.MjModel.from_xml_string(text_of(name))
    model.opt.disableflags |= (mj.mjtDisableBit.mjDSBL_CONTACT | mj.mjtDisableBit.mjDSBL_LIMIT
                               | mj.mjtDisableBit.mjDSBL_FRICTIONLOSS)
    model.dof_damping[:] = 0.0
    model.opt.integrator, model.opt.timestep = mj.mjtIntegrator.mjINT_RK4, 1e-3
    return mj, model, mj.MjData(model)


def drake(name):
    """(plant, context)."""
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant
    logging.getLogger("drake").setLevel(logging.ERROR)  # joint friction it leaves out: nobody times that
    plant = MultibodyPlant(0.0)
    Parser(plant).AddModelsFromString(text_of(name), "urdf")
    root = arm(name).root
    if plant.HasBodyNamed(root) and not root == "world":
        plant.WeldFrames(plant.world_frame(), plant.GetFrameByName(root))
    plant.Finalize()
    return plant, plant.CreateDefaultContext()


def casadi(name, kernel):
    """A CasADi function evaluated by its virtual machine, of the same operations as ours, called through its buffers
    without converting arguments: (call, (buffers, function, inputs), result)."""
    import casadi as ca
    import numpy as np

    from twolink_dynamics.kernels import python_source
    from twolink_dynamics.kernels.catalog import KERNELS, trace
    model = arm(name)
    scope = {"sin": ca.sin, "cos": ca.cos}
    exec(python_source.scalar_function(trace(model, kernel), model), scope)
    arguments = [ca.SX.sym(a, model.n) for a in KERNELS[kernel].inputs]
    results = scope[kernel](*[[a[k] for k in range(model.n)] for a in arguments])
    function = ca.Function(kernel, arguments, [ca.vertcat(*results)])
    buffers, call = function.buffer()
    inputs, out = [np.zeros(model.n) for _ in arguments], np.zeros(model.n)
    for k, array in enumerate(inputs):
        buffers.set_arg(k, memoryview(array))
    buffers.set_res(0, memoryview(out))
    return call, (buffers, function, inputs), out
