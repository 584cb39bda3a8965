"""The report on a comparison of choices with several engines."""

from __future__ import annotations

from sojourn.scenario.engine import ENGINE
from sojourn.show import charts, colours, labels
from sojourn.show.html import common, plots
from sojourn.show.html.blocks import Block, Cell, Page, Section, Table, Text
from sojourn.show.html.comparison import command
from sojourn.stats import Interval
from sojourn.study import quantities
from sojourn.study.across import AcrossEngines
from sojourn.study.answer import interest_text
from sojourn.study.cells import Level


def page(a: AcrossEngines) -> Page:
    """Returns the page of the report."""
    results, first = common.needed(a.results), a.first
    return common.page(
        results,
        [
            f"Comparison of {len(first.choices)} {first.noun}s",
            f"{len(a.engines)} engines",
            f"{len(first.seeds)} seeds",
            common.simulated(results),
        ],
        [
            Text(f"Which {first.noun} has {a.question()}, by each engine?", "question"),
            Text(a.agreement, "answer"),
            *(Text(f"{name}: {c.answer()}") for name, c in a.engines.items()),
        ],
        [
            Section("ranking", "Ranking by engine", _ranking(a)),
            Section("figures", "Figures", _figures(a)),
        ],
        a.shown_metrics,
        [command(first, list(a.engines))],
    )


def _ranking(a: AcrossEngines) -> list[Block]:
    first, rows = a.first, a.rows
    looks = dict(zip(first.choices, colours.slots(first.choices), strict=True))
    short = first.short
    best = [r.entry in a.engines[r.engine].winners for r in rows]
    heads: list[tuple[str, str]] = [(first.noun, ""), (ENGINE, ""), ("group", "")]
    columns: list[list[Cell]] = [
        [
            Cell(
                short.get(r.choice, r.choice),
                colour=looks.get(r.choice),
                strong=strong,
                sub=r.choice if short.get(r.choice, r.choice) != r.choice else "",
            )
            for r, strong in zip(rows, best, strict=True)
        ],
        [Cell(r.engine) for r in rows],
        [
            Cell(r.entry.letters or quantities.NOTHING, strong=strong)
            for r, strong in zip(rows, best, strict=True)
        ],
    ]
    for metric in a.table_metrics(6):
        found = [r.value(metric, a.by) for r in rows]
        head, cells = common.column(found, metric, a.unit(metric))
        heads.append(head)
        columns.append(cells)
    out = [at for at, r in enumerate(rows) if not r.entry.feasible]
    text = (
        "Each engine's runs are compared with each other, pair by pair over the same seeds. Two "
        f"{first.noun}s that share a letter do not differ significantly. A difference is "
        "significant if its simultaneous interval (Bonferroni) is wholly beyond "
        f"{interest_text(a.by, first.interest)}. {quantities.NOTHING}: not measured by that engine."
    )
    return [
        Table(heads, list(map(list, zip(*columns, strict=True))), "Each engine separately", out),
        common.statistics_text(len(first.seeds), text),
    ]


def _figures(a: AcrossEngines) -> list[Block]:
    names = labels.names(a.first.choices)
    blocks: list[Block] = []
    for at, metric in enumerate(a.shown_metrics[:10]):
        lines: dict[str, list[tuple[Level, Interval]]] = {}
        for row in a.rows:
            value = row.value(metric, a.by)
            if value.n:
                lines.setdefault(row.engine, []).append((names[row.choice], value))
        if lines:
            chart = charts.over(metric, a.unit(metric), a.first.noun, lines)
            blocks.append(plots.lines(f"m{at}", chart, half=True, height=360))
    return blocks
