"""The study's report: what a reader has to know, figures, tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.papers.queue_lb.study import PAPER, TITLE

if TYPE_CHECKING:
    from pathlib import Path

    from sojourn.papers.queue_lb.study import Outcome

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


def remarks(outcome: Outcome) -> list[str]:
    """What a reader has to know before the verdicts."""
    from sojourn.papers.queue_lb import published

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


def show(outcome: Outcome) -> list[Path]:
    """Writes the figures and the report; gives their paths, the report first."""
    from sojourn.papers.queue_lb import analysis, figures, published
    from sojourn.show import paper_page, paper_report

    drawn = figures.all_figures(outcome)
    results = {
        name: table.results
        for name, table in (("iperf", outcome.iperf), ("ages", outcome.sweep))
        if table.results is not None
    }
    anova = analysis.anova_tables(outcome.pooled)
    page = paper_page(
        title=TITLE,
        reference=PAPER,
        judgements=outcome.judgements,
        results=results,
        figures=list(drawn.values()),
        tables=[
            ("Table 1, ANOVA of IQLB as published", anova[anova["experiment"] == "IQLB"]),
            ("Table 2, ANOVA of QTM as published", anova[anova["experiment"] == "QTM"]),
            (
                "Table 3, means (Mbit/s) and LSD of IQLB",
                analysis.lsd_tables(outcome.pooled, "IQLB"),
            ),
            ("Table 4, means (Mbit/s) and LSD of QTM", analysis.lsd_tables(outcome.pooled, "QTM")),
            ("What it should have been: runs as the unit", analysis.proper(outcome.frame)),
            ("IQLB's gains, paired by seed", analysis.gains(outcome.frame, "IQLB")),
            ("QTM's gains, paired by seed", analysis.gains(outcome.frame, "QTM")),
            ("What was measured", analysis.measured(outcome.frame)),
            ("When clients start, 10 clients, unequal ports", analysis.spreads(outcome.spread)),
            ("Age of information", analysis.ages(outcome.sweep.frame)),
            ("The paper's own numbers", published.table()),
        ],
        remarks=remarks(outcome),
        commands=[f"sojourn paper queue-lb{' --quick' if outcome.quick else ''}"],
        units=outcome.units,
    )
    return paper_report(outcome.folder, page, {name: one[0] for name, one in drawn.items()})
