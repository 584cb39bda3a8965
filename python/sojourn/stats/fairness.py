"""How evenly something is shared."""

from __future__ import annotations

import math

import numpy.typing as npt

from sojourn.stats._arrays import StatisticsError, sample


def jain(values: npt.ArrayLike) -> float:
    """Jain's index (sum x)^2 / (n sum x^2): 1 if all are equal, 1/n if one has everything.

    NaN if nobody has anything.
    """
    x = sample(values)
    if (x < 0).any():
        raise StatisticsError("shares cannot be negative")
    top = float(x.max())
    if top == 0.0:
        return math.nan
    y = x / top  # no overflow, no underflow
    return float(y.sum() ** 2 / (y.size * (y * y).sum()))
