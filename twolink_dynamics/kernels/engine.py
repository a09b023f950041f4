"""Kernels ready to be called: compiled by LLVM, or as generated Python and NumPy source.

Every kind has the same three calls, on float64 arrays whose shapes the caller (`Dynamics`) has made right:
``single(arrays, out)`` for one state, ``rows(arrays, shared, out)`` for row-major batches, and `steps` for rollouts.
"""
from __future__ import annotations

import ctypes
import os
from functools import cached_property

import numpy as np

from . import builtin
from . import compile as compiler
from .catalog import PARAMETERS, kernel, trace

BLOCK = 4096  # states per pass of NumPy source: less cost per call, and the work array still fits the cache
PER_THREAD = 2_000_000  # operations below which a batch is not worth another thread
SHORT = 150  # operations; what a longer kernel keeps of two blocks at once does not fit the registers
_pool = None


def _forget_pool():
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)  # a child has none of its parent's threads


def cores():
    """CPUs this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def in_parallel(call, chunks):
    """call(start, stop) for every chunk on all cores; the calls must release the GIL."""
    global _pool
    if len(chunks) == 1:
        call(*chunks[0])
        return
    if _pool is None:
        from concurrent.futures import ThreadPoolExecutor
        _pool = ThreadPoolExecutor(cores(), "twolink-kernel")
    for done in [_pool.submit(call, *chunk) for chunk in chunks]:
        done.result()


def split(count, weight, threads, grain=64):
    """[(start, stop), …] of `count` items of `weight` operations over at most `threads` threads."""
    parts = min(threads, int(count * weight // PER_THREAD), count // grain)
    if parts <= 1:
        return [(0, count)]
    edges = [grain * round(count * k / parts / grain) for k in range(parts)] + [count]
    return list(zip(edges[:-1], edges[1:]))


def address(array):
    """Where an array's data begins (asking NumPy takes ten microseconds)."""
    if builtin.usable():
        return ctypes.c_void_p.from_address(id(array) + builtin.DATA).value
    return array.ctypes.data


class KernelBase:
    """One kernel of one arm: sizes are known at once, the trace is made when somebody needs it.

    inputs      ((name, size), …), the run-time `parameters` of a live kernel last
    shape       of one result;  results: its number of entries
    """

    def __init__(self, arm, name, live=False, frame=None, damping=None):
        spec = kernel(name)
        self.arm, self.name, self.live, self.frame = arm, name, live, frame
        self.damping = None if damping is None or not spec.damping else np.asarray(damping, float)
        sizes = [(argument, 1 if argument == "dt" else arm.n) for argument in spec.inputs]
        if live:
            sizes.append((PARAMETERS, 6 + 10 * len(arm.joints)))
        self.inputs = tuple(sizes)
        self.shape = spec.shape(arm.n, len(arm.joints))
        self.results = int(np.prod(self.shape))

    @cached_property
    def function(self):
        """The trace."""
        return trace(self.arm, self.name, self.live, self.frame, self.damping)

    @cached_property
    def weight(self):
        """Operations per state, roughly."""
        return self.results + 40 * self.arm.n + 20 * self.arm.n**2


class LlvmKernel(KernelBase):
    """Machine code, loaded in three independent pieces when first needed: one state, rows, rollouts (and columns)."""

    def _code(self, piece, text):
        at = self.arm.frame(self.frame) if kernel(self.name).frame else None
        placed = () if at is None else (at.link, at.pose.rotation.tobytes().hex(), at.pose.translation.tobytes().hex())
        friction = () if self.damping is None else (self.damping.tobytes().hex(),)
        key = compiler.cache_key(piece, self.name, self.arm.fingerprint, self.live, *placed, *friction)
        return compiler.Code(key, text)

    @cached_property
    def _one(self):
        machine = compiler.target()
        entry = builtin.usable()

        def text():
            from . import llvm_source  # not needed where the code comes from the cache
            kernel_text = llvm_source.one_state(self.function, "twolink_one", machine.fma)
            if not entry:
                return llvm_source.declarations(1) + kernel_text
            return llvm_source.declarations(1) + builtin.DECLARATIONS + kernel_text + \
                builtin.entry(self.function, "twolink_one", "twolink_entry")
        return self._code(f"one {entry and builtin.ABI}", text)

    def _text(self, piece):
        from . import llvm_source
        machine = compiler.target()
        width = machine.width
        if piece != "rollout" and width < 8 and self.function.operations <= SHORT:
            width *= 2  # two registers at a time: one works while the other waits for its results
        body = getattr(llvm_source, piece)(self.function, f"twolink_{piece}", machine.fma, width)
        return llvm_source.declarations(1, width) + body

    def pointer(self):
        """(address, ctypes function) of ``void(const double *q, …, double *out)``; keep this object alive."""
        return self._single.code.address("twolink_one"), self._single

    @cached_property
    def _single(self):
        return self._one.function("twolink_one", len(self.inputs) + 1)

    def entry(self, fallback, parameters):
        """The kernel as a built-in function with `fallback` for all but plain vectors; None where that cannot be."""
        if not builtin.usable():
            return None
        return builtin.make(self._one, "twolink_entry", self.name, fallback, parameters)

    def single(self, arrays, out):
        """One state."""
        self._single(*map(address, arrays), address(out))

    @cached_property
    def _rows(self):
        code = self._code("rows", lambda: self._text("rows"))
        return code.function("twolink_rows", len(self.inputs) + 1, 1)

    @cached_property
    def _columns(self):
        code = self._code("columns", lambda: self._text("columns"))
        return code.function("twolink_columns", len(self.inputs) + 1, 2)

    @cached_property
    def _rollout(self):
        code = self._code("rollout", lambda: self._text("rollout"))
        return code.function("twolink_rollout", len(self.inputs) + 1, 5)

    def rows(self, arrays, out, threads):
        """A batch: arrays (N, size) or shared (size,), out (N, results), all C-contiguous."""
        function, chunks = self._rows, split(len(out), self.weight, threads)
        if len(chunks) == 1:
            function(*map(address, arrays), address(out), len(out))
            return
        places = [(address(a), 8 * a.shape[1] if a.ndim == 2 else 0) for a in (*arrays, out)]

        def call(start, stop):
            function(*[base + start * stride for base, stride in places], stop - start)
        in_parallel(call, chunks)

    def columns(self, arrays, out, threads):
        """A batch as structure of arrays: arrays (size, N) or shared (size,), out (results, N), all C-contiguous."""
        function, stride = self._columns, out.shape[1]
        places = [(address(a), 8 if a.ndim == 2 else 0) for a in (*arrays, out)]

        def call(start, stop):
            function(*[base + start * step for base, step in places], stop - start, stride)
        in_parallel(call, split(stride, self.weight, threads))

    def steps(self, q, qd, tau, dt, parameters, out, steps, every, threads):
        """Rollouts of rk4_step: q, qd (N, n); tau (N or 1, steps or 1, n); out (N, steps // every, 2, n)."""
        function, count, n = self._rollout, len(q), self.arm.n
        tau_row = tau.shape[1] * n if tau.shape[0] > 1 else 0
        tau_step = n if tau.shape[1] > 1 else 0
        live = [] if parameters is None else [parameters.ctypes.data]

        def call(start, stop):
            function(q.ctypes.data + 8 * start * n, qd.ctypes.data + 8 * start * n,
                     tau.ctypes.data + 8 * start * tau_row, dt.ctypes.data, *live,
                     out.ctypes.data + 8 * start * (steps // every) * 2 * n, stop - start,
                     steps, every, tau_row, tau_step)
        in_parallel(call, split(count, self.weight * steps, threads, compiler.target().width))


class SourceKernel(KernelBase):
    """Generated Python: scalars for one state, NumPy columns in blocks for batches."""

    scalar_batches = False

    @cached_property
    def _scalar(self):
        from . import python_source
        return python_source.load(python_source.scalar_source(self.function, self.arm), self.name)

    @cached_property
    def _vector(self):
        from . import python_source
        return python_source.load(python_source.numpy_source(self.function, self.arm), self.name)

    def entry(self, fallback, parameters):
        """A plain function for vectors that hands everything else to `fallback`."""
        scalar, n, shape, flat = self._scalar, (self.arm.n,), self.shape, len(self.shape) == 1
        live = () if parameters is None else (parameters,)

        def call(*vectors, **keywords):
            if keywords or len(vectors) != count:
                return fallback(*vectors, **keywords)
            for vector in vectors:
                if type(vector) is not np.ndarray or vector.shape != n or vector.dtype != float:
                    return fallback(*vectors)
            try:
                result = np.array(scalar(*[vector.tolist() for vector in (*vectors, *live)]))
            except (ValueError, ArithmeticError):  # math.sin(inf), a pivot of 0: NumPy says NaN or inf instead
                return fallback(*vectors)
            return result if flat else result.reshape(shape)
        count = len(self.inputs) - len(live)
        return call

    def single(self, arrays, out):
        """One state."""
        try:
            out.reshape(-1)[...] = self._scalar(*[a.tolist() for a in arrays])
        except (ValueError, ArithmeticError):
            self._blocks([a if name == PARAMETERS else a.reshape(1, -1) for (name, _), a in zip(self.inputs, arrays)],
                         out.reshape(1, -1))

    def rows(self, arrays, out, threads):
        """A batch: arrays (N, size) or shared (size,), out (N, results)."""
        if not self.scalar_batches:
            self._blocks(arrays, out)
            return
        for i in range(len(out)):
            self.single([a[i] if a.ndim == 2 else a for a in arrays], out[i])

    def _blocks(self, arrays, out):
        vector = self._vector
        with np.errstate(all="ignore"):  # NaN in, NaN out, no remarks
            for start in range(0, len(out), BLOCK):
                stop = min(start + BLOCK, len(out))
                results = np.empty((self.results, stop - start))
                vector(*[np.ascontiguousarray(a[start:stop].T) if a.ndim == 2 else a for a in arrays], results)
                out[start:stop] = results.T

    def columns(self, arrays, out, threads):
        """A batch as structure of arrays: arrays (size, N) or shared (size,), out (results, N)."""
        with np.errstate(all="ignore"):
            for start in range(0, out.shape[1], BLOCK):
                part = slice(start, start + BLOCK)
                self._vector(*[a[:, part] if a.ndim == 2 else a for a in arrays], out[:, part])

    def steps(self, q, qd, tau, dt, parameters, out, steps, every, threads):
        """Rollouts of rk4_step: q, qd (N, n); tau (N or 1, steps or 1, n); out (N, steps // every, 2, n)."""
        live = () if parameters is None else (parameters,)
        count, n = q.shape
        state = np.concatenate([q, qd], axis=1)
        last = tau.shape[1] - 1
        torque = np.broadcast_to(tau, (count, *tau.shape[1:]))
        for step in range(steps):
            now = np.ascontiguousarray(torque[:, min(step, last)])
            new = np.empty_like(state)
            if count == 1:
                self.single([state[0, :n], state[0, n:], now[0], dt, *live], new[0])
            else:
                self.rows([state[:, :n], state[:, n:], now, dt, *live], new, threads)
            state = new
            if (step + 1) % every == 0:
                out[:, (step + 1) // every - 1] = state.reshape(count, 2, n)


class ScalarKernel(SourceKernel):
    """Generated Python scalars throughout."""

    scalar_batches = True


ENGINES = {"llvm": LlvmKernel, "numpy": SourceKernel, "python": ScalarKernel}
