"""Interactive figures, as data for Plotly."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from sojourn.metrics import base
from sojourn.show import colours, labels, style
from sojourn.show.data import MOST_CLASSES, HasTables, distribution, series_unit, thin
from sojourn.show.data import classes as classes_of
from sojourn.show.data import series as series_of
from sojourn.show.html.blocks import Plot
from sojourn.stats import Interval
from sojourn.study import quantities
from sojourn.study.answer import words

_DASHES = (
    "solid", "dash", "dashdot", "dot", "longdash", "longdashdot", "8px,2px", "3px,2px",
)  # fmt: skip
ROW = 18
"""Largest number of characters in a line of the text for a row or tick."""
MOST_POINTS = 4800
"""Largest number of points of all time series in a figure together."""
PANEL = 110
"""Height in pixels of each of several stacked plots."""
_SYMBOLS = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "triangle-down",
    "cross",
    "x",
    "star",
)


def safe(text: str) -> str:
    """Returns text that Plotly does not interpret as markup."""
    return html.escape(text, quote=False)


def _lines(text: str, width: int) -> str:
    """Returns a name for Plotly, broken into lines of about `width` characters."""
    return safe(labels.wrap(text, width)).replace("\n", "<br>")


def _legend(names: Sequence[str]) -> dict[str, Any]:
    # The legend is above the plot; its height depends on the lengths of the names.
    rows = 1 + sum(len(n) + 8 for n in names) // 95
    return {
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"},
        "margin": {"l": 60, "r": 16, "t": 12 + 22 * rows, "b": 48},
    }


def _mark(look: int, size: int = 9) -> dict[str, Any]:
    return {"color": f"c{look % 8}", "symbol": _SYMBOLS[(look + look // 8) % 8], "size": size}


def _line(look: int) -> dict[str, Any]:
    return {"color": f"c{look % 8}", "dash": _DASHES[(look + 3 * (look // 8)) % 8], "width": 1.8}


def _logarithmic(low: float, high: float, most: float = 3000) -> dict[str, Any]:
    """Returns a logarithmic axis with the ticks 1, 2, 5, 10, ....

    If `high` is at least `most` times `low`, the ticks are 1, 10, 100, ....
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if high / low < most else (1,)
    values = [step * 10.0**d for d in decades for step in steps]
    return {
        "type": "log",
        "range": [math.log10(low), math.log10(high)],
        "tickmode": "array",
        "tickvals": values,
        "ticktext": [f"{v:g}" for v in values],
    }


def intervals(
    id_: str,
    metric: str,
    unit: str,
    found: Mapping[str, Interval],
    names: Mapping[str, str],
    *,
    half: bool = True,
) -> Plot:
    """Returns the means with their intervals, a row for each name."""
    there = {k: i for k, i in found.items() if math.isfinite(i.estimate)}
    means = [i.estimate for i in there.values()]
    scale = labels.scale_of(metric, unit, means)
    wide = style.wide(means)
    places = quantities.decimals(
        map(scale.apply, means), [scale.apply(i.half_width) for i in there.values()]
    )
    rows = {name: _lines(names[name], ROW) for name in found}
    most = 1 + max(row.count("<br>") for row in rows.values())
    traces = []
    for look, (name, i) in zip(colours.slots(found), found.items(), strict=True):
        if name not in there:
            continue
        low, mean, high = (scale.apply(x) for x in (i.low, i.estimate, i.high))
        known = math.isfinite(low)
        text = quantities.interval(i, unit, metric)
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": [mean],
                "y": [rows[name]],
                "marker": _mark(look),
                "error_x": {
                    "type": "data",
                    "symmetric": False,
                    "array": [high - mean if known else 0],
                    "arrayminus": [mean - low if known else 0],
                    "color": f"c{look % 8}",
                    "thickness": 1.5,
                    "width": 4,
                },
                "hovertemplate": f"{safe(name)}<br>{text}<extra></extra>",
            }
        )
    order = list(rows.values())
    axis: dict[str, Any] = {"title": {"text": scale.unit}}
    if base(metric) == "mos":
        axis |= {
            "range": [1, 4.6],
            "tickvals": [*labels.OPINIONS],
            "ticktext": [f"{n}<br>{word}" for n, word in labels.OPINIONS.items()],
        }
    elif wide:
        low, high = min(map(scale.apply, means)), max(map(scale.apply, means))
        axis |= _logarithmic(low / 1.4, high * 1.4)
    elif means and min(means) >= 0 and _near_zero(there.values()):
        axis |= {"rangemode": "tozero"}
    listed = "; ".join(
        f"{k} {quantities.number(scale.apply(i.estimate), places)} {scale.unit}"
        for k, i in there.items()
    )
    return Plot(
        id_,
        labels.title(metric),
        traces,
        {
            "xaxis": axis,
            "yaxis": {
                "categoryorder": "array",
                "categoryarray": order[::-1],
                "range": [-0.6, len(order) - 0.4],
                "type": "category",
            },
            "showlegend": False,
        },
        alt=f"{labels.title(metric)} with 95 % intervals: {listed}.",
        height=110 + (16 + 14 * most) * len(order),
        half=half,
    )


def _near_zero(found: Any) -> bool:
    """Returns whether differences remain visible on an axis that begins at zero."""
    values = [i.estimate for i in found]
    return bool(values) and min(values) < 0.7 * max(values)


def tradeoff(
    delays: tuple[str, str, Mapping[str, Interval]],
    goodputs: tuple[str, str, Mapping[str, Interval]],
    names: Mapping[str, str],
) -> Plot:
    """Returns goodput over delay with intervals.

    `delays` and `goodputs` have the metric, its unit, and the intervals by name.
    """
    (dm, du, ds), (gm, gu, gs) = delays, goodputs
    sx = labels.scale_of(dm, du, [i.estimate for i in ds.values()])
    sy = labels.scale_of(gm, gu, [i.estimate for i in gs.values()])
    traces = []
    for look, name in zip(colours.slots(ds), ds, strict=True):
        d, g = ds[name], gs[name]
        if not (math.isfinite(d.estimate) and math.isfinite(g.estimate)):
            continue

        def bar(half: float, colour: str = f"c{look % 8}") -> dict[str, Any]:
            value = half if math.isfinite(half) else 0
            return {"type": "data", "array": [value], "color": colour, "thickness": 1.5, "width": 4}

        both = (
            f"{safe(words(dm))} {quantities.interval(d, du, dm)}<br>"
            f"{safe(words(gm))} {quantities.interval(g, gu, gm)}"
        )
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": safe(names[name]),
                "x": [sx.apply(d.estimate)],
                "y": [sy.apply(g.estimate)],
                "error_x": bar(sx.apply(d.half_width)),
                "error_y": bar(sy.apply(g.half_width)),
                "marker": _mark(look, 11),
                "hovertemplate": f"{safe(name)}<br>{both}<extra></extra>",
            }
        )
    xaxis: dict[str, Any] = {"title": {"text": labels.axis(dm, sx)}}
    across = [sx.apply(i.estimate) for i in ds.values() if math.isfinite(i.estimate)]
    if style.wide(across):
        xaxis |= _logarithmic(min(across) / 1.4, max(across) * 1.4)
    return Plot(
        "tradeoff",
        "Goodput against delay",
        traces,
        {
            "xaxis": xaxis,
            "yaxis": {"title": {"text": labels.axis(gm, sy)}},
            **_legend(list(names.values())),
        },
        alt=f"{labels.title(gm)} over {words(dm)}, with a point for each choice, as in the table.",
        caption="Better is up and to the left. The bars are 95 % intervals over the seeds.",
        height=420,
    )


def cdf(
    id_: str,
    groups: Mapping[str, Sequence[HasTables]],
    names: Mapping[str, str],
    metric: str,
    place: str | None,
    unit: str,
) -> Plot | None:
    """Returns distribution functions, each of all seeds together; None if none was recorded."""
    found = {k: distribution(runs, metric, place) for k, runs in groups.items()}
    there = {k: d for k, d in found.items() if d is not None}
    if not there:
        return None
    high = [d.quantile(0.99) for d in there.values()]
    scale = labels.scale_of(metric, unit, high)
    traces = []
    for look, (name, d) in zip(colours.slots(found), found.items(), strict=True):
        if d is None:
            continue
        x, p = d.thinned()
        hover = f"%{{y:.3%}} at or below %{{x:.4g}} {scale.unit}"
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": safe(names[name]),
                "x": x / scale.factor,
                "y": p,
                "line": {**_line(look), "shape": "hv"},
                "hovertemplate": f"{hover}<extra>{safe(name)}</extra>",
            }
        )
    most = scale.apply(max(d.quantile(0.999) for d in there.values()))
    axis: dict[str, Any] = {
        "title": {"text": labels.axis(metric, scale)},
        "range": [0, most * 1.03],
    }
    if style.wide(high):
        axis |= _logarithmic(scale.apply(min(h for h in high if h > 0)) / 30, most * 1.1)
    medians = "; ".join(
        f"{k} {quantities.value(d.quantile(0.5), unit, metric)}" for k, d in there.items()
    )
    return Plot(
        id_,
        f"Distribution of the {words(metric)}" + (f" at {place}" if place else ""),
        traces,
        {
            "xaxis": axis,
            "yaxis": {
                "title": {"text": "Share at or below"},
                "range": [0, 1.01],
                "tickformat": ".0%",
            },
            **_legend(list(names.values())),
        },
        alt=f"Distribution functions. Medians: {medians}.",
        caption=_runs(there),
        height=420,
    )


def _runs(there: Mapping[str, Any]) -> str:
    counts = {d.runs for d in there.values()}
    if counts == {1}:
        return "All values of one run."
    return f"All values of {max(counts)} runs{' each' * (len(there) > 1)} pooled."


def series(
    id_: str,
    runs: Mapping[str, HasTables],
    names: Mapping[str, str],
    metric: str,
    place: str,
    note: str,
) -> Plot | None:
    """Returns stacked time series of one run for each name; None if none was recorded."""
    found = {k: series_of(run, metric, place) for k, run in runs.items()}
    there = {names[k]: xy for k, xy in found.items() if xy is not None}
    if not there:
        return None
    looks = [
        look
        for look, xy in zip(colours.slots(found), found.values(), strict=True)
        if xy is not None
    ]
    unit = next(series_unit(runs[k], metric, place) for k, xy in found.items() if xy is not None)
    return courses(
        id_, f"{labels.title(metric)} over time at {place}", metric, unit, there, looks, note
    )


def classes(id_: str, run: HasTables, place: str, queue: str, note: str) -> Plot | None:
    """Returns stacked time series of the lengths of a queue's classes; None without classes."""
    found = classes_of(run, place)
    if not found:
        return None
    shown = dict(islice(found.items(), MOST_CLASSES))
    if len(found) > len(shown):
        note = f"The first {len(shown)} of {len(found)} classes that held packets. {note}"
    title = f"{labels.title('queue')} of each class over time at {place}{queue and f', {queue}'}"
    unit = series_unit(run, "queue", f"{place}.{next(iter(shown))}")
    return courses(id_, title, "queue", unit, shown, colours.slots(shown), note)


def courses(
    id_: str,
    title: str,
    metric: str,
    unit: str,
    lines: Mapping[str, tuple[Any, Any]],
    looks: Sequence[int],
    note: str,
) -> Plot:
    """Returns stacked plots on equal axes.

    `lines` has times and values by name, `looks` a style number for each line.
    """
    middle = [float(np.median(y)) for _, y in lines.values()]
    high = [float(np.quantile(y, 0.99)) for _, y in lines.values()]
    wide = style.wide(middle)
    scale = labels.scale_of(metric, unit, [min(middle)] if wide else high)
    top = scale.apply(max(float(y.max()) for _, y in lines.values()))
    yaxis: dict[str, Any] = {"title": {"text": scale.unit}, "nticks": 4}
    if wide:
        yaxis |= _logarithmic(scale.apply(min(middle)) / 10, top * 1.3, 100)
    else:
        yaxis |= {"range": [0, top * 1.05 or 1]}
    traces, titles = [], []
    layout: dict[str, Any] = {}
    most = max(150, MOST_POINTS // len(lines))
    for at, ((name, xy), look) in enumerate(zip(lines.items(), looks, strict=True), 1):
        number = "" if at == 1 else str(at)
        layout[f"yaxis{number}"] = yaxis | ({"matches": "y"} if number else {})
        x, y = thin(*xy, most)
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": safe(name),
                "x": x,
                "y": y / scale.factor,
                "yaxis": f"y{number}",
                "line": {"color": f"c{look % 8}", "width": 1.2},
                "hovertemplate": f"%{{y:.4g}} {scale.unit} at %{{x:.2f}} s"
                f"<extra>{safe(name)}</extra>",
            }
        )
        titles.append(
            {
                "text": f"<b>{safe(name)}</b>",
                "xref": "paper",
                "yref": f"y{number} domain",
                "x": 0,
                "y": 1,
                "xanchor": "left",
                "yanchor": "bottom",
                "showarrow": False,
            }
        )
    return Plot(
        id_,
        title,
        traces,
        {
            **layout,
            "xaxis": {"title": {"text": "Time (s)"}},
            "grid": {"rows": len(lines), "columns": 1, "pattern": "coupled", "ygap": 0.3},
            "annotations": titles if len(lines) > 1 else [],
            "showlegend": False,
            "margin": {"l": 60, "r": 16, "t": 24, "b": 48},
        },
        alt=f"{title}, with a plot for each of {', '.join(lines)}.",
        caption=note + " All plots share their axes and zoom together." * (len(lines) > 1),
        height=72 + PANEL * max(len(lines), 2),
    )


def over(
    id_: str,
    metric: str,
    unit: str,
    factor: str,
    lines: Mapping[str, Sequence[tuple[Any, Interval]]],
    *,
    half: bool = True,
) -> Plot:
    """Returns a metric over a factor with intervals, a line for each name."""
    everything = [i.estimate for line in lines.values() for _, i in line]
    scale = labels.scale_of(metric, unit, everything)
    across = labels.across(
        factor, list(dict.fromkeys(x for line in lines.values() for x, _ in line))
    )
    texts = dict(zip(across.at, across.texts, strict=True))
    traces = []
    for look, (name, line) in zip(colours.slots(lines), lines.items(), strict=True):
        halves = [scale.apply(i.half_width) for _, i in line]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": safe(name),
                "x": [across.at[x] for x, _ in line],
                "y": [scale.apply(i.estimate) for _, i in line],
                "text": [safe(texts[x]) for x, _ in line],
                "error_y": {
                    "type": "data",
                    "array": [h if math.isfinite(h) else 0 for h in halves],
                    "color": f"c{look % 8}",
                    "thickness": 1.2,
                    "width": 3,
                },
                "marker": _mark(look, 7),
                "line": _line(look),
                "hovertemplate": f"%{{text}}: %{{y:.4g}} {scale.unit}<extra>{safe(name)}</extra>",
            }
        )
    axis: dict[str, Any] = {
        "title": {"text": safe(across.title)},
        "tickvals": list(across.at.values()),
        "ticktext": [_lines(text, ROW) for text in across.texts],
        **({"type": "log"} if across.log else {}),
    }
    # The heading has the metric's name; the axis has space for the unit only.
    layout: dict[str, Any] = {"xaxis": axis, "yaxis": {"title": {"text": scale.unit}}}
    if everything and min(everything) >= 0:
        layout["yaxis"] |= {"rangemode": "nonnegative"}
    return Plot(
        id_,
        labels.title(metric),
        traces,
        {**layout, **_legend([*lines, "x" * 30] if half else list(lines))},
        alt=f"{labels.title(metric)} over {across.title}, with a line for each of "
        f"{', '.join(lines)}.",
        height=360,
        half=half,
    )
