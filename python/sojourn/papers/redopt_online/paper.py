"""The complete study: runs, verdicts, figures and text."""

from __future__ import annotations

from typing import Any

from sojourn.papers.outcome import Outcome, records
from sojourn.papers.paper import Beside, Paper, Real, Titled
from sojourn.papers.redopt_online import claims, figures, study

_ABOUT = """\
A study of ours, beyond the tail-drop paper: REDopt on-line estimates the number of TCP flows from
its own losses every second, and takes the parameters that REDopt's model has for it. It is told
the link's rate, a mean round-trip time and the share of unresponsive traffic. REDopt set by hand
is proved by simulation for each number of flows. REDstd and tail drop have the largest of its
buffers."""


def _remarks(outcome: Outcome) -> list[str]:
    size = outcome.size
    return [
        " ".join(_ABOUT.split()),
        (
            f"Three phases of {size.phase:g} s, {size.seeds} seeds; claims are about the second "
            "half of a phase, *soon* is from 20 to 40 s after a change. The claims were frozen on "
            f"{claims.FROZEN}; seeds are from {claims.FIRST_SEED} on."
        ),
    ]


def _real_remarks(outcome: Outcome) -> list[str]:
    size = outcome.size
    return [
        " ".join(_ABOUT.split()),
        (
            f"Real TCP ({size.tcp}) on Linux {outcome.about['kernel']}, every queue by the wire: "
            f"phases of {size.phase:g} s, {size.seeds} seeds. Verdicts are on the real runs."
        ),
        *outcome.notes,
    ]


def _tables(outcome: Outcome) -> Titled:
    return [
        ("REDopt's parameters, proved", figures.settings(outcome)),
        ("Means", figures.means(outcome)),
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
    title="REDopt on-line: RED that follows the number of flows",
    reference="Ours, after the comparison of tail drop and RED (ISCC 2001)",
    quick=study.QUICK,
    full=study.FULL,
    measure=study.measure,
    remarks=_remarks,
    figures=figures.drawn,
    tables=_tables,
    facts=_facts,
    units={"goodput": "bit/s"},
    real=Real(
        title="REDopt on-line, for real",
        quick=study.REAL_QUICK,
        full=study.REAL_FULL,
        beside=Beside(
            part="courses",
            factors=("mechanism", "flows", "when"),
            metrics=("queue", "goodput", "udp_loss"),
        ),
        estimate=study.lasting,
        remarks=_real_remarks,
        figures=figures.drawn,
        tables=_tables,
        facts=_facts,
        no_linux="its queue is a Python class, and no Python runs in a guest",
    ),
)
