"""The contract: every engine gives the same numbers for every arm it takes."""
import warnings

import numpy as np
import pytest
from arms import arms, random_arm, random_state
from corpus import GOOD, SHIPPED_NAMES, mini, shipped
from hypothesis import HealthCheck, given, settings

from twolink_dynamics import Dynamics, newton_euler, planar
from twolink_dynamics.errors import InputError, ModelError
from twolink_dynamics.kernels import compile as compiler
from twolink_dynamics.kernels.engine import ENGINES

ROUNDING = 1e-12  # relative: engines differ in the order of their sums only
SOLVING = 1e-9  # forward∘inverse on M of condition up to 1e6
COMPILED = [name for name in ENGINES if name != "llvm" or compiler.available()]
STATES = 6
QUICK = ("products_of_inertia", "gripper", "mimic_elbow", "fixed_tool_chain_lumped", "prismatic_second", "two_branches")


class Module:
    """A module of functions(model, ...) behind the methods of Dynamics."""

    def __init__(self, module, model):
        self.module, self.model = module, model

    def __getattr__(self, name):
        function = getattr(self.module, "gravity_torque" if name == "gravity" else name)
        return lambda *arguments: function(self.model, *arguments)


def engine(name, arm):
    """The engine of that name for an arm, or a skip where it does not take such an arm."""
    if name == "newton_euler":
        return Module(newton_euler, arm)
    if name == "planar":
        try:
            return Module(planar, planar.TwoLinkParameters.from_arm(arm))
        except ModelError as error:
            pytest.skip(str(error))
    if name == "lagrangian":
        pytest.importorskip("sympy")
        from twolink_dynamics.lagrangian import SymbolicDynamics
        try:
            return SymbolicDynamics(arm)
        except ModelError as error:
            pytest.skip(str(error))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Dynamics(arm, engine=name)


def difference(ours, theirs):
    """Largest difference relative to the largest entry, at least 1."""
    ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
    assert ours.shape == theirs.shape
    return np.abs(ours - theirs).max() / max(1.0, np.abs(theirs).max())


def assert_contract(one, arm, seed=0, batch=(STATES,)):
    """`one` against Newton–Euler, batched and single."""
    truth = Module(newton_euler, arm)
    q, qd, qdd = random_state(arm, seed, batch)
    tau = truth.inverse_dynamics(q, qd, qdd)
    M = truth.mass_matrix(q)
    kinetic, potential = truth.energy(q, qd)
    for ours, theirs, what in (
            (one.inverse_dynamics(q, qd, qdd), tau, "inverse dynamics"), (one.mass_matrix(q), M, "mass matrix"),
            (one.coriolis_matrix(q, qd), truth.coriolis_matrix(q, qd), "Coriolis matrix"),
            (one.gravity(q), truth.gravity(q), "gravity"), (one.bias(q, qd), truth.bias(q, qd), "bias"),
            (one.energy(q, qd)[0], kinetic, "kinetic energy"), (one.energy(q, qd)[1], potential, "potential energy"),
            # through M, so that an ill-conditioned M does not speak for the engine
            ((M @ one.forward_dynamics(q, qd, tau)[..., None])[..., 0], (M @ qdd[..., None])[..., 0],
             "forward dynamics")):
        assert difference(ours, theirs) <= ROUNDING, what
    single = one.inverse_dynamics(q[0], qd[0], qdd[0])
    assert difference(single, tau[0]) <= ROUNDING


ALL = ["planar", "newton_euler", "lagrangian", *COMPILED]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("arm", SHIPPED_NAMES)
def test_shipped_arms(name, arm):
    assert_contract(engine(name, shipped(arm)), shipped(arm))


@pytest.mark.parametrize("name", [n for n in ALL if n != "newton_euler"])
def test_corpus(name):
    cases = QUICK if name == "llvm" else GOOD  # compiling takes its time
    tried = 0
    for case in cases:
        arm = mini(case)
        try:
            one = engine(name, arm)
        except pytest.skip.Exception:
            continue
        assert_contract(one, arm)
        tried += 1
    assert tried >= (5 if name == "planar" else len(cases) - 5)


FEW, MORE = (settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
             for count in (4, 12))


@FEW
@given(arm=arms(max_joints=5))
def test_compiled_engines_on_random_arms(arm):
    for name in COMPILED:
        assert_contract(engine(name, arm), arm)


@MORE
@given(arm=arms(max_joints=6))
def test_generated_source_on_random_arms(arm):
    assert_contract(engine("numpy", arm), arm)


@MORE
@given(arm=arms(max_joints=3))
def test_symbolic_engine_on_random_arms(arm):
    one = engine("lagrangian", arm)
    assert one.equations.defect() == 0
    assert_contract(one, arm)


@MORE
@given(arm=arms(min_joints=2, max_joints=2, kinds=("revolute", "continuous"), tree=False, mimic=False))
def test_closed_form_takes_exactly_the_planar_arms(arm):
    first, second = arm.joints
    parallel = np.linalg.norm(np.cross(first.axis, second.origin.rotation @ second.axis)) < 1e-9
    try:
        p = planar.TwoLinkParameters.from_arm(arm)
    except ModelError as error:
        assert not parallel and "not parallel" in str(error)
        return
    assert parallel
    assert_contract(Module(planar, p), arm)


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("case", ["twolink", "awkward", "prismatic_second"])
def test_kernels_against_the_lagrangian_itself(name, case):
    """Energies to symbolic Euler–Lagrange on one side, recursive algorithms traced on the other: no code in common."""
    pytest.importorskip("sympy")
    from twolink_dynamics.lagrangian import SymbolicDynamics
    arm = shipped(case) if case in SHIPPED_NAMES else mini(case)
    symbolic, kernels = SymbolicDynamics(arm), Dynamics(arm, engine=name)
    q, qd, qdd = random_state(arm, 9, (STATES,))
    for what, arguments in (("inverse_dynamics", (q, qd, qdd)), ("mass_matrix", (q,)), ("coriolis_matrix", (q, qd)),
                            ("gravity", (q,)), ("bias", (q, qd))):
        assert difference(getattr(kernels, what)(*arguments), getattr(symbolic, what)(*arguments)) <= ROUNDING, what
        assert difference(getattr(kernels, what)(*(x[0] for x in arguments)),
                          getattr(symbolic, what)(*arguments)[0]) <= ROUNDING, what


@pytest.mark.parametrize("seed", range(3))
def test_big_trees_with_mimics_and_coupled_rotors(seed):
    arm = random_arm(seed, n=8)
    for name in COMPILED if seed == 0 else ["numpy"]:
        assert_contract(engine(name, arm), arm, seed)


def test_payload_and_gravity_reach_every_engine():
    arm = shipped("twolink").with_payload(1.5, (0.02, 0.01, -0.03), 1e-3 * np.eye(3)).with_gravity((1.0, -2.0, -9.0))
    assert difference(newton_euler.gravity_torque(arm, np.zeros(2)),
                      newton_euler.gravity_torque(shipped("twolink"), np.zeros(2))) > 0.1  # the premise
    for name in ALL:
        assert_contract(engine(name, arm), arm)


def test_engines_of_dynamics_are_named():
    with pytest.raises(InputError, match="none of"):
        Dynamics(shipped("twolink"), engine="abacus")
