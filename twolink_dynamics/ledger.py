"""Where the energy went."""
from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Ledger:
    """The energy account of a simulation since its last reset, every entry in J.

    kinetic, potential, elastic   stored now (elastic: the springs of flexible joints)
    input        work of the efforts, τᵀΔq of each held effort (motor side with flexible joints)
    external     work of the external wrench, fᵀΔx of a force that is constant in the root frame
    dissipated   taken by friction and dampers, ≥ 0: ∫ τ_fᵀ q̇ dt by the integrator's own quadrature
    impact       taken by impulses (stops, brake, contact), −½ pᵀ(v⁺ + v⁻) ≥ 0
    edits        put in by set_state and by changes of gravity or payload
    projection   put in by removing the drift of constraints and contacts
    balance      stored now − stored at the reset − input − external + dissipated + impact − edits − projection

    Every entry is computed on its own (none as a remainder), so that `balance` measures the integrator's error, and
    a model whose forces and energies do not belong together.
    """

    kinetic: float
    potential: float
    elastic: float
    input: float
    external: float
    dissipated: float
    impact: float
    edits: float
    projection: float
    balance: float

    def __getitem__(self, name):
        return self.as_dict()[name]

    def as_dict(self):
        """{entry: J}, in the order above."""
        return asdict(self)

    def items(self):
        """(entry, J) pairs."""
        return self.as_dict().items()
