"""States that cannot be trusted, clocks that jump, loops that are too slow; and what the controller does then."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twolink_dynamics import Dynamics, InputError, State
from twolink_dynamics.control import ComputedTorque, Controller, Impedance, Supervisor

Q = np.array([0.4, 0.9])
REST = State(Q, np.zeros(2))
DT = 1e-3


@pytest.fixture(scope="module")
def dynamics(twolink):
    return Dynamics(twolink)


def running(dynamics, law="computed_torque", **options):
    controller = Controller(dynamics, law, **options)
    for k in range(5):
        controller.step(1.0 + k * DT, REST)
    controller.notices.clear()
    return controller  # the last state is at 1.004


def texts(controller):
    return [text for _, text in controller.notices]


@pytest.mark.parametrize("bad", [State(np.array([np.nan, 0.0]), np.zeros(2)), State(Q, np.array([0.0, np.inf])),
                                 State(np.array([np.inf, -np.inf]), np.zeros(2))])
@pytest.mark.parametrize("mode, expected", [("zero", 0.0), ("gravity_compensation", None), ("brake", 0.0)])
def test_a_state_that_is_not_finite_leads_to_the_safe_mode(dynamics, bad, mode, expected):
    controller = running(dynamics, safe_mode=mode)
    output = controller.step(1.005, bad)
    assert output.mode == "safe" and "joint" in output.fault
    assert np.allclose(output.efforts, dynamics.gravity(Q) if expected is None else expected)
    assert output.send is (mode != "brake")
    for _ in range(5):
        controller.step(1.006, bad)
    assert len(controller.notices) == 1 and controller.notices[0][0] == "error"  # said once


def test_the_fault_names_joint_and_value(dynamics):
    output = running(dynamics).step(1.005, State(Q, np.array([0.0, np.nan])))
    assert output.fault == "velocity of joint 'joint2' is nan"


def test_silence_leads_to_the_safe_mode_after_the_timeout(dynamics):
    controller = running(dynamics, state_timeout=0.05, safe_mode="zero")
    held = controller.last
    assert controller.step(1.05) is held  # the last state still holds
    output = controller.step(1.06)
    assert output.mode == "safe" and not output.efforts.any() and "no joint state for 0.056 s" in output.fault


def test_an_old_state_is_not_used(dynamics):
    assert running(dynamics, state_timeout=0.05).step(1.005, REST, age=0.06).mode == "safe"
    assert running(dynamics, state_timeout=0.05).step(1.005, REST, age=0.04).mode == "active"
    assert running(dynamics).step(1.005, REST, age=np.nan).mode == "safe"


def test_before_the_first_state_nothing_is_sent(dynamics):
    controller = Controller(dynamics, "computed_torque")
    for output in (controller.step(0.0), controller.step(0.1, State(Q * np.nan, Q))):
        assert output.mode == "waiting" and not output.send and not output.efforts.any()
    with pytest.raises(InputError, match="refused: .* 'joint1' is nan"):
        controller.move_to(Q)


def test_a_short_gap_goes_on_with_the_reference_and_a_long_one_starts_anew(dynamics):
    controller = running(dynamics, state_timeout=0.1)
    source = controller.move_to(Q + 0.5)
    controller.step(1.005, State(Q * np.nan, Q))
    assert controller.step(1.006, REST).mode == "active" and controller.source is source
    assert "joint states are good again" in texts(controller)
    controller.step(1.3)
    assert controller.last.mode == "safe"
    moved = State(Q + 0.2, np.zeros(2))
    output = controller.step(1.4, moved)  # elsewhere: without an impulse from where it is now
    assert output.mode == "active" and controller.source is not source
    assert np.allclose(output.reference.q, moved.q) and np.allclose(output.efforts, dynamics.gravity(moved.q))


def test_a_gap_without_a_watchdog_starts_anew_and_says_so(dynamics):
    controller = running(dynamics)
    controller.move_to(Q + 0.5)
    assert np.allclose(controller.step(2.0, REST).reference.q, Q)
    assert texts(controller) == ["no joint state for 0.996 s: starting anew from the measured state"]


def test_the_callers_arrays_are_its_own(dynamics):
    controller = running(dynamics)
    q, qd = Q.copy(), np.zeros(2)
    controller.step(1.005, (q, qd))
    q[:] = np.nan  # the reader's buffer is used again
    assert np.allclose(controller.step(1.006, (q, qd)).efforts, dynamics.gravity(Q))


def test_a_paused_clock_pauses_the_reference(dynamics):
    """A simulator stands still: stamps stop, the watchdog acts, and on resuming the trajectory goes on where it was."""
    controller = running(dynamics)
    trajectory = controller.trajectory(["joint1", "joint2"], [(1.0, Q + 0.3)])
    controller.step(1.204, REST), controller.step(1.205, REST)
    controller.step(1.205 + 5.0)  # five seconds of wall clock on top of the last stamp
    assert controller.last.mode == "safe"
    output = controller.step(1.206, REST)
    assert controller.source is not None and output.mode == "active"
    assert np.allclose(output.reference.q, controller.source.sample(1.206).q)
    assert trajectory.start == pytest.approx(1.004)


def test_time_that_goes_back_resets_and_says_so(dynamics):
    controller = running(dynamics)
    controller.move_to(Q + 0.5)
    output = controller.step(0.2, REST)
    assert output.mode == "active" and np.allclose(output.reference.q, Q)
    assert np.allclose(output.efforts, dynamics.gravity(Q))
    assert any("time went back" in text for text in texts(controller))


def test_disabled_sends_one_zero_and_then_nothing(dynamics):
    controller = running(dynamics)
    controller.enable(False)
    first, second = controller.step(1.005, REST), controller.step(1.006, REST)
    assert first.send and not first.efforts.any() and not second.send and second.mode == "disabled"
    with pytest.raises(InputError, match="the controller is disabled"):
        controller.hold()
    controller.enable(True)
    moved = State(Q + 0.3, np.zeros(2))
    output = controller.step(1.007, moved)
    assert output.send and np.allclose(output.efforts, dynamics.gravity(moved.q))
    assert not Controller(dynamics, enabled=False).step(0.0, REST).send  # disabled at start: not even one zero


def test_references_are_refused_where_nothing_would_follow_them(dynamics):
    with pytest.raises(InputError, match="'gravity_compensation' follows no reference"):
        running(dynamics, "gravity_compensation").move_to(Q)
    with pytest.raises(InputError, match="'off' follows no reference"):
        running(dynamics, "off").move_to(Q)
    with pytest.raises(InputError, match="controller 'lqr' is none of off, gravity_compensation"):
        running(dynamics).select("lqr")
    with pytest.raises(InputError, match="one finite position"):
        running(dynamics).move_to([0.0, np.nan])


def test_a_law_that_cannot_run_is_not_selected(dynamics):
    controller = running(dynamics)
    controller.set_law("impedance", Impedance(dynamics, 400.0, desired_inertia=3.0))
    with pytest.raises(InputError, match="measured tip force"):
        controller.select("impedance")
    assert controller.law == "computed_torque"


def test_a_law_that_gives_nonsense_ends_in_the_safe_mode(dynamics):
    controller = running(dynamics)
    controller.laws["computed_torque"].residual = lambda q, qd, qdd: np.array([np.nan, 0.0])
    for k in range(4):
        output = controller.step(1.005 + k * DT, REST)
        assert output.mode == "safe" and np.allclose(output.efforts, dynamics.gravity(Q))
    assert "gave" in output.fault and len(controller.notices) == 1
    assert controller.efforts_of("computed_torque") is None
    controller.laws["computed_torque"].residual = None
    assert controller.step(1.01, REST).mode == "active"


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.floats(allow_nan=True, allow_infinity=True, width=64),
                          st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=4, max_size=4),
                          st.booleans()), min_size=1, max_size=8),
       st.sampled_from(["gravity_compensation", "computed_torque", "pd_gravity", "impedance"]))
def test_only_finite_efforts_leave_whatever_comes_in(shared_dynamics, inputs, law):
    controller = Controller(shared_dynamics, law)
    controller.step(0.0, REST)
    with np.errstate(all="ignore"):
        for t, numbers, given_state in inputs:
            state = State(np.array(numbers[:2]), np.array(numbers[2:])) if given_state else None
            output = controller.step(t, state)
            assert np.isfinite(output.efforts).all()
            assert (np.abs(output.efforts) <= shared_dynamics.arm.effort_limit).all()


@pytest.fixture(scope="module")
def shared_dynamics(twolink):
    return Dynamics(twolink)


def test_gains_too_fast_for_the_loop_are_warned_about(dynamics):
    def warnings(dt, kd, age=0.0):
        controller = Controller(dynamics, "computed_torque", {"computed_torque": ComputedTorque(dynamics, 100.0, kd)})
        for k in range(int(3.0 / dt)):
            controller.step(k * dt, REST, age=age)
        return [text for text in texts(controller) if "kd (dt + age)" in text]

    assert not warnings(0.02, 20.0) and not warnings(0.01, 20.0, age=0.01)
    assert len(warnings(0.03, 20.0)) == 1  # said once, not every second
    assert len(warnings(0.01, 20.0, age=0.02)) == 1  # the same without the delay is fine


def test_wrong_shapes_and_options_are_refused(dynamics, twolink):
    with pytest.raises(InputError, match=r"q has shape \(3,\)"):
        running(dynamics).step(2.0, State(np.zeros(3), np.zeros(2)))
    with pytest.raises(InputError, match="safe_mode 'panic' is none of zero"):
        Supervisor(twolink, safe_mode="panic")
    with pytest.raises(InputError, match="state_timeout: 0 s"):
        Supervisor(twolink, state_timeout=0.0)


def test_terms_and_other_laws_for_whoever_looks(dynamics):
    controller = running(dynamics)
    state = State(Q + 0.01, np.array([0.1, -0.2]))
    output = controller.step(1.005, state)
    assert np.allclose(controller.terms().total, output.wanted)
    assert np.allclose(controller.efforts_of("gravity_compensation"), dynamics.gravity(state.q))
    assert np.isfinite(controller.efforts_of("impedance")).all()
    assert Controller(dynamics).terms() is None


def test_the_loop_closes(dynamics, twolink):
    """Controller and simulated arm together: a move arrives, and only finite, limited torques were sent."""
    from twolink_dynamics.simulation import Simulation
    simulation = Simulation(twolink, dt=2e-3, q=Q)
    controller = Controller(dynamics, "computed_torque")
    controller.step(0.0, State(simulation.q, simulation.qd))
    source = controller.move_to(Q + [0.4, -0.6])
    for _ in range(int((source.duration + 0.3) / 2e-3)):
        simulation.step(controller.step(simulation.t, State(simulation.q, simulation.qd)).efforts)
    assert np.abs(simulation.q - Q - [0.4, -0.6]).max() < 1e-3
