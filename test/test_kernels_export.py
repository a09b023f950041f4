"""`twolink export`: the generated header compiles without warnings and computes what everything else does."""
import ctypes
import shutil
import subprocess
import sys

import numpy as np
import pytest
from arms import random_arm, random_state
from conftest import REPOSITORY

from twolink_dynamics import Dynamics, InputError
from twolink_dynamics.cli import main
from twolink_dynamics.commands.export import source
from twolink_dynamics.kernels.catalog import KERNELS

INSIDE = 1e-12
URDF = str(REPOSITORY / "urdf" / "twolink.urdf")
STRICT = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC", "-nostdlib"]


def expected(arm, name, arguments):
    reference = Dynamics(arm, "newton_euler")
    if name == "rk4_step":
        return None
    result = getattr(reference, name)(*arguments)
    return np.concatenate([np.ravel(part) for part in result]) if isinstance(result, tuple) else np.ravel(result)


def arguments_of(arm, name):
    state = random_state(arm, 4)
    return state[:len(KERNELS[name].inputs)]


@pytest.fixture(params=["twolink", "random"])
def arm(request, twolink):
    return twolink if request.param == "twolink" else random_arm(5, n=3)


def test_c_header_compiles_and_agrees(arm, tmp_path):
    if (gcc := shutil.which("gcc")) is None:
        pytest.skip("gcc is not installed")
    names = list(KERNELS)
    (tmp_path / "arm.h").write_text(source(arm, "c", ",".join(names), prefix="arm"))
    wrappers = ['#include "arm.h"', '#include "arm.h"']  # twice: the guard holds
    for name in names:
        inputs = KERNELS[name].inputs
        wrappers += [f"void do_{name}({', '.join(f'const double *{a}' for a in inputs)}, double *out);",
                     f"void do_{name}({', '.join(f'const double *{a}' for a in inputs)}, double *out) "
                     f"{{ arm_{name}({', '.join(inputs)}, out); }}"]
    (tmp_path / "arm.c").write_text("\n".join(wrappers) + "\n")
    subprocess.run([gcc, *STRICT, "-o", tmp_path / "arm.so", tmp_path / "arm.c"], check=True)
    library = ctypes.CDLL(str(tmp_path / "arm.so"))
    for name in names:
        if (want := expected(arm, name, arguments_of(arm, name))) is None:
            continue
        out = np.empty(want.shape)
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*arguments_of(arm, name), out)]
        getattr(library, f"do_{name}")(*pointers)
        assert np.abs(out - want).max() < INSIDE * max(1.0, np.abs(want).max()), name


def test_python_module_agrees_and_needs_only_math(arm, tmp_path):
    (tmp_path / "equations.py").write_text(source(arm, "python"), encoding="utf-8")
    arguments = arguments_of(arm, "inverse_dynamics")
    code = (f"import sys; before = set(sys.modules); import equations; "
            f"assert set(sys.modules) - before <= {{'equations', 'math'}}, set(sys.modules) - before; "
            f"print(equations.inverse_dynamics(*{[a.tolist() for a in arguments]!r}))")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    want = expected(arm, "inverse_dynamics", arguments)
    assert np.abs(np.array(eval(done.stdout)) - want).max() < INSIDE * max(1.0, np.abs(want).max())


def test_source_is_deterministic(arm):
    for language in ("c", "python"):
        assert source(arm, language) == source(arm, language)
        assert arm.fingerprint in source(arm, language)


def test_command_line(tmp_path, capsys):
    assert main(["export", URDF, "--lang", "c", "-o", str(tmp_path / "a.h")]) == 0
    assert "twolink_inverse_dynamics(" in (tmp_path / "a.h").read_text()
    assert main(["export", URDF, "--lang", "python", "--kernels", "gravity, mass_matrix"]) == 0
    assert "def mass_matrix(q):" in capsys.readouterr().out
    assert main(["export", URDF, "--lang", "latex"]) == 0
    assert r"\cos" in capsys.readouterr().out


def test_command_line_mistakes(tmp_path, capsys):
    assert main(["export", URDF, "--kernels", "torque"]) == 2
    assert "no kernel 'torque'; there are inverse_dynamics" in capsys.readouterr().err
    assert main(["export", URDF, "-o", str(tmp_path / "no" / "a.h")]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_unknown_kernel_in_the_library(twolink):
    with pytest.raises(InputError, match="no kernel"):
        source(twolink, "c", "torque")
