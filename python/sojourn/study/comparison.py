"""Ranking of queues, or of levels of other factors, by a metric under conditions."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

from sojourn.arguments import checked
from sojourn.data import Json
from sojourn.frames import Library, frame, html_table
from sojourn.study import answer, comparison_data, quantities
from sojourn.study.compared import Compared
from sojourn.study.errors import ResultsError
from sojourn.study.question import Asked
from sojourn.study.results import Results
from sojourn.study.table import ROWS
from sojourn.study.until import of_question


@checked
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
        choices, seeds = len(self.choices), len(self.seeds)
        head = (
            f"<Comparison of {choices} {self.noun}{'s'[: choices != 1]} by {self.by}, "
            f"{seeds} seed{'s'[: seeds != 1]}>"
        )
        first = [column[: ROWS + 2] for column in answer.table_columns(self)[:3]]
        rest = [f"... and {choices - ROWS} more"] if choices > ROWS else []
        return "\n".join([head, self.answer(), quantities.text_table(first, 2), *rest])

    def _repr_html_(self) -> str:
        rows = zip(*answer.table_columns(self), strict=True)
        return f"<p>{html.escape(self.answer())}</p>{html_table(rows, 2)}"


def judged(found: Comparison) -> Comparison:
    """Returns the comparison; raises its `fault` if a condition refers to a choice that failed."""
    fault = found.fault
    if fault and any(c.of not in (None, "best", *found.choices) for c in found.conditions):
        raise fault
    return found
