"""The compared choices of a table: values, ranking by a metric, and conditions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from sojourn import stats
from sojourn.arguments import checked
from sojourn.metrics import Direction, Interest, direction, nearest, spelled, unit, view, views
from sojourn.scenario.errors import ScenarioError
from sojourn.scenario.findings import Finding
from sojourn.stats.practical import unended
from sojourn.study.causes import Cause, Plans, causes_of
from sojourn.study.cells import Level
from sojourn.study.constraints import Check, check
from sojourn.study.errors import PolicyFault, StudyError
from sojourn.study.metrics import store_of
from sojourn.study.names import labels, short_names
from sojourn.study.placed import Placed
from sojourn.study.question import USUAL, Asked, conditions, interest
from sojourn.study.ranking import Ranking, Verdict, rank
from sojourn.study.results import Results, results_of
from sojourn.study.table import ALL, UNENDED, Table
from sojourn.study.until import Stopping, Until, stopping


@dataclass(frozen=True)
class Entry:
    """The results of one of the compared choices."""

    choice: str
    """The queue, or the levels of the varied factors in words."""
    levels: Mapping[str, Level]
    """Level of each factor, by factor."""
    verdict: Verdict | Literal["best"] | None
    """Verdict against the best choice; `None` if the choice is not `feasible`."""
    letters: str
    """Group letters: choices that share a letter do not differ significantly."""
    value: stats.Interval
    """Mean of the deciding metric over seeds, with its 95 % interval."""
    difference: stats.Interval | None
    """This choice's mean minus the best choice's, paired by seed, with the verdict's interval.

    `None` for the best choice itself, and if the choice is not `feasible`.
    """
    feasible: bool
    """Whether the choice meets all conditions and has a value of the deciding metric."""
    checks: tuple[Check, ...]
    """Result of each condition."""
    metrics: dict[str, stats.Interval]
    """Means and intervals of the other shown metrics, by metric."""
    missing: str = ""
    """Note on runs without a value of the deciding metric, which the mean excludes."""

    @property
    def reason(self) -> str:
        """Returns notes on missing runs and on conditions that are not met or borderline."""
        wrong = (c.reason for c in self.checks if not c.met or c.borderline)
        return "; ".join(text for text in (self.missing, *wrong) if text)


@dataclass(frozen=True)
class Otherwise:
    """A group of flows for which another choice is better than the comparison's best choice."""

    metric: str
    """Metric of the group of flows."""
    choice: str
    """Choice that is best by this metric."""
    value: stats.Interval
    """Mean of the metric with `choice`."""
    behind: stats.Interval
    """Mean of the metric with the comparison's best choice."""


@checked
class Compared:
    """Queues, or levels of any factors, ranked by one metric under conditions.

    `asked` is the question, and `rule` the precision that ended the runs.
    """

    def __init__(
        self,
        table: Table,
        asked: Asked = USUAL,
        fault: PolicyFault | None = None,
        rule: Until | None = None,
        alpha: float = 0.05,
        plans: Plans | None = None,
    ) -> None:
        if not table.factors:
            raise StudyError("a comparison needs a factor, such as queue")
        self.table = table
        self.plans = plans
        """Returns the plan of a choice's levels as JSON; `None` if no plans are known."""
        self.fault = fault
        """Error of the user's policies that failed and are excluded; `None` without failures."""
        self.noun = "queue" if table.factors == ("queue",) else "choice"
        """Noun for the compared choices: `queue` or `choice`."""
        self._placed = Placed(table)
        self.levels: Mapping[str, Mapping[str, Level]] = self._placed.levels
        """Levels of the factors by choice, in the given order."""
        self.alpha = alpha
        self.rule = rule
        """Rule by which the runs ended; `None` if the number of seeds was fixed.

        Intervals allow for the repeated looks at the results.
        """
        self.by = table.metric(spelled(asked.by))
        self.subject_to = asked.subject_to
        self.conditions = conditions(asked.subject_to)
        better = direction(self.by)
        if better is None:
            raise StudyError(
                f"{asked.by}: neither more nor less of this metric is better, so it cannot rank; "
                "choose another metric"
            )
        self.better: Direction = better
        self.present = asked.present
        """The choice at the line's rate if the others are in a shaper; `None` without shapers."""
        self._own = asked.own
        self.smallest = asked.smallest
        self.interest: Interest = interest(self.by, asked.smallest)
        """Smallest difference of interest of the deciding metric."""

    @property
    def results(self) -> Results | None:
        """Returns the folder of results; `None` if the table was not read from a folder."""
        return results_of(self.table)

    @cached_property
    def own(self) -> str | None:
        """The scenario's own queue, which the user has at present; `None` if it is not compared."""
        known = self._own or self.present
        if known is None and self.results is not None:
            with suppress(ScenarioError):
                known = self.results.scenario.queue_name
        return known if known in self.levels else None

    @property
    def findings(self) -> list[Finding]:
        """Returns what makes the runs say too little, such as a warm-up that is too short."""
        return self.results.findings if self.results else []

    @property
    def meaningless(self) -> bool:
        """Returns whether the runs say too little for a recommendation, despite the verdicts.

        There are findings (other than on unfinished transfers and requests), all choices gave equal
        results (queues only if they were `idle`), or a ranked choice gave the same result with all
        seeds, so that its interval has no meaning.
        """
        equal = self.all_equal and (self.idle or self.noun != "queue")
        found = any(one.kind != "unfinished" for one in self.findings)
        return found or equal or not {*self.alike}.isdisjoint(self.ranking.order)

    @property
    def all_equal(self) -> bool:
        """Returns whether all choices gave identical results in every run."""
        return any(len(group) == len(self.choices) for group in self.same)

    @property
    def idle(self) -> bool:
        """Returns whether the bottleneck's queue never dropped or marked a packet."""
        return not any(self._happened(metric) for metric in ("drops", "marks"))

    def unit(self, metric: str) -> str:
        """Returns the unit of a metric; empty if it has none."""
        return self.table.units.get(metric, "")

    @property
    def choices(self) -> list[str]:
        """Returns the names of the compared choices in the given order."""
        return list(self.levels)

    @property
    def policy_of(self) -> str | None:
        """Returns the name of the balancer whose policies are compared; `None` without one."""
        keys = [factor.split(".") for factor in self.table.factors]
        found = [k[1] for k in keys if len(k) == 3 and (k[0], k[2]) == ("balancers", "policy")]
        return found[0] if found else None

    @property
    def short(self) -> dict[str, str]:
        """Returns a short name of each choice, for sentences and figures."""
        return short_names(self.choices) if self.noun == "queue" else {c: c for c in self.choices}

    @cached_property
    def labels(self) -> dict[str, str]:
        """Returns the label of each choice in a table, in which the present queue is marked."""
        if self.noun != "queue":
            return {choice: choice for choice in self.choices}
        found = labels(self.choices)
        if self.own is None or found[self.own] == "present":
            return found
        return found | {self.own: f"{found[self.own]} (present)"}

    @property
    def seeds(self) -> tuple[int, ...]:
        """Returns the seeds of the runs, in ascending order."""
        return self.table.seeds

    def values(self, metric: str) -> dict[str, npt.NDArray[np.float64]]:
        """Returns the values of a metric by choice, in the order of seeds; NaN if missing."""
        return self._placed.of(self.table.metric(metric))

    @cached_property
    def _checks(self) -> dict[str, tuple[Check, ...]]:
        found: dict[str, list[Check]] = {q: [] for q in self.choices}
        for condition in self.conditions:
            column = self.table.metric(condition.metric)
            for queue, outcome in check(
                condition,
                column,
                self.table.units.get(column, unit(column)),
                self.values(column),
                self.present,
            ).items():
                found[queue].append(outcome)
        return {q: tuple(c) for q, c in found.items()}

    def _fit(self, queue: str, values: npt.NDArray[np.float64]) -> bool:
        return all(c.met for c in self._checks[queue]) and bool(np.isfinite(values).any())

    @cached_property
    def ranking(self) -> Ranking:
        """Returns the ranking of the choices that meet the conditions."""
        values = self.values(self.by)
        fit = {q: x for q, x in values.items() if self._fit(q, x)}
        return rank(fit, self.better, self.interest, self.alpha, looked=self.rule is not None)

    @cached_property
    def stopping(self) -> Stopping | None:
        """Returns the looks and the last precisions; `None` if the number of seeds was fixed."""
        return None if self.rule is None else stopping(self.table, self.rule, paired=True)

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """Returns the entries of all choices, the best first; excluded choices come last."""
        values, ranking = self.values(self.by), self.ranking
        sign = 1.0 if self.better == "lower" else -1.0

        def mean(queue: str) -> float:
            x = values[queue][np.isfinite(values[queue])]
            return sign * float(x.mean()) if x.size else math.inf

        out = sorted((q for q in self.choices if q not in ranking.order), key=mean)
        best = ranking.order[0] if ranking.order else None
        shown = [m for m in self.shown_metrics if m != self.by]

        def against(queue: str) -> tuple[Verdict | Literal["best"] | None, stats.Interval | None]:
            if best is None or queue not in ranking.order:
                return None, None
            if queue == best:
                return "best", None
            return ranking.verdict(queue, best), _turned(ranking.gaps[best, queue].interval)

        return tuple(
            Entry(
                choice=q,
                levels=self.levels[q],
                verdict=against(q)[0],
                letters=ranking.letters.get(q, ""),
                value=self._mean(values[q]),
                difference=against(q)[1],
                feasible=q in ranking.order,
                checks=self._checks[q],
                metrics={m: self._mean(self.values(m)[q]) for m in shown},
                missing=_missing(self.by, values[q]) or self._open(q),
            )
            for q in (*ranking.order, *out)
        )

    def _open(self, choice: str) -> str:
        """Returns a note if unfinished transfers lengthen the deciding metric by over 1 %."""
        if f"{self.by}{ALL}" not in self.table.columns:
            return ""
        ended = self._placed.of(self.by, ended=True)[choice]
        longer = unended(ended, self.values(self.by)[choice])
        if not longer:
            return ""
        return f"{longer} of {ended.size} runs {UNENDED}, so {self.by} is at least this"

    @cached_property
    def shown_metrics(self) -> tuple[str, ...]:
        """Returns the metrics to show: the deciding one, those of conditions, and default ones.

        Metrics without any value are omitted.
        """
        columns = self.table.metrics
        wanted = [self.by, *(self.table.metric(c.metric) for c in self.conditions)]
        store = store_of(self.by, columns)
        if store is not None:
            wanted += [
                m for m in (f"{store}.{m}" for m in view("compare.store")) if self._happened(m)
            ]
            return tuple(m for m in dict.fromkeys(wanted) if self._measured(m))
        if self.policy_of is not None:
            wanted += view("compare.balancer")
        wanted += [m for m in view("compare") if m in columns]
        for group in dict.fromkeys(c.rpartition(".")[0] for c in columns if "." in c):
            for sign, of_app in views("compare.group").items():
                if self._measured(f"{group}.{sign}"):
                    wanted += [f"{group}.{m}" for m in of_app if f"{group}.{m}" in columns]
        return tuple(m for m in dict.fromkeys(wanted) if self._measured(m))

    def _measured(self, column: str) -> bool:
        return self.table.measured(column)

    def _happened(self, column: str) -> bool:
        return self._measured(column) and any(v != 0 for v in self.table.column(column))

    @cached_property
    def _all(self) -> dict[str, npt.NDArray[np.float64]]:
        """Returns all measurements by choice: a row for each metric, a column for each seed."""
        columns = [self._placed.of(metric) for metric in self.table.metrics]
        return {q: np.array([column[q] for column in columns]) for q in self.choices}

    @cached_property
    def alike(self) -> tuple[str, ...]:
        """Returns the choices for which all seeds gave the same results in all metrics."""
        if len(self.seeds) < 2:
            return ()
        return tuple(
            q
            for q, x in self._all.items()
            if np.array_equal(x, np.broadcast_to(x[:, :1], x.shape), equal_nan=True)
        )

    @cached_property
    def same(self) -> tuple[tuple[str, ...], ...]:
        """Returns groups of choices with identical results in every run."""
        found: dict[bytes, list[str]] = {}
        for q, values in self._all.items():
            found.setdefault(values.tobytes(), []).append(q)
        return tuple(tuple(queues) for queues in found.values() if len(queues) > 1)

    @cached_property
    def otherwise(self) -> tuple[Otherwise, ...]:
        """Returns the groups of flows for which another choice is better than the best choice.

        The other choice meets the conditions, and the difference exceeds the smallest difference of
        interest of the group's metric.
        """
        if not self.winners:
            return ()
        best, found = self.winners[0].choice, []
        columns = self.table.metrics
        for group in dict.fromkeys(c.rpartition(".")[0] for c in columns if "." in c):
            if group == self.by.rpartition(".")[0]:
                continue
            felt = next((m for s, m in views("felt").items() if self._measured(f"{group}.{s}")), ())
            differs = (self._otherwise(f"{group}.{m}", best) for m in felt)
            found += [one for one in differs if one is not None][:1]
        return tuple(found)

    def _otherwise(self, metric: str, best: str) -> Otherwise | None:
        better = direction(metric)
        if better is None or metric not in self.table.metrics:
            return None
        values = self.values(metric)
        fit = {q: values[q] for q in self.ranking.order if np.isfinite(values[q]).any()}
        if best not in fit:
            return None
        ranking = rank(
            fit, better, interest(metric, None), self.alpha, looked=self.rule is not None
        )
        first = ranking.order[0]
        if first == best or ranking.verdict(first, best) != "better":
            return None
        return Otherwise(metric, first, self._mean(fit[first]), self._mean(fit[best]))

    def _mean(self, values: npt.NDArray[np.float64]) -> stats.Interval:
        return stats.mean_of_runs(values, looked=self.rule is not None)

    @cached_property
    def causes(self) -> tuple[Cause, ...]:
        """Returns what limited runs apart from the compared choices."""
        if self.plans is None:
            return ()
        choices = [(entry.choice, entry.levels) for entry in self.entries]
        columns = {metric: self.values(metric) for metric in self.table.metrics}
        return causes_of(choices, columns, self.plans)

    @property
    def is_misplaced(self) -> bool:
        """Returns whether queues are compared, and packets wait elsewhere with the best one."""
        best = self.winners[0].choice if self.winners else None
        elsewhere = any(c.kind == "elsewhere" and best in c.choices for c in self.causes)
        return elsewhere and self.noun == "queue"

    @property
    def winners(self) -> tuple[Entry, ...]:
        """Returns the entries of all choices that are not significantly worse than another."""
        return tuple(e for e in self.entries if e.choice in self.ranking.unbeaten)

    @property
    def ranked(self) -> bool:
        """Returns whether any choice meets the conditions and has a value of the metric."""
        return bool(self.ranking.order)

    @property
    def decided(self) -> bool:
        """Returns whether at least one other choice has a decided verdict against the best.

        The result is also true if at most one choice meets the conditions.
        """
        others = self.ranking.order[1:]
        verdicts = {self.ranking.verdict(q, self.ranking.order[0]) for q in others}
        return verdicts != {"inconclusive"}

    @property
    def seeds_to_decide(self) -> dict[str, int]:
        """Returns, by undecided choice, the approximate number of seeds that would decide.

        Choices for which this number cannot be estimated (`stats.Gap.seeds`) are omitted.
        """
        first, *others = self.ranking.order or ("",)
        wanted = {q: self.ranking.gaps[first, q].seeds for q in others}
        return {q: n for q, n in wanted.items() if n is not None}

    def entry(self, queue: str) -> Entry:
        """Returns the entry of a choice; raises `StudyError` if it was not compared."""
        for e in self.entries:
            if e.choice == queue:
                return e
        close = nearest(queue, self.choices)
        raise StudyError(
            f"`{queue}` is not among the compared {self.noun}s"
            + (f": did you mean `{close}`?" if close else f": {', '.join(self.choices)}")
        )


def _missing(metric: str, values: npt.NDArray[np.float64]) -> str:
    """Returns a note on runs without a value of a metric.

    The note is empty if all runs have a value, or if no run has a value.
    """
    without = int((~np.isfinite(values)).sum())
    if without in (0, values.size):
        return ""
    return (
        f"{without} of {values.size} runs have no value of {metric} (for example because no "
        "transfer finished); the mean excludes them"
    )


def _turned(i: stats.Interval) -> stats.Interval:
    """Returns the interval of the negated difference."""
    return stats.Interval(-i.estimate, -i.high, -i.low, i.level, i.n)
