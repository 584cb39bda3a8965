"""Tests of all pairs of groups: Fisher's LSD, Tukey's HSD, Games-Howell, and Dunn's test."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats as _st

from sojourn.stats._arrays import check_level, grouped
from sojourn.stats.anova import Anova, one_way, welch
from sojourn.stats.interval import t_critical, two_sided_p
from sojourn.stats.letters import letters
from sojourn.stats.multiple import holm


@dataclass(frozen=True, slots=True)
class Pair:
    """The comparison of two groups."""

    a: str
    """Name of the first group."""
    b: str
    """Name of the second group."""
    difference: float
    """Mean (or mean rank) of b minus that of a."""
    low: float
    """Lower limit of the difference; NaN if the test gives no interval."""
    high: float
    """Upper limit of the difference; NaN if the test gives no interval."""
    p: float
    differs: bool
    """Whether the groups differ significantly."""
    statistic: float
    """Statistic of the test: t, q or z."""


@dataclass(frozen=True, slots=True)
class PostHoc:
    """The comparisons of all pairs of groups."""

    method: str
    """Name of the test."""
    names: tuple[str, ...]
    """Names of the groups."""
    centres: tuple[float, ...]
    """Means (or mean ranks) by group."""
    pairs: tuple[Pair, ...]
    alpha: float
    """Significance level."""
    omnibus: Anova | KruskalWallis
    """Test of whether any groups differ, before the pairs are compared."""
    critical: float
    """Critical value (Dunn: before Holm's correction); NaN if it depends on the pair."""
    least_difference: float | None = None
    """Least significant difference; `None` if it depends on the pair."""
    protected: bool = False
    """Whether no pair differs because the omnibus test is not significant."""

    def pair(self, a: str, b: str) -> Pair:
        """Returns the comparison b minus a of two groups; raises `KeyError` for unknown names."""
        for p in self.pairs:
            if (p.a, p.b) == (a, b):
                return p
            if (p.a, p.b) == (b, a):
                return Pair(a, b, -p.difference, -p.high, -p.low, p.p, p.differs, -p.statistic)
        raise KeyError(f"no comparison of {a!r} with {b!r}")

    def groups(self) -> dict[str, str]:
        """Returns the letters of each group, the largest mean first.

        Groups with a common letter do not differ significantly.
        """
        order = [self.names[i] for i in np.argsort(-np.asarray(self.centres), kind="stable")]
        apart = {frozenset((p.a, p.b)) for p in self.pairs if p.differs}
        return letters(order, apart)

    def frame(self) -> pd.DataFrame:
        """Returns the comparisons as a data frame with a row for each pair."""
        return pd.DataFrame(list(self.pairs), columns=[field.name for field in fields(Pair)])

    def summary(self) -> str:
        """Returns the comparisons as a table in text, followed by the letters of the groups."""
        wide = max(len(f"{p.b} - {p.a}") for p in self.pairs)
        lines = [f"{self.method}, alpha {self.alpha:g}"]
        if self.protected:
            lines.append("The omnibus test is not significant, so no pair counts as different.")
        lines.append(f"{'':<{wide}}{'difference':>13}{'low':>13}{'high':>13}{'p':>11}")
        for p in self.pairs:
            low, high = (f"{p.low:.6g}", f"{p.high:.6g}") if not math.isnan(p.low) else ("-", "-")
            lines.append(
                f"{f'{p.b} - {p.a}':<{wide}}{p.difference:>13.6g}{low:>13}{high:>13}{p.p:>11.4g}"
                + (" *" if p.differs else "")
            )
        name = max(len(n) for n in self.names)
        centre = dict(zip(self.names, self.centres, strict=True))
        lines += [f"{n:<{name}}  {centre[n]:>12.6g}  {s}" for n, s in self.groups().items()]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class KruskalWallis:
    """The result of the rank test of Kruskal and Wallis, corrected for ties."""

    h: float
    """The H statistic."""
    df: int
    """Degrees of freedom."""
    p: float
    names: tuple[str, ...]
    """Names of the groups."""
    sizes: tuple[int, ...]
    """Numbers of values by group."""
    mean_ranks: tuple[float, ...]
    """Mean ranks by group."""

    def frame(self) -> pd.DataFrame:
        """Returns the mean ranks as a data frame with a row for each group."""
        return pd.DataFrame({"group": self.names, "n": self.sizes, "mean rank": self.mean_ranks})

    def summary(self) -> str:
        """Returns the result as a line of text."""
        return f"Kruskal-Wallis: H = {self.h:.5g}, df = {self.df}, p = {self.p:.4g}"


def lsd(
    groups: Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike],
    alpha: float = 0.05,
    *,
    protected: bool = True,
) -> PostHoc:
    """Returns Fisher's test of all pairs (least significant difference) after a one-way ANOVA.

    Each pair is judged with the pooled variance at the uncorrected level `alpha`. With `protected`,
    no pair differs unless the F test is significant.

    Raises `StatisticsError` for fewer than two groups, or for values that are not finite.

    >>> groups = [[4.1, 3.9, 4.4, 4.0], [5.0, 4.6, 5.3, 4.9], [5.1, 4.5, 5.6, 4.7]]
    >>> [(p.a, p.b) for p in stats.lsd(groups).pairs if p.differs]
    [('1', '2'), ('1', '3')]
    """
    named = grouped(groups)
    check_level(1 - alpha)
    table = one_way(named)
    critical = t_critical(1 - alpha, table.df_within)
    hold = protected and not table.p <= alpha
    found = []
    for a, b in combinations(named, 2):
        error = math.sqrt(table.ms_within * (1 / named[a].size + 1 / named[b].size))
        d = float(named[b].mean() - named[a].mean())
        t = d / error if error > 0 else (math.copysign(math.inf, d) if d else 0.0)
        p = two_sided_p(t, table.df_within)
        half = critical * error
        found.append(Pair(a, b, d, d - half, d + half, p, p <= alpha and not hold, t))
    least = None
    if len(set(table.sizes)) == 1:
        least = critical * math.sqrt(2 * table.ms_within / table.sizes[0])
    return PostHoc(
        "Fisher's LSD", table.names, table.means, tuple(found), alpha, table, critical, least, hold
    )


def tukey(
    groups: Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike], alpha: float = 0.05
) -> PostHoc:
    """Returns Tukey's test of all pairs (honestly significant difference).

    For groups of unequal sizes it is the Tukey-Kramer test.

    Raises `StatisticsError` for fewer than two groups, or for values that are not finite.

    >>> groups = [[4.1, 3.9, 4.4, 4.0], [5.0, 4.6, 5.3, 4.9], [5.1, 4.5, 5.6, 4.7]]
    >>> [(p.a, p.b) for p in stats.tukey(groups).pairs if p.differs]
    [('1', '2'), ('1', '3')]
    """
    named = grouped(groups)
    check_level(1 - alpha)
    table = one_way(named)
    k, df = len(named), table.df_within
    critical = float(_st.studentized_range.ppf(1 - alpha, k, df))
    found = []
    for a, b in combinations(named, 2):
        error = math.sqrt(table.ms_within / 2 * (1 / named[a].size + 1 / named[b].size))
        d = float(named[b].mean() - named[a].mean())
        q = abs(d) / error if error > 0 else (math.inf if d else 0.0)
        p, half = _studentized(q, k, df), critical * error
        found.append(Pair(a, b, d, d - half, d + half, p, p <= alpha, q))
    least = None
    if len(set(table.sizes)) == 1:
        least = critical * math.sqrt(table.ms_within / table.sizes[0])
    return PostHoc(
        "Tukey's HSD", table.names, table.means, tuple(found), alpha, table, critical, least
    )


def _studentized(q: float, k: int, df: float) -> float:
    """Returns the p value of a studentised range of k groups."""
    return min(max(float(_st.studentized_range.sf(q, k, df)), 0.0), 1.0) if q < math.inf else 0.0


def games_howell(
    groups: Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike], alpha: float = 0.05
) -> PostHoc:
    """Returns Games and Howell's test of all pairs, for groups with any variances and sizes.

    Each pair has its own standard error and its own degrees of freedom (Welch and Satterthwaite).
    The studentised range corrects for the number of pairs.

    Raises `StatisticsError` for fewer than two groups, or for values that are not finite.

    >>> groups = [[4.1, 3.9, 4.4, 4.0], [5.0, 4.6, 5.3, 4.9], [5.1, 4.5, 5.6, 4.7]]
    >>> [(p.a, p.b) for p in stats.games_howell(groups).pairs if p.differs]
    [('1', '2')]
    """
    named = grouped(groups, 2)
    check_level(1 - alpha)
    table = welch(named)
    k = len(named)
    found = []
    for a, b in combinations(named, 2):
        x, y = named[a], named[b]
        vx, vy = float(x.var(ddof=1)) / x.size, float(y.var(ddof=1)) / y.size
        error = math.sqrt((vx + vy) / 2)
        df = (vx + vy) ** 2 / (vx**2 / (x.size - 1) + vy**2 / (y.size - 1))
        d = float(y.mean() - x.mean())
        q = abs(d) / error
        p = _studentized(q, k, df)
        half = float(_st.studentized_range.ppf(1 - alpha, k, df)) * error
        found.append(Pair(a, b, d, d - half, d + half, p, p <= alpha, q))
    return PostHoc("Games-Howell", table.names, table.means, tuple(found), alpha, table, math.nan)


def _ranks(named: Mapping[str, npt.NDArray[np.float64]]) -> tuple[npt.NDArray[np.float64], float]:
    """Returns the ranks of all values of all groups, and the correction for ties.

    The correction is the sum of t^3 - t over the distinct values, each of which occurs t times.
    """
    everything = np.concatenate(list(named.values()))
    ranks = np.asarray(_st.rankdata(everything), dtype=np.float64)
    _, counts = np.unique(everything, return_counts=True)
    return ranks, float((counts.astype(np.float64) ** 3 - counts).sum())


def kruskal_wallis(
    groups: Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike],
) -> KruskalWallis:
    """Returns the rank test of Kruskal and Wallis, which assumes no normal distribution.

    Raises `StatisticsError` for fewer than two groups, or for values that are not finite.

    >>> groups = [[4.1, 3.9, 4.4, 4.0], [5.0, 4.6, 5.3, 4.9], [5.1, 4.5, 5.6, 4.7]]
    >>> round(stats.kruskal_wallis(groups).p, 3)
    0.025
    """
    named = grouped(groups)
    ranks, ties = _ranks(named)
    sizes = [g.size for g in named.values()]
    n = ranks.size
    parts = np.split(ranks, np.cumsum(sizes)[:-1])
    h = 12 / (n * (n + 1)) * sum(p.sum() ** 2 / p.size for p in parts) - 3 * (n + 1)
    correction = 1 - ties / (n**3 - n) if n > 1 else 0.0
    # The correction is zero if all values are equal.
    h, df = (float(h / correction) if correction > 0 else 0.0), len(named) - 1
    return KruskalWallis(
        h,
        df,
        float(_st.chi2.sf(h, df)),
        tuple(named),
        tuple(sizes),
        tuple(float(p.mean()) for p in parts),
    )


def dunn(
    groups: Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike], alpha: float = 0.05
) -> PostHoc:
    """Returns Dunn's test of all pairs of mean ranks, with Holm's correction.

    Raises `StatisticsError` for fewer than two groups, or for values that are not finite.

    >>> groups = [[4.1, 3.9, 4.4, 4.0], [5.0, 4.6, 5.3, 4.9], [5.1, 4.5, 5.6, 4.7]]
    >>> [(p.a, p.b) for p in stats.dunn(groups).pairs if p.differs]
    []
    """
    named = grouped(groups)
    check_level(1 - alpha)
    omnibus = kruskal_wallis(named)
    ranks, ties = _ranks(named)
    n = ranks.size
    variance = n * (n + 1) / 12 - (ties / (12 * (n - 1)) if n > 1 else 0.0)
    mean_rank = dict(zip(omnibus.names, omnibus.mean_ranks, strict=True))
    raw = []
    for a, b in combinations(named, 2):
        d = mean_rank[b] - mean_rank[a]
        error = math.sqrt(max(variance, 0.0) * (1 / named[a].size + 1 / named[b].size))
        z = d / error if error > 0 else 0.0
        raw.append((a, b, d, z, float(2 * _st.norm.sf(abs(z)))))
    adjusted = holm([r[4] for r in raw])
    nan = math.nan
    found = tuple(
        Pair(a, b, d, nan, nan, float(p), bool(p <= alpha), z)
        for (a, b, d, z, _), p in zip(raw, adjusted, strict=True)
    )
    critical = float(_st.norm.isf(alpha / 2))
    return PostHoc(
        "Dunn's test (Holm)", omnibus.names, omnibus.mean_ranks, found, alpha, omnibus, critical
    )
