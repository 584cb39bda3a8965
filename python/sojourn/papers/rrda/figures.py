"""Figures in the paper's layout, and tables of the page.

Of the values in its figures, the paper states only the two means of figure 9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.papers.outcome import Column
from sojourn.papers.part import Drawn
from sojourn.papers.rrda.scenarios import BUSY, COST, KNEE, MAIN, SIZES, USES, WINDOW
from sojourn.papers.rrda.study import SWEPT, Results, beaten, cost
from sojourn.papers.side_by_side import REAL
from sojourn.show import style
from sojourn.stats import mean_interval

_DRAWN = ("three ticks", "windows", "processed")
"""Alternative readings in the figures; the main reading is the first panel."""
_THROUGHPUT = "Throughput (Mbit/s)"
_PUBLISHED_COST = {"rrda": 66.1, "static": 100 * COST}
"""Mean CPU per Gbit/s in the paper's figure 9, in per cent, by policy."""


def _line(axes: Axes, number: int, values: pd.Series[float], name: str) -> None:
    axes.plot(
        values.index,
        values.to_numpy(),
        label=name,
        color=style.colour(number),
        linestyle=style.line(number),
        marker=style.marker(number),
        markersize=3,
    )


def _panels(readings: Iterable[str], draw: Callable[[Axes, str], None], x: str, y: str) -> Figure:
    """Draws a panel for each reading with `draw`; `x` and `y` are the labels of the axes."""
    names = list(readings)
    with style.styled():
        figure = style.figure(style.PAGE, 2.5)
        panels = figure.subplots(1, len(names), squeeze=False)[0]
        for axes, reading in zip(panels, names, strict=True):
            draw(axes, reading)
            axes.set_title(reading)
            axes.set_xlabel(x)
            # The axis begins at 0 even if all lines are horizontal.
            axes.set_ylim(0, 1.08 * axes.dataLim.ymax or None)
        panels[0].set_ylabel(y)
        style.legend_above(figure, panels[0], 6)
    return figure


def _over(
    frame: pd.DataFrame, study: str, metric: str, over: str, by: str, x: str, y: str
) -> Figure:
    """Draws means with 95 % intervals over factor `over`, a line for each level of factor `by`.

    There is a panel for each reading; `x` and `y` are the labels of the axes.
    """
    part = frame[frame["study"] == study]

    def draw(axes: Axes, reading: str) -> None:
        lines = part[part["reading"] == reading].groupby(by, sort=False)
        for i, (name, line) in enumerate(lines):
            runs = line.groupby(over)[metric]
            means = runs.mean()
            _line(axes, i, means, str(name))
            spans = [mean_interval(one.to_numpy()) for _, one in runs]
            low, high = [span.low for span in spans], [span.high for span in spans]
            axes.vlines(means.index.to_numpy(), low, high, color=style.colour(i), linewidth=0.8)
        if over == "bytes":
            axes.set_xscale("log")

    return _panels(dict.fromkeys(part["reading"]), draw, x, y)


def simulated(outcome: Results) -> Drawn:
    """Returns the figures of simulated runs with title and caption, by file name."""
    drawn = _all(outcome.column)
    if outcome.size.timeouts:
        caption = (
            "RRDA's results divided by a static buffer's, over the retransmission time. The "
            "claims' regions are grey."
        )
        drawn["timeouts"] = (_timeouts(outcome), "Retransmission time", caption)
    if outcome.size.memory:
        caption = (
            f"Size of RRDA's buffer if the load falls to a tenth after {BUSY} s, with three shares "
            "of memory in use. One run of each."
        )
        drawn["memory"] = (
            _memory(_together(outcome.column, "memory-", "sizes")),
            "Memory released",
            caption,
        )
    return drawn


def _together(column: Column, prefix: str, table: str = "") -> pd.DataFrame:
    """Returns a table of all parts with a prefix, with the rest of the part's name as `reading`."""
    found = {n.removeprefix(prefix): f for n, f in column.frames.items() if n.startswith(prefix)}
    return pd.concat(
        [frames[table].assign(reading=name.replace("-", " ")) for name, frames in found.items()]
    )


def real(outcome: Results) -> Drawn:
    """Returns the figures of real and of simulated runs, and the figure of the CPU cost."""
    drawn = {
        f"{name}-{world}": (figure, f"{title}, {world}", caption)
        for world, column in outcome.columns.items()
        for name, (figure, title, caption) in _all(column).items()
    }
    caption = (
        "As the paper's figure 9: CPU time of the receiving thread and of the handler. Dotted: the "
        "paper's means."
    )
    table = outcome.columns[REAL].tables["experiments"]
    return {**drawn, "cpu-overhead": (_cost(cost(table)), "CPU per Gbit/s, real", caption)}


def _cost(spent: pd.DataFrame) -> Figure:
    def draw(axes: Axes, _: str) -> None:
        for i, (policy, line) in enumerate(spent.groupby("policy", sort=False)):
            axes.plot(line["at"], line["cpu"] * 100, color=style.colour(i), label=str(policy))
            mean = _PUBLISHED_COST[str(policy)]
            axes.axhline(mean, color=style.colour(i), linestyle=":", linewidth=0.8)

    return _panels([MAIN], draw, "Time (s)", "CPU per Gbit/s (%)")


def _all(column: Column) -> dict[str, tuple[Figure, str, str]]:
    """Returns the paper's figures from one engine's runs, with title and caption, by file name."""
    main = column.frames["experiments"][""].assign(reading=MAIN)
    read = any(name.startswith("reading-") for name in column.frames)
    others = _together(column, "reading-") if read else main[:0]
    frame = pd.concat([main, others[others["reading"].isin(_DRAWN)]], ignore_index=True)
    frame["throughput"] *= 1e-6
    frame["bytes"] = frame["buffer"].map(SIZES)
    frame["GHz"] = (frame["cpu"] * 4.26).round(2).astype(str) + " GHz"
    frame["number"] = frame["clients"].astype(str) + " clients"
    less = "with half of the CPU (three ticks: 3/4)"
    clients, buffer = "Clients", "Buffer (bytes)"
    panels = {
        "static-cpu": (
            ("sizes", "throughput", "bytes", "GHz", buffer, _THROUGHPUT),
            "Static buffers and CPU",
            "As the paper's figure 2, 35 clients.",
        ),
        "static-clients": (
            ("sizes of clients", "throughput", "bytes", "number", buffer, _THROUGHPUT),
            "Static buffers and clients",
            f"As the paper's figure 3, {less}.",
        ),
        "exhaustion": (
            ("clients", "exhaustion", "clients", "policy", clients, "Messages discarded"),
            "Exhaustion",
            f"As the paper's figure 6, {less}.",
        ),
        "throughput-cpu": (
            ("cpu", "throughput", "cpu", "policy", "CPU (share of 4.26 GHz)", _THROUGHPUT),
            "Throughput and CPU",
            "As the paper's figure 7, 35 clients.",
        ),
        "throughput-clients": (
            ("clients", "throughput", "clients", "policy", clients, _THROUGHPUT),
            "Throughput and clients",
            f"As the paper's figure 8, {less}.",
        ),
    }
    there = set(frame["study"])
    drawn = {
        name: (_over(frame, *how), title, caption)
        for name, (how, title, caption) in panels.items()
        if how[0] in there
    }
    caption = (
        "As the paper's figures 4 (above: rate differences) and 5 (below: their moving averages). "
        "One run of each. The third scenario is a reconstruction."
    )
    samples = column.frames["scenarios"]["samples"]
    return {**drawn, "scenarios": (_scenarios(samples), "Rate differences", caption)}


_SCENARIOS = {
    "a": ("constant 10 Mbit/s", "Scenario 1"),
    "b": ("10 to 100 Mbit/s", "Scenario 2"),
    "c": ("spikes", "Scenario 3"),
}
"""Scenario and title of each panel of the paper's figures 4 and 5."""


def _scenarios(samples: pd.DataFrame) -> Figure:
    first = samples[samples["seed"] == samples["seed"].min()]
    with style.styled():
        figure = style.figure(style.PAGE, 3.6)
        rows = figure.subplots(2, len(_SCENARIOS), sharex=True)
        for row, values in enumerate(("difference", "average")):
            for axes, (panel, (name, title)) in zip(rows[row], _SCENARIOS.items(), strict=True):
                run = first[
                    (first["scenario"] == name) & first["epoch"].between(WINDOW[0], WINDOW[1] - 1)
                ]
                # The paper numbers epochs from 1.
                axes.bar(run["epoch"] - WINDOW[0] + 1, run[values], color=style.colour(row))
                axes.axhline(0, color="black", linewidth=0.6)
                if run[values].abs().max() < 1:  # an automatic scale would enlarge tiny values
                    axes.set_ylim(-1, 1)
                axes.set_title(f"5{panel}: average of 4{panel}" if row else f"4{panel}: {title}")
        for axes in rows[1]:
            axes.set_xlabel("Epoch of 100 ms")
        for axes in rows[:, 0]:
            axes.set_ylabel("Difference (Mbit/s)")
    return figure


def _timeouts(outcome: Results) -> Figure:
    """Draws the ratio of RRDA to a static buffer over the retransmission time, with intervals."""
    times = outcome.size.timeouts

    def over(axes: Axes, number: int, name: str, metric: str, study: str) -> None:
        spans = []
        for ms in times:
            under = "" if name == MAIN else f"under-{name}-"
            frame = outcome.frame(f"retransmission-time-{under}{ms}-ms")
            part = frame[(frame["study"] == study) & (frame["cpu"] < 1)]
            part = part[part["clients"] > KNEE]
            sums = part.groupby(["seed", "policy"])[metric].sum().unstack()
            spans.append(mean_interval((sums["rrda"] / sums["static"]).to_numpy()))
        _line(axes, number, pd.Series([s.estimate for s in spans], index=list(times)), name)
        low, high = [s.low for s in spans], [s.high for s in spans]
        axes.vlines(list(times), low, high, color=style.colour(number), linewidth=0.8)

    panels = (
        ("throughput", "cpu", (1.24, 1.36), "Throughput, 35 clients"),
        ("throughput", "clients", (1.05, 5.0), "Throughput, 20 to 35 clients"),
        ("exhaustion", "clients", (0.0707, 0.1414), "Messages discarded"),
    )
    with style.styled():
        figure = style.figure(style.PAGE, 2.5)
        drawn = figure.subplots(1, len(panels))
        for axes, (metric, study, region, label) in zip(drawn, panels, strict=True):
            axes.axhspan(*region, color="0.9")
            for number, name in enumerate(SWEPT):
                over(axes, number, name, metric, study)
            axes.set_title(label)
            axes.set_xlabel("Retransmission time (ms)")
            axes.set_xscale("log")
            axes.set_ylim(0, 1.08 * axes.dataLim.ymax)
        drawn[0].set_ylabel("RRDA / static")
        style.legend_above(figure, drawn[0], 3)
    return figure


def _memory(sizes: pd.DataFrame) -> Figure:
    def draw(axes: Axes, reading: str) -> None:
        for i, used in enumerate(USES):
            run = sizes[(sizes["reading"] == reading) & (sizes["used"] == used)]
            run = run[run["seed"] == run["seed"].min()]
            axes.plot(
                run["at"] / 1e9, run["size"] / 2**20, color=style.colour(i),
                linestyle=style.line(i), label=f"{used:.0%} of memory in use",
            )  # fmt: skip

    return _panels(dict.fromkeys(sizes["reading"]), draw, "Time (s)", "Size (MiB)")


def grid(outcome: Results) -> pd.DataFrame:
    """Returns the means of all compared policies at each point of the grid of open loads."""
    means = outcome.frame("grid").groupby(["point", "policy"], sort=False).mean(numeric_only=True)
    better = beaten(outcome)
    rows = []
    for key, row in means.iterrows():
        point, policy = str(key[0]), str(key[1])  # type: ignore[index]
        rows.append(
            {
                "point": point,
                "policy": policy,
                "discarded %": round(row["discards"] * 100, 3),
                "peak MiB": round(row["peak_size"] / 2**20, 1),
                "mean MiB": round(row["mean_size"] / 2**20, 1),
                "p50 ms": round(row["sojourn_p50"] * 1e3, 1),
                "p99 ms": round(row["sojourn_p99"] * 1e3, 1),
                "better than elastic": "yes" if policy in better[point] else "",
            }
        )
    return pd.DataFrame(rows)


def decisions(outcome: Results) -> pd.DataFrame:
    """Returns the share of epochs in which equation 2 decides, by scenario and direction.

    Equation 2 is applied to rate differences and to their moving averages.
    """
    shares = outcome.frame("scenarios").groupby(["scenario", "values"], sort=False)
    means = shares[["increases", "decreases"]].mean().map(lambda share: f"{100 * share:.0f} %")
    return means.reset_index()
