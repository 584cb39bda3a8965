"""Figures in the paper's layout with the paper's and our values, and tables of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.papers.drawing import whiskers
from sojourn.papers.edge_store import claims, published, study
from sojourn.papers.edge_store.scenarios import LOSSES, NODES
from sojourn.papers.edge_store.study import Results
from sojourn.papers.part import Drawn
from sojourn.papers.side_by_side import REAL, SIMULATED
from sojourn.show import style
from sojourn.stats import mean_interval
from sojourn.stats.quorum import phi_table

_DELAY = "Delay between nodes (ms)"
_LATENCY = "Mean latency of a write (ms)"


def _points(axes: Axes, values: Iterable[tuple[float, ...]]) -> None:
    """Draws the paper's values over the delay as hollow points, with a colour for each series."""
    for i, series in enumerate(values):
        axes.plot(
            published.DELAYS,
            series,
            linestyle="none",
            marker=style.marker(i),
            markerfacecolor="none",
            markeredgewidth=0.7,
            color=style.colour(i),
            markersize=4,
        )


def _lines(
    axes: Axes, frame: pd.DataFrame, by: str, names: Mapping[int, str] | Mapping[str, str]
) -> None:
    """Draws our mean latency over the delay with 95 % intervals, a line for each level of `by`.

    `names` has the labels of the lines by level.
    """
    for i, (value, name) in enumerate(names.items()):
        part = frame[frame[by] == value]
        delays = sorted(set(part["delay"]))
        spans = [
            mean_interval(
                part[part["delay"] == d].groupby("seed")["latency"].mean().to_numpy(), 0.95
            )
            for d in delays
        ]
        whiskers(axes, delays, spans, i, label=name, linestyle=style.line(i), linewidth=1)


def _finish(axes: Axes) -> None:
    axes.set_xlabel(_DELAY)
    axes.set_ylabel(_LATENCY)
    axes.set_ylim(bottom=0)


def _factors(axes: Axes, outcome: Results, loss: str, nodes: int) -> None:
    frame = outcome.frame("grid")
    frame = frame[(frame["nodes"] == nodes) & (frame["loss"] == loss)]
    _lines(axes, frame, "rf", {rf: f"RF{rf}" for rf in range(1, nodes + 1)})


def _by_factor(outcome: Results, loss: str, points: Mapping[int, tuple[float, ...]]) -> Figure:
    with style.styled():
        figure = style.figure(style.COLUMN, 3.0)
        axes = figure.subplots()
        _factors(axes, outcome, loss, 5)
        _points(axes, [points[rf] for rf in range(1, 6)])
        _finish(axes)
        style.legend_above(figure, axes, 5)
    return figure


def _fewer_nodes(outcome: Results) -> Figure:
    """Draws latency over delay in three and four nodes, for which the paper has no figure."""
    with style.styled():
        figure = style.figure(2 * style.COLUMN, 4.6)
        panels = figure.subplots(2, 3, sharex=True, sharey=True)
        for row, nodes in zip(panels, claims.FEWER, strict=True):
            for axes, loss in zip(row, LOSSES, strict=True):
                _factors(axes, outcome, loss, nodes)
                axes.set_title(f"{nodes} nodes, {loss} loss")
        for axes in panels.flat:  # after all lines exist, because the panels share a scale
            _finish(axes)
            axes.label_outer()
        style.legend_above(figure, panels[1][0], 4)
    return figure


def _by_loss(outcome: Results) -> Figure:
    with style.styled():
        figure = style.figure(style.COLUMN, 3.0)
        axes = figure.subplots()
        frame = outcome.frame("grid")
        frame = frame[(frame["nodes"] == 5) & (frame["rf"] >= 3)]
        _lines(axes, frame, "loss", {name: name for name in published.FIGURE_4})
        _points(axes, published.FIGURE_4.values())
        _finish(axes)
        style.legend_above(figure, axes, 3)
    return figure


def _clusters(outcome: Results) -> Figure:
    """Draws how RF3's latency in 3, 4 and 5 nodes differs from the mean of the three.

    The paper describes these results without a figure.
    """
    with style.styled():
        figure = style.figure(2 * style.COLUMN, 2.6)
        frame = outcome.frame("grid")
        frame = frame[frame["rf"] == 3]
        # Differences from the mean are drawn, because lines of the latencies would overlap.
        common = frame.groupby(["loss", "delay", "seed"])["latency"].transform("mean")
        frame = frame.assign(latency=frame["latency"] - common)
        losses = list(LOSSES)
        panels = figure.subplots(1, len(losses), sharey=True)
        for axes, loss in zip(panels, losses, strict=True):
            part = frame[frame["loss"] == loss]
            _lines(axes, part, "nodes", {n: f"{n} nodes" for n in NODES})
            axes.set_xlabel(_DELAY)
            axes.set_title(f"{loss} loss")
        panels[0].set_ylabel("Difference from the mean over sizes (ms)")
        style.legend_above(figure, panels[0], 3)
    return figure


def _explanations(outcome: Results) -> Figure:
    """Draws simulated latency over phi, and over the prediction of the order-statistics model."""
    table = study.explanations(outcome)
    with style.styled():
        figure = style.figure(2 * style.COLUMN, 2.8)
        panels = figure.subplots(1, 2, sharey=True)
        for axes, column in zip(panels, ("phi", "order statistics"), strict=True):
            for i, (level, part) in enumerate(table.groupby("level", sort=False)):
                axes.plot(
                    part[column],
                    part["simulated"],
                    linestyle="none",
                    marker=style.marker(i),
                    color=style.colour(i),
                    label=str(level).upper(),
                )
                for _, row in part.iterrows():
                    # Labels would overlap: QUORUM's points are close to each other, and its point
                    # of RF2 equals that of ALL.
                    below = level == "quorum" and row["rf"] < 4
                    right = below or level == "one"
                    axes.annotate(
                        f"RF{row['rf']}",
                        (row[column], row["simulated"]),
                        textcoords="offset points",
                        xytext=(4 if right else -4, -8 if below else 3),
                        ha="left" if right else "right",
                        fontsize=6,
                    )
            axes.set_ylabel("Simulated mean latency (ms)")
        panels[0].set_xlabel("phi")
        panels[1].set_xlabel("Order statistics of retransmission timeouts (ms)")
        low, high = table["simulated"].min(), table["simulated"].max()
        panels[1].plot([low, high], [low, high], color="#999999", linewidth=0.8, zorder=0)
        style.legend_above(figure, panels[0], 3)
    return figure


def _sizes(outcome: Results) -> Figure:
    """Draws latency over the number of nodes at high loss, and the order-statistics model."""
    table = sizes_rows(outcome)
    with style.styled():
        figure = style.figure(style.COLUMN, 2.8)
        axes = figure.subplots()
        frame = outcome.frame("sizes")
        frame = frame[frame["loss"] == "high"].assign(delay=frame["nodes"])
        _lines(axes, frame, "rf", {rf: f"RF{rf}" for rf in (2, 3, 5)})
        for i, (_, part) in enumerate(table[table["loss"] == "high"].groupby("rf")):
            axes.plot(part["nodes"], part["model"], linestyle="none", marker="_", markersize=9,
                      color=style.colour(i))  # fmt: skip
        _finish(axes)
        axes.set_xlabel("Nodes")
        style.legend_above(figure, axes, 3)
    return figure


def sizes_rows(outcome: Results) -> pd.DataFrame:
    """Returns the latencies in up to 15 nodes: the simulated ones and the model's."""
    return study.departures(outcome, "sizes").drop(columns="delay").round(3)


def all_figures(outcome: Results) -> Drawn:
    """Returns every figure with title and caption, by file name."""
    legend = "Lines: simulated, with 95 % intervals over seeds. Hollow points: the paper's values."
    return {
        "figure-2": (
            _by_factor(outcome, "high", published.FIGURE_2),
            "Five nodes, high loss",
            f"As the paper's figure 2. {legend}",
        ),
        "figure-3": (
            _by_factor(outcome, "low", published.FIGURE_3),
            "Five nodes, low loss",
            f"As the paper's figure 3. {legend}",
        ),
        "figure-4": (
            _by_loss(outcome),
            "RF3 to RF5 by loss",
            f"As the paper's figure 4: the mean of RF3, RF4 and RF5. {legend}",
        ),
        "fewer-nodes": (
            _fewer_nodes(outcome),
            "Three and four nodes",
            "As figures 2 and 3, with 95 % intervals over seeds. No points were published.",
        ),
        "clusters": (
            _clusters(outcome),
            "RF3 in three, four and five nodes",
            (
                "Difference of the mean latency in each cluster size from the mean over the three "
                "sizes, with 95 % intervals over seeds. No points were published."
            ),
        ),
        "sizes": (
            _sizes(outcome),
            "More nodes than the paper's",
            "High loss, 50 ms. Lines: simulated, with 95 % intervals; bars: order statistics.",
        ),
        "explanations": (
            _explanations(outcome),
            "Two explanations of the latency",
            (
                f"Simulated latency in five nodes at {study.WHERE[0]} loss and a delay of "
                f"{study.WHERE[1]} ms, for three consistency levels and RF2 to RF5. Left: over "
                "phi. Right: over the prediction of the order-statistics model."
            ),
        ),
    }


def phi_rows() -> pd.DataFrame:
    """Returns phi by replication factor and number of nodes, as fractions.

    The layout is that of the paper's table 1.
    """
    return pd.DataFrame(
        [
            {"RF": rf, **{f"{n} nodes": str(row[n]) if n in row else "-" for n in NODES}}
            for rf, row in phi_table(NODES).items()
        ]
    )


def means_rows(outcome: Results) -> pd.DataFrame:
    """Returns the latencies in five nodes: the paper's, the simulated and the model's."""
    table = study.departures(outcome)
    known = published.by_cell()
    table = table[(table["nodes"] == 5) & (table["loss"] != "medium")].copy()
    keys = list(zip(table["nodes"], table["rf"], table["loss"], table["delay"], strict=True))
    table["paper"] = [known[key] for key in keys]
    table["simulated / paper"] = table["simulated"] / table["paper"]
    columns = ["rf", "loss", "delay", "paper", "simulated", "simulated / paper", "model"]
    return table[[*columns, "model / simulated"]].round(3)


def real_figures(outcome: Results) -> Drawn:
    """Returns a figure of all cells: the paper's values, and real and simulated means."""
    cells, known = outcome.size.cells, published.by_cell()
    places = range(len(cells))
    with style.styled():
        figure = style.figure(2 * style.COLUMN, 3.0)
        axes = figure.subplots()
        for i, world in enumerate((SIMULATED, REAL)):
            frame = outcome.columns[world].frames["grid"][""].set_index(list(study.KEYS))
            spans = [
                mean_interval(frame.loc[frame.index.isin([cell]), "latency"].to_numpy())
                for cell in cells
            ]
            shifted = [place + 0.16 * (i - 0.5) for place in places]
            whiskers(axes, shifted, spans, i, label=world, linestyle="none", marker=style.marker(i))
        axes.plot(
            list(places), [known.get(cell, float("nan")) for cell in cells], linestyle="none",
            marker="_", markersize=14, color="black", label="paper",
        )  # fmt: skip
        names = [f"{n} nodes\nRF{rf}, {loss}\n{d} ms" for n, rf, loss, d in cells]
        axes.set_xticks(list(places), names)
        axes.set_ylabel(_LATENCY)
        axes.set_ylim(bottom=0)
        style.legend_above(figure, axes, 3)
    caption = "Means with 95 % intervals over runs; the paper has one run of each combination."
    return {"cells": (figure, "Mean latency of writes", caption)}
