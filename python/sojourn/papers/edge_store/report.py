"""The study's report: what a reader has to know, figures, tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.papers.edge_store.study import PAPER, TITLE

if TYPE_CHECKING:
    from pathlib import Path

    from sojourn.papers.edge_store.study import Outcome

_RIG = """\
The paper's rig simulated: nodes joined to each other by links of L ms and loss p each way, a
client 10 ms away without loss, writes one after the other at QUORUM, coordinators in turn,
persistent connections of Linux's TCP. Times of service are ours, made to fit real nodes without
impairments; no other number was fitted. Each claim is told on the paper's own points first, which
have no repetitions."""


def remarks(outcome: Outcome) -> list[str]:
    """What a reader has to know before the verdicts."""
    size = outcome.size
    return [
        " ".join(_RIG.split()),
        (
            f"{size.writes} writes a run and {size.seeds} seeds a cell, at "
            f"{', '.join(map(str, size.delays))} ms; the paper has one run of each cell."
        ),
        *outcome.answer(),
    ]


def show(outcome: Outcome) -> list[Path]:
    """Writes the figures and the report; gives their paths, the report first."""
    from sojourn.papers.edge_store import figures
    from sojourn.show import paper_page, paper_report

    drawn = figures.all_figures(outcome)
    page = paper_page(
        title=TITLE,
        reference=PAPER,
        judgements=outcome.judgements,
        results={},
        figures=list(drawn.values()),
        tables=[
            ("Claims on the paper's points and on ours", figures.claim_rows(outcome)),
            ("phi (the paper's table 1) as fractions", figures.phi_rows()),
            ("phi, order statistics, simulation", outcome.explanations().round(3)),
            ("The paper, the simulation, the model: ms a write", figures.beside_rows(outcome)),
        ],
        remarks=remarks(outcome),
        commands=[f"sojourn paper edge-store{' --quick' if outcome.quick else ''}"],
        units=outcome.units,
    )
    return paper_report(outcome.folder, page, {name: one[0] for name, one in drawn.items()})
