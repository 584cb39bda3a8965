"""The complete study: runs, verdicts, figures and text."""

from __future__ import annotations

from typing import Any

from sojourn.papers.outcome import Outcome, records
from sojourn.papers.paper import Beside, Paper, Real, Titled
from sojourn.papers.queue_lb import analysis, claims, figures, published, scenarios, study

_NETWORK = """\
The paper gives no link rates, queues, UDP rates, lengths or starting times. Its tables bound them:
totals that grow with the clients, two ports of 100 Mbit/s, starts one after the other, UDP clients
that send what QTM delivers in table 4 or more. By these the networks here were set, so the level of
throughputs is no claim; what policies differ by is. Three networks are three readings: ports of 100
and 100 Mbit/s; of 50 and 150; of 140 and 140 with 80 of other traffic on one. LBW and SLPLB are
defined in words only and reconstructed: the fewest bytes, or packets, sent in the last second. With
packets of one size they are one policy. When all queues are above IQLB's threshold, the shortest is
taken; the paper does not say."""

_STATISTICS = """\
Tables 1 to 4 repeat the paper's analysis on one run: its clients pooled, 48, 60, 80 or 100 values a
policy. These values share queues and choices. Below them the same data as they should be taken: a
run is one value, policies meet the same seeds, and the test is chosen by what the residuals are."""


def _remarks(outcome: Outcome) -> list[str]:
    size = outcome.size
    others = [
        f"Reading {name}, in {' and '.join(size.reading_networks)} ports: "
        f"{scenarios.READINGS[name].words}."
        for name in size.readings
    ]
    judged = (
        "as many rounds as the paper has values of a client (12, 6 or 8, 5)"
        if size.rounds is None
        else f"{size.rounds} round a run: the paper's ANOVA, which has 5 to 12, is not judged"
    )
    return [
        " ".join(_NETWORK.split()),
        f"Main reading: {scenarios.MAIN.words}.",
        *others,
        (
            f"The claims were written down on {claims.FROZEN}, with earlier results known; their "
            f"runs have seeds from {claims.FIRST_SEED} on, which no earlier run had."
        ),
        " ".join(_STATISTICS.split()),
        f"Simulated: iperfs of {size.seconds:g} s, {size.seeds} seeds, {judged}.",
        *outcome.notes,
        "The paper against itself: " + " ".join(published.CONTRADICTIONS),
    ]


def _notes(outcome: Outcome) -> list[str]:
    alarms = analysis.false_alarms(outcome.frame("iperf", "pooled"))
    return [
        (
            "The paper's analysis, clients of one run pooled as if independent, calls "
            f"{alarms.significant} of {alarms.tests} comparisons of random with itself "
            "significant at 5 %."
        ),
        analysis.why(outcome.frame("iperf")),
        analysis.averages(outcome.frame("iperf")),
    ]


def _tables(outcome: Outcome) -> Titled:
    frame, pooled = outcome.frame("iperf"), outcome.frame("iperf", "pooled")
    anova = analysis.anova_tables(pooled)
    return [
        ("Table 1, ANOVA of IQLB as published", anova[anova["experiment"] == "IQLB"]),
        ("Table 2, ANOVA of QTM as published", anova[anova["experiment"] == "QTM"]),
        ("Table 3, means (Mbit/s) and LSD of IQLB", analysis.lsd_tables(pooled, "IQLB")),
        ("Table 4, means (Mbit/s) and LSD of QTM", analysis.lsd_tables(pooled, "QTM")),
        ("Total of all clients, Mbit/s", analysis.levels(frame)),
        ("What it should have been: runs as the unit", analysis.proper(frame)),
        ("IQLB's gains, paired by seed", analysis.gains(frame, "IQLB")),
        ("QTM's gains, paired by seed", analysis.gains(frame, "QTM")),
        ("What was measured", analysis.measured(frame)),
        ("Mean Mbit/s a client in the other readings", analysis.others(outcome)),
        (
            "Time between two starts, 10 UDP clients, unequal ports",
            analysis.spacings(outcome.frame("spacings")),
        ),
        ("Age of information", analysis.ages(outcome.frame("ages"))),
        ("The paper's own numbers", published.table()),
    ]


def _facts(outcome: Outcome) -> dict[str, Any]:
    frame, pooled = outcome.frame("iperf"), outcome.frame("iperf", "pooled")
    means = frame.groupby(list(study.FACTORS), sort=False)["throughput"].mean()
    return {
        "seeds": outcome.size.seeds,
        "duration": outcome.size.seconds,
        "means": records(means.reset_index()),
        "anova_as_published": records(analysis.anova_tables(pooled)),
        "anova_of_runs": records(analysis.proper(frame)),
        "published": records(published.table()),
    }


# Open vSwitch, the controller and real hosts; there are fewer rounds, because they take real time


def _real_remarks(outcome: Outcome) -> list[str]:
    about, size = outcome.about, outcome.size
    programs = ", ".join(f"{name} {version}" for name, version in about["programs"].items())
    return [
        (
            f"Open vSwitch {about['switch']['version']} and the controller of `sojourn lb serve` "
            f"between real hosts ({programs or 'our own programs'}) on Linux {about['kernel']}; "
            "links are the wire's, and the backlogs that policies see are those of its queues, "
            "which are the bottlenecks."
        ),
        (
            f"{size.runs} runs, {size.seeds} seeds, iperfs of {size.seconds:g} s; the same "
            "runs were simulated. Verdicts are on the real ones. TCP is today's CUBIC in both "
            "worlds."
        ),
        *outcome.notes,
    ]


def _real_notes(outcome: Outcome) -> list[str]:
    lacking = [str(n) for n in scenarios.CLIENTS if n not in outcome.size.clients]
    if not lacking:
        return []
    return [f"not run, so verdicts are without them: {', '.join(lacking)} clients"]


def _real_facts(outcome: Outcome) -> dict[str, Any]:
    return {"part": "for real", "seeds": outcome.size.seeds}


PAPER = Paper(
    name="queue-lb",
    title="Choosing servers by queue length: IQLB and QTM",
    reference=(
        "M. K. Faraj, A. Al-Saadi, R. J. Albahadili: Load Balancing using queue length in SDN "
        "based switches"
    ),
    quick=study.QUICK,
    full=study.FULL,
    measure=study.measure,
    published=published.frames,
    withdrawn=claims.WITHDRAWN,
    remarks=_remarks,
    notes=_notes,
    figures=figures.simulated,
    tables=_tables,
    shown=("iperf", "ages"),
    facts=_facts,
    units={"throughput": "bit/s"},
    real=Real(
        title="Choosing servers by queue length: IQLB and QTM, for real",
        quick=study.REAL_QUICK,
        full=study.REAL_FULL,
        beside=Beside(
            part="iperf",
            factors=study.FACTORS,
            metrics=("throughput",),
            paper=published.by_cell,
        ),
        estimate=study.lasting,
        remarks=_real_remarks,
        notes=_real_notes,
        figures=figures.real,
        facts=_real_facts,
        no_linux="its switch needs a real clock",
    ),
)
