"""Dynamics(arm): the equations of one arm, for everyone who calls them.

Engines, best first: ``llvm`` (machine code, needs llvmlite), ``numpy`` (generated source, NumPy for batches),
``python`` (generated source, scalars only), ``newton_euler`` (the readable recursion). All give the same numbers.
"""
from __future__ import annotations

import math
import os
import warnings

import numpy as np

from . import kinematics, newton_euler
from .arm import Arm
from .errors import InputError, TwolinkWarning, choices
from .kernels import catalog
from .kernels import compile as compiler
from .kernels.engine import ENGINES, cores

NEWTON_EULER = "newton_euler"
FLOAT64 = np.dtype(np.float64)
REFERENCE = {
    "inverse_dynamics": newton_euler.inverse_dynamics, "forward_dynamics": newton_euler.forward_dynamics,
    "bias": newton_euler.bias, "gravity": newton_euler.gravity_torque, "mass_matrix": newton_euler.mass_matrix,
    "coriolis_matrix": newton_euler.coriolis_matrix, "regressor": newton_euler.regressor,
    "energy": lambda arm, q, qd: np.stack(newton_euler.energy(arm, q, qd), axis=-1),
    "tip_pose": lambda arm, q, frame=None: np.concatenate(
        [part.reshape(*np.shape(q)[:-1], -1) for part in kinematics.frame_pose(arm, q, frame)], axis=-1),
    "jacobian": kinematics.jacobian, "jacobian_rate": kinematics.jacobian_rate,
}


class Dynamics:
    """M(q) q̈ + C(q, q̇) q̇ + g(q) = τ of one arm.

    Every argument is (…, n), an array or nested list: the last axis is the joint, leading axes are a batch that
    broadcasts. Angles [rad], lengths [m], efforts [N m or N]. `out` takes a float64 array of the result's shape and
    avoids an allocation. A wrong shape raises InputError; NaN in gives NaN out. Angles are accurate to |q| ≤ 1e6 rad
    (compiled: NaN past 1e8).

    engine      'llvm', 'numpy', 'python', 'newton_euler', or None: $TWOLINK_ENGINE, else the best there is
    live        gravity and payload stay run-time inputs, so that `set_gravity` and `set_payload` cost microseconds
    threads     cores that large batches may use; None: all
    """

    def __init__(self, arm, engine=None, live=False, threads=None):
        if not isinstance(arm, Arm):
            raise InputError(f"Dynamics needs an Arm (load_urdf gives one), not {type(arm).__name__}")
        self.arm = arm
        self.n = arm.n
        self.live = bool(live)
        self.threads = cores() if threads is None else max(1, int(threads))
        wanted = engine or os.environ.get("TWOLINK_ENGINE") or None
        if wanted is not None and wanted not in (*ENGINES, NEWTON_EULER):
            raise InputError(f"engine '{wanted}' is none of {choices((*ENGINES, NEWTON_EULER))}")
        if wanted == "llvm" and not compiler.available():
            raise InputError("engine 'llvm' needs llvmlite: pip install llvmlite")
        self._engine, self._insisted = wanted, wanted is not None
        self._base = arm  # without the payload of set_payload
        self._payload = None
        self._kernels, self._entries = {}, {}
        self._parameters = catalog.parameter_values(arm) if self.live else None

    def __reduce__(self):
        return _rebuilt, (self._base, self._engine, self.live, self.threads, self._payload)

    @property
    def engine(self):
        """Name of the engine in use."""
        if self._engine is None:
            self._engine = "llvm" if compiler.available() else "numpy"
        return self._engine

    # -- the equations -------------------------------------------------------------------------------------------
    # Each first call puts the finished kernel into the instance in the method's place.
    def inverse_dynamics(self, q, qd, qdd, *, out=None):
        """τ (…, n) that gives the acceleration q̈."""
        return self._ready("inverse_dynamics")(q, qd, qdd, **_maybe(out))

    def forward_dynamics(self, q, qd, tau, *, out=None):
        """q̈ (…, n) that τ gives."""
        return self._ready("forward_dynamics")(q, qd, tau, **_maybe(out))

    def mass_matrix(self, q, *, out=None):
        """M (…, n, n) [kg m²]."""
        return self._ready("mass_matrix")(q, **_maybe(out))

    def coriolis_matrix(self, q, qd, *, out=None):
        """C (…, n, n), the Christoffel one: Ṁ − 2C is skew-symmetric."""
        return self._ready("coriolis_matrix")(q, qd, **_maybe(out))

    def gravity(self, q, *, out=None):
        """g = ∂P/∂q (…, n)."""
        return self._ready("gravity")(q, **_maybe(out))

    def bias(self, q, qd, *, out=None):
        """h = C q̇ + g (…, n)."""
        return self._ready("bias")(q, qd, **_maybe(out))

    def regressor(self, q, qd, qdd, *, out=None):
        """Y (…, n, 10 N) with Y π = τ; per link m, m c, Ixx Ixy Iyy Ixz Iyz Izz about the link frame."""
        return self._ready("regressor")(q, qd, qdd, **_maybe(out))

    def jacobian(self, q, frame=None, *, out=None):
        """J (…, 6, n) of the tip (or a named link's frame), linear over angular, root axes."""
        entry = self._ready("jacobian") if frame is None else self._entry("jacobian", frame)
        return entry(q, **_maybe(out))

    def jacobian_rate(self, q, qd, frame=None, *, out=None):
        """J̇ q̇ (…, 6): the tip's acceleration (linear over angular) when q̈ = 0."""
        entry = self._ready("jacobian_rate") if frame is None else self._entry("jacobian_rate", frame)
        return entry(q, qd, **_maybe(out))

    def energy(self, q, qd):
        """(kinetic, potential) (…) [J]; moving links, height 0 at the root."""
        pair = self._entry("energy")(q, qd)
        return (pair[0], pair[1]) if pair.ndim == 1 else (pair[..., 0], pair[..., 1])

    def tip_pose(self, q, frame=None):
        """(rotation (…, 3, 3), position (…, 3) [m]) of the tip, or of a named link's frame, in the root frame."""
        flat = self._entry("tip_pose", frame)(q)
        return flat[..., :9].reshape(*flat.shape[:-1], 3, 3), flat[..., 9:]

    # -- run-time inputs ---------------------------------------------------------------------------------------------
    def set_gravity(self, gravity):
        """Sets gravity (3,) [m/s²] in the root frame; needs ``live=True``."""
        self._be_live("gravity")
        self._base = self._base.with_gravity(gravity)
        self.arm = self.arm.with_gravity(gravity)
        self._parameters[:3] = self.arm.gravity

    def set_payload(self, mass, com=(0.0, 0.0, 0.0), inertia=((0.0,) * 3,) * 3):
        """Welds a body to the tip in place of the last one: mass [kg], com (3,) [m], inertia (3, 3) about its com
        [kg m²] in the tip's axes; mass 0 takes it off. Needs ``live=True``."""
        self._be_live("payload")
        self.arm = self._base.with_payload(mass, com, inertia)  # refuses what cannot be, before anything changes
        self._payload = (mass, com, inertia)
        self._parameters[:] = catalog.parameter_values(self.arm)

    def _be_live(self, what):
        if not self.live:
            raise InputError(f"{what} is folded into these kernels; make them with Dynamics(arm, live=True)")

    # -- calling kernels -----------------------------------------------------------------------------------------------
    def kernel(self, name, frame=None):
        """The kernel object of a name (see `kernels.catalog`), made when first asked for."""
        key = (name, frame)
        found = self._kernels.get(key)
        if found is None:
            damping = self.arm.damping if name == "rk4_step" else None
            found = self._kernels[key] = ENGINES[self.engine](self._base, name, self.live, frame, damping)
        return found

    def pointer(self, name, frame=None):
        """(address, ctypes function) of a compiled kernel for embedding: ``void(const double *q, …, double *out)``, the
        arguments of the method of that name in order, then (live) `parameters`, then the row-major result.

        Valid as long as this object lives. Raises InputError with other engines than llvm."""
        if self.engine != "llvm":
            raise InputError(f"engine '{self.engine}' has no machine code; the llvm engine has")
        return self.kernel(name, frame).pointer()

    @property
    def parameters(self):
        """The run-time inputs of live kernels as they are now: gravity (3), then base parameters; None if folded."""
        return self._parameters

    def _ready(self, name):
        entry = self._entry(name)
        self.__dict__[name] = entry  # from now on the instance's attribute hides the method
        return entry

    def _entry(self, name, frame=None):
        """The kernel (of a named frame) as the fastest callable there is."""
        found = self._entries.get((name, frame))
        if found is None:
            if frame is not None and frame == self.arm.tip:
                return self._entry(name)

            count = len(catalog.KERNELS[name].inputs)

            def fallback(*arguments, out=None, **named):
                if len(arguments) == count and not named:
                    return self._call(name, arguments, frame, out)
                vectors, at = _bound(name, arguments, named)
                if len(arguments) + len(named) > len(vectors):  # a frame is named, or None is: that one's entry
                    return self._entry(name, at)(*vectors, **_maybe(out))
                return self._call(name, vectors, frame, out)
            found = self._entries[name, frame] = self._made_entry(name, frame, fallback)
        return found

    def _made_entry(self, name, frame, fallback):
        if self.engine == NEWTON_EULER:
            return fallback
        if frame is None and catalog.KERNELS[name].frame and self.arm.tip is None:
            return fallback  # which says so
        try:
            return self.kernel(name, frame).entry(fallback, self._parameters) or fallback
        except (RuntimeError, OSError) as error:  # a machine LLVM cannot serve
            why = (str(error).splitlines() or [type(error).__name__])[0]
            if self._insisted:
                raise InputError(f"engine '{self.engine}' cannot compile here: {why}") from None
            warnings.warn(f"llvmlite cannot compile here ({why}); using NumPy", TwolinkWarning, stacklevel=4)
            self._engine, self._kernels = "numpy", {}
            return self.kernel(name, frame).entry(fallback, self._parameters)

    def _call(self, name, arguments, frame=None, out=None):
        """Any shapes: lists, batches that broadcast, a given result."""
        first, spec = arguments[0], catalog.KERNELS[name]
        if type(first) is np.ndarray and first.ndim == 2 and first.shape[1] == self.n and self.engine != NEWTON_EULER \
                and all(type(a) is np.ndarray and a.dtype is FLOAT64 and a.shape == first.shape and a.flags.carray
                        for a in arguments):  # rows as the kernel wants them
            compiled = self.kernel(name, frame)
            result = self._result(name, out, (len(first), *compiled.shape))
            if out is None or result.flags.carray and not any(np.may_share_memory(a, out) for a in arguments):
                if len(first):
                    live = () if self._parameters is None else (self._parameters,)
                    compiled.rows([*arguments, *live], result.reshape(len(first), compiled.results), self.threads)
                return result
        arrays = self._vectors(**dict(zip(spec.inputs, arguments)))
        batch = arrays[0].shape[:-1]
        alike = all(a.shape == arrays[0].shape for a in arrays)
        if not alike:
            try:
                batch = np.broadcast_shapes(*(a.shape[:-1] for a in arrays))
            except ValueError:
                shapes = ", ".join(f"{label} {a.shape}" for label, a in zip(spec.inputs, arrays))
                raise InputError(f"{name}: the batches do not fit together: {shapes}") from None
        if self.engine == NEWTON_EULER:
            arrays = [np.broadcast_to(a, (*batch, self.n)) for a in arrays]
            result = REFERENCE[name](self.arm, *arrays, **({"frame": frame} if spec.frame else {}))
            return self._result(name, out, result.shape, result)
        compiled = self.kernel(name, frame)
        shape = (*batch, *compiled.shape)
        result = self._result(name, out, shape)
        live = [] if self._parameters is None else [self._parameters]
        if not batch:
            target = result if result.flags.carray else np.empty(shape)
            compiled.single([np.ascontiguousarray(a) for a in arrays] + live, target)
        else:
            count = math.prod(batch)
            if not alike:
                arrays = [np.broadcast_to(a, (*batch, self.n)) for a in arrays]
            flat = [np.ascontiguousarray(a).reshape(count, self.n) for a in arrays]
            apart = result.flags.carray and (out is None or not any(np.may_share_memory(a, out) for a in flat))
            target = result if apart else np.empty(shape)
            if count:
                compiled.rows(flat + live, target.reshape(count, compiled.results), self.threads)
        if target is not result:
            result[...] = target
        return result

    def _vectors(self, **named):
        arrays = []
        for name, value in named.items():
            try:
                array = np.asarray(value)
                if array.dtype == object and any(x is None for x in array.flat):
                    raise TypeError("NumPy would make it NaN")
                if array.dtype != np.float64 and array.dtype.kind in "biufO":
                    array = array.astype(float)
            except (TypeError, ValueError, OverflowError):
                raise InputError(f"{name}: not an array of numbers") from None
            if array.dtype != np.float64:
                raise InputError(f"{name}: not an array of real numbers but of {array.dtype}")
            if array.ndim == 0 or array.shape[-1] != self.n:
                raise InputError(f"{name}: shape {array.shape}, the last axis must be the {self.n} joints")
            arrays.append(array if array.flags.aligned else array.copy())
        return arrays

    @staticmethod
    def _result(name, out, shape, value=None):
        if out is None:
            return np.empty(shape) if value is None else value
        if not isinstance(out, np.ndarray) or out.dtype != np.float64 or not out.flags.writeable:
            raise InputError(f"out: {name} needs a writeable float64 array")
        if out.shape != shape:
            raise InputError(f"out: shape {out.shape}, the result of {name} is {shape}")
        if value is not None:
            out[...] = value
        return out


def _bound(name, arguments, named):
    """(arguments in order, frame) of a call, by the rules of Python."""
    spec = catalog.KERNELS[name]
    names = [*spec.inputs, "frame"] if spec.frame else list(spec.inputs)
    given = dict(zip(names, arguments))
    if len(arguments) > len(names):
        raise TypeError(f"{name}() takes {', '.join(names)}: {len(arguments)} arguments are too many")
    for key, value in named.items():
        if key not in names or key in given:
            raise TypeError(f"{name}() got an unexpected or a second argument '{key}'; it takes {', '.join(names)}")
        given[key] = value
    if (missing := [key for key in spec.inputs if key not in given]):
        raise TypeError(f"{name}() misses its argument{'s'[:len(missing) - 1]} {', '.join(missing)}")
    return [given[key] for key in spec.inputs], given.get("frame")


def _maybe(out):
    return {} if out is None else {"out": out}


def _rebuilt(arm, engine, live, threads, payload):
    """A Dynamics from what `Dynamics.__reduce__` keeps."""
    dynamics = Dynamics(arm, engine, live, threads)
    if payload is not None:
        dynamics.set_payload(*payload)
    return dynamics
