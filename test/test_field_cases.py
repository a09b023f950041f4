"""What users of other packages tripped over when reading a URDF, case by case (numbers as in the collection of cases),
on the mini corpus; and the whole collection with its truth files where it is present."""
import os
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from arms import random_state
from corpus import GOOD, MINI, REFUSED, SHIPPED, mini
from scipy.spatial.transform import Rotation

from twolink_dynamics import Dynamics, TwolinkError, TwolinkWarning, kinematics, load_urdf

EXACT = 1e-12


def text(name):
    return (MINI / f"{name}.urdf").read_text()


def warned(source, **options):
    """(arm, its warnings) of a URDF."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        arm = load_urdf(source, **options)
    lines = [str(w.message) for w in caught if issubclass(w.category, TwolinkWarning)]
    assert tuple(lines) == arm.warnings  # issued and kept
    return arm, lines


def refusal(source, **options):
    with pytest.raises(TwolinkError) as caught:
        Dynamics(load_urdf(source, **options))
    message = str(caught.value)
    assert message and "\n" not in message
    return message


def same_equations(one, other, map_q=lambda q: q, sign=1.0):
    q, qd, qdd = random_state(one, 4, (5,))
    ours = Dynamics(one).inverse_dynamics(q, qd, qdd)
    theirs = Dynamics(other).inverse_dynamics(map_q(q), map_q(qd), map_q(qdd))
    assert np.abs(ours).max() > 0.1
    return np.abs(ours - sign * theirs).max() <= EXACT * np.abs(ours).max()


def test_case_01_inertial_rpy_is_applied():
    arm = mini("inertial_rpy_offdiag")
    assert 'rpy="0 0 1.5707963267948966"' in text("inertial_rpy_offdiag")
    assert arm.links[0].inertia == pytest.approx(np.diag([0.02, 0.01, 0.025]), abs=1e-15)
    x, y, z = map(float, re.findall(r'rpy="([^"]+)"', text("inertial_rpy_offdiag"))[1].split())
    tensor = dict(re.findall(r'(i[xyz]{2})="([^"]+)"', text("inertial_rpy_offdiag").split('name="l2"')[1]))
    I = np.array([[float(tensor["i" + "".join(sorted(a + b))]) for b in "xyz"] for a in "xyz"])
    R = Rotation.from_euler("xyz", (x, y, z)).as_matrix()
    assert arm.links[1].inertia == pytest.approx(R @ I @ R.T, abs=1e-15)


def test_case_02_products_of_inertia_reach_M_and_C():
    arm = mini("products_of_inertia")
    without = load_urdf(re.sub(r'(ixy|ixz|iyz)="[^"]*"', r'\1="0"', text("products_of_inertia")))
    q, qd, _ = random_state(arm, 2)
    M, C = Dynamics(arm).mass_matrix(q), Dynamics(arm).coriolis_matrix(q, qd)
    assert M == pytest.approx(kinematics.mass_matrix(arm, q), abs=1e-15)
    assert np.abs(M - Dynamics(without).mass_matrix(q)).max() > 1e-3
    assert np.abs(C - Dynamics(without).coriolis_matrix(q, qd)).max() > 1e-4


def test_case_03_impossible_inertia():
    message = refusal(text("negative_iyy"))
    assert "l1" in message or "l2" in message
    assert "definite" in message and "-0.0" in message  # the eigenvalue
    assert "mass" in refusal(text("negative_mass"))
    _, lines = warned(text("triangle_rule_broken"))
    assert any("l1" in line and "triangle" in line for line in lines)
    assert not warned(text("point_masses"))[1]
    thin = text("textbook_2R_unit_rods")
    assert not [line for line in warned(thin)[1] if "triangle" in line]


def test_case_05_pivot_inertia_in_place_of_com_inertia_is_remarked():
    source = (SHIPPED / "twolink.urdf").read_text()
    assert not warned(source)[1]
    _, lines = warned(source.replace("0.0625", "0.25"))  # m L²/3 instead of m L²/12
    assert any("link1" in line and "gyration" in line for line in lines)


def test_case_06_moving_link_without_inertial_is_refused_by_name():
    for name in ("link2_without_inertial", "link2_mass_zero"):
        message = refusal(text(name))
        assert "j2" in message and "l2" in message and "singular" in message


def test_case_07_mass_matrix_singular_in_every_pose():
    message = refusal(text("point_mass_on_elbow_axis"))
    assert "j2" in message and "singular" in message


def test_case_08_mass_behind_fixed_joints_is_lumped():
    arm = mini("fixed_tool_chain_lumped")
    assert arm.links[1].mass == pytest.approx(0.8 + 0.6 + 1.5, abs=1e-15)
    weld = Rotation.from_euler("xyz", (0.0, 0.0, 1.57)).as_matrix()
    tool = np.array([0.0, 0.0, -0.4]) + weld @ [0.05, 0.0, 0.0]
    turned = weld @ Rotation.from_euler("xyz", (0.7, 0.0, 0.0)).as_matrix()
    com = (0.8 * np.array([0, 0, -0.2]) + 0.6 * (tool + turned @ [0.02, 0.01, 0.05])
           + 1.5 * (tool + turned @ [0.0, 0.0, 0.1])) / 2.9
    assert arm.links[1].com == pytest.approx(com, abs=1e-15)
    assert len(arm.lumped) == 3


def test_case_09_gravity_does_not_end_at_the_tip():
    far, near = mini("fixed_tool_chain_lumped"), mini("fixed_tool_chain_lumped", tip="l2")
    q = np.array([0.4, 0.9])
    assert Dynamics(near).gravity(q) == pytest.approx(Dynamics(far).gravity(q), abs=EXACT)
    assert abs(Dynamics(far).gravity(q)[1]) > 1.3 * abs(Dynamics(mini("plain")).gravity(q)[1])


def test_case_10_base_inertia_is_ignored():
    assert same_equations(mini("heavy_base"), mini("plain"))


def test_case_11_absent_axis_means_x():
    assert mini("axis_absent_means_x").joints[0].axis.tolist() == [1.0, 0.0, 0.0]


def test_case_12_axis_is_normalised_or_refused():
    arm = mini("axis_not_unit")
    assert arm.joints[0].axis == pytest.approx(np.array([2, 2, 0.5]) / np.linalg.norm([2, 2, 0.5]), abs=1e-15)
    assert any("unit length" in line for line in arm.warnings)
    assert "j" in refusal(text("axis_zero")) and "axis" in refusal(text("axis_zero"))
    mount = text("tilted_mount").replace('rpy="0.5 0.3 -0.2"/>', 'rpy="0.5 0.3 -0.2"/><axis xyz="0 0 0"/>')
    assert mount != text("tilted_mount") and load_urdf(mount).n == 2


def test_case_13_negative_axis_keeps_limits_and_meaning():
    source = text("plain").replace('xyz="0 1 0"', 'xyz="0 -1 0"').replace('lower="-3"', 'lower="-1"')
    arm = load_urdf(source)
    assert arm.lower.tolist() == [-1.0, -1.0] and arm.upper.tolist() == [3.0, 3.0]
    assert same_equations(arm, mini("plain"), map_q=lambda q: -q, sign=-1.0)


def test_case_15_mount_and_gravity_direction():
    tilted, plain = mini("tilted_mount"), mini("plain")
    R = Rotation.from_euler("xyz", (0.5, 0.3, -0.2)).as_matrix()
    assert same_equations(tilted, plain.with_gravity(R.T @ [0.0, 0.0, -9.81]))
    q = np.array([0.3, 0.8])
    up = Dynamics(load_urdf(text("plain"), gravity=(0.0, 0.0, 9.81))).gravity(q)
    assert up == pytest.approx(-Dynamics(plain).gravity(q), abs=EXACT) and np.abs(up).min() > 0.1
    assert not Dynamics(plain.with_gravity((0, 0, 0))).gravity(q).any()


def test_case_16_continuous_wraps_in_errors_only():
    turning, limited = mini("continuous_pair"), mini("plain")
    assert turning.error([-3.1, -3.1], [3.1, 3.1]) == pytest.approx([2 * np.pi - 6.2] * 2, abs=1e-12)
    assert limited.error([-3.1, -3.1], [3.1, 3.1]).tolist() == [-6.2, -6.2]
    assert mini("prismatic_second").error([0.0, 4.0], [0.0, 0.0]).tolist() == [0.0, 4.0]


def test_case_17_mimic_is_reduced():
    """q2 = −0.5 q1 + 0.2: τ = Gᵀ τ_free(G q + offset), G = (1, −0.5)."""
    arm = mini("mimic_elbow")
    free = load_urdf(text("mimic_elbow").replace('<mimic joint="j1" multiplier="-0.5" offset="0.2"/>', ""))
    assert (arm.n, free.n) == (1, 2) and arm.joint_names == ("j1",)
    G = np.array([1.0, -0.5])
    for q, qd, qdd in ((0.3, 0.8, -1.1), (-1.4, 2.0, 0.5)):
        tau = Dynamics(free).inverse_dynamics(G * q + [0.0, 0.2], G * qd, G * qdd)
        assert Dynamics(arm).inverse_dynamics([q], [qd], [qdd])[0] == pytest.approx(G @ tau, abs=EXACT)


def test_case_18_prismatic_in_metres_and_newtons():
    lift = mini("prismatic_vertical_first")
    assert lift.prismatic[0]
    weight = 9.81 * sum(link.mass for link in lift.links)
    assert Dynamics(lift).gravity([0.2, 0.7])[0] == pytest.approx(weight, abs=EXACT)
    assert mini("prismatic_second").prismatic.tolist() == [False, True]


def test_case_19_document_order_does_not_matter():
    arm = mini("reversed_document_order")
    assert arm.joint_names == ("j1", "j2") and same_equations(arm, mini("plain"))


def test_case_20_and_21_absent_and_zero_limits_mean_none():
    for name, missing in (("revolute_without_limit", ("effort", "velocity", "position")),
                          ("zero_limits", ("effort", "velocity", "position"))):
        arm, lines = warned(text(name))
        said = [line for line in lines if "limit" in line]
        assert said and all(any(word in line for word in missing) for line in said)
        k = next(k for k, joint in enumerate(arm.joint_names) if f"'{joint}'" in said[0])
        assert np.isinf([arm.upper[k], arm.velocity_limit[k], arm.effort_limit[k]]).all() and arm.lower[k] == -np.inf
        assert len(said) == len({line.split("'")[1] for line in said})  # once per joint
    assert load_urdf(text("plain")).with_joints(effort_limit=[0.0, 5.0]).effort_limit.tolist() == [0.0, 5.0]


def test_case_24_encoding_declaration_bom_and_leading_blanks():
    plain = text("plain")
    declared = plain.replace('<?xml version="1.0"?>', '<?xml version="1.0" encoding="UTF-8"?>')
    assert declared != plain
    for source in (declared, "\n  " + declared, "\ufeff" + declared, declared.encode(),
                   b"\xef\xbb\xbf" + declared.encode(), text("bom_and_encoding"),
                   (MINI / "bom_and_encoding.urdf").read_bytes(), MINI / "plain.urdf",
                   declared.replace("UTF-8", "UTF-16").encode("utf-16")):
        assert same_equations(load_urdf(source), mini("plain"))


def test_case_26_xacro_is_named():
    assert "run xacro" in refusal(text("xacro_not_expanded"))
    assert "run xacro" in refusal(text("plain").replace('"0 0 -0.5"', '"0 0 ${-len}"'))


def test_case_27_and_28_what_dynamics_does_not_need_makes_no_noise(capfd):
    for name in ("mesh_package_missing", "transmission_ros2_control_gazebo", "safety_calibration_tags"):
        arm, lines = warned(text(name))
        assert not lines and same_equations(arm, mini("plain"))
    assert capfd.readouterr().err == ""


def test_friction_without_damping_and_damping_without_friction():
    arm = mini("dynamics_friction_only")
    given = dict(re.findall(r'<dynamics (damping|friction)="([^"]+)"/>', text("dynamics_friction_only")))
    assert set(given) == {"damping", "friction"}  # the premise: each stands alone on a joint
    assert sorted(arm.coulomb) == sorted([0.0, float(given["friction"])])
    assert sorted(arm.damping) == sorted([0.0, float(given["damping"])])


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refused_in_one_line_that_says_why(name):
    assert any(word in refusal(text(name)).lower() for word in REFUSED[name])


@pytest.mark.parametrize("name", GOOD)
def test_accepted(name):
    arm = mini(name)
    q, qd, qdd = random_state(arm)
    assert np.isfinite(Dynamics(arm).inverse_dynamics(q, qd, qdd)).all()


def test_the_collection_with_its_truth_files(field_cases):
    done = subprocess.run([sys.executable, str(field_cases / "check.py")], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(MINI.parent.parent)})
    assert done.returncode == 0, done.stdout
    count, total = (int(word) for word in done.stdout.split()[-4:] if word.isdigit())
    assert count == total >= 45
