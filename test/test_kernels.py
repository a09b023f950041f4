"""The expression graph: what it folds, that it is the same every time, and that it does not grow."""
import math

import numpy as np
import pytest
from arms import build_arm, random_arm
from hypothesis import given, settings
from hypothesis import strategies as st

from twolink_dynamics.errors import InputError
from twolink_dynamics.kernels import c_source, graph, llvm_source, model, python_source
from twolink_dynamics.kernels.catalog import KERNELS, trace

# (operations, sines and cosines) a kernel of the shipped arm may need: growth is a loss that somebody has to explain.
TWOLINK_COUNTS = {
    "inverse_dynamics": (27, 4), "forward_dynamics": (40, 4), "bias": (17, 4), "gravity": (8, 4),
    "mass_matrix": (11, 1), "coriolis_matrix": (28, 2), "energy": (20, 4), "tip_pose": (12, 4), "jacobian": (14, 4),
    "jacobian_rate": (20, 4), "regressor": (29, 4),
}


def trig(function):
    return function.counts.get("sin", 0) + function.counts.get("cos", 0)


@pytest.fixture
def symbols():
    g = graph.Graph()
    return [g.input("x", k) for k in range(3)]


def test_folding(symbols):
    x, y, z = symbols
    assert x + 0.0 is x and x * 1.0 is not None and x * 0.0 == 0.0
    assert (x * 1.0).id == x.id and (2.0 * (0.5 * x)).id == x.id
    minus = -x
    assert (-minus).id == x.id and (-(x - y)).id == (y - x).id
    assert (x + y).id == (y + x).id and (x * y).id == (y * x).id
    assert (x + (-y)).id == (x - y).id and ((-x) * (-y)).id == (x * y).id
    assert (3.0 * x + 4.0 * x).id == (7.0 * x).id and (3.0 * x - 3.0 * x) == 0.0 and x - x == 0.0
    assert graph.sine(-x).id == (-graph.sine(x)).id and graph.cosine(-x).id == graph.cosine(x).id
    assert graph.sine(0.3) == math.sin(0.3)
    assert (x / 4.0).id == (0.25 * x).id
    z = z + 1.0
    assert (z - 2.0).key[0] == "sub" and (2.0 - z).key[0] == "sub"


def test_y_minus_x_reuses_x_minus_y(symbols):
    x, y, _ = symbols
    first = x - y
    second = y - x
    assert second.key == ("neg", first.id)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.data())
def test_folded_expressions_keep_their_value(data):
    """Random straight lines, evaluated as they are written and after folding."""
    g = graph.Graph()
    point = data.draw(st.lists(st.floats(-2.0, 2.0), min_size=3, max_size=3))
    pool = [(g.input("x", k), value) for k, value in enumerate(point)]
    pool += [(c, c) for c in (0.0, 1.0, -1.0, 2.0, 0.5, -3.0)]
    for _ in range(data.draw(st.integers(1, 15))):
        (a, va), (b, vb) = (data.draw(st.sampled_from(pool)) for _ in range(2))
        operation = data.draw(st.sampled_from("+-*~sc"))
        if operation == "+":
            pool.append((graph.add(a, b), va + vb))
        elif operation == "-":
            pool.append((graph.subtract(a, b), va - vb))
        elif operation == "*":
            pool.append((graph.multiply(a, b), va * vb))
        elif operation == "~":
            pool.append((graph.negative(a), -va))
        else:
            pool.append(((graph.sine if operation == "s" else graph.cosine)(a),
                         (math.sin if operation == "s" else math.cos)(va)))
        if abs(pool[-1][1]) > 1e6:
            pool.pop()
    function = graph.Function(g, "f", [("x", 3)], [expression for expression, _ in pool], (len(pool),))
    source = python_source.load(f"from math import cos, sin\ndef f(x):\n{_text(function)}", "f")
    scale = max(1.0, max(abs(value) for _, value in pool))
    for ours, (_, value) in zip(source(point), pool):
        assert abs(ours - value) <= 1e-9 * scale  # folding may reorder sums; sines of large sums magnify it


def _text(function):
    lines, results = python_source.body(function, python_source._pair)
    reads = [f"    x{k} = x[{k}]" for k in range(3)]
    return "\n".join([*reads, *lines, f"    return [{', '.join(results)}]", ""])


@pytest.mark.parametrize("name", TWOLINK_COUNTS)
def test_operations_do_not_grow(twolink, name):
    function = trace(twolink, name)
    assert (function.operations, trig(function)) <= TWOLINK_COUNTS[name]
    assert function.operations <= TWOLINK_COUNTS[name][0] and trig(function) <= TWOLINK_COUNTS[name][1]


def test_inverse_dynamics_of_two_links_is_as_short_as_by_hand(twolink):
    function = trace(twolink, "inverse_dynamics")
    assert function.operations <= 35 and trig(function) <= 4


@pytest.mark.parametrize("name, most", [("inverse_dynamics", 950), ("forward_dynamics", 2200), ("mass_matrix", 1050),
                                        ("coriolis_matrix", 3100), ("regressor", 3100)])
def test_seven_general_joints_stay_reasonable(name, most):
    """The worst case: seven revolute joints with general axes, offsets and full inertias in every link."""
    arm = build_arm(5, ["revolute"] * 7, range(-1, 6))
    assert trace(arm, name).operations < most


@pytest.mark.parametrize("name", KERNELS)
def test_text_is_deterministic(twolink, name):
    for arm in (twolink, random_arm(2, n=3)):
        one, two = trace(arm, name), trace(arm, name)
        assert python_source.scalar_source(one, arm) == python_source.scalar_source(two, arm)
        assert python_source.numpy_source(one, arm) == python_source.numpy_source(two, arm)
        assert llvm_source.one_state(one, "f", True) == llvm_source.one_state(two, "f", True)
        assert c_source.header([one], arm) == c_source.header([two], arm)


def test_unknown_kernel_lists_the_known_ones(twolink):
    with pytest.raises(InputError, match="no kernel 'inverse'; there are inverse_dynamics"):
        trace(twolink, "inverse")


def test_regrouped_entries_are_zero():
    for seed in range(6):
        arm = random_arm(seed)
        joints = model.kernel_joints(arm)
        values = model.base_parameters(arm, joints)
        assert (values[model.emptied(joints)] == 0.0).all()
        assert np.abs(values).max() > 0.0


def test_axes_become_z():
    for seed in range(6):
        arm = random_arm(seed)
        for joint, traced in zip(arm.joints, model.kernel_joints(arm)):
            R = np.array(traced.R)
            assert np.abs(R @ R.T - np.eye(3)).max() < 1e-14 and np.linalg.det(R) > 0.0
            assert np.abs(traced.turn[:, 2] - joint.axis).max() < 1e-14


def test_names_of_arms_cannot_break_generated_text(twolink):
    from dataclasses import replace
    arm = replace(twolink, name='a"""b */ \\ ü\n#error')
    function = trace(arm, "gravity")
    assert "*/ \\" not in c_source.header([function], arm)
    namespace = {}
    exec(python_source.module([function], arm), namespace)
    assert len(namespace["gravity"]([0.1, 0.2])) == 2
