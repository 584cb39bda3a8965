"""A suite's comparison as a table in the terminal."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from rich.text import Text

from sojourn.show import tables
from sojourn.study.names import short_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from sojourn.suites import Outcome

#: Least utilisation of the best queues of a scenario, as a share of the greatest utilisation.
KEEPS = 0.95
#: Largest delay of the best queues of a scenario, as a multiple of the least delay of all queues
#: with enough utilisation.
NEAR = 1.05


def best(outcome: Outcome, scenario: str) -> set[str]:
    """Returns the best queues of a scenario: low 95th percentile of delay at high utilisation.

    `KEEPS` and `NEAR` define the limits.
    """
    rows = outcome.frame[outcome.frame["scenario"] == scenario].set_index("queue")
    busy = rows[rows["utilisation"] >= KEEPS * rows["utilisation"].max()]
    least = busy["sojourn_p95"].min()
    return set(busy.index[busy["sojourn_p95"] <= NEAR * least])


def delay(seconds: float) -> str:
    """Returns a delay in ms as text with about two significant digits; a dash if not finite."""
    if not math.isfinite(seconds):
        return "-"
    ms = 1000 * seconds
    if ms < 0.095:
        return f"{ms:.2f}"
    return f"{ms:.1f}" if ms < 9.95 else f"{ms:.0f}"


def print_suite(outcome: Outcome, console: Console) -> None:
    """Prints scenarios in rows and queues in columns: delay over utilisation, the best ones bold.

    Queues that do not fit into the width are in further tables below.
    """
    cells = {
        (row["scenario"], row["queue"]): (row["sojourn_p95"], row["utilisation"])
        for row in outcome.frame.to_dict(orient="records")
    }
    shorts = [entry.short for entry in outcome.suite.entries]
    winners = {short: best(outcome, short) for short in shorts}

    def cell(short: str, queue: str) -> str:
        if (short, queue) not in cells:
            return "- "
        p95, utilisation = cells[short, queue]
        return f"{delay(p95)}/{100 * utilisation:.0f}" + ("*" if queue in winners[short] else " ")

    names = short_names(outcome.queues)
    heads = {queue: folded(names[queue]) for queue in outcome.queues}
    widths = {
        queue: max(len(x) for x in [*heads[queue], *(cell(short, queue) for short in shorts)])
        for queue in outcome.queues
    }
    first = max(map(len, [*shorts, "scenario"]))
    for at, group in enumerate(grouped(widths, console.width - first - 3)):
        view = tables.table(outcome.suite.title if at == 0 else None)
        view.add_column("scenario", no_wrap=True)
        for queue in group:
            view.add_column("\n".join(heads[queue]), justify="right", no_wrap=True)
        for short in shorts:
            texts = [
                Text(cell(short, q), style="bold" if q in winners[short] else "") for q in group
            ]
            view.add_row(short, *texts)
        console.print(view)
    console.print(
        "95th percentile of the queueing delay in ms / utilisation in %; mean over variants and "
        f"{len(outcome.table.seeds)} seeds. *: lowest delay (within {100 * (NEAR - 1):.0f} %) of "
        f"the queues with at least {100 * KEEPS:.0f} % of the best utilisation.",
        style="dim",
    )
    for entry in outcome.suite.entries:
        where = f", section {entry.section}" if entry.section else ""
        console.print(f"  {entry.short}: {entry.title} ({entry.weight}{where})", style="dim")


WIDEST_HEAD = 16
"""Number of characters above which a queue's name is broken into lines."""


def folded(name: str) -> list[str]:
    """Returns a queue's name, broken into lines of at most `WIDEST_HEAD` characters."""
    return textwrap.wrap(name, WIDEST_HEAD) or [name]


def grouped(widths: Mapping[str, int], room: int) -> list[list[str]]:
    """Returns groups of queues whose columns fit into the width `room`; at least one in a group."""
    groups: list[list[str]] = []
    left = 0
    for queue, width in widths.items():
        if not groups or width + 3 > left:
            groups.append([])
            left = room
        groups[-1].append(queue)
        left -= width + 3
    return groups
