"""`sojourn compare`: which queue serves a scenario best."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sojourn.cli import common

QUEUES = (
    "pfifo limit 1000p",
    "red limit 1000kb avpkt 1000",
    "codel",
    "fq_codel",
    "pie",
    "cobalt",
)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(compare)


@common.command
def compare(
    file: common.ScenarioFile,
    queues: Annotated[list[str] | None, typer.Option("--queues")] = None,
) -> None:
    """Rank queues."""
