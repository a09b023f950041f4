"""What an identification found: parameters with intervals, verdicts, predictions, errors, and how to write it all
down."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..errors import InputError
from .fit import least_squares
from .signals import Signals, prepare

IDENTIFIED, WEAK, UNKNOWN = "identified", "weak", "not identifiable"
CONFIDENCE = 1.96  # 95 % of a Gaussian


class Row(NamedTuple):
    """One base parameter: least-squares value with its standard error, the physical arm's and the CAD's value, and a
    verdict."""

    name: str
    unit: str
    value: float
    error: float
    physical: float
    cad: float
    verdict: str
    why: str

    @property
    def interval(self):
        """(low, high) of 95 %."""
        return self.value - CONFIDENCE * self.error, self.value + CONFIDENCE * self.error


@dataclass(frozen=True, eq=False)
class Identification:
    """See `identify`. `cad` is the arm as described, `arm` the identified one; `signals` are the training logs as
    filtered."""

    cad: object
    model: object
    base: object
    fit: object
    physical: object
    signals: tuple
    validation: tuple
    blocks: list
    payload: np.ndarray
    hz: float
    hz_reason: str
    order: int
    velocity: str
    delay: tuple
    prior_weight: float
    remarks: tuple
    interrupted: bool

    @cached_property
    def arm(self):
        """The identified Arm: physical links, damping, Coulomb friction and rotors."""
        return self.model.arm_with(self.physical.values)

    @cached_property
    def rows(self):
        """Row of every base parameter."""
        physical, cad = self.base.K @ self.physical.values, self.base.K @ self.model.prior
        level = np.sqrt(np.mean([(block.tau**2).sum(1).mean() for block in self.blocks]))
        rows = []
        for b, name in enumerate(self.base.names):
            value, error = float(self.fit.beta[b]), float(self.fit.standard_errors[b])
            verdict, why = self._verdict(b, value, error, float(physical[b]), physical, float(level))
            rows.append(Row(name, self.base.units[b], value, error, float(physical[b]), float(cad[b]), verdict, why))
        return tuple(rows)

    def _verdict(self, b, value, error, own, physical, level):
        """Known: the error is small against the value, or against like parameters of the same link (a moment that is
        zero is known to be so). Friction and offsets whose error moves the torque by little are weak, not unknown.
        Unknown too is what least squares only explains with values that no physical arm has."""
        parameters = self.model.parameters
        this = parameters[self.base.independent[b]]
        relative = error / abs(value) if value else np.inf
        torque = error * float(self.fit.reach[b]) / level if level else np.inf
        apart = abs(own - value) / error if error else 0.0
        if apart > 2.0 and abs(own - value) * float(self.fit.reach[b]) > 0.02 * level:
            return UNKNOWN, f"least squares is {apart:.1f} standard errors away from any physical arm that fits as well"
        if this.kind == "inertial":
            like = [
                c
                for c, k in enumerate(self.base.independent)
                if (parameters[k].owner, parameters[k].unit) == (this.owner, this.unit)
            ]
            against = error / max(float(np.abs(physical[like]).max()), 1e-300)
        else:
            against = np.inf
            if float(self.physical.share[self.base.independent[b]]) < 0.5:
                return UNKNOWN, "the URDF's value tells more than these data"
        why = f"±{100 * relative:.2g} %" if relative < 1.0 else f"zero within {100 * torque:.2g} % of the torque"
        if relative <= 0.15:
            return IDENTIFIED, why
        if against <= 0.03:
            return IDENTIFIED, f"±{100 * against:.2g} % of the largest of its kind on this link"
        if relative <= 0.5 or against <= 0.15 or (this.kind != "inertial" and torque <= 0.03):
            return WEAK, why
        return UNKNOWN, (
            f"±{min(100 * relative, 999):.0f} %: what it does to the torque ({100 * torque:.2g} % of it) others, or "
            f"noise, can do "
            "as well"
        )

    @property
    def condition(self):
        """Condition number of the column-scaled regressor; below about 100 the motion excited everything."""
        return self.fit.condition

    @cached_property
    def poor_directions(self):
        """Combinations the data hardly told, worst first: [(singular value relative to the largest, text)]."""
        W = np.concatenate([(block.W / self.fit.sigma[:, None])[block.used] for block in self.blocks])
        scale = np.linalg.norm(W, axis=0)
        scale[scale == 0.0] = 1.0
        _, singular, V = np.linalg.svd(W / scale, full_matrices=False)
        found = []
        for s, v in reversed(list(zip(singular / singular[0], V))):
            if s < 0.05:
                big = [b for b in np.argsort(-np.abs(v)) if abs(v[b]) > 0.3]
                found.append((float(s), " with ".join(self.base.names[b] for b in big)))
        return found

    # -- predictions -------------------------------------------------------------------------------------------------
    def predict(self, q, qd, qdd, which="physical"):
        """τ (…, n) of the "physical" arm (with all friction), of plain "least_squares", or of the "cad" arm."""
        q, qd, qdd = (np.asarray(x, float) for x in (q, qd, qdd))
        shape = q.shape
        q, qd, qdd = (x.reshape(-1, shape[-1]) for x in (q, qd, qdd))
        Y = self.model.columns(q, qd, qdd)
        known = self.model.known(q, qd, qdd) + Y @ self.payload
        if which == "least_squares":
            held = np.where(self.model.fixed, self.model.prior, 0.0)
            tau = Y[..., self.base.independent] @ self.fit.beta + Y @ held
        elif which in ("physical", "cad"):
            tau = Y @ (self.physical.values if which == "physical" else self.model.prior)
        else:
            raise InputError(f"which '{which}' is none of physical, least_squares, cad")
        return (tau + known).reshape(shape)

    def residual(self, log, which="physical"):
        """(signals, measured − predicted (T, n)) of a Log or of Signals; samples the filter has settled on."""
        s = log if isinstance(log, Signals) else prepare(log, self.hz, self.order, self.velocity, self.delay[0])
        good = s.settled
        return s, (s.tau - self.predict(s.q, s.qd, s.qdd, which))[good]

    def rms(self, log, which="physical"):
        """(n,) RMS of the filtered effort minus the prediction for the filtered motion [N m]."""
        return np.sqrt((self.residual(log, which)[1] ** 2).mean(0))

    def total_rms(self, log, which="physical"):
        """Root of the sum of the joints' squared RMS [N m]."""
        return float(np.sqrt((self.rms(log, which) ** 2).sum()))

    @cached_property
    def cross_validation(self):
        """[(what was left out, (n,) RMS on it, (n,) RMS of the torque there)], least squares on the rest, in the
        filter's band.

        Logs are left out one by one; a single log is cut in four."""
        groups = self._groups()
        found = []
        for label, out in groups:
            rest = [block for group, blocks in groups if group != label for block in blocks]
            try:
                beta = least_squares(rest).beta
            except InputError:
                continue
            error = np.concatenate([block.tau - block.W @ beta for block in out])
            torque = np.concatenate([block.tau for block in out])
            found.append((label, np.sqrt((error**2).mean(0)), np.sqrt((torque**2).mean(0))))
        return found

    def _groups(self):
        from dataclasses import replace

        if len(self.blocks) > 1:
            return [(f"piece {k + 1}", [block]) for k, block in enumerate(self.blocks)]
        block = self.blocks[0]
        edges = np.linspace(0, len(block.tau), 5).astype(int)
        return [
            (f"quarter {k + 1}", [replace(block, W=block.W[a:z], tau=block.tau[a:z], used=block.used[a:z])])
            for k, (a, z) in enumerate(zip(edges, edges[1:]))
        ]
