"""Figures of the results (matplotlib, imported only here and only when called)."""
from __future__ import annotations

from pathlib import Path

import numpy as np

from ..errors import InputError


def _axes(count, rows=1):
    try:
        import matplotlib
    except ImportError:
        raise InputError("figures need matplotlib (pip install matplotlib); or leave --out away") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(rows, count, figsize=(4.8 * count, 3.6 * rows), squeeze=False, layout="constrained")
    return figure, axes


def _static(result, axes):
    measured, predicted = result.data["measured"], result.data["predicted"]
    for j, ax in enumerate(axes[0]):
        span = [predicted[:, j].min(), predicted[:, j].max()]
        ax.plot(span, span, color="0.6")
        ax.plot(predicted[:, j], measured[:, j], "o", markersize=4)
        ax.set(xlabel="g(q) of the model [N m]", ylabel="effort that carries the pose [N m]")


def _friction(result, axes):
    for name, ax in zip(result.joint_names, axes[0]):
        if name in result.data["curves"]:
            speed, force, predicted, terms = result.data["curves"][name]
            v = np.linspace(speed.min(), speed.max(), 200)
            fit = terms["Fc"] + terms["Fv"] * v
            if terms["vs"] is not None:
                fit = fit + (terms["Fs"] - terms["Fc"]) * np.exp(-(v / terms["vs"]) ** 2)
            ax.plot(v, fit, label="fit")
            ax.plot(speed, predicted, "--", label="model")
            ax.plot(speed, force, "o", markersize=4, label="measured")
            ax.legend()
        ax.set(xlabel="speed [rad/s]", ylabel="friction [N m]", ylim=(0.0, None))


def _phase(response):
    """Degrees between −270 and 90, so that a double integrator's −180 does not flicker to +180."""
    phase = np.degrees(np.angle(response))
    return np.where(phase > 90.0, phase - 360.0, phase)


def _sweep(result, axes):
    for j, name in enumerate(result.joint_names):
        omega, measured, dense, line = result.data["bode"][name]
        top, bottom = axes[:, j]
        top.semilogx(dense / 2 / np.pi, 20 * np.log10(np.abs(line)), label="linearised model")
        top.semilogx(omega / 2 / np.pi, 20 * np.log10(np.abs(measured)), "o", markersize=4, label="measured")
        top.legend()
        top.set(ylabel="|q/τ| [dB rad/(N m)]")
        bottom.semilogx(dense / 2 / np.pi, _phase(line))
        bottom.semilogx(omega / 2 / np.pi, _phase(measured), "o", markersize=4)
        bottom.set(xlabel="frequency [Hz]", ylabel="phase [deg]")


def _tracking(result, axes):
    for j, (upper, lower) in enumerate(axes.T):
        t = result.data["t"]
        upper.plot(t, result.data["measured"][:, j], label="applied")
        upper.plot(t, result.data["predicted"][:, j], "--", label="predicted")
        upper.legend()
        upper.set(ylabel="effort [N m]")
        lower.plot(t, result.data["measured"][:, j] - result.data["predicted"][:, j], label="error")
        lower.plot(t, result.data["left"][:, j], label="no mass, no friction explains")
        lower.legend()
        lower.set(xlabel="t [s]", ylabel="error [N m]")


DRAW = {"static": (_static, 1), "friction": (_friction, 1), "sweep": (_sweep, 2), "tracking": (_tracking, 2)}


def save(result, folder):
    """Writes <folder>/<test>.png and returns its path; raises InputError without matplotlib."""
    draw, rows = DRAW[result.name]
    figure, axes = _axes(len(result.joint_names), rows)
    draw(result, axes)
    for name, ax in zip(result.joint_names, axes[0]):
        ax.set_title(name)
    figure.suptitle(f"{result.name}: {'PASS' if result.passed else 'FAIL'}")
    path = Path(folder) / f"{result.name}.png"
    figure.savefig(path, dpi=110)
    from matplotlib import pyplot
    pyplot.close(figure)
    return path
