"""Figures in the paper's layout, and figures of the sweeps and of real runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.papers.drawing import whiskers
from sojourn.papers.part import Drawn
from sojourn.papers.queue_lb import analysis, published
from sojourn.papers.queue_lb.scenarios import AGEING, BENCHMARKS, NETWORKS, OTHERS
from sojourn.papers.queue_lb.study import Results, name_of
from sojourn.show import style
from sojourn.stats import mean_interval, paired_ratio
from sojourn.study.cells import Level

_SHORT = {"queue delay": "q. delay", "connections": "conn."}


def boxes(outcome: Results, experiment: str) -> Figure:
    """Draws the paper's figures 4 to 9 (`IQLB`) or 10 to 15 (`QTM`) in the main reading."""
    size, frame = outcome.size, outcome.frame("iperf", "pooled")
    paper = published.throughputs()
    number = FIRST[experiment]
    with style.styled():
        figure = style.figure(style.PAGE, 2.1 * len(size.clients))
        grid = figure.subplots(len(size.clients), len(size.transports), squeeze=False)
        for row, clients in zip(grid, size.clients, strict=True):
            for axes, transport in zip(row, size.transports, strict=True):
                part, printed = (
                    f[(f["clients"] == clients) & (f["transport"] == transport)]
                    for f in (frame, paper)
                )
                _boxes(axes, part, printed, analysis.SETS[experiment])
                axes.set_title(f"Figure {number}: {clients} clients, {transport}")
                axes.set_ylabel("Mbit/s a client")
                number += 1
        style.legend_above(figure, grid[0][0], 1)
    return figure


FIRST = {"IQLB": 4, "QTM": 10}
"""Number of the paper's first figure of each set of experiments."""


def _boxes(axes: Axes, part: pd.DataFrame, printed: pd.DataFrame, policies: Sequence[str]) -> None:
    values = [part[part["policy"] == p]["throughput"].to_numpy() / 1e6 for p in policies]
    drawn: dict[str, Any] = axes.boxplot(
        values, widths=0.6, patch_artist=True, showmeans=True, flierprops={"markersize": 2}
    )
    for policy, box in zip(policies, drawn["boxes"], strict=True):
        box.set(facecolor=style.colour(1 if policy in analysis.SETS else 0), alpha=0.35)
    for line in drawn["medians"]:
        line.set(color="black")
    for mean in drawn["means"]:
        mean.set(marker="D", markersize=2.5, markerfacecolor="black", markeredgecolor="black")
    x = range(1, len(policies) + 1)
    means = printed.set_index("policy")["throughput"]
    axes.plot(
        x, [means[p] / 1e6 for p in policies], linestyle="", marker="x", markersize=5,
        color=style.colour(3), label="the paper's means (table 4)", zorder=5,
    )  # fmt: skip
    axes.set_xticks(x, policies)
    axes.set_ylim(bottom=0)


def gains(outcome: Results) -> Figure:
    """Draws the gains over the mean throughput of the four benchmarks, with 95 % intervals.

    There is a panel for each reading of the ports, and a series for IQLB, QTM and each policy of
    `OTHERS`.
    """
    size, frames = outcome.size, by_ports(outcome)
    shown = ("IQLB", "QTM", *OTHERS)
    printed = published.throughputs().pivot_table(
        index=["clients", "transport"], columns="policy", values="throughput"
    )
    with style.styled():
        figure = style.figure(style.PAGE, 2.8)
        panels = figure.subplots(1, len(frames), sharey=True, squeeze=False)[0]
        for axes, (name, frame) in zip(panels, frames.items(), strict=True):
            ticks = [(c, t) for t in size.transports for c in size.clients]
            for i, policy in enumerate(shown):
                points = []
                for clients, transport in ticks:
                    part = frame[(frame["clients"] == clients) & (frame["transport"] == transport)]
                    by = part.pivot_table(index="seed", columns="policy", values="throughput")
                    others = by[list(BENCHMARKS)].mean(axis=1)
                    points.append(paired_ratio(by[policy].to_numpy(), others.to_numpy()))
                x = [k + (i - (len(shown) - 1) / 2) * 0.17 for k in range(len(ticks))]
                y = [100 * (p.estimate - 1) for p in points]
                low = [100 * (p.estimate - p.low) for p in points]
                high = [100 * (p.high - p.estimate) for p in points]
                axes.errorbar(
                    x, y, yerr=[low, high], fmt=style.marker(i), color=style.colour(i),
                    markersize=3, linewidth=0.8, label=policy,
                )  # fmt: skip
                if policy in analysis.SETS:
                    means = printed.loc[ticks]
                    gain = 100 * (means[policy] / means[list(BENCHMARKS)].mean(axis=1) - 1)
                    axes.plot(
                        x, gain, linestyle="", marker="x", markersize=4, color=style.colour(i),
                        label=f"{policy} in the paper",
                    )  # fmt: skip
            axes.axhline(0, color="black", linewidth=0.6)
            axes.set_title(name)
            axes.set_xticks(range(len(ticks)), [f"{c} {t}" for c, t in ticks], rotation=45)
        panels[0].set_ylabel("Gain over the benchmarks (%)")
        style.legend_above(figure, panels[0], 4)
    return figure


def by_ports(outcome: Results) -> dict[str, pd.DataFrame]:
    """Returns the runs with all policies, by the reading of the ports."""
    return {
        name or f"ports of {NETWORKS[name].ports}": outcome.frame(name_of(name))
        for name in outcome.size.networks
    }


def spacings(outcome: Results) -> Figure:
    """Draws the gain of LBW, IQLB and QTM over random and RR, by the time between two starts."""
    frame = outcome.frame("spacings")
    with style.styled():
        figure = style.figure(style.PAGE, 2.6)
        axes = figure.subplots()
        by = frame.pivot_table(index=["apart", "seed"], columns="policy", values="throughput")
        for i, policy in enumerate(("LBW", "IQLB", "QTM")):
            points = [
                paired_ratio(
                    part[policy].to_numpy(), part[["random", "RR"]].mean(axis=1).to_numpy()
                )
                for _, part in by.groupby("apart")
            ]
            apart = sorted(set(frame["apart"]))
            y = [100 * (p.estimate - 1) for p in points]
            low = [100 * (p.estimate - p.low) for p in points]
            high = [100 * (p.high - p.estimate) for p in points]
            axes.errorbar(
                apart, y, yerr=[low, high], fmt=f"{style.marker(i)}-", color=style.colour(i),
                markersize=3, linewidth=0.8, label=policy,
            )  # fmt: skip
        axes.axhline(0, color="black", linewidth=0.6)
        axes.axvline(1, color="black", linewidth=0.6, linestyle=":")
        style.logarithmic(axes, "x")
        axes.set_xlabel("Time between two starts (s); dotted: QTM's period")
        axes.set_ylabel("Gain over random and RR (%)")
        style.legend_above(figure, axes, 3)
    return figure


def ages(outcome: Results) -> Figure:
    """Draws the sweep over information age: completion times, and repeated choices of a server."""
    table = analysis.ages(outcome.frame("ages"))
    columns = (
        ("FCT p99 ms", "Completion, p99 (ms)"),
        ("FCT mean ms", "Completion, mean (ms)"),
        ("same server as before %", "Same server as before (%)"),
    )
    least = 0.005
    with style.styled():
        figure = style.figure(style.PAGE, 2.6)
        panels = figure.subplots(1, len(columns))
        for axes, (column, label) in zip(panels, columns, strict=True):
            for i, policy in enumerate(AGEING):
                part = table[table["policy"] == policy]
                if "{age}" in AGEING[policy]:
                    # The first line is the widest, so that it remains visible under an equal line.
                    axes.plot(
                        part["period s"].clip(lower=least), part[column], label=policy,
                        color=style.colour(i), linestyle=style.line(i), marker=style.marker(i),
                        markersize=max(6 - 2.5 * i, 3), linewidth=max(2.8 - 1.7 * i, 1),
                    )  # fmt: skip
                else:
                    axes.axhline(
                        float(part[column].iloc[0]), label=policy, color=style.colour(i),
                        linestyle=style.line(i), linewidth=0.9,
                    )  # fmt: skip
            style.logarithmic(axes, "x")
            axes.set_xlabel("Period (s); leftmost: at each choice")
            axes.set_ylabel(label)
            if "FCT" in column:
                style.logarithmic(axes, "y")
            else:
                axes.set_ylim(bottom=0)
        style.legend_above(figure, panels[0], 7)
    return figure


def worlds(outcome: Results) -> Figure:
    """Draws the throughput of clients by policy, real and simulated.

    Dashes are runs; markers are their means with 95 % intervals.
    """
    size = outcome.size
    frames = {world: column.frames["iperf"][""] for world, column in outcome.columns.items()}
    with style.styled():
        figure = style.figure(style.PAGE, 0.6 + 2.0 * len(size.clients))
        grid = figure.subplots(len(size.clients), len(size.transports), squeeze=False)
        for row, clients in zip(grid, size.clients, strict=True):
            for axes, transport in zip(row, size.transports, strict=True):
                cell: dict[str, Level] = {"transport": transport, "clients": clients}
                _worlds(axes, frames, cell, size.policies)
                axes.set_title(f"{clients} clients, {transport}")
        for row in grid:
            row[0].set_ylabel("Mbit/s a client")
        style.legend_above(figure, grid[0][0], len(frames))
    return figure


def _worlds(
    axes: Axes,
    frames: Mapping[str, pd.DataFrame],
    cell: Mapping[str, Level],
    policies: Sequence[str],
) -> None:
    most = 0.0
    for i, (world, frame) in enumerate(frames.items()):
        rows = frame
        for factor, level in cell.items():
            rows = rows[rows[factor] == level]
        x = [k + (i - (len(frames) - 1) / 2) * 0.3 for k in range(len(policies))]
        values = [rows[rows["policy"] == p]["throughput"].to_numpy() / 1e6 for p in policies]
        most = max(most, *(float(v.max()) for v in values))
        for at, runs in zip(x, values, strict=True):
            axes.plot(
                [at + 0.08] * len(runs), runs, linestyle="", marker="_", markersize=4,
                markeredgewidth=0.6, color=style.colour(i), alpha=0.7,
            )  # fmt: skip
        intervals = [mean_interval(runs) for runs in values]
        whiskers(
            axes, x, intervals, i, fmt=style.marker(i), markersize=3.5, linewidth=0.8, label=world
        )
    axes.set_xticks(range(len(policies)), [_SHORT.get(p, p) for p in policies])
    # The scale follows the runs, because the confidence interval of two runs may be far wider
    # than their range.
    axes.set_ylim(0, 1.5 * most)


def real(outcome: Results) -> Drawn:
    """Returns the real study's figure with title and caption, by file name."""
    return {
        "worlds": (
            worlds(outcome),
            "Throughput of clients in real and simulated runs",
            (
                "A dash is the mean of a run's clients. Markers are means of runs with 95 % "
                "intervals, which are wide with few seeds and may leave the panel."
            ),
        )
    }


def simulated(outcome: Results) -> Drawn:
    """Returns every figure with title and caption, by file name."""
    found = {
        f"throughput-{experiment.lower()}": (
            boxes(outcome, experiment),
            f"Throughput of clients, {experiment}'s experiments",
            (
                "As the paper's figures 4 to 9 (IQLB) and 10 to 15 (QTM). A box contains all "
                "clients, rounds and seeds; a diamond is the mean."
            ),
        )
        for experiment in analysis.SETS
    }
    if outcome.size.networks:
        found["gains"] = (
            gains(outcome),
            "Gain over the mean of random, round robin, LBW and SLPLB",
            "Runs are paired by seed; 95 % intervals (Fieller). Crosses: the paper's table 4.",
        )
    if outcome.size.sweep:
        found["spacings"] = (
            spacings(outcome),
            "Gain by the time between two clients' starts",
            (
                "10 UDP clients, ports of 25 and 125 Mbit/s. An iperf lasts 14 times the time "
                "between two starts."
            ),
        )
        found["ages"] = (
            ages(outcome),
            "Age of information",
            (
                "Heavy-tailed transfers that begin at random times, with 70 % load on four ports "
                "of 40 Mbit/s. JSQ's wide line coincides with IQLB's: if all queues have the same "
                "limit, both policies choose the same server."
            ),
        )
    return found
