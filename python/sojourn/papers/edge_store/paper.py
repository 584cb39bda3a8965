"""The complete study: runs, verdicts, figures and text."""

from __future__ import annotations

from typing import Any

from sojourn.papers.beside import RATIO, REAL, SIMULATED, beside
from sojourn.papers.edge_store import claims, figures, published, study
from sojourn.papers.edge_store.study import KEYS
from sojourn.papers.outcome import Outcome, records
from sojourn.papers.paper import Beside, Paper, Real, Titled
from sojourn.stats.quorum import phi_table

ROOM = 0.15
"""Relative difference within which real and simulated means of a cell should agree."""

_RIG = """\
The paper's rig simulated: nodes joined to each other by links of L ms and loss p each way, a
client 10 ms away without loss, writes one after the other at QUORUM, coordinators in turn,
persistent connections of Linux's TCP. Times of service are ours, made to fit real nodes without
impairments; no other number was fitted. Each claim is told on the paper's own points first, which
have no repetitions."""


def _remarks(outcome: Outcome) -> list[str]:
    size = outcome.size
    delays = sorted({delay for *_, delay in size.cells})
    return [
        " ".join(_RIG.split()),
        (
            f"{size.writes} writes a run and {size.seeds} seeds a cell, at "
            f"{', '.join(map(str, delays))} ms; the paper has one run of each cell."
        ),
        (
            f"The claims were frozen on {claims.FROZEN}, with all earlier results known; their "
            f"runs have seeds from {claims.FIRST_SEED} on, which no earlier run had."
        ),
        *study.answer(outcome),
    ]


def _notes(outcome: Outcome) -> list[str]:
    """Returns the claims on the paper's own points, and the explanation that remains."""
    listed = [
        f"{name}: on the paper's own points {found.text}"
        for name, found in outcome.support.items()
        if found.holds is not None
    ]
    return [*listed, *study.answer(outcome)]


def _tables(outcome: Outcome) -> Titled:
    return [
        ("Claims on the paper's points and on ours", figures.claim_rows(outcome)),
        ("phi (the paper's table 1) as fractions", figures.phi_rows()),
        ("phi, order statistics, simulation", study.explanations(outcome).round(3)),
        ("The paper, the simulation, the model: ms a write", figures.beside_rows(outcome)),
    ]


def _facts(outcome: Outcome) -> dict[str, Any]:
    return {
        "seeds": outcome.size.seeds,
        "writes": outcome.size.writes,
        "phi": {
            str(rf): {str(n): str(value) for n, value in row.items()}
            for rf, row in phi_table().items()
        },
        "explanations": records(study.explanations(outcome)),
        "departures": records(study.departures(outcome)),
        "answer": study.answer(outcome),
    }


# Real nodes


def outside(outcome: Outcome) -> list[str]:
    """Returns the cells whose real and simulated means do not agree."""
    return [
        f"{row['nodes']} nodes, RF{row['rf']}, {row['loss']} loss, {row['delay']} ms: "
        f"{row[RATIO]:.2f}"
        for row in beside(outcome).to_dict("records")
        if abs(row[RATIO] - 1) > ROOM
    ]


def _real_notes(outcome: Outcome) -> list[str]:
    cells, far = len(outcome.size.cells), outside(outcome)
    close = f"within {100 * ROOM:.0f} % in {cells - len(far)} of {cells} cells"
    rest = f"; not in: {'; '.join(far)}" if far else ""
    return [f"real and simulated means are {close}{rest}"]


def _real_remarks(outcome: Outcome) -> list[str]:
    programs = ", ".join(f"{name} {version}" for name, version in outcome.about["programs"].items())
    size, seeds = outcome.size, {n: len(c.tables["grid"].seeds) for n, c in outcome.columns.items()}
    return [
        (
            f"Real nodes ({programs}) on Linux {outcome.about['kernel']}, each in a network "
            f"namespace, links by the wire: {seeds[REAL]} clusters a cell, {size.writes} writes "
            f"after a warm-up; simulated {seeds[SIMULATED]} times. The same tokens, keys and order "
            "of coordinators in both worlds. Verdicts are on the real runs."
        ),
    ]


def _real_facts(outcome: Outcome) -> dict[str, Any]:
    seeds = len(outcome.tables["grid"].seeds)
    return {"seeds": seeds, "writes": outcome.size.writes, "outside": outside(outcome)}


PAPER = Paper(
    name="edge-store",
    title="Replicated stores at the edge: replication factors under delay and loss",
    reference=(
        "P. Loganathan, D. Rauthan, A. Trivedi, V. Naik: Performance Measurement of Distributed "
        "Storage on Edge Devices"
    ),
    quick=study.QUICK,
    full=study.FULL,
    measure=study.measure,
    withdrawn=claims.WITHDRAWN,
    cluster=False,
    remarks=_remarks,
    notes=_notes,
    figures=figures.all_figures,
    tables=_tables,
    shown=("grid",),
    facts=_facts,
    published=study.published_tables,
    real=Real(
        title="Replicated stores at the edge, on real Cassandra",
        quick=study.REAL_QUICK,
        full=study.REAL_FULL,
        beside=Beside(
            part="grid", factors=KEYS, metrics=("latency",), paper=published.by_cell, unit="ms"
        ),
        estimate=study.lasting,
        remarks=_real_remarks,
        notes=_real_notes,
        figures=figures.real_figures,
        facts=_real_facts,
        no_linux="Cassandra computes for most of a request's time, and no virtual time passes then",
    ),
)
