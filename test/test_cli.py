"""`twolink` as typed by a beginner: wrong arguments are one line about what is wrong, never a traceback."""
import subprocess
import sys

import pytest

from twolink_dynamics import cli

THREE = """<robot name="a"><link name="base"/><link name="rod"><inertial><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<joint name="hinge" type="revolute"><parent link="base"/><child link="rod"/></joint></robot>"""


def command(capsys, *argv):
    """(exit status, stdout, stderr) of `twolink ARGV`."""
    return cli.main(argv), *capsys.readouterr()


@pytest.mark.parametrize("name", cli.command_names())
def test_every_command_has_help(capsys, name):
    status, out, err = command(capsys, name, "--help")
    assert status == 0 and out.startswith(f"usage: twolink {name}") and not err


@pytest.mark.parametrize("name", cli.command_names())
def test_an_argument_too_many_is_one_line_that_names_the_help_of_its_command(capsys, name):
    needed = {"identify": ("--urdf", "twolink"), "export": ("--lang", "c")}.get(name, ())
    status, _, err = command(capsys, name, *needed, "twolink", "--no-such-option")
    assert status == 2 and err.startswith("twolink: error: unrecognized arguments: ") and err.count("\n") == 1
    assert "--no-such-option" in err and err.endswith(f"(see twolink {name} --help)\n")


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "x"])
def test_what_is_no_finite_number_is_refused(capsys, value):
    status, _, err = command(capsys, "simulate", "twolink", f"--duration={value}")
    assert status == 2 and f"'{value}'" in err.splitlines()[-1]


@pytest.mark.parametrize("value", ["-1", "-.5", "-0.5", "-1e-3", "-2.5E+0"])
def test_negative_numbers_in_any_notation(value):
    args = cli.build_parser(only="simulate").parse_args(["simulate", "twolink", "--q0", value, "2"])
    assert args.q0 == [float(value), 2.0]


def test_a_file_that_cannot_be_written_is_one_line(capsys, monkeypatch):
    def run(args):
        open("/no/such/folder/file", "w")
    monkeypatch.setattr(cli._module("info"), "run", run)
    status, _, err = command(capsys, "info")
    assert status == 2 and err == "twolink: error: '/no/such/folder/file': No such file or directory\n"


def test_info_tells_a_warning_once(capsys, tmp_path):
    path = tmp_path / "an arm.urdf"
    path.write_text(THREE)
    status, out, err = command(capsys, "info", str(path))
    assert status == 0 and out.count("no effort, velocity, position limit") == 1 and not err


def test_a_closed_pipe_is_no_error():
    done = subprocess.run(f"{sys.executable} -m twolink_dynamics info twolink | head -1", shell=True,
                          capture_output=True, text=True)
    assert done.stdout.startswith("twolink: 2 joints") and "Error" not in done.stderr


def test_a_missing_log_is_named_once(tmp_path):
    from twolink_dynamics.errors import InputError
    from twolink_dynamics.trajectory import Trajectory
    with pytest.raises(InputError) as caught:
        Trajectory.from_csv(tmp_path / "none.csv")
    assert str(caught.value) == f"cannot read '{tmp_path / 'none.csv'}': No such file or directory"


@pytest.mark.parametrize("option, value", [("--every", "0"), ("--every", "-2"), ("--duration", "-1"),
                                           ("--duration", "0"), ("--dt", "9"), ("--dt", "0"), ("--dt", "-1")])
def test_a_simulation_of_nothing_is_refused(capsys, option, value):
    status, out, err = command(capsys, "simulate", "twolink", option, value)
    assert status == 2 and not out and err.count("\n") == 1 and option.strip("-") in err
