"""The common style of all figures: plain, and readable by colour-blind readers and in greyscale."""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, TypeAlias

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from sojourn.show.colours import COLOURS
from sojourn.study.disk import replace_file

LineStyle: TypeAlias = str | tuple[int, tuple[int, ...]]
"""A line style of Matplotlib: a name, or offset and lengths of dashes."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES: tuple[LineStyle, ...] = (
    "-", "--", "-.", ":", (0, (5, 1, 1, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (7, 2)), (0, (2, 1)),
)  # fmt: skip

COLUMN = 3.5
"""Width in inches of one column of a paper."""
PAGE = 7.16
"""Width in inches of a paper's page with two columns."""

_STYLE = Path(__file__).with_name("figures.mplstyle")

FORMATS = ("png", "svg", "pdf")


@contextlib.contextmanager
def styled() -> Iterator[None]:
    """Sets this style for the duration of a `with` block; the user's own settings are restored."""
    with mpl.rc_context(fname=_STYLE):
        yield


def colour(index: int) -> str:
    """Returns the colour of a style number (see `slots`)."""
    return COLOURS[index % len(COLOURS)]


def marker(index: int) -> str:
    """Returns the marker of a style number; style numbers of one colour have different markers."""
    return MARKERS[(index + index // len(COLOURS)) % len(MARKERS)]


def line(index: int) -> LineStyle:
    """Returns the line style of a style number; those of one colour have different line styles."""
    return LINES[(index + 3 * (index // len(COLOURS))) % len(LINES)]


WIDE = 20.0
"""Ratio of the largest to the smallest value above which an axis is logarithmic."""


def wide(values: Iterable[float]) -> bool:
    """Returns whether all values are positive and differ by more than the factor `WIDE`."""
    there = [v for v in values if math.isfinite(v)]
    return len(there) > 1 and min(there) > 0 and max(there) / min(there) > WIDE


def logarithmic(axes: Axes, which: Literal["x", "y"]) -> None:
    """Makes an axis logarithmic; an axis of few decades also has ticks between powers of ten."""
    if which == "x":
        axes.set_xscale("log")
    else:
        axes.set_yscale("log")
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axis.get_view_interval()
    across = high / low if low > 0 else math.inf
    if across < (100 if which == "x" else 1000):  # an axis of few decades has space for more ticks
        steps: tuple[float, ...] = (1.0, 2.0, 5.0)
    else:
        steps = (1.0, 3.0) if across < 1000 else (1.0,)
    axis.set_major_locator(LogLocator(subs=steps, numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axis.set_minor_formatter(NullFormatter())


class Shown(Figure):
    """A figure that notebooks show, also without `%matplotlib inline`."""

    def _repr_png_(self) -> bytes:
        written = io.BytesIO()
        self.savefig(written, format="png", dpi=2 * self.dpi)
        return written.getvalue()


def figure(width: float = COLUMN, height: float = 2.5) -> Figure:
    """Returns an empty figure without a window."""
    return Shown(figsize=(width, height), layout="constrained")


def legend_above(figure: Figure, axes: Axes, columns: int = 4) -> None:
    """Adds a common legend above the axes, where it covers no data."""
    handles, names = axes.get_legend_handles_labels()
    if names:
        widest = max(map(len, names))
        # An inch has space for about 16 characters; the sample line before a name takes 7.
        fit = max(1, int(figure.get_size_inches()[0] * 16 / (widest + 7)))
        ncols = max(1, min(columns, fit, len(names)))
        figure.legend(handles, names, loc="outside upper center", ncols=ncols, handlelength=2.4)


def save(figure: Figure, path: str | Path, formats: tuple[str, ...] = ()) -> list[Path]:
    """Writes the figure atomically; returns the written files.

    A path without a suffix is written in each of `formats`, by default PNG, SVG and PDF.
    """
    base = Path(path)
    base.parent.mkdir(parents=True, exist_ok=True)
    suffix = base.suffix.removeprefix(".").lower()
    wanted = (suffix,) if suffix in FORMATS and not formats else formats or FORMATS
    stem = base.with_suffix("") if suffix in FORMATS else base
    written = []
    for kind in wanted:
        if kind not in FORMATS:
            raise ValueError(f"figures can be written as {', '.join(FORMATS)}; found {kind!r}")
        target = stem.with_name(f"{stem.name}.{kind}")
        # Without a date, figures of equal data are equal files.
        metadata = {"png": None, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
        drawn = io.BytesIO()
        with styled():
            figure.savefig(drawn, format=kind, metadata=metadata)
        replace_file(target, drawn.getvalue())
        written.append(target)
    return written


def svg(figure: Figure) -> str:
    """Returns the figure as SVG text, without the XML head."""
    out = io.StringIO()
    with styled():
        figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]
