"""The equations of the arm in use as MathML, which browsers draw themselves, with the current numbers in M, C and g."""
from __future__ import annotations

import html
import re
import unicodedata

import numpy as np

from ..dynamics import Dynamics

MAX_SYMBOLIC = 3  # joints: beyond that the entries fill pages
STYLE = "font-size:13px;overflow-x:auto;padding:6px 10px"


def _row(*cells):
    return "<mrow>" + "".join(cells) + "</mrow>"


def general_html():
    """M(q) q̈ + C(q, q̇) q̇ + g(q) + τ_f(q̇) = τ + Jᵀ f_ext, as MathML."""
    q, qd, qdd = "<mi>q</mi>", "<mi>q̇</mi>", "<mi>q̈</mi>"
    comma, plus = "<mo>,</mo>", "<mo>+</mo>"

    def of(letter, *arguments):
        inner = comma.join(arguments)
        return f"<mi>{letter}</mi><mo>&#x2061;</mo><mo>(</mo>{inner}<mo>)</mo>"
    body = _row(of("M", q), qdd, plus, of("C", q, qd), qd, plus, of("g", q), plus,
                f"<msub><mi>τ</mi><mi>f</mi></msub><mo>(</mo>{qd}<mo>)</mo>", "<mo>=</mo>", "<mi>τ</mi>", plus,
                "<msup><mi>J</mi><mi>T</mi></msup><msub><mi>f</mi><mi>ext</mi></msub>")
    return f'<div style="{STYLE};font-size:15px"><math display="block">{body}</math></div>'


def _matrix(name, rows):
    """name = [rows]; a table, because browsers stretch MathML's brackets only with a mathematical font."""
    cells = "".join("<tr>" + "".join(f'<td style="padding:0 .35em;text-align:right">{_number(v, name)}</td>'
                                      for v in row)
                    + "</tr>" for row in rows)
    return ('<span style="display:inline-flex;align-items:center;margin:.2em 1.1em .2em 0">'
            f'<math>{_row(f"<mi>{name}</mi>", "<mo>=</mo>")}</math><table style="border:solid;border-width:0 1.5px;'
            f'border-radius:7px;margin-left:.4em;font-variant-numeric:tabular-nums"><tbody>{cells}</tbody></table></span>')


def _number(value, name):
    text = f"{value:.3f}"
    if name == "M" and 1e-9 < abs(value) < 5e-4:  # a small inertia is not none
        digits, power = f"{value:.0e}".split("e")
        text = f"{digits}·10<sup>−{abs(int(power))}</sup>"
    return "0.000" if text == "-0.000" else text.replace("-", "−")


def numbers_html(arm, dynamics, q, qd):
    """M, C and g at q, qd (n,) as matrices; velocities not known count as 0."""
    q = np.asarray(q, float)
    qd = np.zeros(arm.n) if qd is None else np.asarray(qd, float)
    parts = [_matrix("M", dynamics.mass_matrix(q)), _matrix("C", dynamics.coriolis_matrix(q, qd)),
             _matrix("g", np.asarray(dynamics.gravity(q))[:, None])]
    return f'<div style="{STYLE};font-size:{12 if arm.n <= 3 else 9}px">{"".join(parts)}</div>'


def symbolic_html(arm):
    """The arm's own M, C and g written out, as MathML; '' for more than MAX_SYMBOLIC joints or without SymPy."""
    if arm.n > MAX_SYMBOLIC:
        return ""
    try:
        from .. import lagrangian
    except ImportError:
        return ""
    lines = [line for line in lagrangian.equations(arm).text.splitlines() if re.match(r"[MCg]\d+ = ", line)]
    return f'<div style="{STYLE}">' + "".join(
        f'<div style="margin:.4em 0"><math>{_row(*mathml(line))}</math></div>' for line in lines) + "</div>"


def mathml(line):
    """MathML cells of a line such as ``C11 = -0.2 q̇2 sin(q2)``."""
    cells, line = [], unicodedata.normalize("NFD", line)
    token = r"(\d+\.?\d*(?:e[+-]?\d+)?)|([^\W\d_]\u0307?\u0308?[^\W\d_]*)(\d*)|(\S)"
    for number, word, index, sign in re.findall(token, line):
        if number:
            cells.append(f"<mn>{number}</mn>")
        elif sign:
            cells.append(f"<mo>{'−' if sign == '-' else html.escape(sign)}</mo>")
        else:
            if cells and cells[-1].startswith(("<mn>", "<msub>")):  # a product
                cells.append('<mspace width="0.2em"/>')
            cells.append(f"<msub><mi>{word}</mi><mn>{index}</mn></msub>" if index else f"<mi>{word}</mi>")
    return cells


class Equations:
    """The page's tab of equations; `update` refreshes the numbers when the arm moved."""

    def __init__(self, server, tab, arm):
        self.arm, self.dynamics, self._last = arm, Dynamics(arm), None
        with tab:
            server.gui.add_html(general_html())
            self._numbers = server.gui.add_html("")
            self._symbols = server.gui.add_html("")

    def write_out(self):
        """Derives and shows the symbolic entries (takes about a second: call it beside the page's loop)."""
        self._symbols.content = symbolic_html(self.arm)

    def update(self, q, qd):
        """Shows M, C and g at q, qd."""
        key = (np.round(q, 4).tobytes(), None if qd is None else np.round(qd, 3).tobytes())
        if key != self._last:
            self._last = key
            self._numbers.content = numbers_html(self.arm, self.dynamics, q, qd)
