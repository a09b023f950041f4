"""When, inside a step, something happens."""
from __future__ import annotations

import numpy as np


def locate(advance, watch, start, end, span):
    """(time, end state, keys hit): the first instant in (0, span] at which a watched value is negative, found
    by false position safeguarded with halving, to 1e-13 of the span or of the value; (span, end, ()) where none is."""
    keys, values = watch
    high, high_values = span, values(end[0], end[1])
    if not (high_values < 0.0).any():
        return span, end, ()
    low, low_values = 0.0, np.maximum(values(*start), 0.0)
    for k in range(100):
        crossed = high_values < 0.0
        if high - low <= 1e-13 * span or (-high_values[crossed]).max() <= 1e-14:
            break
        fraction = (low_values[crossed] / (low_values[crossed] - high_values[crossed])).min()
        if k % 3 == 2:
            fraction = 0.5
        middle = low + min(max(fraction, 0.0), 1.0) * (high - low)
        if middle <= low:
            middle = low + 1e-3 * (high - low)
        elif middle >= high:
            middle = high - 1e-3 * (high - low)
        state = advance(middle)
        found = values(state[0], state[1])
        if (found < 0.0).any():
            high, end, high_values = middle, state, found
        else:
            low, low_values = middle, found
    return high, end, [key for key, value in zip(keys, high_values) if value < 0.0]
