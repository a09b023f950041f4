"""The closed form: its textbook case, its general case, and a plain refusal of every other arm."""
from dataclasses import replace

import numpy as np
import pytest
from arms import build_arm, random_state
from corpus import mini, shipped

from twolink_dynamics import ModelError, newton_euler, planar
from twolink_dynamics.arm import Joint, make_pose
from twolink_dynamics.kinematics import rotation_about
from twolink_dynamics.planar import TwoLinkParameters

ROUNDING = 1e-12


def relative(ours, theirs):
    return np.abs(np.asarray(ours) - theirs).max() / max(1.0, np.abs(theirs).max())


def test_named_quantities_of_the_shipped_arm():
    p = TwoLinkParameters.from_arm(shipped("twolink"))
    t = planar.terms(p, np.radians(30.0), np.radians(45.0))
    assert (t.M11, t.M12, t.M22) == pytest.approx((1.1395, 0.2481, 0.1067), abs=5e-5)
    assert t.b == pytest.approx(0.14142, abs=5e-6)  # β s2
    assert (t.g1, t.g2) == pytest.approx((15.8831, 1.0156), abs=5e-5)


def turned(arm, R):
    """The arm with its world turned: mount and gravity together, so that nothing but the root's axes changes."""
    first = arm.joints[0]
    moved = replace(first, origin=make_pose(R @ first.origin.rotation, R @ first.origin.translation))
    return replace(arm, joints=(moved, *arm.joints[1:]), gravity=R @ arm.gravity)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["twolink", "awkward", "four_bar"])
def test_arbitrary_mounts_gravity_and_rotors(name, seed):
    rng = np.random.default_rng(seed)
    axis = rng.normal(size=3)
    arm = turned(shipped(name), rotation_about(axis / np.linalg.norm(axis), rng.uniform(0, 3)))
    arm = arm.with_gravity(rng.normal(size=3) * 5.0).with_joints(
        rotor_inertia=rng.uniform(0, 1e-3, 2), gear_ratio=rng.uniform(-20, 20, 2), rotor_coupling=bool(seed % 2))
    p = TwoLinkParameters.from_arm(arm)
    q, qd, qdd = random_state(arm, seed, (8,))
    assert relative(planar.inverse_dynamics(p, q, qd, qdd), newton_euler.inverse_dynamics(arm, q, qd, qdd)) < ROUNDING
    assert relative(planar.mass_matrix(p, q), newton_euler.mass_matrix(arm, q)) < ROUNDING
    assert relative(planar.coriolis_matrix(p, q, qd), newton_euler.coriolis_matrix(arm, q, qd)) < ROUNDING
    assert relative(planar.energy(p, q, qd), newton_euler.energy(arm, q, qd)) < ROUNDING


def test_without_gravity_in_the_plane():
    for gravity in ((0.0, 0.0, 0.0), (0.0, -9.81, 0.0)):  # the second along the axes: it does no work
        arm = shipped("twolink").with_gravity(gravity)
        p = TwoLinkParameters.from_arm(arm)
        assert p.g0 == 0.0 and not planar.gravity_torque(p, [0.3, 0.4]).any()
        q, qd, qdd = random_state(arm, 1)
        tau = newton_euler.inverse_dynamics(arm, q, qd, qdd)
        assert relative(planar.inverse_dynamics(p, q, qd, qdd), tau) < ROUNDING
        assert relative(planar.energy(p, q, qd), newton_euler.energy(arm, q, qd)) < ROUNDING


def test_coaxial_joints_and_a_tip_on_the_axis():
    two = shipped("twolink")
    elbow = replace(two.joints[1], origin=make_pose())
    arm = replace(two, joints=(two.joints[0], elbow), tip="link2")
    p = TwoLinkParameters.from_arm(arm)
    assert p.L1 == 0.0 and planar.beta(p) == 0.0
    q, qd, qdd = random_state(arm, 1)
    assert relative(planar.inverse_dynamics(p, q, qd, qdd), newton_euler.inverse_dynamics(arm, q, qd, qdd)) < ROUNDING


@pytest.mark.parametrize("arm, word", [
    (lambda: shipped("sixlink"), "6 joints"), (lambda: mini("only_one_moving_joint"), "1 joints"),
    (lambda: mini("mimic_elbow"), "2 joints|exactly two"), (lambda: mini("prismatic_second"), "prismatic"),
    (lambda: mini("products_of_inertia"), "not parallel .*90 deg"),
    (lambda: build_arm(1, ("revolute", "revolute"), (-1, -1)), "hangs on the root"),
])
def test_any_other_arm_is_refused_with_the_reason(arm, word):
    with pytest.raises(ModelError, match=word) as caught:
        TwoLinkParameters.from_arm(arm())
    assert len(str(caught.value).splitlines()) == 1


def test_elbow_that_turns_the_other_way():
    two = shipped("twolink")
    flipped = replace(two, joints=(two.joints[0], replace(two.joints[1], axis=-two.joints[1].axis)))
    p = TwoLinkParameters.from_arm(flipped)
    assert isinstance(flipped.joints[1], Joint) and p.elbow == -1.0
    q, qd, qdd = random_state(two, 2)
    mirror = np.array([1.0, -1.0])
    straight = planar.inverse_dynamics(TwoLinkParameters.from_arm(two), q, qd, qdd)
    tau = planar.inverse_dynamics(p, mirror * q, mirror * qd, mirror * qdd)
    assert tau == pytest.approx(mirror * straight, abs=1e-13)
