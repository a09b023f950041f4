"""The table of scenarios: parameters that exist, scripts inside their time, verdicts that notice what is wrong. No
ROS."""
import numpy as np
import pytest

from twolink_dynamics import Dynamics, InputError, load_urdf
from twolink_dynamics.nodes.parameters import TABLES, ParameterSet
from twolink_dynamics.resources import find_urdf
from twolink_dynamics.scenarios import (
    BENT,
    LOAD,
    PLANNED,
    PUSH,
    PUSH_K,
    SCENARIOS,
    Record,
    energy_check,
    scenario,
    tracking_checks,
)

ENTRIES = ("kinetic", "input", "external", "dissipated", "edits", "balance")


def arm_of(name):
    s = SCENARIOS[name]
    return load_urdf(find_urdf(s.urdf), tip=s.simulator.get("tip"))


@pytest.mark.parametrize("name", SCENARIOS)
def test_parameters_exist_and_fit(name):
    s, arm = SCENARIOS[name], arm_of(name)
    for node in ("simulator", "dynamics"):
        parameters = ParameterSet(TABLES[node], arm.n)
        parameters.accept(parameters.propose(getattr(s, node), running=False))
        parameters.fit(arm.n)
    assert scenario(name) is s and s.description


@pytest.mark.parametrize("name", [name for name, s in SCENARIOS.items() if s.script != PLANNED])
def test_scripts_fit_their_time(name):
    s, arm = SCENARIOS[name], arm_of(name)
    actions = s.script(arm, s.length)
    assert actions and all(0.0 <= action.at < s.length - 1.0 for action in actions)
    for action in actions:
        if action.kind == "trajectory":
            assert set(action.data["joints"]) <= set(arm.joint_names)
            assert action.at + action.data["points"][-1].time < s.length - 0.5
        if action.kind == "parameter":
            row = {row.name: row for row in TABLES[action.data["node"]]}[action.data["name"]]
            assert row.live and row.check(action.data["value"], arm.n) == action.data["value"]


def test_an_unknown_scenario_lists_the_known():
    with pytest.raises(InputError, match="no scenario 'dance'; the scenarios are tracking, push"):
        scenario("dance")


def record_of(length=5.0, **series):
    """A Record at 50 Hz; each series is a value or a function of t."""
    record = Record()
    for t in np.arange(0.0, length, 0.02):
        for name in ENTRIES:
            record.add(f"energy/{name}", t, 1.0 if name == "input" else 0.0)
        for name, value in series.items():
            record.add(name, t, np.array(value(t) if callable(value) else value, float))
    return record


def verdict(name, record):
    s = SCENARIOS[name]
    return {check.name: check.good for check in s.verdict(arm_of(name), record, s.length)}


def test_a_record_says_what_is_missing():
    with pytest.raises(InputError, match="nothing was received of 'q'"):
        Record().values("q")


@pytest.mark.parametrize("balance, good", [(0.0, True), (5e-6, True), (2e-5, False), (-1.0, False)])
def test_energy_is_judged_against_what_moved(balance, good):
    record = record_of()
    record.add("energy/balance", 5.0, balance)
    assert energy_check(record).good is good


def test_tracking_notices_standing_still_lagging_and_missing(twolink):
    def checks(**series):
        return [check.good for check in tracking_checks(twolink, record_of(**series), 5.0)]
    wave = {"q": lambda t: [np.sin(t), 0.0]}
    assert checks(error=[1e-4, 0.0], **wave) == [True] * 4
    assert checks(error=[0.0, 0.0], q=[0.1, 0.1])[0] is False
    assert checks(error=lambda t: [0.05 if 1.0 < t < 1.1 else 0.0, 0.0], **wave)[1] is False
    assert checks(error=[2e-3, 0.0], **wave)[2] is False


def test_tracking_notices_a_model_that_leaves_much_to_feedback(twolink):
    def share(feedback):
        record = record_of(q=lambda t: [np.sin(t), 0.0], qd=lambda t: [np.cos(t), 0.0], error=[0.0, 0.0],
                           total=[10.0, 1.0], feedback=lambda t: [feedback if abs(np.cos(t)) > 0.1 else 5.0, 0.0])
        return verdict("tracking", record)["share of the torque that the model lacks"]
    assert share(0.1) and not share(2.0)


@pytest.mark.parametrize("factor, good", [(1.0, True), (0.95, False), (0.0, False)])
def test_push_wants_the_compliance(factor, good):
    start = np.array([0.6, 0.0, 0.5])
    record = record_of(6.0, tip=lambda t: start + factor * PUSH / PUSH_K * (1.5 < t < 3.45))
    found = verdict("push", record)
    assert found["deflection x [m]"] is good and found["deflection z [m]"] is good
    assert found["distance from the start after the push [m]"]


def test_push_wants_the_way_back():
    record = record_of(6.0, tip=lambda t: [0.6 + 0.01 * (t > 4.0), 0.0, 0.5])
    assert not verdict("push", record)["distance from the start after the push [m]"]


@pytest.mark.parametrize("force, good", [(20.0, True), (19.0, False), (0.0, False)])
def test_wall_wants_the_analytic_force(force, good):
    record = record_of(contact=[-force, 0.0, 0.0], tip=[0.62, 0.0, 0.5])
    assert verdict("wall", record)["contact force [N]"] is good


def test_payload_wants_the_predicted_error_and_its_cure(twolink):
    q = np.array(BENT)
    model, plant = Dynamics(twolink), Dynamics(twolink.with_payload(LOAD))
    expected = np.linalg.solve(model.mass_matrix(q), plant.gravity(q) - model.gravity(q)) / 100.0
    assert np.abs(expected).max() > 1e-2  # there is something to see
    cured = record_of(q=q, error=lambda t: expected * (t < 2.6))
    assert all(verdict("payload", cured).values())
    assert not verdict("payload", record_of(q=q, error=expected))["error with it [rad]"]
    assert not all(verdict("payload", record_of(q=q, error=[0.0, 0.0])).values())


@pytest.mark.parametrize("name", ["four_bar", "five_bar"])
def test_linkages_notice_that_they_are_open(name):
    arm = arm_of(name)
    record = record_of(q=np.full(arm.n, 0.3), error=np.zeros(arm.n), constraint=[1.0, 0.0, 0.0])
    found = verdict(name, record)
    assert not found["linkage open by [m]"] and not found["motion of the driven joints [rad]"]
