"""Every kernel by every emitter against recursive Newton–Euler, which shares nothing with them but the Arm."""
import json

import numpy as np
import pytest
from arms import arms, random_arm, random_state
from hypothesis import HealthCheck, given, settings

from twolink_dynamics import Dynamics, TwolinkError, load_urdf
from twolink_dynamics.kernels import compile as compiler
from twolink_dynamics.kernels.catalog import KERNELS

INSIDE = 1e-12  # relative to the largest entry: two roundings of the same sums
OUTSIDE = 1e-10  # truth files and Pinocchio read the URDF and its decimals on their own
ENGINES = ("llvm", "numpy", "python")
METHODS = tuple(name for name in KERNELS if name != "rk4_step")

needs_llvm = pytest.mark.skipif(not compiler.available(), reason="llvmlite is not installed")
engines = pytest.mark.parametrize("engine", [pytest.param(e, marks=needs_llvm) if e == "llvm" else e for e in ENGINES])


def arrays(result):
    return result if isinstance(result, tuple) else (result,)


def assert_equal(ours, theirs, what, tolerance=INSIDE):
    for a, b in zip(arrays(ours), arrays(theirs)):
        assert np.shape(a) == np.shape(b), what
        scale = max(1.0, np.abs(b).max(initial=0.0))
        worst = np.abs(np.asarray(a) - b).max(initial=0.0) / scale
        assert worst <= tolerance, f"{what}: relative error {worst:.2e}"


def compare(arm, engine, batches=((), (5,)), names=METHODS, live=False):
    """All kernels of one engine on an arm, single states and batches, against newton_euler."""
    ours, reference = Dynamics(arm, engine, live=live), Dynamics(arm, "newton_euler")
    assert ours.engine == engine
    for seed, batch in enumerate(batches):
        state = random_state(arm, seed, batch)
        for name in names:
            arguments = state[:len(KERNELS[name].inputs)]
            expected = getattr(reference, name)(*arguments)
            for call in range(2):  # the second goes through the entry that the first has installed
                assert_equal(getattr(ours, name)(*arguments), expected, f"{name} {engine} {batch} call {call}")


@engines
@pytest.mark.parametrize("live", (False, True))
def test_shipped_arm(twolink, engine, live):
    compare(twolink, engine, ((), (1,), (3,), (8,), (2, 9)), live=live)


@engines
@pytest.mark.parametrize("seed", range(4))
def test_random_arms(engine, seed):
    compare(random_arm(seed, n=2 + seed % 3), engine, live=bool(seed % 2))


@engines
def test_rotors_that_feel_their_carrier(engine):
    arm = random_arm(3, n=4, kinds=("revolute",), mimic=False, rotors=False).with_joints(
        rotor_inertia=[1e-3, 2e-3, 1e-3, 3e-3], gear_ratio=[50.0, -30.0, 80.0, 10.0], rotor_coupling=True)
    without = arm.with_joints(rotor_coupling=False)
    q, qd, qdd = random_state(arm)
    coupled, plain = (Dynamics(a, "newton_euler").inverse_dynamics(q, qd, qdd) for a in (arm, without))
    assert np.abs(coupled - plain).max() > 1e-3, "the coupling must matter here"
    compare(arm, engine)


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(arm=arms(max_joints=5))
def test_hypothesis_arms_in_generated_source(arm):
    compare(arm, "python", batches=((),))


@needs_llvm
@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(arm=arms(max_joints=4))
def test_hypothesis_arms_compiled(arm):
    compare(arm, "llvm", batches=((), (6,)), names=("inverse_dynamics", "coriolis_matrix", "forward_dynamics"))


@engines
def test_identities(engine, twolink):
    for arm in (twolink, random_arm(11, n=4)):
        dynamics = Dynamics(arm, engine)
        q, qd, qdd = random_state(arm)
        tau = dynamics.inverse_dynamics(q, qd, qdd)
        M, C = dynamics.mass_matrix(q), dynamics.coriolis_matrix(q, qd)
        assert_equal(dynamics.forward_dynamics(q, qd, tau), qdd, "forward after inverse", 1e-10)
        assert_equal(M @ qdd + C @ qd + dynamics.gravity(q), tau, "M q̈ + C q̇ + g")
        assert (np.linalg.eigvalsh(M) > 0.0).all()
        step = 1e-5
        rate = (dynamics.mass_matrix(q + step * qd) - dynamics.mass_matrix(q - step * qd)) / (2.0 * step)
        skew = rate - 2.0 * C
        assert np.abs(rate).max() > 1e-3, "M must change here"
        assert np.abs(skew + skew.T).max() < 1e-8 * max(1.0, np.abs(rate).max()), "central differences, step ε^⅓"
        parameters = np.concatenate([link.parameters for link in arm.links])
        if not any(joint.rotor_inertia for joint in arm.joints):
            assert_equal(dynamics.regressor(q, qd, qdd) @ parameters, tau, "Y π")


def readable(folder):
    for kind, truths in (("mini", "truth/mini"), ("urdf", "truth")):
        for path in sorted((folder / kind).glob("*.urdf")):
            truth = folder / truths / f"{path.stem}.json"
            if truth.exists():
                try:
                    arm = load_urdf(path, tip=json.loads(truth.read_text()).get("tip_frame"))
                except TwolinkError:
                    continue
                yield path, arm, json.loads(truth.read_text())


@engines
def test_truth_files(field_cases, engine):
    seen = 0
    for path, arm, truth in readable(field_cases):
        if sorted(arm.joint_names) != sorted(truth["joint_names"]):
            continue
        arm = arm.with_gravity(truth.get("gravity", arm.gravity))
        pick = [truth["joint_names"].index(name) for name in arm.joint_names]
        dynamics = Dynamics(arm, engine)
        for state in truth["states"][:3]:
            q, qd, qdd = (np.array(state[key])[pick] for key in "qva")
            assert_equal(dynamics.inverse_dynamics(q, qd, qdd), np.array(state["rnea"])[pick], path.name, OUTSIDE)
            assert_equal(dynamics.forward_dynamics(q, qd, np.array(state["rnea"])[pick]), qdd, path.name, OUTSIDE)
            crba = np.reshape(state["crba"], (len(pick), -1))[np.ix_(pick, pick)]
            assert_equal(dynamics.mass_matrix(q), crba, path.name, OUTSIDE)
        seen += 1
    assert seen > 20


@engines
def test_pinocchio(field_cases, engine):
    pin = pytest.importorskip("pinocchio")
    for name in ("erd_ur5", "erd_z1"):
        path = field_cases / "urdf" / f"{name}.urdf"
        model = pin.buildModelFromUrdf(str(path))
        arm = load_urdf(path)
        assert list(model.names[1:]) == list(arm.joint_names)
        data, dynamics = model.createData(), Dynamics(arm, engine)
        for seed in range(5):
            q, qd, qdd = random_state(arm, seed)
            assert_equal(dynamics.inverse_dynamics(q, qd, qdd), pin.rnea(model, data, q, qd, qdd), name, OUTSIDE)
            assert_equal(dynamics.coriolis_matrix(q, qd), pin.computeCoriolisMatrix(model, data, q, qd), name, OUTSIDE)
            Y = pin.computeJointTorqueRegressor(model, data, q, qd, qdd)
            assert_equal(dynamics.regressor(q, qd, qdd), Y, name, OUTSIDE)
