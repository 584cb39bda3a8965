"""The study as a `Paper`: its texts, tables and JSON fields."""

from __future__ import annotations

from sojourn.papers.bench import every
from sojourn.papers.edge_store import claims, figures, published, study
from sojourn.papers.edge_store.study import KEYS, Results
from sojourn.papers.outcome import Facts, Real, records
from sojourn.papers.paper import Paper
from sojourn.papers.part import Titled
from sojourn.papers.side_by_side import RATIO, REAL, SIMULATED, MeansTable, beside
from sojourn.stats.quorum import phi_table

ROOM = 0.15
"""Maximum relative difference at which real and simulated means of a cell agree."""

_RIG = """\
The paper's testbed is simulated. Every two nodes are connected by links with a delay of L ms and a
loss of p in each direction; the client is 10 ms away without loss. The client sends writes one
after the other at QUORUM, to the coordinators in turn, over persistent connections of Linux's TCP.
Service times were fitted to our own runs of real nodes without delay and loss; no other number was
fitted. Each claim is first judged on the paper's own points, which have no repetitions."""


def _remarks(outcome: Results) -> list[str]:
    size = outcome.size
    delays = sorted({delay for *_, delay in size.cells})
    return [
        " ".join(_RIG.split()),
        (
            f"Each run has {size.writes} writes. Delays: {', '.join(map(str, delays))} ms. Each "
            f"combination of factor levels has {size.seeds} seeds here, one run in the paper."
        ),
        *study.answer(outcome),
    ]


def _tables(outcome: Results) -> Titled:
    return [
        ("phi (the paper's table 1) as fractions", figures.phi_rows()),
        (
            "phi, and latency in ms by order statistics and by simulation",
            study.explanations(outcome).round(3),
        ),
        (
            "Latency in ms by number of nodes, simulated and by the model",
            figures.sizes_rows(outcome),
        ),
        (
            "Mean latency of a write in ms: paper, simulation, order-statistics model",
            figures.means_rows(outcome),
        ),
    ]


def _facts(outcome: Results) -> Facts:
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


def outside(outcome: Results) -> list[str]:
    """Returns the cells whose real and simulated means differ by more than `ROOM`.

    The text of a cell ends with the ratio of the real to the simulated mean.
    """
    return [
        f"{row['nodes']} nodes, RF{row['rf']}, {row['loss']} loss, {row['delay']} ms: "
        f"{row[RATIO]:.2f}"
        for row in outcome.means().to_dict("records")
        if abs(row[RATIO] - 1) > ROOM
    ]


def _real_notes(outcome: Results) -> list[str]:
    cells, far = len(outcome.size.cells), outside(outcome)
    close = f"within {100 * ROOM:.0f} % in {cells - len(far)} of {cells} cells"
    rest = f"; real / simulated of the others: {'; '.join(far)}" if far else ""
    return [f"real and simulated means are {close}{rest}"]


def _real_remarks(outcome: Results) -> list[str]:
    programs = ", ".join(f"{name} {version}" for name, version in outcome.about["programs"].items())
    size, seeds = outcome.size, {n: len(c.tables["grid"].seeds) for n, c in outcome.columns.items()}
    return [
        (
            f"Real nodes ({programs}) run on Linux {outcome.about['kernel']}, each in its own "
            f"network namespace; the wire emulates the links. Each combination of factor levels "
            f"has {seeds[REAL]} real clusters, each with {size.writes} writes after a warm-up, and "
            f"{seeds[SIMULATED]} simulated runs. Real and simulated runs have the same tokens, "
            "keys and order of coordinators. The verdicts are from the real runs."
        ),
    ]


def _real_facts(outcome: Results) -> Facts:
    seeds = len(outcome.tables["grid"].seeds)
    return {"seeds": seeds, "writes": outcome.size.writes, "outside": outside(outcome)}


_MEANS = MeansTable(
    part="grid", factors=KEYS, metrics=("latency",), paper=published.by_cell, unit="ms"
)

PAPER = Paper(
    name="edge-store",
    title="Replicated stores at the edge: replication factors under delay and loss",
    reference=(
        "P. Loganathan, D. Rauthan, A. Trivedi, V. Naik: Performance Measurement of Distributed "
        "Storage on Edge Devices"
    ),
    quick=study.QUICK,
    full=study.FULL,
    mechanism="rf",
    measure=every(study.parts),
    work=study.work,
    question="Which replication factor has the lowest latency on links with delay and loss?",
    first_seed=claims.FIRST_SEED,
    conditions=claims.CONDITIONS,
    declared=claims.DECLARED,
    compared=lambda outcome: beside(
        outcome.frame("grid"), _MEANS, lambda cell: f"latency at {cell['loss']} loss"
    ),
    withdrawn=claims.WITHDRAWN,
    cluster=False,
    remarks=_remarks,
    notes=study.answer,
    figures=figures.all_figures,
    tables=_tables,
    shown=("grid",),
    facts=_facts,
    published=study.published_tables,
    real=Real(
        title="Replicated stores at the edge, on real Cassandra",
        quick=study.REAL_QUICK,
        full=study.REAL_FULL,
        means=_MEANS,
        estimate=study.lasting,
        remarks=_real_remarks,
        notes=_real_notes,
        figures=figures.real_figures,
        facts=_real_facts,
        no_linux="Cassandra computes for most of a request's time, and virtual time stands still "
        "during computation",
    ),
)
