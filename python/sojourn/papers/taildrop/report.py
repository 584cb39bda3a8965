"""The study's report: what a reader has to know, figures, tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.papers.taildrop.study import PAPER, TITLE
from sojourn.papers.taildrop.variants import VARIANTS

if TYPE_CHECKING:
    from pathlib import Path

    from sojourn.papers.taildrop.study import Outcome

_REDOPT = """\
REDopt is a reconstruction: the formulas of its authors could not be read. Its drop probability is
the inversion of the PFTK formula; the width of its ramp and its weight are ours, accepted by
simulation. The buffers of all mechanisms follow from it. The table of Web distributions is lost in
the copy of the paper; Feldmann's first set stands in."""

_SPACING = """\
Early drops are spaced as in each part of the paper: uniformly from 1 to 1/p for the bulk
measurements (dummynet, as Linux), from 1/p to 2/p for the Web simulations (ns-2)."""


def remarks(outcome: Outcome) -> list[str]:
    """What a reader has to know before the verdicts."""
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
        " ".join(_SPACING.split()),
        (
            f"For findings that do not reproduce, other readings were tried ({tried}). "
            "These looks are exploratory and give no verdict."
        ),
        *outcome.notes,
    ]


def show(outcome: Outcome) -> list[Path]:
    """Writes the figures and the report; gives their paths, the report first."""
    from sojourn.papers.taildrop import figures
    from sojourn.show import paper_page, paper_report

    bulk, web = figures.bulk(outcome), figures.web(outcome)
    results = {
        name: table.results
        for name, table in (("bulk traffic", outcome.bulk), ("Web traffic", outcome.web))
        if table.results is not None
    }
    page = paper_page(
        title=TITLE,
        reference=PAPER,
        judgements=outcome.judgements,
        results=results,
        figures=[
            (bulk, "Bulk traffic", "As the paper's figure 3; 95 % intervals over seeds."),
            (web, "Web traffic", "As the paper's figure 4; 95 % intervals over seeds."),
        ],
        tables=[
            ("REDopt's parameters, bulk", figures.settings(outcome.bulk_settings, "flows")),
            ("REDopt's parameters, Web", figures.settings(outcome.web_settings, "sessions")),
            ("Growth of max_p with Web sessions", figures.growth(outcome)),
            ("Bulk claims under other readings", figures.sensitivity(outcome, "bulk")),
            ("Web claims under other readings", figures.sensitivity(outcome, "web")),
        ],
        remarks=remarks(outcome),
        commands=[f"sojourn paper taildrop{' --quick' if outcome.quick else ''}"],
    )
    return paper_report(outcome.folder, page, {"bulk": bulk, "web": web})
