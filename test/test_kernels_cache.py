"""The object cache: reused when it can be, rebuilt when it cannot be trusted, never in the way."""
import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import REPOSITORY

from twolink_dynamics import Dynamics
from twolink_dynamics.kernels import compile as compiler

pytestmark = pytest.mark.skipif(not compiler.available(), reason="llvmlite is not installed")
STATE = (np.array([0.3, -0.4]), np.array([1.0, 2.0]), np.array([-1.0, 0.5]))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TWOLINK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def torque(arm):
    """(τ, whether the code came from the cache) of a new Dynamics."""
    dynamics = Dynamics(arm, "llvm")
    tau = dynamics.inverse_dynamics(*STATE)
    return tau, dynamics.kernel("inverse_dynamics")._one.from_cache


@pytest.fixture
def expected(twolink):
    return Dynamics(twolink, "newton_euler").inverse_dynamics(*STATE)


def test_second_time_comes_from_the_cache(cache, twolink, expected):
    (first, built), (second, cached) = torque(twolink), torque(twolink)
    assert not built and cached
    assert (first == second).all() and np.abs(first - expected).max() < 1e-12
    assert [path.suffix for path in cache.iterdir()] == [".o"]
    assert cache.stat().st_mode & 0o077 == 0


def test_another_arm_is_another_entry(cache, twolink):
    torque(twolink)
    assert not torque(twolink.with_payload(1.0))[1]
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "foreign", "swapped", "directory"])
def test_damaged_entries_are_rebuilt(cache, twolink, expected, damage):
    torque(twolink)
    [path] = cache.iterdir()
    data = path.read_bytes()
    if damage == "truncated":
        path.write_bytes(data[:len(data) // 2])
    elif damage == "flipped":
        path.write_bytes(data[:-100] + bytes([data[-100] ^ 0xFF]) + data[-99:])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "foreign":
        path.write_bytes(b"\x7fELF something else entirely" * 100)
    elif damage == "swapped":  # a sound entry of another kernel under this one's name
        Dynamics(twolink, "llvm").gravity(STATE[0])
        [other] = [p for p in cache.iterdir() if p != path]
        path.write_bytes(other.read_bytes())
    else:
        path.unlink()
        path.mkdir()
    tau, from_cache = torque(twolink)
    assert not from_cache and np.abs(tau - expected).max() < 1e-12
    if damage != "directory":
        assert torque(twolink)[1], "the damaged entry was replaced"


def test_unwritable_directory_costs_only_time(tmp_path, monkeypatch, twolink, expected):
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("TWOLINK_CACHE", str(tmp_path / "file" / "cache"))
    for _ in range(2):
        tau, from_cache = torque(twolink)
        assert not from_cache and np.abs(tau - expected).max() < 1e-12


def test_key_holds_all_that_machine_code_depends_on(monkeypatch):
    machine = compiler.target()
    keys = {compiler.cache_key("x")}
    for attribute in ("version", "triple", "cpu", "features"):
        with monkeypatch.context() as change:
            change.setattr(machine, attribute, "another")
            keys.add(compiler.cache_key("x"))
    keys.add(compiler.cache_key("y"))
    with monkeypatch.context() as change:
        change.setattr(compiler, "emitter_version", lambda: "next")
        keys.add(compiler.cache_key("x"))
    assert len(keys) == 7


SCRIPT = f"""
import numpy as np
from twolink_dynamics import Dynamics, load_urdf
from twolink_dynamics.kernels import compile as compiler
arm = load_urdf({str(REPOSITORY / "urdf" / "twolink.urdf")!r})
state = [np.array([0.3, -0.4]), np.array([1.0, 2.0]), np.array([-1.0, 0.5])]
tau, want = (Dynamics(arm, engine).inverse_dynamics(*state) for engine in ("llvm", "newton_euler"))
rows = Dynamics(arm, "llvm").forward_dynamics(*(np.tile(x, (13, 1)) for x in state))
assert abs(tau - want).max() < 1e-12
assert abs(rows - Dynamics(arm, "newton_euler").forward_dynamics(*state)).max() < 1e-11
print(compiler.target().width, compiler.target().fma)
"""


def run(cache, **environment):
    return subprocess.Popen([sys.executable, "-c", SCRIPT], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True,
                            env={**os.environ, "TWOLINK_CACHE": str(cache), **environment})


def test_processes_may_race(cache):
    processes = [run(cache) for _ in range(3)]
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * 3, outputs
    assert not list(cache.glob("*.tmp"))


def test_plain_cpu_without_avx_or_fma(cache):
    if not compiler.target().triple.startswith("x86_64"):
        pytest.skip("an x86-64 matter")
    process = run(cache, TWOLINK_CPU="x86-64")
    assert process.communicate(timeout=120)[0].split() == ["2", "False"] and process.returncode == 0
