"""The immutable arm: what it refuses, what its variations change, and that nothing in it can be written to."""
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from corpus import mini, shipped

from twolink_dynamics import Arm, Dynamics, InputError, Joint, Link, ModelError
from twolink_dynamics.arm import Frame, make_pose
from twolink_dynamics.kinematics import weightless_coordinate

EXACT = 1e-13


@pytest.fixture(scope="module")
def arm():
    return shipped("twolink")


def test_nothing_can_be_written(arm):
    for array in (arm.gravity, arm.lower, arm.damping, arm.continuous, arm.prismatic, arm.links[0].com,
                  arm.links[0].inertia, arm.joints[0].axis, arm.joints[0].origin.rotation):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    with pytest.raises(FrozenInstanceError):
        arm.name = "other"


@pytest.mark.parametrize("mass, com, inertia, word", [
    (-1.0, (0, 0, 0), np.eye(3), "mass"), (np.nan, (0, 0, 0), np.eye(3), "mass"),
    ("a lot", (0, 0, 0), np.eye(3), "mass"),
    (None, (0, 0, 0), np.eye(3), "mass"), (1.0, (0, 0), np.eye(3), "com"), (1.0, "here", np.eye(3), "com"),
    (1.0, (0, 0, np.inf), np.eye(3), "com"), (1.0, (0, 0, 0), np.diag([1.0, 1.0, -0.1]), "definite"),
    (1.0, (0, 0, 0), np.triu(np.ones((3, 3))), "symmetric"), (0.0, (0, 0, 0), np.eye(3), "mass 0"),
    (1.0, (0, 0, 0), np.eye(2), "inertia"),
])
def test_link_that_is_no_body(mass, com, inertia, word):
    with pytest.raises((ModelError, InputError), match=f"payload.*{word}") as caught:
        shipped("twolink").with_payload(mass, com, inertia)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("values", [
    {"kind": "ball"}, {"axis": (0, 0, 0)}, {"lower": 1.0, "upper": -1.0}, {"lower": np.nan}, {"damping": -1.0},
    {"effort_limit": np.nan}, {"rotor_inertia": np.inf}, {"gear_ratio": np.nan}, {"multiplier": np.inf},
])
def test_joint_that_is_none(arm, values):
    with pytest.raises((ModelError, InputError), match="joint1|axis"):
        replace(arm.joints[0], **values)


def test_arm_that_is_no_tree(arm):
    with pytest.raises(ModelError, match="no moving joint"):
        Arm("empty", (), (), ())
    with pytest.raises(ModelError, match="stand before"):
        replace(arm, joints=(replace(arm.joints[0], parent=1), arm.joints[1]))
    with pytest.raises(ModelError, match="coordinates"):
        replace(arm, joints=(arm.joints[0], replace(arm.joints[1], coordinate=5)))
    with pytest.raises(ModelError, match="frame 'x'"):
        replace(arm, frames=(*arm.frames, Frame("x", 9, make_pose())))
    with pytest.raises(ModelError, match="links"):
        replace(arm, links=arm.links[:1])


def test_unknown_names_list_the_known(arm):
    with pytest.raises(ModelError, match="joint3.*joint1, joint2"):
        arm.index("joint3")
    with pytest.raises(ModelError, match="hand.*tool0"):
        arm.frame("hand")
    assert arm.index("joint2") == 1


def test_payload_is_a_new_arm_with_a_welded_body(arm):
    inertia = np.diag([0.001, 0.002, 0.003])
    loaded = arm.with_payload(2.0, (0.1, 0.0, 0.05), inertia)
    assert arm.links[1].mass == 2.0 and loaded.links[1].mass == 4.0 and arm.fingerprint != loaded.fingerprint
    point = np.array([0.5, 0.0, 0.05])  # in link 2's frame: tool0 is 0.4 m along x
    com = (2.0 * np.array([0.2, 0.0, 0.0]) + 2.0 * point) / 4.0
    assert loaded.links[1].com == pytest.approx(com, abs=EXACT)
    expected = arm.links[1].inertia_origin + inertia + 2.0 * (point @ point * np.eye(3) - np.outer(point, point))
    assert loaded.links[1].inertia_origin == pytest.approx(expected, abs=EXACT)
    assert arm.with_payload(0.0).fingerprint == arm.fingerprint
    elsewhere = arm.with_payload(1.0, frame="link1")
    assert elsewhere.links[0].mass == 4.0 and elsewhere.links[1].mass == 2.0
    assert arm.with_payload(1.0, frame="base_link") is arm  # what stands on the floor is not carried


def test_with_joints(arm):
    changed = arm.with_joints(effort_limit=[20, 8], damping=0.1, rotor_inertia=1e-4, gear_ratio=[-6.0, 6.0], lower=-1.0)
    assert changed.effort_limit.tolist() == [20.0, 8.0] and changed.damping.tolist() == [0.1, 0.1]
    assert changed.lower.tolist() == [-1.0, -1.0] and arm.lower[0] < -3.0
    M = Dynamics(changed).mass_matrix([0.2, 0.4]) - Dynamics(arm).mass_matrix([0.2, 0.4])
    assert M == pytest.approx(np.diag([36e-4, 36e-4]), abs=EXACT)  # gr² Ir on the diagonal
    coupled = Dynamics(changed.with_joints(rotor_coupling=True)).mass_matrix([0.2, 0.4])
    expected = np.array([[37e-4, 6e-4], [6e-4, 36e-4]])  # the elbow's rotor turns with link 1
    assert coupled - Dynamics(arm).mass_matrix([0.2, 0.4]) == pytest.approx(expected, abs=EXACT)
    for bad in ({"mass": 1.0}, {"damping": [1, 2, 3]}, {"damping": "much"}, {"effort_limit": np.nan}):
        with pytest.raises(InputError):
            arm.with_joints(**bad)
    with pytest.raises(ModelError, match="joint2"):
        arm.with_joints(lower=[-1.0, 3.0])


def test_friction_of_followers_comes_in_with_their_multiplier():
    arm = mini("mimic_elbow")
    joints = tuple(replace(joint, damping=0.4, coulomb=0.3) for joint in arm.joints)
    arm = replace(arm, joints=joints)
    assert arm.damping == pytest.approx([0.4 + 0.25 * 0.4], abs=EXACT)  # power: (−0.5 q̇)² d
    assert arm.coulomb == pytest.approx([0.3 + 0.5 * 0.3], abs=EXACT)


def test_fingerprint_tells_equations_apart(arm):
    assert shipped("twolink").fingerprint == arm.fingerprint
    for other in (arm.with_gravity((0, 0, -1.62)), arm.with_tip("link2"), arm.with_payload(0.1),
                  arm.with_joints(rotor_inertia=1e-5), arm.with_joints(rotor_coupling=True)):
        assert other.fingerprint != arm.fingerprint
    assert arm.with_joints(damping=3.0).fingerprint == arm.fingerprint  # friction is not in the equations' left side


def test_weld_and_move_keep_the_body():
    rng = np.random.default_rng(4)
    body = Link("a", 2.0, rng.normal(size=3), np.diag([0.1, 0.12, 0.2]))
    other = Link("b", 0.5, rng.normal(size=3), np.diag([0.01, 0.02, 0.02]))
    pose = make_pose(np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]), (0.3, -0.2, 0.1))
    both = body.welded(other)
    assert both.inertia_origin == pytest.approx(body.inertia_origin + other.inertia_origin, abs=EXACT)
    moved = both.moved(pose)
    assert np.linalg.eigvalsh(moved.inertia) == pytest.approx(np.linalg.eigvalsh(both.inertia), abs=EXACT)
    assert moved.com == pytest.approx(pose.rotation @ both.com + pose.translation, abs=EXACT)
    assert both.parameters[0] == 2.5 and both.parameters[1:4] == pytest.approx(2.5 * both.com, abs=EXACT)


def test_tiny_but_real_inertia_is_not_called_singular():
    """A gripper's finger of a gram on a heavy arm is light, not weightless; a coaxial pair, none between, is."""
    arm = shipped("sixlink")
    links = list(arm.links)
    links[5] = Link("wrist_3", 1e-3, np.zeros(3), np.diag([1e-9, 1e-9, 1e-9]))
    assert weightless_coordinate(replace(arm, links=tuple(links))) is None
    links[5] = Link("wrist_3", 1e-3, np.zeros(3), np.zeros((3, 3)))
    assert weightless_coordinate(replace(arm, links=tuple(links))) == "wrist_3_turn"
    coaxial = Joint("spin", "revolute", 1, make_pose(), arm.joints[1].axis, coordinate=2)
    two = shipped("twolink")
    chain = replace(two, joints=(*two.joints, replace(coaxial, axis=two.joints[1].axis)),
                    links=(two.links[0], Link("hollow", 0.0, np.zeros(3), np.zeros((3, 3))), two.links[1]))
    assert weightless_coordinate(chain) in ("joint2", "spin")
