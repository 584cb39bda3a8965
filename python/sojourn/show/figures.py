"""Figures for papers: charts drawn by Matplotlib; each function returns a figure."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal, TypedDict

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from scipy import stats

from sojourn.show import charts, colours, labels, style
from sojourn.show.charts import Axis, Chart, Floats, Means, Panels
from sojourn.show.data import by_level
from sojourn.show.style import save, svg
from sojourn.stats import Interval, mean_of_runs
from sojourn.study.cells import Level
from sojourn.study.errors import StudyError
from sojourn.study.stored import StoredRuns
from sojourn.study.table import Table

LINE = 44
"""Number of characters of an axis title that fit the width of a paper's column."""

__all__ = [
    "bars",
    "box",
    "cdf",
    "classes",
    "draw",
    "draw_over",
    "over",
    "save",
    "series",
    "svg",
    "tradeoff",
]


def _groups(table: Table, metric: str, by: str) -> dict[str, Floats]:
    return {str(k): v.to_numpy(dtype=np.float64) for k, v in table.groups(metric, by).items()}


def bars(table: Table, metric: str, by: str = "queue", width: float = style.COLUMN) -> Figure:
    """Returns the means of a metric with 95 % intervals, by level.

    The means are bars, or dots on a logarithmic axis if they differ by a large factor.
    """
    column = table.metric(metric)
    groups = _groups(table, metric, by)
    found = {name: mean_of_runs(values) for name, values in groups.items()}
    chart = charts.means(column, table.unit(column), found, labels.names(list(groups)))
    with style.styled():
        lines = chart.axis.ticks is not None
        figure = style.figure(width, 0.6 + 0.27 * len(groups) + 0.12 * lines)
        _draw_means(figure.add_subplot(), chart)
    return figure


class _Aside(TypedDict):
    xycoords: tuple[str, str]
    xytext: tuple[float, float]
    textcoords: str
    va: str
    fontsize: float
    annotation_clip: bool


# Numbers are in a column on the right, where no bar covers them.
_ASIDE = _Aside(
    xycoords=("axes fraction", "data"), xytext=(4, 0), textcoords="offset points", va="center",
    fontsize=7, annotation_clip=False,
)  # fmt: skip


def _draw_means(axes: Axes, chart: Means) -> None:
    wide, least = chart.axis.log, chart.axis.low or 0
    for at, row in enumerate(chart.rows):
        if not math.isfinite(row.mean):
            axes.annotate("not measured", (1, at), color="#666666", **_ASIDE)
            continue
        colour, text = style.colour(row.look), row.short
        if not wide:
            axes.barh(at, row.mean - least, left=least, height=0.62, color=colour, alpha=0.85)
        if row.n > 1:
            reach = [[row.mean - row.low], [row.high - row.mean]]
            axes.errorbar(row.mean, at, xerr=reach, color=colour if wide else "#222222",
                          linewidth=0.9, capsize=2.5)  # fmt: skip
        if wide:
            axes.plot(row.mean, at, style.marker(row.look), color=colour)
        axes.annotate(text, (1, at), **_ASIDE)
    axes.set_yticks(range(len(chart.rows)), [labels.wrap(row.label, 24) for row in chart.rows])
    axes.set_ylim(len(chart.rows) - 0.5, -0.5)
    axes.grid(visible=wide, axis="y")
    axes.tick_params(axis="y", length=0)
    _apply(axes, "x", chart.axis)


def _apply(axes: Axes, which: Literal["x", "y"], axis: Axis) -> None:
    """Gives an axis its title, scale, limits and ticks."""
    axes.set(**{f"{which}label": labels.wrap(axis.text, LINE)})
    if axis.log:
        axes.set(**{f"{which}scale": "log"})
    if (axis.low, axis.high) != (None, None):
        axes.set(**{f"{which}lim": (axis.low, axis.high)})
    if axis.ticks is not None:
        of = axes.xaxis if which == "x" else axes.yaxis
        of.set_ticks([*axis.ticks], [*axis.ticks.values()])
        of.minorticks_off()
    elif axis.log:
        style.logarithmic(axes, which)


def box(table: Table, metric: str, by: str = "queue", width: float = style.COLUMN) -> Figure:
    """Returns the spread of a metric over the seeds by level: a box, and a dot for each run.

    A level with fewer than five runs has dots only, which a note states.
    """
    column = table.metric(metric)
    groups = _groups(table, metric, by)
    names = labels.names(list(groups))
    everything = [float(x) for v in groups.values() for x in v]
    scale = labels.scale_of(column, table.unit(column), everything)
    with style.styled():
        figure = style.figure(width, 2.4)
        axes = figure.add_subplot()
        few_runs: list[str] = []
        for at, ((name, values), look) in enumerate(
            zip(groups.items(), colours.slots(groups), strict=True)
        ):
            y = values / scale.factor
            line: dict[str, str] = {"color": style.colour(look)}
            if values.size >= 5:
                axes.boxplot(y, positions=[at], widths=0.5, showfliers=False, boxprops=line,
                             medianprops=line, whiskerprops=line, capprops=line)  # fmt: skip
            else:
                few_runs.append(name)
            spread = np.linspace(-0.12, 0.12, values.size) if values.size > 1 else np.zeros(1)
            if values.size:
                axes.plot(at + spread, y, style.marker(look), alpha=0.6, markersize=2.6,
                          markeredgewidth=0, linestyle="none", color=line["color"])  # fmt: skip
        axes.set_xticks(range(len(groups)), [labels.wrap(names[n], 10) for n in groups])
        axes.set_xlim(-0.6, len(groups) - 0.4)
        axes.grid(visible=False, axis="x")
        axes.set_ylabel(labels.axis(column, scale))
        if style.wide(everything):
            style.logarithmic(axes, "y")
        if few_runs:
            few = {names[n]: groups[n].size for n in few_runs}
            if len(set(few.values())) == 1 and len(few) == len(groups):
                n = next(iter(few.values()))
                text = f"{n} run{'s' * (n != 1)} each: too few for a box, which requires 5"
            else:
                text = "too few runs for a box: " + ", ".join(f"{k} ({n})" for k, n in few.items())
            figure.supxlabel(labels.wrap(text, 60), fontsize=6.5, color="#666666")
    return figure


def draw(axes: Axes, chart: Chart, size: float | None = None) -> None:
    """Draws a chart into axes. `size` is that of the markers; by default the style's."""
    for line in chart.lines:
        axes.errorbar(
            line.x, line.y, xerr=line.x_reach, yerr=line.y_reach, color=style.colour(line.look),
            marker=style.marker(line.look) if chart.marks else "", markersize=size,
            linestyle=style.line(line.look) if chart.joined else "none",
            drawstyle="default" if chart.marks else "steps-post",
            elinewidth=0.8 if chart.joined else 0.9, label=line.label or line.name,
        )  # fmt: skip
    _apply(axes, "x", chart.x)
    _apply(axes, "y", chart.y)


def cdf(
    results: StoredRuns,
    metric: str = "sojourn",
    by: str = "queue",
    place: str | None = None,
    width: float = style.COLUMN,
    *,
    tail: bool = False,
) -> Figure:
    """Returns the distribution function of a metric by level, with the values of all seeds.

    With `tail`, the figure shows the share above each value, on a logarithmic axis.
    """
    where, groups = place or results.bottleneck, by_level(results, by)
    chart = charts.cdf(groups, labels.names(list(groups)), metric, where, tail=tail)
    if chart is None:
        raise StudyError(f"no distribution of {metric} at {where} was recorded")
    with style.styled():
        figure = style.figure(width, 2.7)
        axes = figure.add_subplot()
        draw(axes, chart)
        style.legend_above(figure, axes)
    return figure


def series(
    results: StoredRuns,
    metric: str = "last_sojourn",
    by: str = "queue",
    place: str | None = None,
    seed: int | None = None,
    width: float = style.PAGE,
) -> Figure:
    """Returns the time series of a metric in one run of each level, stacked on equal axes.

    `seed` None selects the first run of each level.
    """
    where = place or results.bottleneck or ""
    chosen = {
        name: run
        for name, runs in by_level(results, by).items()
        if (run := next((r for r in runs if seed is None or r.seed == seed), None)) is not None
    }
    last = [run.seed for run in chosen.values()][-1:]
    chart = charts.series(chosen, labels.names(list(chosen)), metric, where, "")
    if chart is None:
        raise StudyError(f"no time series of {metric} at {where} was recorded")
    return _stacked(chart, f"Time (s), seed {last[0]}", width)


def classes(
    results: StoredRuns, level: str = "", by: str = "queue", width: float = style.PAGE
) -> Figure:
    """Returns the lengths over time of the classes of the bottleneck's queue.

    The run is the first one of `level`.
    """
    run = next(iter(by_level(results, by).get(level or results.name, [])), None)
    place = results.bottleneck or ""
    chart = None if run is None else charts.classes(run, place, "", "")
    if run is None or chart is None:
        raise StudyError(f"no time series of classes at {place} was recorded")
    return _stacked(chart, f"Time (s), seed {run.seed}", width)


def _stacked(chart: Panels, time: str, width: float) -> Figure:
    with style.styled():
        figure = style.figure(width, 0.6 + 0.85 * len(chart.lines))
        panels = figure.subplots(len(chart.lines), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        for line, axes in zip(chart.lines, panels, strict=True):
            axes.plot(line.x, line.y, color=style.colour(line.look), linewidth=0.7)
            axes.set_title(line.name, pad=4)
            axes.margins(x=0.01)
        panels[0].set_ylim(chart.y.low, chart.y.high)
        if chart.y.log:
            for axes in panels:
                style.logarithmic(axes, "y")
        panels[-1].set_xlabel(time)
        figure.supylabel(chart.y.text, fontsize=8)
    return figure


def tradeoff(
    table: Table,
    delay: str = "sojourn_mean",
    goodput: str = "goodput",
    by: str = "queue",
    width: float = style.COLUMN,
) -> Figure:
    """Returns goodput over delay by level: mean, 95 % intervals and, on linear axes, an ellipse."""
    dx, gy = table.metric(delay), table.metric(goodput)
    xs, ys = table.groups(delay, by), table.groups(goodput, by)
    pairs = {
        str(level): np.array(
            [(x[seed], ys[level][seed]) for seed in x.index if seed in ys[level].index]
        ).reshape(-1, 2)
        for level, x in xs.items()
    }
    both = [
        (
            metric,
            table.unit(metric),
            {name: mean_of_runs(pair[:, at]) for name, pair in pairs.items()},
        )
        for at, metric in enumerate((dx, gy))
    ]
    chart = charts.tradeoff(both[0], both[1], labels.names(list(pairs)), pairs)
    with style.styled():
        figure = style.figure(width, 3.0)
        axes = figure.add_subplot()
        for line in chart.lines:
            colour = style.colour(line.look)
            # A logarithmic axis would distort the ellipse.
            if line.spread is not None and len(line.spread) > 2 and not chart.x.log:
                breadth, height, angle = ellipse(line.spread)
                axes.add_patch(
                    Ellipse((line.x[0], line.y[0]), breadth, height, angle=angle, alpha=0.25,
                            facecolor=colour, edgecolor=colour, linewidth=0.8)
                )  # fmt: skip
        axes.margins(0.12)
        draw(axes, chart)
        style.legend_above(figure, axes)
        axes.set_title("better: up and to the left", loc="right", fontsize=6.5,
                       color="#666666", fontweight="normal", pad=3)  # fmt: skip
    return figure


def ellipse(points: Floats, level: float = 0.95) -> tuple[float, float, float]:
    """Returns width, height and angle in degrees of the confidence ellipse of a mean of pairs.

    The ellipse contains the true mean with the probability `level` (Hotelling's T squared).
    """
    n = len(points)
    values, vectors = np.linalg.eigh(np.cov(points, rowvar=False))
    reach = 2 * (n - 1) / (n * (n - 2)) * float(stats.f.ppf(level, 2, n - 2))
    width, height = 2 * np.sqrt(np.maximum(values[::-1], 0) * reach)
    angle = math.degrees(math.atan2(vectors[1, 1], vectors[0, 1]))
    return float(width), float(height), angle


def over(
    table: Table,
    metric: str,
    over: str,
    by: str,
    width: float = style.COLUMN,
    title: str = "",
) -> Figure:
    """Returns a metric over a factor with 95 % intervals, a line for each level of `by`."""
    with style.styled():
        figure = style.figure(width, 2.5)
        axes = figure.add_subplot()
        draw_over(axes, table, metric, over, by)
        axes.set_title(title)
        style.legend_above(figure, axes)
    return figure


def draw_over(axes: Axes, table: Table, metric: str, over: str, by: str) -> None:
    """Draws the content of `over` into existing axes."""
    column = table.metric(metric)
    names = labels.names([str(level) for level in table.levels(by)])
    lines: dict[str, list[tuple[Level, Interval]]] = {name: [] for name in names.values()}
    for (group, level), i in table.intervals(metric, [by, over]).items():
        lines[names[str(group)]].append((level, i))
    chart = charts.over(column, table.unit(column), over, lines)
    draw(axes, replace(chart, y=replace(chart.y, low=None)))
    if chart.y.low is not None:  # an interval may reach below zero although no mean does
        axes.set_ylim(bottom=max(chart.y.low, axes.get_ylim()[0]))
    axes.set_ylabel(labels.wrap(chart.y.text, 28))
