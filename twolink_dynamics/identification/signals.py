"""From a log to q, q̇, q̈ and τ on one clock: uniform resampling, zero-phase Butterworth filtering, differentiation.

The motion and the torque pass the same filter forwards and backwards (no phase; −6 dB at the stated frequency), q̇ and
q̈ are central differences of the filtered position. A filter of order k is applied twice, so its slope is that of order
2k.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import signal
from scipy.interpolate import CubicHermiteSpline

from ..errors import InputError
from .logs import NAMED

OVERSAMPLING = 25.0  # samples kept per period of the cut-off: q̈ by differences is then within 1 % at the cut-off


@dataclass(frozen=True, eq=False)
class Signals:
    """Filtered motion and effort of one log.

    t (T,) [s]; q, qd, qdd, tau (T, n) [rad, rad/s, rad/s², N m]; dt [s]; hz the cut-off [Hz]; order of the Butterworth
    filter
    pieces   slices of uninterrupted samples; margin: samples at both ends of each piece that the filter has not settled
             on
    """

    name: str
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray
    dt: float
    hz: float
    order: int
    pieces: tuple
    margin: int
    remarks: tuple = ()

    def filtered(self, values):
        """`values` (T, …), sampled like these signals, through the same filter, piece by piece."""
        out = np.empty_like(values)
        for piece in self.pieces:
            out[piece] = zero_phase(values[piece], self.hz, self.dt, self.order)
        return out

    @property
    def settled(self):
        """(T,) bool: samples away from the ends of their piece."""
        good = np.zeros(len(self.t), bool)
        for piece in self.pieces:
            good[piece.start + self.margin : piece.stop - self.margin] = True
        return good


def zero_phase(x, hz, dt, order=3):
    """Butterworth low-pass of `order` at `hz`, forwards and backwards along the first axis; odd extension at the
    ends."""
    if 2.0 * hz * dt >= 0.95:
        return np.array(x, float)
    return signal.sosfiltfilt(signal.butter(order, 2.0 * hz * dt, output="sos"), x, axis=0)


def prepare(log, hz=None, order=3, velocity="position", delay=0.0):
    """The Signals of a Log.

    hz        cut-off [Hz]; None: `bandwidth` chooses it from the spectrum of the positions
    velocity  "position" (differences of the filtered position) or "measured" (the filtered velocity columns)
    delay     [s] by which positions were recorded later than efforts; the efforts are read that much earlier
    Raises InputError on a cut-off the sampling cannot carry, a log too short for it, or missing velocity columns.
    """
    if velocity not in ("position", "measured"):
        raise InputError(f"velocity '{velocity}' is none of position, measured")
    if velocity == "measured" and log.qd is None:
        raise InputError(f"{log.name}: no velocity columns, so velocity 'measured' is not there; use 'position'")
    hz = bandwidth(log)[0] if hz is None else float(hz)
    rate = 1.0 / log.dt
    if not 0.0 < hz < 0.4 * rate:
        raise InputError(
            f"filter of {hz:g} Hz: {log.name} is sampled at {rate:.4g} Hz, the cut-off must lie between "
            f"0 and {0.4 * rate:.4g} Hz"
        )
    step = max(1, int(rate / (OVERSAMPLING * hz)))
    parts, short, start, shortest = [], [], 0, np.inf
    for first, last in log.pieces():
        t = log.t[first:last]
        span = t[-1] - t[0]
        if span < 4.0 / hz:
            short.append((first, last, span))
            continue
        clock = t[0] + log.dt * np.arange(int(span / log.dt + 1e-9) + 1)
        q = zero_phase(_positions(clock, t, log, first, last), hz, log.dt, order)
        if velocity == "measured":
            qd = zero_phase(_interpolated(clock, t, log.qd[first:last]), hz, log.dt, order)
        else:
            qd = np.gradient(q, log.dt, axis=0)
        qdd = np.gradient(qd, log.dt, axis=0)
        tau = zero_phase(_interpolated(clock - delay, t, log.tau[first:last]), hz, log.dt, order)
        shortest = min(shortest, span)
        kept = [x[::step] for x in (clock, q, qd, qdd, tau)]
        parts.append((slice(start, start + len(kept[0])), kept))
        start += len(kept[0])
    if not parts:
        raise InputError(f"{log.name}: no uninterrupted stretch of {4.0 / hz:.3g} s, which a {hz:g} Hz filter needs")
    remarks = [
        f"rows {_row(log, first)} to {_row(log, last - 1)}: {span:.3g} s between two breaks is too short for a "
        f"{hz:g} Hz filter, not used"
        for first, last, span in short[:NAMED]
    ]
    if len(short) > NAMED:
        rest = short[NAMED:]
        remarks.append(
            f"{len(rest)} more such pieces not used, {sum(last - first for first, last, _ in rest)} rows in all"
        )
    settle = max(
        0.8 / hz, min(3.0 / hz, 0.04 * shortest)
    )  # the ends' transient: 2 % left after 0.8 / hz, none after 3 / hz
    margin = int(np.ceil(settle / log.dt / step))
    columns = [np.concatenate(column) for column in zip(*(kept for _, kept in parts))]
    return Signals(
        log.name, *columns, log.dt * step, hz, order, tuple(piece for piece, _ in parts), margin, tuple(remarks)
    )


def _row(log, k):
    """Row of the file that sample k stands in."""
    return int(log.rows[k]) if log.rows is not None else k + 1


def _positions(clock, t, log, first, last):
    """Positions on the clock: linear between samples; where samples are missing, cubic with the recorded velocities,
    since a chord over 20 ms is off by more than an encoder's step."""
    q = _interpolated(clock, t, log.q[first:last])
    step = np.diff(t)
    missing = np.append(step > 1.75 * np.median(step), False)
    if log.qd is not None and missing.any():
        inside = missing[np.clip(np.searchsorted(t, clock, side="right") - 1, 0, len(t) - 1)]
        spline = CubicHermiteSpline(t, log.q[first:last], log.qd[first:last])
        q[inside] = spline(clock[inside])
    return q


def _interpolated(clock, t, values):
    return np.stack([np.interp(clock, t, column) for column in values.T], axis=-1)


def bandwidth(log, lowest=5.0):
    """(cut-off [Hz], reason): 1.5 × the frequency below which 99.9 % of every velocity's variance lies.

    The rigid motion ends there; what position spectra hold above it are vibrations no rigid model has, and noise (the
    floor, median of the top third of the spectrum, is subtracted first). At least 5 Hz, so that a slow motion keeps the
    steps of its friction; at most a tenth of the sampling rate.
    """
    first, last = max(log.pieces(), key=lambda piece: log.t[piece[1] - 1] - log.t[piece[0]])
    t = log.t[first:last]
    clock = np.arange(t[0], t[-1], log.dt)
    if len(clock) < 64:
        raise InputError(
            f"{log.name}: {len(t)} uninterrupted rows are too few to choose a filter from; state its frequency"
        )
    f, S = signal.welch(
        _interpolated(clock, t, log.q[first:last]),
        1.0 / log.dt,
        nperseg=max(64, len(clock) // 3),
        detrend="linear",
        axis=0,
    )
    floor = np.median(S[2 * len(f) // 3 :], axis=0)
    power = np.cumsum(f[:, None] ** 2 * np.where(S > 3.0 * floor, S - floor, 0.0), axis=0)
    content = f[np.argmax(power >= 0.999 * power[-1], axis=0)].max()
    hz, why = min(
        (
            max(1.5 * content, lowest),
            f"1.5 × the {content:.2g} Hz below which 99.9 % of the velocities' variance lies"
            if 1.5 * content > lowest
            else f"the least for slow motion, which ends at {content:.2g} Hz",
        ),
        (0.1 / log.dt, "a tenth of the sampling rate"),
    )
    hz = float(f"{hz:.2g}")
    return hz, f"{hz:g} Hz: {why}"
