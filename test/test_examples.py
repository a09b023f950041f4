"""Every example runs and ends with something to try next."""
import subprocess
import sys

import pytest
from conftest import REPOSITORY

EXAMPLES = sorted((REPOSITORY / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_says_what_to_try_next(path):
    assert "# Try next:" in path.read_text()


@pytest.mark.parametrize("path", [p for p in EXAMPLES if "rclpy" not in p.read_text()], ids=lambda path: path.stem)
def test_example_runs(path, tmp_path):
    done = subprocess.run([sys.executable, path], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() and "nan" not in done.stdout
