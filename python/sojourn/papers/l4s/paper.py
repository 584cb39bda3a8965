"""The study as a `Paper`: its texts and JSON fields."""

from __future__ import annotations

from sojourn.papers.l4s import claims, figures, published, study
from sojourn.papers.l4s.study import Results
from sojourn.papers.outcome import Facts
from sojourn.papers.paper import Paper

_ABOUT = """\
Sentences of RFC 9332 (2023), of the tests by Heist and Morton (August 2021) and of three papers are
quoted verbatim. The verdicts are from runs with today's congestion controls and queues. "Supported
by its own table" states whether the source's own numbers support the sentence."""
LEFT_OUT = """\
Not covered: the evaluations that RFC 9332 cites ([L4Seval22], [DualPI2Linux], [L4Sdemo16], [PI2]),
whose texts were not available; scenario 4 of heistp/l4s-tests, for which its page states no
finding; the authors' own AQM (cnq_codel_af); tunnels with replay protection, Skype and Wi-Fi; RFC
9332's sentences on unresponsive L4S traffic, because no unresponsive source of this simulator sets
ECT(1); and the three papers except their abstracts and published data."""


def _remarks(outcome: Results) -> list[str]:
    size = outcome.size
    return [
        " ".join(_ABOUT.split()),
        " ".join(LEFT_OUT.split()),
        (f"Every combination of factor levels has {size.seeds} seeds."),
    ]


def _facts(outcome: Results) -> Facts:
    return {"seeds": outcome.size.seeds}


PAPER = Paper(
    name="l4s",
    title="L4S: statements of RFC 9332 and later findings, judged on simulated runs",
    reference="RFC 9332; heistp/l4s-tests (2021); arXiv 2407.00464, 2411.10952, 2603.04381",
    quick=study.QUICK,
    full=study.FULL,
    measure=study.measure,
    work=study.work,
    question="Do the statements of L4S's standard and of its critics hold?",
    first_seed=claims.FIRST_SEED,
    conditions=claims.CONDITIONS,
    declared=claims.DECLARED,
    published=published.frames,
    remarks=_remarks,
    figures=figures.drawn,
    tables=figures.tables,
    facts=_facts,
    units=figures.METRICS,
)
