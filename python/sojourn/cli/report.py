"""`sojourn report`: figures and a page from a results folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sojourn import show
from sojourn.cli import bars, exits, options, output


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(report)


@exits.command
def report(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="Folder of results: the DIR of `--out` in an earlier run, compare or study.",
            readable=False,
        ),
    ],
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="METRIC",
            help="The deciding metric, or the first in a study's report. By default that of the "
            "results.",
        ),
    ] = None,
    subject_to: Annotated[
        str | None,
        typer.Option(
            "--subject-to", metavar="EXPR", help="Conditions, instead of the comparison's own."
        ),
    ] = None,
    smallest: options.Smallest = None,
    as_json: options.AsJson = False,
) -> None:
    """Make figures and an HTML page from a folder of results.

    They are written into that folder.
    """
    if not folder.is_dir():
        exits.fail(f"{folder}: no such folder; use the folder that --out named", as_json=as_json)
    given = {"by": by, "subject_to": subject_to, "smallest": smallest}
    question = {key: value for key, value in given.items() if value is not None}
    with bars.counting("drawing", "figures") as tell:
        written = show.report(folder, progress=tell, question=question)
    if as_json:
        output.print_data({"written": [str(path) for path in written]})
        return
    output.echo_written(written)
