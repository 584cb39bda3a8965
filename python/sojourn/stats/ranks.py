"""Friedman's rank test of groups that are paired by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats as _st

from sojourn.stats._arrays import StatisticsError, grouped


@dataclass(frozen=True, slots=True)
class Friedman:
    """The result of Friedman's rank test, corrected for ties."""

    chi2: float
    """The chi-squared statistic."""
    df: int
    """Degrees of freedom."""
    p: float
    names: tuple[str, ...]
    """Names of the groups."""
    blocks: int
    """Number of seeds."""
    mean_ranks: tuple[float, ...]
    """Mean ranks by group."""

    @property
    def kendall_w(self) -> float:
        """Returns Kendall's coefficient of concordance: 1 if all seeds have the same ranks."""
        return self.chi2 / (self.blocks * self.df)

    def frame(self) -> pd.DataFrame:
        """Returns the mean ranks as a data frame with a row for each group."""
        return pd.DataFrame({"group": self.names, "mean rank": self.mean_ranks})

    def summary(self) -> str:
        """Returns the result as a line of text."""
        return (
            f"Friedman: chi-squared = {self.chi2:.5g}, df = {self.df}, p = {self.p:.4g}, "
            f"W = {self.kendall_w:.3g}"
        )


def friedman(groups: Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike]) -> Friedman:
    """Returns Friedman's rank test of groups whose i-th values have the same seed.

    The test assumes no normal distribution. Raises `StatisticsError` if groups have different
    sizes.

    >>> groups = [[4.1, 3.9, 4.4, 4.0], [5.0, 4.6, 5.3, 4.9], [5.1, 4.5, 5.6, 4.7]]
    >>> round(stats.friedman(groups).p, 3)
    0.05
    """
    named = grouped(groups, 2)
    if len({g.size for g in named.values()}) > 1:
        raise StatisticsError("groups have different sizes; each needs a value for each seed")
    table = np.array(list(named.values())).T
    n, k = table.shape
    ranks = np.array([_st.rankdata(row) for row in table])
    ties = sum(
        float((counts.astype(float) ** 3 - counts).sum())
        for counts in (np.unique(row, return_counts=True)[1] for row in table)
    )
    spread = float(((ranks.sum(axis=0) - n * (k + 1) / 2) ** 2).sum())
    bottom = n * k * (k + 1) - ties / (k - 1)
    chi2 = 12 * spread / bottom if bottom > 0 else 0.0
    means = tuple(float(m) for m in ranks.mean(axis=0))
    return Friedman(chi2, k - 1, float(_st.chi2.sf(chi2, k - 1)), tuple(named), n, means)
