"""Effort limits, the shape of a switch, the unit of the effort interface."""
import numpy as np
import pytest

from twolink_dynamics import Dynamics, InputError, State
from twolink_dynamics.control import ComputedTorque, Controller, EffortLimits, EffortToCommand, Handover, PDGravity

Q = np.array([0.4, 0.9])
REST = State(Q, np.zeros(2))
DT = 1e-3


@pytest.fixture(scope="module")
def dynamics(twolink):
    return Dynamics(twolink)


def steps(controller, count, state=REST, start=0.0):
    return [controller.step(start + k * DT, state) for k in range(count)]


def test_clamp_per_joint():
    limits = EffortLimits([20.0, 8.0], 2)
    assert np.array_equal(limits.clamp(np.array([25.0, -9.0])), [20.0, -8.0])
    assert np.array_equal(limits.clamp(np.array([-25.0, 1.0])), [-20.0, 1.0])
    assert np.array_equal(EffortLimits([0.0, np.inf], 2).clamp(np.array([5.0, 1e6])), [0.0, 1e6])  # unactuated; free


@pytest.mark.parametrize("limit, message", [([1.0, -2.0], "not negative"), ([1.0, np.nan], "numbers"),
                                            ([1.0] * 3, "2 joints")])
def test_bad_limits_are_refused(limit, message):
    with pytest.raises(InputError, match=message):
        EffortLimits(limit, 2)


def test_the_difference_at_a_switch_is_worked_off_at_the_rate():
    handover = Handover(100.0, 2)
    wanted = np.array([5.0, -3.0])
    handover.start(np.array([1.0, -3.05]), wanted)
    first = handover.shape(wanted, DT)
    assert np.allclose(first, [1.1, -3.0])
    tau = [first] + [handover.shape(wanted, DT) for _ in range(38)]
    assert handover.busy
    assert np.abs(np.diff(tau, axis=0)).max() <= 100.0 * DT + 1e-12
    assert np.array_equal(handover.shape(wanted, DT), wanted) and not handover.busy


def test_no_rate_means_a_step():
    handover = Handover(None, 2)
    handover.start(np.zeros(2), np.ones(2))
    assert not handover.busy and np.array_equal(handover.shape(np.ones(2), DT), np.ones(2))
    with pytest.raises(InputError, match="torque_rate_limit: .* positive"):
        Handover(0.0, 2)


def test_gravity_compensation_never_builds_up_from_zero(dynamics):
    controller = Controller(dynamics, "gravity_compensation", torque_rate_limit=1.0)
    assert np.abs(dynamics.gravity(Q)).min() > 1.0  # premise: at 1 N m/s it would take seconds
    assert np.allclose(controller.step(0.0, REST).efforts, dynamics.gravity(Q))


def test_activation_starts_from_gravity_without_an_impulse(dynamics):
    """Moving at activation: the law's braking torque is not switched on in one step, gravity is."""
    moving = State(Q, np.array([2.0, -3.0]))
    controller = Controller(dynamics, "computed_torque", torque_rate_limit=200.0)
    first, second = steps(controller, 2, moving)
    assert np.abs(first.wanted - dynamics.gravity(Q)).max() > 5.0  # premise: the law itself would jump
    assert np.abs(first.efforts - dynamics.gravity(Q)).max() <= 200.0 * DT
    natural = np.abs(second.wanted - first.wanted).max()
    assert np.abs(second.efforts - first.efforts).max() <= 200.0 * DT + natural + 1e-12
    assert np.allclose(first.reference.q, Q)  # and it starts from the measured state
    at_rest = Controller(dynamics, "computed_torque").step(0.0, REST)
    assert np.allclose(at_rest.efforts, dynamics.gravity(Q))


def test_switching_laws_makes_no_step_larger_than_the_rate(dynamics):
    """All pairs of laws, with a tracking error in the way; a static state, so that every change is the switch's."""
    rate = 300.0
    laws = ["gravity_compensation", "computed_torque", "pd_gravity", "impedance", "off"]
    for old in laws:
        for new in laws:
            if old == new:
                continue
            controller = Controller(dynamics, old, torque_rate_limit=rate, effort_limit=np.inf)
            steps(controller, 2)
            if controller.driving:
                controller.move_to(Q + [0.5, -0.5])
            before = steps(controller, 300, start=2 * DT)[-1]  # the reference runs away from the held state
            controller.select(new)
            after = steps(controller, 100, start=302 * DT)
            if old == "off":  # nothing was sent: gravity comes at once, the rest at the rate
                before.efforts = dynamics.gravity(Q)
            reference_step = [np.abs(b.wanted - a.wanted).max() for a, b in zip(after, after[1:])]
            assert np.abs(after[0].efforts - before.efforts).max() <= rate * DT + 1e-9, (old, new)
            for a, b, natural in zip(after, after[1:], reference_step):
                assert np.abs(b.efforts - a.efforts).max() <= rate * DT + natural + 1e-9, (old, new)
            if new != "off" and new != "gravity_compensation":
                assert controller.last.mode == "active"
            if new == "off":
                assert np.abs(after[-1].efforts).max() < np.abs(before.efforts).max()


def test_new_gains_come_in_bumplessly(dynamics):
    controller = Controller(dynamics, "computed_torque", torque_rate_limit=100.0, effort_limit=np.inf)
    steps(controller, 3)
    controller.move_to(Q + 0.5)
    for k in range(300):
        before = controller.step(3 * DT + k * DT, REST)
    controller.set_law("computed_torque", ComputedTorque(dynamics, 900.0, 60.0))
    after = controller.step(303 * DT, REST)
    assert np.abs(after.wanted - before.wanted).max() > 5.0
    assert np.abs(after.efforts - before.efforts).max() <= 100.0 * DT + 1e-9
    with pytest.raises(InputError, match="float is no Law"):
        controller.set_law("computed_torque", 3.0)


def test_the_clamped_effort_is_what_is_reported(dynamics):
    controller = Controller(dynamics, "gravity_compensation", effort_limit=[10.0, 30.0])
    output = controller.step(0.0, REST)
    assert output.wanted[0] > 10.0 and output.efforts[0] == 10.0
    assert output.saturated.tolist() == [True, False]


def test_nothing_winds_up_in_saturation(dynamics):
    """After seconds of saturation the law is what it would be without: no memory, no delay in leaving it."""
    controller = Controller(dynamics, "pd_gravity", effort_limit=[15.0, 5.0])
    steps(controller, 3)
    controller.move_to(Q - 1.0)
    for k in range(3000):
        output = controller.step(3 * DT + k * DT, REST)
    assert output.saturated.all()
    near = State(Q - 1.0, np.zeros(2))
    output = controller.step(3003 * DT, near)
    fresh = PDGravity(dynamics).efforts(0.0, near, output.reference)
    assert np.allclose(output.wanted, fresh) and np.allclose(output.efforts, np.clip(fresh, [-15.0, -5.0], [15.0, 5.0]))


def test_effort_to_command():
    convert = EffortToCommand([0.5, 2.0], [1.0, -1.0])
    assert np.allclose(convert(np.array([1.0, 4.0])), [2.0, -2.0])
    assert np.allclose(EffortToCommand.from_factors([2.0, -0.5], 2)(np.array([1.0, 4.0])), [2.0, -2.0])
    for bad in (lambda: EffortToCommand([0.0, 1.0]), lambda: EffortToCommand([1.0, 1.0], [1.0, 0.5]),
                lambda: EffortToCommand.from_factors([0.0, 1.0], 2),
                lambda: EffortToCommand.from_factors([1.0] * 3, 2)):
        with pytest.raises(InputError, match="effort_to_command"):
            bad()


def test_activation_while_moving_starts_at_the_measured_velocity(dynamics):
    """Taken over at 0.8 rad/s the reference moves on at that speed and comes to rest: no velocity error, no jerk."""
    moving = State(Q, np.array([0.8, -0.5]))
    controller = Controller(dynamics, "computed_torque", acceleration_limit=10.0)
    first = controller.step(0.0, moving)
    assert np.allclose(first.reference.qd, moving.qd) and np.allclose(first.reference.q, Q)
    later = controller.step(0.09, State(Q + 0.03, np.zeros(2)))
    assert np.allclose(later.reference.qd, 0.0)
    assert np.allclose(later.reference.q, Q + moving.qd * np.abs(moving.qd) / (2 * 10.0))  # v²/2a on from where it was
