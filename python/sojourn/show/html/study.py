"""The report on a study: factors, means with intervals, figures."""

from __future__ import annotations

from sojourn.scenario.engine import ENGINE
from sojourn.show import charts, labels
from sojourn.show.html import common, plots
from sojourn.show.html.blocks import Block, Cell, Facts, Page, Plot, Section, Table, Text
from sojourn.stats import Interval, mean_of_runs
from sojourn.study import quantities
from sojourn.study.cells import Level
from sojourn.study.contrast import contrasts
from sojourn.study.errors import StudyError
from sojourn.study.results import Results
from sojourn.study.table import Table as StudyTable

_MANY = 60
"""Largest number of lines in a figure; figures with more are omitted."""
_COLUMNS = 6
"""Number of metrics in one table."""


def page(results: Results) -> Page:
    """Returns the page of the report."""
    table = results.table()
    metrics = table.interesting()
    factors = [(labels.factor(f), ", ".join(map(str, table.levels(f)))) for f in table.factors]
    said = [Text(one.text, "warning") for one in results.findings]
    of_file = bool(results.factors) and results.kind == "study"
    return common.page(
        results,
        [f"Study: {len(table)} runs", f"{len(table.seeds)} seeds", common.simulated(results)],
        [Facts(factors or [("Factors", "none")])],
        [
            Section("results", "Results", [*said, *_results(table, metrics)]),
            Section("verdicts", "Verdicts", _verdicts(table, metrics[:1])),
            Section("figures", "Figures", _figures(table, results, metrics)),
        ],
        metrics,
        ["# the study's file: the scenario below, its factors in [study.vary]"] * of_file,
    )


def _results(table: StudyTable, metrics: list[str]) -> list[Block]:
    keys = list(table.factors)
    if not keys:
        rows = []
        for metric in metrics:
            i = mean_of_runs(table.counted(metric))
            head, cells = common.column([i], metric, table.units.get(metric, ""))
            rows.append([Cell(head[0]), cells[0], Cell(head[1])])
        heads: list[tuple[str, str]] = [("metric", ""), ("value", ""), ("unit", "")]
        return [Table(heads, rows), common.statistics_text(len(table.seeds), "")]
    levels = [*table.intervals(metrics[0], keys)]
    numeric = [
        all(isinstance(level[at], (int, float)) for level in levels) for at in range(len(keys))
    ]
    columns = [
        [Cell(str(level[at]), numeric=numeric[at]) for level in levels] for at in range(len(keys))
    ]
    text = "All cells were run with the same seeds, so their differences are compared seed by seed."
    blocks: list[Block] = [common.statistics_text(len(table.seeds), text)]
    for start in range(0, len(metrics), _COLUMNS):
        heads, measured = [(labels.factor(k), "") for k in keys], []
        for metric in metrics[start : start + _COLUMNS]:
            found = [*table.intervals(metric, keys).values()]
            head, cells = common.column(found, metric, table.units.get(metric, ""))
            heads.append(head)
            measured.append(cells)
        blocks.append(Table(heads, list(map(list, zip(*columns, *measured, strict=True)))))
    return blocks


def _verdicts(table: StudyTable, metrics: list[str]) -> list[Block]:
    """Returns the contrasts of all queues with the first one; empty if queues do not vary."""
    if "queue" not in table.factors or len(table.levels("queue")) < 2 or len(table.seeds) < 2:
        return []
    blocks: list[Block] = []
    for metric in metrics:
        try:
            c = contrasts(table, metric, table.levels("queue")[0], "queue")
        except StudyError:  # no cell has the first queue and another one
            return []
        blocks.append(Text(c.answer()))
        names = [labels.factor(name) for name in (*c.rows[0].cell, "queue")]
        heads = [(name, "") for name in (*names, "difference", "verdict", "conditions")]
        rows = [
            [
                *(Cell(str(level)) for level in (*row.cell.values(), row.level)),
                Cell(quantities.interval(row.difference, c.unit, metric)),
                Cell(row.verdict),
                Cell(row.reason or ("met" if row.checks else quantities.NOTHING)),
            ]
            for row in c.rows
        ]
        blocks.append(Table(heads, rows))
    return blocks


def axes(table: StudyTable) -> tuple[str | None, list[str]]:
    """Returns the factor for the horizontal axis, and the other factors.

    The axis shows the first factor with at least three numbers, or else the last factor, but not
    the engine. A single factor without three numbers gives None.
    """
    factors = [f for f in table.factors if f != ENGINE]
    engines = [f for f in table.factors if f == ENGINE and factors]
    factors = factors or list(table.factors)
    numbers = [
        f
        for f in factors
        if len(table.levels(f)) > 2 and labels.quantity(table.levels(f)) is not None
    ]
    across = numbers[0] if numbers else factors[-1] if len([*factors, *engines]) > 1 else None
    return across, [f for f in [*factors, *engines] if f != across]


def _figures(table: StudyTable, results: Results, metrics: list[str]) -> list[Block]:
    if not table.factors:
        return []
    across, rest = axes(table)
    blocks: list[Block] = []
    for at, metric in enumerate(metrics):
        unit = table.units.get(metric, "")
        if across is None:
            found = {str(k[0]): i for k, i in table.intervals(metric, rest).items()}
            names = labels.names(list(found))
            blocks.append(plots.means(f"m{at}", charts.means(metric, unit, found, names)))
            continue
        lines: dict[str, list[tuple[Level, Interval]]] = {}
        for key, i in table.intervals(metric, [*rest, across]).items():
            lines.setdefault(", ".join(map(str, key[:-1])) or metric, []).append((key[-1], i))
        if len(lines) <= _MANY:
            short = labels.names(list(lines))
            named = {short[k]: v for k, v in lines.items()}
            chart = charts.over(metric, unit, across, named)
            blocks.append(plots.lines(f"m{at}", chart, half=True, height=360))
    blocks += _by_first(table, results, rest[0] if rest else across)
    return blocks


def _by_first(table: StudyTable, results: Results, factor: str | None) -> list[Plot]:
    """Returns distributions by level if `factor` is the only factor and has at most 8 levels."""
    if factor is None or len(table.factors) > 1 or len(table.levels(factor)) > 8:
        return []
    groups = {str(x): results.runs(**{factor: x}) for x in table.levels(factor)}
    names = labels.names(list(groups))
    spread = charts.cdf(groups, names, "sojourn", results.bottleneck, "s")
    return [] if spread is None else [plots.lines("cdf", spread)]
