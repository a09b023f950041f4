"""Integrators: their orders, their works, and that they leave their arguments alone."""

import numpy as np
import pytest

from twolink_dynamics import InputError
from twolink_dynamics.integrators import METHODS, scheme


def damped(x, u):
    """A damped pendulum pushed by 0.3: ü = −sin x − 0.2 u + 0.3."""
    return -np.sin(x) - 0.2 * u + 0.3, -0.2 * u, np.array([0.3])


def advance(method, h, T=2.0):
    x, u, lost, pushed = np.array([1.0]), np.array([0.5]), 0.0, 0.0
    for _ in range(round(T / h)):
        x, u, a, b = scheme(method)(damped, x, u, h)
        lost, pushed = lost + a, pushed + b
    return np.array([x[0], u[0], lost, pushed])


@pytest.fixture(scope="module")
def truth():
    return advance("dop853", 0.5)


@pytest.mark.parametrize("method, order, steps", [("semi_implicit", 1, (0.02, 0.01)), ("rk4", 4, (0.1, 0.05))])
def test_order_of_states_and_works(truth, method, order, steps):
    errors = [np.abs(advance(method, h) - truth) for h in steps]
    assert (np.log2(errors[0] / errors[1]) > order - 0.3).all()
    assert errors[1].max() < 0.02


def test_works_close_the_energy_balance(truth):
    x, u, lost, pushed = truth
    stored = 0.5 * u**2 - np.cos(x) - (0.5 * 0.25 - np.cos(1.0))
    assert stored == pytest.approx(lost + pushed, abs=1e-11)
    assert pushed == pytest.approx(0.3 * (x - 1.0), abs=1e-11)


@pytest.mark.parametrize("method", METHODS)
def test_arguments_stay_and_no_forces_mean_no_work(method):
    x, u = np.array([0.3]), np.array([0.1])
    x.flags.writeable = u.flags.writeable = False
    x1, u1, lost, pushed = scheme(method)(lambda x, u: (-x, None, None), x, u, 0.01)
    assert lost == pushed == 0.0 and x.tolist() == [0.3] and x1.flags.writeable and u1.flags.writeable


def test_unknown_method_is_refused():
    with pytest.raises(InputError, match="the methods are rk4, semi_implicit, dop853"):
        scheme("heun")
