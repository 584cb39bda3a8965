"""`sojourn report`: figures and a page from a results folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sojourn import show
from sojourn.cli import bars, exits, options, output
from sojourn.settings import Option


def register(app: typer.Typer) -> None:
    """Adds `sojourn report` to `app`."""
    app.command()(report)


@exits.command
def report(
    folder: Annotated[
        Path,
        Option(
            "FOLDER",
            positional=True,
            help="Folder of results: the DIR of `--out` in an earlier run, compare or study.",
            readable=False,
        ),
    ],
    by: Annotated[
        str | None,
        Option(
            "METRIC",
            help="Deciding metric of a comparison, or first metric of a study's report. By "
            "default the metric stored with the results.",
        ),
    ] = None,
    subject_to: Annotated[
        str | None,
        Option(
            "EXPR", help="Conditions that a choice must meet. By default those of the comparison."
        ),
    ] = None,
    smallest: options.Smallest = None,
    as_json: options.AsJson = False,
) -> None:
    """Make figures and an HTML page from a folder of results.

    The figures and the page are written into the same folder.
    """
    if not folder.is_dir():
        exits.fail(
            f"{folder}: no such folder; give the DIR of `--out` in an earlier run, "
            "compare or study",
            as_json=as_json,
        )
    given = {"by": by, "subject_to": subject_to, "smallest": smallest}
    question = {key: value for key, value in given.items() if value is not None}
    with bars.counting("drawing", "figures") as tell:
        written = show.report(folder, progress=tell, question=question)
    if as_json:
        output.print_data({"written": [str(path) for path in written]})
        return
    output.echo_written(written)
