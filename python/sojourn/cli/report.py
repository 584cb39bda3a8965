"""`sojourn report`: figures and a page from a results folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from sojourn import show
from sojourn.cli import bars, exits, options, output
from sojourn.settings import Option, settings


@settings
class Reported:
    """A folder of results, and the question that its report answers."""

    folder: Annotated[Path, Option("FOLDER", positional=True, readable=False)]
    """Folder of results: the DIR of `--out` in an earlier run, compare or study."""
    by: Annotated[str | None, Option("METRIC")] = None
    """Deciding metric of a comparison, or first metric of a study's report. By default the metric
    stored with the results.
    """
    subject_to: Annotated[str | None, Option("EXPR")] = None
    """Conditions that a choice must meet. By default those of the comparison."""
    smallest: options.Smallest = None


@exits.command
def report(asked: Reported, as_json: options.AsJson = False) -> None:
    """Make figures and an HTML page from a folder of results.

    The figures and the page are written into the same folder.
    """
    from sojourn.study import Results

    folder = asked.folder
    if not folder.is_dir():
        exits.fail(
            f"{folder}: no such folder; give the DIR of `--out` in an earlier run, compare or study"
        )
    Results.open(folder)  # raises an error before the progress bar begins
    given = {"by": asked.by, "subject_to": asked.subject_to, "smallest": asked.smallest}
    question = {key: value for key, value in given.items() if value is not None}
    with bars.counting("drawing", "figures") as tell:
        written = show.report(folder, progress=tell, question=question)
    if as_json:
        output.print_data({"written": [str(path) for path in written]})
        return
    output.echo_written(written)
