"""Ranks within seeds: Friedman's test, and paired tests."""

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
    """Friedman's rank test of groups whose i-th values belong together, corrected for ties."""

    chi2: float
    df: int
    p: float
    names: tuple[str, ...]
    blocks: int
    mean_ranks: tuple[float, ...]

    @property
    def kendall_w(self) -> float:
        """Kendall's coefficient of concordance: 0 for random ranks by seed, 1 for equal ranks."""
        return self.chi2 / (self.blocks * self.df)

    def frame(self) -> pd.DataFrame:
        """Returns one row per group."""
        return pd.DataFrame({"group": self.names, "mean rank": self.mean_ranks})

    def summary(self) -> str:
        """Returns a summary in one line."""
        return (
            f"Friedman: chi-squared = {self.chi2:.5g}, df = {self.df}, p = {self.p:.4g}, "
            f"W = {self.kendall_w:.3g}"
        )


def friedman(groups: Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike]) -> Friedman:
    """Tests whether groups differ in rank within seeds; requires no normal distribution."""
    named = grouped(groups, 2)
    if len({g.size for g in named.values()}) > 1:
        raise StatisticsError("every group needs a value of every seed: they differ in size")
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
    """Returns paired t tests of all pairs of groups, seed by seed, p values Holm-corrected.

    One row per pair, b minus a: difference with its own interval, t, p, and Cohen's d of the
    differences with its interval. Pairs without a difference at any seed have p 1.
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
