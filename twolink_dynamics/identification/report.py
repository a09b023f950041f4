"""The report of an identification: one HTML file with everything inside, and the same numbers as YAML."""

from __future__ import annotations

from datetime import datetime
from html import escape
from pathlib import Path

import numpy as np
from scipy import signal as dsp

from .. import __version__
from ..errors import InputError
from .figures import line_figure
from .result import IDENTIFIED, UNKNOWN, WEAK
from .urdf_out import identified_urdf

STYLE = """body{font:15px/1.45 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c2430}
table{border-collapse:collapse;width:100%;margin:.6rem 0}td,th{border-bottom:1px solid #d5dae2;padding:.25rem
.5rem;text-align:right} td:first-child,th:first-child,td.text,th.text{text-align:left}
td{white-space:nowrap}td.text{white-space:normal}svg{width:100%;height:auto;margin:.4rem
0;font:11px system-ui,sans-serif} svg .frame{fill:#fbfcfe;stroke:#9aa4b2}svg
.grid{stroke:#e4e8ee}.identified{color:#1f7a3d}.weak{color:#9a6a00}.not{color:#b3261e}
h2{margin-top:2rem}.summary{background:#eef3fa;border-left:4px solid #1f5fa8;padding:.6rem .8rem}
@media print{svg,tr{break-inside:avoid}}code{background:#f1f3f7;padding:0 .25rem}"""


def write_all(result, folder, urdf_text):
    """Writes report.html, parameters.yaml and identified.urdf into `folder`; returns their paths. Raises InputError."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        texts = {
            "report.html": html_report(result),
            "parameters.yaml": yaml_text(result),
            "identified.urdf": identified_urdf(urdf_text, result),
        }
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write to '{folder}': {error.strerror or error}") from None
    return [folder / name for name in texts]


def yaml_text(result):
    """The parameters, intervals and settings as YAML; the lists under `simulator` are that node's parameters."""
    import yaml

    arm = result.arm
    joints = list(arm.joint_names)

    def per_joint(kind):
        mask = result.model.kinds(kind)
        return [float(f"{max(value, 0.0):.8g}") for value in result.physical.values[mask]] if mask.any() else None

    data = {
        "arm": arm.name,
        "joints": joints,
        "logs": [signals.name for signals in result.signals],
        "filter": {"type": "zero-phase Butterworth", "order": result.order, "hz": result.hz, "why": result.hz_reason},
        "delay": {"value_s": result.delay[0], "standard_error_s": result.delay[1]},
        "rank": len(result.base.names),
        "parameters": int((~result.model.fixed).sum()),
        "condition": round(result.condition, 3),
        "rms_Nm": {
            signals.name: [float(x) for x in result.rms(signals)] for signals in (*result.signals, *result.validation)
        },
        "base_parameters": [
            {
                "name": row.name,
                "unit": row.unit,
                "least_squares": row.value,
                "standard_error": row.error,
                "interval_95": list(row.interval),
                "physical": row.physical,
                "urdf": row.cad,
                "verdict": row.verdict,
            }
            for row in result.rows
        ],
        "links": [
            {
                "name": link.name,
                "mass_kg": link.mass,
                "com_m": link.com.tolist(),
                "inertia_com_kg_m2": link.inertia.tolist(),
                "share_from_data": dict(
                    zip(
                        result.model.names[10 * i : 10 * i + 10],
                        [round(float(s), 3) for s in result.physical.share[10 * i : 10 * i + 10]],
                    )
                ),
            }
            for i, link in enumerate(arm.links)
        ],
        "friction": {
            label: per_joint(kind)
            for label, kind in (("viscous", "viscous"), ("coulomb", "coulomb"), ("static_minus_coulomb", "stribeck"))
            if per_joint(kind) is not None
        },
        "not_seen_by_any_motion": list(result.base.unseen),
        "remarks": list(result.remarks),
        "interrupted": result.interrupted,
    }
    if result.model.friction.stribeck_velocity:
        data["friction"]["stribeck_velocity"] = result.model.friction.stribeck_velocity
    if result.model.rotor != "none":
        data["rotor"] = {
            "inertia": arm.rotor_inertia.tolist(),
            "gear_ratio": arm.gear_ratio.tolist(),
            "coupling": bool(arm.rotor_coupling),
        }
    return yaml.safe_dump(_plain(data), sort_keys=False, allow_unicode=True)


def _plain(value):
    """NumPy scalars as Python ones, for YAML."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def html_report(result):
    """Self-contained HTML: parameters with intervals, what is not identifiable, torque and residual figures,
    cross-validation."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>Identification of "
        + escape(result.arm.name)
        + f"</title><style>{STYLE}</style><h1>Identification of {escape(result.arm.name)}</h1>",
        _summary(result),
        _overview(result),
        _table(result),
        _unknown(result),
        _errors(result),
    ]
    for role, all_signals in (("training", result.signals), ("validation", result.validation)):
        for signals in all_signals:
            parts.append(_figures(result, signals, role))
    parts.append(_bodies(result))
    if result.remarks:
        parts.append("<h2>Remarks</h2><ul>" + "".join(f"<li>{escape(text)}" for text in result.remarks) + "</ul>")
    parts.append(
        f"<p><small>Made by twolink_dynamics {__version__}, {datetime.now():%Y-%m-%d %H:%M}. URDF given: "
        f"{escape(result.cad.name)}, fingerprint {result.cad.fingerprint[:12]}.</small></p>"
    )
    return "\n".join(parts) + "\n"


def _overview(result):
    delay, error = result.delay
    stopped = "<p class=not><b>Stopped before the end: this is what there was.</b>" if result.interrupted else ""
    fitted = int((~result.model.fixed).sum())
    return (
        f"{stopped}<p>Logs: {escape(', '.join(signals.name for signals in result.signals))}. Zero-phase Butterworth "
        f"filter of order "
        f"{result.order}: {escape(result.hz_reason)}. Velocities and accelerations: differences of the "
        f"{'filtered positions' if result.velocity == 'position' else 'filtered velocities'}. Efforts: joint side, "
        f"positive "
        f"towards positive q. Positions lag efforts by {1e3 * delay:.2g} ms (standard error {1e3 * error:.2g} ms).</p>"
        f"<p>{fitted} parameters, of which motion can tell {len(result.base.names)} combinations. Condition number "
        f"of the scaled "
        f"regressor: <b>{result.condition:.3g}</b> (below about 100 the motion excited everything). "
        f"{result.fit.rows} rows at five a filter period; "
        f"{100 * result.fit.outliers:.1f} % of them weighted below one half as outliers.</p>"
    )


def _rounded(value, error):
    """The value to two digits of its standard error."""
    if not (np.isfinite(value) and np.isfinite(error) and error > 0.0):
        return f"{value:.5g}"
    places = 1 - int(np.floor(np.log10(error)))
    return f"{value:.{min(places, 9)}f}" if places > 0 else f"{value:.5g}"


def _summary(result):
    """What a colleague wants to know first: how much is known, and how well it predicts."""
    verdicts = [row.verdict for row in result.rows]
    known = ", ".join(f"{verdicts.count(v)} {v}" for v in (IDENTIFIED, WEAK, UNKNOWN) if v in verdicts)
    judged = result.validation or result.signals
    where = "recordings not fitted" if result.validation else "the recordings fitted, for want of others"
    measured, errors, given = [], [], []
    for signals in judged:
        good = signals.settled
        measured.append(signals.tau[good])
        errors.append(result.residual(signals)[1])
        given.append(result.residual(signals, "cad")[1])
    total = (np.concatenate(measured) ** 2).mean(0)
    shares = [np.sqrt((np.concatenate(error) ** 2).mean(0) / total) for error in (errors, given)]
    rows = "; ".join(
        f"{escape(name)} {100 * new:.2g} % (URDF given: {100 * old:.2g} %)"
        for name, new, old in zip(result.arm.joint_names, *shares)
    )
    return (
        f"<p class=summary><b>{len(verdicts)} combinations: {known}.</b> Torque left unexplained on {where}: "
        f"{rows}.</p>"
    )


def _table(result):
    rows = "".join(
        f"<tr><td>{escape(row.name)}<td>{_rounded(row.value, row.error)}<td>±{row.error:.2g}"
        f"<td>{_rounded(row.interval[0], row.error)} … {_rounded(row.interval[1], row.error)}"
        f"<td>{_rounded(row.physical, row.error)}<td>{row.cad:.5g}<td>{escape(row.unit)}"
        f"<td class='text {row.verdict.split()[0]}'>{escape(row.verdict)}<br><small>{escape(row.why)}</small>"
        for row in result.rows
    )
    return (
        "<h2>What is known</h2><table><tr><th>combination<th>least squares<th>std. error<th>95 % interval"
        "<th>physical arm"
        f"<th>URDF given<th>unit<th class=text>verdict</tr>{rows}</table>"
    )


def _unknown(result):
    unknown = [row for row in result.rows if row.verdict == "not identifiable"]
    parts = ["<h2>What is not identifiable</h2>"]
    if unknown:
        parts.append(
            "<p>From these logs, not:</p><ul>"
            + "".join(f"<li><b>{escape(row.name)}</b>: {escape(row.why)}" for row in unknown)
            + "</ul>"
        )
    else:
        parts.append("<p>Every combination in the table is told by these logs.</p>")
    if result.poor_directions:
        parts.append(
            "<p>Poorly excited directions (relative singular value, the parameters that trade against each other):"
            "</p><ul>"
            + "".join(f"<li>{value:.2g}: {escape(text)}" for value, text in result.poor_directions[:6])
            + "</ul>"
        )
    if result.base.unseen:
        parts.append(
            f"<p>No motion of this arm on its fixed base ever tells {escape(', '.join(result.base.unseen))}, alone "
            f"or combined. The "
            "URDF keeps its values, as near as a physical body allows.</p>"
        )
    return "".join(parts)


def _errors(result):
    rows = []
    for role, all_signals in (("training", result.signals), ("validation", result.validation)):
        for signals in all_signals:
            torque = np.sqrt((signals.tau[signals.settled] ** 2).mean(0))
            cells = "".join(
                f"<td>{' / '.join(f'{x:.3g}' for x in result.rms(signals, which))}"
                for which in ("physical", "least_squares", "cad")
            )
            rows.append(f"<tr><td>{escape(signals.name)} ({role})<td>{' / '.join(f'{x:.3g}' for x in torque)}{cells}")
    held = "".join(
        f"<tr><td>{escape(label)}<td>{' / '.join(f'{x:.3g}' for x in error)}"
        f"<td>{' / '.join(f'{x:.3g}' for x in torque)}"
        for label, error, torque in result.cross_validation
    )
    return (
        "<h2>Torque errors</h2><p>RMS per joint [N m], measured minus predicted, both from filtered signals.</p>"
        "<table><tr><th>log"
        f"<th>torque<th>physical arm<th>least squares<th>URDF given</tr>{''.join(rows)}</table><h2>Cross-validation"
        f"</h2><p>Least squares "
        "on the rest, judged on what was left out, in the filter's band.</p><table><tr><th>left out<th>RMS error"
        "<th>RMS torque</tr>"
        f"{held}</table>"
    )


def _figures(result, signals, role):
    predicted = result.predict(signals.q, signals.qd, signals.qdd)
    error = np.where(signals.settled[:, None], signals.tau - predicted, np.nan)
    parts = [f"<h2>{escape(signals.name)} ({role})</h2>"]
    for j, joint in enumerate(result.arm.joint_names):
        parts.append(
            line_figure(
                signals.t,
                {"measured": signals.tau[:, j], "predicted": predicted[:, j]},
                title=f"{joint}: torque",
                x_label="time [s]",
                y_label=f"{joint} [N m]",
            )
        )
        parts.append(
            line_figure(
                signals.t,
                {"residual": error[:, j]},
                title=f"{joint}: residual",
                x_label="time [s]",
                y_label=f"{joint} [N m]",
            )
        )
        good = error[np.isfinite(error[:, j]), j]
        if len(good) > 32:
            f, S = dsp.welch(good, 1.0 / signals.dt, nperseg=min(len(good), 512))
            keep = (f > 0.0) & (f < 3.0 * signals.hz)
            parts.append(
                line_figure(
                    f[keep],
                    {"residual spectrum": np.sqrt(S[keep])},
                    title=f"{joint}: spectrum of the residual",
                    x_label="frequency [Hz]",
                    y_label="N m/√Hz",
                    log_x=True,
                    log_y=True,
                )
            )
    return "".join(parts)


def _bodies(result):
    rows = []
    for i, (new, old) in enumerate(zip(result.arm.links, result.cad.links)):
        share = result.physical.share[10 * i : 10 * i + 10]
        for k, unit in zip(range(10), ("kg",) + ("kg m",) * 3 + ("kg m²",) * 6):
            rows.append(
                f"<tr><td>{escape(result.model.names[10 * i + k])} ({escape(new.name)})<td>{new.parameters[k]:.5g}"
                f"<td>{old.parameters[k]:.5g}<td>{unit}<td>{100 * share[k]:.0f} %"
            )
    return (
        "<h2>The physical arm, link by link</h2><p>About each link frame's origin. The last column says how much of "
        "what is known of a "
        "number comes from the data; the rest is the URDF given.</p><table><tr><th>parameter<th>identified<th>URDF "
        "given<th>unit<th>from data"
        f"</tr>{''.join(rows)}</table>"
    )
