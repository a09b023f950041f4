"""The package as a package: what it declares, where its files land, which way its imports point."""
import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from conftest import REPOSITORY

PACKAGE = REPOSITORY / "twolink_dynamics"
DATA_FOLDERS = ("urdf", "launch", "config", "rviz")

# Layers, lowest first: a module imports from lower layers or from its own subpackage only.
LAYERS = (
    ("errors",), ("arm",), ("kinematics", "resources", "symbols"),
    ("urdf", "planar", "newton_euler", "lagrangian", "kernels", "friction", "trajectory", "base_parameters"),
    ("dynamics",),
    ("flexible", "constraints", "contact", "sensors"), ("ledger", "integrators", "complementarity", "events"),
    ("plant", "modes"),
    ("residual",), ("control",), ("simulation", "batch"), ("replay",),
    ("verify", "identification", "model_tests", "motion"),
    ("scenarios",), ("viewer",), ("nodes",), ("commands",), ("cli",), ("__main__",), ("__init__",),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
INDEPENDENT = ("planar", "newton_euler", "lagrangian", "kernels")  # their agreement is evidence


def modules():
    return sorted(path for path in PACKAGE.rglob("*.py"))


def unit(path):
    """The layer unit a file belongs to: its subpackage, or its own name at the top."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_units(path):
    """(unit, line) of every import of this package in a file."""
    depth = len(path.relative_to(PACKAGE).parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            if node.level < depth:
                yield unit(path), node.lineno  # inside its own subpackage
            elif node.module:
                yield node.module.split(".")[0], node.lineno
            else:
                yield from ((alias.name, node.lineno) for alias in node.names if not alias.name.startswith("__"))
        else:
            names = ([node.module] if isinstance(node, ast.ImportFrom) else
                     [alias.name for alias in node.names] if isinstance(node, ast.Import) else [])
            for name in names:
                if name and name.split(".")[0] == "twolink_dynamics":
                    yield (name.split(".") + ["__init__"])[1], node.lineno


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_downward(path):
    own = unit(path)
    assert own in RANK, f"{own} has no layer: give it one in LAYERS"
    for other, line in imported_units(path):
        assert other in RANK, f"{path.name}:{line} imports {other}, which has no layer"
        assert other == own or RANK[other] < RANK[own] or {own, other} <= set(LAYERS[RANK[own]]) - set(INDEPENDENT), \
            f"{path.name}:{line}: {own} must not import {other}"


@pytest.mark.parametrize("path", [p for p in modules() if "nodes" not in p.parts],
                         ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_nodes_know_ros(path):
    ros = re.compile(r"^\s*(?:from|import)\s+(rclpy|\w+_msgs|std_srvs|launch\w*)\b", re.MULTILINE)
    assert not ros.findall(path.read_text())


def test_import_is_light():
    heavy = "sympy, matplotlib, viser, sklearn, rclpy, llvmlite, mujoco, pinocchio".split(", ")
    code = f"import sys, twolink_dynamics; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    assert done.stdout.strip() == "[]"


def test_package_xml_names_every_dependency():
    from catkin_pkg.package import parse_package
    package = parse_package(str(REPOSITORY / "package.xml"))
    assert package.package_format == 3 and package.get_build_type() == "ament_python"
    assert package.licenses == ["Apache-2.0"] and (REPOSITORY / "LICENSE").read_text().count("Apache License")
    declared = {dependency.name for dependency in package.exec_depends}
    ros = set(re.findall(r"^\s*(?:from|import)\s+(rclpy|\w+_msgs|std_srvs|rcl_interfaces)\b",
                         "\n".join(p.read_text() for p in (PACKAGE / "nodes").rglob("*.py")), re.MULTILINE))
    assert "rclpy" in ros  # the premise: the nodes' imports were found
    assert ros - {"control_msgs"} <= declared  # control_msgs is optional: only where it can be imported
    assert {"launch_ros", "urdfdom_py", "python3-numpy", "python3-scipy", "python3-sympy"} <= declared
    launched = set(re.findall(r"package=[\"'](\w+)[\"']",
                              "\n".join(p.read_text() for p in (REPOSITORY / "launch").glob("*.py"))))
    assert launched - {"twolink_dynamics"} <= declared


def setup_version():
    return re.search(r'version="([^"]+)"', (REPOSITORY / "setup.py").read_text()).group(1)


def test_one_version_everywhere():
    from twolink_dynamics import __version__
    xml = ElementTree.parse(REPOSITORY / "package.xml").getroot().findtext("version")
    assert __version__ == xml == setup_version()
    assert __version__ in (REPOSITORY / "CHANGELOG.rst").read_text()


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A colcon workspace with a copy of the sources, built for real; installed, not symlinked."""
    colcon = Path(sys.executable).with_name("colcon")
    if not colcon.exists():
        pytest.skip("colcon is not installed beside this Python")
    root = tmp_path_factory.mktemp("workspace")
    shutil.copytree(REPOSITORY, root / "src" / "twolink_dynamics", ignore=shutil.ignore_patterns(
        ".git", ".venv", "__pycache__", "*.egg-info", "build", "install", "log", ".pytest_cache", ".hypothesis"))
    env = {**os.environ, "PATH": f"{colcon.parent}:{os.environ['PATH']}", "COLCON_LOG_PATH": str(root / "log")}
    listed = subprocess.run([colcon, "list", "--base-paths", "src"], cwd=root, env=env, capture_output=True, text=True)
    built = subprocess.run([colcon, "build", "--base-paths", "src", "--event-handlers", "console_direct+"], cwd=root,
                           env=env, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return root, listed.stdout


def test_colcon_build_installs_everything(workspace):
    root, listed = workspace
    assert "(ros.ament_python)" in listed
    prefix = root / "install" / "twolink_dynamics"
    share = prefix / "share" / "twolink_dynamics"
    assert (prefix / "share/ament_index/resource_index/packages/twolink_dynamics").is_file()
    for folder in DATA_FOLDERS:
        here = {path.name for path in (REPOSITORY / folder).iterdir() if path.is_file()}
        there = {path.name for path in (share / folder).iterdir()}
        assert here and here == there, folder
        assert not any(path.is_symlink() for path in (share / folder).iterdir())
    for program in ("twolink", "simulator", "dynamics", "viewer", "markers"):
        assert os.access(prefix / "lib" / "twolink_dynamics" / program, os.X_OK), program
    site = next(prefix.glob("lib/python3*/site-packages/twolink_dynamics"))
    assert {p.relative_to(PACKAGE) for p in modules()} == {p.relative_to(site) for p in site.rglob("*.py")}


def test_colcon_install_finds_its_data(workspace):
    root, _ = workspace
    prefix = root / "install" / "twolink_dynamics"
    site = next(prefix.glob("lib/python3*/site-packages"))
    env = {**os.environ, "PYTHONPATH": str(site), "AMENT_PREFIX_PATH": str(prefix)}
    code = ("import twolink_dynamics, twolink_dynamics.resources as r; "
            "print(twolink_dynamics.__file__, r.find_urdf('twolink'))")
    done = subprocess.run([sys.executable, "-P", "-c", code] if sys.version_info >= (3, 11) else
                          [sys.executable, "-c", code], cwd=root, env=env, capture_output=True, text=True, check=True)
    module, urdf = done.stdout.split()
    assert Path(module).is_relative_to(site)
    assert urdf == str(prefix / "share" / "twolink_dynamics" / "urdf" / "twolink.urdf")


def test_wheel_carries_its_data(workspace, tmp_path):
    """`pip install .` (not editable) brings urdf/, config/, rviz/ along, found by the wheel's own record."""
    sources = workspace[0] / "src" / "twolink_dynamics"
    build = subprocess.run([sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet",
                            "--wheel-dir", str(tmp_path), str(sources)], capture_output=True, text=True)
    assert build.returncode == 0, build.stderr
    installed = subprocess.run([sys.executable, "-m", "pip", "install", "--no-deps", "--quiet", "--ignore-installed",
                                "--prefix", str(tmp_path / "prefix"), *map(str, tmp_path.glob("*.whl"))],
                               capture_output=True, text=True)
    assert installed.returncode == 0, installed.stderr
    site = next((tmp_path / "prefix").glob("lib/python3*/site-packages"))
    code = "import twolink_dynamics.resources as r; print(r.find_urdf('twolink'))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(site)})
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(tmp_path / "prefix")


def test_tree_speaks_of_itself_alone():
    """No absolute path of somebody's machine in what is committed."""
    tracked = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("not a git checkout")
    for name in tracked.stdout.split():
        path = REPOSITORY / name
        if path.suffix in {".py", ".md", ".rst", ".toml", ".cfg", ".yaml", ".xml", ".urdf", ""} and path.is_file():
            assert not re.search(r"/(home|root|Users|work)/\w", path.read_text(errors="ignore")), name
