"""Writes the polynomials of `lagrangian` for people: SymPy expressions, lines of text, LaTeX.

A polynomial in cos θ_j, sin θ_j, q, q̇, q̈ is also a sum of cosines and sines of whole-number combinations of the θ_j
(product to sum); each entry is written in whichever form has fewer terms. That keeps cos(q1 + q2) of planar arms whole.
"""
from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import sympy as sp

from .arm import PRISMATIC


class Term(NamedTuple):
    """coefficient · Π factors; a factor is ('q'|'v'|'a', k, power) or ('cos'|'sin', (harmonics per joint), power)."""

    coefficient: float
    factors: tuple


class Writer:
    """Knows how the ring's generators (cos, sin per joint, then q, v, a per coordinate) are to be written."""

    def __init__(self, arm, joints):
        self.arm, self.joints = arm, joints

    # -- forms -------------------------------------------------------------------------------------------------------
    def terms(self, polynomial):
        """The shorter of the two forms, as Terms."""
        products = [self._product(exponents, coefficient) for exponents, coefficient in polynomial.items()]
        sums = self._sums(polynomial)
        return sums if len(sums) <= len(products) else products

    def _rest(self, exponents):
        """Factors of the exponents behind the cosines and sines."""
        n = self.arm.n
        tail = exponents[2 * self.joints:]
        return tuple((letter, k, tail[index * n + k]) for index, letter in enumerate("qva") for k in range(n)
                     if tail[index * n + k])

    def _product(self, exponents, coefficient):
        factors = []
        for j in range(self.joints):
            harmonic = tuple(int(i == j) for i in range(self.joints))
            for name, power in (("cos", exponents[2 * j]), ("sin", exponents[2 * j + 1])):
                if power:
                    factors.append((name, harmonic, power))
        return Term(float(coefficient), self._rest(exponents) + tuple(factors))

    def _sums(self, polynomial):
        """By e^{iθ}: each cos θ is ½(z + z⁻¹), each sin θ is −½i(z − z⁻¹); then pairs ±k become cosines and sines."""
        waves = defaultdict(complex)
        size = 0.0
        for exponents, coefficient in polynomial.items():
            spread = {(0,) * self.joints: complex(float(coefficient))}
            size = max(size, abs(float(coefficient)))
            for j in range(self.joints):
                for power, (up, down) in ((exponents[2 * j], (0.5, 0.5)), (exponents[2 * j + 1], (-0.5j, 0.5j))):
                    for _ in range(power):
                        spread = _shifted(spread, j, up, down)
            for harmonic, value in spread.items():
                waves[self._rest(exponents), harmonic] += value
        terms = []
        for (rest, harmonic), value in waves.items():
            lead = next((k for k in harmonic if k), 0)
            if lead < 0 or abs(value) <= 1e-15 * size:
                continue  # its partner +k carries both
            if lead == 0:
                terms.append(Term(value.real, rest))
                continue
            for name, weight in (("cos", 2.0 * value.real), ("sin", -2.0 * value.imag)):
                if abs(weight) > 1e-15 * size:
                    terms.append(Term(weight, rest + ((name, harmonic, 1),)))
        return terms

    def angle(self, harmonic):
        """({coordinate: multiplier}, offset) of a whole-number combination of the joints' angles."""
        multipliers, offset = defaultdict(float), 0.0
        for count, joint in zip(harmonic, self.arm.joints):
            if count and joint.kind != PRISMATIC:
                multipliers[joint.coordinate] += count * joint.multiplier
                offset += count * joint.offset
        return dict(multipliers), offset

    # -- SymPy -------------------------------------------------------------------------------------------------------
    def expression(self, polynomial, q, qd, qdd):
        """The polynomial as a SymPy expression with Float coefficients."""
        symbols = {"q": q, "v": qd, "a": qdd}
        total = []
        for coefficient, factors in self.terms(polynomial):
            value = sp.Float(coefficient)
            for name, what, power in factors:
                if name in symbols:
                    value *= symbols[name][what] ** power
                else:
                    multipliers, offset = self.angle(what)
                    angle = sum((_nice(m) * q[k] for k, m in multipliers.items()), sp.Integer(0))
                    value *= getattr(sp, name)(angle + (sp.Float(offset) if offset else 0)) ** power
            total.append(value)
        return sp.Add(*total)

    # -- text --------------------------------------------------------------------------------------------------------
    def write(self, polynomial, latex=False):
        """'0.856667 + 0.4 cos(q2)', terms without angles first; six digits."""
        terms = sorted(self.terms(polynomial), key=_order)
        scale = max((abs(term.coefficient) for term in terms), default=0.0)
        pieces = []
        for coefficient, factors in terms:
            if abs(coefficient) < 1e-12 * scale:
                continue
            body = " ".join(self._factor(*factor, latex) for factor in factors)
            size = _digits(abs(coefficient), latex)
            written = body if body and size == "1" else f"{size}{' ' if body else ''}{body}"
            sign = "-" if coefficient < 0 else "+"
            pieces.append(f" {sign} {written}" if pieces else (f"-{written}" if sign == "-" else written))
        return "".join(pieces) or "0"

    def _factor(self, name, what, power, latex):
        if name in "qva":
            dots = {"q": "", "v": r"\dot ", "a": r"\ddot "} if latex else {"q": "q", "v": "q̇", "a": "q̈"}
            base = f"{dots[name]}q_{{{what + 1}}}" if latex else f"{dots[name]}{what + 1}"
            return base if power == 1 else (f"{base}^{{{power}}}" if latex else f"{base}^{power}")
        multipliers, offset = self.angle(what)
        angle = ""
        for k, m in multipliers.items():
            size = "" if abs(m) == 1 else _digits(abs(m), latex) + " "
            sign = ("-" if m < 0 else "") if not angle else (" - " if m < 0 else " + ")
            angle += f"{sign}{size}{f'q_{{{k + 1}}}' if latex else f'q{k + 1}'}"
        if offset:
            angle += f" {'-' if offset < 0 else '+'} {_digits(abs(offset), latex)}"
        raised = "" if power == 1 else (f"^{{{power}}}" if latex else f"^{power}")
        return f"\\{name}{raised}({angle})" if latex else f"{name}{raised}({angle})"


def _shifted(spread, j, up, down):
    moved = defaultdict(complex)
    for harmonic, value in spread.items():
        for step, weight in ((1, up), (-1, down)):
            key = harmonic[:j] + (harmonic[j] + step,) + harmonic[j + 1:]
            moved[key] += weight * value
    return moved


def _order(term):
    """Constants first, then rates, then angles: cos(q1) before cos(q1 + q2)."""
    key = []
    for name, what, power in term.factors:
        if name in "qva":
            key.append((0, "qva".index(name), (what,), power))
        else:
            key.append((1, sum(map(abs, what)), tuple(-k for k in what) + (name == "sin",), power))
    return len(key), key


def _nice(multiplier):
    return sp.Integer(round(multiplier)) if multiplier == round(multiplier) else sp.Float(multiplier)


def _digits(value, latex):
    text = f"{value:.6g}"
    if latex and "e" in text:
        mantissa, exponent = text.split("e")
        return rf"{mantissa}\cdot 10^{{{int(exponent)}}}"
    return text


def render(arm, writer, M, C, g, latex):
    """The equations' entries, one a line; M's upper triangle, all of C and g."""
    n = arm.n
    entries = [("M", i, k, M[i][k]) for i in range(n) for k in range(i, n)]
    entries += [("C", i, k, C[i][k]) for i in range(n) for k in range(n)]
    entries += [("g", i, None, g[i]) for i in range(n)]
    if latex:
        lines = [rf"{letter}_{{{i + 1}{'' if k is None else k + 1}}} &= {writer.write(x, True)} \\"
                 for letter, i, k, x in entries]
        return "\n".join([r"\begin{aligned}", r"\tau &= M(q)\,\ddot q + C(q,\dot q)\,\dot q + g(q) \\", *lines,
                          r"\end{aligned}"])
    units = ["m, N" if prismatic else "rad, N m" for prismatic in arm.prismatic]
    names = ", ".join(f"q{k + 1} = {name} [{unit}]" for k, (name, unit) in enumerate(zip(arm.joint_names, units)))
    lines = [f"{letter}{i + 1}{'' if k is None else k + 1} = {writer.write(x)}" for letter, i, k, x in entries]
    return "\n".join([f"{arm.name}: M(q) q̈ + C(q, q̇) q̇ + g(q) = τ", names,
                      f"gravity ({', '.join(f'{x:g}' for x in arm.gravity)}) m/s² in the root frame", *lines])


