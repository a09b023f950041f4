"""The launch files: without `launch` everything they name is looked up; with it they run for real."""
import ast
import configparser
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from twolink_dynamics.nodes.parameters import TABLES
from twolink_dynamics.nodes.tables import renewed, scenario_files
from twolink_dynamics.scenarios import SCENARIOS

REPOSITORY = Path(__file__).resolve().parent.parent
FILES = sorted((REPOSITORY / "launch").glob("*.launch.py"))
OTHERS = {"robot_state_publisher": {"robot_state_publisher"}, "rviz2": {"rviz2"}}  # packages and executables


def tree_of(file):
    return ast.parse(file.read_text(encoding="utf-8"))


def calls(tree, name):
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name]


def keyword(call, name):
    return next((k.value for k in call.keywords if k.arg == name), None)


def strings(node):
    return [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]


def executables():
    text = (REPOSITORY / "setup.py").read_text(encoding="utf-8")
    return set(re.findall(r'f?"(\w+) = \{NAME\}\.', text))


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.name)
class TestFile:
    def test_every_executable_exists(self, file):
        nodes = calls(tree_of(file), "Node")
        assert nodes
        for node in nodes:
            package, executable = keyword(node, "package"), keyword(node, "executable").value
            if isinstance(package, ast.Name):  # PACKAGE
                assert executable in executables()
            else:
                assert executable in OTHERS[package.value]
            assert keyword(node, "namespace") is not None

    def test_every_argument_is_described_has_a_default_and_is_used(self, file):
        tree = tree_of(file)
        declared = {}
        for call in calls(tree, "DeclareLaunchArgument"):
            assert keyword(call, "default_value") is not None and keyword(call, "description") is not None
            declared[call.args[0].value] = call
        used = {call.args[0].value for call in calls(tree, "setting") + calls(tree, "LaunchConfiguration")}
        assert used == set(declared)

    def test_every_file_exists(self, file):
        for call in calls(tree_of(file), "PathJoinSubstitution"):
            parts = call.args[0].elts[1:]
            if all(isinstance(part, ast.Constant) for part in parts):
                assert REPOSITORY.joinpath(*(part.value for part in parts)).is_file()
            else:
                assert (REPOSITORY / parts[0].value).is_dir()

    def test_every_parameter_exists(self, file):
        known = {row.name for table in TABLES.values() for row in table} | {"use_sim_time"}
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.Dict):
                for key in node.keys:
                    assert key.value in known
        text = file.read_text(encoding="utf-8")
        assert '"robot_description": ParameterValue(' not in text or "value_type=str)" in text
        assert "open(" not in text

    def test_it_is_one_declarative_list(self, file):
        function = next(n for n in tree_of(file).body if isinstance(n, ast.FunctionDef))
        assert isinstance(function.body[-1], ast.Return) and len(calls(function, "LaunchDescription")) == 1
        assert not [n for n in ast.walk(function) if isinstance(n, (ast.For, ast.If, ast.While, ast.With))]


def test_bringup_knows_every_scenario_and_its_arm():
    tree = tree_of(REPOSITORY / "launch" / "bringup.launch.py")
    listed = next(n.value for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id == "SCENARIOS")
    assert ast.literal_eval(listed) == list(SCENARIOS)
    own = {name for name, scenario in SCENARIOS.items() if scenario.urdf == name}
    assert own == {"four_bar", "five_bar"} and str(tuple(sorted(own, reverse=True))) in ast.unparse(tree)
    assert {s.urdf for s in SCENARIOS.values()} == {"twolink", *own}


def test_parameter_files_are_generated_and_read_by_the_table():
    yaml = pytest.importorskip("yaml")
    for name, text in scenario_files().items():
        assert (REPOSITORY / "config" / name).read_text(encoding="utf-8") == text, \
            "run python -m twolink_dynamics.nodes.tables --write"
    for file in (REPOSITORY / "config").glob("*.yaml"):
        for node, content in yaml.safe_load(file.read_text(encoding="utf-8")).items():
            table = TABLES[node.rsplit("/", 1)[-1]] if node != "/**" else \
                TABLES["simulator" if file.stem == "simulator" else "dynamics"]
            rows = {row.name: row for row in table}
            for name, value in content["ros__parameters"].items():
                rows[name].check(value)


@pytest.mark.parametrize("page", ["docs/ros.md", "README.md"])
def test_generated_tables_are_up_to_date(page):
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    assert renewed(text) == text, "run python -m twolink_dynamics.nodes.tables --write"


# -- with launch -----------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def installed():
    """What launch needs to run the files for real: itself, and this package where the ament index finds it."""
    pytest.importorskip("launch", reason="launch comes with a ROS installation only")
    pytest.importorskip("launch_ros", reason="launch_ros comes with a ROS installation only")
    from ament_index_python.packages import PackageNotFoundError, get_package_prefix
    try:
        prefix = Path(get_package_prefix("twolink_dynamics"))
    except PackageNotFoundError:
        pytest.skip("this package is not in the ament index (colcon build, then source install/setup.bash)")
    if not (prefix / "lib" / "twolink_dynamics" / "simulator").exists():
        pytest.skip(f"no executables in {prefix}/lib/twolink_dynamics")
    return prefix


RUN = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
service = LaunchService()
arguments = [tuple(a.split(":=", 1)) for a in sys.argv[2:]]
service.include_launch_description(LaunchDescription([IncludeLaunchDescription(
    PythonLaunchDescriptionSource(sys.argv[1]), launch_arguments=arguments)]))
sys.exit(service.run())
"""


class Launched:
    """A launch file in a process of its own."""

    def __init__(self, log, name, *arguments):
        self.log = log
        with open(log, "wb") as stream:
            self.process = subprocess.Popen(
                [sys.executable, "-c", RUN, str(REPOSITORY / "launch" / name), *arguments], stdout=stream,
                stderr=subprocess.STDOUT, env=dict(os.environ))

    def output(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def end(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(90.0)


@pytest.mark.skipif(shutil.which("cat") is None, reason="cat prints the URDF")
def test_simulate_and_control_together_hold_the_arm(installed, tmp_path):
    """Also with a comment holding `: ` in the URDF, which launch would read as YAML without value_type=str."""
    from ros_harness import Probe
    from sensor_msgs.msg import JointState
    urdf = tmp_path / "an arm.urdf"
    text = (REPOSITORY / "urdf" / "twolink.urdf").read_text(encoding="utf-8")
    urdf.write_text(text.replace("<robot", "<!-- note: a: b -->\n<robot", 1), encoding="utf-8")
    probe = Probe()
    heard = probe.listen(JointState, "/launched/joint_states")
    plant = Launched(tmp_path / "simulate.log", "simulate.launch.py", f"urdf:={urdf}", "namespace:=launched")
    controller = Launched(tmp_path / "control.log", "control.launch.py", f"urdf:={urdf}", "namespace:=launched",
                          "enabled:=true")
    try:
        probe.until(lambda: heard and any(heard[-1].effort), "efforts")
        probe.until(lambda: len(heard) > 500, "more states")
        assert max(map(abs, heard[-1].position)) < 1e-2
    finally:
        statuses = plant.end(), controller.end()
        probe.close()
    assert "Traceback" not in plant.output() + controller.output() and statuses[1] == 0


def test_setup_installs_what_the_files_need():
    setup = (REPOSITORY / "setup.py").read_text(encoding="utf-8")
    assert all(f'"{folder}"' in setup for folder in ("urdf", "launch", "config", "rviz"))
    parser = configparser.ConfigParser()
    parser.read(REPOSITORY / "setup.cfg")
    assert parser["develop"]["script_dir"] == "$base/lib/twolink_dynamics"
