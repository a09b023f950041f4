"""The compiled sine and cosine against mpmath: whole range, multiples of π/2, and what is no angle at all."""
import ctypes
import math
import shutil
import subprocess

import numpy as np
import pytest

from twolink_dynamics.kernels import c_source, graph, llvm_source, sincos
from twolink_dynamics.kernels import compile as compiler

mpmath = pytest.importorskip("mpmath")
ABSOLUTE = 2.3e-16  # one unit in the last place of 1, for |x| ≤ 1e6 as promised
RELATIVE = 5e-16  # where the result is small: no digits are lost beside multiples of π, but for what
PI_TAIL = 2e-33  # two parts of 53 bits leave off π/2, times the angle

needs_llvm = pytest.mark.skipif(not compiler.available(), reason="llvmlite is not installed")


def pair():
    """The Function x ↦ (sin x, cos x)."""
    g = graph.Graph()
    x = g.input("x", 0)
    return graph.Function(g, "pair", [("x", 1)], [graph.sine(x), graph.cosine(x)], (2,))


def compiled(width, fma):
    """x (N,) ↦ (N, 2), compiled for `width` lanes with or without fused multiply-add."""
    def text():
        return llvm_source.declarations(1, width) + llvm_source.rows(pair(), "pair_rows", fma, width)
    code = compiler.Code(compiler.cache_key("sincos test", width, fma), text)
    function = code.function("pair_rows", 2, 1)

    def call(x):
        x = np.ascontiguousarray(x, float)
        out = np.empty((len(x), 2))
        function(x.ctypes.data, out.ctypes.data, len(x))
        return out
    return call


def in_c(tmp_path):
    """The same from the exported C header."""
    if (gcc := shutil.which("gcc")) is None:
        pytest.skip("gcc is not installed")
    (tmp_path / "s.c").write_text(c_source.sincos_source("t") + """
void many(const double *x, double *out, long n) {
  for (long i = 0; i < n; ++i) t_sincos(x[i], out + 2*i, out + 2*i + 1);
}
""")
    subprocess.run([gcc, "-std=c99", "-O2", "-shared", "-fPIC", "-o", tmp_path / "s.so", tmp_path / "s.c"], check=True)
    many = ctypes.CDLL(str(tmp_path / "s.so")).many

    def call(x):
        x = np.ascontiguousarray(x, float)
        out = np.empty((len(x), 2))
        many(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data), ctypes.c_long(len(x)))
        return out
    return call


VARIANTS = [pytest.param((width, fma), marks=needs_llvm, id=f"{width} lanes{' fma' if fma else ''}")
            for width, fma in ((2, False), (4, True), (4, False), (8, True))] + [pytest.param("C", id="C")]


@pytest.fixture(params=VARIANTS)
def function(request, tmp_path):
    if request.param == "C":
        return in_c(tmp_path)
    if request.param[1] and not compiler.target().fma:
        pytest.skip("this CPU has no fused multiply-add")
    return compiled(*request.param)


def exact(x):
    with mpmath.workprec(200):
        return [(mpmath.sin(mpmath.mpf(float(v))), mpmath.cos(mpmath.mpf(float(v)))) for v in x]


def check(function, x):
    for value, ours, theirs in zip(x, function(x), exact(x)):
        for a, b in zip(ours, theirs):
            assert abs(a - b) <= ABSOLUTE, f"{value!r}: off by {float(a - b):.2e}"
            assert abs(a - b) <= RELATIVE * abs(b) + PI_TAIL * abs(value), \
                f"{value!r}: relative error {float((a - b) / b):.2e}"


def test_small_and_large_angles(function):
    rng = np.random.default_rng(1)
    check(function, np.concatenate([rng.uniform(-7.0, 7.0, 300), rng.uniform(-1e6, 1e6, 300),
                                    rng.choice((-1.0, 1.0), 300) * 10.0 ** rng.uniform(-300, 6, 300)]))


def test_beside_multiples_of_half_pi(function):
    k = np.concatenate([np.arange(-12, 13), np.random.default_rng(2).integers(-636_619, 636_619, 200)])
    near = k * (math.pi / 2)
    near = near[np.abs(near) <= 1e6]
    check(function, np.concatenate([near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf)]))


def test_quadrant_edges(function):
    edges = (np.arange(-9, 10) + 0.5) * (math.pi / 2)
    check(function, np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf), [1e6, -1e6]]))


def test_zeros_and_denormals(function):
    x = np.array([0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1e-310])
    assert (function(x)[:, 0] == x).all() and (function(x)[:, 1] == 1.0).all()


def test_what_is_no_angle_gives_nan(function):
    x = np.array([np.nan, np.inf, -np.inf, 1.0001 * sincos.LIMIT, -1e300, 1.7e308])
    assert np.isnan(function(x)).all()


def test_up_to_the_limit_digits_are_kept(function):
    x = np.random.default_rng(3).uniform(0.9, 1.0, 50) * sincos.LIMIT
    worst = max(abs(a - b) for ours, theirs in zip(function(x), exact(x)) for a, b in zip(ours, theirs))
    assert worst <= ABSOLUTE


def test_a_bad_lane_spoils_no_other(function):
    x = np.array([0.1, np.nan, 0.3, np.inf, 0.5, 1e300, 0.7, -np.inf, 0.9])
    good = np.isfinite(x) & (np.abs(x) < 1.0)
    assert np.abs(function(x)[good, 0] - np.sin(x[good])).max() < ABSOLUTE
    assert np.isnan(function(x)[~good]).all()
