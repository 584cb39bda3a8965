"""The study's report: what a reader has to know, figures, tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.papers.rrda.study import PAPER, TITLE

if TYPE_CHECKING:
    from pathlib import Path

    from sojourn.papers.rrda.study import Outcome

READINGS = """\
The paper leaves open the message size, the handler and when a message is acknowledged, and they
decide everything: each claim is judged under two readings. *processed*: 64 KiB messages,
acknowledged when the handler is done with them, a handler of constant speed. *enqueued*: 8 KiB
messages, acknowledged when they are buffered, a handler that pauses for 300 ms in every 1.2 s."""

_RRDA = """\
RRDA is a reconstruction: rates are bytes in an epoch, discarded ones included, and the k epochs of
equation 2 end with the one of equation 4. Less CPU is a quota in periods of 100 ms, as control
groups have it. The retransmission timeout is 200 ms and up to half more, drawn, so that losses do
not march in step with pauses."""


def remarks(outcome: Outcome) -> list[str]:
    """What a reader has to know before the verdicts."""
    size = outcome.size
    return [
        " ".join(READINGS.split()),
        " ".join(_RRDA.split()),
        (
            f"Simulated: runs of {size.seconds:g} s from the start, {size.seeds} seeds; "
            f"{size.grid_seeds} for the comparison of policies, "
            f"{size.grid:g} s each with a twelfth of warm-up."
        ),
        *outcome.notes,
    ]


def show(outcome: Outcome) -> list[Path]:
    """Writes the figures and the report; gives their paths, the report first."""
    from sojourn.papers.rrda import figures
    from sojourn.show import paper_page, paper_report

    drawn = figures.all_figures(outcome)
    page = paper_page(
        title=TITLE,
        reference=PAPER,
        judgements=outcome.judgements,
        results={},
        figures=list(drawn.values()),
        tables=[
            ("Policies compared", figures.grid(outcome)),
            ("Signs in a row (equation 2)", figures.shapes(outcome)),
        ],
        remarks=remarks(outcome),
        commands=[f"sojourn paper rrda{' --quick' if outcome.quick else ''}"],
        units=outcome.units,
    )
    return paper_report(outcome.folder, page, {name: one[0] for name, one in drawn.items()})
