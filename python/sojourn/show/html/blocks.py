"""Blocks of a report's page: plain data that the template converts to escaped HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Text:
    """A paragraph of text; its role determines its style."""

    text: str
    role: Literal["plain", "question", "answer", "note", "warning"] = "plain"
    kind: str = "text"


@dataclass(frozen=True)
class Cell:
    """A cell of a table."""

    text: str
    numeric: bool = False
    colour: int | None = None
    """Number of the colour that figures use for the item in this cell; None for no colour."""
    badge: str = ""
    """Style of a coloured label: `good`, `bad` or `open`; empty for none."""
    strong: bool = False
    sub: str = ""
    """Second line of the cell, in a smaller font."""
    below: Sequence[Block] = ()
    """Blocks that unfold below the cell's text."""


@dataclass(frozen=True)
class Table:
    """A table; the head of a column is a pair of name and unit."""

    heads: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""
    dim: Sequence[int] = ()
    """Numbers of the rows that are shown in a faint colour."""
    folded: bool | None = None
    """Whether the table is folded; by default if it has many rows."""
    kind: str = "table"


@dataclass(frozen=True)
class Plot:
    """An interactive figure: traces and layout for Plotly, with colours as `c0`, `c1`, ...."""

    id: str
    title: str
    traces: Sequence[Mapping[str, Any]]
    layout: Mapping[str, Any]
    alt: str
    caption: str = ""
    height: int = 380
    half: bool = False
    """Whether the figure has half the page's width."""
    kind: str = "plot"


@dataclass(frozen=True)
class Drawing:
    """A fixed figure in SVG."""

    svg: str
    title: str
    alt: str
    caption: str = ""
    kind: str = "drawing"


@dataclass(frozen=True)
class Code:
    """Preformatted text."""

    text: str
    title: str = ""
    folded: bool = False
    kind: str = "code"


@dataclass(frozen=True)
class Facts:
    """A list of names and values."""

    items: Sequence[tuple[str, str]]
    kind: str = "facts"


Block = Text | Table | Plot | Drawing | Code | Facts


@dataclass(frozen=True)
class Section:
    """A titled part of a page."""

    id: str
    title: str
    blocks: Sequence[Block]
    folded: bool = False
    """Whether the blocks are shown only after a click on the title."""


@dataclass(frozen=True)
class Page:
    """The content of a complete report."""

    title: str
    subtitle: str
    lead: Sequence[Block]
    """Blocks at the top: question, answer and warnings."""
    sections: Sequence[Section]
    made: str = ""
    version: str = ""
    badges: Sequence[tuple[str, str]] = field(default_factory=tuple)
    """Labels at the top of the page: text and kind (`good`, `bad`, `open`)."""
