"""A comparison with several engines, which run the same choices with the same seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sojourn import encode
from sojourn.data import Json
from sojourn.scenario.engine import ENGINE
from sojourn.stats import Interval
from sojourn.study import comparison_data, quantities
from sojourn.study.agreement import Agreement, sentence
from sojourn.study.agreement import judged as agreed
from sojourn.study.answer import listed, table_metrics, words
from sojourn.study.compared import Entry
from sojourn.study.comparison import Comparison, judged
from sojourn.study.errors import PolicyFault, ResultsError, StudyError
from sojourn.study.question import USUAL, Asked
from sojourn.study.results import Results, results_of
from sojourn.study.table import Table

_NOTHING = Interval(math.nan, math.nan, math.nan, 0.95, 0)


@dataclass(frozen=True)
class Row:
    """The results of one choice with one engine."""

    choice: str
    """The queue, or the levels of the varied factors in words."""
    engine: str
    """Name of the engine."""
    entry: Entry
    """The choice's entry in the engine's comparison."""

    def value(self, metric: str, by: str) -> Interval:
        """Returns a metric's mean with its interval; NaN if the engine has no value.

        `by` is the deciding metric of the comparison.
        """
        return self.entry.value if metric == by else self.entry.metrics.get(metric, _NOTHING)


class AcrossEngines:
    """A comparison for each of several engines.

    Choices are ranked separately for each engine.
    """

    def __init__(
        self, table: Table, asked: Asked = USUAL, fault: PolicyFault | None = None
    ) -> None:
        if ENGINE not in table.factors:
            raise StudyError(
                "these runs were made by one engine, but a comparison of engines needs at least two"
            )
        self.table = table
        self.engines: dict[str, Comparison] = {
            str(name): judged(Comparison(table.of_engine(name), asked, fault))
            for name in table.levels(ENGINE)
        }
        """Comparisons by the name of the engine."""
        self.fault = fault

    @classmethod
    def open(cls, folder: str | Path) -> AcrossEngines:
        """Returns the comparison in a results folder; raises `ResultsError` without one."""
        results = Results.open(folder)
        if results.kind != "comparison":
            raise ResultsError(results.folder, f"holds a {results.kind}, not a comparison")
        return cls(results.table(), Asked.of(results.manifest.question))

    @property
    def first(self) -> Comparison:
        """Returns the first engine's comparison, which determines the order of the table."""
        return next(iter(self.engines.values()))

    @property
    def by(self) -> str:
        """Returns the deciding metric."""
        return self.first.by

    @property
    def results(self) -> Results | None:
        """Returns the folder of results; `None` if the table was not read from a folder."""
        return results_of(self.table)

    @property
    def ranked(self) -> bool:
        """Returns whether every engine ranks at least one choice."""
        return all(c.ranked for c in self.engines.values())

    @property
    def limits(self) -> dict[str, str]:
        """Returns the limits of the results in words, by engine, for engines that state any."""
        return {} if self.results is None else self.results.manifest.limits

    @property
    def rows(self) -> tuple[Row, ...]:
        """Returns a row for each choice and engine, with choices in the first engine's order."""
        order = dict.fromkeys(e.choice for c in self.engines.values() for e in c.entries)
        found = {(e.choice, name): e for name, c in self.engines.items() for e in c.entries}
        return tuple(
            Row(choice, name, found[choice, name])
            for choice in order
            for name in self.engines
            if (choice, name) in found
        )

    @property
    def shown_metrics(self) -> tuple[str, ...]:
        """Returns the metrics that at least one engine measured.

        The deciding metric comes first, then the metrics that most engines measured.
        """
        every = dict.fromkeys(m for c in self.engines.values() for m in c.shown_metrics)
        return tuple(self._sorted(every))

    def table_metrics(self, most: int = 7) -> list[str]:
        """Returns at most `most` metrics, for a table that fits a terminal."""
        every = dict.fromkeys(m for c in self.engines.values() for m in table_metrics(c, most))
        return self._sorted(every)[:most]

    def _sorted(self, metrics: Iterable[str]) -> list[str]:
        def lacking(metric: str) -> tuple[bool, int]:
            missing = sum(metric not in c.shown_metrics for c in self.engines.values())
            return metric != self.by, missing

        return sorted(metrics, key=lacking)

    @cached_property
    def agreements(self) -> dict[str, list[Agreement]]:
        """Returns, by other engine, whether the first engine agrees with it in each shown value."""
        metrics, (first, *others) = self.table_metrics(), self.engines.values()

        def values(c: Comparison, metric: str) -> dict[str, npt.NDArray[np.float64]]:
            return c.values(metric) if metric in c.table.metrics else {}

        return {
            name: agreed(
                [
                    (choice, metric, x, theirs[choice])
                    for metric in metrics
                    for theirs in [values(other, metric)]
                    for choice, x in values(first, metric).items()
                    if choice in theirs
                ]
            )
            for name, other in zip(list(self.engines)[1:], others, strict=True)
        }

    @property
    def agreement(self) -> str:
        """Returns whether the engines agree on the best choice, and in the values shown."""
        first = next(iter(self.engines))
        found = (sentence(first, name, values) for name, values in self.agreements.items())
        return " ".join([self._best, *found])

    @property
    def _best(self) -> str:
        """Returns a sentence on the best choices of the engines."""
        best = {name: {e.choice for e in c.winners} for name, c in self.engines.items()}
        if not all(best.values()):
            none = [name for name, winners in best.items() if not winners]
            return f"No {self.first.noun} can be ranked with {listed(none)}."
        names = self.first.short
        common = set.intersection(*best.values())
        if common:
            shared = [names.get(c, c) for c in self.first.choices if c in common]
            are = "is" if len(shared) == 1 else "are"
            return f"{listed(shared)} {are} among the best with each engine."
        led = [
            f"{names.get(c.winners[0].choice, c.winners[0].choice)} with {name}"
            for name, c in self.engines.items()
        ]
        return f"The best choice depends on the engine: {listed(led)}."

    def answer(self) -> str:
        """Returns each engine's answer, and whether the engines agree."""
        answers = [f"{name}: {c.answer()}" for name, c in self.engines.items()]
        return "\n".join([*answers, self.agreement])

    def summary(self) -> str:
        """Returns the answers and the table as plain text."""
        rows = self.rows
        columns = [
            ["", "group", *(r.entry.letters or quantities.NOTHING for r in rows)],
            ["", self.first.noun, *(r.choice for r in rows)],
            ["", ENGINE, *(r.engine for r in rows)],
        ]
        for metric in self.table_metrics():
            found = [r.value(metric, self.by) for r in rows]
            columns.append(quantities.text_column(metric, self.unit(metric), found))
        return f"{self.answer()}\n\n{quantities.text_table(columns, 3)}"

    def unit(self, metric: str) -> str:
        """Returns the unit of a metric; empty if it has none."""
        return self.table.units.get(metric, "")

    def question(self) -> str:
        """Returns the question in words, such as "the lowest queueing delay"."""
        extreme = "lowest" if self.first.better == "lower" else "highest"
        return f"the {extreme} {words(self.by)}"

    def to_dict(self) -> dict[str, Json]:
        """Returns the comparison as plain data: a row for each choice and engine."""
        stored = [] if self.results is None else self.results.manifest.engines
        about = {engine.name: engine for engine in stored}
        rows = {
            (entry.choice, name): {ENGINE: name, **row}
            for name, c in self.engines.items()
            for entry, row in zip(c.entries, comparison_data.rows(c), strict=True)
        }
        return {
            **comparison_data.common(self.first),
            "answer": self.answer(),
            "agreement": self.agreement,
            "agreements": [
                encode.fields({ENGINE: name, **vars(one)})
                for name, found in self.agreements.items()
                for one in found
            ],
            "engines": [
                {
                    ENGINE: name,
                    **{
                        key: getattr(about.get(name), key, "")
                        for key in ("version", "fingerprint", "limits")
                    },
                    **comparison_data.details(c),
                }
                for name, c in self.engines.items()
            ],
            f"{self.first.noun}s": [rows[row.choice, row.engine] for row in self.rows],
        }

    def __repr__(self) -> str:
        return f"<AcrossEngines {', '.join(self.engines)}: {self.first!r}>"
