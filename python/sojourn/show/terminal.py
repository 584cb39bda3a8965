"""Tables in the terminal: columns that line up, one unit a column, intervals beside means."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sojourn.show import tables
from sojourn.study import quantities
from sojourn.study.answer import table_metrics

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import Console
    from rich.table import Table as RichTable

    from sojourn.stats import Interval, Judgement
    from sojourn.study.comparison import Comparison
    from sojourn.study.table import Table

BADGES = {
    "holds": ("holds", "bold green"),
    "does not hold": ("does not hold", "bold red"),
    "cannot be told": ("cannot be told", "bold yellow"),
}


def aligned(
    intervals: Iterable[Interval], unit: str, metric: str = ""
) -> tuple[quantities.Scale, list[str]]:
    """Return the column's unit, and means with half widths so that points stand below points."""
    found = list(intervals)
    scale = quantities.scale(unit, [i.estimate for i in found], metric)
    means = [scale.apply(i.estimate) for i in found]
    halves = [scale.apply(i.half_width) for i in found]
    places = quantities.decimals(means, halves)
    left = [quantities.number(m, places) for m in means]
    right = [quantities.number(h, places) if math.isfinite(h) else "" for h in halves]
    wide = max(map(len, right), default=0)
    texts = []
    for a, b in zip(left, right, strict=True):
        tail = f" ± {b.rjust(wide)}" if b else " " * (3 + wide if wide else 0)
        texts.append(a + tail)
    return scale, texts


def comparison(c: Comparison, metrics: Sequence[str] | None = None) -> RichTable:
    """Return the ranked table of a comparison."""
    from rich.text import Text

    table = tables.table()
    table.add_column("rank", justify="right")
    table.add_column(c.noun, overflow="fold", max_width=44)
    columns = []
    for metric in metrics or table_metrics(c):
        column = c.table.metric(metric)
        intervals = [e.value if column == c.by else e.metrics[column] for e in c.entries]
        scale, texts = aligned(intervals, c.table.units.get(column, ""), column)
        mark = {"lower": " ↓", "higher": " ↑"}[c.better] if column == c.by else ""
        table.add_column(f"{column}{mark}\n{scale.unit}", justify="right", no_wrap=True)
        columns.append(texts)
    for row, entry in enumerate(c.entries):
        rank = str(entry.rank) if entry.rank else quantities.NOTHING
        style = "bold" if entry.rank == 1 else "dim" if not entry.feasible else ""
        cells = [Text(rank), Text(entry.choice), *(Text(texts[row]) for texts in columns)]
        table.add_row(*cells, style=style)
    return table


def print_comparison(
    c: Comparison, console: Console | None = None, answer: str | None = None
) -> None:
    """Print the answer, or another one given, the ranked table, and what its signs mean."""
    from rich.text import Text

    console = console or _console()
    console.print(Text(c.answer() if answer is None else answer))
    console.print(_fitting(c, console))
    notes = [
        (
            f"Mean over {len(c.seeds)} seeds ± half of the 95 % interval. "
            f"{c.noun.capitalize()}s that cannot be told apart (paired by seed, Holm-corrected) "
            "share a rank."
        )
    ]
    notes += [f"{e.choice}: {e.reason}" for e in c.entries if e.reason]
    for note in notes:
        console.print(Text(note, style="dim"))


def _fitting(c: Comparison, console: Console) -> RichTable:
    """Return the table with as many columns as the terminal is wide, the least telling left out."""
    from rich.measure import Measurement

    metrics = table_metrics(c)
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
    return table


def ci(table: Table, metrics: Sequence[str], by: str | Sequence[str] | None = None) -> RichTable:
    """Return means and intervals of some metrics for each level of some factors."""
    from rich.text import Text

    from sojourn.stats import Interval

    keys = list(table.factors) if by is None else [by] if isinstance(by, str) else list(by)
    shown = tables.table()
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
        columns.append((f"{column}\n{scale.unit}", texts))
    for at, key in enumerate(keys):
        numeric = all(_number(level[at]) for level in levels)
        shown.add_column(key, justify="right" if numeric else "left", overflow="fold")
    for head, _ in columns:
        shown.add_column(head, justify="right", no_wrap=True)
    for row, level in enumerate(levels):
        shown.add_row(*map(Text, level), *(Text(texts[row]) for _, texts in columns))
    return shown


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def claims(judgements: Sequence[Judgement], units: Mapping[str, str] | None = None) -> RichTable:
    """Return the verdicts on a study's claims, with the numbers beside the paper's."""
    from rich.text import Text

    table = tables.table(show_lines=False)
    table.add_column("finding", ratio=3, overflow="fold")
    table.add_column("paper", ratio=2, overflow="fold")
    table.add_column("here", ratio=3, overflow="fold")
    table.add_column("verdict", no_wrap=True)
    for j in judgements:
        word, style = BADGES[j.verdict]
        table.add_row(
            Text(j.claim.text),
            Text(j.claim.published),
            Text(here(j, units or {})),
            Text(word, style=style),
        )
    return table


def here(j: Judgement, units: Mapping[str, str]) -> str:
    """Return what was measured for a claim: its decisive quantity, and a note if there is one."""
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


def region(r: Any, unit: str, metric: str) -> str:
    """Return a predicted region with its unit."""
    if math.isinf(r.low) and math.isinf(r.high):
        return "anything"
    if math.isinf(r.low):
        return f"at most {quantities.value(r.high, unit, metric)}"
    if math.isinf(r.high):
        return f"at least {quantities.value(r.low, unit, metric)}"
    low, high = (quantities.value(x, unit, metric) for x in (r.low, r.high))
    return f"{low} to {high}"


def decisive(j: Judgement) -> Any:
    """Return the quantity that decides a claim: one outside, else one that reaches across."""
    order = {"outside": 0, "across": 1, "inside": 2}
    return min(j.findings, key=lambda f: (order[f.where], _slack(f)))


def _slack(finding: Any) -> float:
    """How far from the region's edge the estimate lies, in half widths: the least is decisive."""
    i, r = finding.interval, finding.region
    away = min(abs(i.estimate - b) for b in r.bounds()) if r.bounds() else math.inf
    if i.half_width > 0:
        return float(away / i.half_width)
    # Without any spread there is no doubt, except on the edge itself.
    return math.inf if away > 0 else 0.0


def print_claims(
    judgements: Sequence[Judgement],
    units: Mapping[str, str] | None = None,
    console: Console | None = None,
) -> None:
    """Print the verdicts and how many there are of each."""
    from rich.text import Text

    console = console or _console()
    console.print(claims(judgements, units))
    counts = [
        f"{sum(j.verdict == verdict for j in judgements)} {word}"
        for verdict, (word, _) in BADGES.items()
    ]
    console.print(Text(f"{len(judgements)} claims: {', '.join(counts)}."))


def _console() -> Console:
    from rich.console import Console as _Console

    return _Console()
