"""The study as a `Paper`: its texts, tables and JSON fields."""

from __future__ import annotations

from typing import Any

from sojourn.papers.outcome import Outcome, records
from sojourn.papers.paper import MeansTable, Paper, Real, Titled
from sojourn.papers.redopt_online import claims, figures, study

_ABOUT = """\
Our own study, which extends the tail-drop paper. Every second, REDopt on-line estimates the number
of TCP flows from its loss rate and mean queue, and uses the parameters of REDopt's model for this
number. The user of REDopt on-line sets the link's rate, a mean round-trip time and the share of
unresponsive traffic. The parameters of REDopt set for a number of flows are verified by simulation.
REDstd and tail drop have the largest of REDopt's buffers."""


def _remarks(outcome: Outcome) -> list[str]:
    size = outcome.size
    return [
        " ".join(_ABOUT.split()),
        (
            f"Each run has three phases of {size.phase:g} s with different numbers of flows. Each "
            f"sequence of numbers is run with {size.seeds} seeds. Claims concern the second half "
            "of a phase, or 20 to 40 s after a change of the number of flows (`soon`). The "
            f"claims were fixed on {claims.FROZEN}. The first seed is {claims.FIRST_SEED}."
        ),
    ]


def _real_remarks(outcome: Outcome) -> list[str]:
    size = outcome.size
    return [
        " ".join(_ABOUT.split()),
        (
            f"Real TCP ({size.tcp}) runs on Linux {outcome.about['kernel']}; the wire implements "
            f"every queue. Phases last {size.phase:g} s, and there are {size.seeds} seeds. The "
            "verdicts are from the real runs."
        ),
        *outcome.notes,
    ]


def _tables(outcome: Outcome) -> Titled:
    return [
        ("REDopt's parameters, verified by simulation", figures.settings(outcome)),
        ("Means by mechanism, number of flows and time", figures.means(outcome)),
    ]


def _facts(outcome: Outcome) -> dict[str, Any]:
    return {
        "seeds": outcome.size.seeds,
        "phase": outcome.size.phase,
        "settings": records(figures.settings(outcome)),
        "means": records(figures.means(outcome)),
    }


PAPER = Paper(
    name="redopt-online",
    title="REDopt on-line: RED that adapts to the number of flows",
    reference="Our own study, after the comparison of tail drop and RED (ISCC 2001)",
    quick=study.QUICK,
    full=study.FULL,
    measure=study.measure,
    remarks=_remarks,
    figures=figures.drawn,
    tables=_tables,
    facts=_facts,
    units={"goodput": "bit/s"},
    real=Real(
        title="REDopt on-line, real runs",
        quick=study.REAL_QUICK,
        full=study.REAL_FULL,
        means=MeansTable(
            part="courses",
            factors=("mechanism", "flows", "when"),
            metrics=("queue", "goodput", "udp_loss"),
        ),
        estimate=study.lasting,
        remarks=_real_remarks,
        figures=figures.drawn,
        tables=_tables,
        facts=_facts,
        no_linux="its queue is a Python class, and a guest cannot run Python",
    ),
)
