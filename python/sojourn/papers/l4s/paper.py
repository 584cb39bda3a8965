"""The complete study: runs, verdicts, figures and text."""

from __future__ import annotations

from typing import Any

from sojourn.papers.l4s import claims, figures, published, study
from sojourn.papers.outcome import Outcome
from sojourn.papers.paper import Paper

_ABOUT = """\
Sentences of RFC 9332 (2023), of the tests by Heist and Morton (August 2021) and of three papers,
each quoted as it stands and judged on runs with today's controls and queues. "Supported by its own
table" is the verdict then, on the source's own numbers; the verdict is the one now."""
LEFT_OUT = """\
Left out: the evaluations that RFC 9332 cites besides ([L4Seval22], [DualPI2Linux], [L4Sdemo16],
[PI2]), whose texts were not to be had; scenario 4 of heistp/l4s-tests, of which its page states no
finding; the authors' own AQM (cnq_codel_af); tunnels with replay protection, Skype and Wi-Fi;
RFC 9332's sentences on unresponsive L4S traffic, because no source of packets here sets ECT(1); and
all of the three papers but abstracts and the data beside them."""


def _remarks(outcome: Outcome) -> list[str]:
    size = outcome.size
    return [
        " ".join(_ABOUT.split()),
        " ".join(LEFT_OUT.split()),
        (
            f"{size.seeds} seeds from {claims.FIRST_SEED} on; the claims were frozen on "
            f"{claims.FROZEN}."
        ),
    ]


def _facts(outcome: Outcome) -> dict[str, Any]:
    return {"seeds": outcome.size.seeds, "how": claims.HOW}


PAPER = Paper(
    name="l4s",
    title="L4S, judged: what RFC 9332 states and what was found since",
    reference="RFC 9332; heistp/l4s-tests (2021); arXiv 2407.00464, 2411.10952, 2603.04381",
    quick=study.QUICK,
    full=study.FULL,
    measure=study.measure,
    published=published.frames,
    remarks=_remarks,
    figures=figures.drawn,
    tables=figures.tables,
    facts=_facts,
    units=figures.METRICS,
)
