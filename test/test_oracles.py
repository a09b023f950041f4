"""Outside engines, Pinocchio and MuJoCo (from PyPI), on the shipped arms, the mini corpus and real robots."""
import os
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from arms import random_arm, random_state
from corpus import GOOD, MINI, SHIPPED, SHIPPED_NAMES, load, mini, shipped

from twolink_dynamics import Dynamics, ModelError, load_urdf, newton_euler
from twolink_dynamics.arm import CONTINUOUS, PRISMATIC, ROOT
from twolink_dynamics.kinematics import weightless_coordinate

OUTSIDE = 1e-10  # relative: other codes, other constants (rpy of 1.5707963 in decimals)
REAL = {  # robots of example-robot-data: path under robots/, arguments
    "ur5": ("ur_description/urdf/ur5_robot.urdf", {}),
    "ur10": ("ur_description/urdf/ur10_robot.urdf", {}),
    "panda": ("panda_description/urdf/panda.urdf", {}),
    "double_pendulum": ("double_pendulum_description/urdf/double_pendulum.urdf", {}),
    "kinova": ("kinova_description/robots/kinova.urdf", {}),
    "z1": ("z1_description/urdf/z1.urdf", {}),
}


@pytest.fixture(scope="module")
def pin():
    return pytest.importorskip("pinocchio")


@pytest.fixture(scope="module")
def robots():
    try:
        files = metadata.files("example-robot-data") or ()
    except metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    ur5 = next((Path(file.locate()) for file in files if str(file).endswith(REAL["ur5"][0])), None)
    if ur5 is None:
        pytest.skip("example-robot-data brings no ur5_robot.urdf")
    return ur5.resolve().parents[2]


def relative(ours, theirs):
    ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
    assert ours.shape == theirs.shape
    return np.abs(ours - theirs).max() / max(1.0, np.abs(theirs).max())


def pinocchio_model(pin, arm):
    """The same arm built joint by joint in Pinocchio (no URDF reader in between); arms without mimic joints."""
    model = pin.Model()
    model.gravity.linear = np.array(arm.gravity)
    ids = {ROOT: 0}
    for i, (joint, link) in enumerate(zip(arm.joints, arm.links)):
        kind = pin.JointModelPrismaticUnaligned if joint.kind == PRISMATIC else pin.JointModelRevoluteUnaligned
        pose = pin.SE3(joint.origin.rotation, np.array(joint.origin.translation))
        ids[i] = model.addJoint(ids[joint.parent], kind(joint.axis), pose, joint.name)
        body = pin.Inertia(link.mass, np.array(link.com), np.array(link.inertia))
        model.appendBodyToJoint(ids[i], body, pin.SE3.Identity())
        if joint.rotor_inertia:
            model.armature[model.joints[ids[i]].idx_v] = joint.gear_ratio**2 * joint.rotor_inertia
    return model


def assert_equals_pinocchio(pin, arm, model, order, one=None):
    """Everything against a Pinocchio model; order[k] is its velocity index of our coordinate k."""
    data = model.createData()
    one = one or Dynamics(arm)
    order = np.asarray(order)
    for seed in range(3):
        q, qd, qdd = random_state(arm, seed)
        v, a = np.zeros(model.nv), np.zeros(model.nv)
        v[order], a[order] = qd, qdd
        configuration = pin.neutral(model)
        turn = np.zeros(model.nv)
        turn[order] = q
        configuration = pin.integrate(model, configuration, turn)
        square = np.ix_(order, order)
        tau = pin.rnea(model, data, configuration, v, a)[order]
        M = pin.crba(model, data, configuration)
        M = (np.triu(M) + np.triu(M, 1).T)[square]
        C = pin.computeCoriolisMatrix(model, data, configuration, v)[square]
        pairs = [(one.inverse_dynamics(q, qd, qdd), tau), (one.mass_matrix(q), M), (one.coriolis_matrix(q, qd), C),
                 (one.gravity(q), pin.computeGeneralizedGravity(model, data, configuration)[order]),
                 (one.bias(q, qd), pin.nonLinearEffects(model, data, configuration, v)[order]),
                 (one.energy(q, qd)[0], 0.5 * qd @ M @ qd),  # its own kinetic energy leaves the rotors out
                 (one.energy(q, qd)[1], pin.computePotentialEnergy(model, data, configuration)),
                 (M @ one.forward_dynamics(q, qd, tau), M @ qdd)]
        for ours, theirs in pairs:
            assert relative(ours, theirs) < OUTSIDE
    return data


@pytest.mark.parametrize("seed", range(12))
def test_pinocchio_on_random_trees(pin, seed):
    arm = random_arm(seed, mimic=False)
    if arm.rotor_coupling:
        arm = arm.with_joints(rotor_coupling=False)  # Pinocchio knows gr² Ir on the diagonal only
    assert_equals_pinocchio(pin, arm, pinocchio_model(pin, arm), range(arm.n), Dynamics(arm, engine="newton_euler"))


@pytest.mark.parametrize("name", SHIPPED_NAMES)
def test_pinocchio_reads_the_shipped_arms_alike(pin, name):
    arm, model = shipped(name), pin.buildModelFromUrdf(str(SHIPPED / f"{name}.urdf"))
    order = [model.joints[model.getJointId(joint)].idx_v for joint in arm.joint_names]
    data = assert_equals_pinocchio(pin, arm, model, order)
    q, qd, _ = random_state(arm, 5)
    turn, v = np.zeros(model.nv), np.zeros(model.nv)
    turn[order], v[order] = q, qd
    configuration = pin.integrate(model, pin.neutral(model), turn)
    frame = model.getFrameId(arm.tip)
    pin.forwardKinematics(model, data, configuration, v, np.zeros(model.nv))
    pin.updateFramePlacements(model, data)
    rotation, position = Dynamics(arm).tip_pose(q)
    assert relative(rotation, data.oMf[frame].rotation) < OUTSIDE
    assert relative(position, data.oMf[frame].translation) < OUTSIDE
    axes = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    J = pin.computeFrameJacobian(model, data, configuration, frame, axes)[:, order]
    assert relative(Dynamics(arm).jacobian(q), J) < OUTSIDE
    drift = pin.getFrameClassicalAcceleration(model, data, frame, axes).vector
    assert relative(Dynamics(arm).jacobian_rate(q, qd), drift) < OUTSIDE
    moving = model.inertias.tolist() if hasattr(model.inertias, "tolist") else list(model.inertias)
    assert sum(link.mass for link in arm.links) == pytest.approx(sum(inertia.mass for inertia in moving[1:]), abs=1e-12)


def pinocchio_reads(pin, path):
    """The mini URDFs that Pinocchio's own reader takes, mimic joints aside."""
    text = path.read_text()
    if "<mimic" in text or "world_not_declared" in path.name:
        return None
    try:
        return pin.buildModelFromUrdf(str(path))
    except (ValueError, RuntimeError):
        return None


def test_pinocchio_on_the_mini_corpus(pin):
    compared = 0
    for name in GOOD:
        model = pinocchio_reads(pin, MINI / f"{name}.urdf")
        if model is None:
            continue
        arm = mini(name)
        order = [model.joints[model.getJointId(joint)].idx_v for joint in arm.joint_names]
        assert_equals_pinocchio(pin, arm, model, order, Dynamics(arm, engine="newton_euler"))
        compared += 1
    assert compared >= 15


@pytest.mark.parametrize("name", sorted(REAL))
def test_pinocchio_on_real_robots(pin, robots, name):
    path, options = REAL[name]
    path = robots / path
    if not path.is_file():
        pytest.skip(f"example-robot-data has no {path.name}")
    arm, model = load(path, **options), pin.buildModelFromUrdf(str(path))
    followers = [joint.name for joint in arm.joints if joint.follows]
    if followers:  # hold the fingers on both sides
        leaders = [joint.follows for joint in arm.joints if joint.follows]
        arm = load(path, locked={leader: 0.0 for leader in leaders}, **options)
        ids = [model.getJointId(joint) for joint in followers + leaders]
        model = pin.buildReducedModel(model, ids, pin.neutral(model))
    order = [model.joints[model.getJointId(joint)].idx_v for joint in arm.joint_names]
    assert len(order) == model.nv
    assert_equals_pinocchio(pin, arm, model, order)


@pytest.mark.parametrize("name", ["mimic_elbow", "gripper"])
def test_pinocchio_on_mimic_joints(pin, name):
    arm, model = mini(name), pin.buildModelFromUrdf(str(MINI / f"{name}.urdf"), mimic=True)
    data = model.createData()
    assert model.nv == arm.n < len(arm.joints)
    order = [model.joints[model.getJointId(joint)].idx_v for joint in arm.joint_names]
    for seed in range(3):
        q, qd, qdd = random_state(arm, seed)
        a, v, x = (np.zeros(model.nv) for _ in range(3))
        x[order], v[order], a[order] = q, qd, qdd
        assert relative(Dynamics(arm).inverse_dynamics(q, qd, qdd), pin.rnea(model, data, x, v, a)[order]) < OUTSIDE


def test_payload_against_pinocchio(pin):
    """with_payload = a body appended at the tip frame."""
    arm, model = shipped("awkward"), pin.buildModelFromUrdf(str(SHIPPED / "awkward.urdf"))
    inertia = np.array([[0.004, 0.0005, 0.0], [0.0005, 0.005, -0.0002], [0.0, -0.0002, 0.003]])
    com = np.array([0.03, -0.02, 0.06])
    frame = model.frames[model.getFrameId("tool0")]
    model.appendBodyToJoint(frame.parentJoint, pin.Inertia(1.7, com, inertia), frame.placement)
    loaded = arm.with_payload(1.7, com, inertia)
    order = [model.joints[model.getJointId(joint)].idx_v for joint in arm.joint_names]
    assert_equals_pinocchio(pin, loaded, model, order)
    assert arm.links[1].mass == pytest.approx(2.1) and loaded.links[1].mass == pytest.approx(3.8)  # a new Arm


def test_locked_joints_against_pinocchio(pin):
    locked = {"elbow": 0.7, "wrist_2_turn": -0.4}
    arm, model = shipped("sixlink", locked=locked), pin.buildModelFromUrdf(str(SHIPPED / "sixlink.urdf"))
    configuration = pin.neutral(model)
    for joint, value in locked.items():
        configuration[model.joints[model.getJointId(joint)].idx_q] = value
    model = pin.buildReducedModel(model, [model.getJointId(joint) for joint in locked], configuration)
    order = [model.joints[model.getJointId(joint)].idx_v for joint in arm.joint_names]
    assert_equals_pinocchio(pin, arm, model, order)


@pytest.mark.parametrize("seed", range(20))
def test_singular_judgement_against_pinocchio(pin, seed):
    """weightless_coordinate is None exactly where Pinocchio's M is regular in some pose."""
    from dataclasses import replace

    from twolink_dynamics.arm import Link
    rng = np.random.default_rng(seed)
    arm = random_arm(seed, n=4, mimic=False, rotors=False)
    links = list(arm.links)
    empty = sorted(rng.choice(4, size=rng.integers(1, 3), replace=False))
    for i in empty:
        links[i] = Link(links[i].name, 0.0, np.zeros(3), np.zeros((3, 3)))
    arm = replace(arm, links=tuple(links))
    model = pinocchio_model(pin, arm)
    data = model.createData()
    best = 0.0
    for _ in range(10):
        M = pin.crba(model, data, rng.uniform(-3, 3, model.nq))
        M = np.triu(M) + np.triu(M, 1).T
        scale = np.sqrt(np.maximum(np.diag(M), 1e-300))
        best = max(best, np.linalg.eigvalsh(M / np.outer(scale, scale))[0] if np.diag(M).min() > 1e-15 else 0.0)
    named = weightless_coordinate(arm)
    assert (named is None) == (best > 1e-12)
    if named is not None:
        assert named in arm.joint_names


def mujoco_text(arm):
    """The arm as MJCF; MuJoCo refuses bodies without inertia."""
    def numbers(values):
        return " ".join(repr(float(x)) for x in values)

    def quaternion(R):
        from scipy.spatial.transform import Rotation
        return numbers(np.roll(Rotation.from_matrix(R).as_quat(), 1))

    def body(i):
        joint, link = arm.joints[i], arm.links[i]
        I = link.inertia
        children = "".join(body(k) for k, other in enumerate(arm.joints) if other.parent == i)
        kind = "slide" if joint.kind == PRISMATIC else "hinge"
        tensor = numbers((I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]))
        return (f'<body pos="{numbers(joint.origin.translation)}" quat="{quaternion(joint.origin.rotation)}">'
                f'<joint name="{joint.name}" type="{kind}" axis="{numbers(joint.axis)}" '
                f'armature="{joint.gear_ratio**2 * joint.rotor_inertia!r}"/>'
                f'<inertial pos="{numbers(link.com)}" mass="{link.mass!r}" fullinertia="{tensor}"/>{children}</body>')
    roots = "".join(body(i) for i, joint in enumerate(arm.joints) if joint.parent == ROOT)
    return (f'<mujoco><compiler angle="radian" autolimits="false" balanceinertia="false"/>'
            f'<option gravity="{numbers(arm.gravity)}"><flag contact="disable"/></option>'
            f'<worldbody>{roots}</worldbody></mujoco>')


@pytest.fixture(scope="module")
def mujoco_arms():
    found = [shipped(name) for name in ("twolink", "sixlink", "five_bar")]
    for seed in range(60):
        arm = random_arm(seed, mimic=False).with_joints(rotor_coupling=False)
        if min(np.linalg.eigvalsh(link.inertia)[0] for link in arm.links) > 1e-6 and len(found) < 10:
            found.append(arm)
    return found


@pytest.mark.parametrize("number", range(10))
def test_mujoco(mujoco_arms, number):
    mujoco = pytest.importorskip("mujoco")
    arm = mujoco_arms[number]
    model = mujoco.MjModel.from_xml_string(mujoco_text(arm))
    data = mujoco.MjData(model)
    order = [model.joint(joint).dofadr[0] for joint in arm.joint_names]
    q, qd, qdd = random_state(arm, 2)
    data.qpos[order], data.qvel[order], data.qacc[order] = q, qd, qdd
    mujoco.mj_forward(model, data)
    bias = data.qfrc_bias[order].copy()
    data.qacc[order] = qdd
    mujoco.mj_inverse(model, data)
    tau = data.qfrc_inverse[order].copy()
    data.qfrc_applied[order] = tau
    mujoco.mj_forward(model, data)
    M = newton_euler.mass_matrix(arm, q)  # so that an ill-conditioned M does not speak for the engine
    for name in [None, "numpy", "newton_euler"]:
        engine = Dynamics(arm, name)
        assert relative(engine.inverse_dynamics(q, qd, qdd), tau) < OUTSIDE
        assert relative(engine.bias(q, qd), bias) < OUTSIDE
        assert relative(M @ engine.forward_dynamics(q, qd, tau), M @ data.qacc[order]) < OUTSIDE


def test_reading_never_touches_the_meshes(robots):
    path = robots / REAL["ur5"][0]
    assert "package://" in path.read_text() and not os.environ.get("ROS_PACKAGE_PATH", "").startswith(str(robots))
    assert load_urdf(path).n == 6 and CONTINUOUS  # no package:// was resolved


def test_a_branched_arm_needs_a_named_tip():
    with pytest.raises(ModelError, match="tips"):
        load_urdf(SHIPPED / "five_bar.urdf").frame()
