"""Signals of a log, all analyses alike."""
from __future__ import annotations

import numpy as np

from ..errors import InputError


def centred(tau):
    """Efforts (N, n) at the instants of the states: τ[k] is held from t[k] on, so the mean of before and after."""
    return 0.5 * (tau + np.concatenate([tau[:1], tau[:-1]]))


def even(log):
    """(t, q, qd, τ centred) on an even grid of the log's median step."""
    step = float(np.median(np.diff(log.t)))
    if len(log.t) < 50:
        raise InputError(f"log: {len(log.t)} samples are too few to analyse")
    t = np.arange(log.t[0], log.t[-1] + 0.5 * step, step)

    def place(x):
        return np.stack([np.interp(t, log.t, column) for column in x.T], axis=1)
    return t, place(log.q), place(log.qd), place(centred(log.tau))


def low_pass(x, step, cutoff):
    """Zero-phase Butterworth of fourth order each way; cutoff [Hz]."""
    from scipy.signal import butter, sosfiltfilt
    return sosfiltfilt(butter(4, min(cutoff * step, 0.4), fs=1.0, output="sos"), x, axis=0)
