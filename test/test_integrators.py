"""Integrators: their orders, their works, and that they leave their arguments alone."""

import numpy as np
import pytest

from twolink_dynamics import InputError
from twolink_dynamics.friction import Friction
from twolink_dynamics.integrators import METHODS, scheme
from twolink_dynamics.plant import Plant
from twolink_dynamics.simulation import Simulation


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


@pytest.mark.parametrize("substeps", [False, True])
def test_compiled_step_is_the_general_one_with_friction_and_its_work(twolink, substeps):
    """Sliding against Coulomb and viscous friction: states and ledger agree, through a reversal and a stop."""
    viscous = [0.2, 60.0] if substeps else [0.2, 0.1]
    plant = Plant(twolink, friction=Friction([0.6, 0.3], viscous, [0.9, 0.3]))
    fast, general = (Simulation(plant, 1e-3, q=[0.3, 2.5], qd=[0.5, 2.0]) for _ in range(2))
    general._compiled = False
    assert fast.substeps == general.substeps and (fast.substeps > 1) == substeps
    served = []
    step = fast._compiled_step
    fast._compiled_step = lambda *state: served.append(step(*state)) or served[-1]
    for sim in (fast, general):
        sim.run(0.4, [14.0, 9.0])
        sim.run(0.2, [-8.0, -4.0])
    if fast._kernel is None:
        pytest.skip("no machine code here")
    assert 0.2 < np.mean(served) < 1.0  # premise: both paths were taken
    assert fast.q == pytest.approx(general.q, abs=1e-10) and fast.qd == pytest.approx(general.qd, abs=1e-9)
    for name, value in general.ledger.items():
        assert fast.ledger[name] == pytest.approx(value, abs=1e-8), name
    assert general.ledger.dissipated > 1.0
