"""LLVM IR to machine code through llvmlite, with a cache of object files that may be lost, foreign or broken.

An entry is one file: a header, the key it was made for, the SHA-256 of the object, the object. Anything that does not
read back exactly so is rebuilt. Files are written beside their place and renamed, so processes can race. The directory
is ``$TWOLINK_CACHE``, else ``twolink_dynamics`` in ``$XDG_CACHE_HOME`` or ``~/.cache``; unwritable costs time only.
"""
from __future__ import annotations

import ctypes
import hashlib
import itertools
import os
import tempfile
import threading
import weakref
from functools import lru_cache
from pathlib import Path

import numpy as np

from .catalog import VERSION

MAGIC = b"twolink kernel 1\n"
EMITTER = ("algebra", "builtin", "catalog", "compile", "engine", "graph", "llvm_source", "model", "sincos", "trace")
_lock = threading.Lock()


@lru_cache(maxsize=None)
def available():
    """Whether llvmlite can be used here."""
    try:
        return target() is not None
    except Exception:  # any fault of an optional native library means: do without
        return False


class Target:
    """The machine compiled for: CPU name and features, width of its vectors of doubles, fused multiply-add."""

    def __init__(self):
        import llvmlite
        import llvmlite.binding as llvm
        try:
            llvm.initialize()
        except RuntimeError:
            pass  # newer versions initialise themselves and say so
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.llvm = llvm
        self.cpu = os.environ.get("TWOLINK_CPU") or llvm.get_host_cpu_name()
        features = llvm.get_host_cpu_features()
        if os.environ.get("TWOLINK_CPU"):
            features = {}
        wanted = os.environ.get("TWOLINK_CPU_FEATURES", "")
        flags = features.flatten() if features else ""
        self.features = ",".join(part for part in (flags, wanted, "-prefer-256-bit") if part)
        on = {part[1:] for part in self.features.split(",") if part.startswith("+")} \
            - {part[1:] for part in self.features.split(",") if part.startswith("-")}
        self.triple = llvm.get_process_triple()
        arm64 = self.triple.startswith(("aarch64", "arm64"))
        self.fma = arm64 or "fma" in on
        self.width = 8 if "avx512f" in on else 4 if "avx" in on else 2
        self.version = f"llvmlite {llvmlite.__version__}, LLVM {'.'.join(map(str, llvm.llvm_version_info))}"

    def machine(self):
        """A new target machine."""
        target = self.llvm.Target.from_triple(self.triple)
        return target.create_target_machine(cpu=self.cpu, features=self.features, opt=2, jit=True)


@lru_cache(maxsize=None)
def target():
    """The Target of this process; raises ImportError without llvmlite."""
    return Target()


def cache_directory():
    """Where object files are kept."""
    if (chosen := os.environ.get("TWOLINK_CACHE")):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "twolink_dynamics"


@lru_cache(maxsize=None)
def emitter_version():
    """VERSION and a digest of the sources that shape machine code, so that no edit of them meets old objects."""
    digest = hashlib.sha256()
    for name in EMITTER:
        try:
            digest.update(Path(__file__).with_name(f"{name}.py").read_bytes())
        except OSError:  # in a zip file: the version has to do
            pass
    return f"{VERSION} {digest.hexdigest()[:16]}"


def cache_key(*parts):
    """The key of an object: everything its machine code depends on."""
    machine = target()
    return "\n".join([f"emitter {emitter_version()}", machine.version, machine.triple, machine.cpu, machine.features,
                      *map(str, parts)]).encode()


def read(key):
    """The cached object of this key, or None."""
    try:
        data = _path(key).read_bytes()
    except (OSError, RuntimeError):
        return None
    head = MAGIC + hashlib.sha256(key).digest()
    start = len(head) + 32
    if not data.startswith(head) or hashlib.sha256(data[start:]).digest() != data[len(head):start]:
        return None
    return data[start:]


def write(key, code):
    """Keeps an object, if the directory lets us."""
    name = None
    try:
        path = _path(key)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "wb") as file:
            file.write(MAGIC + hashlib.sha256(key).digest() + hashlib.sha256(code).digest() + code)
        os.replace(name, path)
    except (OSError, RuntimeError):  # read-only, full, no home directory: only slower next time
        if name is not None:
            try:
                os.unlink(name)
            except OSError:
                pass


def _path(key):
    return cache_directory() / f"{hashlib.sha256(key).hexdigest()[:40]}.o"


def build(text):
    """The object code of IR text. No passes run before the code generator: the graph has left them nothing to find
    (same speed measured, a third less time)."""
    module = target().llvm.parse_assembly(text)
    module.verify()
    return target().machine().emit_object(module)


_loaded = {}  # LLVM's owners of machine code, by number; see Code
_numbers = itertools.count()


class Code:
    """Loaded machine code; `address(name)` of a function lives as long as this object.

    LLVM's owner stands in a global table and is struck off when a token of this object dies. Were it an attribute, the
    garbage collector would finalize it (and free the code) while a ``__del__`` in the same cycle may still call it; the
    token, an array, is nothing that the collector finalizes early.
    """

    def __init__(self, key, text):
        """`key` names the code, `text()` gives its IR where the cache does not know it."""
        llvm = target().llvm
        with _lock:  # LLVM's global context
            code = read(key)
            self.from_cache = code is not None
            if code is None:
                code = build(text())
                write(key, code)
            engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target().machine())
            engine.add_object_file(llvm.ObjectFileRef.from_data(code))
            engine.finalize_object()
        self._number, self._token = next(_numbers), np.empty(0)
        _loaded[self._number] = engine
        weakref.finalize(self._token, _loaded.pop, self._number).atexit = False

    def address(self, name):
        """Address of a function."""
        return _loaded[self._number].get_function_address(name)

    def function(self, name, pointers, integers=0):
        """The function as ``void(pointers × double *, integers × int64)`` for ctypes; a call releases the GIL."""
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * pointers, *[ctypes.c_int64] * integers)
        function = kind(self.address(name))
        function.code = self  # keeps the machine code alive
        return function
