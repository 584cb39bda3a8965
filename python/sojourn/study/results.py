"""Functions that read a folder of results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sojourn.arguments import checked
from sojourn.scenario.engine import Engine, Record
from sojourn.study.errors import ResultsError
from sojourn.study.manifest import Manifest
from sojourn.study.rows import PlainRows
from sojourn.study.stored import StoredRuns
from sojourn.study.table import Table


@checked
class Results(StoredRuns):
    """The folder of a study's results."""

    def table(self, part: Manifest | None = None, metrics: Sequence[str] | None = None) -> Table:
        """Returns the table of all finished runs, or of the finished runs that `part` lists.

        `metrics` are the metrics to read; by default, all. Raises `ResultsError` if no run is
        finished.
        """
        rows = self.storage.summary(part or self.manifest, metrics)
        if rows is None:
            raise ResultsError(
                self.folder,
                "no run of this study is finished yet: repeat the command that started it",
            )
        factors = (part or self.manifest).columns
        if isinstance(rows, PlainRows):  # the data frame is made only if it is requested
            return Table(rows, factors, rows.units, self.bottleneck, self)
        from sojourn.study import columns

        units = columns.units(rows)
        return Table(columns.frame(rows), factors, units, self.bottleneck, self)


def results_of(table: Table) -> Results | None:
    """Returns the folder of results from which a table was read; `None` without a folder."""
    return table.results if isinstance(table.results, Results) else None


def replay(
    folder: str | Path,
    key: str | None = None,
    engine: Engine | str | None = None,
    *,
    any_engine: bool = False,
) -> Record:
    """Repeats a run of a folder of results; raises `StudyError` if its trace hash differs.

    `key` may be omitted if the folder has only one run. `any_engine` accepts any engine, as in
    `StoredRun.replay`.
    """
    results = Results.open(folder)
    runs = [run for run in results.runs() if key in (None, run.key)]
    if len(runs) != 1:
        what = f"no run {key}" if key else f"{len(runs)} runs; name one by its key"
        raise ResultsError(results.folder, f"has {what}")
    return runs[0].replay(engine, any_engine=any_engine)
