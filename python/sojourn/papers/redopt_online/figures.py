"""Two figures: the queue over time in each course, and the means of queue, loss and goodput."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from sojourn.papers.drawing import whiskers
from sojourn.papers.outcome import Outcome
from sojourn.papers.paper import Drawn
from sojourn.papers.redopt_online import scenarios
from sojourn.papers.redopt_online.claims import ONLINE, fixed
from sojourn.show import style
from sojourn.stats import mean_interval

_METRICS = {
    "queue": ("Mean queue (packets)", 1.0),
    "udp_loss": ("UDP loss (%)", 100.0),
    "goodput": ("TCP goodput (Mbit/s)", 1e-6),
}


def _courses(outcome: Outcome) -> Figure:
    """Draws the mean queue over time, a panel for each course.

    Lines: REDopt on-line, and REDopt set for the smallest and the largest number of flows.
    """
    frame, size = outcome.frame("courses", "series"), outcome.size
    with style.styled():
        figure = style.figure(2 * style.COLUMN, 2.6)
        panels = figure.subplots(1, len(size.courses), sharey=True, squeeze=False)[0]
        shown = (ONLINE, fixed(size.loads[0]), fixed(size.loads[-1]))
        for axes, course in zip(panels, map(scenarios.name, size.courses), strict=True):
            for i, name in enumerate(shown):
                part = frame[(frame["course"] == course) & (frame["mechanism"] == name)]
                mean = part.groupby("time")["bottleneck.queue"].mean().rolling(5).mean()
                axes.plot(mean, label=name, color=style.colour(i), linestyle=style.line(i), lw=1)
            axes.set_title(f"{course} flows")
            axes.set_xlabel("Time (s)")
        panels[0].set_ylabel("Queue (packets)")
        style.legend_above(figure, panels[0], len(shown))
    return figure


def _means(outcome: Outcome) -> Figure:
    frame, size = outcome.frame("courses"), outcome.size
    frame = frame[frame["when"] == "later"]
    with style.styled():
        figure = style.figure(2 * style.COLUMN, 2.8)
        panels = figure.subplots(1, len(_METRICS))
        for axes, (metric, (label, scale)) in zip(panels, _METRICS.items(), strict=True):
            for i, name in enumerate(size.mechanisms):
                part = frame[frame["mechanism"] == name]
                spans = [
                    mean_interval(
                        part[part["flows"] == n].groupby("seed")[metric].mean().to_numpy() * scale
                    )
                    for n in size.loads
                ]
                whiskers(
                    axes, range(len(size.loads)), spans, i, label=name, marker=style.marker(i),
                    linestyle=style.line(i), linewidth=1, markersize=3,
                )  # fmt: skip
            axes.set_xticks(range(len(size.loads)), list(map(str, size.loads)))
            axes.set_xlabel("TCP flows")
            axes.set_ylabel(label)
        style.legend_above(figure, panels[0], 4)
    return figure


def drawn(outcome: Outcome) -> Drawn:
    """Returns the figures `courses` and `means`, each with title and caption."""
    return {
        "courses": (_courses(outcome), "The queue while flows start and stop", "Means over seeds."),
        "means": (
            _means(outcome),
            "Queue, UDP loss and TCP goodput of each mechanism",
            "Second halves of the phases; 95 % intervals over seeds.",
        ),
    }


def settings(outcome: Outcome) -> pd.DataFrame:
    """Returns the verified parameters of REDopt: a row for each number of flows."""
    return pd.DataFrame(
        {"flows": n, "min": p.minimum, "max": p.maximum, "buffer": p.limit,
         "max_p": round(p.max_p, 4), "weight": p.weight}
        for n, p in outcome.found["settings"].items()
    )  # fmt: skip


def means(outcome: Outcome) -> pd.DataFrame:
    """Returns means over seeds and courses for each mechanism, number of flows and time span."""
    keys = ["mechanism", "flows", "when"]
    metrics = ["queue", "swing", "goodput", "udp_loss"]
    found = outcome.frame("courses").groupby(keys, sort=False)[metrics].mean()
    return found.round(4).reset_index()
