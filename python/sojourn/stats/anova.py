"""Analyses of variance: one-way, Welch's for unequal variances, and with seeds as blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats as _st

from sojourn.stats._arrays import Floats, StatisticsError, grouped


@dataclass(frozen=True, slots=True)
class Anova:
    """The result of an analysis of variance of one factor."""

    names: tuple[str, ...]
    """Names of the groups."""
    sizes: tuple[int, ...]
    """Numbers of values by group."""
    means: tuple[float, ...]
    """Means by group."""
    df_between: float
    """Degrees of freedom between groups."""
    df_within: float
    """Degrees of freedom within groups."""
    ss_between: float
    """Sum of squares between groups."""
    ss_within: float
    """Sum of squares within groups; with blocks, of the residuals."""
    f: float
    """The F statistic; NaN if all values are equal."""
    p: float
    method: str
    """`one-way`, `Welch` or `blocks`."""

    @property
    def ms_between(self) -> float:
        """Returns the mean square between groups."""
        return self.ss_between / self.df_between

    @property
    def ms_within(self) -> float:
        """Returns the mean square within groups, which is the residual variance."""
        if self.method == "blocks":
            return self.ss_within / self.df_within
        return self.ss_within / (sum(self.sizes) - len(self.sizes))

    @property
    def eta_squared(self) -> float:
        """Returns eta squared: the share of the groups in the sum of squares."""
        total = self.ss_between + self.ss_within
        return self.ss_between / total if total > 0 else math.nan

    def frame(self) -> pd.DataFrame:
        """Returns the ANOVA table, with a row for each source of variation."""
        nan = math.nan
        within = self.ss_within / self.df_within if self.method != "Welch" else self.ms_within
        return pd.DataFrame(
            {
                "df": [self.df_between, self.df_within],
                "sum of squares": [self.ss_between, self.ss_within],
                "mean square": [self.ms_between, within],
                "F": [self.f, nan],
                "p": [self.p, nan],
            },
            index=["between", "within"],
        )

    def summary(self) -> str:
        """Returns the ANOVA table as text; with Welch's method, a line with F and p."""
        if self.method == "Welch":
            return (
                f"Welch's one-way ANOVA: F = {self.f:.5g}, df = {self.df_between:g} and "
                f"{self.df_within:.5g}, p = {self.p:.4g}"
            )
        return text_of(self.frame())


def text_of(frame: pd.DataFrame) -> str:
    """Returns an ANOVA table as text; numbers that a source of variation lacks are left empty."""
    formats = {
        "df": ">6g",
        "sum of squares": ">17.6g",
        "mean square": ">14.6g",
        "F": ">10.4g",
        "p": ">12.4g",
    }
    wide = max(10, *(len(str(name)) + 1 for name in frame.index))
    lines = [
        "".join(
            [
                " " * wide,
                *(
                    format(name, form.partition(".")[0].rstrip("g"))
                    for name, form in formats.items()
                ),
            ]
        )
    ]
    for name, row in frame.iterrows():
        cells = (format(row[c], form) for c, form in formats.items() if not math.isnan(row[c]))
        lines.append(f"{name:<{wide}}" + "".join(cells))
    return "\n".join(lines)


def _squares(named: dict[str, Floats]) -> tuple[float, float]:
    everything = np.concatenate(list(named.values()))
    grand = everything.mean()
    between = sum(g.size * (g.mean() - grand) ** 2 for g in named.values())
    within = sum(((g - g.mean()) ** 2).sum() for g in named.values())
    return float(between), float(within)


def one_way(groups: Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike]) -> Anova:
    """Returns a one-way ANOVA, which compares the means of groups with equal variances.

    Raises `StatisticsError` for fewer than two groups, or for values that are not finite.

    >>> groups = [[4.1, 3.9, 4.4, 4.0], [5.0, 4.6, 5.3, 4.9], [5.1, 4.5, 5.6, 4.7]]
    >>> stats.one_way(groups).p < 0.01
    True
    """
    named = grouped(groups)
    k, n = len(named), sum(g.size for g in named.values())
    if n <= k:
        raise StatisticsError(
            f"{n} values in {k} groups do not allow an estimate of the variance; more values than "
            "groups are required"
        )
    between, within = _squares(named)
    dfb, dfw = k - 1, n - k
    f = (between / dfb) / (within / dfw) if within > 0 else (math.inf if between > 0 else math.nan)
    return Anova(
        tuple(named),
        tuple(int(g.size) for g in named.values()),
        tuple(float(g.mean()) for g in named.values()),
        dfb,
        dfw,
        between,
        within,
        f,
        float(_st.f.sf(f, dfb, dfw)) if not math.isnan(f) else math.nan,
        "one-way",
    )


def welch(groups: Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike]) -> Anova:
    """Returns Welch's ANOVA, which compares the means of groups with unequal variances.

    Raises `StatisticsError` if all values of a group are equal.

    >>> groups = [[4.1, 3.9, 4.4, 4.0], [5.0, 4.6, 5.3, 4.9], [5.1, 4.5, 5.6, 4.7]]
    >>> stats.welch(groups).p < 0.01
    True
    """
    named = grouped(groups, 2)
    sizes = np.array([g.size for g in named.values()], dtype=np.float64)
    means = np.array([g.mean() for g in named.values()])
    variances = np.array([g.var(ddof=1) for g in named.values()])
    if (variances == 0).any():
        flat = [name for name, v in zip(named, variances, strict=True) if v == 0]
        raise StatisticsError(
            f"no variation in {', '.join(flat)}: Welch's test requires a variance above zero"
        )
    k = len(named)
    w = sizes / variances
    centre = (w * means).sum() / w.sum()
    lack = (((1 - w / w.sum()) ** 2) / (sizes - 1)).sum()
    top = (w * (means - centre) ** 2).sum() / (k - 1)
    f = float(top / (1 + 2 * (k - 2) / (k * k - 1) * lack))
    df_within = float((k * k - 1) / (3 * lack))
    between, within = _squares(named)
    return Anova(
        tuple(named),
        tuple(int(s) for s in sizes),
        tuple(float(m) for m in means),
        k - 1,
        df_within,
        between,
        within,
        f,
        float(_st.f.sf(f, k - 1, df_within)),
        "Welch",
    )


def blocks(groups: Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike]) -> Anova:
    """Returns an ANOVA of groups whose i-th values have the same seed.

    This is the analysis of randomised complete blocks: a two-way layout without replication. The
    effect of the seed is removed, so `ss_within` is the variation that neither group nor seed
    explains. Raises `StatisticsError` if groups have different sizes.

    >>> groups = [[4.1, 3.9, 4.4, 4.0], [5.0, 4.6, 5.3, 4.9], [5.1, 4.5, 5.6, 4.7]]
    >>> stats.blocks(groups).p < 0.001
    True
    """
    named = grouped(groups, 2)
    sizes = {g.size for g in named.values()}
    if len(sizes) > 1:
        raise StatisticsError("groups have different sizes; each needs a value for each seed")
    table = np.array(list(named.values()))
    k, n = table.shape
    grand = table.mean()
    between = float(n * ((table.mean(axis=1) - grand) ** 2).sum())
    residual = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + grand
    within = float((residual**2).sum())
    dfb, dfw = k - 1, (k - 1) * (n - 1)
    f = (between / dfb) / (within / dfw) if within > 0 else (math.inf if between > 0 else math.nan)
    return Anova(
        tuple(named),
        (n,) * k,
        tuple(float(m) for m in table.mean(axis=1)),
        dfb,
        dfw,
        between,
        within,
        f,
        float(_st.f.sf(f, dfb, dfw)) if not math.isnan(f) else math.nan,
        "blocks",
    )
