"""The page of a published study: verdicts, figures and tables."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from sojourn.papers.outcome import Outcome
from sojourn.papers.part import Drawn, Size, Titled
from sojourn.papers.side_by_side import AGREE, RATIO, REAL, RUNS, SIMULATED
from sojourn.show import plots, write_report
from sojourn.show.html.paper import Account
from sojourn.show.html.paper import page as paper_page
from sojourn.show.terminal import decisive
from sojourn.stats import Claim, Judgement
from sojourn.study import Table, quantities
from sojourn.study.quantities import interval, value
from sojourn.study.results import results_of


def show(outcome: Outcome[Size]) -> list[Path]:
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
        asides=lambda claim: [*outcome.labels(claim), *outcome.asides(claim)],
        question=outcome.paper.question,
        answer=outcome.answer,
        near=outcome.how_near(),
        rulings=outcome.rulings,
        supported={
            claim: "yes" if own.holds else "no"
            for claim, own in outcome.support.items()
            if own.holds is not None
        },
        results=results,
        figures=list(figures.values()),
        tables=tables,
        remarks=remarks,
        commands=[outcome.command],
        units=outcome.units,
    )
    page = paper_page(account)
    return write_report(outcome.folder, page, {name: one[0] for name, one in figures.items()})


def _simulated(outcome: Outcome[Size]) -> tuple[Drawn, Titled, list[str]]:
    paper = outcome.paper
    figures = paper.figures(outcome) if paper.figures else _claimed(outcome)
    tables = paper.tables(outcome) if paper.tables else _means(outcome)
    readings = ("Contrasts in all readings", outcome.by_reading())
    return figures, [readings, *tables, *_withdrawn(outcome)], paper.remarks(outcome)


def _real(outcome: Outcome[Size]) -> tuple[Drawn, Titled, list[str]]:
    real = outcome.real
    assert real is not None
    tables = [
        ("Verdicts of simulated and real runs", pd.DataFrame(verdicts(outcome))),
        ("Means of simulated and real runs", pd.DataFrame(rows(outcome))),
        *real.tables(outcome),
        *_withdrawn(outcome),
    ]
    return real.figures(outcome), tables, [*outcome.invalid, *real.remarks(outcome), *outcome.notes]


def _withdrawn(outcome: Outcome[Size]) -> Titled:
    """Returns the table of withdrawn claims with its title; empty without withdrawn claims."""
    listed = [claim.as_dict() for claim in outcome.paper.withdrawn]
    return [("Withdrawn claims", pd.DataFrame(listed))] if listed else []


def _metrics(outcome: Outcome[Size]) -> list[tuple[Table, str]]:
    """Returns the metrics of the claims, each with the first table that has this metric."""
    metrics = dict.fromkeys(j.claim.metric for j in outcome.judgements)
    tables = outcome.tables.values()
    return [(next(t for t in tables if m in t.frame), m) for m in metrics]


def _claimed(outcome: Outcome[Size]) -> Drawn:
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


def _means(outcome: Outcome[Size]) -> Titled:
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


def rows(outcome: Outcome[Size]) -> list[dict[str, str]]:
    """Returns the means of `compared_means` as texts with units."""
    assert outcome.real is not None
    how = outcome.real.means

    def shown(row: Mapping[Hashable, Any], column: str) -> str:
        metric = row.get("metric", how.metrics[0])
        return value(row[column], outcome.units.get(metric, how.unit), metric)

    return [
        {
            **{str(k): str(row[k]) for k in (*how.factors, "metric") if k in row},
            **{k: shown(row, k) for k in ("paper", SIMULATED, REAL) if k in row},
            RATIO: f"{row[RATIO]:.2f}",
            RUNS: str(row[RUNS]),
        }
        for row in outcome.means().to_dict("records")
    ]


def verdicts(outcome: Outcome[Size]) -> list[dict[str, str]]:
    """Returns each claim's simulated and real verdict, with estimate and interval, as texts."""

    def shown_verdict(judgement: Judgement | None) -> tuple[str, str]:
        if judgement is None:
            return "cannot be simulated", ""
        word = judgement.verdict
        if not judgement.findings or not math.isfinite(decisive(judgement).interval.low):
            return judgement.note, word
        plain = judgement.claim.kind in ("mean", "all", "difference")
        metric = judgement.claim.metric if plain else ""
        unit = outcome.units.get(metric, "1")
        return interval(decisive(judgement).interval, unit, metric), word

    def engines(claim: Claim) -> str:
        found = outcome.agreement.get(claim.id)
        if found is None:
            return ""
        word = AGREE[found.verdict]
        ends = decisive(found).interval
        return (
            f"{word}: {interval(ends, '1')}" if math.isfinite(ends.low) else f"{word}: {found.note}"
        )

    here = outcome.in_simulation
    heads = ("finding", "simulated", "verdict simulated", "real", "verdict real", "engines")
    rows = (
        (j.claim.text, *shown_verdict(here.get(j.claim.id)), *shown_verdict(j), engines(j.claim))
        for j in outcome.judgements
    )
    return [dict(zip(heads, row, strict=True)) for row in rows]
