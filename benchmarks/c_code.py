"""C beside ours, compiled with -O3 -march=native: the exported header (one call, rows, columns, rollout) and a
two-link inverse dynamics written by hand with SIMD vectors."""
from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

from twolink_dynamics import ModelError, planar
from twolink_dynamics.commands.export import source

from .models import ROOT

WRAPPER = """#include "arm.h"
void one(const double *a, const double *b, const double *c, double *out) {{ arm_{name}(a, b, c, out); }}
void rows(const double *a, const double *b, const double *c, double *out, long count) {{
  for (long i = 0; i < count; ++i) arm_{name}(a + {n} * i, b + {n} * i, c + {n} * i, out + {n} * i);
}}
void columns(const double *restrict a, const double *restrict b, const double *restrict c, double *restrict out,
             long count) {{
  for (long i = 0; i < count; ++i) {{
    double q[{n}], v[{n}], u[{n}], r[{n}];
    for (int k = 0; k < {n}; ++k) {{ q[k] = a[k * count + i]; v[k] = b[k * count + i]; u[k] = c[k * count + i]; }}
    arm_{name}(q, v, u, r);
    for (int k = 0; k < {n}; ++k) out[k * count + i] = r[k];
  }}
}}
void rollout(double *q, double *v, const double *tau, double dt, long steps) {{
  double x[2 * {n}];
  for (long s = 0; s < steps; ++s) {{
    arm_rk4_step(q, v, tau, &dt, x);
    for (int k = 0; k < {n}; ++k) {{ q[k] = x[k]; v[k] = x[{n} + k]; }}
  }}
}}
"""


def library(arm, name):
    """The compiled library for a kernel of three arguments; raises RuntimeError without gcc."""
    loaded = compiled(WRAPPER.format(name=name, n=arm.n), arm_h=source(arm, "c", f"{name},rk4_step", prefix="arm"))
    pointer = ctypes.c_void_p
    loaded.one.argtypes = [pointer] * 4
    loaded.rows.argtypes = loaded.columns.argtypes = [pointer] * 4 + [ctypes.c_long]
    loaded.rollout.argtypes = [pointer] * 3 + [ctypes.c_double, ctypes.c_long]
    return loaded


def by_hand(arm):
    """hand_2r.c for a planar arm of two links drawn as in the textbook; raises RuntimeError without gcc, ModelError for
    other arms."""
    p = planar.TwoLinkParameters.from_arm(arm)
    if (p.start1, p.start2, p.elbow, p.d2) != (0.0, 0.0, 1.0, 0.0):
        raise ModelError(f"'{arm.name}' is not drawn as the textbook's")
    inertia2 = p.m2 * p.lc2**2 + p.I2
    g1, g2 = (float(g) for g in planar.gravity_coefficients(p)[:2])
    constants = {"P1": p.m1 * p.lc1**2 + p.I1 + p.m2 * p.L1**2 + inertia2, "P2": inertia2, "B": p.m2 * p.L1 * p.lc2,
                 "G1": g1, "G2": g2}
    loaded = compiled((ROOT / "benchmarks" / "hand_2r.c").read_text(),
                      *(f"-D{name}={float(value)!r}" for name, value in constants.items()))
    loaded.hand_rows.argtypes = loaded.hand_columns.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_long]
    return loaded


def compiled(text, *options, arm_h=""):
    """The shared library of C text."""
    if (gcc := shutil.which("gcc")) is None:
        raise RuntimeError("gcc is not installed")
    folder = Path(tempfile.mkdtemp(prefix="twolink_bench_"))
    try:
        (folder / "arm.h").write_text(arm_h)
        (folder / "arm.c").write_text(text)
        subprocess.run([gcc, *options, "-O3", "-march=native", "-shared", "-fPIC", "-o", folder / "arm.so",
                        folder / "arm.c"], check=True, capture_output=True)
        return ctypes.CDLL(str(folder / "arm.so"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
