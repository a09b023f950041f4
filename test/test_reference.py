"""References: trajectories as the joint_trajectory_controller means them, point to point, sweeps, paths of the tip."""
from dataclasses import replace

import numpy as np
import pytest
from conftest import REPOSITORY
from hypothesis import given, settings
from hypothesis import strategies as st

from twolink_dynamics import Dynamics, InputError, Reference, State, load_urdf
from twolink_dynamics.control import (
    Circle,
    Controller,
    FigureEight,
    Hold,
    JointTrajectory,
    Line,
    PointToPoint,
    Sequence,
    SineSweep,
    Stop,
    TrajectoryPoint,
)
from twolink_dynamics.control.point_to_point import move
from twolink_dynamics.control.reference import at_rest

NAMES = ["joint1", "joint2"]
STEP = 1e-5  # s, central differences of smooth curves: ε^⅓


def slope(source, t, h=STEP):
    """(q̇, q̈) by central differences of the positions and velocities that `sample` gives."""
    a, b = source.sample(t - h), source.sample(t + h)
    return (b.q - a.q) / (2 * h), (b.qd - a.qd) / (2 * h)


def consistent(source, times, tolerance=1e-5):
    for t in times:
        here = source.sample(t)
        v, a = slope(source, t)
        scale = 1.0 + np.abs(here.qdd).max()
        assert np.abs(v - here.qd).max() < tolerance * scale and np.abs(a - here.qdd).max() < 10 * tolerance * scale, t


def trajectory(arm, points, **options):
    options.setdefault("previous", at_rest([0.0, 0.0]))
    return JointTrajectory(arm, options.pop("names", NAMES), points, **options)


# -- joint trajectories ----------------------------------------------------------------------------------------------

def test_positions_only_give_a_quintic_through_the_waypoints(twolink):
    points = [(1.0, [0.5, -0.2]), (1.5, [0.9, 0.3]), (3.0, [0.1, 0.4])]
    path = trajectory(twolink, points, now=10.0, previous=at_rest([0.1, 0.0]))
    assert path.start == 10.0 and path.duration == 3.0
    for time, q in [(0.0, [0.1, 0.0]), *points]:
        assert np.allclose(path.sample(10.0 + time).q, q, atol=1e-12)
    consistent(path, np.linspace(10.06, 12.93, 37))
    for t in (10.0, 11.0, 11.5, 13.0):  # continuous to the acceleration, through every waypoint
        before, after = path.sample(t - 1e-9), path.sample(t + 1e-9)
        assert np.allclose(before.qd, after.qd, atol=1e-6) and np.allclose(before.qdd, after.qdd, atol=1e-5)
    end = path.sample(14.0)
    assert np.allclose(end.q, [0.1, 0.4]) and not end.qd.any() and not end.qdd.any()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(0.05, 3.0), st.floats(-2.0, 2.0)), min_size=1, max_size=6))
def test_positions_only_never_overshoot_the_waypoints(shared_arm, steps):
    times = np.cumsum([span for span, _ in steps])
    positions = [0.0, *(q for _, q in steps)]
    path = trajectory(shared_arm, [(t, [q, q]) for t, q in zip(times, positions[1:])])
    for i, (t0, t1) in enumerate(zip([0.0, *times], times)):
        inside = [path.sample(t).q[0] for t in np.linspace(t0, t1 - 1e-9, 25)]
        low, high = sorted(positions[i:i + 2])
        assert low - 1e-9 <= min(inside) and max(inside) <= high + 1e-9


@pytest.fixture(scope="module")
def shared_arm(twolink):
    """The shipped arm in a scope that hypothesis accepts."""
    return twolink


def test_with_velocities_cubic_hermite_with_accelerations_quintic(twolink):
    cubic = trajectory(twolink, [(0.0, [0, 0], [1, 0]), (1.0, [1, 1], [0.5, 0]), (2.0, [2, 0], [0, 0])])
    s = 0.3
    expected = (3 * s**2 - 2 * s**3) + (s - 2 * s**2 + s**3) * 1.0 + (s**3 - s**2) * 0.5  # Hermite basis
    assert np.isclose(cubic.sample(s).q[0], expected)
    assert np.allclose(cubic.sample(1.0).qd, [0.5, 0.0])
    assert not np.allclose(cubic.sample(1.0 - 1e-9).qdd, cubic.sample(1.0).qdd)  # a cubic's acceleration jumps
    quintic = trajectory(twolink, [(0.0, [0, 0], [1, 0], [2, 0]), (1.0, [1, 1], [0.5, 0], [-1, 1]),
                                   (2.0, [2, 0], [0, 0], [0, 0])])
    assert np.allclose(quintic.sample(1.0 - 1e-9).qdd, [-1, 1], atol=1e-6)
    assert np.allclose(quintic.sample(1.0).qdd, [-1, 1], atol=1e-6) and np.allclose(quintic.sample(0.0).qdd, [2, 0])
    for path in (cubic, quintic):
        consistent(path, [0.2, 0.7, 1.4])


def test_it_starts_from_where_the_reference_is_and_moves(twolink):
    """Replacement: position, velocity and acceleration go on without a jump."""
    first = trajectory(twolink, [(2.0, [1.0, -1.0])], now=0.0)
    second = trajectory(twolink, [(1.0, [0.0, 0.5])], now=1.0, previous=first)
    old, new = first.sample(1.0), second.sample(1.0)
    assert np.abs(old.qd).min() > 0.1  # premise: it moves
    assert np.allclose(old.q, new.q) and np.allclose(old.qd, new.qd) and np.allclose(old.qdd, new.qdd, atol=1e-9)
    assert np.allclose(second.sample(2.0).q, [0.0, 0.5])


def test_a_stamp_in_the_future_keeps_the_old_one_until_then(twolink):
    old = trajectory(twolink, [(4.0, [1.0, -1.0])], now=0.0)
    new = trajectory(twolink, [(1.0, [0.0, 0.0])], now=1.0, stamp=2.0, previous=old)
    assert np.allclose(new.sample(1.5).q, old.sample(1.5).q) and np.allclose(new.sample(2.0).qd, old.sample(2.0).qd)
    assert np.allclose(new.sample(3.0).q, [0.0, 0.0]) and new.start == 2.0
    new.release(1.5)
    assert np.allclose(new.sample(1.5).q, old.sample(1.5).q)  # not forgotten before its time


def test_of_a_start_in_the_past_only_what_is_ahead_counts(twolink):
    points = [(1.0, [5.0, 5.0]), (2.0, [1.0, 0.0]), (3.0, [0.5, 0.5])]
    path = trajectory(twolink, points, now=11.5, stamp=10.0, previous=at_rest([0.2, 0.2]))
    assert np.allclose(path.sample(11.5).q, [0.2, 0.2]) and np.allclose(path.sample(12.0).q, [1.0, 0.0])
    assert max(path.sample(t).q[1] for t in np.linspace(11.5, 13.0, 50)) < 0.6  # the first point is gone
    for now in (13.0, 13.5):
        with pytest.raises(InputError, match="in the past"):
            trajectory(twolink, points, now=now, stamp=10.0)
    on_time = trajectory(twolink, points, now=12.0, stamp=10.0, previous=at_rest([0.2, 0.2]))
    assert np.allclose(on_time.sample(12.0).q, [0.2, 0.2])  # a point due this very moment is in the past too


def test_a_first_point_at_time_zero_is_where_it_jumps_to(twolink):
    path = trajectory(twolink, [(0.0, [0.3, 0.4]), (1.0, [0.5, 0.6])])
    assert np.allclose(path.sample(0.0).q, [0.3, 0.4])
    single = trajectory(twolink, [(0.0, [0.3, 0.4])], now=2.0)
    assert np.allclose(single.sample(2.0).q, [0.3, 0.4]) and np.allclose(single.sample(9.0).q, [0.3, 0.4])


def test_names_come_in_any_order_and_partial_goals_hold_the_rest(twolink):
    path = trajectory(twolink, [(1.0, [0.1, 0.2])], names=["joint2", "joint1"])
    assert np.allclose(path.sample(1.0).q, [0.2, 0.1])
    start = Reference(np.array([0.3, 0.4]), np.array([0.0, 1.0]), np.zeros(2))
    partial = trajectory(twolink, [(1.0, [0.9])], names=["joint1"], previous=start, allow_partial=True)
    assert np.allclose(partial.sample(1.0).q, [0.9, 0.4]) and np.allclose(partial.sample(0.0).qd, [0.0, 1.0])


def test_continuous_joints_take_the_short_way(twolink):
    arm = replace(twolink, joints=(replace(twolink.joints[0], kind="continuous"), twolink.joints[1]))
    path = trajectory(arm, [(1.0, [-3.1, -2.0])], previous=at_rest([3.1, 2.0]))
    assert np.allclose(path.sample(1.0).q, [2 * np.pi - 3.1, -2.0])
    assert max(abs(path.sample(t).q[0] - 3.1) for t in np.linspace(0, 1, 20)) < 0.09
    assert np.allclose(PointToPoint([3.1, 2.0], [-3.1, -2.0], 1.0, 1.0, arm=arm).delta, [2 * np.pi - 6.2, -4.0])


def test_effort_is_ignored_or_added(twolink):
    points = [TrajectoryPoint(1.0, [0.1, 0.2], effort=[2.0, 4.0]), TrajectoryPoint(2.0, [0.1, 0.2], effort=[4.0, 0.0])]
    ignored = trajectory(twolink, points)
    assert ignored.ignored_effort and ignored.feedforward(1.5) is None
    added = trajectory(twolink, points, effort="add")
    assert np.allclose(added.feedforward(1.5), [3.0, 2.0]) and added.feedforward(2.5) is None
    controller = Controller(Dynamics(twolink), "computed_torque", effort_limit=np.inf, state_timeout=5.0)
    state = State(np.array([0.1, 0.2]), np.zeros(2))
    controller.step(0.0, state)
    controller.trajectory(NAMES, [TrajectoryPoint(0.0, [0.1, 0.2], effort=[2.0, 4.0]),
                                  TrajectoryPoint(2.0, [0.1, 0.2], effort=[2.0, 4.0])], effort="add")
    output = controller.step(1.0, state)
    assert np.allclose(output.efforts, controller.dynamics.gravity(state.q) + [2.0, 4.0])
    assert np.allclose(controller.terms().feedforward, [2.0, 4.0])


def test_limits_are_warned_about_by_name(twolink):
    path = trajectory(twolink, [(0.1, [0.0, 2.0]), (0.2, [4.0, 2.0])])
    assert any("joint 'joint1' reaches" in text and "rad/s" in text for text in path.warnings)
    assert any("joint 'joint1' is sent from 0 to 4" in text for text in path.warnings)
    assert trajectory(twolink, [(2.0, [0.1, 0.1])]).warnings == ()


@pytest.mark.parametrize("points, options, message", [
    ([(1.0, [0, 0])], dict(names=["joint1", "elbow"]), "no joint 'elbow'; the joints are joint1, joint2"),
    ([(1.0, [0, 0])], dict(names=["joint1", "joint1"]), "'joint1' is named 2 times"),
    ([(1.0, [0])], dict(names=["joint2"]), "'joint1' is missing, and partial"),
    ([(1.0, [])], dict(names=[], allow_partial=True), "names no joint"),
    ([], {}, "no points"),
    ([(1.0, [0, 0, 0])], {}, "point 0: 3 positions for 2 joints"),
    ([(1.0, [0, 0], [0])], {}, "point 0: 1 velocities for 2 joints"),
    ([(1.0, [0, float("nan")])], {}, r"point 0: positions \[0.0, nan\] are not finite"),
    ([(1.0, ["a", 0])], {}, "point 0: positions are not numbers"),
    ([(1.0, [], [1, 1])], {}, "point 0: has no positions"),
    ([(1.0, [0, 0], [], [1, 1])], {}, "accelerations without velocities"),
    ([(1.0, [0, 0]), (1.0, [1, 1])], {}, "point 1: time_from_start 1 s"),
    ([(-1.0, [0, 0])], {}, "point 0: time_from_start -1 s"),
    ([(float("nan"), [0, 0])], {}, "time_from_start nan"),
    ([(1.0, [0, 0], [0, 0.5])], {}, "'joint2' still moves at the last point"),
    ([(1.0, [0, 0])], dict(stamp=float("nan")), "stamp nan"),
    ([(1.0, [0, 0])], dict(effort="maybe"), "effort 'maybe' is none of ignore, add"),
    ([(1.0, [0, 0])], dict(previous=None), "without a current reference"),
])
def test_refusals_are_one_line_and_name_the_offender(twolink, points, options, message):
    with pytest.raises(InputError, match=message) as caught:
        trajectory(twolink, points, **options)
    assert "\n" not in str(caught.value)


def test_a_moving_end_only_where_allowed_and_then_it_stands(twolink):
    path = trajectory(twolink, [(1.0, [1, 1], [1, 0])], allow_moving_end=True)
    assert np.allclose(path.sample(1.0 - 1e-9).qd, [1, 0], atol=1e-6) and not path.sample(1.0).qd.any()


def test_an_empty_trajectory_holds(twolink):
    controller = Controller(Dynamics(twolink), "computed_torque", acceleration_limit=5.0, state_timeout=5.0)
    controller.step(0.0, State(np.zeros(2), np.zeros(2)))
    controller.trajectory(NAMES, [(1.0, [1.0, -1.0])])
    controller.step(0.5, State(np.zeros(2), np.zeros(2)))
    speed = controller.reference().qd
    stop = controller.trajectory([], [])
    assert np.abs(speed).min() > 1.0 and np.allclose(stop.sample(0.5).qd, speed)  # no jump: it decelerates
    assert not stop.sample(0.5 + stop.duration).qd.any()
    later = stop.sample(10.0)
    assert np.allclose(later.q, stop.sample(0.5).q + speed * np.abs(speed) / (2 * 5.0))


# -- other sources ----------------------------------------------------------------------------------------------------

def test_trapezoid_is_time_optimal_and_synchronised():
    q0, q1 = np.array([0.0, 1.0, 2.0]), np.array([2.0, 0.9, 2.0])
    v, a = np.array([1.0, 2.0, 1.0]), np.array([4.0, 0.2, 1.0])
    path = PointToPoint(q0, q1, v, a, start=5.0)
    each = [2.0 / 1.0 + 1.0 / 4.0, 2.0 * np.sqrt(0.1 / 0.2), 0.0]  # trapezoid; triangle; already there
    assert np.isclose(path.duration, max(each))
    times = 5.0 + np.linspace(0.0, path.duration, 400)
    samples = [path.sample(t) for t in times]
    speeds = np.abs([s.qd for s in samples])
    assert (speeds <= v + 1e-9).all() and (np.abs([s.qdd for s in samples]) <= a + 1e-9).all()
    assert np.isclose(speeds[:, 0].max(), 1.0)  # the slowest joint is at its limit
    assert np.allclose(samples[0].q, q0) and np.allclose(samples[-1].q, q1) and not samples[-1].qd.any()
    assert np.abs(samples[-2].qd[:2]).min() > 0.0  # all arrive together
    for t in times[5:-5:25]:
        assert np.allclose(slope(path, t)[0], path.sample(t).qd, atol=1e-4)


def test_quintic_point_to_point_keeps_its_limits_and_uses_them():
    for v, a in ((1.0, 50.0), (50.0, 2.0)):
        path = PointToPoint([0.0, 0.5], [1.0, 0.0], v, a, profile="quintic")
        samples = [path.sample(t) for t in np.linspace(0.0, path.duration, 2001)]
        speed = np.abs([s.qd for s in samples]).max()
        acceleration = np.abs([s.qdd for s in samples]).max()
        assert speed <= v * (1 + 1e-9) and acceleration <= a * (1 + 1e-9)
        assert speed > 0.999 * v or acceleration > 0.999 * a
        consistent(path, np.linspace(0.1, 0.9, 9) * path.duration)
    still = PointToPoint([1.0, 1.0], [1.0, 1.0], 1.0, 1.0)
    assert still.duration == 0.0 and np.allclose(still.sample(0.0).q, 1.0) and not still.sample(0.0).qd.any()


def test_move_goes_on_smoothly_from_a_moving_reference():
    start = Reference(np.array([0.2, -0.3]), np.array([1.5, -0.5]), np.array([3.0, 0.0]))
    path = move(start, [1.0, 1.0], 2.0, 10.0, start=4.0)
    assert np.allclose(path.sample(4.0).qd, start.qd) and np.allclose(path.sample(4.0).qdd, start.qdd)
    end = path.sample(4.0 + path.duration)
    assert np.allclose(end.q, [1.0, 1.0]) and not end.qd.any()
    speed, acceleration = path.peaks()
    assert (speed <= 2.01).all() and (acceleration <= 10.02).all()
    assert acceleration.max() > 8.5 or speed.max() > 1.8  # not slower than needed


@pytest.mark.parametrize("kind", ["linear", "log"])
def test_sine_sweep(kind):
    sweep = SineSweep([0.2, -0.3], [0.3, 0.1], 0.5, 4.0, 6.0, kind=kind, start=1.0)
    for t in (1.0, 7.0, 0.0, 9.0):
        here = sweep.sample(t)
        assert np.allclose(here.q, [0.2, -0.3]) and np.allclose(here.qd, 0.0) and np.allclose(here.qdd, 0.0)
    consistent(sweep, np.linspace(1.05, 6.95, 41), 2e-5)
    q = np.array([sweep.sample(t).q[0] for t in np.linspace(1.0, 7.0, 3001)]) - 0.2
    crossings = np.linspace(1.0, 7.0, 3001)[1:][(q[1:] * q[:-1]) < 0.0]
    assert np.isclose(np.abs(q).max(), 0.3, rtol=0.01)
    gaps = np.diff(crossings)
    assert gaps[0] > 3.0 * gaps[-1]  # the frequency rises
    cycles = (0.5 + 4.0) / 2 * 6.0 if kind == "linear" else (4.0 - 0.5) * 6.0 / np.log(8.0)
    assert abs(len(crossings) - 2.0 * cycles) <= 2


def test_stop_hold_and_sequence():
    moving = Reference(np.array([0.0, 1.0]), np.array([2.0, -1.0]), np.zeros(2))
    stop = Stop(moving, 4.0, start=1.0)
    assert np.isclose(stop.duration, 0.5) and np.allclose(stop.sample(1.0).qd, [2.0, -1.0])
    assert np.allclose(stop.sample(3.0).q, [0.5, 1.0 - 0.125]) and not stop.sample(3.0).qd.any()
    consistent(stop, [1.1, 1.2])
    assert np.allclose(Hold([0.1, 0.2]).sample(3.0).q, [0.1, 0.2])
    there = PointToPoint([0.0, 0.0], [1.0, 0.0], 1.0, 2.0)
    back = PointToPoint([1.0, 0.0], [0.0, 0.0], 1.0, 2.0, start=7.0)
    both = Sequence(there, back, start=3.0)
    assert np.isclose(both.duration, there.duration + back.duration)
    assert np.allclose(both.sample(3.0 + there.duration).q, [1.0, 0.0], atol=1e-12)
    assert np.allclose(both.sample(3.0 + both.duration + 1.0).q, [0.0, 0.0])
    assert np.allclose(both.sample(3.0 + there.duration + 0.3).q, back.sample(7.3).q)


# -- paths of the tip -------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def dynamics(twolink):
    return Dynamics(twolink)


def paths(dynamics):
    q0 = np.array([0.4, 1.6])
    tip = dynamics.tip_pose(q0)[1]
    yield Circle(dynamics, q0, 0.06, 1.5, laps=2, toward=[-1.0, 0.0, 0.0], start=2.0)
    yield Line(dynamics, q0, tip + [0.1, 0.0, -0.05], 1.5, start=2.0)
    yield FigureEight(dynamics, q0, 0.05, 2.0, start=2.0)


def test_the_tip_follows_its_path(dynamics):
    for path in paths(dynamics):
        times = path.start + np.linspace(0.0, path.duration, 301)
        tips = np.array([dynamics.tip_pose(path.sample(t).q)[1] for t in times])
        wanted = np.array([path.tip(t)[0] for t in times])
        size = np.ptp(wanted, axis=0).max()
        assert size > 0.05 and np.abs(tips - wanted).max() < 1e-5 * size
        for t in (times[0], times[-1]):  # at rest at both ends, where it began
            assert np.abs(path.sample(t).qd).max() < 1e-9
        assert np.allclose(tips[-1], tips[0], atol=1e-8)
        consistent(path, times[20:-20:20], 1e-4)
        middle = path.start + 0.4 * path.duration
        v = dynamics.jacobian(path.sample(middle).q)[:3] @ path.sample(middle).qd
        assert np.allclose(v, path.tip(middle)[1], atol=1e-4) and np.linalg.norm(v) > 0.02


def test_shapes_are_what_they_are_called(dynamics):
    circle, line, eight = paths(dynamics)
    times = np.linspace(0.0, 1.0, 500)

    def points(path):
        return np.array([path.tip(path.start + t * path.duration)[0] for t in times])
    center = circle.tip(circle.start)[0] + [-0.06, 0.0, 0.0]
    assert np.allclose(np.linalg.norm(points(circle) - center, axis=1), 0.06, atol=1e-12)
    p = points(line)
    d = p[-1] - p
    assert np.linalg.matrix_rank(d, tol=1e-9) == 1
    assert np.isclose(np.linalg.norm(d, axis=1).max(), np.hypot(0.1, 0.05), rtol=1e-4)
    p = points(eight) - eight.tip(eight.start)[0]
    x, z = p[:, 0] / 0.05, p[:, 2] / 0.05
    assert np.allclose(z**2, x**2 * (1.0 - x**2), atol=1e-9)  # the lemniscate of Gerono


def test_six_axes_keep_the_tips_orientation():
    model = Dynamics(load_urdf(REPOSITORY / "urdf" / "sixlink.urdf"))
    q0 = np.array([0.3, -0.9, 1.2, 0.4, 0.8, -0.3])
    path = Circle(model, q0, 0.05, 1.0, nodes=64, toward=[0.0, 0.0, -1.0], sideways=[0.0, 1.0, 0.0])
    R0, _ = model.tip_pose(q0)
    for t in np.linspace(0.0, path.duration, 15):
        R, p = model.tip_pose(path.sample(t).q)
        assert np.abs(p - path.tip(t)[0]).max() < 1e-6 and np.abs(R - R0).max() < 1e-6


@pytest.mark.parametrize("build, message", [
    (lambda d: Circle(d, [0.4, 1.6], 0.5, 1.0), r"circle: point \(.*\) is out of the arm's reach by"),
    (lambda d: Line(d, [0.4, 1.6], [2.0, 0.0, 0.0], 1.0), "line: point .* out of the arm's reach"),
    (lambda d: Line(d, [0.4, 1.6], [0.0, 0.4, 0.3], 1.0), "out of the arm's reach"),  # out of the plane
    (lambda d: Circle(d, [0.4, 1.6], -0.1, 1.0), "circle: radius -0.1 must be positive"),
    (lambda d: Circle(d, [0.4, 1.6], 0.1, 0.0), "circle: period 0 must be positive"),
    (lambda d: Circle(d, [0.4, 1.6], 0.1, 1.0, toward=[1, 0, 0], sideways=[2, 0, 0]), "sideways are parallel"),
    (lambda d: Circle(d, [0.4, 1.6], 0.05, 1.0, keep_orientation=True), "2 joints cannot keep the tip's orientation"),
    (lambda d: FigureEight(d, [0.4, np.nan], 0.1, 1.0), "figure-eight: q0"),
    (lambda d: PointToPoint([0], [1], 1.0, 0.0), "acceleration_limit: .* positive"),
    (lambda d: PointToPoint([0], [1], 1.0, 1.0, profile="jerk"), "profile 'jerk' is none of trapezoid, quintic"),
    (lambda d: PointToPoint([0], [np.inf], 1.0, 1.0), "must be finite"),
    (lambda d: SineSweep([0], [1], 0.0, 1.0, 5.0), "sine sweep: f0 0 must be positive"),
    (lambda d: SineSweep([0], [1], 1.0, 2.0, 5.0, kind="square"), "kind 'square'"),
    (lambda d: Stop(at_rest([0.0]), 0.0), "deceleration .* positive"),
    (lambda d: Sequence(), "at least one source"),
])
def test_impossible_references_are_refused_in_one_line(dynamics, build, message):
    with pytest.raises(InputError, match=message) as caught:
        build(dynamics)
    assert "\n" not in str(caught.value)


def test_a_long_trajectory_is_read_as_one_table(twolink):
    """Ten thousand points agree with the same points sent in two halves, and only the offender is named."""
    t = np.arange(1, 10_001) * 1e-2
    points = [TrajectoryPoint(float(s), [np.sin(s), np.cos(s)], [np.cos(s), -np.sin(s)]) for s in t]
    rest = Reference(np.array([0.0, 1.0]), np.array([1.0, 0.0]), np.zeros(2))
    whole = JointTrajectory(twolink, twolink.joint_names, points, now=0.0, previous=rest, allow_moving_end=True)
    half = JointTrajectory(twolink, twolink.joint_names, points[:5000], now=0.0, previous=rest, allow_moving_end=True)
    for s in (0.005, 17.3, 49.995):
        np.testing.assert_array_equal(whole.sample(s).q, half.sample(s).q)
        np.testing.assert_allclose(whole.sample(s).q, [np.sin(s), np.cos(s)], atol=1e-8)
    points[7777] = points[7777]._replace(velocities=[0.0, float("nan")])
    with pytest.raises(InputError, match="point 7777: velocities"):
        JointTrajectory(twolink, twolink.joint_names, points, now=0.0, previous=rest, allow_moving_end=True)
