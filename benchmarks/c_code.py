"""The exported C header, compiled with -O3 -march=native: one call, rows, and structure of arrays."""
from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

from twolink_dynamics.commands.export import source

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
    if (gcc := shutil.which("gcc")) is None:
        raise RuntimeError("gcc is not installed")
    folder = Path(tempfile.mkdtemp(prefix="twolink_bench_"))
    try:
        (folder / "arm.h").write_text(source(arm, "c", f"{name},rk4_step", prefix="arm"))
        (folder / "arm.c").write_text(WRAPPER.format(name=name, n=arm.n))
        subprocess.run([gcc, "-std=c99", "-O3", "-march=native", "-shared", "-fPIC", "-o", folder / "arm.so",
                        folder / "arm.c"], check=True, capture_output=True)
        loaded = ctypes.CDLL(str(folder / "arm.so"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    pointer = ctypes.c_void_p
    loaded.one.argtypes = [pointer] * 4
    loaded.rows.argtypes = loaded.columns.argtypes = [pointer] * 4 + [ctypes.c_long]
    loaded.rollout.argtypes = [pointer] * 3 + [ctypes.c_double, ctypes.c_long]
    return loaded
