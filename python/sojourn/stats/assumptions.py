"""Tests of the assumptions of other tests: normal distribution and equal variances."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats as _st

from sojourn.stats._arrays import StatisticsError, grouped, sample
from sojourn.stats.anova import one_way


@dataclass(frozen=True, slots=True)
class Check:
    """The result of a test of an assumption.

    A small p is evidence against the assumption; a large p is no evidence for it.
    """

    method: str
    """Name of the test."""
    statistic: float
    p: float
    n: int
    """Number of values."""

    def frame(self) -> pd.DataFrame:
        """Returns the result as a data frame with one row."""
        return pd.DataFrame(
            [{"statistic": self.statistic, "p": self.p, "n": self.n}], [self.method]
        )

    def summary(self) -> str:
        """Returns the result as a line of text."""
        return f"{self.method}: {self.statistic:.5g}, p = {self.p:.4g}, n = {self.n}"


def shapiro_wilk(values: npt.ArrayLike) -> Check:
    """Returns Shapiro and Wilk's test of normality, for 3 to 5000 values (Royston's AS R94).

    Raises `StatisticsError` for too few values, or for values that are not finite.

    >>> round(stats.shapiro_wilk([4.1, 3.9, 4.4, 4.0, 4.2]).p, 2)
    0.93
    """
    x = sample(values, 3)
    if x.size > 5000:
        raise StatisticsError(f"{x.size} values are too many: the test supports at most 5000")
    if float(np.ptp(x)) == 0.0:
        raise StatisticsError("all values are equal: the test requires different values")
    found = _st.shapiro(x)
    return Check("Shapiro-Wilk", float(found.statistic), float(found.pvalue), int(x.size))


def normal_residuals(groups: Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike]) -> Check:
    """Returns Shapiro and Wilk's test of normality for the residuals from the groups' means.

    Raises `StatisticsError` for fewer than two groups, or for values that are not finite.

    >>> groups = [[4.1, 3.9, 4.4, 4.0], [5.0, 4.6, 5.3, 4.9], [5.1, 4.5, 5.6, 4.7]]
    >>> round(stats.normal_residuals(groups).p, 2)
    0.98
    """
    named = grouped(groups)
    return shapiro_wilk(np.concatenate([g - g.mean() for g in named.values()]))


def levene(
    groups: Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike],
) -> Check:
    """Returns Levene's test of equal variances, with medians (Brown and Forsythe).

    Raises `StatisticsError` for fewer than two groups, or for values that are not finite.

    >>> groups = [[4.1, 3.9, 4.4, 4.0], [5.0, 4.6, 5.3, 4.9], [5.1, 4.5, 5.6, 4.7]]
    >>> round(stats.levene(groups).p, 2)
    0.26
    """
    named = grouped(groups, 2)
    spread = {name: np.abs(g - np.median(g)) for name, g in named.items()}
    table = one_way(spread)
    p = table.p if not math.isnan(table.p) else 1.0
    return Check("Levene", table.f, p, sum(table.sizes))
