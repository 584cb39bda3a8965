"""Contrasts of a factor's levels with a baseline level, in each cell of the other factors.

The runs of both levels are paired by seed. The intervals of all differences are simultaneous, and
each gives a verdict. A level that misses a condition of the question in a cell is not better there
than a baseline that meets it, and no level is worse than a baseline that misses it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd

from sojourn.metrics import Interest, direction, find, nearest
from sojourn.scenario.condition import Condition
from sojourn.scenario.question import condition_of
from sojourn.stats import Gap, Interval, by_seed, gaps
from sojourn.stats.cells import aligned
from sojourn.stats.practical import unended
from sojourn.study.answer import interest_text, words
from sojourn.study.cells import Level
from sojourn.study.constraints import Check, check
from sojourn.study.errors import StudyError
from sojourn.study.metrics import store_of
from sojourn.study.question import Asked, conditions, interest
from sojourn.study.ranking import verdict
from sojourn.study.table import ALL, UNENDED, Group, Table, of_all

Verdict = Literal[
    "better",
    "worse",
    "as good as",
    "more",
    "less",
    "as much as",
    "inconclusive",
    "not measured",
    "excluded",
    "baseline excluded",
]
"""Result of a contrast; *more*, *less* and *as much as* are for metrics of which neither more nor
less is better. *Excluded*: the level misses a condition, and would otherwise not be worse.
*Baseline excluded*: only the baseline misses a condition, and the level would not be better.
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
    """Whether all seeds gave the same difference."""
    seeds: int | None
    """Approximate number of seeds that would decide; `None` if decided or unknown."""
    checks: tuple[Check, ...] = ()
    """Result of each condition for the level, in this cell."""
    of_baseline: tuple[Check, ...] = ()
    """Result of each condition for the baseline, in this cell."""
    notes: tuple[str, ...] = ()
    """Notes on runs without a value, and on values that are bounds."""

    @property
    def reason(self) -> str:
        """Returns the notes, and conditions that the level or the baseline misses or just meets."""
        checks = (*self.checks, *self.of_baseline)
        return "; ".join([*self.notes, *(c.reason for c in checks if c.reason)])

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
    conditions: tuple[Condition, ...] = ()
    """Conditions that a level must meet in a cell."""
    unchecked: tuple[Condition, ...] = ()
    """Conditions of the study's question whose metrics were not stored."""

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
        if self.conditions:
            head += f", subject to {' and '.join(map(str, self.conditions))}"
        if self.unchecked:
            lines.append(
                f"Not checked, because the metric was not stored: "
                f"{' and '.join(map(str, self.unchecked))}."
            )
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
                "reason": row.reason,
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
                f"{row.verdict}{f' ({row.reason})' if row.reason else ''}"
            )
        return "\n".join(lines)

    def reasons(self, most: int = 8) -> list[str]:
        """Returns at most `most` lines with the notes on contrasts, and on missed conditions."""
        found = [row for row in self.rows if row.reason]
        lines = []
        for row in found[:most]:
            where = ", ".join(f"{k} {v}" for k, v in row.cell.items())
            lines.append(f"{row.level}{f' ({where})' if where else ''}: {row.reason}")
        if len(found) > most:
            lines.append(f"The same holds for {len(found) - most} more of the contrasts.")
        return lines


_PHRASES: dict[Verdict, str] = {
    "better": "better than {}",
    "worse": "worse than {}",
    "less": "less than {}",
    "more": "more than {}",
    "as good as": "as good as {}",
    "as much as": "as much as {}",
    "inconclusive": "inconclusive against {}",
    "not measured": "not measured in the same runs as {}",
    "excluded": "excluded by the condition",
    "baseline excluded": "not comparable, because the condition excludes {}",
}


def contrasts(
    table: Table,
    metric: str,
    baseline: Level,
    factor: str | None = None,
    alpha: float = 0.05,
    smallest: str | None = None,
    subject_to: str | None = None,
) -> Contrasts:
    """Returns the contrasts of all other levels of a factor with the level `baseline`.

    `factor` is by default the factor that has this level. Cells with runs of only one of two levels
    are omitted. `smallest` is the smallest difference of interest, such as `5%`; by default, that
    of the study's question or the metric's own. `subject_to` states conditions; by default those of
    the study's question, or its usual one.
    """
    column = table.metric(metric)
    factor = _factor(table, baseline) if factor is None else table.factor(factor)
    base = _level(table, factor, baseline)
    asked = Asked.of({} if table.results is None else table.results.manifest.question)
    if smallest is None and column == asked.by:
        smallest = asked.smallest
    wanted, unchecked = _conditions(table, column, factor, subject_to)
    others = [name for name in table.factors if name != factor]
    groups: Iterable[tuple[Group, pd.DataFrame]] = (
        table.frame.groupby(others, sort=False, dropna=False) if others else [((), table.frame)]
    )
    where: list[tuple[_Cell, Level]] = []
    pairs, notes = [], list[tuple[str, ...]]()
    for key, rows in groups:
        levels: dict[str, Level] = dict(
            zip(others, key if isinstance(key, tuple) else (key,), strict=True)
        )
        cell = _Cell(table, levels, rows, factor, wanted, asked.present)
        values = cell.values(column)
        for level in (x for x in cell.levels if x != base and base in cell.levels):
            (x, y), omitted = aligned(values[level], values[base])
            where.append((cell, level))
            pairs.append((x, y))
            own = cell.open_runs(column, (level, base))
            if omitted and x.size:
                own.append(f"{omitted} of {omitted + x.size} seeds have no value and are left out")
            notes.append(tuple(own))
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
                cell=cell.where,
                level=level,
                baseline=float(np.mean(y)) if y.size else math.nan,
                mean=float(np.mean(x)) if x.size else math.nan,
                difference=gap.interval,
                smallest=gap.smallest,
                verdict=_allowed(
                    "inconclusive"
                    if cell.only_ages(column, (level, base))
                    else _verdict(gap, column),
                    cell.checks[level],
                    cell.checks[base],
                ),
                exact=gap.exact,
                seeds=gap.seeds,
                checks=cell.checks[level],
                of_baseline=cell.checks[base],
                notes=own,
            )
            for (cell, level), (x, y), gap, own in zip(
                where, pairs, gaps(pairs, least.at, alpha, looked=table.looked), notes, strict=True
            )
        ),
        least,
        alpha,
        wanted,
        unchecked,
    )


class _Cell:
    """The runs of one cell of the other factors."""

    def __init__(
        self,
        table: Table,
        where: dict[str, Level],
        rows: pd.DataFrame,
        factor: str,
        wanted: Sequence[Condition],
        present: str | None,
    ) -> None:
        self.table, self.where, self.rows, self.factor = table, where, rows, factor
        self.wanted, self.present = wanted, present
        self.levels: list[Level] = list(dict.fromkeys(rows[factor].tolist()))

    def values(self, column: str) -> dict[Level, pd.Series[float]]:
        """Returns the values of a metric by seed, for each level."""
        rows = of_all(self.rows, column)
        return {x: by_seed(rows, column, {self.factor: x}) for x in self.levels}

    def _ages(self, column: str, level: Level) -> pd.DataFrame | None:
        """Returns the rows of a level with times of ended transfers and ages of the others."""
        if f"{column}{ALL}" not in self.rows:
            return None
        rows = self.rows[self.rows[self.factor] == level]
        return rows[[column, f"{column}{ALL}"]]

    def open_runs(self, column: str, levels: Sequence[Level]) -> list[str]:
        """Returns notes on levels whose times are longer by transfers that had not ended."""
        found = []
        for level in levels:
            if (ages := self._ages(column, level)) is not None:
                ended, counted = ages.to_numpy(dtype=float).T
                if longer := unended(ended, counted):
                    found.append(f"{longer} of {len(ages)} runs of {level} {UNENDED}")
        return found

    def only_ages(self, column: str, levels: Sequence[Level]) -> bool:
        """Returns whether no transfer ended in any run of these levels."""
        found = [self._ages(column, level) for level in levels]
        return all(
            ages is not None and ages[column].isna().all() and ages[f"{column}{ALL}"].notna().any()
            for ages in found
        )

    @cached_property
    def checks(self) -> dict[Level, tuple[Check, ...]]:
        """Returns the result of each condition by level; *best* is the best level of the cell."""
        found: dict[Level, tuple[Check, ...]] = dict.fromkeys(self.levels, ())
        for condition in self.wanted:
            column = self.table.metric(condition.metric)
            values = pd.concat({str(x): v for x, v in self.values(column).items()}, axis=1)
            if values.isna().all(axis=None):
                continue
            arrays = {str(name): values[name].to_numpy() for name in values.columns}
            unit = self.table.units.get(column, "")
            results = check(condition, column, unit, arrays, self.present)
            found = {x: (*met, results[str(x)]) for x, met in found.items()}
        return found


_CHOSEN = ("queue", "policy", "tcp")
"""Last parts of the factors whose levels one chooses; those of other factors are loads or lines."""


def _conditions(
    table: Table, column: str, factor: str, subject_to: str | None
) -> tuple[tuple[Condition, ...], tuple[Condition, ...]]:
    """Returns the conditions to check, and those whose metrics were not stored.

    A condition that the caller does not state compares levels only if these are choices, and does
    not concern the metric of the contrasts itself.
    """
    if subject_to is not None:
        found = conditions(subject_to)
        for condition in found:
            table.metric(condition.metric)
        return found, ()
    question = {} if table.results is None else table.results.manifest.question
    text = question.get("subject_to")
    store = store_of(column, table.metrics)
    udp = table.measured("udp_goodput") and not any(table.column("goodput"))
    usual = condition_of(store, udp=udp)
    chosen = factor.rpartition(".")[2] in _CHOSEN or factor.startswith("store.")
    levels = {"best", *map(str, table.levels(factor))}
    kept: list[Condition] = []
    unchecked: list[Condition] = []
    for condition in conditions(usual if text is None else str(text)):
        if condition.of is not None and not (chosen and condition.of in levels):
            continue
        try:
            measured = table.metric(condition.metric)
        except StudyError:
            if text is not None:
                unchecked.append(condition)
            continue
        if measured != column:
            kept.append(condition)
    return tuple(kept), tuple(unchecked)


def _allowed(verdict: Verdict, level: Sequence[Check], baseline: Sequence[Check]) -> Verdict:
    """Returns the verdict on a level, given the conditions that it and the baseline meet."""
    if verdict == "not measured":
        return verdict
    own, other = (all(check.met for check in checks) for checks in (level, baseline))
    if not own:
        return verdict if other and verdict == "worse" else "excluded"
    return verdict if other or verdict == "better" else "baseline excluded"


def _verdict(gap: Gap, column: str) -> Verdict:
    if math.isnan(gap.interval.estimate):
        return "not measured"
    better = direction(column)
    if better is not None:
        return verdict(gap, better)
    words: dict[str, Verdict] = {"above": "more", "below": "less", "within": "as much as"}
    return words.get(gap.where, "inconclusive")


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
