"""Tables of results in the terminal: one unit in each column, means with intervals."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from sojourn.scenario.engine import limit_sentences
from sojourn.show import tables
from sojourn.stats import Interval
from sojourn.study import quantities
from sojourn.study.across import AcrossEngines
from sojourn.study.answer import interest_text, table_metrics
from sojourn.study.cells import Level
from sojourn.study.comparison import Comparison
from sojourn.study.names import elided
from sojourn.study.table import Table

if TYPE_CHECKING:
    from sojourn.stats import Claim, Finding, Judgement, Region
    from sojourn.study.contrast import Contrast, Contrasts

BADGES = {
    "holds": "bold green",
    "does not hold": "bold red",
    "not reproduced": "bold magenta",
    "holds in our network": "green",
    "does not hold in our network": "red",
    "cannot be told": "bold yellow",
}
"""Styles of the verdicts on claims, and on findings of papers (`sojourn.papers.rule`)."""


def aligned(
    intervals: Iterable[Interval], unit: str, metric: str = ""
) -> tuple[quantities.Scale, list[str]]:
    """Returns a column's scale, and its means ± half widths aligned at the decimal point."""
    found = list(intervals)
    scale = quantities.scale(unit, [i.estimate for i in found], metric)
    return scale, quantities.aligned(found, scale)


def _add_metric(
    table: RichTable, metric: str, unit: str, found: Sequence[Interval], better: str
) -> list[Text]:
    """Adds a metric's column to a table; returns its cells. `better` is a direction or empty."""
    scale, texts = aligned(found, unit, metric)
    mark = {"lower": " ↓", "higher": " ↑", "": ""}[better]
    head = f"{metric}{mark}\n{scale.unit}"
    table.add_column(head, justify="right", no_wrap=True)
    return _numbers(head, texts)


def _numbers(head: str, texts: Sequence[str]) -> list[Text]:
    """Returns aligned texts as cells that keep the spaces at their ends."""
    width = max(map(len, head.splitlines()))
    return [Text(text.rjust(width), justify="left") for text in texts]


def _dim(console: Console, notes: Iterable[str]) -> None:
    """Prints the notes that are not empty."""
    for note in filter(None, notes):
        console.print(Text(note, style="dim"))


LONGEST = 120
"""Largest number of characters of a choice in a table; a longer name is shortened in its middle."""


RANKED = {"best": "bold green", "as good as": "green", "inconclusive": "yellow", None: "dim"}
"""Styles of rows by their verdict against the best choice."""


def _named(c: Comparison) -> dict[str, str]:
    """Returns the whole name of each choice whose label in a table is shorter."""
    return {
        c.labels[choice]: choice
        if len(choice) <= LONGEST
        else elided(choice, c.short[choice], LONGEST)
        for choice in c.choices
        if choice not in c.labels[choice]
    }


def comparison(c: Comparison, metrics: Sequence[str] | None = None) -> RichTable:
    """Returns the ranked table of a comparison; `metrics` None means the usual columns."""
    table = tables.table()
    table.add_column("group")
    table.add_column(c.noun, overflow="fold", max_width=44)
    columns = []
    for metric in metrics or table_metrics(c):
        column = c.table.metric(metric)
        intervals = [e.value if column == c.by else e.metrics[column] for e in c.entries]
        unit = c.table.units.get(column, "")
        columns.append(
            _add_metric(table, column, unit, intervals, c.better if column == c.by else "")
        )
    for row, entry in enumerate(c.entries):
        group = Text(entry.letters or quantities.NOTHING)
        cells = [group, Text(c.labels[entry.choice]), *(texts[row] for texts in columns)]
        table.add_row(*cells, style=RANKED.get(entry.verdict, ""))
    return table


def print_comparison(
    c: Comparison, console: Console | None = None, answer: str | None = None
) -> None:
    """Prints the answer, the ranked table, and notes on its signs and excluded choices.

    `answer` replaces the comparison's own answer.
    """
    console = console or _console()
    console.print(Text(c.answer() if answer is None else answer))
    table, omitted = _fitting(c, console)
    console.print(table)
    notes = [
        (
            f"Mean over {len(c.seeds)} seeds ± half of the 95 % interval. {c.noun.capitalize()}s "
            "that share a letter do not differ significantly. A difference is significant if "
            "its paired, simultaneous 95 % interval is wholly beyond "
            f"{interest_text(c.by, c.interest)}."
        )
    ]
    notes += [f"{c.labels[e.choice]}: {e.reason}" for e in c.entries if e.reason]
    if omitted:
        notes.append(f"Omitted for a terminal of {console.width} columns: {', '.join(omitted)}.")
    notes += [f"{label}: {name}." for label, name in _named(c).items()]
    shown = [m for m in table_metrics(c) if m != c.by]
    found = ([e.value, *(e.metrics[m] for m in shown)] for e in c.entries)
    notes.append(quantities.wide(i for row in found for i in row))
    _dim(console, notes)


def across(a: AcrossEngines, metrics: Sequence[str]) -> RichTable:
    """Returns the table of a comparison by several engines, a row for each choice and engine."""
    table = tables.table()
    table.add_column(a.first.noun, overflow="fold", max_width=30)
    table.add_column("engine")
    table.add_column("group")
    rows = a.rows
    columns = []
    for metric in metrics:
        values = [r.value(metric, a.by) for r in rows]
        better = a.first.better if metric == a.by else ""
        columns.append(_add_metric(table, metric, a.unit(metric), values, better))
    last = ""
    for at, row in enumerate(rows):
        group = row.entry.letters or quantities.NOTHING
        best = row.entry in a.engines[row.engine].winners
        style = "bold" if best else "dim" if not row.entry.feasible else ""
        name = row.choice if row.choice != last else ""
        last = row.choice
        cells = [Text(name), Text(row.engine), Text(group), *(texts[at] for texts in columns)]
        table.add_row(*cells, style=style)
    return table


def print_across(a: AcrossEngines, console: Console | None = None) -> None:
    """Prints the answers of all engines, their common table, notes, and the engines' limits."""
    console = console or _console()
    console.print(Text(a.answer()))
    metrics = a.table_metrics()
    table = across(a, metrics)
    while len(metrics) > 1 and _width(table) > console.width:
        metrics.pop()
        table = across(a, metrics)
    console.print(table)
    seeds, noun = len(a.first.seeds), a.first.noun
    notes = [
        (
            f"Mean over {seeds} seeds ± half of the 95 % interval. Letters compare each engine's "
            f"own runs: {noun}s that share a letter do not differ significantly. A difference is "
            "significant if its paired, simultaneous 95 % interval is wholly beyond "
            f"{interest_text(a.by, a.first.interest)}. "
            f"{quantities.NOTHING}: not measured by that engine."
        )
    ]
    notes += [f"{r.choice}, {r.engine}: {r.entry.reason}" for r in a.rows if r.entry.reason]
    shown = (r.value(metric, a.by) for r in a.rows for metric in metrics)
    _dim(console, [*notes, quantities.wide(shown), *limit_sentences(a.limits)])


def _fitting(c: Comparison, console: Console) -> tuple[RichTable, list[str]]:
    """Returns the ranked table with the columns that fit, and the metrics that were omitted.

    The least important are omitted first.
    """
    metrics = table_metrics(c)
    whole = list(metrics)
    asked = {c.by, *(c.table.metric(x.metric) for x in c.conditions)}
    spare = [m for m in reversed(metrics) if m not in asked and "." not in m]
    spare += [m for m in reversed(metrics) if m not in asked and "." in m]
    spare += [m for m in reversed(metrics) if m in asked and m != c.by]
    table = comparison(c, metrics)
    for metric in spare:
        if Measurement.get(console, console.options.update(width=10_000), table).maximum <= (
            console.width
        ):
            break
        metrics.remove(metric)
        table = comparison(c, metrics)
    return table, [metric for metric in whole if metric not in metrics]


def mean_of(table: Table, metrics: Sequence[str]) -> str:
    """Returns a note on the values in a table of means of these metrics."""
    seeds = len(table.seeds)
    if seeds == 1:
        return "One run of each cell: without intervals, no difference can be decided."
    found = [i for m in metrics for i in table.intervals(m).values()]
    fewest = min((i.n for i in found if i.n), default=seeds)
    parts = [f"Mean over {seeds} seeds ± half of the 95 % interval.", quantities.wide(found)]
    if fewest < seeds:
        parts.insert(1, f"Some means are of {fewest} seeds, as the others have no value.")
    return " ".join(filter(None, parts))


def ci(
    table: Table,
    metrics: Sequence[str],
    by: str | Sequence[str] | None = None,
    width: int | None = None,
) -> RichTable:
    """Returns a table of means with 95 % intervals for each combination of levels.

    `by` names the factors; None means all. If the table is wider than `width` columns, the factors'
    names are shortened to their last parts.
    """
    keys = list(table.factors) if by is None else [by] if isinstance(by, str) else list(by)
    levels: list[tuple[str, ...]] = []
    columns = []
    for metric in metrics:
        column = table.metric(metric)
        frame = table.ci(metric, by=keys)
        levels = [tuple(str(x) for x in row) for row in frame[keys].itertuples(index=False)]
        intervals = [
            Interval(float(r["mean"]), float(r["low"]), float(r["high"]), 0.95, int(r["n"]))
            for r in frame.to_dict("records")
        ]
        scale, texts = aligned(intervals, table.units.get(column, ""), column)
        head = f"{column}\n{scale.unit}"
        columns.append((head, _numbers(head, texts)))

    def made(heads: Sequence[str]) -> RichTable:
        shown = tables.table()
        _factors(shown, heads, levels)
        for head, _ in columns:
            shown.add_column(head, justify="right", no_wrap=True)
        for row, level in enumerate(levels):
            shown.add_row(*map(Text, level), *(texts[row] for _, texts in columns))
        return shown

    whole = made(keys)
    fits = width is None or _width(whole) <= width
    return whole if fits else made(_last_parts(keys))


def _factors(shown: RichTable, heads: Sequence[str], levels: Sequence[Sequence[str]]) -> None:
    """Adds the columns of factors; only columns with long levels, and the widest, may wrap."""
    widest = max(
        range(len(heads)), key=lambda at: max((len(x[at]) for x in levels), default=0), default=0
    )
    for at, head in enumerate(heads):
        numeric = all(_number(level[at]) for level in levels)
        shown.add_column(
            head,
            justify="right" if numeric else "left",
            overflow="fold",
            no_wrap=at != widest and max(map(len, (level[at] for level in levels)), default=0) < 16,
        )


def _last_parts(keys: Sequence[str]) -> list[str]:
    """Returns the last part of each dotted name; the whole name if its last part is not unique."""
    last = [key.rpartition(".")[2] for key in keys]
    return [short if last.count(short) == 1 else key for short, key in zip(last, keys, strict=True)]


def _width(table: RichTable) -> int:
    """Returns the width in characters of a table without wrapping."""
    free = Console(width=10_000)
    return Measurement.get(free, free.options, table).maximum


EXACT = (
    "A difference without an interval is the same with all seeds. It is exact if nothing in these "
    "cells is random; otherwise other seeds may differ."
)
_SPARE = (frozenset({0}), frozenset({0, 2}), frozenset({0, 2, 4}))
"""Sets of columns that a table of contrasts omits in a narrow terminal, tried in this order."""


def print_contrasts(c: Contrasts, console: Console | None = None) -> None:
    """Prints how many cells of each level differ from the baseline, and the differences."""
    console = console or _console()
    console.print(Text(c.answer()))
    sizes = [x for row in c.rows for x in (row.baseline, row.mean)]
    scale = quantities.scale(c.unit, sizes, c.metric)
    texts = {id(row): _contrast(row, scale) for row in c.rows}
    others = list(c.rows[0].cell)
    # Without other factors there is a single table, with a row for each level.
    for level in c.levels if others else [None]:
        rows = c.rows if level is None else c.of(level)
        keys = others or [c.factor]
        names = [[str(x) for x in (row.cell.values() or [row.level])] for row in rows]

        def made(
            heads: Sequence[str],
            left_out: frozenset[int] = frozenset(),
            level: Level | None = level,
            rows: Sequence[Contrast] = rows,
            names: Sequence[Sequence[str]] = names,
        ) -> RichTable:
            shown = tables.table(None if level is None else f"{level}, against {c.baseline}")
            _factors(shown, heads, names)
            columns = (
                f"{c.metric}\n{scale.unit}", f"difference\n{scale.unit}", "\n%", "verdict",
                "seeds\nwanted",
            )  # fmt: skip
            kept = [at for at in range(len(columns)) if at not in left_out]
            for at in kept:
                left = columns[at] == "verdict"
                shown.add_column(columns[at], justify="left" if left else "right", no_wrap=True)
            for name, row in zip(names, rows, strict=True):
                shown.add_row(*map(Text, name), *(texts[id(row)][at] for at in kept))
            return shown

        short = _last_parts(keys)
        tries = [made(keys), *(made(short, spare) for spare in (frozenset(), *_SPARE))]
        console.print(next((t for t in tries if _width(t) <= console.width), tries[-1]))
    note = (
        f"Difference to {c.baseline}: mean [interval], runs paired by seed; all intervals are "
        f"simultaneous at {100 * (1 - c.alpha):g} %. A verdict requires an interval wholly beyond "
        f"or wholly within the smallest difference of interest, {c.smallest}."
    )
    exact = EXACT if any(row.exact for row in c.rows) else ""
    _dim(console, [note, *c.reasons(), exact])


def _contrast(row: Contrast, scale: quantities.Scale) -> list[Text]:
    low, high = (scale.apply(x) for x in (row.difference.low, row.difference.high))
    places = quantities.decimals(
        [scale.apply(row.difference.estimate)], [scale.apply(row.difference.half_width)]
    )
    gap = quantities.number(scale.apply(row.difference.estimate), places)
    if math.isfinite(low) and not row.exact:
        gap += f" [{quantities.number(low, places)}, {quantities.number(high, places)}]"
    base = abs(row.baseline)
    part = quantities.rounded(
        100 * row.change, 100 * row.difference.half_width / base if base else math.nan
    )
    return [
        Text(quantities.number(scale.apply(row.mean), places)),
        Text(gap),
        Text(f"+{part}" if row.change > 0 and float(part) else part),
        Text(row.verdict, style="bold" if row.verdict in _DIFFERS else ""),
        Text(str(row.seeds or "")),
    ]


_DIFFERS = ("better", "worse", "more", "less")


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


Asides: TypeAlias = "Callable[[Claim], Sequence[str]]"
"""Function that returns additional lines for a claim's verdict."""
MOST_PARTS = 12
"""Largest number of parts of a conjunction that the terminal shows; the page shows all."""


def no_asides(_claim: Claim) -> Sequence[str]:
    """Returns no additional lines."""
    return ()


def claims(
    judgements: Sequence[Judgement],
    units: Mapping[str, str] | None = None,
    asides: Asides = no_asides,
    rulings: Mapping[str, str] = MappingProxyType({}),
) -> RichTable:
    """Returns a table of claims: the paper's values, the measured ones and the verdicts.

    `rulings` replaces the verdicts of claims, by identifier. The parts of a conjunction are below
    it and have no verdicts.
    """
    table = tables.table()
    table.add_column("finding", ratio=3, overflow="fold")
    table.add_column("paper", ratio=2, overflow="fold")
    table.add_column("here", ratio=3, overflow="fold")
    table.add_column("verdict", no_wrap=True)
    for j in judgements:
        word = rulings.get(j.claim.id, j.verdict)
        table.add_row(
            Text(j.claim.text),
            Text(j.claim.published),
            Text("\n".join([here(j, units or {}), *asides(j.claim)])),
            Text(word.replace(" in our ", "\nin our "), style=BADGES[word]),
        )
        below = parts(j)
        for name, finding in below.items() if len(below) <= MOST_PARTS else ():
            values = f"{quantities.interval(finding.interval, '1')}, predicted {finding.region}"
            table.add_row(
                *(Text(text, style="dim") for text in (f"  {name}", "", values, finding.where))
            )
    return table


def parts(j: Judgement) -> dict[str, Finding]:
    """Returns the worst quantity of each part of a conjunction, with its simultaneous interval.

    The mapping is empty for a claim without several parts.
    """
    found: dict[str, list[Finding]] = {}
    for finding in j.simultaneous:
        if finding.part:
            found.setdefault(finding.part, []).append(finding)
    return {part: worst(listed) for part, listed in found.items()} if len(found) > 1 else {}


def here(j: Judgement, units: Mapping[str, str]) -> str:
    """Returns a claim's measurement as text: its decisive quantity, the prediction, and a note."""
    if not j.findings:
        return j.note
    finding = decisive(j)
    # A mean or a difference has the metric's unit; a ratio has none.
    plain = j.claim.kind in ("mean", "all", "difference")
    unit = units.get(j.claim.metric, "") if plain else "1"
    metric = j.claim.metric if plain else ""
    text = quantities.interval(finding.interval, unit, metric)
    wanted = region(finding.region, unit, metric)
    more = f" (worst of {len(j.findings)})" if len(j.findings) > 1 else ""
    note = f"; {j.note}" if j.note else ""
    return f"{finding.label}: {text}{more}, predicted {wanted}{note}"


def comparisons(j: Judgement, units: Mapping[str, str]) -> list[tuple[str, str, str, str]]:
    """Returns all quantities of a claim as texts, with the intervals that decide the verdict.

    A quantity has its name, value with interval, predicted region, and where the interval is.
    """
    plain = j.claim.kind in ("mean", "all", "difference")
    unit, metric = (units.get(j.claim.metric, ""), j.claim.metric) if plain else ("1", "")
    return [
        (
            f"{f.part}: {f.label}" if f.part else f.label,
            quantities.interval(f.interval, unit, metric),
            region(f.region, unit, metric) if plain else str(f.region),
            f.where,
        )
        for f in j.findings
    ]


def region(r: Region, unit: str, metric: str) -> str:
    """Returns a predicted region as text, with the metric's unit."""
    if math.isinf(r.low) and math.isinf(r.high):
        return "anything"
    if math.isinf(r.low):
        return f"at most {quantities.value(r.high, unit, metric)}"
    if math.isinf(r.high):
        return f"at least {quantities.value(r.low, unit, metric)}"
    low, high = (quantities.value(x, unit, metric) for x in (r.low, r.high))
    return f"{low} to {high}"


def decisive(j: Judgement) -> Finding:
    """Returns the quantity that decides the verdict on a claim."""
    return worst(j.findings)


def worst(findings: Sequence[Finding]) -> Finding:
    """Returns the quantity that is shown for a claim.

    A quantity outside its region comes first, then one across the edge; among equals, the one with
    the least distance from the edge.
    """
    order = {"outside": 0, "across": 1, "inside": 2}
    return min(findings, key=lambda f: (order[f.where], _slack(f)))


def _slack(finding: Finding) -> float:
    """Returns the distance of a mean from the region's edge, in half widths of the interval."""
    i, r = finding.interval, finding.region
    away = min(abs(i.estimate - b) for b in r.bounds()) if r.bounds() else math.inf
    if i.half_width > 0:
        return float(away / i.half_width)
    # An interval without width is certain, except on the edge itself.
    return math.inf if away > 0 else 0.0


def print_claims(
    judgements: Sequence[Judgement],
    units: Mapping[str, str] | None = None,
    console: Console | None = None,
    asides: Asides = no_asides,
    rulings: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Prints the verdicts on all claims, and the number of claims with each verdict."""
    console = console or _console()
    console.print(claims(judgements, units, asides, rulings))
    console.print(Text(counted([rulings.get(j.claim.id, j.verdict) for j in judgements])))
    _dim(console, [confidence(judgements)])


def counted(verdicts: Sequence[str]) -> str:
    """Returns how many claims have each verdict, as a sentence.

    Verdicts of the rule on papers are omitted if no claim has them.
    """
    contrasts = ("holds", "does not hold", "cannot be told")
    numbers = [(verdicts.count(w), w) for w in BADGES if w in verdicts or w in contrasts]
    listed = [f"{n} {word if n == 1 else _many(word)}" for n, word in numbers]
    return f"{len(verdicts)} claim{'' if len(verdicts) == 1 else 's'}: {', '.join(listed)}."


def _many(word: str) -> str:
    return re.sub("^holds", "hold", word.replace("does not", "do not"))


def confidence(judgements: Sequence[Judgement]) -> str:
    """Returns a note on the confidence level of the intervals; empty without intervals."""
    levels = [f.interval.level for j in judgements for f in j.findings]
    if not levels:
        return ""
    low, high = (f"{100 * level:.4g}" for level in (min(levels), max(levels)))
    span = low if low == high else f"{low} to {high}"
    return (
        f"In brackets: intervals over seeds of {span} % confidence. They are Holm-corrected, so "
        "that all claims together err with a probability of at most 5 %. Unless a claim holds, the "
        "intervals of its quantities are also Bonferroni-corrected."
    )


def _console() -> Console:
    return Console()
