"""Figures in the layout of the thesis' figures 6 to 16.

The thesis' three-dimensional bars are grouped bars here. As in the thesis, values are in per cent
of the highest value of their panel (lines, bars) or of their group (grouped bars). Error bars are
95 % intervals over seeds. White diamonds are published values, on the same scale: the highest value
is the highest of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.papers.daqm.mechanisms import CONFIGURATIONS, EIGHT, FEATURES, RIVALS
from sojourn.papers.daqm.scenarios import FLOWS, MODELS
from sojourn.papers.daqm.terms import DELAY, DELIVERED, LOSS, QUEUE, SOJOURN
from sojourn.show import colours, style
from sojourn.stats import mean_interval
from sojourn.stats._arrays import Floats

Metrics = Mapping[str, str]
"""Titles of the panels, by the column of the metric."""

PUBLISHED: Metrics = {
    "fct": "Flow completion time",
    "delay": "End-to-end delay",
    "plr": "Packet loss ratio",
    "queue": "Queue length",
    "sojourn": "Sojourn time",
    "throughput": "Throughput",
}
MEANT: Metrics = {
    DELAY: "End-to-end delay",
    LOSS: "Packet loss ratio",
    QUEUE: "Queue length",
    SOJOURN: "Sojourn time",
    DELIVERED: "Delivered",
}
_MODEL_NAMES = {
    "cbr": "CBR",
    "vbr": "VBR",
    "poisson-onoff": "Poisson",
    "pareto-onoff": "Pareto",
    "weibull-onoff": "Weibull",
}
_FLOW_NAMES = {
    "ftp": "FTP",
    "streaming": "Streaming",
    "http": "HTTP",
    "voip": "VoIP",
    "gaming": "Gaming",
}


def _interval(values: Floats) -> tuple[float, float]:
    """Returns the mean and the half-width of its 95 % interval.

    The half-width is 0 for fewer than two values or equal values. The mean of no values is NaN.
    """
    values = values[np.isfinite(values)]
    if not values.size:
        return float("nan"), 0.0
    if values.size < 2 or np.ptp(values) == 0:
        return float(values.mean()), 0.0
    found = mean_interval(values)
    return found.estimate, found.high - found.estimate


def _colour(mechanism: str) -> str:
    """Returns the colour of a mechanism: grey for dAQM with one feature."""
    if mechanism in FEATURES:
        return "#b5b5b5"
    order = (*CONFIGURATIONS, *RIVALS)
    return style.colour(colours.slots(order)[order.index(mechanism)])


def _grid(metrics: Metrics, columns: int, height: float) -> tuple[Figure, list[Axes]]:
    rows = -(-len(metrics) // columns)
    figure = style.figure(style.PAGE, 0.35 + height * rows)
    axes = list(figure.subplots(rows, columns, squeeze=False).flatten())
    for rest in axes[len(metrics) :]:
        rest.set_visible(False)
    return figure, axes


def _title(axes: Axes, number: int, text: str) -> None:
    axes.set_title(f"({'abcdefghijkl'[number]}) {text}")


_POINT: Mapping[str, Any] = {
    "marker": "D", "markersize": 2.6, "markerfacecolor": "white", "markeredgecolor": "#222222",
    "markeredgewidth": 0.6, "linestyle": "none", "zorder": 5,
}  # fmt: skip


def _points(
    axes: Axes, at: Sequence[float], paper: pd.DataFrame | None, mechanisms: Sequence[str],
    metric: str, top: float,
) -> None:  # fmt: skip
    """Draws the published values of mechanisms, in per cent of `top`.

    `at` has the x coordinates of the points. Draws nothing if `paper` is `None` or has no such
    metric.
    """
    if paper is None or metric not in paper:
        return
    known = paper.set_index("mechanism")[metric].reindex(list(mechanisms)).astype(float)
    axes.plot(at, (100 * known / top).to_numpy(), **_POINT)


def _top(means: Iterable[float], paper: pd.DataFrame | None, metric: str) -> float:
    """Returns the highest of our means and the published values; 1 if all are 0."""
    known = () if paper is None or metric not in paper else map(float, paper[metric])
    return max((value for value in (*means, *known) if np.isfinite(value)), default=0.0) or 1.0


def bars(
    frame: pd.DataFrame,
    mechanisms: Sequence[str],
    metrics: Metrics,
    paper: pd.DataFrame | None = None,
) -> Figure:
    """Draws a figure like figure 6: a panel for each metric with a bar for each mechanism.

    `paper` has the published values.
    """
    with style.styled():
        figure, grid = _grid(metrics, 2, 1.75)
        for number, ((metric, title), axes) in enumerate(zip(metrics.items(), grid, strict=False)):
            found = [
                _interval(frame.loc[frame["mechanism"] == m, metric].to_numpy(dtype=float))
                for m in mechanisms
            ]
            top = _top((mean for mean, _ in found), paper, metric)
            at = np.arange(len(mechanisms))
            axes.bar(at, [100 * m / top for m, _ in found], width=0.75,
                     color=[_colour(m) for m in mechanisms])  # fmt: skip
            axes.errorbar(at, [100 * m / top for m, _ in found],
                          [100 * h / top for _, h in found], fmt="none",
                          ecolor="#333333", elinewidth=0.7)  # fmt: skip
            _points(axes, list(at), paper, mechanisms, metric, top)
            axes.set_xticks(at, [m.removeprefix("dAQM_") for m in mechanisms], rotation=60)
            axes.set_ylim(bottom=0)
            axes.set_ylabel("% of the highest")
            axes.grid(visible=False, axis="x")
            _title(axes, number, title)
    return figure


def grouped(
    frame: pd.DataFrame, by: str, metrics: Metrics, paper: pd.DataFrame | None = None
) -> Figure:
    """Draws a figure like figures 8 to 10: groups of bars by flow or by traffic model.

    `by` is `flow` or `model`. `paper` has the published values.
    """
    names = _FLOW_NAMES if by == "flow" else _MODEL_NAMES
    order = [level for level in (FLOWS if by == "flow" else MODELS) if level in set(frame[by])]
    with style.styled():
        figure, grid = _grid(metrics, 2, 1.75)
        for number, ((metric, title), axes) in enumerate(zip(metrics.items(), grid, strict=False)):
            for place, level in enumerate(order):
                chosen = frame[frame[by] == level]
                found = [
                    _interval(chosen.loc[chosen["mechanism"] == m, metric].to_numpy(dtype=float))
                    for m in EIGHT
                ]
                theirs = None if paper is None else paper[paper[by] == level]
                top = _top((mean for mean, _ in found), theirs, metric)
                for i, (m, (mean, half)) in enumerate(zip(EIGHT, found, strict=True)):
                    axes.bar(place + (i - 3.5) * 0.1, 100 * mean / top, width=0.1,
                             color=_colour(m), label=m if place == 0 else None,
                             yerr=100 * half / top if half else None,
                             error_kw={"elinewidth": 0.5, "capsize": 0})  # fmt: skip
                places = [place + (i - 3.5) * 0.1 for i in range(len(EIGHT))]
                _points(axes, places, theirs, EIGHT, metric, top)
            axes.set_xticks(range(len(order)), [names[level] for level in order])
            axes.set_ylim(bottom=0)
            axes.set_ylabel("% of the highest")
            axes.grid(visible=False, axis="x")
            _title(axes, number, title)
        style.legend_above(figure, grid[0], columns=4)
    return figure


def lines(
    frame: pd.DataFrame,
    over: str,
    label: str,
    metrics: Metrics,
    paper: pd.DataFrame | None = None,
) -> Figure:
    """Draws a figure like figures 11 to 16: a line for each mechanism over the factor `over`.

    `label` is the label of the x axis. `paper` has the published values.
    """
    with style.styled():
        figure, grid = _grid(metrics, 2, 1.9)
        steps = sorted(set(frame[over]))
        for number, ((metric, title), axes) in enumerate(zip(metrics.items(), grid, strict=False)):
            means = {
                m: [
                    _interval(
                        frame.loc[(frame["mechanism"] == m) & (frame[over] == x), metric].to_numpy(
                            dtype=float
                        )
                    )
                    for x in steps
                ]
                for m in EIGHT
            }
            top = _top((mean for row in means.values() for mean, _ in row), paper, metric)
            for m, row in means.items():
                if not any(np.isfinite(mean) for mean, _ in row):
                    continue
                i = EIGHT.index(m)
                axes.errorbar(steps, [100 * v / top for v, _ in row],
                              [100 * h / top for _, h in row], color=_colour(m),
                              marker=style.marker(i), linestyle=style.line(i), markersize=3,
                              label=m)  # fmt: skip
                if paper is not None and metric in paper:
                    theirs = paper[paper["mechanism"] == m]
                    axes.plot(theirs[over], 100 * theirs[metric].astype(float) / top,
                              **{**_POINT, "markeredgecolor": _colour(m)})  # fmt: skip
            if over == "rate" and style.wide(steps):
                style.logarithmic(axes, "x")
            axes.set_ylim(bottom=0)
            axes.set_xlabel(label)
            axes.set_ylabel("% of the highest")
            _title(axes, number, title)
        style.legend_above(figure, grid[0], columns=4)
    return figure


def over_time(series: Mapping[str, pd.DataFrame], columns: Mapping[str, str]) -> Figure:
    """Draws a figure like figure 7: sojourn time and queue length over time.

    Rivals except RED are grey. `series` has a table with the column `time` for each mechanism;
    `columns` has the panels' titles by column.
    """
    with style.styled():
        figure, grid = _grid(columns, 1, 2.1)
        for number, ((column, title), axes) in enumerate(zip(columns.items(), grid, strict=False)):
            top = max((float(f[column].max()) for f in series.values()), default=0.0) or 1.0
            for m, frame in series.items():
                grey = m in RIVALS and m != "RED"
                axes.plot(frame["time"], 100 * frame[column] / top, label=m,
                          color="#c4c4c4" if grey else _colour(m),
                          linewidth=0.8 if grey else 1.1, zorder=1 if grey else 2)  # fmt: skip
            axes.set_ylim(bottom=0)
            axes.set_xlabel("Time (s)")
            axes.set_ylabel("% of the highest")
            _title(axes, number, title)
        style.legend_above(figure, grid[0], columns=4)
    return figure
