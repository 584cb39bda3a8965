"""Contrasts with a baseline: in which cells of a study a level differs from another, for certain.

Runs of two levels are compared in each cell of the other factors, paired by seed; the p values of
all these questions are corrected together by Holm's procedure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from sojourn.stats import Interval, by_seed, holm, holm_alphas, paired_difference, seeds_for_power
from sojourn.stats.cells import aligned
from sojourn.study.answer import words
from sojourn.study.cells import Level
from sojourn.study.errors import StudyError
from sojourn.study.metrics import nearest
from sojourn.study.table import Table

Verdict = Literal["less", "more", "cannot be told", "seeds alike", "not measured"]
"""*Seeds alike*: every seed gave the same two values, so there is no chance to test against."""


@dataclass(frozen=True)
class Contrast:
    """One level against the baseline, in one cell of the other factors."""

    cell: dict[str, Level]
    """Levels of the other factors."""
    level: Level
    """What is compared with the baseline."""
    baseline: float
    """Mean of the baseline, over the seeds that both have."""
    mean: float
    """Mean of the level, over the same seeds."""
    difference: Interval
    """Level minus baseline, paired by seed, with its 95 % interval."""
    p: float
    """Of no difference, corrected by Holm's procedure over the whole table; NaN without a test."""
    verdict: Verdict
    seeds: int | None
    """Seeds that would show a difference as measured, among these questions, with 80 %."""

    @property
    def change(self) -> float:
        """The difference as a part of the baseline; NaN where that is zero."""
        return self.difference.estimate / self.baseline if self.baseline else math.nan


@dataclass(frozen=True)
class Contrasts:
    """All of a study's contrasts with one baseline, by one metric."""

    metric: str
    unit: str
    factor: str
    baseline: Level
    rows: tuple[Contrast, ...]
    alpha: float

    def of(self, level: Level) -> list[Contrast]:
        """Return the contrasts of one level."""
        return [row for row in self.rows if row.level == level]

    @property
    def levels(self) -> list[Level]:
        """What is compared with the baseline."""
        return list(dict.fromkeys(row.level for row in self.rows))

    def answer(self) -> str:
        """Return a sentence for each level: in how many cells it differs."""
        lines = []
        for level in self.levels:
            rows = self.of(level)
            count = {v: sum(r.verdict == v for r in rows) for v in _ORDER}
            if len(rows) == 1:
                lines.append(f"{level}: {_PHRASES[rows[0].verdict]} {self.baseline}.")
                continue
            told = [f"{_SHORT[v]} in {n}" for v, n in count.items() if n]
            lines.append(f"{level}: of {len(rows)} cells {', '.join(told)}.")
        head = f"{words(self.metric)}, against {self.factor} {self.baseline}"
        return "\n".join([head[0].upper() + head[1:] + ":", *(f"  {line}" for line in lines)])

    @property
    def frame(self) -> pd.DataFrame:
        """A row a contrast, in the metric's own unit."""
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
                "p": row.p,
                "verdict": row.verdict,
                "seeds": row.seeds,
            }
            for row in self.rows
        )

    def summary(self) -> str:
        """Return the answer and a line for each contrast, in the metric's own unit."""
        lines = [self.answer()]
        for row in self.rows:
            where = ", ".join(f"{k} {v}" for k, v in row.cell.items())
            lines.append(
                f"{row.level}{f' ({where})' if where else ''}: {row.difference} "
                f"({row.difference.level * 100:g} %), Holm's p = {row.p:.3g}: {row.verdict}"
            )
        return "\n".join(lines)


_ORDER: tuple[Verdict, ...] = ("less", "more", "cannot be told", "seeds alike", "not measured")
_SHORT = {
    "less": "less", "more": "more", "cannot be told": "not to be told apart",
    "seeds alike": "every seed alike", "not measured": "not measured",
}  # fmt: skip
_PHRASES = {
    "less": "less than", "more": "more than", "cannot be told": "cannot be told from",
    "seeds alike": "every seed gave the same difference to",
    "not measured": "was not measured in both, as",
}  # fmt: skip


def contrasts(
    table: Table, metric: str, baseline: Level, factor: str | None = None, alpha: float = 0.05
) -> Contrasts:
    """Return the contrasts of a factor's other levels with `baseline`.

    `factor` is by default the one that has such a level. A cell that has runs of one of the two
    only is left out.
    """
    column = table.metric(metric)
    factor = _factor(table, baseline) if factor is None else table.factor(factor)
    base = _level(table, factor, baseline)
    others = [name for name in table.factors if name != factor]
    groups = (
        table.frame.groupby(others, sort=False, dropna=False) if others else [((), table.frame)]
    )
    found: list[dict[str, Any]] = []
    spreads: list[tuple[dict[str, Any], float]] = []
    for key, rows in groups:
        cell = dict(zip(others, key if isinstance(key, tuple) else (key,), strict=True))
        there = list(dict.fromkeys(rows[factor].tolist()))
        for level in (x for x in there if x != base and base in there):
            (x, y), _ = aligned(
                by_seed(rows, column, {factor: level}), by_seed(rows, column, {factor: base})
            )
            row: dict[str, Any] = {"cell": cell, "level": level, "seeds": None, "p": math.nan}
            row |= {
                "baseline": float(np.mean(y)) if y.size else math.nan,
                "mean": float(np.mean(x)) if x.size else math.nan,
            }
            if x.size > 1 and (np.ptp(x) > 0 or np.ptp(y) > 0):
                test = paired_difference(x, y)
                row |= {"difference": test.interval, "p": test.p}
                spreads.append((row, float(np.std(x - y, ddof=1))))
            else:
                gap = row["mean"] - row["baseline"]
                row["difference"] = Interval(gap, math.nan, math.nan, 0.95, int(x.size))
            found.append(row)
    if not found:
        raise StudyError(f"nothing to compare with {factor} {base}: no cell has another level")
    p = [row["p"] for row, _ in spreads]
    for (row, spread), corrected, share in zip(
        spreads, holm(p), holm_alphas(p, alpha), strict=True
    ):
        row["p"] = float(corrected)
        if corrected > alpha:
            row["seeds"] = seeds_for_power(row["difference"].estimate, spread, float(share))
    return Contrasts(
        column,
        table.units.get(column, ""),
        factor,
        base,
        tuple(Contrast(**row, verdict=_verdict(row, alpha)) for row in found),
        alpha,
    )


def _verdict(row: dict[str, Any], alpha: float) -> Verdict:
    gap, p = row["difference"], row["p"]
    if math.isnan(gap.estimate):
        return "not measured"
    if math.isnan(p):
        return "seeds alike" if gap.n > 1 else "cannot be told"
    if p > alpha:
        return "cannot be told"
    return "less" if gap.estimate < 0 else "more"


def _factor(table: Table, baseline: Level) -> str:
    """Return the factor that has such a level."""
    having = [f for f in table.factors if any(str(x) == str(baseline) for x in table.levels(f))]
    if len(having) == 1:
        return having[0]
    if having:
        raise StudyError(f"{' and '.join(having)} have a level {baseline}: say which factor")
    known = [str(x) for f in table.factors for x in table.levels(f)]
    close = nearest(str(baseline), known)
    hint = f": did you mean `{close}`?" if close else f"; there are {', '.join(known)}"
    raise StudyError(f"no factor has the level `{baseline}`{hint}")


def _level(table: Table, factor: str, baseline: Level) -> Level:
    levels = table.levels(factor)
    for level in levels:
        if str(level) == str(baseline):
            return level
    raise StudyError(f"{factor} has no level `{baseline}`; there are {', '.join(map(str, levels))}")
