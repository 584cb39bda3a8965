"""The study as a `Paper`: its texts, tables and JSON fields."""

from __future__ import annotations

from sojourn.papers.outcome import Facts, Real
from sojourn.papers.paper import Paper
from sojourn.papers.part import Titled
from sojourn.papers.side_by_side import MeansTable
from sojourn.papers.taildrop import figures, study
from sojourn.papers.taildrop.claims import CONDITIONS, DECLARED, FIRST_SEED, WITHDRAWN
from sojourn.papers.taildrop.study import Results
from sojourn.papers.taildrop.variants import VARIANTS

_REDOPT = """\
REDopt is a reconstruction, because the formulas of its authors are not available. A first max_p
is 2.2 times the inverse of the PFTK formula. Simulations of REDopt's own definition, the average
queue in the middle of the ramp, replace it, and confirm the width of the ramp, which is our own
choice, as is the weight, at most half of REDstd's. The buffers of all mechanisms follow from
REDopt. The available copy of the paper lacks the table of Web distributions, so Feldmann's first
set is used. All findings on Web traffic depend on both. The fifth Web load is our own choice."""

_FRAMING = """\
Bulk traffic has Ethernet framing and Linux's timestamps, because the paper's figure 2 labels the
bottleneck as Ethernet and the hosts run Linux. The framing was added because goodput was too high
without it. Web traffic has neither framing nor timestamps, as in ns-2. The gaps between early
drops are those of each part of the paper: uniform from 1 to 1/p for the bulk measurements
(dummynet, as in Linux), and from 1/p to 2/p for the Web simulations (ns-2)."""


def _remarks(outcome: Results) -> list[str]:
    size = outcome.size
    length = "Runs are shorter and fewer than the paper's" if outcome.quick else "Paper's lengths"
    tried = "; ".join(f"{one.name}: {one.text}" for one in DECLARED.readings.values())
    return [
        (
            f"{length}: bulk traffic {size.bulk:g} s, {size.seeds} seeds; Web traffic "
            f"{size.web:g} s, {size.web_seeds} seeds. Warm-ups of {size.bulk_warmup:g} s and "
            f"{size.web_warmup:g} s are excluded."
        ),
        " ".join(_REDOPT.split()),
        " ".join(_FRAMING.split()),
        f"Other readings: {tried}.",
        *outcome.notes,
    ]


def _tables(outcome: Results) -> Titled:
    return [
        ("REDopt's parameters, bulk", figures.settings(study.chosen(outcome, "bulk"), "flows")),
        ("REDopt's parameters, Web", figures.settings(study.chosen(outcome, "web"), "sessions")),
        *(
            (
                f"REDopt's parameters, {v.name} Web loads",
                figures.settings(study.chosen(outcome, v.name), "sessions"),
            )
            for v in VARIANTS
            if v.equal_rank
        ),
        ("REDopt's weight, bulk", figures.weights(study.chosen(outcome, "bulk"), "flows")),
        ("REDopt's weight, Web", figures.weights(study.chosen(outcome, "web"), "sessions")),
        (
            f"Queues of today, {outcome.size.today:g} s (150 ms of UDP's delay are the path's)",
            figures.today(outcome),
        ),
    ]


def _facts(outcome: Results) -> Facts:
    size = outcome.size
    return {
        "seeds": {"bulk": size.seeds, "web": size.web_seeds},
        "duration": {"bulk": size.bulk, "web": size.web},
        "settings": {
            name: [setting.as_dict() for setting in study.chosen(outcome, name)]
            for name in outcome.found
        },
        "variants": {
            name: {
                "text": DECLARED.readings[name].text,
                "claims": {j.claim.id: j.to_dict() for j in judgements},
            }
            for name, judgements in outcome.column.readings.items()
        },
    }


# The study with real TCP and real packets.


def _real_remarks(outcome: Results) -> list[str]:
    about, size = outcome.about, outcome.size
    programs = ", ".join(f"{name} {version}" for name, version in about["programs"].items())
    who = f"Real programs ({programs})" if programs else "Endpoints in virtual time"
    return [
        (
            f"{who} on Linux {about['kernel']} with the engine {about['engine']} made {size.runs} "
            f"runs of {size.bulk:g} s, with {size.seeds} seeds. The first "
            f"{size.bulk_warmup:g} s are warm-up, and flows start within {size.starts:g} s. The "
            "same scenarios were simulated with the same seeds. The verdicts are from the real "
            "runs."
        ),
        (
            f"TCP in real and simulated runs is {size.tcp} of today's Linux, because no current "
            "kernel has the TCP of the paper's time. UDP sources are our own programs with real "
            "sockets. Buffers and thresholds are those of the reconstructed REDopt."
        ),
        *outcome.notes,
    ]


def _real_facts(outcome: Results) -> Facts:
    size = outcome.size
    return {
        "part": "bulk traffic for real",
        "tcp": size.tcp,
        "loads": list(size.flows),
        "seeds": size.seeds,
        "duration": size.bulk,
        "settings": [setting.as_dict() for setting in study.chosen(outcome, "bulk")],
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
    quarter=study.QUARTER,
    measure=study.measure,
    question=("Does random early detection serve bulk and Web traffic better than a plain buffer?"),
    first_seed=FIRST_SEED,
    conditions=CONDITIONS,
    declared=DECLARED,
    work=study.work,
    withdrawn=WITHDRAWN,
    remarks=_remarks,
    figures=figures.simulated,
    tables=_tables,
    shown=("bulk", "web"),
    facts=_facts,
    real=Real(
        title="Tail drop against RED under bulk traffic, real runs",
        quick=study.REAL_QUICK,
        full=study.REAL_FULL,
        means=MeansTable(
            part="bulk",
            factors=("flows", "mechanism"),
            metrics=study.METRICS,
        ),
        estimate=study.lasting,
        remarks=_real_remarks,
        figures=figures.real,
        tables=lambda outcome: [
            ("REDopt's parameters", figures.settings(study.chosen(outcome, "bulk"), "flows"))
        ],
        facts=_real_facts,
        linux=study.LINUX,
        engines=("wire", "linux-wire"),  # the kernel's own links do not report consecutive losses
    ),
)
