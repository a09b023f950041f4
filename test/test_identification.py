"""Synthetic truth: recordings of a known arm give it back, within the intervals that are stated, and never an
impossible one."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
import yaml
from identification_helpers import record, wrong_cad

from twolink_dynamics import InputError, TwolinkWarning, load_urdf, newton_euler
from twolink_dynamics.cli import main
from twolink_dynamics.identification import FrictionTerms, Payload, base_parameters, identify, prepare, write_all
from twolink_dynamics.identification.consistent import pseudo_inertia
from twolink_dynamics.identification.model import Model
from twolink_dynamics.resources import resource

FIELD_ARMS = ("dfki_acrobot_C1_m10", "erd_ur5", "erd_kinova_j2s6s200", "erd_z1", "drake_acrobot")


@pytest.fixture(scope="module")
def truth(twolink):
    """The shipped arm with friction."""
    return twolink.with_joints(damping=[0.4, 0.2], coulomb=[1.0, 0.5])


@pytest.fixture(scope="module")
def cad(twolink):
    return wrong_cad(twolink)


def true_base(result, truth, **extra):
    """β of the true arm in a result's combinations."""
    model = Model(truth, result.model.friction, result.model.rotor, result.model.offset)
    values = model.prior.copy()
    for name, value in extra.items():
        values[model.names.index(name)] = value
    return result.base.K @ values


# -- base parameters -------------------------------------------------------------------------------------------------
def test_base_parameters_of_the_shipped_arm_are_named(twolink):
    base = base_parameters(twolink)
    assert base.names == ("mx1 + m2 L1", "mz1", "I1 + m2 L1²", "mx2", "mz2", "I2")
    assert base.symbols == {"L1": pytest.approx(0.5)}
    assert {"m1", "my1", "Ixx2"} <= set(base.unseen)
    values = Model(twolink, FrictionTerms(False, False)).prior
    # hand: I1 = 0.0625 + 3/16, + 2 × 0.25
    np.testing.assert_allclose(
        base.K @ values, [0.75 + 1.0, 0.0, 0.25 + 0.5, 0.4, 0.0, 0.32 / 3.0], rtol=1e-9, atol=1e-12
    )


def test_a_length_equal_to_a_number_is_not_mistaken(twolink):
    """With L1 = 1 m, L1, L1² and 1 are the same number; the names must still be right."""
    joints = list(twolink.joints)
    joints[1] = replace(joints[1], origin=joints[1].origin._replace(translation=2.0 * joints[1].origin.translation))
    assert base_parameters(replace(twolink, joints=tuple(joints))).names[:3] == ("mx1 + m2 L1", "mz1", "I1 + m2 L1²")


def test_rotors_regroup_by_their_gear_ratio(twolink):
    geared = twolink.with_joints(gear_ratio=[6.0, -6.0])
    names = base_parameters(geared, FrictionTerms(), "coupled", True).names
    assert "I1 + m2 L1² + Ir1 gr1²" in names and "Ir2" in names and "Fc1" in names and "offset2" in names


@pytest.mark.parametrize("name", FIELD_ARMS)
def test_the_base_regressor_loses_nothing(field_cases, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TwolinkWarning)
        arm = load_urdf(field_cases / "urdf" / f"{name}.urdf")
    model = Model(arm)
    base = base_parameters(model)
    rng = np.random.default_rng(1)
    q, qd, qdd = rng.uniform(-2.0, 2.0, (3, 40, arm.n))
    Y = model.columns(q, qd, qdd)
    tau = Y @ model.prior
    # 1e-4: base_parameters drops what is below a part in 10⁵, since these files write 3.1416 for π
    assert np.abs(Y[..., base.independent] @ (base.K @ model.prior) - tau).max() < 1e-4 * np.abs(tau).max()
    assert len(base.names) == len(set(base.names)) == np.linalg.matrix_rank(base.K)


def test_the_model_is_the_dynamics_with_friction(truth):
    arm = truth.with_joints(gear_ratio=[6.0, -6.0], rotor_inertia=[1e-3, 2e-3])
    rng = np.random.default_rng(2)
    q, qd, qdd = rng.uniform(-2.0, 2.0, (3, 20, 2))
    for rotor in ("none", "diagonal", "coupled"):
        coupled = arm.with_joints(rotor_coupling=rotor == "coupled")
        model = Model(coupled, FrictionTerms(smoothing="sign"), rotor)
        expected = newton_euler.inverse_dynamics(coupled, q, qd, qdd) + truth.damping * qd + truth.coulomb * np.sign(qd)
        found = model.columns(q, qd, qdd) @ model.prior + model.known(q, qd, qdd)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
        assert (
            np.abs(
                newton_euler.inverse_dynamics(coupled.with_joints(rotor_inertia=0.0), q, qd, qdd)
                + truth.damping * qd
                + truth.coulomb * np.sign(qd)
                - expected
            ).max()
            > 0.01
        )  # rotors matter here


def test_atan_friction_has_its_plateau_at_the_coulomb_torque():
    for smoothing in ("sign", "tanh", "atan"):
        terms = FrictionTerms(smoothing=smoothing, scale=0.01)
        assert terms.sign(np.array([50.0]))[0] == pytest.approx(1.0, abs=2e-4)
        assert terms.sign(np.array([-0.3])) == -terms.sign(np.array([0.3]))
    # someone's cf·atan(100 v) is Fc = cf π/2 with scale 0.01
    assert 0.16 * np.arctan(100 * 0.02) == pytest.approx(
        0.16 * np.pi / 2 * FrictionTerms(smoothing="atan", scale=0.01).sign(0.02)
    )


# -- truth -----------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def seeds(truth, cad):
    """Twelve recordings with noise, quantisation and a delay of 3 ms, each identified."""
    return [
        identify(cad, record(truth, seed, duration=30.0, rate=400.0, delay=0.003, effort_noise=0.3), hz=8.0)
        for seed in range(12)
    ]


def test_truth_lies_in_the_stated_intervals(seeds, truth):
    """95 % intervals of 10 parameters over 12 seeds: at least 88 % must cover (binomial 3 sigma below, for correlated
    ones)."""
    inside, z = [], []
    for result in seeds:
        true = true_base(result, truth)
        inside += [row.interval[0] <= value <= row.interval[1] for row, value in zip(result.rows, true)]
        z += [(row.value - value) / row.error for row, value in zip(result.rows, true)]
    assert len(inside) == 120
    assert np.mean(inside) >= 0.88
    assert 0.6 < np.sqrt(np.mean(np.square(z))) < 1.35  # neither too narrow nor uselessly wide


def test_errors_that_come_in_bursts_widen_the_intervals(monkeypatch):
    """What is left at low noise comes in bursts and in step with the motion; an autocovariance alone thinks it is
    averaged out."""
    from twolink_dynamics.identification import fit

    def coverage():
        inside = []
        for seed in range(60):
            rng = np.random.default_rng(seed)
            t = 0.02 * np.arange(750)
            W = np.stack([np.sin(1.3 * t), np.cos(0.7 * t)], axis=1)[:, None, :]
            error = 0.01 * rng.normal(size=(len(t), 1))
            for start in rng.integers(0, 700, 8):
                error[start : start + 40] += rng.normal() * W[start : start + 40, :, 0]
            block = fit.Block(W, W @ [1.0, 2.0] + error, 0.02, np.ones((len(t), 1), bool))
            found = fit.least_squares([block], robust=False)
            inside += (np.abs(found.beta - [1.0, 2.0]) < 1.96 * found.standard_errors).tolist()
        return np.mean(inside)

    with_jackknife = coverage()
    monkeypatch.setattr(fit, "_jackknife", lambda blocks, gram, A, scores: np.zeros_like(gram))
    assert coverage() < with_jackknife - 0.03
    assert with_jackknife >= 0.88


def test_intervals_are_tight_and_the_delay_is_found(seeds, truth):
    for result in seeds:
        rows = {row.name: row for row in result.rows}
        for name in ("mx1 + m2 L1", "I1 + m2 L1²", "mx2", "I2"):
            assert rows[name].error < 0.02 * abs(rows[name].value) and rows[name].verdict == "identified"
        assert abs(result.delay[0] - 0.003) < 4.0 * result.delay[1] < 0.004
        assert result.condition < 30.0


def test_a_delay_ignored_would_show(truth, cad):
    """Premise of the delay's estimation: without it the same data leave a larger residual and a wrong viscous
    friction."""
    log = record(truth, 0, duration=15.0, rate=400.0, delay=0.02, effort_noise=0.1)
    ignored, found = identify(cad, log, hz=8.0, delay=0.0), identify(cad, log, hz=8.0)
    assert (ignored.fit.sigma > 2.0 * found.fit.sigma).all()
    k = found.base.names.index("Fv1")
    assert abs(ignored.fit.beta[k] - 0.4) > 5.0 * abs(found.fit.beta[k] - 0.4)
    assert found.delay[0] == pytest.approx(0.02, abs=1e-3)


def test_the_physical_arm_predicts_as_well_as_least_squares(seeds, truth):
    test = record(truth, 99, duration=6.0, rate=400.0, delay=0.003, effort_noise=0.05)
    for result in seeds[:3]:
        physical, plain, given = (result.total_rms(test, which) for which in ("physical", "least_squares", "cad"))
        assert physical < 1.05 * plain and given > 5.0 * physical
        for link in result.arm.links:
            assert np.linalg.eigvalsh(pseudo_inertia(link.parameters))[0] > 0.0
        assert (result.arm.damping >= 0.0).all() and (result.arm.coulomb >= 0.0).all()


def test_the_prior_speaks_only_where_the_data_are_silent(truth, twolink):
    """Two very different CADs, one recording: what the data tell agrees, what they do not tell follows the CAD."""
    log = record(truth, 5, duration=15.0, rate=400.0, effort_noise=0.3)
    one, two = (identify(wrong_cad(twolink, masses), log, hz=8.0) for masses in ((1.6, 0.7), (0.7, 1.5)))
    for a, b in zip(one.rows, two.rows):
        assert abs(a.physical - b.physical) < 0.5 * a.error, a.name
    silent = one.model.names.index("Ixx2")
    assert one.physical.share[silent] < 0.7 < one.physical.share[one.model.names.index("mx2")]
    assert (
        one.arm.links[1].mass < 0.9 * two.arm.links[1].mass
    )  # m2 alone is never told: it leans to its CAD (1.4 and 3 kg)


def test_poor_excitation_is_said_and_nothing_negative_invented(truth, cad):
    """The arm hardly moves and efforts are noisy: least squares may say anything, the physical arm stays one and the
    report says what is open."""
    log = record(truth, 7, duration=10.0, rate=400.0, amplitude=(0.04, 0.02), effort_noise=3.0)
    result = identify(cad, log, hz=8.0)
    assert any(row.verdict == "not identifiable" for row in result.rows)
    dynamic = [1, 2, 4, 5]  # what holding still does not tell
    assert (result.fit.standard_errors > 5.0 * good_errors(truth, cad))[dynamic].all()
    for link in result.arm.links:
        assert link.mass > 0.0 and np.linalg.eigvalsh(pseudo_inertia(link.parameters))[0] > 0.0
    assert (result.arm.damping >= 0.0).all() and (result.arm.coulomb >= 0.0).all()


def good_errors(truth, cad):
    """Standard errors with a good motion of the same length and noise."""
    return identify(cad, record(truth, 7, duration=10.0, rate=400.0, effort_noise=3.0), hz=8.0).fit.standard_errors


def test_huber_resists_what_plain_least_squares_does_not(truth, cad):
    def kicks(t, q, qd, qdd):
        return np.where((t % 2.0 < 0.1)[:, None], 40.0, 0.0)

    log = record(truth, 11, duration=15.0, rate=400.0, torque=kicks)
    robust, plain = (
        identify(cad, log, hz=8.0, delay=0.0),
        identify(cad, log, hz=8.0, delay=0.0, robust=False, weighted=False),
    )
    error = [
        np.abs((result.fit.beta - true_base(result, truth)) * result.fit.reach).max() for result in (robust, plain)
    ]
    assert error[0] < 0.25 * error[1]
    assert robust.fit.outliers > 0.01


def test_stribeck_offset_and_rotor_are_found(truth, cad):
    arm = truth.with_joints(gear_ratio=[50.0, -40.0], rotor_inertia=[0.0, 4e-5], rotor_coupling=True)

    def extra(t, q, qd, qdd):
        return np.array([0.7, -0.3]) + np.array([0.6, 0.4]) * np.exp(-((qd / 0.2) ** 2)) * np.sign(qd)

    log = record(arm, 13, duration=30.0, rate=400.0, torque=extra, effort_noise=0.05)
    result = identify(
        cad.with_joints(gear_ratio=[50.0, -40.0]), log, hz=12.0, delay=0.0, rotor="coupled", offset=True, stribeck=True
    )
    assert result.model.friction.stribeck_velocity == 0.2
    found = {row.name: row for row in result.rows}
    for name, value in (("offset1", 0.7), ("offset2", -0.3), ("Fs1", 0.6), ("Fs2", 0.4), ("Ir2", 4e-5)):
        assert found[name].value == pytest.approx(value, abs=max(4.0 * found[name].error, 0.05 * abs(value))), name
        assert found[name].physical == pytest.approx(value, rel=0.15), name


def test_a_known_payload_is_taken_off(truth, cad):
    loaded = truth.with_payload(0.8, (0.02, 0.0, 0.01))
    log = record(loaded, 17, duration=12.0, rate=400.0)
    aware = identify(cad, log, hz=8.0, delay=0.0, payload=Payload(0.8, (0.02, 0.0, 0.01)))
    blind = identify(cad, log, hz=8.0, delay=0.0)
    true = true_base(aware, truth)
    assert np.abs((aware.fit.beta - true) / aware.fit.standard_errors).max() < 5.0
    assert np.abs((blind.fit.beta - true) / blind.fit.standard_errors).max() > 50.0
    assert aware.total_rms(log) == pytest.approx(blind.total_rms(log), rel=0.05)


def test_fixed_parameters_stay(truth, cad):
    result = identify(
        cad, record(truth, 19, duration=10.0, rate=400.0), hz=8.0, delay=0.0, fixed={"mz1": 0.0, "mz2": 0.0, "Fv2": 0.2}
    )
    values = dict(zip(result.model.names, result.physical.values))
    assert (values["mz1"], values["mz2"], values["Fv2"]) == (0.0, 0.0, 0.2)
    assert not {"mz1", "mz2", "Fv2"} & set(result.base.names)
    with pytest.raises(InputError, match="no parameter 'm9'; there are m1"):
        identify(cad, record(truth, 19, duration=4.0), fixed=("m9",))


# -- signals ---------------------------------------------------------------------------------------------------------
def test_filtering_has_no_phase_and_derivatives_are_right(truth):
    log = record(truth, 23, duration=12.0, rate=500.0, position_noise=0.0, position_quantum=0.0)
    clean = record(truth, 23, duration=12.0, rate=500.0, position_noise=0.0, position_quantum=0.0, velocities=True)
    signals = prepare(log, 10.0)
    good = signals.settled
    truth_qd = np.stack([np.interp(signals.t, clean.t, column) for column in clean.qd.T], axis=-1)
    assert np.abs(signals.qd - truth_qd)[good].max() < 2e-3 * np.abs(truth_qd).max()
    lag = np.argmax(np.correlate(signals.qd[good, 0], truth_qd[good, 0], "full")) - (good.sum() - 1)
    assert lag == 0


def test_the_default_bandwidth_is_between_motion_and_noise(truth, cad):
    result = identify(cad, record(truth, 29, duration=12.0))
    assert 4.0 <= result.hz <= 12.0 and "Hz" in result.hz_reason
    with pytest.raises(InputError, match="filter of 300 Hz: seed29 is sampled at 500 Hz"):
        identify(cad, record(truth, 29, duration=4.0), hz=300.0)


def test_pieces_are_filtered_apart(truth, cad):
    """A log cut in two with a jump in time gives the same arm as a whole one: nothing leaks over the cut."""
    log = record(truth, 31, duration=20.0, rate=400.0)
    half = len(log.t) // 2
    cut = replace(log, t=np.where(np.arange(len(log.t)) >= half, log.t + 5.0, log.t), breaks=(half,))
    whole, pieces = identify(cad, log, hz=8.0, delay=0.0), identify(cad, cut, hz=8.0, delay=0.0)
    assert len(pieces.blocks) == 2
    assert np.abs((whole.fit.beta - pieces.fit.beta) / whole.fit.standard_errors).max() < 1.5


# -- out -------------------------------------------------------------------------------------------------------------
def test_urdf_yaml_and_report_hold_the_result(tmp_path, truth, cad):
    result = identify(
        cad,
        record(truth, 37, duration=10.0, rate=400.0),
        validate=[record(truth, 38, duration=5.0, rate=400.0)],
        hz=8.0,
    )
    paths = write_all(result, tmp_path / "out", resource("urdf", "twolink.urdf").read_text())
    assert [path.name for path in paths] == ["report.html", "parameters.yaml", "identified.urdf"]
    again = load_urdf(tmp_path / "out" / "identified.urdf")
    for link, expected in zip(again.links, result.arm.links):
        np.testing.assert_allclose(link.parameters, expected.parameters, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(again.damping, result.arm.damping, rtol=1e-12)
    np.testing.assert_allclose(again.coulomb, result.arm.coulomb, rtol=1e-12)
    assert again.warnings == () and again.tip == "tool0"
    text = (tmp_path / "out" / "identified.urdf").read_text()
    assert "Two uniform rods" in text and "I1 + m2 L1²" in text and "kept from the URDF given" in text
    data = yaml.safe_load((tmp_path / "out" / "parameters.yaml").read_text())
    assert data["rank"] == len(result.rows) and data["base_parameters"][0]["verdict"] == "identified"
    assert data["links"][1]["mass_kg"] == pytest.approx(result.arm.links[1].mass)
    html = (tmp_path / "out" / "report.html").read_text()
    assert (
        html.count("<svg") == 2 * 2 * 3
        and "not identifiable" in html
        and "Cross-validation" in html
        and "seed38 (validation)" in html
    )
    assert not re.search(r"(src|href)=|https?://|url\(", html)  # self-contained


def test_welded_parts_end_up_inside_their_link(tmp_path):
    """The URDF of an arm with a fixed tool: the tool's inertial moves into the link it is welded to."""
    path = resource("urdf", "awkward.urdf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TwolinkWarning)
        arm = load_urdf(path)
        result = identify(arm, record(arm, 41, duration=10.0, rate=300.0, amplitude=(0.8,) * arm.n), hz=8.0, delay=0.0)
        write_all(result, tmp_path, path.read_text())
        again = load_urdf(tmp_path / "identified.urdf")
    assert any(frame.name not in [link.name for link in arm.links] and frame.link >= 0 for frame in arm.frames)
    for link, expected in zip(again.links, result.arm.links):
        np.testing.assert_allclose(link.parameters, expected.parameters, rtol=1e-9, atol=1e-12)


def test_cross_validation_and_condition(seeds):
    held = seeds[0].cross_validation
    assert len(held) == 4 and all((error < 0.5 * torque).all() for _, error, torque in held)
    assert seeds[0].poor_directions == [] or seeds[0].poor_directions[0][0] < 0.05


# -- command ---------------------------------------------------------------------------------------------------------
def test_the_command_writes_and_tells(tmp_path, capsys, truth):
    from twolink_dynamics import Trajectory

    for seed, name in ((43, "a.csv"), (44, "b.csv")):
        log = record(truth, seed, duration=8.0, rate=300.0, velocities=True)
        Trajectory(log.t, log.q, log.qd, log.tau).to_csv(tmp_path / name, truth.joint_names)
    status = main(
        [
            "identify",
            str(tmp_path / "a.csv"),
            "--urdf",
            "twolink",
            "--validate",
            str(tmp_path / "b.csv"),
            "--filter-hz",
            "8",
            "--delay",
            "0",
            "--fix",
            "mz1=0",
            "--out",
            str(tmp_path / "out"),
        ]
    )
    out, err = capsys.readouterr()
    assert status == 0 and "I1 + m2 L1²" in out and "b.csv (validation), physical" in out and "reading" in err
    assert (tmp_path / "out" / "report.html").is_file()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["nothing.csv"], "no log 'nothing.csv'"),
        (["LOG", "--units", "position=furlong"], "unit 'furlong' is none of"),
        (["LOG", "--fix", "m7"], "no parameter 'm7'"),
        (["LOG", "--payload", "1,2"], "--payload '1,2' is not KG or KG,X,Y,Z"),
        (["LOG", "--filter-hz", "900"], "filter of 900 Hz"),
        (["LOG", "--delay", "soon"], "--delay: 'soon' is not a number"),
    ],
)
def test_bad_input_is_one_line(tmp_path, capsys, truth, arguments, message):
    from identification_helpers import write_csv

    path = write_csv(tmp_path / "log.csv", record(truth, 47, duration=3.0, rate=200.0, velocities=True))
    status = main(
        [
            "identify",
            *[str(path) if a == "LOG" else a for a in arguments],
            "--urdf",
            "twolink",
            "--out",
            str(tmp_path / "o"),
        ]
    )
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("twolink: error")]
    assert status == 2 and len(errors) == 1 and message in errors[0]


def test_ctrl_c_keeps_what_there_is(truth, cad):
    logs = [record(truth, seed, duration=6.0, rate=300.0) for seed in (51, 52, 53)]

    def stop(text):
        if "seed53" in text:
            raise KeyboardInterrupt

    result = identify(cad, logs, hz=8.0, progress=stop)
    assert result.interrupted and len(result.signals) == 2
    assert "stopped by Ctrl-C: only 2 of 3 logs used" in result.remarks
    with pytest.raises(KeyboardInterrupt):
        identify(cad, logs[2], hz=8.0, progress=stop)  # nothing there yet: nothing to keep
