"""Figures laid out as the paper's, and the tables beside them."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.papers.beside import REAL
from sojourn.papers.outcome import Column, Outcome
from sojourn.papers.paper import Drawn
from sojourn.papers.rrda.scenarios import RATES, READINGS
from sojourn.papers.rrda.study import beaten, cost
from sojourn.show import style

_WORDS = {"clients": "Clients", "cpu": "CPU (share of 4.26 GHz)"}


def _lines(axes: Axes, frame: pd.DataFrame, metric: str, over: str, by: str) -> None:
    for i, (name, part) in enumerate(frame.groupby(by, sort=False)):
        means = part.groupby(over)[metric].mean()
        axes.plot(
            means.index,
            means.to_numpy(),
            label=str(name),
            color=style.colour(i),
            linestyle=style.line(i),
            marker=style.marker(i),
            markersize=3,
        )
    axes.set_xlabel(_WORDS[over])


def _pairs(
    frame: pd.DataFrame,
    study: str,
    metric: str,
    over: str,
    by: str,
    title: str,
    scale: float = 1.0,
) -> Figure:
    """One panel a reading."""
    with style.styled():
        figure = style.figure(2 * style.COLUMN, 2.6)
        panels = figure.subplots(1, 2)
        for axes, reading in zip(panels, READINGS, strict=True):
            part = frame[(frame["study"] == study) & (frame["reading"] == reading)].copy()
            part[metric] *= scale
            _lines(axes, part, metric, over, by)
            axes.set_title(f"acknowledged when {reading}")
            axes.set_ylabel(title)
            # Also where all lines are one and level.
            axes.set_ylim(0, 1.08 * axes.dataLim.ymax or None)
        style.legend_above(figure, panels[0], 6)
    return figure


def simulated(outcome: Outcome) -> Drawn:
    """The paper's figures."""
    return _all(outcome.column)


def real(outcome: Outcome) -> Drawn:
    """The same of both columns, and the cost of CPU."""
    drawn = {
        f"{name}-{world}": (figure, f"{title}, {world}", caption)
        for world, column in outcome.columns.items()
        for name, (figure, title, caption) in _all(column).items()
    }
    caption = "As the paper's figure 9: time of the receiving thread and of the handler."
    table = outcome.columns[REAL].tables["experiments"]
    return {**drawn, "cpu-overhead": (_cost(cost(table)), "CPU, real", caption)}


def _cost(spent: pd.DataFrame) -> Figure:
    with style.styled():
        figure = style.figure(2 * style.COLUMN, 2.6)
        panels = figure.subplots(1, 2)
        for axes, reading in zip(panels, READINGS, strict=True):
            part = spent[spent["reading"] == reading]
            for i, (policy, line) in enumerate(part.groupby("policy", sort=False)):
                axes.plot(line["at"], line["cpu"] * 100, color=style.colour(i), label=str(policy))
            axes.set_title(f"acknowledged when {reading}")
            axes.set_xlabel("Time (s)")
            axes.set_ylabel("CPU per Gbit/s (%)")
            axes.set_ylim(bottom=0)
        style.legend_above(figure, panels[0], 6)
    return figure


def _all(column: Column) -> Drawn:
    """Every figure with title and caption, by file name."""
    mbit = "Throughput (Mbit/s)"
    pairs = {
        "static-cpu": (
            ("sizes", "throughput", "cpu", "buffer", mbit, 1e-6),
            "Static buffers and CPU",
            "As the paper's figure 2, 35 clients.",
        ),
        "static-clients": (
            ("sizes of clients", "throughput", "clients", "buffer", mbit, 1e-6),
            "Static buffers and clients",
            "As the paper's figure 3.",
        ),
        "exhaustion": (
            ("clients", "exhaustion", "clients", "policy", "Messages discarded", 1.0),
            "Exhaustion",
            "As the paper's figure 6: discarded messages among those that arrived.",
        ),
        "throughput-cpu": (
            ("cpu", "throughput", "cpu", "policy", mbit, 1e-6),
            "Throughput and CPU",
            "As the paper's figure 7, 35 clients.",
        ),
        "throughput-clients": (
            ("clients", "throughput", "clients", "policy", mbit, 1e-6),
            "Throughput and clients",
            "As the paper's figure 8.",
        ),
    }
    frame = column.frames["experiments"][""]
    there = set(frame["study"])
    drawn = {
        name: (_pairs(frame, *how), title, caption)
        for name, (how, title, caption) in pairs.items()
        if how[0] in there
    }
    return {
        **drawn,
        "scenarios": (
            _scenarios(column.frames["scenarios"][""]),
            "Rate differences",
            "As the paper's figures 4 (bars) and 5 (lines, the moving average): one run of each.",
        ),
    }


def _scenarios(samples: pd.DataFrame) -> Figure:
    with style.styled():
        figure = style.figure(2 * style.COLUMN, 2.4)
        for axes, name in zip(figure.subplots(1, len(RATES)), RATES, strict=True):
            run = samples[(samples["scenario"] == name) & (samples["seed"] == 1)]
            axes.bar(run["epoch"], run["difference"], color=style.colour(0), alpha=0.5)
            axes.plot(run["epoch"], run["average"], color=style.colour(1))
            axes.set_title(name)
            axes.set_xlabel("Epoch of 100 ms")
            axes.set_ylabel("Difference (Mbit/s)")
    return figure


def grid(outcome: Outcome) -> pd.DataFrame:
    """All policies on the grid."""
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


def shapes(outcome: Outcome) -> pd.DataFrame:
    """How often three epochs in a row have one sign, in the three scenarios, over all runs."""
    rows = []
    for name, part in outcome.frame("scenarios").groupby("scenario", sort=False):
        shares = {}
        for column in ("difference", "average"):
            runs = [one[column].to_numpy() for _, one in part.groupby("seed")]
            up = sum(int((r[2:] > 0)[(r[1:-1] > 0) & (r[:-2] > 0)].sum()) for r in runs)
            down = sum(int((r[2:] < 0)[(r[1:-1] < 0) & (r[:-2] < 0)].sum()) for r in runs)
            all_ = sum(len(r) - 2 for r in runs)
            shares[f"{column}: three above zero"] = f"{100 * (up / all_):.0f} %"
            shares[f"{column}: three below"] = f"{100 * (down / all_):.0f} %"
        rows.append({"scenario": name, **shares})
    return pd.DataFrame(rows)
