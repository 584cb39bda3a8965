"""Results on standard output and messages on standard error."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from inspect import Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeGuard

import typer

from sojourn import stopping
from sojourn.cli import groups, streams
from sojourn.settings import Option, Setting

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

shown_bars: list[Progress] = []
"""Progress bars on the terminal, innermost last."""


Quiet = Annotated[
    bool,
    Option(flag="--quiet -q", help="Print only results and errors, without progress and notes."),
]
Format = Annotated[
    Literal["json", "csv", "md"] | None,
    Option(
        "FORMAT",
        flag="--output",
        help="Print results as json, csv or md (a Markdown table). --json is short for --output "
        "json.",
    ),
]


@dataclass
class _Wanted:
    """Settings for the output of the current command."""

    quiet: bool = False
    form: str = "text"
    printed: bool = False
    """Whether a JSON document was printed; standard output has at most one."""


_wanted = _Wanted()


def with_shared(signature: Signature) -> Signature:
    """Returns the signature of a command with the common options."""
    parameters = list(signature.parameters.values())
    parameters += groups.parameters(Setting("quiet", Quiet, None))
    if "as_json" in signature.parameters:
        parameters += groups.parameters(Setting("output_format", Format, None))
    return signature.replace(parameters=parameters)


def take_shared(values: dict[str, object]) -> None:
    """Removes the common options from `values` and applies them."""
    _wanted.printed = False
    _wanted.quiet = bool(values.pop("quiet", False))
    form = values.pop("output_format", None)
    if form not in (None, "json") and values.get("as_json"):
        raise typer.BadParameter("--json is short for --output json: give only one of them")
    if form is not None:
        values["as_json"] = True
    _wanted.form = str(form) if form else ("json" if values.get("as_json") else "text")


def is_quiet() -> bool:
    """Returns whether progress and notes are suppressed."""
    return _wanted.quiet


def is_data() -> bool:
    """Returns whether results are printed as data instead of text."""
    return _wanted.form != "text"


def form() -> str:
    """Returns the format of results: text, json, csv or md."""
    return _wanted.form


def has_document() -> bool:
    """Returns whether a JSON document was printed."""
    return _wanted.printed


def print_data(value: object, rows: object = None) -> None:
    """Prints `value` on standard output: as JSON, or its rows as CSV or as a Markdown table.

    `rows` is the table for CSV and Markdown; None means that `_rows` selects it from `value`.
    """
    if _wanted.form == "csv":
        titles, *lines = _lines(rows or value)
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(titles)
        writer.writerows(lines)
        return
    if _wanted.form == "md":
        titles, *lines = _lines(rows or value)
        for line in (titles, ["---"] * len(titles), *lines):
            cells = (cell.replace("|", "\\|").replace("\n", " ") for cell in line)
            typer.echo(f"| {' | '.join(cells)} |")
        return
    _wanted.printed = True
    ascii_only = not streams.unicode_output()
    typer.echo(json.dumps(value, indent=2, ensure_ascii=ascii_only, allow_nan=False))


def _lines(value: object) -> list[list[str]]:
    """Returns the table of `value` as texts; the first row has the titles."""
    rows = [_flat(row) for row in _rows(value)]
    titles = list(dict.fromkeys(title for row in rows for title in row))
    return [titles, *([_cell(row.get(title)) for title in titles] for row in rows)]


def _rows(value: object) -> list[dict[str, object]]:
    """Returns the rows of a result.

    A list of dicts has a row for each dict; if every dict has one nested list of dicts, a row for
    each nested dict, joined with its outer dict. A dict with several lists of dicts and no other
    values has the rows of all lists, otherwise those of its first list. A dict without such lists
    has a row for each value.
    """

    def is_table(part: object) -> TypeGuard[list[dict[str, object]]]:
        return isinstance(part, list) and bool(part) and all(isinstance(r, dict) for r in part)

    if is_table(value):
        inner = [key for key in value[0] if is_table(value[0][key])]
        nested = [part for row in value if is_table(part := row.get(inner[0]))] if inner else []
        if len(inner) == 1 and len(nested) == len(value):
            rest = [{k: v for k, v in row.items() if k != inner[0]} for row in value]
            return [o | r for o, rows in zip(rest, nested, strict=True) for r in rows]
        return list(value)
    if not isinstance(value, dict):
        return [{"value": value}]
    tables = {key: part for key, part in value.items() if is_table(part)}
    if len(tables) > 1 and len(tables) == len(value):
        return [{"kind": key} | row for key, part in tables.items() for row in part]
    if tables:
        return list(next(iter(tables.values())))
    return [{"name": name, "value": part} for name, part in _flat(value).items()]


def _flat(row: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Returns a row without nested dicts: their keys are joined by dots."""
    found: dict[str, object] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return "; ".join(map(_cell, value))
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


@contextmanager
def speaking() -> Iterator[None]:
    """Marks a part of a command that shows its own progress, or waits for an answer."""
    life.speakers += 1
    try:
        yield
    finally:
        life.speakers -= 1
        life.seen = time.monotonic()


SILENCE = 5.0
"""Longest time in seconds without a sign of life of a command."""


class Life:
    """Shows that a command works whenever it has shown nothing for `SILENCE`."""

    def __init__(self) -> None:
        self.speakers = 0
        """Number of parts of the command that show their own progress."""
        self.seen = self._begin = time.monotonic()
        """Time of the last message."""
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begins to watch the command."""
        if self._thread is not None:
            return
        self.seen = time.monotonic()
        self._over.clear()
        self._thread = threading.Thread(target=self._watch, name="life", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the watch, before the end of the command or before the process divides."""
        if self._thread is not None:
            self._over.set()
            self._thread.join()
            self._thread = None

    def _watch(self) -> None:
        while not self._over.wait(max(self.seen + SILENCE - 0.2 - time.monotonic(), 0.1)):
            if self.speakers or stopping.services:
                self.seen = time.monotonic()
            elif time.monotonic() - self.seen >= SILENCE - 0.2:
                with suppress(OSError, ValueError):  # standard error may be closed
                    note(f"working for {time.monotonic() - self._begin:.0f} s")


life = Life()
"""The life of this process's command."""


def note(text: str) -> None:
    """Prints a message on standard error, above any progress bar; not with `--quiet`."""
    if not _wanted.quiet:
        complain(text)


def complain(text: str) -> None:
    """Prints a message on standard error, also with `--quiet`."""
    life.seen = time.monotonic()
    if shown_bars:
        shown = shown_bars[-1].console
        shown.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)
    else:
        typer.echo(text, err=True)


def echo_written(written: Sequence[Path]) -> None:
    """Prints the path of the page, and number and folder of its figures."""
    for path in written:
        if path.suffix == ".html":
            typer.echo(f"page: {path}")
    figures = [path for path in written if path.suffix != ".html"]
    for parent in dict.fromkeys(path.parent for path in figures):
        here = [path for path in figures if path.parent == parent]
        names, kinds = {p.stem for p in here}, dict.fromkeys(p.suffix.lstrip(".") for p in here)
        typer.echo(f"figures: {len(names)} in {parent}, each as {', '.join(kinds)}")


def console() -> Console:
    """Returns the console for tables, as wide as the terminal or `COLUMNS`, else 160 columns."""
    from rich.console import Console as _Console

    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return _Console() if known else _Console(width=160)


def width() -> int:
    """Returns the columns for notes in comments: those of the terminal, at most 98."""
    return min(shutil.get_terminal_size((98, 24)).columns, 98)


def table(
    rows: Sequence[Mapping[str, object]], columns: list[str], title: str | None = None
) -> None:
    """Prints rows as a table that fits the terminal."""
    from sojourn.show import tables

    screen = console()
    screen.print(tables.fitting(rows, columns, title, screen))
