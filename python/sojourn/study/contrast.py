"""Contrasts of a factor's levels with a baseline level, in each cell of the other factors.

The runs of both levels are paired by seed. The intervals of all differences are simultaneous, and
each gives a verdict.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from sojourn.metrics import Interest, direction, find, nearest
from sojourn.stats import Gap, Interval, by_seed, gaps
from sojourn.stats.cells import aligned
from sojourn.study.answer import interest_text, words
from sojourn.study.cells import Level
from sojourn.study.errors import StudyError
from sojourn.study.question import interest
from sojourn.study.ranking import verdict
from sojourn.study.table import Table

Verdict = Literal[
    "better", "worse", "as good as", "more", "less", "as much as", "not decided", "not measured"
]
"""Result of a contrast; *more*, *less* and *as much as* are for metrics of which neither more nor
less is better.
"""


@dataclass(frozen=True)
class Contrast:
    """The contrast of one level with the baseline, in one cell of the other factors."""

    cell: dict[str, Level]
    """Levels of the other factors."""
    level: Level
    """Level that is compared with the baseline."""
    baseline: float
    """Mean with the baseline over the seeds that both levels have."""
    mean: float
    """Mean with the level over the seeds that both levels have."""
    difference: Interval
    """Level minus baseline, paired by seed; the intervals of all contrasts are simultaneous."""
    smallest: float
    """Smallest difference of interest, in the metric's unit."""
    verdict: Verdict
    exact: bool
    """Whether all seeds gave the same difference, because the cell has no randomness."""
    seeds: int | None
    """Approximate number of seeds that would decide; `None` if decided or unknown."""

    @property
    def change(self) -> float:
        """Returns the difference as a share of the baseline's mean; NaN if this mean is zero."""
        return self.difference.estimate / self.baseline if self.baseline else math.nan


@dataclass(frozen=True)
class Contrasts:
    """All contrasts of a factor's levels with one baseline, by one metric."""

    metric: str
    unit: str
    """Unit of the metric; empty if it has none."""
    factor: str
    """Factor whose levels are compared."""
    baseline: Level
    rows: tuple[Contrast, ...]
    interest: Interest
    """Smallest difference of interest of the metric."""
    alpha: float
    """Probability that any of the intervals misses its difference."""

    def of(self, level: Level) -> list[Contrast]:
        """Returns the contrasts of one level with the baseline, one for each cell."""
        return [row for row in self.rows if row.level == level]

    @property
    def levels(self) -> list[Level]:
        """Returns the levels that are compared with the baseline."""
        return list(dict.fromkeys(row.level for row in self.rows))

    @property
    def smallest(self) -> str:
        """Returns the smallest difference of interest in words, with its source."""
        return interest_text(self.metric, self.interest)

    def answer(self) -> str:
        """Returns a sentence for each level: the number of cells by verdict."""
        lines = []
        for level in self.levels:
            rows = self.of(level)
            count = {v: sum(r.verdict == v for r in rows) for v in _PHRASES}
            if len(rows) == 1:
                lines.append(f"{level}: {_PHRASES[rows[0].verdict].format(self.baseline)}.")
                continue
            texts = [f"{v.removesuffix(' as')} in {n}" for v, n in count.items() if n]
            lines.append(f"{level}: {', '.join(texts)} of {len(rows)} cells.")
        head = f"{words(self.metric)}, against {self.factor} {self.baseline}"
        return "\n".join([head[0].upper() + head[1:] + ":", *(f"  {line}" for line in lines)])

    @property
    def frame(self) -> pd.DataFrame:
        """Returns a data frame with a row for each contrast, in the metric's unit."""
        return pd.DataFrame(
            {
                **row.cell,
                self.factor: row.level,
                "baseline": row.baseline,
                "mean": row.mean,
                "difference": row.difference.estimate,
                "low": row.difference.low,
                "high": row.difference.high,
                "n": row.difference.n,
                "level": row.difference.level,
                "smallest": row.smallest,
                "verdict": row.verdict,
                "seeds": row.seeds,
            }
            for row in self.rows
        )

    def summary(self) -> str:
        """Returns the answer and a line for each contrast, in the metric's unit."""
        lines = [self.answer()]
        for row in self.rows:
            where = ", ".join(f"{k} {v}" for k, v in row.cell.items())
            level = f"{row.difference.level * 100:.4g} %"
            lines.append(
                f"{row.level}{f' ({where})' if where else ''}: {row.difference} ({level}): "
                f"{row.verdict}"
            )
        return "\n".join(lines)


_PHRASES: dict[Verdict, str] = {
    "better": "better than {}",
    "worse": "worse than {}",
    "less": "less than {}",
    "more": "more than {}",
    "as good as": "as good as {}",
    "as much as": "as much as {}",
    "not decided": "not decided against {}",
    "not measured": "not measured in the same runs as {}",
}


def contrasts(
    table: Table,
    metric: str,
    baseline: Level,
    factor: str | None = None,
    alpha: float = 0.05,
    smallest: str | None = None,
) -> Contrasts:
    """Returns the contrasts of all other levels of a factor with the level `baseline`.

    `factor` is by default the factor that has this level. Cells with runs of only one of two levels
    are omitted. `smallest` is the smallest difference of interest, such as `5%`; by default, the
    metric's own.
    """
    column = table.metric(metric)
    factor = _factor(table, baseline) if factor is None else table.factor(factor)
    base = _level(table, factor, baseline)
    others = [name for name in table.factors if name != factor]
    groups = (
        table.frame.groupby(others, sort=False, dropna=False) if others else [((), table.frame)]
    )
    where: list[tuple[dict[str, Any], Any]] = []
    pairs = []
    for key, rows in groups:
        cell = dict(zip(others, key if isinstance(key, tuple) else (key,), strict=True))
        there = list(dict.fromkeys(rows[factor].tolist()))
        for level in (x for x in there if x != base and base in there):
            (x, y), _ = aligned(
                by_seed(rows, column, {factor: level}), by_seed(rows, column, {factor: base})
            )
            where.append((cell, level))
            pairs.append((x, y))
    if not pairs:
        raise StudyError(f"nothing to compare with {factor} {base}: no cell has another level")
    # The registry has no smallest difference for a policy's internal state, so every difference
    # counts.
    least = Interest(0.0, 0.0, "none") if find(column) is None else interest(column, smallest)
    return Contrasts(
        column,
        table.units.get(column, ""),
        factor,
        base,
        tuple(
            Contrast(
                cell=cell,
                level=level,
                baseline=float(np.mean(y)) if y.size else math.nan,
                mean=float(np.mean(x)) if x.size else math.nan,
                difference=gap.interval,
                smallest=gap.smallest,
                verdict=_verdict(gap, column),
                exact=gap.exact,
                seeds=gap.seeds,
            )
            for (cell, level), (x, y), gap in zip(
                where, pairs, gaps(pairs, least.at, alpha, looked=table.looked), strict=True
            )
        ),
        least,
        alpha,
    )


def _verdict(gap: Gap, column: str) -> Verdict:
    if math.isnan(gap.interval.estimate):
        return "not measured"
    better = direction(column)
    if better is not None:
        return verdict(gap, better)
    words: dict[str, Verdict] = {"above": "more", "below": "less", "within": "as much as"}
    return words.get(gap.where, "not decided")


def _factor(table: Table, baseline: Level) -> str:
    """Returns the only factor that has the level `baseline`; raises `StudyError` otherwise."""
    having = [f for f in table.factors if any(str(x) == str(baseline) for x in table.levels(f))]
    if len(having) == 1:
        return having[0]
    if having:
        raise StudyError(f"{' and '.join(having)} have a level {baseline}: name the factor")
    known = [str(x) for f in table.factors for x in table.levels(f)]
    close = nearest(str(baseline), known)
    hint = f": did you mean `{close}`?" if close else f"; existing levels: {', '.join(known)}"
    raise StudyError(f"no factor has the level `{baseline}`{hint}")


def _level(table: Table, factor: str, baseline: Level) -> Level:
    levels = table.levels(factor)
    for level in levels:
        if str(level) == str(baseline):
            return level
    raise StudyError(f"{factor} has no level `{baseline}`; existing: {', '.join(map(str, levels))}")
