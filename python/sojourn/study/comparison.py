"""`compare`: which queue, or which levels of other factors, are best, and how sure that is."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sojourn import stats
from sojourn.metrics import Direction, direction, unit, view, views
from sojourn.scenario import Scenario
from sojourn.scenario.engine import Engine
from sojourn.study import answer
from sojourn.study.cells import Level
from sojourn.study.cluster import Place
from sojourn.study.constraints import Check, check
from sojourn.study.errors import PolicyFault, ResultsError, StudyError
from sojourn.study.expression import parse
from sojourn.study.metrics import nearest, spelled, store_of
from sojourn.study.names import in_words, short_names
from sojourn.study.progress import Report
from sojourn.study.question import BY, SUBJECT_TO, sensible, usual
from sojourn.study.ranking import Ranking, rank
from sojourn.study.results import Results
from sojourn.study.session import Session
from sojourn.study.study import Study
from sojourn.study.table import Table

QUEUES = ("pfifo", "codel", "fq_codel", "pie", "cobalt", "cake")
"""What is compared if nothing is said; the scenario's own queue comes first."""

WORTH_SEEING = 0.05
"""The difference, as a share of the best value, of which is told how many seeds would see it."""

_CHOICE = "choice compared"
"""Column of the frame; no metric's name has a space."""


@dataclass(frozen=True)
class Entry:
    """One of those compared."""

    choice: str
    """The queue; where something else is varied, its levels in words."""
    levels: Mapping[str, Level]
    """The level of each factor."""
    rank: int | None
    """None if a condition is not met."""
    letters: str
    """Those that share a letter cannot be told apart."""
    value: stats.Interval
    """The metric compared by: mean over seeds with its 95 % interval."""
    difference: stats.Interval | None
    """Paired difference to the best; None for that one."""
    feasible: bool
    checks: tuple[Check, ...]
    """Each condition, with what was found."""
    metrics: dict[str, stats.Interval]
    """Further metrics."""

    @property
    def reason(self) -> str:
        """Why it is out, or borderline."""
        return "; ".join(c.reason for c in self.checks if not c.met or c.borderline)


@dataclass(frozen=True)
class Otherwise:
    """A group of flows that another queue than the best serves better."""

    metric: str
    choice: str
    """The queue that is best by this metric."""
    value: stats.Interval
    behind: stats.Interval
    """What the best queue of the comparison has."""


class Comparison:
    """Queues, or levels of any factors, compared by one metric, subject to conditions."""

    def __init__(
        self,
        table: Table,
        by: str = BY,
        subject_to: str = SUBJECT_TO,
        alpha: float = 0.05,
        fault: PolicyFault | None = None,
    ) -> None:
        if not table.factors:
            raise StudyError("a comparison needs a factor, such as queue")
        self.table = table
        self.fault = fault
        """Policies of the user's own that failed: they are not in the comparison."""
        self.noun = "queue" if table.factors == ("queue",) else "choice"
        """What is compared, in a word."""
        columns = [table.frame[factor].tolist() for factor in table.factors]
        rows = [dict(zip(table.factors, row, strict=True)) for row in zip(*columns, strict=True)]
        named = [(in_words(levels), levels) for levels in rows]
        self.levels: dict[str, Mapping[str, Level]] = dict(named)
        """Those compared, in the order given: the level of each factor."""
        self._frame = table.frame.assign(**{_CHOICE: [name for name, _ in named]})
        self.alpha = alpha
        self.by = table.metric(spelled(by))
        self.subject_to = subject_to
        self.conditions = parse(subject_to)
        better = direction(self.by)
        if better is None:
            raise StudyError(f"{by}: whether less or more of it is better cannot be said")
        self.better: Direction = better

    @classmethod
    def open(cls, folder: str | Path) -> Comparison:
        """Return the comparison whose results are in a folder."""
        results = Results.open(folder)
        if results.kind != "comparison":
            raise ResultsError(results.folder, f"holds a {results.kind}, not a comparison")
        question = results.manifest.question
        return cls(results.table(), question["by"], question["subject_to"])

    @property
    def results(self) -> Results | None:
        """The folder."""
        return self.table.results

    @property
    def choices(self) -> list[str]:
        """Those compared, in the order given."""
        return list(self.levels)

    @property
    def policy_of(self) -> str | None:
        """The balancer whose policies are compared, if a policy is a factor."""
        keys = [factor.split(".") for factor in self.table.factors]
        found = [k[1] for k in keys if len(k) == 3 and (k[0], k[2]) == ("balancers", "policy")]
        return found[0] if found else None

    @property
    def short(self) -> dict[str, str]:
        """A name for each that is short enough for a sentence or a figure."""
        return short_names(self.choices) if self.noun == "queue" else {c: c for c in self.choices}

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds."""
        return self.table.seeds

    def values(self, metric: str) -> dict[str, npt.NDArray[np.float64]]:
        """Return a metric's values by choice, in the order of the seeds; NaN where missing."""
        column = self.table.metric(metric)
        wide = self._frame.pivot(index="seed", columns=_CHOICE, values=column)
        return {q: wide[q].to_numpy(dtype=np.float64) for q in self.choices}

    @cached_property
    def _checks(self) -> dict[str, tuple[Check, ...]]:
        found: dict[str, list[Check]] = {q: [] for q in self.choices}
        for condition in self.conditions:
            column = self.table.metric(condition.metric)
            for queue, outcome in check(
                condition, column, self.table.units.get(column, unit(column)), self.values(column)
            ).items():
                found[queue].append(outcome)
        return {q: tuple(c) for q, c in found.items()}

    def _fit(self, queue: str, values: npt.NDArray[np.float64]) -> bool:
        return all(c.met for c in self._checks[queue]) and bool(np.isfinite(values).any())

    @cached_property
    def ranking(self) -> Ranking:
        """The queues that meet the conditions, ranked."""
        values = self.values(self.by)
        return rank({q: x for q, x in values.items() if self._fit(q, x)}, self.better, self.alpha)

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """All queues, best first; those that do not meet the conditions last."""
        values, ranking = self.values(self.by), self.ranking
        sign = 1.0 if self.better == "lower" else -1.0

        def mean(queue: str) -> float:
            x = values[queue][np.isfinite(values[queue])]
            return sign * float(x.mean()) if x.size else math.inf

        out = sorted((q for q in self.choices if q not in ranking.ranks), key=mean)
        best = ranking.order[0] if ranking.order else None
        shown = [m for m in self.shown_metrics if m != self.by]
        return tuple(
            Entry(
                choice=q,
                levels=self.levels[q],
                rank=ranking.ranks.get(q),
                letters=ranking.letters.get(q, ""),
                value=_mean(values[q]),
                difference=_difference(values[q], values[best]) if best not in (None, q) else None,
                feasible=q in ranking.ranks,
                checks=self._checks[q],
                metrics={m: _mean(self.values(m)[q]) for m in shown},
            )
            for q in (*ranking.order, *out)
        )

    @cached_property
    def shown_metrics(self) -> tuple[str, ...]:
        """The metric compared by, those of the conditions, and what readers expect."""
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
        return column in self.table.frame and bool(self.table.frame[column].notna().any())

    def _happened(self, column: str) -> bool:
        return self._measured(column) and bool((self.table.frame[column] != 0).any())

    @cached_property
    def alike(self) -> tuple[str, ...]:
        """Queues for which every seed gave the same: nothing random reached them."""
        if len(self.seeds) < 2:
            return ()
        runs = self._frame.groupby(_CHOICE)[list(self.table.metrics)]
        same = (runs.nunique(dropna=False) == 1).all(axis=1)
        return tuple(q for q in self.choices if same[q])

    @cached_property
    def same(self) -> tuple[tuple[str, ...], ...]:
        """Groups of queues that did the same in every run, by all that was measured."""
        columns = list(self.table.metrics)
        runs = self._frame.sort_values("seed").set_index(_CHOICE)[columns]
        found: dict[bytes, list[str]] = {}
        for q in self.choices:
            values = runs.loc[[q]].to_numpy(dtype=np.float64)
            found.setdefault(values.tobytes(), []).append(q)
        return tuple(tuple(queues) for queues in found.values() if len(queues) > 1)

    @cached_property
    def otherwise(self) -> tuple[Otherwise, ...]:
        """Groups of flows of which the best queue is not the best, a trade to know of.

        By what those feel whom the group serves; told where another queue that meets the conditions
        is better by 5 % at least, and significantly.
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
        fit = {q: values[q] for q in self.ranking.ranks if np.isfinite(values[q]).any()}
        if best not in fit:
            return None
        ranking = rank(fit, better, self.alpha)
        first = ranking.order[0]
        value, behind = _mean(fit[first]), _mean(fit[best])
        far = abs(value.estimate - behind.estimate) >= WORTH_SEEING * abs(value.estimate)
        if ranking.ranks[best] == 1 or not far:
            return None
        return Otherwise(metric, first, value, behind)

    @property
    def winners(self) -> tuple[Entry, ...]:
        """The best queue and those that cannot be told apart from it."""
        return tuple(e for e in self.entries if e.rank == 1)

    @cached_property
    def seeds_to_tell(self) -> dict[str, int | None]:
        """Seeds that would show a difference of 5 % to the best, with probability 0.8.

        Of each queue that cannot be told apart from the best; None is more than a million. The
        spread is that of the paired differences measured, the level Holm's for the first of all
        pairs. Empty with fewer than two seeds, or where the best value is 0, of which there is no
        share.
        """
        values = self.values(self.by)
        found: dict[str, int | None] = {}
        first = self.alpha / max(1, len(self.ranking.p))
        winners = [e.choice for e in self.winners]
        for queue in winners[1:]:
            gaps = values[queue] - values[winners[0]]
            gaps = gaps[np.isfinite(gaps)]
            wanted = WORTH_SEEING * abs(float(np.nanmean(values[winners[0]])))
            if gaps.size >= 2 and wanted > 0:
                found[queue] = stats.seeds_for_power(wanted, float(gaps.std(ddof=1)), first)
        return found

    def entry(self, queue: str) -> Entry:
        """Return one queue's row."""
        for e in self.entries:
            if e.choice == queue:
                return e
        close = nearest(queue, self.choices)
        raise StudyError(
            f"`{queue}` was not compared" + (f": did you mean `{close}`?" if close else "")
        )

    def answer(self) -> str:
        """Return the answer in words."""
        return answer.answer(self)

    def summary(self) -> str:
        """Return the answer and the ranked table as plain text."""
        return f"{self.answer()}\n\n{answer.plain_table(self)}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        u = self.table.units
        return {
            "by": self.by,
            "unit": u.get(self.by, ""),
            "better": self.better,
            "subject_to": self.subject_to,
            "alpha": self.alpha,
            "seeds": list(self.seeds),
            "answer": self.answer(),
            "folder": str(self.results.folder) if self.results else None,
            "error": str(self.fault) if self.fault else None,
            "same": [list(queues) for queues in self.same],
            "otherwise": [
                {
                    "metric": o.metric,
                    "unit": u.get(o.metric, ""),
                    self.noun: o.choice,
                    "value": _plain(o.value),
                    "best_has": _plain(o.behind),
                }
                for o in self.otherwise
            ],
            f"{self.noun}s": [
                {
                    self.noun: e.choice,
                    **({} if self.noun == "queue" else {"levels": dict(e.levels)}),
                    "rank": e.rank,
                    "letters": e.letters,
                    "feasible": e.feasible,
                    "reason": e.reason,
                    "value": _plain(e.value),
                    "difference_to_best": _plain(e.difference),
                    **(
                        {"seeds_to_see_5_percent": self.seeds_to_tell[e.choice]}
                        if e.choice in self.seeds_to_tell
                        else {}
                    ),
                    "metrics": {
                        m: {"unit": u.get(m, ""), **(_plain(i) or {})} for m, i in e.metrics.items()
                    },
                }
                for e in self.entries
            ],
            "pairs": [
                {"a": a, "b": b, "p_holm": self.ranking.p[frozenset((a, b))]}
                for i, a in enumerate(self.ranking.order)
                for b in self.ranking.order[i + 1 :]
            ],
        }

    def to_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)

    def __repr__(self) -> str:
        return (
            f"<Comparison of {len(self.choices)} {self.noun}s by {self.by}, "
            f"{len(self.seeds)} seeds>"
        )


def _mean(values: npt.NDArray[np.float64]) -> stats.Interval:
    x = values[np.isfinite(values)]
    return (
        stats.mean_interval(x) if x.size else stats.Interval(math.nan, math.nan, math.nan, 0.95, 0)
    )


def _difference(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> stats.Interval | None:
    both = np.isfinite(a) & np.isfinite(b)
    return stats.paired_difference(a[both], b[both]).interval if both.sum() >= 2 else None


def _plain(i: stats.Interval | None) -> dict[str, Any] | None:
    if i is None:
        return None
    limits = {"mean": i.estimate, "low": i.low, "high": i.high}
    return {k: v if math.isfinite(v) else None for k, v in limits.items()} | {"n": i.n}


def compare(
    scenario: Scenario,
    queues: Sequence[str] | None = None,
    seeds: int | Iterable[int] = 10,
    by: str | None = None,
    subject_to: str | None = None,
    workers: int | None = None,
    out: str | Path | None = None,
    progress: Report | None = None,
    engine: Engine | None = None,
    on: Place | None = None,
    vary: Mapping[str, object] | None = None,
) -> Comparison:
    """Run the scenario with each queue at its bottleneck, or what `vary` says, and rank them.

    `vary` has factors as `Study.vary` has them, of which all combinations are compared, with each
    of `queues` if those are given too. `by` names a metric (of a link or group of flows:
    `call.mos`); `subject_to` is a condition such as `goodput >= 95% of best and loss <= 1%`, or
    empty; by default both are what is usually asked of such a scenario. All meet the same seeds.
    `out`, `workers`, `progress` and `on` are those of `Study.run`. A policy of the user's own that
    fails is left out, and told in the comparison's `fault`; if none is left, it is raised.
    """
    named: tuple[str, ...] = tuple(queues or ())
    if queues is None and not vary:
        named = tuple(dict.fromkeys((scenario.queue, *QUEUES)))
    if not named and not vary:
        raise StudyError("nothing to compare: give two queues or more")
    if len(set(named)) < len(named):
        raise StudyError("a queue stands twice in the list")
    usual_by, usual_condition = usual(scenario)
    by = spelled(usual_by if by is None else by)
    subject_to = usual_condition if subject_to is None else subject_to
    study = Study(scenario).seeds(seeds)
    study = study.vary(queue=list(named)) if named else study
    study = study.vary(vary or {})
    sensible(scenario, by, parse(subject_to), [in_words(cell.factors) for cell in study.cells])
    question = {"by": by, "subject_to": subject_to} | ({"queues": list(named)} if named else {})
    with Session(out, workers, engine, on) as session:
        table, fault = study.asking("comparison", question).run_others(session, progress)
    found = Comparison(table, by, subject_to, fault=fault)
    if fault and any(c.of not in (None, "best", *found.choices) for c in found.conditions):
        raise fault  # a condition is about it
    return found
