"""`sojourn report`: figures and a page from a folder of results."""

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
            metavar="FOLDER", help="What --out of run, compare or study wrote.", readable=False
        ),
    ],
    as_json: options.AsJson = False,
) -> None:
    """Get figures and one HTML page from a folder of results.

    They are written into that folder.
    """
    if not folder.is_dir():
        exits.fail(
            f"{folder}: there is no such folder; results are where --out said", as_json=as_json
        )
    with bars.counting("drawing", "figures") as tell:
        written = show.report(folder, progress=tell)
    if as_json:
        output.print_json({"written": [str(path) for path in written]})
        return
    output.echo_written(written)
