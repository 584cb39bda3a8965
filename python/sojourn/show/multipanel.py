"""Figures of several panels, in the layout of the repeated papers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.show import charts, figures, labels, style
from sojourn.study.cells import Level
from sojourn.study.errors import StudyError
from sojourn.study.table import Table


@dataclass(frozen=True)
class Over:
    """Panel: a metric over a factor with 95 % intervals, a line for each level of `by`."""

    metric: str
    over: str
    by: str
    title: str = ""
    label: str = ""
    """Title of the vertical axis; empty for the metric's name."""
    zero: bool = True
    """Whether the vertical axis begins at zero."""


@dataclass(frozen=True)
class Losses:
    """Panel: probability of n losses in a row for each level of `by`, on a logarithmic axis."""

    by: str
    where: Mapping[str, Level] = field(default_factory=dict)
    """Levels of the other factors, such as `{"flows": 128}`."""
    title: str = ""
    metric: str = "consecutive_loss"
    most: int = 40


Panel = Over | Losses


def panels(
    table: Table, contents: Sequence[Panel], columns: int = 2, width: float = style.PAGE
) -> Figure:
    """Returns a figure with a lettered panel for each content, and a common legend above."""
    if not contents:
        raise StudyError("a figure needs at least one panel")
    rows = math.ceil(len(contents) / columns)
    with style.styled():
        figure = style.figure(width, 0.3 + 2.25 * rows)
        grid = figure.subplots(rows, columns, squeeze=False).flatten()
        for letter, content, axes in zip("abcdefghijklmnop", contents, grid, strict=False):
            _draw(axes, table, content)
            axes.set_title(f"({letter}) {content.title or labels.title(content.metric)}")
        for axes in grid[len(contents) :]:
            axes.set_visible(False)
        style.legend_above(figure, grid[0], columns=6)
    return figure


def _draw(axes: Axes, table: Table, content: Panel) -> None:
    if isinstance(content, Losses):
        _losses(axes, table, content)
        return
    figures.draw_over(axes, table, content.metric, content.over, content.by)
    if content.zero:
        # Matplotlib's margin is a share of the data's range, so it is too small at the top if the
        # values are similar.
        top = axes.dataLim.y1
        axes.set_ylim(0, max(axes.get_ylim()[1], 1.06 * top) if top > 0 else None)
    if content.label:
        axes.set_ylabel(content.label)


def _losses(axes: Axes, table: Table, content: Losses) -> None:
    results = table.results
    if results is None:
        raise StudyError(
            "the figure of losses requires a table with a results folder, and this table has none"
        )
    levels = table.levels(content.by)
    runs = {str(x): results.runs(**content.where, **{content.by: x}) for x in levels}
    names = labels.names(list(runs))
    figures.draw(
        axes, charts.losses(runs, names, content.metric, results.bottleneck, content.most), 3
    )
    if not axes.lines:
        axes.text(0.5, 0.5, "no losses", transform=axes.transAxes, ha="center", color="#666666")
        axes.set_yscale("linear")
        axes.set_yticks([])
