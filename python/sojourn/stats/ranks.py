"""Tests of groups that are paired by seed: Friedman's rank test, and t tests of all pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats as _st

from sojourn.stats._arrays import StatisticsError, grouped
from sojourn.stats.effect import paired_d
from sojourn.stats.interval import paired_difference
from sojourn.stats.multiple import holm


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


def paired_tests(
    groups: Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike], level: float = 0.95
) -> pd.DataFrame:
    """Returns paired t tests of all pairs of groups whose i-th values have the same seed.

    A row has the difference b - a of a pair with its interval, t, p without and with Holm's
    correction, and the effect size d_z with its interval. If all differences are zero, p is 1.
    """
    named = grouped(groups, 2)
    rows = []
    for a, b in combinations(named, 2):
        test = paired_difference(named[b], named[a], level)
        effect = paired_d(named[b], named[a], level)
        rows.append(
            {
                "a": a,
                "b": b,
                "difference": test.interval.estimate,
                "low": test.interval.low,
                "high": test.interval.high,
                "t": test.t,
                "p": test.p,
                "d": effect.estimate,
                "d low": effect.low,
                "d high": effect.high,
            }
        )
    frame = pd.DataFrame(rows)
    frame["p Holm"] = holm(frame["p"].to_numpy())
    return frame
