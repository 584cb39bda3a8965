"""Standard output and messages for people."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sojourn.cli import streams

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

shown_bars: list[Progress] = []
"""The progress bars on the terminal, the innermost last."""


def print_json(value: Any) -> None:
    """Prints `value` on standard output."""
    ascii_only = not streams.unicode_output()
    typer.echo(json.dumps(value, indent=2, ensure_ascii=ascii_only, allow_nan=False))


def note(text: str) -> None:
    """A message for people, on standard error; above the bar, if one is shown."""
    if shown_bars:
        shown = shown_bars[-1].console
        shown.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)
    else:
        typer.echo(text, err=True)


def echo_written(written: Sequence[Path]) -> None:
    """Says where a page and its figures are."""
    for path in written:
        if path.suffix == ".html":
            typer.echo(f"page: {path}")
    figures = [path for path in written if path.suffix != ".html"]
    for parent in dict.fromkeys(path.parent for path in figures):
        here = [path for path in figures if path.parent == parent]
        names, kinds = {p.stem for p in here}, dict.fromkeys(p.suffix.lstrip(".") for p in here)
        typer.echo(f"figures: {len(names)} in {parent}, each as {', '.join(kinds)}")


def console() -> Console:
    """Where tables are printed: as wide as the terminal, and wide enough in a file."""
    from rich.console import Console as _Console

    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return _Console() if known else _Console(width=160)


def table(rows: Sequence[Mapping[str, Any]], columns: list[str], title: str | None = None) -> None:
    """Prints rows as a table that fits the terminal."""
    from sojourn.show import tables

    screen = console()
    screen.print(tables.fitting(rows, columns, title, screen))
