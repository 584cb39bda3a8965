"""Figures for papers, drawn by matplotlib: each function returns a figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from scipy import stats

from sojourn.metrics import base
from sojourn.show import colours, labels, style
from sojourn.show.data import MOST_CLASSES, by_level, distribution, series_unit
from sojourn.show.data import classes as classes_of
from sojourn.show.data import series as series_of
from sojourn.show.style import save, svg
from sojourn.stats import mean_interval
from sojourn.study import quantities
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
    "draw_over",
    "over",
    "save",
    "series",
    "svg",
    "tradeoff",
]


def _groups(table: Table, metric: str, by: str) -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
    return {str(k): v.to_numpy(dtype=np.float64) for k, v in table.groups(metric, by).items()}


def bars(table: Table, metric: str, by: str = "queue", width: float = style.COLUMN) -> Figure:
    """Returns the means of a metric with 95 % intervals, by level.

    The means are bars, or dots on a logarithmic axis if they differ by a large factor.
    """
    column = table.metric(metric)
    groups = _groups(table, metric, by)
    names = labels.names(list(groups))
    found = {k: mean_interval(v) for k, v in groups.items() if v.size}
    means = [i.estimate for i in found.values()]
    scale = labels.scale_of(column, table.unit(column), means)
    places = quantities.decimals_of_each(
        [scale.apply(m) for m in means], [scale.apply(i.half_width) for i in found.values()]
    )
    digits = dict(zip(found, places, strict=True))
    wide = style.wide(means)
    opinions = base(column) == "mos"
    least = min(labels.OPINIONS) if opinions else 0
    with style.styled():
        figure = style.figure(width, 0.6 + 0.27 * len(groups) + 0.12 * opinions)
        axes = figure.add_subplot()
        # Numbers are in a column on the right, where no bar covers them.
        aside: dict[str, Any] = {
            "xycoords": ("axes fraction", "data"),
            "xytext": (4, 0),
            "textcoords": "offset points",
            "va": "center",
            "fontsize": 7,
            "annotation_clip": False,
        }
        looks = colours.slots(groups)
        for row, name in enumerate(groups):
            if name not in found:
                axes.annotate("not measured", (1, row), color="#666666", **aside)
                continue
            i = found[name]
            mean, colour = scale.apply(i.estimate), style.colour(looks[row])
            if not wide:
                axes.barh(row, mean - least, left=least, height=0.62, color=colour, alpha=0.85)
            text = quantities.number(mean, digits[name])
            if i.n > 1:
                reach = [[mean - scale.apply(i.low)], [scale.apply(i.high) - mean]]
                axes.errorbar(mean, row, xerr=reach, color=colour if wide else "#222222",
                              linewidth=0.9, capsize=2.5)  # fmt: skip
                text += f" ± {_half_text(scale.apply(i.half_width), digits[name])}"
            if wide:
                axes.plot(mean, row, style.marker(looks[row]), color=colour)
            axes.annotate(text, (1, row), **aside)
        axes.set_yticks(range(len(groups)), [labels.wrap(names[n], 24) for n in groups])
        axes.set_ylim(len(groups) - 0.5, -0.5)
        axes.grid(visible=wide, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(labels.wrap(labels.axis(column, scale), LINE))
        if wide:
            style.logarithmic(axes, "x")
        elif all(m >= 0 for m in means):
            axes.set_xlim(left=least)
        if opinions:
            axes.set_xticks([*labels.OPINIONS], [f"{n}\n{w}" for n, w in labels.OPINIONS.items()])
    return figure


def _half_text(half: float, places: int) -> str:
    """Returns half of an interval's width as text, such as `<0.1` if it would round to zero."""
    least = 10.0**-places
    return f"<{least:.{places}f}" if 0 < half < least / 2 else quantities.number(half, places)


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
            line: dict[str, Any] = {"color": style.colour(look)}
            if values.size >= 5:
                axes.boxplot(y, positions=[at], widths=0.5, showfliers=False, boxprops=line,
                             medianprops=line, whiskerprops=line, capprops=line)  # fmt: skip
            else:
                few_runs.append(name)
            spread = np.linspace(-0.12, 0.12, values.size) if values.size > 1 else np.zeros(1)
            if values.size:
                axes.plot(at + spread, y, style.marker(look), alpha=0.6, markersize=2.6,
                          markeredgewidth=0, linestyle="none", **line)  # fmt: skip
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
    where = place or results.bottleneck
    found = {k: distribution(runs, metric, where) for k, runs in by_level(results, by).items()}
    there = {k: d for k, d in found.items() if d is not None}
    if not there:
        raise StudyError(f"no distribution of {metric} at {where} was recorded")
    names = labels.names(list(found))
    high = [d.quantile(0.99) for d in there.values()]
    scale = labels.scale_of(metric, "", high)
    with style.styled():
        figure = style.figure(width, 2.7)
        axes = figure.add_subplot()
        for look, name in zip(colours.slots(found), found, strict=True):
            if name not in there:
                continue
            x, p = there[name].thinned()
            x, p = np.concatenate([[x[0]], x]), np.concatenate([[0.0], p])
            y = 1 - p if tail else p
            axes.plot(x / scale.factor, y, drawstyle="steps-post", color=style.colour(look),
                      linestyle=style.line(look), label=names[name])  # fmt: skip
        most = max(d.quantile(0.999) for d in there.values())
        axes.set_xlim(0, max(scale.apply(most) * 1.03, 1e-9))
        if style.wide(high):
            # The axis begins far below the smallest 99th percentile, to show all curves.
            axes.set_xlim(scale.apply(min(h for h in high if h > 0)) / 30, scale.apply(most) * 1.2)
            style.logarithmic(axes, "x")
        if tail:
            axes.set_yscale("log")
            axes.set_ylim(1e-5, 1.2)
            axes.set_ylabel("Share above")
        else:
            axes.set_ylim(0, 1.01)
            axes.set_ylabel(f"Share {'of packets ' * (metric == 'sojourn')}at or below")
        axes.set_xlabel(labels.wrap(labels.axis(metric, scale), LINE))
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
    drawn: list[tuple[str, Any, Any]] = []
    unit, chosen = "", seed
    for name, runs in by_level(results, by).items():
        run = next((r for r in runs if seed is None or r.seed == seed), None)
        found = series_of(run, metric, where) if run is not None else None
        if run is not None and found is not None:
            chosen = run.seed
            unit = series_unit(run, metric, where)
            drawn.append((name, *found))
    if not drawn:
        raise StudyError(f"no time series of {metric} at {where} was recorded")
    names = labels.names([name for name, _, _ in drawn])
    return _courses(drawn, names, metric, unit, chosen, width)


def classes(
    results: StoredRuns, level: str = "", by: str = "queue", width: float = style.PAGE
) -> Figure:
    """Returns the lengths over time of the classes of the bottleneck's queue.

    The run is the first one of `level`.
    """
    run = next(iter(by_level(results, by).get(level or results.name, [])), None)
    place = results.bottleneck or ""
    found = classes_of(run, place) if run is not None else {}
    if run is None or not found:
        raise StudyError(f"no time series of classes at {place} was recorded")
    drawn = [(name, *xy) for name, xy in islice(found.items(), MOST_CLASSES)]
    unit = series_unit(run, "queue", f"{place}.{drawn[0][0]}")
    return _courses(drawn, {}, "queue", unit, run.seed, width)


def _courses(
    drawn: Sequence[tuple[str, Any, Any]],
    names: Mapping[str, str],
    metric: str,
    unit: str,
    seed: int | None,
    width: float,
) -> Figure:
    """Returns a figure of stacked time series on equal axes.

    `drawn` has names, times and values; `names` has shorter names for display.
    """
    middle = [float(np.median(y)) for _, _, y in drawn]
    high = [float(np.quantile(y, 0.99)) for _, _, y in drawn]
    wide = style.wide(middle)
    scale = labels.scale_of(metric, unit, [min(middle)] if wide else high)
    with style.styled():
        figure = style.figure(width, 0.6 + 0.85 * len(drawn))
        panels = figure.subplots(len(drawn), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        looks = colours.slots(name for name, _, _ in drawn)
        for (name, x, y), axes, look in zip(drawn, panels, looks, strict=True):
            axes.plot(x, y / scale.factor, color=style.colour(look), linewidth=0.7)
            axes.set_title(names.get(name, name), pad=4)
            axes.margins(x=0.01)
        panels[0].set_ylim(bottom=0)
        if wide:
            panels[0].set_ylim(bottom=scale.apply(min(middle)) / 10)
            for axes in panels:
                style.logarithmic(axes, "y")
        panels[-1].set_xlabel(f"Time (s), seed {seed}")
        figure.supylabel(labels.axis(metric, scale), fontsize=8)
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
    names = labels.names([str(k) for k in xs])
    delays = [float(v.mean()) for v in xs.values() if len(v)]
    sx = labels.scale_of(dx, table.unit(dx), delays)
    sy = labels.scale_of(gy, table.unit(gy), [float(v.mean()) for v in ys.values()])
    wide = style.wide(delays)
    with style.styled():
        figure = style.figure(width, 3.0)
        axes = figure.add_subplot()
        for level, look in zip(xs, colours.slots(map(str, xs)), strict=True):
            both = np.array(
                [(xs[level][s], ys[level][s]) for s in xs[level].index if s in ys[level].index]
            ).reshape(-1, 2)
            if not len(both):
                continue
            both = both / [sx.factor, sy.factor]
            mean, colour = both.mean(axis=0), style.colour(look)
            # A logarithmic axis would distort the ellipse.
            if len(both) > 2 and not wide:
                breadth, height, angle = ellipse(both)
                axes.add_patch(
                    Ellipse((mean[0], mean[1]), breadth, height, angle=angle, alpha=0.25,
                            facecolor=colour, edgecolor=colour, linewidth=0.8)
                )  # fmt: skip
            half = _half(both) if len(both) > 1 else np.zeros(2)
            axes.errorbar(mean[0], mean[1], xerr=half[0], yerr=half[1], fmt=style.marker(look),
                          color=colour, linewidth=0.9, label=names[str(level)])  # fmt: skip
        axes.margins(0.12)
        if wide:
            style.logarithmic(axes, "x")
        axes.set_xlabel(labels.axis(dx, sx))
        axes.set_ylabel(labels.axis(gy, sy))
        style.legend_above(figure, axes)
        axes.set_title("better: up and to the left", loc="right", fontsize=6.5,
                       color="#666666", fontweight="normal", pad=3)  # fmt: skip
    return figure


def _half(points: Any) -> Any:
    return np.array([mean_interval(points[:, k]).half_width for k in (0, 1)])


def ellipse(points: Any, level: float = 0.95) -> tuple[float, float, float]:
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
    levels, groups = table.levels(over), [str(g) for g in table.levels(by)]
    across = labels.across(over, levels)
    at = across.at
    names = labels.names(groups)
    found = table.ci(metric, by=[by, over])
    scale = labels.scale_of(column, table.unit(column), found["mean"].tolist())
    for k, (group, look) in enumerate(zip(groups, colours.slots(groups), strict=True)):
        rows = found[found[by].astype(str) == group]
        # Points are slightly shifted, so that their intervals do not cover each other.
        shift = (k - (len(groups) - 1) / 2) * 0.012
        x = np.array([at[v] for v in rows[over]])
        x = x * (1 + 2 * shift) if across.log else x + shift * _span(list(at.values()))
        y = rows["mean"].to_numpy() / scale.factor
        low = y - rows["low"].to_numpy() / scale.factor
        high = rows["high"].to_numpy() / scale.factor - y
        axes.errorbar(x, y, yerr=np.nan_to_num([low, high]), color=style.colour(look),
                      marker=style.marker(look), linestyle=style.line(look), label=names[group],
                      elinewidth=0.8)  # fmt: skip
    if across.log:
        axes.set_xscale("log")
    axes.set_xticks(list(at.values()), across.texts)
    axes.minorticks_off()
    if found["mean"].min() >= 0:  # an interval may reach below zero although no mean does
        axes.set_ylim(bottom=max(0, axes.get_ylim()[0]))
    axes.set_xlabel(across.title)
    axes.set_ylabel(labels.wrap(labels.axis(column, scale), 28))


def _span(values: Sequence[float]) -> float:
    return max(values) - min(values) or 1.0
