"""Fairness of shares."""

from __future__ import annotations

import math

import numpy.typing as npt

from sojourn.stats._arrays import StatisticsError, sample


def jain(values: npt.ArrayLike) -> float:
    """Returns Jain's fairness index (sum x)^2 / (n sum x^2).

    The index is 1 for equal shares, and 1/n if only one of n shares is above zero. It is NaN if all
    shares are zero.

    Raises `StatisticsError` for too few values, or for values that are not finite.

    >>> stats.jain([1, 1, 1]), round(stats.jain([1, 1, 4]), 3)
    (1.0, 0.667)
    """
    x = sample(values)
    if (x < 0).any():
        raise StatisticsError("a share is negative; all shares must be 0 or more")
    top = float(x.max())
    if top == 0.0:
        return math.nan
    y = x / top  # the division avoids overflow and underflow of squares
    return float(y.sum() ** 2 / (y.size * (y * y).sum()))
