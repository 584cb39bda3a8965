"""Charts as interactive figures: data for Plotly."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

import numpy as np

from sojourn.show import labels
from sojourn.show.charts import Axis, Chart, Floats, Line, Means, Panels
from sojourn.show.data import thin
from sojourn.show.html.blocks import Plot

Part = dict[str, object]
"""A part of Plotly's data."""

_DASHES = ("solid", "dash", "dashdot", "dot", "longdash", "longdashdot", "8px,2px", "3px,2px")
ROW = 18
"""Largest number of characters in a line of the text for a row or tick."""
MOST_POINTS = 4800
"""Largest number of points of all time series in a figure together."""
PANEL = 110
"""Height in pixels of each of several stacked plots."""
_SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x", "star")


def safe(text: str) -> str:
    """Returns text that Plotly does not interpret as markup."""
    return html.escape(text, quote=False)


def _lines(text: str, width: int) -> str:
    """Returns a name for Plotly, broken into lines of about `width` characters."""
    return safe(labels.wrap(text, width)).replace("\n", "<br>")


def _legend(names: Sequence[str]) -> Part:
    # The legend is above the plot; its height depends on the lengths of the names.
    rows = 1 + sum(len(n) + 8 for n in names) // 95
    return {
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"},
        "margin": {"l": 60, "r": 16, "t": 12 + 22 * rows, "b": 48},
    }


def _mark(look: int, size: int = 9) -> Part:
    return {"color": f"c{look % 8}", "symbol": _SYMBOLS[(look + look // 8) % 8], "size": size}


def _line(look: int) -> Part:
    return {"color": f"c{look % 8}", "dash": _DASHES[(look + 3 * (look // 8)) % 8], "width": 1.8}


def _axis(axis: Axis, title: str, most: float = 3000) -> Part:
    """Returns an axis; on a logarithmic one, limits far apart (`most`) have fewer ticks."""
    part: Part = {"title": {"text": safe(title)}}
    if axis.log and axis.low is not None and axis.high is not None:
        part |= _logarithmic(axis.low, axis.high, most)
    elif axis.log:
        part["type"] = "log"
    elif axis.low is not None and axis.high is not None:
        part["range"] = [axis.low, axis.high]
    elif axis.low == 0:
        part["rangemode"] = "nonnegative"
    if axis.ticks is not None:
        part["tickvals"] = [*axis.ticks]
        part["ticktext"] = [_lines(text, ROW) for text in axis.ticks.values()]
    return part


def _logarithmic(low: float, high: float, most: float) -> Part:
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


def _bars(reach: Sequence[Floats], look: int, thickness: float = 1.5, width: int = 4) -> Part:
    below, above = reach
    return {
        "type": "data",
        "symmetric": False,
        "array": above,
        "arrayminus": below,
        "color": f"c{look % 8}",
        "thickness": thickness,
        "width": width,
    }


def means(id_: str, chart: Means, *, half: bool = True) -> Plot:
    """Returns the means with their intervals, a row for each item."""
    rows = [_lines(row.label, ROW) for row in chart.rows]
    there = [row for row in chart.rows if math.isfinite(row.mean)]
    traces: list[Part] = []
    for row, label in zip(chart.rows, rows, strict=True):
        if not math.isfinite(row.mean):
            continue
        reach = [np.nan_to_num([x], posinf=0.0) for x in (row.mean - row.low, row.high - row.mean)]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": [row.mean],
                "y": [label],
                "marker": _mark(row.look),
                "error_x": _bars(reach, row.look),
                "hovertemplate": f"{safe(row.name)}<br>{row.text}<extra></extra>",
            }
        )
    axis = _axis(chart.axis, chart.axis.unit)
    if "rangemode" in axis:
        # Means that are all far from zero would be hard to distinguish on an axis from zero.
        least, most = min(row.mean for row in there), max(row.mean for row in there)
        axis["rangemode"] = "tozero" if least < 0.7 * most else "normal"
    lines = 1 + max(row.count("<br>") for row in rows)
    return Plot(
        id_,
        chart.title,
        traces,
        {
            "xaxis": axis,
            "yaxis": {
                "categoryorder": "array",
                "categoryarray": rows[::-1],
                "range": [-0.6, len(rows) - 0.4],
                "type": "category",
            },
            "showlegend": False,
        },
        alt=chart.alt,
        height=110 + (16 + 14 * lines) * len(rows),
        half=half,
    )


def lines(id_: str, chart: Chart, *, half: bool = False, height: int = 420) -> Plot:
    """Returns a chart with two axes; a chart of half the page's width has short axis titles."""
    x = f"%{{x:.4g}} {chart.x.unit}"
    point = "%{text}" if chart.marks else f"%{{y:.3%}} {chart.y.title.lower()[6:]} {x}"
    if chart.marks and chart.joined:
        point += f": %{{y:.4g}} {chart.y.unit}"
    traces = [_trace(chart, line, point) for line in chart.lines]
    y = _axis(chart.y, chart.y.unit if chart.joined and chart.marks else chart.y.text)
    if not chart.marks and not chart.y.log:
        y["tickformat"] = ".0%"
    names = [line.label or line.name for line in chart.lines]
    return Plot(
        id_,
        chart.title,
        traces,
        {
            "xaxis": _axis(chart.x, chart.x.text),
            "yaxis": y,
            **_legend([*names, "x" * 30] if half else names),
        },
        alt=chart.alt,
        caption=chart.caption,
        height=height,
        half=half,
    )


def _trace(chart: Chart, line: Line, point: str) -> Part:
    trace: Part = {
        "type": "scatter",
        "mode": "+".join(["lines"] * chart.joined + ["markers"] * chart.marks),
        "name": safe(line.label or line.name),
        "x": line.x,
        "y": line.y,
        "hovertemplate": f"{point}<extra>{safe(line.name)}</extra>",
    }
    if line.texts:
        trace["text"] = [safe(text).replace("\n", "<br>") for text in line.texts]
    if chart.marks:
        trace["marker"] = _mark(line.look, 7 if chart.joined else 11)
    if chart.joined:
        trace["line"] = _line(line.look) | ({} if chart.marks else {"shape": "hv"})
    if line.x_reach is not None:
        trace["error_x"] = _bars(line.x_reach, line.look)
    if line.y_reach is not None:
        trace["error_y"] = _bars(line.y_reach, line.look)
    return trace


def panels(id_: str, chart: Panels) -> Plot:
    """Returns stacked time series on equal axes."""
    traces: list[Part] = []
    titles: list[Part] = []
    layout: Part = {}
    most = max(150, MOST_POINTS // len(chart.lines))
    for at, line in enumerate(chart.lines, 1):
        number = "" if at == 1 else str(at)
        axis = _axis(chart.y, chart.y.unit, 100) | {"nticks": 4}
        layout[f"yaxis{number}"] = axis | ({"matches": "y"} if number else {})
        x, y = thin(line.x, line.y, most)
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": safe(line.name),
                "x": x,
                "y": y,
                "yaxis": f"y{number}",
                "line": {"color": f"c{line.look % 8}", "width": 1.2},
                "hovertemplate": f"%{{y:.4g}} {chart.y.unit} at %{{x:.2f}} s"
                f"<extra>{safe(line.name)}</extra>",
            }
        )
        titles.append(
            {
                "text": f"<b>{safe(line.name)}</b>",
                "xref": "paper",
                "yref": f"y{number} domain",
                "x": 0,
                "y": 1,
                "xanchor": "left",
                "yanchor": "bottom",
                "showarrow": False,
            }
        )
    several = len(chart.lines) > 1
    return Plot(
        id_,
        chart.title,
        traces,
        {
            **layout,
            "xaxis": {"title": {"text": "Time (s)"}},
            "grid": {"rows": len(chart.lines), "columns": 1, "pattern": "coupled", "ygap": 0.3},
            "annotations": titles if several else [],
            "showlegend": False,
            "margin": {"l": 60, "r": 16, "t": 24, "b": 48},
        },
        alt=f"{chart.title}, with a plot for each of {', '.join(x.name for x in chart.lines)}.",
        caption=chart.note + " All plots share their axes and zoom together." * several,
        height=72 + PANEL * max(len(chart.lines), 2),
    )
