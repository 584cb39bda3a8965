"""The study put together: what is run, judged, drawn and told."""

from __future__ import annotations

from typing import Any

from sojourn.papers.outcome import Outcome, records
from sojourn.papers.paper import Beside, Paper, Real, Titled
from sojourn.papers.queue_lb import analysis, figures, published, scenarios, study

_NETWORK = """\
The paper gives no link rates, queues, UDP rates, lengths or starting times, so the rates are
varied: two ports of 20 Mbit/s; of 10 and 30; of 20 with 15 Mbit/s of other traffic on one. A
finding is judged in each. LBW and SLPLB are defined in words only and reconstructed: the fewest
bytes, or packets, sent in the last second. When all queues are above IQLB's threshold, the
shortest is taken; the paper does not say."""

_STATISTICS = """\
Tables 1 to 4 repeat the paper's analysis on one run: its clients pooled, 48, 60, 80 or 100 values a
policy. These values share queues and choices. Below them the same data as they should be taken: a
run is one value, policies meet the same seeds, and the test is chosen by what the residuals are."""


def _remarks(outcome: Outcome) -> list[str]:
    size = outcome.size
    return [
        " ".join(_NETWORK.split()),
        " ".join(_STATISTICS.split()),
        (
            f"Simulated: rounds of {size.seconds:g} s, as many as the paper has values of a client "
            f"(12, 6 or 8, 5), {size.seeds} seeds; the sweep over information age "
            f"{size.sweep:g} s, {size.sweep_seeds} seeds."
        ),
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
        analysis.herding(outcome.frame("iperf")),
    ]


def _tables(outcome: Outcome) -> Titled:
    frame, pooled = outcome.frame("iperf"), outcome.frame("iperf", "pooled")
    anova = analysis.anova_tables(pooled)
    return [
        ("Table 1, ANOVA of IQLB as published", anova[anova["experiment"] == "IQLB"]),
        ("Table 2, ANOVA of QTM as published", anova[anova["experiment"] == "QTM"]),
        ("Table 3, means (Mbit/s) and LSD of IQLB", analysis.lsd_tables(pooled, "IQLB")),
        ("Table 4, means (Mbit/s) and LSD of QTM", analysis.lsd_tables(pooled, "QTM")),
        ("What it should have been: runs as the unit", analysis.proper(frame)),
        ("IQLB's gains, paired by seed", analysis.gains(frame, "IQLB")),
        ("QTM's gains, paired by seed", analysis.gains(frame, "QTM")),
        ("What was measured", analysis.measured(frame)),
        (
            "When clients start, 10 clients, unequal ports",
            analysis.spreads(outcome.frame("starts")),
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


# Open vSwitch, the controller and real hosts; rounds are fewer, since real seconds pass one by one


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
            f"{size.runs} runs, {size.seeds} seeds, rounds of {size.seconds:g} s; the same "
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
        beside=Beside(part="iperf", factors=study.FACTORS, metrics=("throughput",)),
        estimate=study.lasting,
        remarks=_real_remarks,
        notes=_real_notes,
        figures=figures.real,
        facts=_real_facts,
    ),
)
