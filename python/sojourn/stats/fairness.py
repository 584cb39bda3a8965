"""Evenness of shares."""

from __future__ import annotations

import math

import numpy.typing as npt

from sojourn.stats._arrays import StatisticsError, sample


def jain(values: npt.ArrayLike) -> float:
    """Returns Jain's index (sum x)^2 / (n sum x^2): 1 for equal shares, 1/n for one owner.

    NaN if all values are zero.
    """
    x = sample(values)
    if (x < 0).any():
        raise StatisticsError("shares cannot be negative")
    top = float(x.max())
    if top == 0.0:
        return math.nan
    y = x / top  # avoids overflow and underflow
    return float(y.sum() ** 2 / (y.size * (y * y).sum()))
