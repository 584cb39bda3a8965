"""Figures of the quantities on which claims are judged, and the tables of the page."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.papers.drawing import whiskers
from sojourn.papers.l4s import claims, published, scenarios, study
from sojourn.papers.l4s.study import Results
from sojourn.papers.part import Drawn, Titled
from sojourn.show import style
from sojourn.stats import Interval, mean_interval

_PANEL = 1.45


def _interval(frame: pd.DataFrame, metric: str, scale: float = 1.0) -> Interval:
    values = frame[metric].to_numpy(dtype=float) * scale
    values = values[np.isfinite(values)]
    return mean_interval(values) if values.size else Interval(*(math.nan,) * 4, 0)


def _delays(outcome: Results) -> Figure:
    """Draws the mean and 99th percentile of L4S packets' queueing delay by mix and cell."""
    frame, size = outcome.frame("rfc9332"), outcome.size
    names = [f"{rate} Mbit/s\n{rtt} ms" for rate, rtt in size.grid]
    with style.styled():
        figure = style.figure(2 * style.COLUMN, 2.9)
        panels = figure.subplots(1, 2)
        for axes, (metric, title, limit) in zip(
            panels,
            (("rfc_delay", "Mean", 1.0), ("rfc_delay_p99", "99th percentile", 2.0)),
            strict=True,
        ):
            for at, mix in enumerate(claims.L4S):
                rows = frame[frame["mix"] == mix]
                spans = [
                    _interval(rows[(rows["rate"] == rate) & (rows["rtt"] == rtt)], metric, 1e3)
                    for rate, rtt in size.grid
                ]
                x = [n + 0.12 * (at - len(claims.L4S) / 2) for n in range(len(names))]
                whiskers(axes, x, spans, at, label=mix, marker=style.marker(at), linestyle="none")
            axes.axhline(limit, color="#666666", lw=0.8, ls="--")
            axes.set_ylim(bottom=0)
            axes.set_xticks(range(len(names)), names, fontsize=6 if len(names) < 9 else 4)
            axes.set_title(title)
        panels[0].set_ylabel("Queueing delay of L4S packets (ms)")
        style.legend_above(figure, panels[0], 3)
    return figure


def _shares(
    axes: Axes, spans: Sequence[Interval], theirs: Sequence[float], names: Sequence[str]
) -> None:
    """Draws Prague's shares in per cent with intervals, and the shares that the source states."""
    y = range(len(names))
    axes.axvline(50, color="#999999", lw=0.6)
    axes.scatter(theirs, y, marker="D", s=16, facecolors="none", edgecolors=style.colour(1),
                 label="the source", zorder=3)  # fmt: skip
    values = [s.estimate for s in spans]
    error = [[s.estimate - s.low for s in spans], [s.high - s.estimate for s in spans]]
    axes.errorbar(
        values, y, xerr=np.nan_to_num(error), fmt="o", ms=3.5, color=style.colour(0), label="here"
    )
    axes.set_yticks(y, names, fontsize=6.5)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(-3, 103)


def _compared(
    outcome: Results, part: str, metric: str, rows: str, columns: str,
    levels: tuple[Sequence[str], Sequence[str]], where: dict[str, str], width: int,
) -> Figure:  # fmt: skip
    """Draws the first flow's share of the goodput, a panel for each level of factor `columns`.

    A panel has a line for each level of factor `rows`; `levels` has the levels of both factors.
    `where` selects the levels of further factors. `width` is the number of panels side by side.
    """
    frame, source = outcome.frame(part), published.frames()[metric]
    listed, panels_of = levels
    for key, value in where.items():
        frame, source = frame[frame[key] == value], source[source[key] == value]
    high = math.ceil(len(panels_of) / width)
    with style.styled():
        figure = style.figure(2 * style.COLUMN, 0.6 + high * (0.4 + 0.165 * len(listed)))
        grid = figure.subplots(high, width, sharex=True, sharey=True, squeeze=False).flatten()
        for axes, column in zip(grid, panels_of, strict=False):
            spans, theirs = [], []
            for row in listed:
                cell = (frame[rows] == row) & (frame[columns] == column)
                known = source[(source[rows] == row) & (source[columns] == column)][metric]
                spans.append(_interval(frame[cell], metric, 100))
                theirs.append(100 * float(known.iloc[0]) if len(known) else math.nan)
            _shares(axes, spans, theirs, listed)
            axes.set_title(column)
        for axes in grid[len(panels_of) :]:
            axes.set_visible(False)
        style.legend_above(figure, grid[0], 2)
        figure.supxlabel("Prague's share of the goodput (%)", fontsize=8)
    return figure


def _fair(outcome: Results) -> Figure:
    return _compared(
        outcome, "rtt", "s1_share", "rtts", "queue",
        (list(scenarios.S1_RTTS), list(scenarios.S1_QUEUES)), {"pair": "Prague, CUBIC"}, 3,
    )  # fmt: skip


def _rfc3168(outcome: Results) -> Figure:
    return _compared(
        outcome, "shared", "s6_share", "queue", "rival",
        (list(scenarios.S6_QUEUES), list(scenarios.S6_RIVALS)), {}, 4,
    )  # fmt: skip


def _partial(outcome: Results) -> Figure:
    return _compared(
        outcome, "partial", "partial_share", "queue", "rival",
        (list(scenarios.PARTIAL_QUEUES), list(scenarios.PARTIAL_RIVALS)), {}, 5,
    )  # fmt: skip


def _steps(outcome: Results) -> Figure:
    frame = outcome.frame("step", "series")
    with style.styled():
        figure = style.figure(2 * style.COLUMN, 2.2)
        panels = figure.subplots(1, len(study.STEPS))
        for axes, to in zip(panels, study.STEPS, strict=True):
            for at, control in enumerate(study.CONTROLS):
                rows = frame[(frame["to"] == to) & (frame["control"] == control)]
                mean = rows.groupby("time")["srtt"].mean() * 1e3
                axes.plot(
                    mean.index, mean, color=style.colour(at), ls=style.line(at), label=control
                )
            axes.set_title(f"50 Mbit/s to {to.removesuffix('mbit')} Mbit/s")
            axes.set_xlabel("Time (s)")
            style.logarithmic(axes, "y")
        panels[0].set_ylabel("Smoothed round-trip time (ms)")
        style.legend_above(figure, panels[0], 2)
    return figure


def drawn(outcome: Results) -> Drawn:
    """Returns all figures with title and caption, by file name."""
    seeds = f"95 % intervals over {outcome.size.seeds} seeds"
    return {
        "delays": (
            _delays(outcome),
            "Queueing delay of L4S packets behind DualPI2",
            f"Dashed: the limits that RFC 9332 states. {seeds}.",
        ),
        "rtt": (
            _fair(outcome),
            "Prague with CUBIC at 50 Mbit/s, by round-trip times in ms",
            f"Scenario 1 of heistp/l4s-tests; diamonds are the values published there. {seeds}.",
        ),
        "rfc3168": (
            _rfc3168(outcome),
            "Prague with others in one queue with an RFC 3168 AQM",
            f"Scenario 6 of heistp/l4s-tests; diamonds are the values published there. {seeds}.",
        ),
        "partial": (
            _partial(outcome),
            "Prague in a partial deployment, 100 Mbit/s, 10 ms",
            f"Diamonds: published means of ten trials on the papers' testbed. {seeds}.",
        ),
        "step": (
            _steps(outcome),
            "Round-trip times in fq_codel when the rate steps down",
            "Scenario 2 of heistp/l4s-tests; means over seeds.",
        ),
    }


def tables(outcome: Results) -> Titled:
    """Returns a table of means for each part."""
    found = []
    for part, column in outcome.column.frames.items():
        frame = column[""]
        metrics = [name for name in frame.columns if name in METRICS]
        keys = [name for name in outcome.tables[part].factors if name in frame]
        means = frame.groupby(keys, sort=False)[metrics].mean().reset_index()
        found.append((f"Means: {part}", means))
    return found


METRICS = {
    "rfc_share": "1",
    "rfc_window": "1",
    "rfc_delay": "s",
    "rfc_delay_p99": "s",
    "rfc_loss": "1",
    "rfc_classic_p99": "s",
    "rfc_utilisation": "1",
    "s1_share": "1",
    "s1_both": "Mbit/s",
    "s2_spike": "s",
    "s2_greatest": "s",
    "s2_utilisation": "bit/s",
    "s3_excess": "s",
    "s5_share": "1",
    "s6_share": "1",
    "s6_both": "Mbit/s",
    "partial_share": "1",
    "partial_both": "Mbit/s",
    "multiple_share": "1",
    "environment_delay": "s",
}
"""Units of the claims' metrics."""
