"""Runs until a required precision is reached, such as `sojourn_p95 ± 2%`.

    precision = METRIC ( "±" | "+-" ) ( SHARE | QUANTITY )

The precision applies to the mean of the metric over runs, for each combination of levels, or to the
differences between them, paired by seed. Seeds are 1, 2, 3, ... The intervals are examined at fixed
numbers of seeds, called looks (`stats.sequential`). All intervals are simultaneous at 95 %
(Bonferroni). Only the widths of the intervals and the skewness of the values decide when the runs
end.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sojourn import encode
from sojourn.data import Json
from sojourn.metrics import STATISTIC, Interest, base, find, nearest, registry, spelled
from sojourn.scenario import Scenario
from sojourn.scenario import question as rules
from sojourn.scenario.condition import smallest
from sojourn.scenario.errors import QuestionError
from sojourn.stats import sequential
from sojourn.study import quantities
from sojourn.study.errors import StudyError
from sojourn.study.placed import Placed, Values
from sojourn.study.table import Table

MOST = 1000
"""Default maximum number of seeds."""
ALPHA = 0.05
"""Probability that any of the simultaneous intervals misses its value."""
_PRECISION = re.compile(
    rf"\s*(?P<metric>(?:(?:{STATISTIC})\s+)?[^\s±+]+)\s*(?:±|\+/?-)\s*(?P<width>\S.*?)\s*",
    re.DOTALL,
)
_STATISTIC = re.compile(STATISTIC)
_EXAMPLE = '"sojourn_p95 ± 2%" or "call.delay_p99 +- 1ms"'


@dataclass(frozen=True, slots=True)
class Precision:
    """A required precision: a metric and the half width of its interval."""

    metric: str
    width: Interest
    """Required half width, absolute or as a share of the mean."""
    text: str
    """Required half width as the user wrote it."""

    def __str__(self) -> str:
        return f"{self.metric} ± {self.text}"


@dataclass(frozen=True, slots=True)
class Until:
    """The rule by which runs end; it is fixed before the first run."""

    precisions: tuple[Precision, ...]
    """Required precisions, all of which must be reached."""
    most: int = MOST
    """Maximum number of seeds."""

    def __str__(self) -> str:
        return f"{' and '.join(map(str, self.precisions))}, at most {self.most} seeds"

    def as_dict(self) -> dict[str, Json]:
        """Returns the rule as data for a manifest."""
        return {"until": [str(one) for one in self.precisions], "max_seeds": self.most}


def of_question(question: Mapping[str, Json]) -> Until | None:
    """Returns the rule in a manifest's question; `None` if it has none."""
    texts, most = question.get("until"), question.get("max_seeds")
    if not isinstance(texts, list) or not isinstance(most, int):
        return None
    return parse(map(str, texts), most)


def parse(texts: str | Iterable[str], most: int | None = None) -> Until:
    """Returns the rule that one or several texts state; raises `StudyError` if one is invalid.

    `most` is the maximum number of seeds; by default, `MOST`.
    """
    listed = [texts] if isinstance(texts, str) else texts
    found = tuple(_precision(text) for text in listed)
    if not found:
        raise StudyError(f"--until: write METRIC ± WIDTH, such as {_EXAMPLE}")
    names = [one.metric for one in found]
    if len(set(names)) < len(names):
        raise StudyError(f"--until: {', '.join(names)} names a metric twice: remove one")
    most = MOST if most is None else most
    if most < sequential.FIRST:
        raise StudyError(
            f"--max-seeds {most}: must be at least {sequential.FIRST}, at which the precision is "
            "examined first"
        )
    return Until(found, most)


def _precision(text: str) -> Precision:
    found = _PRECISION.fullmatch(text)
    if found is None:
        raise StudyError(f"--until `{text}`: write METRIC ± WIDTH, such as {_EXAMPLE}")
    metric = spelled(found["metric"])
    if _STATISTIC.fullmatch(metric):
        metric = f"sojourn_{metric}"  # a statistic without a metric means the queueing delay
    entry = find(metric)
    if entry is None:
        close = nearest(base(metric), registry())
        hint = f": did you mean `{close}`?" if close else "; `sojourn list metric` shows all"
        raise StudyError(f"--until `{text}`: no metric `{metric}`{hint}")
    try:
        width = smallest(found["width"], entry)
    except QuestionError as error:
        raise StudyError(f"--until `{text}`: {error}") from None
    if not max(width.share, width.absolute) > 0:
        raise StudyError(f"--until `{text}`: the half width must be above zero, such as 2%")
    return Precision(metric, width, found["width"])


@dataclass(frozen=True, slots=True)
class Width:
    """The precision of one mean or one difference at the last look."""

    metric: str
    of: tuple[str, ...]
    """Name of the cell, or names of both cells of a pair."""
    n: int
    """Number of seeds with a value."""
    half_width: float
    """Half width of the interval; NaN if too few seeds have a value."""
    wanted: float
    """Required half width, in the metric's unit; NaN if too few seeds have a value."""
    reached: bool
    """Whether the required precision is reached."""

    @property
    def lacking(self) -> float:
        """Returns the half width divided by the required half width."""
        return self.half_width / self.wanted if self.wanted > 0 else math.inf


@dataclass(frozen=True)
class Stopping:
    """The looks at the results, and the precisions at the last look."""

    rule: Until
    paired: bool
    """Whether precisions apply to differences of pairs of cells, and not to means of cells."""
    looks: tuple[int, ...]
    """Number of seeds at each look."""
    widths: tuple[Width, ...]
    """Precisions at the last look."""
    units: Mapping[str, str]
    """Units by metric."""

    @property
    def seeds(self) -> int:
        """Returns the number of seeds at the last look."""
        return self.looks[-1]

    @property
    def reached(self) -> bool:
        """Returns whether all required precisions are reached."""
        return all(one.reached for one in self.widths)

    @property
    def over(self) -> bool:
        """Returns whether the runs end: all precisions or the maximum of seeds is reached."""
        return self.reached or self.seeds >= self.rule.most

    @property
    def estimand(self) -> str:
        """Describes the quantity that the intervals estimate."""
        names = ", ".join(dict.fromkeys(one.metric for one in self.widths))
        mean = f"mean over runs of each run's {names}"
        if not self.paired:
            return f"the {mean}"
        return f"the difference, paired by seed, of the {mean}"

    def widest(self) -> list[Width]:
        """Returns, for each metric, the interval that is farthest from the required precision."""

        def rank(one: Width) -> tuple[bool, float]:
            return not one.reached, math.inf if math.isnan(one.lacking) else one.lacking

        names = dict.fromkeys(one.metric for one in self.widths)
        return [max((w for w in self.widths if w.metric == m), key=rank) for m in names]

    def description(self, names: Mapping[str, str] | None = None) -> str:
        """Describes at which number of seeds the runs ended and why.

        `names` has short names of cells.
        """
        wanted = " and ".join(str(one) for one in self.rule.precisions)
        if self.reached:
            first = f"{wanted}: reached with {self.seeds} seeds"
        else:
            end = "the maximum was reached first" if self.over else "runs are missing"
            first = f"{wanted}: inconclusive with {self.seeds} seeds, {end}"
        widest = "; ".join(self._width_text(one, names or {}) for one in self.widest())
        looks = ", ".join(map(str, self.looks))
        many = len(self.widths)
        together = "The interval holds" if many == 1 else f"All {many} intervals hold together"
        return (
            f"{first}. The widest interval: {widest}. The precision is that of {self.estimand}. "
            f"{together} at 95 %. The precision was examined at {looks} seeds of at most "
            f"{self.rule.most}."
        )

    def _width_text(self, one: Width, names: Mapping[str, str]) -> str:
        of = " against ".join(names.get(name, name) for name in one.of if name)
        if not math.isfinite(one.half_width):
            return f"{one.metric}{f' of {of}' if of else ''} has too few values ({one.n})"
        half, wanted = (
            quantities.value(x, self.units.get(one.metric, ""), one.metric)
            for x in (one.half_width, one.wanted)
        )
        skewed = "" if one.reached or one.half_width > one.wanted else ", skewed: too few seeds"
        return f"± {half} of ± {wanted}{f' ({of})' if of else ''}{skewed}"

    def as_dict(self) -> dict[str, Json]:
        """Returns the result as data for JSON."""
        return encode.fields(
            {
                **self.rule.as_dict(),
                "estimand": self.estimand,
                "looks": self.looks,
                "seeds": self.seeds,
                "decided": self.reached,
                "level": 1 - ALPHA,
                "widths": self.widths,
            }
        )


def stopping(table: Table, rule: Until, *, paired: bool) -> Stopping:
    """Examines the precision at each look, up to the first look at which it is sufficient.

    With `paired`, the precision applies to the differences of all pairs of cells; otherwise to the
    mean of each cell.
    """
    columns = {one: table.metric(one.metric) for one in rule.precisions}
    placed = Placed(table)
    values = {one: placed.of(column) for one, column in columns.items()}
    for one, cells in values.items():
        if not any(np.isfinite(x).any() for x in cells.values()):
            raise StudyError(
                f"--until `{one}`: no run has a value of {one.metric}; choose another metric"
            )
    units = {column: table.units.get(column, "") for column in columns.values()}
    taken: list[int] = []
    found: tuple[Width, ...] = ()
    for n in sequential.looks(rule.most):
        if taken and n > len(table.seeds):
            break
        taken.append(min(n, len(table.seeds)))
        found = tuple(
            width
            for one, cells in values.items()
            for width in _widths(columns[one], one.width, _first(cells, n), len(columns), paired)
        )
        if all(one.reached for one in found):
            break
    return Stopping(rule, paired, tuple(taken), found, units)


def _first(cells: Mapping[str, Values], n: int) -> dict[str, Values]:
    return {name: x[:n] for name, x in cells.items()}


def _widths(
    metric: str, wanted: Interest, cells: Mapping[str, Values], precisions: int, paired: bool
) -> list[Width]:
    of: Sequence[tuple[str, ...]] = [(name,) for name in cells]
    if paired:
        of = list(combinations(cells, 2))
    level = 1 - ALPHA / max(1, len(of) * precisions)
    found = []
    for names in of:
        parts = np.array([cells[name] for name in names])
        parts = parts[:, np.isfinite(parts).all(axis=0)]
        n = int(parts.shape[1])
        if n < sequential.FIRST:
            found.append(Width(metric, names, n, math.nan, math.nan, False))
            continue
        half = wanted.at(float(np.abs(parts.mean(axis=1)).max()))
        seen = sequential.look(parts[0] - parts[1] if paired else parts[0], level)
        found.append(Width(metric, names, n, seen.interval.half_width, half, seen.enough(half)))
    return found


def take_looks(
    rule: Until, runs: Callable[[int], Table], *, paired: bool
) -> tuple[Table, Stopping]:
    """Makes runs look by look until the required precision or the maximum is reached.

    `runs` makes the runs with the seeds 1 to n and returns their table. Returns the last table and
    how the runs ended.
    """
    for n in sequential.looks(rule.most):
        table = runs(n)
        found = stopping(table, rule, paired=paired)
        if found.over:
            break
    return table, found


def known(rule: Until, scenario: Scenario) -> None:
    """Raises `StudyError` if the rule has a metric that runs of the scenario do not have."""
    plan = scenario.plan
    for one in rule.precisions:
        try:
            rules.known(plan, one.metric)
        except QuestionError as error:
            raise StudyError(f"--until `{one}`: {error}") from None
