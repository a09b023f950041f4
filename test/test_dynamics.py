"""Dynamics as others call it: shapes, lists, `out=`, refusals, NaN, live inputs, pickles, threads, pointers."""
import copy
import ctypes
import gc
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from arms import random_arm, random_state
from conftest import REPOSITORY

from twolink_dynamics import Dynamics, InputError, ModelError, TwolinkWarning, load_urdf
from twolink_dynamics.kernels import compile as compiler
from twolink_dynamics.kernels import engine as engine_module

INSIDE = 1e-12
ENGINES = ("llvm", "numpy", "python", "newton_euler")
needs_llvm = pytest.mark.skipif(not compiler.available(), reason="llvmlite is not installed")


@pytest.fixture(params=[pytest.param(e, marks=needs_llvm) if e == "llvm" else e for e in ENGINES])
def engine(request):
    return request.param


@pytest.fixture
def dynamics(twolink, engine):
    return Dynamics(twolink, engine)


@pytest.fixture
def reference(twolink):
    return Dynamics(twolink, "newton_euler")


def test_lists_and_mixed_batches(dynamics, reference):
    q, qd, qdd = [0.1, 0.2], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [0, 1]
    expected = reference.inverse_dynamics(q, qd, qdd)
    assert expected.shape == (3, 2)
    for _ in range(2):
        assert np.abs(dynamics.inverse_dynamics(q, qd, qdd) - expected).max() < INSIDE
    assert dynamics.mass_matrix(np.zeros((4, 5, 2))).shape == (4, 5, 2, 2)
    assert dynamics.gravity(np.zeros((0, 2))).shape == (0, 2)
    rotation, position = dynamics.tip_pose(np.zeros((3, 2)))
    assert rotation.shape == (3, 3, 3) and position.shape == (3, 3)
    kinetic, potential = dynamics.energy([0.1, 0.2], [1.0, 1.0])
    assert np.shape(kinetic) == np.shape(potential) == ()


def test_keywords_and_other_frames(dynamics, reference, twolink):
    q, qd = np.array([0.3, -0.7]), np.array([1.0, -2.0])
    for _ in range(2):
        assert np.abs(dynamics.bias(q=q, qd=qd) - reference.bias(q, qd)).max() < INSIDE
        assert np.abs(dynamics.bias(q, qd=qd) - reference.bias(q, qd)).max() < INSIDE
        for frame in [frame.name for frame in twolink.frames]:
            assert np.abs(dynamics.jacobian(q, frame) - reference.jacobian(q, frame)).max() < INSIDE
            assert np.abs(dynamics.jacobian(q, frame=frame) - reference.jacobian(q, frame=frame)).max() < INSIDE
            assert np.abs(dynamics.jacobian_rate(q, qd, frame) - reference.jacobian_rate(q, qd, frame)).max() < INSIDE
            for ours, theirs in zip(dynamics.tip_pose(q, frame), reference.tip_pose(q, frame)):
                assert np.abs(ours - theirs).max() < INSIDE
    with pytest.raises(ModelError, match="no link 'hand'; the links are"):
        dynamics.jacobian(q, "hand")


def test_arrays_of_any_kind(dynamics, reference):
    wide = np.random.default_rng(0).normal(size=(6, 4))
    q = wide[:, ::2]  # not contiguous
    expected = reference.gravity(q)
    assert np.abs(dynamics.gravity(q) - expected).max() < INSIDE
    assert np.abs(dynamics.gravity(q[1]) - expected[1]).max() < INSIDE
    assert np.abs(dynamics.gravity(np.asfortranarray(q)) - expected).max() < INSIDE
    assert np.abs(dynamics.gravity(q.astype(np.float32)) - reference.gravity(q.astype(np.float32))).max() < INSIDE
    assert np.abs(dynamics.gravity(np.array([1, 2])) - reference.gravity([1.0, 2.0])).max() < INSIDE
    swapped = q.astype(">f8")
    assert np.abs(dynamics.gravity(swapped) - expected).max() < INSIDE
    assert np.abs(dynamics.gravity(np.array([1.0, 2.0], dtype=object)) - reference.gravity([1.0, 2.0])).max() < INSIDE
    masked = np.ma.masked_array([1.0, 2.0])
    assert np.abs(dynamics.gravity(masked) - reference.gravity([1.0, 2.0])).max() < INSIDE
    assert np.abs(dynamics.gravity(memoryview(q[1].copy())) - expected[1]).max() < INSIDE
    assert np.abs(dynamics.gravity(q[1][::-1]) - reference.gravity(q[1, ::-1])).max() < INSIDE
    for state in (q[1], q):  # at an odd address
        odd = np.zeros(8 * state.size + 1, np.uint8)[1:].view(float).reshape(state.shape)
        odd[...] = state
        assert not odd.flags.aligned
        assert np.abs(dynamics.gravity(odd) - reference.gravity(state)).max() < INSIDE
        assert np.abs(dynamics.gravity(state, out=odd) - reference.gravity(state)).max() < INSIDE
    strided = np.lib.stride_tricks.as_strided(np.array([0.5]), (2,), (0,))
    assert np.abs(dynamics.gravity(strided) - reference.gravity([0.5, 0.5])).max() < INSIDE


def test_arguments_are_not_changed(dynamics):
    state = [np.array([0.3, -0.7]), np.array([1.0, -2.0]), np.array([0.5, 0.1])]
    kept = copy.deepcopy(state)
    for array in state:
        array.setflags(write=False)
    for _ in range(2):
        dynamics.inverse_dynamics(*state)
        dynamics.forward_dynamics(*state)
    assert all((a == b).all() for a, b in zip(state, kept))


def test_out(dynamics, reference):
    q = np.random.default_rng(0).normal(size=(5, 2))
    for value, shape in ((q[0], (2, 2)), (q, (5, 2, 2))):
        out = np.empty(shape)
        for _ in range(2):
            assert dynamics.mass_matrix(value, out=out) is out
            assert np.abs(out - reference.mass_matrix(value)).max() < INSIDE
    spaced = np.zeros((5, 2, 4))
    dynamics.mass_matrix(q, out=spaced[..., ::2])
    assert np.abs(spaced[..., ::2] - reference.mass_matrix(q)).max() < INSIDE and (spaced[..., 1::2] == 0.0).all()


def test_out_may_be_an_argument(dynamics, reference):
    for shape in ((2,), (9, 2)):
        q, qd, qdd = np.random.default_rng(0).normal(size=(3, *shape))
        expected = reference.inverse_dynamics(q, qd, qdd)
        for _ in range(2):
            mine = qdd.copy()
            dynamics.inverse_dynamics(q, qd, mine, out=mine)
            assert np.abs(mine - expected).max() < INSIDE
    shifted = np.random.default_rng(0).normal(size=(10, 2))
    expected = reference.gravity(shifted[:-1])
    dynamics.gravity(shifted[:-1], out=shifted[1:])
    assert np.abs(shifted[1:] - expected).max() < INSIDE


@pytest.mark.parametrize("out, message", [
    (np.empty(3), r"out: shape \(3,\), the result of gravity is \(2,\)"), ([0.0, 0.0], "writeable float64"),
    (np.empty(2, np.float32), "writeable float64")])
def test_out_refused(dynamics, out, message):
    for _ in range(2):
        with pytest.raises(InputError, match=message):
            dynamics.gravity(np.zeros(2), out=out)
    frozen = np.zeros(2)
    frozen.setflags(write=False)
    with pytest.raises(InputError, match="writeable float64"):
        dynamics.gravity(np.zeros(2), out=frozen)
    assert (frozen == 0.0).all()


@pytest.mark.parametrize("q, message", [
    (np.zeros(3), r"q: shape \(3,\), the last axis must be the 2 joints"), (1.0, r"q: shape \(\)"),
    (np.zeros((2, 3)), r"q: shape \(2, 3\)"), ([], r"q: shape \(0,\)"), (np.zeros((2, 0)), r"q: shape \(2, 0\)"),
    (["a", "b"], "q: not an array of real numbers but of <U1"), (None, "q: not an array of numbers"),
    ([None, 1.0], "q: not an array of numbers"), ([[0.1, 0.2], [0.3]], "q: not an array of numbers"), ({}, "q: "),
    ([1j, 2.0], "q: not an array of real numbers but of complex128"), ([10**400, 1], "q: not an array of numbers"),
    (np.zeros(2, "m8[s]"), "q: not an array of real numbers but of timedelta64"), (b"12", "q: "),
    (np.zeros(2, [("a", float)]), "q: not an array of real numbers")])
def test_wrong_shapes_are_named(dynamics, q, message):
    for _ in range(2):
        with pytest.raises(InputError, match=message):
            dynamics.gravity(q)
        dynamics.gravity(np.zeros(2))  # now the compiled entry is in place


def test_batches_that_do_not_fit_are_named(dynamics):
    with pytest.raises(InputError, match=r"q \(3, 2\), qd \(4, 2\)"):
        dynamics.bias(np.zeros((3, 2)), np.zeros((4, 2)))


def test_wrong_calls(dynamics):
    for _ in range(2):
        with pytest.raises(TypeError):
            dynamics.gravity()
        with pytest.raises(TypeError):
            dynamics.gravity(np.zeros(2), np.zeros(2))
        with pytest.raises(TypeError):
            dynamics.gravity(np.zeros(2), inn=np.zeros(2))
        with pytest.raises(TypeError):
            dynamics.gravity(np.zeros(2), q=np.zeros(2))
        dynamics.gravity(np.zeros(2))
    with pytest.raises(InputError, match="needs an Arm"):
        Dynamics("twolink.urdf")
    with pytest.raises(InputError, match="engine 'fortran' is none of llvm, numpy, python, newton_euler"):
        Dynamics(dynamics.arm, "fortran")


@pytest.mark.parametrize("bad", (np.nan, np.inf, -np.inf))
def test_nan_in_gives_nan_out(dynamics, bad):
    if dynamics.engine == "newton_euler" and np.isinf(bad):
        pytest.skip("NumPy remarks on sin(inf)")
    for _ in range(2):
        for position in range(3):
            state = [np.array([0.1, 0.2]), np.array([1.0, 2.0]), np.array([0.5, 0.6])]
            state[position][0] = bad
            for method in (dynamics.inverse_dynamics, dynamics.forward_dynamics):
                result = method(*state)
                assert not np.isfinite(result).all(), (method, position)
            batch = [np.stack([x, np.array([0.3, 0.4]), np.array([0.5, 0.6])]) for x in state]
            result = dynamics.inverse_dynamics(*batch)
            assert not np.isfinite(result[0]).all() and np.isfinite(result[1:]).all()


def test_pickle_and_copy(dynamics):
    q = np.array([0.3, -0.7])
    expected = dynamics.gravity(q)
    for other in (pickle.loads(pickle.dumps(dynamics)), copy.deepcopy(dynamics), copy.copy(dynamics)):
        assert (other.gravity(q) == expected).all() and other.engine == dynamics.engine


def test_live_gravity_and_payload(twolink, engine):
    live = Dynamics(twolink, engine, live=True)
    q, qd, qdd = random_state(twolink)
    body = (1.3, (0.05, -0.02, 0.03), np.diag([0.01, 0.02, 0.015]))

    def agrees(arm):
        fixed = Dynamics(arm, "newton_euler")
        for method in ("inverse_dynamics", "forward_dynamics"):
            ours, theirs = getattr(live, method)(q, qd, qdd), getattr(fixed, method)(q, qd, qdd)
            assert np.abs(ours - theirs).max() < INSIDE * max(1.0, np.abs(theirs).max())
        for ours, theirs in zip(live.energy(q, qd), fixed.energy(q, qd)):
            assert abs(ours - theirs) < INSIDE * max(1.0, abs(theirs))
        assert np.abs(live.gravity(np.stack([q, q])) - fixed.gravity(q)).max() < 1e-11

    agrees(twolink)
    before = live.gravity(q)
    live.set_payload(*body)
    assert np.abs(live.gravity(q) - before).max() > 0.1, "the payload must matter"
    agrees(twolink.with_payload(*body))
    live.set_gravity((1.0, -2.0, 3.0))
    agrees(twolink.with_payload(*body).with_gravity((1.0, -2.0, 3.0)))
    again = pickle.loads(pickle.dumps(live))
    assert (again.gravity(q) == live.gravity(q)).all()
    with pytest.raises(ModelError, match="mass -1"):
        live.set_payload(-1.0)
    with pytest.raises(InputError, match="gravity"):
        live.set_gravity((0.0, np.nan, 0.0))
    agrees(twolink.with_payload(*body).with_gravity((1.0, -2.0, 3.0)))
    live.set_payload(0.0)
    live.set_gravity(twolink.gravity)
    agrees(twolink)
    assert (live.gravity(q) == before).all()


def test_live_changes_compile_nothing(twolink, engine, monkeypatch):
    live = Dynamics(twolink, engine, live=True)
    live.gravity(np.zeros(2))
    monkeypatch.setattr(engine_module, "trace", None)
    for mass in (0.5, 1.0, 1.5):
        live.set_payload(mass)
        live.set_gravity((0.0, 0.0, -mass))
        assert np.isfinite(live.gravity(np.zeros(2))).all()


def test_folded_kernels_refuse_live_changes(dynamics):
    with pytest.raises(InputError, match="live=True"):
        dynamics.set_gravity((0.0, 0.0, 0.0))
    with pytest.raises(InputError, match="live=True"):
        dynamics.set_payload(1.0)


def test_arm_with_several_tips(field_cases, engine):
    arm = load_urdf(field_cases / "mini" / "m21_two_branches.urdf")
    assert arm.tip is None
    dynamics, reference = Dynamics(arm, engine), Dynamics(arm, "newton_euler")
    q = np.full(arm.n, 0.3)
    for _ in range(2):
        with pytest.raises(ModelError, match="tips, name one"):
            dynamics.jacobian(q)
        with pytest.raises(ModelError, match="tips, name one"):
            dynamics.tip_pose(q)
        assert np.abs(dynamics.jacobian(q, arm.tips[0]) - reference.jacobian(q, arm.tips[0])).max() < INSIDE


@pytest.mark.parametrize("n", (1, 2, 3, 7))
@needs_llvm
def test_every_batch_size_has_its_tail(n):
    arm = random_arm(n, n=n, tree=False, mimic=False)
    compiled, reference = Dynamics(arm, "llvm"), Dynamics(arm, "newton_euler")
    state = random_state(arm, batch=(20,))
    expected = reference.inverse_dynamics(*state)
    kernel = compiled.kernel("inverse_dynamics")
    for count in range(1, 20):
        part = [np.ascontiguousarray(x[:count]) for x in state]
        guarded = np.full((count + 2, n), 7.0)
        compiled.inverse_dynamics(*part, out=guarded[1:-1])
        scale = max(1.0, np.abs(expected).max())
        assert np.abs(guarded[1:-1] - expected[:count]).max() < INSIDE * scale
        assert (guarded[[0, -1]] == 7.0).all(), "nothing is written beside the result"
        columns = np.full((n, count), np.nan)
        kernel.columns([np.ascontiguousarray(x.T) for x in part], columns, 1)
        assert np.abs(columns.T - expected[:count]).max() < INSIDE * scale


def test_many_states_on_all_cores(dynamics, reference):
    if dynamics.engine == "python":
        pytest.skip("scalars only: slow")
    count = 70_001
    state = random_state(dynamics.arm, batch=(count,))
    result = dynamics.inverse_dynamics(*state)
    pick = np.random.default_rng(0).integers(0, count, 300)
    assert np.abs(result[pick] - reference.inverse_dynamics(*(x[pick] for x in state))).max() < 1e-11
    one = Dynamics(dynamics.arm, dynamics.engine, threads=1).inverse_dynamics(*state)
    assert (one == result).all(), "the number of cores changes no bit"


def test_threads_may_share_one_object(dynamics):
    state = random_state(dynamics.arm)
    expected = dynamics.inverse_dynamics(*state)
    wrong = []

    def work():
        for _ in range(200):
            if not (dynamics.inverse_dynamics(*state) == expected).all():
                wrong.append(1)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@needs_llvm
def test_threads_may_race_for_the_first_call(twolink):
    """Each may compile, the last one wins, and none calls code that is gone."""
    state = random_state(twolink)
    expected = Dynamics(twolink, "llvm").inverse_dynamics(*state)
    dynamics, wrong, start = Dynamics(twolink, "llvm"), [], threading.Barrier(4)

    def work():
        start.wait()
        call = dynamics.inverse_dynamics  # the method, or what another thread has put in its place
        for _ in range(50):
            if not (call(*state) == expected).all() or not (dynamics.inverse_dynamics(*state) == expected).all():
                wrong.append(1)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert not wrong and (dynamics.inverse_dynamics(*state) == expected).all()


LAST_CALLS = """
import gc, os, sys
import numpy as np
from twolink_dynamics import Dynamics, load_urdf
arm, q = load_urdf("urdf/twolink.urdf"), np.zeros(2)

class Caller:
    def __init__(self, dynamics):
        dynamics.gravity(q)
        self.call, dynamics.owner = dynamics.gravity, self
    def __del__(self):
        print(self.call(np.zeros(2)).shape, flush=True)

kept = Caller(Dynamics(arm, "llvm")).call  # the function outlives all else
gc.collect()
Caller(Dynamics(arm, "llvm"))  # a cycle that dies together
gc.collect()
if (child := os.fork()) == 0:
    assert (kept(q) == Dynamics(arm, "llvm").gravity(q)).all()
    Dynamics(arm, "llvm").gravity(np.zeros((200_000, 2)))
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
print(kept(q).shape)
last = Caller(Dynamics(arm, "llvm"))  # dies with the interpreter
"""


@needs_llvm
def test_machine_code_outlives_its_callers():
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    done = subprocess.run([sys.executable, "-c", LAST_CALLS], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == ["(2,)", "(2,)"] and done.stderr == ""


@needs_llvm
def test_pointer_for_embedding(twolink, reference):
    for live in (False, True):
        dynamics = Dynamics(twolink, "llvm", live=live)
        address, function = dynamics.pointer("inverse_dynamics")
        state = random_state(twolink)
        out = np.empty(2)
        arrays = [*state, *([dynamics.parameters] if live else []), out]
        function(*(a.ctypes.data for a in arrays))
        assert np.abs(out - reference.inverse_dynamics(*state)).max() < INSIDE
        raw = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays))(address)
        out[:] = 0.0
        raw(*(a.ctypes.data for a in arrays))
        assert np.abs(out - reference.inverse_dynamics(*state)).max() < INSIDE
    with pytest.raises(InputError, match="no machine code"):
        Dynamics(twolink, "numpy").pointer("gravity")


@needs_llvm
def test_results_own_their_references(twolink):
    dynamics = Dynamics(twolink, "llvm")
    q, out = np.zeros(2), np.empty(2)
    dynamics.gravity(q)
    before = [sys.getrefcount(x) for x in (q, out, np.ndarray, np.dtype(float))]
    for _ in range(1000):
        dynamics.gravity(q)
        dynamics.gravity(q, out=out)
        dynamics.mass_matrix(q)
    after = [sys.getrefcount(x) for x in (q, out, np.ndarray, np.dtype(float))]
    assert max(abs(a - b) for a, b in zip(before, after)) < 50
    result = dynamics.gravity(q)
    assert result.flags.owndata and result.flags.writeable and type(result) is np.ndarray


@needs_llvm
def test_without_the_builtin_entry(twolink, reference, monkeypatch):
    """Where Python or NumPy are not laid out as promised, ctypes carries single calls."""
    from twolink_dynamics.kernels import builtin
    with monkeypatch.context() as change:
        change.setattr(builtin, "PYTHON", (*builtin.PYTHON, "PyObject_Nonesuch"))
        assert builtin.usable.__wrapped__() is False
    with monkeypatch.context() as change:
        change.setattr(builtin, "FLAGS", builtin.FLAGS + 8)
        assert builtin.usable.__wrapped__() is False
    monkeypatch.setattr(builtin, "usable", lambda: False)
    dynamics = Dynamics(twolink, "llvm", live=True)
    state = random_state(twolink)
    for _ in range(2):
        assert np.abs(dynamics.inverse_dynamics(*state) - reference.inverse_dynamics(*state)).max() < INSIDE


@needs_llvm
def test_a_machine_llvm_cannot_serve(twolink, reference, monkeypatch, tmp_path):
    def refuses(text):
        raise RuntimeError("no such target")
    monkeypatch.setattr(compiler, "build", refuses)
    monkeypatch.setenv("TWOLINK_CACHE", str(tmp_path))
    monkeypatch.delenv("TWOLINK_ENGINE", raising=False)
    dynamics, q = Dynamics(twolink), np.array([0.3, -0.7])
    with pytest.warns(TwolinkWarning, match="no such target.*using NumPy"):
        result = dynamics.gravity(q)
    assert dynamics.engine == "numpy" and np.abs(result - reference.gravity(q)).max() < INSIDE
    assert np.abs(dynamics.mass_matrix(np.stack([q, q])) - reference.mass_matrix(q)).max() < INSIDE
    with pytest.raises(InputError, match="engine 'llvm' cannot compile here: no such target"):
        Dynamics(twolink, "llvm").gravity(q)


WITHOUT = """
import sys
sys.modules["llvmlite"] = None
import numpy as np
from twolink_dynamics import Dynamics, InputError, load_urdf
arm = load_urdf("urdf/twolink.urdf")
dynamics = Dynamics(arm)
assert dynamics.engine == "numpy"
state = [np.array([0.3, -0.4]), np.array([1.0, 2.0]), np.array([-1.0, 0.5])]
want = Dynamics(arm, "newton_euler").inverse_dynamics(*state)
assert abs(dynamics.inverse_dynamics(*state) - want).max() < 1e-12
try:
    Dynamics(arm, "llvm")
except InputError as error:
    print(error)
"""


def test_without_llvmlite():
    done = subprocess.run([sys.executable, "-c", WITHOUT], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "engine 'llvm' needs llvmlite: pip install llvmlite"


def test_environment_chooses_the_engine(twolink, engine, monkeypatch):
    monkeypatch.setenv("TWOLINK_ENGINE", engine)
    assert Dynamics(twolink).engine == engine
    monkeypatch.setenv("TWOLINK_ENGINE", "abacus")
    with pytest.raises(InputError, match="engine 'abacus'"):
        Dynamics(twolink)
