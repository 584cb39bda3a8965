"""The blocks of a page. Blocks contain plain data; the template converts them to escaped HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    role: Literal["plain", "question", "answer", "note", "warning"] = "plain"
    kind: str = "text"


@dataclass(frozen=True)
class Cell:
    """A table's cell."""

    text: str
    numeric: bool = False
    colour: int | None = None
    """Number of the colour of the same item in the figures."""
    badge: str = ""
    """`good`, `bad` or `open`."""
    strong: bool = False
    sub: str = ""
    """Second line, in a smaller font."""


@dataclass(frozen=True)
class Table:
    """A table; a column's head is a name and a unit."""

    heads: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""
    dim: Sequence[int] = ()
    """Rows displayed in a faint colour."""
    kind: str = "table"


@dataclass(frozen=True)
class Plot:
    """An interactive figure: traces and layout for Plotly, colours as `c0`, `c1`, ..."""

    id: str
    title: str
    traces: Sequence[Mapping[str, Any]]
    layout: Mapping[str, Any]
    alt: str
    caption: str = ""
    height: int = 380
    half: bool = False
    """Whether two fit next to each other."""
    kind: str = "plot"


@dataclass(frozen=True)
class Drawing:
    """A fixed figure, as SVG."""

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
    """Names and values."""

    items: Sequence[tuple[str, str]]
    kind: str = "facts"


Block = Text | Table | Plot | Drawing | Code | Facts


@dataclass(frozen=True)
class Section:
    """A titled part of a page."""

    id: str
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Page:
    """A whole report."""

    title: str
    subtitle: str
    lead: Sequence[Block]
    """Question and answer, at the top."""
    sections: Sequence[Section]
    made: str = ""
    version: str = ""
    badges: Sequence[tuple[str, str]] = field(default_factory=tuple)
    """Counts at the top: text and kind (`good`, `bad`, `open`)."""
