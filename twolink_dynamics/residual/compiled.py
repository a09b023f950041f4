"""One residual as straight-line code, for a single state: the same arithmetic as network.py, without NumPy's
microsecond per call. The formula is written once (`_write`) and comes out as machine code through llvmlite, or as
Python source of plain floats where llvmlite is missing.

The machine code calls tanh, sin and cos of the C library, and takes and gives Python floats through the public C API
(METH_FASTCALL), so that it needs no buffers of its own, any number of threads may call it, and no call goes through
ctypes.
"""
from __future__ import annotations

import ctypes
import ctypes.util
import math
import struct

import numpy as np

from .network import FADE_MARGIN


class _Machine:
    """LLVM assembly: every call appends one instruction and returns the name of its value."""

    def __init__(self):
        self.lines = []

    def new(self, text):
        self.lines.append(f"  %v{len(self.lines)} = {text}")
        return f"%v{len(self.lines) - 1}"

    @staticmethod
    def constant(value):
        """A double in LLVM assembly, exactly."""
        return "0x" + struct.pack(">d", float(value)).hex().upper()

    def op(self, sign, a, b):
        name = {"+": "fadd", "-": "fsub", "*": "fmul"}[sign]
        return self.new(f"{name} double {a}, {b}")

    def call(self, function, argument):
        name = {"abs": "llvm.fabs.f64", "round": "llvm.rint.f64"}.get(function, function)
        return self.new(f"call double @{name}(double {argument})")

    def choose(self, a, test, b, yes, no):
        """`yes` where ``a test b`` holds, else `no` (also for NaN)."""
        holds = self.new(f"fcmp {'olt' if test == '<' else 'ogt'} double {a}, {b}")
        return self.new(f"select i1 {holds}, double {yes}, double {no}")

    def dot(self, weights, values, start):
        total = self.constant(start)
        for weight, value in zip(weights, values):
            if weight:
                total = self.op("+", total, self.op("*", self.constant(weight), value))
        return total


class _Python:
    """Python source with the interface of _Machine: every call appends one line."""

    def __init__(self):
        self.lines = []

    def new(self, text):
        self.lines.append(f"    v{len(self.lines)} = {text}")
        return f"v{len(self.lines) - 1}"

    @staticmethod
    def constant(value):
        """A float, exactly."""
        return f"({float(value)!r})"

    def op(self, sign, a, b):
        return self.new(f"{a} {sign} {b}")

    def call(self, function, argument):
        return self.new(f"{function}({argument})")

    def choose(self, a, test, b, yes, no):
        return self.new(f"{yes} if {a} {test} {b} else {no}")

    def dot(self, weights, values, start):
        terms = [f"{self.constant(weight)}*{value}" for weight, value in zip(weights, values) if weight]
        return self.new(" + ".join([self.constant(start), *terms]))


def _write(code, net, z):
    """Names of the n outputs, from the names of the 3 n inputs (q, q̇, q̈)."""
    n, number = net.n, code.constant
    fade = number(1.0)
    for i in range(3 * n):
        if np.isinf(net.half[i]):  # all angles are known: only NaN and infinity fade, x − x is 0 or NaN
            u = code.op("-", z[i], z[i])
        else:
            away = code.op("-", z[i], number(net.centre[i]))
            if i < n and net.continuous[i]:
                turns = code.call("round", code.op("*", away, number(0.5 / np.pi)))
                away = code.op("-", away, code.op("*", turns, number(2.0 * np.pi)))
            over = code.op("-", code.call("abs", away), number(net.half[i]))
            u = code.op("*", over, number(1.0 / max(FADE_MARGIN * net.half[i], 1e-9)))
            u = code.choose(u, "<", number(0.0), number(0.0), u)
        cubic = code.op("-", number(3.0), code.op("*", number(2.0), u))
        left = code.op("-", number(1.0), code.op("*", code.op("*", u, u), cubic))
        smooth = code.choose(u, "<", number(1.0), left, number(0.0))  # 0 for NaN
        fade = code.op("*", fade, smooth)
    phases = [code.op("*", number(k), z[j]) for j, k in zip(net.harmonic_joint, net.harmonic)]
    x = [code.call("sin", phase) for phase in phases] + [code.call("cos", phase) for phase in phases]
    x += [z[j] for j in net.linear] + z[n:]
    # the normalisation is folded into the weights
    inner, outer = net.hidden / net.scale, net.straight / net.scale
    h = [code.call("tanh", code.dot(w, x, b - w @ net.mean)) for w, b in zip(inner, net.hidden_bias)]
    outputs = []
    for i in range(n):
        y = code.dot([*net.readout[i], *outer[i]], [*h, *x], net.bias[i] - outer[i] @ net.mean)
        y = code.choose(y, "<", number(-net.clip[i]), number(-net.clip[i]), y)
        y = code.choose(y, ">", number(net.clip[i]), number(net.clip[i]), y)
        outputs.append(code.choose(fade, ">", number(0.0), code.op("*", fade, y), number(0.0)))
    return outputs


def machine_source(net):
    """LLVM assembly of ``PyObject *residual(self, args, nargs)``: 3 n floats (q, q̇, q̈) to a tuple of n floats."""
    n, code = net.n, _Machine()
    z = []
    for i in range(3 * n):
        argument = code.new(f"load ptr, ptr {code.new(f'getelementptr ptr, ptr %args, i64 {i}')}")
        z.append(code.new(f"call double @PyFloat_AsDouble(ptr {argument})"))
    outputs = _write(code, net, z)
    result = code.new(f"call ptr @PyTuple_New(i64 {n})")
    for i, y in enumerate(outputs):
        number = code.new(f"call ptr @PyFloat_FromDouble(double {y})")
        code.new(f"call i32 @PyTuple_SetItem(ptr {result}, i64 {i}, ptr {number})")
    declared = [f"declare double @{name}(double)" for name in ("sin", "cos", "tanh", "llvm.fabs.f64", "llvm.rint.f64")]
    declared += ["declare ptr @PyTuple_New(i64)",
                 "declare ptr @PyFloat_FromDouble(double)",
                 "declare i32 @PyErr_BadArgument()",
                 "declare double @PyFloat_AsDouble(ptr)", "declare i32 @PyTuple_SetItem(ptr, i64, ptr)"]
    return "\n".join([*declared, "define ptr @residual(ptr %self, ptr %args, i64 %count) {",
                      f"  %right = icmp eq i64 %count, {3 * n}", "  br i1 %right, label %good, label %bad", "bad:",
                      "  %set = call i32 @PyErr_BadArgument()", "  ret ptr null", "good:", *code.lines,
                      f"  ret ptr {result}", "}"])


def python_source(net):
    """Python source of ``residual(q1, …, q̇1, …, q̈1, …)``: 3 n floats to a tuple of n floats."""
    code, z = _Python(), [f"z{i}" for i in range(3 * net.n)]
    outputs = _write(code, net, z)
    # every sine of an infinite angle raises: what is not finite has fade 0 and is not looked at further
    finite = f"    if not -inf < {' + '.join(z)} < inf: return {(0.0,) * net.n!r}"
    return "\n".join([f"def residual({', '.join(z)}):", finite, *code.lines, f"    return {', '.join(outputs)},"])


class _Method(ctypes.Structure):
    """PyMethodDef, as the stable ABI has it."""

    _fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
                ("doc", ctypes.c_char_p)]


METH_FASTCALL = 0x0080


def compile_torque(net):
    """The callable residual(q1, …, q̇1, …, q̈1, …) -> n floats in a tuple: machine code, without llvmlite Python's."""
    try:
        import llvmlite.binding as llvm
    except ImportError:
        return compile_python(net)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    maths = ctypes.CDLL(ctypes.util.find_library("m"))
    api = ("PyTuple_New", "PyFloat_FromDouble", "PyTuple_SetItem", "PyFloat_AsDouble", "PyErr_BadArgument")
    for library, names in ((maths, ("sin", "cos", "tanh")), (ctypes.pythonapi, api)):
        for name in names:
            llvm.add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)
    module = llvm.parse_assembly(machine_source(net))
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2, jit=True)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    method = _Method(b"residual", engine.get_function_address("residual"), METH_FASTCALL, None)
    new = ctypes.pythonapi.PyCMethod_New
    new.argtypes = [ctypes.POINTER(_Method), ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    new.restype = ctypes.py_object
    _alive.append((engine, method))
    return new(ctypes.byref(method), None, None, None)


_alive = []  # compiled code and its method records: a function object may outlive whoever asked for it


def compile_python(net):
    """The same callable from Python source."""
    space = dict(sin=math.sin, cos=math.cos, tanh=math.tanh, inf=math.inf)
    exec(compile(python_source(net), "<residual>", "exec"), space)  # our own numbers only: no text of a file is in it
    return space["residual"]
