"""The study as a `Paper`: its texts, tables and JSON fields."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from sojourn.papers.outcome import Facts, Real, records
from sojourn.papers.paper import Paper
from sojourn.papers.part import Titled
from sojourn.papers.queue_lb import analysis, claims, figures, published, scenarios, study
from sojourn.papers.queue_lb.study import Results
from sojourn.papers.side_by_side import MeansTable, beside
from sojourn.study.cells import Level

_NETWORK = """\
The paper does not state link rates, queues, UDP rates, lengths and start times. The total
throughput in its tables grows with the number of clients, so this study assumes that clients start
one after the other. UDP clients send at QTM's throughput in table 4, and cannot have sent less. The
ports of the main reading (50 and 90 Mbit/s) and of the others were chosen by published levels, the
throughputs with round robin and random and the scatter of clients, and by no difference between
policies. The paper describes LBW and SLPLB only in words, and its reference [22] was not available.
Here they select the port that sent the fewest bytes (LBW) or packets (SLPLB) in the last second; as
the port feeds the server, counters of the server are the same. With frames of one size both are the
same policy. If all queues are above IQLB's threshold, IQLB selects the shortest queue; the paper
does not state this case."""

_STATISTICS = """\
Tables 1 to 4 repeat the paper's analysis on one run: its clients are pooled, in the full study 48,
60, 80 or 100 values for each policy. These values are not independent, because they share queues
and choices. The table "Correct analysis" has tests of the same data in which a run is one value.
All policies have the same seeds, and the test is chosen by the distribution of the residuals."""


def _remarks(outcome: Results) -> list[str]:
    size = outcome.size
    judged = (
        "as many rounds in a run as the paper has values of a client (12 with 4 clients, 6 or 8 "
        "with 10, and 5 with 20)"
        if size.rounds is None
        else f"{size.rounds} round in a run; claims on the paper's ANOVA and LSD, which have 5 to "
        "12 rounds, are not judged"
    )
    readings = (f"{one.name} ({one.text})" for one in claims.DECLARED.readings.values())
    return [
        " ".join(_NETWORK.split()),
        f"Other readings, with one round in a run: {'; '.join(readings)}.",
        " ".join(_STATISTICS.split()),
        f"Simulated runs have iperfs of {size.seconds:g} s, {size.seeds} seeds, and {judged}.",
        *outcome.notes,
        "Contradictions in the paper: " + " ".join(published.CONTRADICTIONS),
    ]


def _notes(outcome: Results) -> list[str]:
    alarms = analysis.false_alarms(outcome.frame("iperf", "pooled"))
    return [
        (
            "The paper's analysis pools the clients of one run as independent values. In simulated "
            f"runs, {alarms.significant} of {alarms.tests} comparisons of the policy random with "
            "itself are significant at 5 % by this analysis."
        ),
        analysis.averages(outcome.frame("iperf")),
    ]


def _tables(outcome: Results) -> Titled:
    frame, pooled = outcome.frame("iperf"), outcome.frame("iperf", "pooled")
    anova, size, ports = analysis.anova_tables(pooled), outcome.size, figures.by_ports(outcome)
    anova["P"] = anova["P"].map("{:.2g}".format)
    others = {name: runs for name, runs in ports.items() if name in scenarios.NETWORKS}
    readings = {"main": frame} | {
        name: found[""]
        for name, found in outcome.column.frames.items()
        if "throughput" in found[""] and name not in ("iperf", "spacings")
    }
    tables = [
        ("All comparisons", analysis.matrix({"main": frame, **others})),
        ("Table 1, ANOVA of IQLB as published", anova[anova["experiment"] == "IQLB"]),
        ("Table 2, ANOVA of QTM as published", anova[anova["experiment"] == "QTM"]),
        ("Table 3, means (Mbit/s) and LSD of IQLB", analysis.lsd_tables(pooled, "IQLB")),
        ("Table 4, means (Mbit/s) and LSD of QTM", analysis.lsd_tables(pooled, "QTM")),
        ("Mean throughput of a client, Mbit/s, in all readings", analysis.levels(readings)),
        ("Correct analysis: runs as independent values", analysis.proper(frame)),
        ("The paper's own numbers", published.table()),
    ]
    if not size.sweep:
        return tables
    ages = outcome.frame("ages")
    title = f"Use today, transfers in runs of {size.sweep:g} s, UDP of {size.seconds:g} s"
    return [
        *tables,
        (title, analysis.today(ages, ports.get("unequal ports"))),
        ("Age of information", analysis.ages(ages)),
    ]


def _facts(outcome: Results) -> Facts:
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


# The study with Open vSwitch, the controller, and network namespaces as hosts. It has fewer rounds
# than the paper, because each round takes wall-clock time.


def _real_remarks(outcome: Results) -> list[str]:
    about, size = outcome.about, outcome.size
    programs = ", ".join(f"{name} {version}" for name, version in about["programs"].items())
    return [
        (
            f"Open vSwitch {about['switch']['version']} and the controller of `sojourn lb serve` "
            f"run between real hosts ({programs or 'our own programs'}) on Linux "
            f"{about['kernel']}. The wire emulates the links; the queues of the wire are the "
            "bottlenecks, and policies use the backlogs of these queues."
        ),
        (
            f"{size.runs} real runs with {size.seeds} seeds have iperfs of {size.seconds:g} s. The "
            "same runs were simulated. The verdicts are from the real runs. TCP is CUBIC in real "
            "and simulated runs."
        ),
        *outcome.notes,
    ]


def _real_notes(outcome: Results) -> list[str]:
    lacking = [str(n) for n in scenarios.CLIENTS if n not in outcome.size.clients]
    if not lacking:
        return []
    return [f"verdicts omit cells that were not run: {', '.join(lacking)} clients"]


def _real_facts(outcome: Results) -> Facts:
    return {"part": "for real", "seeds": outcome.size.seeds}


def _quantity(cell: Mapping[str, Level]) -> str:
    proposed = "IQLB and QTM" if cell["policy"] in analysis.SETS else "the other policies"
    return f"throughput over {cell['transport']}, {proposed}"


def _compared(outcome: Results) -> pd.DataFrame:
    frame = outcome.frame("iperf")
    return pd.concat([beside(frame, _MEANS, _quantity), analysis.scatter(frame)])


_MEANS = MeansTable(
    part="iperf",
    factors=study.FACTORS,
    metrics=("throughput",),
    paper=published.by_cell,
)

PAPER = Paper(
    name="queue-lb",
    title="Choosing servers by queue length: IQLB and QTM",
    reference=(
        "M. K. Faraj, A. Al-Saadi, R. J. Albahadili: Load Balancing using queue length in SDN "
        "based switches"
    ),
    quick=study.QUICK,
    full=study.FULL,
    quarter=study.QUARTER,
    mechanism="policy",
    measure=study.measure,
    question=(
        "Do flows have a higher throughput if the switch sends them to the server with the "
        "shortest queue?"
    ),
    conditions=claims.CONDITIONS,
    declared=claims.DECLARED,
    compared=_compared,
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
        title="Choosing servers by queue length: IQLB and QTM, real runs",
        quick=study.REAL_QUICK,
        full=study.REAL_FULL,
        means=_MEANS,
        estimate=study.lasting,
        remarks=_real_remarks,
        notes=_real_notes,
        figures=figures.real,
        facts=_real_facts,
        no_linux="Open vSwitch needs a real clock",
    ),
)
