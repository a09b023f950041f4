"""A compiled kernel as a built-in function: ``kernel(q, qd, …[, out=…])`` on NumPy vectors, no Python in between.

The entry is written in LLVM IR against Python's documented C API (METH_FASTCALL, PyObject_Type, PyTuple_GetItem, …) and
NumPy's (PyArray_NewFromDescr and the public head of PyArrayObject, whose offset is `object.__basicsize__`). It serves
exact float64 vectors of length n (contiguous, aligned); everything else goes to a Python function that handles lists,
batches and mistakes.
The layout NumPy promises is looked at once, on a real array, and not used where it is different.
"""
from __future__ import annotations

import ctypes
import sys
import sysconfig
from functools import lru_cache

import numpy as np

from .catalog import PARAMETERS

HEAD = object.__basicsize__
DATA, NDIM, DIMS, STRIDES, DESCR, FLAGS = HEAD, HEAD + 8, HEAD + 16, HEAD + 24, HEAD + 40, HEAD + 48
WRITEABLE, ALIGNED, C_CONTIGUOUS = 0x400, 0x100, 0x1
NEW_FROM_DESCR = 94  # place of PyArray_NewFromDescr in NumPy's table of functions
METH_FASTCALL_KEYWORDS = 0x80 | 0x2
ABI = f"entry 2, object {HEAD}"  # part of the cache key
OUT = sys.intern("out")
PYTHON = ("PyObject_Type", "Py_DecRef", "Py_IncRef", "PyTuple_GetItem", "PyTuple_Size", "PyObject_Vectorcall")
DECLARATIONS = """
@twolink_ndarray = external global i8
@twolink_float64 = external global i8
@twolink_out = external global i8
declare ptr @twolink_PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare ptr @twolink_PyObject_Type(ptr)
declare void @twolink_Py_DecRef(ptr)
declare void @twolink_Py_IncRef(ptr)
declare ptr @twolink_PyTuple_GetItem(ptr, i64)
declare i64 @twolink_PyTuple_Size(ptr)
declare ptr @twolink_PyObject_Vectorcall(ptr, ptr, i64, ptr)
"""


class MethodDef(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = [("name", ctypes.c_char_p), ("method", ctypes.c_void_p), ("flags", ctypes.c_int),
                ("doc", ctypes.c_char_p)]


@lru_cache(maxsize=None)
def usable():
    """Whether this Python and NumPy are laid out as documented; registers the symbols the entries call."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    if sysconfig.get_config_var("Py_GIL_DISABLED"):  # an array's shape could change between the look and the call
        return False
    try:
        addresses = {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in PYTHON}
    except AttributeError:  # Python 3.10 has PyObject_Vectorcall in its headers only
        return False
    try:
        from numpy._core._multiarray_umath import _ARRAY_API as capsule
    except ImportError:
        try:
            from numpy.core._multiarray_umath import _ARRAY_API as capsule
        except ImportError:
            return False
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer(capsule, None), ctypes.POINTER(ctypes.c_void_p))
    addresses["PyArray_NewFromDescr"] = table[NEW_FROM_DESCR]
    addresses["ndarray"], addresses["float64"], addresses["out"] = id(np.ndarray), id(np.dtype(np.float64)), id(OUT)
    if table[2] != id(np.ndarray) or not _as_promised():
        return False
    from .compile import target
    for name, address in addresses.items():
        target().llvm.add_symbol(f"twolink_{name}", address)
    return True


def _as_promised():
    """Reads one array by offsets and compares with what NumPy says about it."""
    array = np.arange(24.0).reshape(4, 6)[1:3, 1:4]

    def at(offset, kind):
        return kind.from_address(id(array) + offset).value
    return (np.ndarray.__basicsize__ >= FLAGS + 4
            and at(DATA, ctypes.c_void_p) == array.__array_interface__["data"][0]
            and at(NDIM, ctypes.c_int) == 2
            and tuple((ctypes.c_int64 * 2).from_address(at(DIMS, ctypes.c_void_p))) == array.shape
            and tuple((ctypes.c_int64 * 2).from_address(at(STRIDES, ctypes.c_void_p))) == array.strides
            and at(DESCR, ctypes.c_void_p) == id(np.dtype(np.float64))
            and at(FLAGS, ctypes.c_int) & (WRITEABLE | ALIGNED | C_CONTIGUOUS) == WRITEABLE | ALIGNED)


def entry(function, kernel, name):
    """IR of the built-in `name` that calls `kernel`; its self is the tuple (fallback, parameters, …)."""
    vectors = [(a, size) for a, size in function.inputs if a != PARAMETERS]
    count, shape = len(vectors), function.shape
    lines = [f"@{name}_dims = private constant [{len(shape)} x i64] [{', '.join(f'i64 {s}' for s in shape)}]",
             f"define ptr @{name}(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) nounwind {{",
             f"  %enough = icmp eq i64 %nargs, {count}", "  br i1 %enough, label %arg0, label %fallback"]
    for k, (_, size) in enumerate(vectors):
        lines += _checked(f"a{k}", f"arg{k}", k, (size,), f"arg{k + 1}" if k + 1 < count else "output", False)
    lines += ["output:", "  %plain = icmp eq ptr %kwnames, null", "  br i1 %plain, label %fresh, label %keyword",
              "keyword:", "  %keywords = call i64 @twolink_PyTuple_Size(ptr %kwnames)",
              "  %one = icmp eq i64 %keywords, 1", "  br i1 %one, label %named, label %fallback",
              "named:", "  %word = call ptr @twolink_PyTuple_GetItem(ptr %kwnames, i64 0)",
              "  %is_out = icmp eq ptr %word, @twolink_out", "  br i1 %is_out, label %given, label %fallback"]
    lines += _checked("o", "given", count, shape, "go", True)
    lines += ["fresh:", "  call void @twolink_Py_IncRef(ptr @twolink_float64)",
              f"  %new = call ptr @twolink_PyArray_NewFromDescr(ptr @twolink_ndarray, ptr @twolink_float64, "
              f"i32 {len(shape)}, ptr @{name}_dims, ptr null, ptr null, i32 0, ptr null)",
              "  %failed = icmp eq ptr %new, null", "  br i1 %failed, label %error, label %made",
              "made:", f"  %new_at = getelementptr i8, ptr %new, i64 {DATA}", "  %new_data = load ptr, ptr %new_at",
              "  br label %run",
              "go:", "  call void @twolink_Py_IncRef(ptr %o)", "  br label %run",
              "run:", "  %result = phi ptr [ %new, %made ], [ %o, %go ]",
              "  %data = phi ptr [ %new_data, %made ], [ %o_data, %go ]"]
    pointers = [f"ptr %a{k}_data" for k in range(count)]
    if len(vectors) < len(function.inputs):
        lines += ["  %live = call ptr @twolink_PyTuple_GetItem(ptr %self, i64 1)",
                  f"  %live_at = getelementptr i8, ptr %live, i64 {DATA}", "  %live_data = load ptr, ptr %live_at"]
        pointers.append("ptr %live_data")
    lines += [f"  call void @{kernel}({', '.join([*pointers, 'ptr %data'])})", "  ret ptr %result",
              "error:", "  ret ptr null",
              "fallback:", "  %slow = call ptr @twolink_PyTuple_GetItem(ptr %self, i64 0)",
              "  %answer = call ptr @twolink_PyObject_Vectorcall(ptr %slow, ptr %args, i64 %nargs, ptr %kwnames)",
              "  ret ptr %answer", "}"]
    return "\n".join(lines) + "\n"


def _checked(value, label, position, shape, then, writeable):
    """Blocks that load argument `position` and check: exactly ndarray, float64, this shape, contiguous, aligned."""
    lines = [f"{label}:", f"  %{value}_at = getelementptr ptr, ptr %args, i64 {position}",
             f"  %{value} = load ptr, ptr %{value}_at",
             f"  %{value}_type = call ptr @twolink_PyObject_Type(ptr %{value})",
             f"  call void @twolink_Py_DecRef(ptr %{value}_type)",
             f"  %{value}_ok = icmp eq ptr %{value}_type, @twolink_ndarray",
             f"  br i1 %{value}_ok, label %{value}_look, label %fallback", f"{value}_look:"]

    def field(name, offset, kind):
        lines.extend([f"  %{value}_{name}_p = getelementptr i8, ptr %{value}, i64 {offset}",
                      f"  %{value}_{name} = load {kind}, ptr %{value}_{name}_p"])

    field("nd", NDIM, "i32")
    field("descr", DESCR, "ptr")
    field("flags", FLAGS, "i32")
    field("dims", DIMS, "ptr")
    field("data", DATA, "ptr")
    wanted = C_CONTIGUOUS | ALIGNED | (WRITEABLE if writeable else 0)
    lines += [f"  %{value}_c1 = icmp eq i32 %{value}_nd, {len(shape)}",
              f"  %{value}_c2 = icmp eq ptr %{value}_descr, @twolink_float64",
              f"  %{value}_f = and i32 %{value}_flags, {wanted}",
              f"  %{value}_c3 = icmp eq i32 %{value}_f, {wanted}",
              f"  %{value}_c4 = and i1 %{value}_c1, %{value}_c2", f"  %{value}_c5 = and i1 %{value}_c4, %{value}_c3",
              f"  br i1 %{value}_c5, label %{value}_d0, label %fallback"]
    for axis, size in enumerate(shape):
        after = then if axis + 1 == len(shape) else f"{value}_d{axis + 1}"
        lines += [f"{value}_d{axis}:", f"  %{value}_p{axis} = getelementptr i64, ptr %{value}_dims, i64 {axis}",
                  f"  %{value}_n{axis} = load i64, ptr %{value}_p{axis}",
                  f"  %{value}_e{axis} = icmp eq i64 %{value}_n{axis}, {size}",
                  f"  br i1 %{value}_e{axis}, label %{after}, label %fallback"]
    return lines


def make(code, symbol, name, fallback, parameters):
    """The built-in function at `symbol` of a Code, with self = (fallback, parameters, what must live as long)."""
    definition = MethodDef(name.encode(), code.address(symbol), METH_FASTCALL_KEYWORDS, b"")
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return new(ctypes.addressof(definition), (fallback, parameters, code, definition), None)
