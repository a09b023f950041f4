"""The parameter table: one row per parameter, every value checked, refusals that name the parameter. No ROS here."""
import re

import pytest

from twolink_dynamics.errors import InputError
from twolink_dynamics.nodes.parameters import (
    BOOL,
    DYNAMICS,
    INT,
    JOINTS,
    NUMBER,
    NUMBERS,
    SIMULATOR,
    TABLES,
    TEXT,
    TEXTS,
    ParameterSet,
    documentation,
)

ROWS = {f"{node}/{row.name}": row for node, table in TABLES.items() for row in table}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_every_default_passes_its_own_check(row):
    assert row.check(row.default, 2) == row.default
    assert row.type in (BOOL, INT, NUMBER, TEXT, NUMBERS, TEXTS)
    assert re.fullmatch(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?", row.name)
    assert row.description and row.description[-1] != "."


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_names_are_unique(table):
    names = [row.name for row in table]
    assert len(names) == len(set(names))


def refused(table, name, value, n=2):
    parameters = ParameterSet(table, n)
    with pytest.raises(InputError) as refusal:
        parameters.propose({name: value}, running=False)
    message = str(refusal.value)
    assert name in message and "\n" not in message
    assert parameters[name] == parameters.table[name].default  # nothing was kept
    return message


@pytest.mark.parametrize("name, value, said", [
    ("kp", "high", "must be a list"), ("kp", [1.0, "x"], "list of numbers"), ("kp", [1.0, 2.0, 3.0], "2 joints"),
    ("kp", [-1.0], "0 to 1e+06"), ("kp", [float("nan"), 1.0], "finite"), ("gravity", [0.0, 0.0], "must have 3"),
    ("gravity", [], "must have 3"), ("gravity", 9.81, "must be a list"), ("enabled", 1, "true or false"),
    ("enabled", "yes", "true or false"), ("controller", "computed torque", "gravity_compensation"),
    ("controller", 3, "must be text"), ("state_timeout", 0.0, "0.001 to 60"), ("state_timeout", "fast", "a number"),
    ("state_timeout", True, "a number"), ("state_timeout", float("inf"), "finite"), ("payload.mass", -1.0, "0 to"),
    ("command_joints", ["a", "a"], "twice"), ("command_joints", "a", "must be a list"),
    ("command_joints", [1], "list of text"), ("damping", [1.0], "must have 6")])
def test_wrong_values_are_refused_by_name(name, value, said):
    assert said in refused(DYNAMICS, name, value)


def test_whole_numbers_are_taken_where_doubles_are_declared():
    parameters = ParameterSet(DYNAMICS, 2)
    change = parameters.propose({"kp": [100, 50], "state_timeout": 1, "gravity": [0, 0, -10]})
    parameters.accept(change)
    assert parameters["kp"] == [100.0, 50.0] and all(isinstance(x, float) for x in parameters["kp"])
    assert isinstance(parameters["state_timeout"], float)


def test_one_number_stands_for_all_joints_and_none_for_not_set():
    parameters = ParameterSet(SIMULATOR, 3)
    parameters.accept(parameters.propose({"friction.coulomb": 0.2}, running=False))
    assert parameters.per_joint("friction.coulomb") == [0.2] * 3
    assert parameters.per_joint("friction.viscous") is None
    assert parameters.per_joint("friction.viscous", [1.0]) == [1.0]


def test_a_seed_is_a_whole_number():
    assert ParameterSet(SIMULATOR).propose({"seed": 3.0}, running=False).values["seed"] == 3
    assert "whole" in refused(SIMULATOR, "seed", 1.5)


def test_read_only_rows_do_not_change_while_running():
    parameters = ParameterSet(SIMULATOR, 2)
    with pytest.raises(InputError, match="'dt' is read-only: restart"):
        parameters.propose({"dt": 2e-3})
    assert parameters.propose({"dt": 1e-3}).names == frozenset()  # the same value is no change
    assert parameters.propose({"dt": 2e-3}, running=False).names == {"dt"}


def test_one_wrong_value_refuses_the_whole_request():
    parameters = ParameterSet(DYNAMICS, 2)
    with pytest.raises(InputError):
        parameters.propose({"kp": [5.0], "kd": [-1.0]})
    assert parameters["kp"] == [100.0]


def test_a_typing_error_gets_a_suggestion():
    with pytest.raises(InputError, match="no parameter 'state_timout'; did you mean 'state_timeout'"):
        ParameterSet(DYNAMICS).propose({"state_timout": 1.0})


def test_lists_are_fitted_once_the_joints_are_known():
    parameters = ParameterSet(DYNAMICS)
    parameters.accept(parameters.propose({"kp": [1.0, 2.0, 3.0]}, running=False))
    with pytest.raises(InputError, match="'kp'.*3 entries.*2 joints"):
        parameters.fit(2)
    parameters.fit(3)


def test_documentation_has_a_row_for_each():
    for table in TABLES.values():
        text = documentation(table)
        assert all(f"| `{row.name}` |" in text for row in table)
        assert {line.count("|") - line.count("\\|") for line in text.splitlines()} == {8}


def test_joint_rows_are_the_ones_with_a_list_per_joint():
    assert {row.name for row in DYNAMICS if row.size == JOINTS} >= {"kp", "kd", "effort_limit", "effort_to_command"}
