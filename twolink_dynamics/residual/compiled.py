"""One residual as straight-line machine code, for a single state: the same arithmetic as network.py, without NumPy's
microsecond per call. Needs llvmlite; `compile_torque` returns None where it is missing and everything still works.

The code calls tanh, sin and cos of the C library, and takes and gives Python floats through the public C API
(METH_FASTCALL), so that it needs no buffers of its own, any number of threads may call it, and no call goes through
ctypes.
"""
from __future__ import annotations

import ctypes
import ctypes.util
import struct

import numpy as np

from .network import FADE_MARGIN


class _Code:
    """Straight-line LLVM assembly: every call appends one instruction and returns the name of its value."""

    def __init__(self):
        self.lines = []

    def new(self, text):
        self.lines.append(f"  %v{len(self.lines)} = {text}")
        return f"%v{len(self.lines) - 1}"

    def op(self, name, a, b):
        return self.new(f"{name} double {a}, {b}")

    def call(self, function, *arguments):
        return self.new(f"call double @{function}({', '.join(f'double {a}' for a in arguments)})")

    def replace(self, value, test, bound, other):
        """`other` where ``value test bound`` holds, else the value."""
        holds = self.new(f"fcmp {test} double {value}, {constant(bound)}")
        return self.new(f"select i1 {holds}, double {other}, double {value}")

    def dot(self, weights, values, start):
        total = constant(start)
        for weight, value in zip(weights, values):
            if weight:
                total = self.op("fadd", total, self.op("fmul", constant(weight), value))
        return total


def constant(value):
    """A double in LLVM assembly, exactly."""
    return "0x" + struct.pack(">d", float(value)).hex().upper()


def source(net):
    """LLVM assembly of ``PyObject *residual(self, args, nargs)``: 3 n floats (q, q̇, q̈) to a tuple of n floats."""
    n, code = net.n, _Code()
    z = []
    for i in range(3 * n):
        argument = code.new(f"load ptr, ptr {code.new(f'getelementptr ptr, ptr %args, i64 {i}')}")
        z.append(code.new(f"call double @PyFloat_AsDouble(ptr {argument})"))
    fade = constant(1.0)
    for i in range(3 * n):
        if np.isinf(net.half[i]):  # all angles are known: only NaN and infinity fade, x − x is 0 or NaN
            u = code.op("fsub", z[i], z[i])
        else:
            away = code.op("fsub", z[i], constant(net.centre[i]))
            if i < n and net.continuous[i]:
                turns = code.call("llvm.rint.f64", code.op("fmul", away, constant(0.5 / np.pi)))
                away = code.op("fsub", away, code.op("fmul", turns, constant(2.0 * np.pi)))
            over = code.op("fsub", code.call("llvm.fabs.f64", away), constant(net.half[i]))
            u = code.op("fmul", over, constant(1.0 / max(FADE_MARGIN * net.half[i], 1e-9)))
            u = code.replace(u, "olt", 0.0, constant(0.0))
        cubic = code.op("fsub", constant(3.0), code.op("fmul", constant(2.0), u))
        left = code.op("fsub", constant(1.0), code.op("fmul", code.op("fmul", u, u), cubic))
        inside = code.new(f"fcmp olt double {u}, {constant(1.0)}")  # false for NaN
        smooth = code.new(f"select i1 {inside}, double {left}, double {constant(0.0)}")
        fade = code.op("fmul", fade, smooth)
    phases = [code.op("fmul", constant(k), z[j]) for j, k in zip(net.harmonic_joint, net.harmonic)]
    x = [code.call("sin", phase) for phase in phases] + [code.call("cos", phase) for phase in phases]
    x += [z[j] for j in net.linear] + z[n:]
    # the normalisation is folded into the weights
    inner, outer = net.hidden / net.scale, net.straight / net.scale
    h = [code.call("tanh", code.dot(w, x, b - w @ net.mean)) for w, b in zip(inner, net.hidden_bias)]
    result = code.new(f"call ptr @PyTuple_New(i64 {n})")
    for i in range(n):
        y = code.dot(net.readout[i], h, net.bias[i] - outer[i] @ net.mean)
        y = code.op("fadd", y, code.dot(outer[i], x, 0.0))
        for test, bound in (("olt", -net.clip[i]), ("ogt", net.clip[i])):
            y = code.replace(y, test, bound, constant(bound))
        known = code.new(f"fcmp ogt double {fade}, {constant(0.0)}")
        y = code.new(f"select i1 {known}, double {code.op('fmul', fade, y)}, double {constant(0.0)}")
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


class _Method(ctypes.Structure):
    """PyMethodDef, as the stable ABI has it."""

    _fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
                ("doc", ctypes.c_char_p)]


METH_FASTCALL = 0x0080


def compile_torque(net):
    """The callable residual(q1, …, q̇1, …, q̈1, …) -> n floats in a tuple; None without llvmlite."""
    try:
        import llvmlite.binding as llvm
    except ImportError:
        return None
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    maths = ctypes.CDLL(ctypes.util.find_library("m"))
    api = ("PyTuple_New", "PyFloat_FromDouble", "PyTuple_SetItem", "PyFloat_AsDouble", "PyErr_BadArgument")
    for library, names in ((maths, ("sin", "cos", "tanh")), (ctypes.pythonapi, api)):
        for name in names:
            llvm.add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)
    module = llvm.parse_assembly(source(net))
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
