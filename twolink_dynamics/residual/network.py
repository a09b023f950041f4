"""The learnt part of the torque at run time: a small network behind guard rails. NumPy only, nothing is trained here.

    τ = τ_model(q, q̇, q̈) + fade(q, q̇, q̈) · clip( W_h tanh(W x + b) + W_x x + c )

x are the normalised features: sin kq and cos kq of the harmonics the training found worth having (always k = 1 for
revolute joints), then q of the joints that cannot turn for ever, q̇ and q̈. The straight path W_x carries what is a sum
of features (springs, ripple, wrong inertia), the tanh units what is not (Stribeck friction, couplings).
"""
from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import numpy as np

from ..arm import Arm
from ..errors import InputError, ModelError, choices

FORMAT = "twolink_dynamics residual 1"
FADE_MARGIN = 0.25  # the output has faded to nothing this share of the half range outside of the training range


def model_digest(arm):
    """Fingerprint of what a residual depends on: the arm's masses and geometry, not its tip or its gravity vector."""
    return replace(arm, tip=None).with_gravity((0.0, 0.0, 0.0)).fingerprint


@dataclass(frozen=True, eq=False)
class Residual:
    """What an arm's model lacks, learnt from logs. n joints, F features, H hidden units.

    joint_names, digest   the arm it was learnt on (see `model_digest`)
    continuous            (n,) bool, joints whose position is only known up to full turns
    harmonic_joint, harmonic   (K,) the features sin kq_j, cos kq_j
    linear                (L,) joints whose position itself is a feature
    mean, scale           (F,) normalisation of the features
    hidden, hidden_bias   (H, F), (H,)
    readout, straight, bias   (n, H), (n, F), (n,) [N m or N]
    centre, half          (3 n,) training range of (q, q̇, q̈): centre ± half; q's half is inf where all angles were seen
    clip                  (n,) [N m or N] the output's bound; 0 for a joint where nothing was worth learning
    notes                 how it was trained: numbers for people
    """

    joint_names: tuple
    digest: str
    continuous: np.ndarray
    harmonic_joint: np.ndarray
    harmonic: np.ndarray
    linear: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    hidden: np.ndarray
    hidden_bias: np.ndarray
    readout: np.ndarray
    straight: np.ndarray
    bias: np.ndarray
    centre: np.ndarray
    half: np.ndarray
    clip: np.ndarray
    notes: dict = field(default_factory=dict)
    _fast = None  # straight-line code for a single state, see `compile`

    def __post_init__(self):
        n = len(self.joint_names)
        shapes = dict(continuous=(n,), bias=(n,), clip=(n,), centre=(3 * n,), half=(3 * n,))
        width = 2 * np.size(self.harmonic) + np.size(self.linear) + 2 * n
        units = np.size(self.hidden_bias)
        shapes |= dict(harmonic_joint=np.shape(self.harmonic), mean=(width,), scale=(width,), hidden=(units, width),
                       readout=(n, units), straight=(n, width))
        for item in fields(self):
            value = getattr(self, item.name)
            if not isinstance(value, np.ndarray):
                continue
            if item.name in shapes and value.shape != shapes[item.name]:
                raise InputError(f"residual: {item.name} has shape {value.shape}, expected {shapes[item.name]}")
            bad = np.isnan(value).any() if item.name == "half" else not np.isfinite(value).all()
            if value.dtype.kind == "f" and bad:
                raise InputError(f"residual: {item.name} is not finite")
            value.setflags(write=False)
        for item in ("harmonic_joint", "linear"):
            index = getattr(self, item)
            if index.size and not (0 <= index.min() and index.max() < n):
                raise InputError(f"residual: {item} names a joint outside of 0 … {n - 1}")
        if (self.clip < 0.0).any() or (self.half < 0.0).any() or (self.scale <= 0.0).any():
            raise InputError("residual: clip and half must not be negative, scale must be positive")

    @property
    def n(self):
        """Number of joints."""
        return len(self.joint_names)

    # -- evaluation ----------------------------------------------------------------------------------------------
    def features(self, q, qd, qdd):
        """(…, F) normalised features of states (…, n)."""
        phase = self.harmonic * q[..., self.harmonic_joint]
        x = np.concatenate([np.sin(phase), np.cos(phase), q[..., self.linear], qd, qdd], axis=-1)
        return (x - self.mean) / self.scale

    def raw(self, q, qd, qdd):
        """(…, n) the network alone, without guard rails [N m or N]."""
        x = self.features(q, qd, qdd)
        return np.tanh(x @ self.hidden.T + self.hidden_bias) @ self.readout.T + x @ self.straight.T + self.bias

    def torque(self, q, qd, qdd):
        """τ_NN (…, n) [N m or N] at q, q̇, q̈ (…, n); always finite, |τ_NN| ≤ clip, 0 far out of the training range."""
        if self._fast is not None and type(q) is np.ndarray and q.ndim == 1:
            try:
                return np.array(self._fast(*q.tolist(), *qd.tolist(), *qdd.tolist()))
            except (AttributeError, TypeError, SystemError, ValueError, OverflowError):
                pass  # not three arrays (n,) of usual floats: the path below takes them or says what is wrong
        q, qd, qdd = np.broadcast_arrays(*(np.asarray(value, float) for value in (q, qd, qdd)))
        with np.errstate(all="ignore"):  # what is not finite has fade 0
            fade = self.fade(q, qd, qdd)[..., None]
            tau = np.minimum(np.maximum(self.raw(q, qd, qdd), -self.clip), self.clip)
            return np.where(fade > 0.0, fade * tau, 0.0)

    def fade(self, q, qd, qdd):
        """(…) 1 inside of the training range, falling smoothly (C¹) to 0 within FADE_MARGIN beyond; 0 for NaN."""
        z = np.concatenate((q, qd, qdd), axis=-1)
        if z.shape[-1] != 3 * self.n:
            raise InputError(f"residual: {z.shape[-1]} numbers given, it takes q, q̇, q̈ of {choices(self.joint_names)}")
        with np.errstate(all="ignore"):
            away = z - self.centre
            if self.continuous.any():
                turns = np.remainder(away[..., :self.n] + np.pi, 2.0 * np.pi) - np.pi
                away[..., :self.n] = np.where(self.continuous, turns, away[..., :self.n])
            room = np.maximum(FADE_MARGIN * self.half, 1e-9)  # a coordinate that never moved has no range: a step
            u = np.where(np.isinf(self.half), z - z, np.maximum((np.abs(away) - self.half) / room, 0.0))
            smooth = np.where(u < 1.0, 1.0 - u * u * (3.0 - 2.0 * u), 0.0)  # NaN is not < 1
        return np.prod(smooth, axis=-1)

    def compile(self):
        """Makes `torque` of a single state fast: machine code with llvmlite (0.2 s, once), else Python. Gives self."""
        from .compiled import compile_torque
        object.__setattr__(self, "_fast", compile_torque(self))
        return self

    # -- files ---------------------------------------------------------------------------------------------------
    def check(self, arm):
        """Raises ModelError, in one line, unless this was learnt on this arm's model."""
        if tuple(arm.joint_names) != tuple(self.joint_names):
            raise ModelError(f"residual: learnt for joints {choices(self.joint_names)}, "
                             f"this arm has {choices(arm.joint_names)}")
        if model_digest(arm) != self.digest:
            raise ModelError(f"residual: learnt on another model of '{arm.name}' (masses, geometry or rotors differ: "
                             f"{self.digest[:12]}, this one is {model_digest(arm)[:12]}); learn it again")
        return self

    def save(self, path):
        """Writes an .npz without pickled objects (any NumPy reads it); the text fields as JSON."""
        arrays = {item.name: getattr(self, item.name) for item in fields(self)
                  if isinstance(getattr(self, item.name), np.ndarray)}
        header = dict(format=FORMAT, joint_names=list(self.joint_names), digest=self.digest, notes=self.notes)
        with Path(path).open("wb") as stream:
            np.savez(stream, header=np.array(json.dumps(header)), **arrays)

    @classmethod
    def load(cls, path, arm=None):
        """The residual in that file, checked against `arm` when one is given.

        Raises InputError for a file that is none, ModelError for one that belongs to another arm."""
        try:
            with np.load(path, allow_pickle=False) as data:
                content = {name: data[name] for name in data.files}
                header = json.loads(str(content.pop("header")))
            if header["format"] != FORMAT:
                raise InputError(f"{path}: format '{header['format']}', this version reads '{FORMAT}'")
            residual = cls(tuple(header["joint_names"]), header["digest"], notes=header["notes"], **content)
        except FileNotFoundError:
            raise InputError(f"no residual file '{path}'") from None
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
            raise InputError(f"{path} is no residual file (twolink learn-residual writes one)") from None
        if arm is not None:
            if not isinstance(arm, Arm):
                raise InputError(f"Residual.load checks against an Arm, not {type(arm).__name__}")
            residual.check(arm)
        return residual.compile()
