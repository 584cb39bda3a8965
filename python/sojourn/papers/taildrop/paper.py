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
REDopt is a reconstruction, because the formulas of its authors are not available. Its drop
probability is the inverse of the PFTK formula; the width of its ramp and its weight are our own
choice. The paper states that the weight is smaller than REDstd's. In the main reading the weight is
at most half of REDstd's weight, in other readings at most a fifth to a fiftieth. The buffers of all
mechanisms follow from REDopt. The available copy of the paper lacks the table of Web distributions,
so Feldmann's first set is used. The fifth Web load is our own choice."""

_FRAMING = """\
Bulk traffic has Ethernet framing and Linux's timestamps, because the paper's figure 2 labels the
bottleneck as Ethernet and the hosts run Linux. The framing was added because goodput was too high
without it. Bulk traffic without framing and timestamps, as in ns-2, is another reading. Web traffic
has neither framing nor timestamps."""

_SPACING = """\
The gaps between early drops are those of each part of the paper: uniform from 1 to 1/p for the bulk
measurements (dummynet, as in Linux), and from 1/p to 2/p for the Web simulations (ns-2)."""


def _remarks(outcome: Results) -> list[str]:
    size = outcome.size
    length = "Runs are shorter and fewer than the paper's" if outcome.quick else "Paper's lengths"
    tried = "; ".join(f"{v.name}: {v.text}" for v in VARIANTS)
    return [
        (
            f"{length}: bulk traffic {size.bulk:g} s, {size.seeds} seeds; Web traffic "
            f"{size.web:g} s, {size.web_seeds} seeds. Warm-ups of {size.bulk_warmup:g} s and "
            f"{size.web_warmup:g} s are excluded."
        ),
        " ".join(_REDOPT.split()),
        " ".join(_FRAMING.split()),
        " ".join(_SPACING.split()),
        (
            "Some claims were changed or added with earlier results known. All claims were fixed "
            f"before these runs, whose seeds ({FIRST_SEED} and greater) no earlier run used."
        ),
        (
            f"Claims were also judged in {len(VARIANTS)} other readings ({tried}). If a claim "
            "holds in some of them, at least one reading gives the paper's finding."
        ),
        *outcome.notes,
    ]


def _tables(outcome: Results) -> Titled:
    return [
        ("REDopt's parameters, bulk", figures.settings(study.chosen(outcome, "bulk"), "flows")),
        ("REDopt's parameters, Web", figures.settings(study.chosen(outcome, "web"), "sessions")),
        ("REDopt's weight, bulk", figures.weights(study.chosen(outcome, "bulk"), "flows")),
        ("REDopt's weight, Web", figures.weights(study.chosen(outcome, "web"), "sessions")),
        ("Growth of max_p with Web sessions", figures.growth(study.chosen(outcome, "web"))),
        (
            "Growth of max_p with scaled Web sessions",
            figures.growth(study.chosen(outcome, "scaled")),
        ),
        (
            "Today's queues, bulk (150 ms of UDP's delay are the path's)",
            figures.today(outcome, "bulk"),
        ),
        ("Today's queues, Web", figures.today(outcome, "web")),
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
            variant.name: {
                "text": variant.text,
                "claims": {j.claim.id: j.to_dict() for j in outcome.column.readings[variant.name]},
            }
            for variant in VARIANTS
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
