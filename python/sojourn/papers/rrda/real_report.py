"""The report on the real runs: verdicts in both worlds, their figures side by side, each metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.papers.rrda.real import COLUMNS, TITLE, rows
from sojourn.papers.rrda.report import READINGS
from sojourn.papers.rrda.study import NAME, PAPER

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from matplotlib.figure import Figure

    from sojourn.papers.rrda.real import Outcome

_HANDLER = """\
The handler takes 37.5 MB/s; it needs a processor for two fifths of that time and waits for the
rest. Less CPU is a quota on that processor time, in periods of 100 ms. The other threads are not
limited. Clients are threads of one process; each sends at 100 Mbit/s at most, or at its part of
1 Gbit/s, in datagrams of 1452 bytes, by stop-and-wait, with our congestion control. A message whose
first fragment finds no room is discarded once for each time that it is sent. RRDA sees this
machine's memory."""


def remarks(outcome: Outcome) -> list[str]:
    """What a reader has to know before the verdicts."""
    size = outcome.size
    return [
        (
            f"Real runs of {size.seconds:g} s from the start, {size.seeds} seeds, between two "
            "network namespaces, one after the other. The same servers were simulated with the "
            "same seeds. Verdicts are on the real runs."
        ),
        " ".join(READINGS.split()),
        " ".join(_HANDLER.split()),
        *outcome.notes,
    ]


def means(outcome: Outcome) -> pd.DataFrame:
    """Every cell in both worlds, for people."""
    frame = outcome.beside
    for world in ("simulated", "real"):
        frame[f"Mbit/s {world}"] = (frame.pop(f"throughput {world}") / 1e6).round(1)
        frame[f"discarded % {world}"] = (frame.pop(f"exhaustion {world}") * 100).round(2)
    return frame


def cost(outcome: Outcome) -> Figure:
    """The paper's figure 9."""
    from sojourn.papers.rrda import scenarios
    from sojourn.show import style

    with style.styled():
        figure = style.figure(2 * style.COLUMN, 2.6)
        panels = figure.subplots(1, 2)
        for axes, reading in zip(panels, scenarios.READINGS, strict=True):
            part = outcome.cost[outcome.cost["reading"] == reading]
            for i, (policy, line) in enumerate(part.groupby("policy", sort=False)):
                axes.plot(line["at"], line["cpu"] * 100, color=style.colour(i), label=str(policy))
            axes.set_title(f"acknowledged when {reading}")
            axes.set_xlabel("Time (s)")
            axes.set_ylabel("CPU per Gbit/s (%)")
            axes.set_ylim(bottom=0)
        style.legend_above(figure, panels[0], 6)
    return figure


def show(outcome: Outcome) -> list[Path]:
    """Writes the figures and the report; gives their paths, the report first."""
    import pandas as pd

    from sojourn.papers.rrda import figures
    from sojourn.show import paper_page, paper_report

    drawn = {}
    for world, found in (("real", outcome.real), ("simulated", outcome.simulated)):
        for name, (figure, title, caption) in figures.all_figures(found).items():
            drawn[f"{name}-{world}"] = (figure, f"{title}, {world}", caption)
    caption = "As the paper's figure 9: time of the receiving thread and of the handler."
    drawn["cpu-overhead"] = (cost(outcome), "CPU, real", caption)
    page = paper_page(
        title=TITLE,
        reference=PAPER,
        judgements=outcome.judgements,
        results={},
        figures=list(drawn.values()),
        tables=[
            ("Verdicts in both worlds", pd.DataFrame(rows(outcome), columns=COLUMNS)),
            ("Means in both worlds", means(outcome)),
        ],
        remarks=remarks(outcome),
        commands=[f"sojourn paper {NAME} --real{' --quick' if outcome.quick else ''}"],
        units=outcome.units,
    )
    return paper_report(outcome.folder, page, {name: one[0] for name, one in drawn.items()})
