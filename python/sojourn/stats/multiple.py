"""Holm's correction for multiple tests."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sojourn.stats._arrays import Floats, StatisticsError, sample


def _p_values(p: npt.ArrayLike) -> Floats:
    array = sample(p, 0, "list of p values")
    if not ((array >= 0) & (array <= 1)).all():
        raise StatisticsError("a p value is not a number from 0 to 1")
    return array


def holm(p: npt.ArrayLike) -> Floats:
    """Returns p values with Holm's step-down correction, in the given order.

    Raises `StatisticsError` for a p value outside 0 to 1.

    >>> [round(float(p), 3) for p in stats.holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    array = _p_values(p)
    m = array.size
    order = np.argsort(array, kind="stable")
    steps = np.minimum(array[order] * np.arange(m, 0, -1), 1.0)
    adjusted = np.empty(m)
    adjusted[order] = np.maximum.accumulate(steps)
    return adjusted


def holm_alphas(p: npt.ArrayLike, alpha: float = 0.05) -> Floats:
    """Returns the significance level at which Holm's procedure judges each p value.

    Of m p values, the i-th smallest (counted from 0) is judged at alpha / (m - i) if all smaller p
    values were significant. The first p value that is not significant and all larger ones have the
    same level. An interval with the confidence 1 - level agrees with the decision.

    Raises `StatisticsError` for a p value outside 0 to 1.

    >>> [round(float(a), 4) for a in stats.holm_alphas([0.01, 0.04, 0.03])]
    [0.0167, 0.025, 0.025]
    """
    array = _p_values(p)
    m = array.size
    shares = np.empty(m)
    share, open_ = alpha / m if m else alpha, True
    for i, k in enumerate(np.argsort(array, kind="stable")):
        if open_:
            share = alpha / (m - i)
            open_ = bool(array[k] <= share)
        shares[k] = share
    return shares
