"""Other people's recordings, read in place: a double pendulum with quasi direct drives (see the folder's own notes on
them).

Fixed: 8 Hz zero-phase Butterworth of order 3. The metric is the RMS of filtered torque minus the torque predicted for
the filtered motion, over both joints as the root of the sum of squares.
"""

import warnings

import numpy as np
import pytest
import yaml

from twolink_dynamics import InputError, TwolinkWarning, load_urdf
from twolink_dynamics.identification import FrictionTerms, identify, prepare, read_log
from twolink_dynamics.identification.consistent import pseudo_inertia

GEARS = dict(gear_ratio=[6.0, -6.0], rotor_inertia=6.07e-5)
PLAIN = dict(
    hz=8.0,
    delay=0.0,
    rotor="coupled",
    weighted=False,
    robust=False,
    fixed=("my1", "my2"),
    friction=FrictionTerms(smoothing="atan", scale=0.01),
)


def rig(field_cases, name):
    """The URDF as published: its inertias are the pivot's, put at the centre of mass, so the prior is wrong by up to a
    factor of two."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TwolinkWarning)
        return load_urdf(field_cases / "urdf" / name).with_joints(**GEARS)


@pytest.fixture(scope="module")
def c1(field_cases):
    return rig(field_cases, "dfki_acrobot_C1_m10.urdf")


@pytest.fixture(scope="module")
def a0(field_cases):
    return rig(field_cases, "dfki_double_pendulum_A0.urdf")


def recording(field_cases, arm, name):
    path = field_cases / "data" / "dfki" / name
    if not path.is_file():
        pytest.skip(f"the recording {name} is not here")
    return read_log(path, arm)


@pytest.fixture(scope="module")
def train(field_cases, c1):
    return recording(field_cases, c1, "C1/20230629_154220_sysid.csv")


@pytest.fixture(scope="module")
def poor(field_cases, c1):
    return recording(field_cases, c1, "C1/20230629_143339_sysid.csv")


@pytest.fixture(scope="module")
def fitted(c1, train):
    return identify(c1, train, hz=8.0, rotor="coupled")


def test_the_metric_is_that_of_the_notes(field_cases, c1, poor):
    """Published parameters on this recording: 0.239 N m. Theirs: inertia about the pivot, cf·atan(100 v), one rotor
    inertia."""
    path = field_cases / "data" / "dfki" / "params" / "design_C.1_model_1.0.yml"
    p = yaml.safe_load(path.read_text())
    s = prepare(poor, 8.0)
    (q1, q2), (v1, v2), (a1, a2), g = s.q.T, s.qd.T, s.qdd.T, 9.81
    h, k = p["m2"] * p["l1"] * p["r2"], p["gr"]
    m11 = p["I1"] + p["I2"] + p["m2"] * p["l1"] ** 2 + 2 * h * np.cos(q2) + (k**2 + 1) * p["Ir"]
    m12, m22 = p["I2"] + h * np.cos(q2) - k * p["Ir"], p["I2"] + k**2 * p["Ir"]
    gravity2 = p["m2"] * p["r2"] * g * np.sin(q1 + q2)
    friction = np.stack(
        [p["b1"] * v1 + p["cf1"] * np.arctan(100 * v1), p["b2"] * v2 + p["cf2"] * np.arctan(100 * v2)], axis=-1
    )
    tau = friction + np.stack(
        [
            m11 * a1
            + m12 * a2
            - h * np.sin(q2) * (2 * v1 * v2 + v2**2)
            + gravity2
            + (p["m1"] * p["r1"] + p["m2"] * p["l1"]) * g * np.sin(q1),
            m12 * a1 + m22 * a2 + h * np.sin(q2) * v1**2 + gravity2,
        ],
        axis=-1,
    )
    error = (s.tau - tau)[s.settled]
    assert np.sqrt((error**2).mean(0).sum()) == pytest.approx(0.239, abs=0.003)


def test_plain_least_squares_is_that_of_the_notes(c1, train, poor):
    """0.214 N m: no weights, atan friction, no mass off the links' axes."""
    assert identify(c1, train, **PLAIN).total_rms(poor, "least_squares") == pytest.approx(0.214, abs=0.006)


def test_the_physical_arm_carries_over_to_another_recording(fitted, poor):
    assert fitted.total_rms(poor) <= 0.22
    assert fitted.total_rms(poor, "cad") > 1.0  # the URDF given is useless, and did no harm


def test_the_physical_arm_is_one(fitted):
    for link in fitted.arm.links:
        assert np.linalg.eigvalsh(pseudo_inertia(link.parameters))[0] > 0.0
    assert (
        (fitted.arm.damping >= 0.0).all()
        and (fitted.arm.coulomb > 0.05).all()
        and (fitted.arm.rotor_inertia >= 0.0).all()
    )
    assert fitted.condition < 30.0


def test_traps_of_this_rig(fitted):
    """The inertia comes out about half of what the URDF says; the Coulomb torque is cf·π/2; the rotor couples with a
    minus sign."""
    rows = {row.name: row for row in fitted.rows}
    assert rows["I2"].physical == pytest.approx(0.0508, rel=0.08)  # their own pivot inertia; the URDF's is 0.0918
    assert rows["Fc1"].physical == pytest.approx(0.16 * np.pi / 2, rel=0.1)
    assert rows["Fc2"].physical == pytest.approx(0.12 * np.pi / 2, rel=0.3)
    assert rows["Ir2"].physical == pytest.approx(6.3e-5, rel=0.4)
    assert any("m2 L1" in name for name in rows) and "m2" not in rows


def test_a0_within_15_percent_of_plain_least_squares(field_cases, a0):
    log = recording(field_cases, a0, "A0/20220812_061705_sysid.csv")
    physical = identify(a0, log, hz=8.0, rotor="coupled").rms(log)
    assert (physical <= 1.15 * np.array([0.135, 0.110])).all()
    undelayed = identify(a0, log, hz=8.0, rotor="coupled", delay=0.0)
    assert undelayed.total_rms(log) <= 1.15 * identify(a0, log, **PLAIN).total_rms(log, "least_squares")


def test_the_poor_recording_alone_is_not_believed(c1, poor, train):
    """Plain least squares makes friction negative and nearly all inertia vanish; here these are named, and nothing
    negative comes out."""
    plain = identify(c1, poor, **PLAIN)
    beta = dict(zip(plain.base.names, plain.fit.beta))
    assert beta["Fv1"] < 0.0 > beta["Fc1"] and beta["I1 + m2 L1² + Ir1 gr1²"] < 0.1 * 0.05
    result = identify(c1, poor, hz=8.0, rotor="coupled")
    verdicts = {row.name: row.verdict for row in result.rows}
    for name in ("I1 + m2 L1² + Ir1 gr1²", "I2", "Ir2", "Fc1"):
        assert verdicts[name] == "not identifiable", name
    assert any("standard errors widened" in remark for remark in result.remarks)
    assert result.condition > 5.0 * identify(c1, train, hz=8.0, rotor="coupled").condition
    assert result.poor_directions and "I2" in result.poor_directions[0][1]
    for link in result.arm.links:
        assert np.linalg.eigvalsh(pseudo_inertia(link.parameters))[0] > 0.0
    assert (result.arm.damping >= 0.0).all() and (result.arm.coulomb >= 0.0).all()
    assert result.total_rms(train) < 0.6 * result.total_rms(train, "least_squares")


def test_the_recording_at_rest_is_refused(field_cases, a0):
    with pytest.raises(InputError, match="column 'tau1' is 0 in all 998 rows"):
        recording(field_cases, a0, "A0/20220812_062840_noise_down_dt0.01.csv")
