"""Ranking of queues, or of levels of other factors, by a metric under conditions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sojourn.data import Json
from sojourn.frames import Library, frame
from sojourn.study import answer, comparison_data
from sojourn.study.compared import Compared
from sojourn.study.errors import ResultsError
from sojourn.study.question import Asked
from sojourn.study.results import Results
from sojourn.study.until import of_question


class Comparison(Compared):
    """A comparison of queues, or of levels of any factors, by one metric under conditions.

    `asked` is the question, and `rule` the precision that ended the runs.
    """

    @classmethod
    def open(cls, folder: str | Path) -> Comparison:
        """Returns the comparison in a results folder; raises `ResultsError` without one."""
        results = Results.open(folder)
        if results.kind != "comparison":
            raise ResultsError(results.folder, f"holds a {results.kind}, not a comparison")
        if len(results.manifest.engines) > 1:
            raise ResultsError(
                results.folder,
                "holds a comparison with several engines: open it with AcrossEngines",
            )
        question = results.manifest.question
        return cls(
            results.table(), Asked.of(question), rule=of_question(question), plans=results.plan_of
        )

    def answer(self) -> str:
        """Returns the answer in sentences."""
        return answer.answer(self)

    def summary(self) -> str:
        """Returns the answer and the ranked table as plain text."""
        return f"{self.answer()}\n\n{answer.plain_table(self)}"

    def to_dict(self) -> dict[str, Json]:
        """Returns the comparison as data for JSON."""
        return comparison_data.as_dict(self)

    def to_frame(self, library: Library = "pandas") -> Any:
        """Returns a row for each choice, the best first, as a table of pandas, polars or Arrow.

        The column of a metric's mean has the metric's name; the limits of its interval are
        `<metric>.low` and `<metric>.high`.
        """
        return frame(comparison_data.columns(self), library)

    def to_json(self) -> str:
        """Returns the comparison as JSON."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)

    def __repr__(self) -> str:
        return (
            f"<Comparison of {len(self.choices)} {self.noun}s by {self.by}, "
            f"{len(self.seeds)} seeds>"
        )


def judged(found: Comparison) -> Comparison:
    """Returns the comparison; raises its `fault` if a condition refers to a choice that failed."""
    fault = found.fault
    if fault and any(c.of not in (None, "best", *found.choices) for c in found.conditions):
        raise fault
    return found
