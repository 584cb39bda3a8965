"""The complete study: runs, verdicts, figures and text."""

from __future__ import annotations

from typing import Any

from sojourn.papers.outcome import Outcome
from sojourn.papers.paper import Beside, Paper, Real, Titled
from sojourn.papers.taildrop import figures, study
from sojourn.papers.taildrop.claims import FIRST_SEED, WITHDRAWN
from sojourn.papers.taildrop.variants import VARIANTS
from sojourn.stats import Judgement

_REDOPT = """\
REDopt is a reconstruction: the formulas of its authors could not be read. Its drop probability is
the inversion of the PFTK formula; the width of its ramp and its weight are ours. The paper says
that the weight is smaller than REDstd's, not by how much: it is at most a half in the main reading,
and down to a fiftieth in others. The buffers of all mechanisms follow from REDopt. The table of Web
distributions is lost in the copy of the paper; Feldmann's first set stands in, and the fifth Web
load is ours."""

_FRAMING = """\
Bulk traffic has Ethernet framing and Linux's timestamps, because figure 2 labels the bottleneck as
Ethernet and the hosts run Linux; frames alone, as in ns-2, are another reading. This was first
tried because goodput came out too high without it. Web traffic has frames alone, as in ns-2."""

_SPACING = """\
Early drops are spaced as in each part of the paper: uniformly from 1 to 1/p for the bulk
measurements (dummynet, as Linux), from 1/p to 2/p for the Web simulations (ns-2)."""


def _remarks(outcome: Outcome) -> list[str]:
    size = outcome.size
    length = "Shorter and fewer runs than the paper's" if outcome.quick else "The paper's lengths"
    tried = "; ".join(f"{v.name}: {v.text}" for v in VARIANTS)
    return [
        (
            f"{length}: bulk traffic {size.bulk:g} s, {size.bulk_seeds} seeds; Web traffic "
            f"{size.web:g} s, {size.web_seeds} seeds; the first {size.bulk_warmup:g} s and "
            f"{size.web_warmup:g} s are cut."
        ),
        " ".join(_REDOPT.split()),
        " ".join(_FRAMING.split()),
        " ".join(_SPACING.split()),
        (
            "The claims were changed and added with earlier results known, and frozen before "
            f"these runs, whose seeds ({FIRST_SEED} and up) no run had before."
        ),
        (
            f"{len(VARIANTS)} other readings were tried ({tried}). A claim that holds in some of "
            "them means that at least one reading gives the finding."
        ),
        *outcome.notes,
    ]


def _notes(outcome: Outcome) -> list[str]:
    """Returns a line for each finding that does not hold, with the reason as far as found."""
    found = [(j.claim.id, study.reason(outcome, j)) for j in outcome.judgements]
    return [f"{claim}: {reason}" for claim, reason in found if reason]


def _tables(outcome: Outcome) -> Titled:
    found = outcome.found
    return [
        ("REDopt's parameters, bulk", figures.settings(found["bulk"], "flows")),
        ("REDopt's parameters, Web", figures.settings(found["web"], "sessions")),
        ("REDopt's weight, bulk", figures.weights(found["bulk"], "flows")),
        ("REDopt's weight, Web", figures.weights(found["web"], "sessions")),
        ("Growth of max_p with Web sessions", figures.growth(found["web"])),
        ("Growth of max_p, scaled loads", figures.growth(found["scaled"])),
        (
            "Today's queues, bulk (150 ms of UDP's delay are the path's)",
            figures.today(outcome, "bulk"),
        ),
        ("Today's queues, Web", figures.today(outcome, "web")),
        ("Bulk claims in all readings", figures.sensitivity(outcome, "bulk")),
        ("Web claims in all readings", figures.sensitivity(outcome, "web")),
    ]


def _facts(outcome: Outcome) -> dict[str, Any]:
    size = outcome.size
    return {
        "seeds": {"bulk": size.bulk_seeds, "web": size.web_seeds},
        "duration": {"bulk": size.bulk, "web": size.web},
        "settings": {
            name: [s.as_dict() for s in settings] for name, settings in outcome.found.items()
        },
        "variants": {
            variant.name: {
                "text": variant.text,
                "claims": {j.claim.id: j.to_dict() for j in outcome.column.readings[variant.name]},
            }
            for variant in VARIANTS
        },
    }


def _about_claim(outcome: Outcome, judgement: Judgement) -> dict[str, Any]:
    return {} if outcome.real else {"reason": study.reason(outcome, judgement)}


# Real TCP and real packets


def _real_remarks(outcome: Outcome) -> list[str]:
    about, size = outcome.about, outcome.size
    programs = ", ".join(f"{name} {version}" for name, version in about["programs"].items())
    who = f"Real programs ({programs})" if programs else "Endpoints in virtual time"
    return [
        (
            f"{who} on Linux {about['kernel']}, engine {about['engine']}: "
            f"{size.runs} runs of {size.bulk:g} s, {size.bulk_seeds} seeds; the first "
            f"{size.bulk_warmup:g} s are cut, flows start within {size.starts:g} s. The same "
            "scenarios were simulated with the same seeds. Verdicts are on the real runs."
        ),
        (
            f"TCP is {size.tcp} as in today's Linux in both worlds: no kernel has the TCP of the "
            "paper's days. UDP sources are ours, over real sockets. Buffers and thresholds are "
            "those of REDopt as reconstructed for the study."
        ),
        *outcome.notes,
    ]


def _real_facts(outcome: Outcome) -> dict[str, Any]:
    size = outcome.size
    return {
        "part": "bulk traffic for real",
        "tcp": size.tcp,
        "loads": list(size.flows),
        "seeds": size.bulk_seeds,
        "duration": size.bulk,
        "settings": [setting.as_dict() for setting in outcome.found["bulk"]],
    }


PAPER = Paper(
    name="taildrop",
    title="Tail drop against RED under bulk and Web traffic",
    reference=(
        "Comparison of Tail Drop and Active Queue Management Performance for bulk-data and "
        "Web-like Internet Traffic, ISCC 2001"
    ),
    quick=study.QUICK,
    full=study.FULL,
    measure=study.measure,
    work=study.work,
    withdrawn=WITHDRAWN,
    remarks=_remarks,
    notes=_notes,
    figures=figures.simulated,
    tables=_tables,
    shown=("bulk", "web"),
    facts=_facts,
    about_claim=_about_claim,
    real=Real(
        title="Tail drop against RED under bulk traffic, for real",
        quick=study.REAL_QUICK,
        full=study.REAL_FULL,
        beside=Beside(
            part="bulk",
            factors=("flows", "mechanism"),
            metrics=study.METRICS,
        ),
        estimate=study.lasting,
        remarks=_real_remarks,
        figures=figures.real,
        tables=lambda outcome: [
            ("REDopt's parameters", figures.settings(outcome.found["bulk"], "flows"))
        ],
        facts=_real_facts,
        linux=study.LINUX,
        engines=("wire", "linux-wire"),  # the kernel's own links do not report consecutive losses
    ),
)
