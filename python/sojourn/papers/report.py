"""The page of a published study: verdicts, figures and tables."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from sojourn.papers.outcome import Outcome
from sojourn.papers.paper import Drawn, Titled
from sojourn.papers.side_by_side import rows, verdicts
from sojourn.show import plots, write_report
from sojourn.show.html.paper import Account
from sojourn.show.html.paper import page as paper_page
from sojourn.study import Table, quantities
from sojourn.study.results import results_of


def show(outcome: Outcome) -> list[Path]:
    """Writes the figures and the report; returns their paths, the report first."""
    figures, tables, remarks = _real(outcome) if outcome.real else _simulated(outcome)
    results = {
        f"{name}, {part}" if outcome.real else part: found
        for name, column in outcome.columns.items()
        for part, table in column.tables.items()
        if (found := results_of(table)) is not None
        and (outcome.paper.shown is None or part in outcome.paper.shown)
    }
    account = Account(
        title=outcome.title,
        reference=outcome.paper.reference,
        judgements=outcome.judgements,
        asides=outcome.asides,
        results=results,
        figures=list(figures.values()),
        tables=tables,
        remarks=remarks,
        commands=[outcome.command],
        units=outcome.units,
    )
    page = paper_page(account)
    return write_report(outcome.folder, page, {name: one[0] for name, one in figures.items()})


def _simulated(outcome: Outcome) -> tuple[Drawn, Titled, list[str]]:
    paper = outcome.paper
    figures = paper.figures(outcome) if paper.figures else _claimed(outcome)
    tables = paper.tables(outcome) if paper.tables else _means(outcome)
    return figures, [*tables, *_withdrawn(outcome)], paper.remarks(outcome)


def _real(outcome: Outcome) -> tuple[Drawn, Titled, list[str]]:
    real = outcome.real
    assert real is not None
    tables = [
        ("Verdicts of simulated and real runs", pd.DataFrame(verdicts(outcome))),
        ("Means of simulated and real runs", pd.DataFrame(rows(outcome))),
        *real.tables(outcome),
        *_withdrawn(outcome),
    ]
    return real.figures(outcome), tables, [*outcome.invalid, *real.remarks(outcome), *outcome.notes]


def _withdrawn(outcome: Outcome) -> Titled:
    """Returns the table of withdrawn claims with its title; empty without withdrawn claims."""
    listed = [claim.as_dict() for claim in outcome.paper.withdrawn]
    return [("Withdrawn claims", pd.DataFrame(listed))] if listed else []


def _metrics(outcome: Outcome) -> list[tuple[Table, str]]:
    """Returns the metrics of the claims, each with the first table that has this metric."""
    metrics = dict.fromkeys(j.claim.metric for j in outcome.judgements)
    tables = outcome.tables.values()
    return [(next(t for t in tables if m in t.frame), m) for m in metrics]


def _claimed(outcome: Outcome) -> Drawn:
    """Draws the metric of each claim over the factor with most levels."""
    drawn = {}
    for table, metric in _metrics(outcome):
        if not table.factors:
            continue
        over = max(table.factors, key=lambda factor: len(table.levels(factor)))
        alone = len(table.factors) == 1
        of = plots(table)
        figure = of.bars(metric) if alone else of.over(metric, over=over)
        drawn[metric.replace(".", "-")] = (
            figure, f"{metric} over {over}", "Means over seeds with 95 % intervals.",
        )  # fmt: skip
    return drawn


def _means(outcome: Outcome) -> Titled:
    """Returns the means of each claim's metric with 95 % intervals, in a readable unit."""
    found = []
    for table, metric in _metrics(outcome):
        frame = table.ci(metric).drop(columns=["sd", "missing"])
        scale = quantities.scale(table.units.get(metric, ""), frame["mean"], metric)
        for column in ("mean", "low", "high"):
            frame[column] = frame[column].map(scale.apply)
        unit = f" in {scale.unit}" if scale.unit else ""
        found.append((f"{metric}{unit}: mean, 95 % interval, seeds", frame))
    return found
