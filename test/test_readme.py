"""Everything README.md and docs/*.md tell a reader to type is tried, as far as this machine can."""
import ast
import contextlib
import importlib
import io
import re
import shlex
import subprocess
import warnings

import pytest
from conftest import REPOSITORY

from twolink_dynamics import cli

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHELL_WORDS = ("git", "cd", "source", ".", "python3", "pip", "rosdep", "colcon", "apt", "sudo", "rviz2", "cc", "gcc",
               "ls", "mkdir", "cp", "export", "xacro", "ament", "cat", "kill")  # not ours: their spelling is not tried
REAL_RUN = ("--headless", "info", "derive", "export", "verify", "simulate", "excite")


def blocks(*languages):
    return list(_blocks(languages))


def _blocks(languages):
    for page in PAGES:
        for match in FENCE.finditer(page.read_text()) if page.exists() else ():
            if match.group(1) in languages:
                line = page.read_text()[:match.start()].count("\n") + 1
                yield pytest.param(match.group(2), id=f"{page.name}:{line}")


def commands(text):
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line.removeprefix("$ "), comments=True)
        while words and re.fullmatch(r"\w+=\S*", words[0]):  # VAR=value before the command
            words.pop(0)
        if words:
            yield words


@pytest.fixture
def workshop(tmp_path, monkeypatch):
    """An empty folder with the files that the pages call by example names."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_arm.urdf").write_text((REPOSITORY / "urdf" / "twolink.urdf").read_text())
    return tmp_path


@pytest.mark.parametrize("source", blocks("python"))
def test_python_snippets_run(source, workshop):
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        exec(compile(source, "snippet", "exec"), {"__name__": "snippet"})


@pytest.mark.parametrize("text", blocks("bash", "console", "sh"))
def test_shell_snippets_are_understood(text, workshop):
    for words in commands(text):
        program, *rest = words
        if program == "make":
            done = subprocess.run(["make", "-n", *rest], cwd=REPOSITORY, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
        elif program == "twolink":
            twolink(rest)
        elif program == "ros2":
            ros2(rest)
        elif program.endswith("/twolink") or words[:4] == ["ros2", "run", "twolink_dynamics", "twolink"]:
            twolink(rest)
        else:
            assert program.split("/")[-1] in SHELL_WORDS, f"what is '{program}'?"


def twolink(rest):
    """Parse it with the real parser; run it when it ends by itself without ROS, a browser or a log of the reader's."""
    rest = [word for word in rest if not word.endswith("&")]
    try:
        args = cli.build_parser(only=rest[0] if rest and rest[0] in cli.command_names() else None).parse_args(rest)
    except SystemExit as stop:
        assert stop.code == 0, f"twolink {' '.join(rest)}: not understood"
        return
    if args.command in REAL_RUN and "FILE" not in " ".join(rest):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as err:
            status = cli.main(rest)
        assert status == 0, f"twolink {' '.join(rest)}: {err.getvalue()}"


def ros2(rest):
    """`ros2` itself is in no package index: check the files, arguments, programs and types that the line names."""
    verb = rest[:2]
    if rest[0] == "launch":
        source = (REPOSITORY / "launch" / rest[2]).read_text()
        assert rest[1] == "twolink_dynamics"
        for word in rest[3:]:
            name = word.split(":=")[0]
            assert f'"{name}"' in source or f"'{name}'" in source, f"{rest[2]} has no argument {name}"
    elif rest[0] == "run":
        assert re.search(rf'f"{rest[2]} = ', (REPOSITORY / "setup.py").read_text()), rest
    elif verb[0] in ("topic", "service"):
        for word in rest[2:]:
            if re.fullmatch(r"\w+/(msg|srv)/\w+", word):
                package, kind, name = word.split("/")
                module = pytest.importorskip(f"{package}.{kind}")
                assert hasattr(module, name), word
    elif verb[0] == "param":
        parameters = importlib.import_module("twolink_dynamics.nodes.parameters")
        known = ast.unparse(ast.parse(open(parameters.__file__).read()))
        if len(rest) > 3:
            assert rest[3] in known, f"no parameter {rest[3]}"
    else:
        assert verb[0] in ("node", "bag", "action", "interface"), rest
