"""The common style of tables in the terminal: a line below the heads, numbers aligned right."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

_NUMBER = re.compile(r"[+-]?\d")
NOTHING = ("", "-", "\N{EN DASH}")
"""Texts that mean a missing number."""


def table(title: str | None = None) -> Table:
    """Returns an empty table in the common style."""
    return Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold"
    )


def of_rows(
    rows: Sequence[Mapping[str, object]], columns: Sequence[str], title: str | None = None
) -> Table:
    """Returns the columns of rows as a table; columns of numbers are aligned right."""
    view = table(title)
    for column in columns:
        numeric = numbers([str(row.get(column, "")) for row in rows])
        view.add_column(column, overflow="fold", justify="right" if numeric else "left")
    for row in rows:
        view.add_row(*(Text(str(row.get(column, ""))) for column in columns))
    return view


READABLE = 24
"""Smallest width in characters of a table's last column if it contains sentences."""


def fitting(
    rows: Sequence[Mapping[str, object]],
    columns: Sequence[str],
    title: str | None,
    console: Console,
) -> RenderableType:
    """Returns rows as a table, or as one block for each row if the console is too narrow."""
    view = of_rows(rows, columns, title)
    if max((len(str(row.get(columns[-1], ""))) for row in rows), default=0) > READABLE:
        view.columns[-1].min_width = READABLE
    for name, column in zip(columns, view.columns, strict=True):
        # A column of single words is not wrapped, so other columns are narrowed first.
        column.no_wrap = all(" " not in str(row.get(name, "")) for row in (*rows, {name: name}))
    measured = Measurement.get(console, console.options.update(width=10_000), view)
    return view if measured.minimum <= console.width else _blocks(rows, columns, title)


def _blocks(
    rows: Sequence[Mapping[str, object]], columns: Sequence[str], title: str | None
) -> RenderableType:
    """Returns a block for each row: the first cell, and below it the others with their heads."""
    parts: list[RenderableType] = [] if title is None else [Text(f"{title}\n", style="italic")]
    for row in rows:
        parts.append(Text(str(row.get(columns[0], "")), style="bold"))
        for column in columns[1:]:
            text = str(row.get(column, ""))
            if text:
                parts.append(Padding(Text(f"{column}: {text}"), (0, 0, 0, 2), expand=False))
    return Group(*parts)


def numbers(texts: Sequence[str]) -> bool:
    """Returns whether all non-empty texts are numbers, with or without units."""
    there = [text for text in texts if text not in NOTHING]
    return bool(there) and all(_NUMBER.match(text) for text in there)
