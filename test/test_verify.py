"""The four-way proof: passes on right models, names the ways that disagree on wrong ones."""
import numpy as np
import pytest
from corpus import mini, shipped

from twolink_dynamics import Dynamics, InputError, cli
from twolink_dynamics.verify import WrongModel, lost_factor, verify, workless_error

WAYS = ("Lagrange, symbolic", "Newton-Euler", "Lagrange, numeric", "Energy")


def test_shipped_arm_passes_all_four_ways():
    heard = []
    proof = verify(shipped("twolink"), progress=heard.append)
    assert proof.passed and {check.way for check in proof.checks} == set(WAYS) and heard
    assert all(check.passed for check in proof.checks)
    assert [check.value for check in proof.checks if check.tolerance == 0.0] == [0, 0]  # exact ones
    energy = proof.checks[-1]
    assert energy.value < 2e-8 and energy.unit == "J"


@pytest.mark.parametrize("arm", [shipped("sixlink"), shipped("five_bar"), mini("gripper"), mini("mimic_elbow"),
                                 mini("prismatic_second"), shipped("awkward").with_joints(
                                     rotor_inertia=1e-4, gear_ratio=30.0, rotor_coupling=True)],
                         ids=lambda arm: arm.name)
def test_other_arms_pass_what_applies(arm):
    proof = verify(arm, duration=0.5, samples=20)
    assert proof.passed, proof.text()
    assert sum(check.passed is True for check in proof.checks) >= 3


def test_a_lost_factor_fails_every_way():
    proof = verify(shipped("twolink"), lost_factor(shipped("twolink")))
    assert not proof.passed and proof.failed_ways() == WAYS
    assert proof.checks[-1].value == pytest.approx(18.6, abs=0.05)
    assert "FAIL" in proof.text() and "18" in proof.text().splitlines()[-1].replace("1.86e+01", "18.6")


def test_a_workless_error_fails_all_but_energy():
    proof = verify(shipped("twolink"), workless_error(shipped("twolink")), duration=2.0)
    assert proof.failed_ways() == WAYS[:3] and proof.checks[-1].passed


def test_a_model_of_nans_fails():
    arm = shipped("twolink")
    proof = verify(arm, WrongModel(Dynamics(arm), lambda q, qd: np.full_like(q, np.nan)), duration=0.1)
    assert not proof.passed


def test_what_does_not_apply_says_so():
    proof = verify(shipped("sixlink").with_gravity((0, 0, 0)), duration=0.2, samples=5)
    skipped = {check.way: check.note for check in proof.checks if check.passed is None}
    assert "no gravity" in skipped["Energy"] and "6" in skipped["Lagrange, symbolic"] and proof.passed
    with pytest.raises(InputError):
        verify(shipped("twolink"), samples=0)


def run(capsys, *arguments):
    status = cli.main(list(arguments))
    out, err = capsys.readouterr()
    return status, out, err


def test_command_verify(capsys):
    status, out, err = run(capsys, "verify", "twolink", "--duration", "0.3", "--samples", "10")
    assert status == 0 and "all ways agree" in out and "..." in err  # progress on stderr
    status, out, _ = run(capsys, "verify", "twolink", "--duration", "0", "--samples", "10", "--break", "workless")
    assert status == 1 and "DISAGREEMENT" in out
    status, _, err = run(capsys, "verify", "twolink", "--duration", "nan")
    assert status == 2 and len(err.strip().splitlines()) == 1


def test_command_derive(capsys):
    status, out, _ = run(capsys, "derive", "twolink")
    assert status == 0 and "M11 = 0.856667 + 0.4 cos(q2)" in out
    status, out, _ = run(capsys, "derive", "twolink", "--latex")
    assert status == 0 and out.startswith(r"\begin{aligned}")
    status, out, _ = run(capsys, "derive", "twolink", "--symbols")
    assert status == 0 and "β = m2 L1 lc2" in out
    status, out, err = run(capsys, "derive", "sixlink")
    assert status == 2 and out == "" and "6 coordinates" in err.strip().splitlines()[-1]


def test_command_info(capsys):
    status, out, _ = run(capsys, "info", "awkward", "--payload", "0.5")
    assert status == 0
    for word in ("awkward: 2 joints", "tip tool0", "shoulder", "'tool' (0.6 kg) into 'fore'", "unit length",
                 "base parameters", "planar two-link arm", "engine"):
        assert word in out, word
    status, out, _ = run(capsys, "info", "five_bar", "--no-base-parameters")
    assert status == 0 and "not chosen" in out and "left_tip, right_tip" in out and "base parameters" not in out
    status, out, _ = run(capsys, "info")
    assert status == 0 and "llvmlite" in out and "shipped arms: awkward" in out
    for bad in (["info", "nope"], ["info", "twolink", "--lock", "x"], ["info", "twolink", "--lock", "nobody=1"],
                ["info", "twolink", "--payload", "-1"], ["info", "twolink", "--gravity", "0", "0", "nan"],
                ["info", "twolink", "--tip", "nope"]):
        status, out, err = run(capsys, *bad)
        assert status == 2 and out == "" and len(err.strip().splitlines()) == 1, bad
