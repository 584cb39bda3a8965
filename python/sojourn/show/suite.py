"""A suite's comparison as one terminal table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from sojourn.suites import Outcome

#: A queue is among the best of a scenario if it keeps this share of the greatest utilisation ...
KEEPS = 0.95
#: ... and its delay is within this factor of the least among those that do.
NEAR = 1.05


def best(outcome: Outcome, scenario: str) -> set[str]:
    """Queues with the least 95th percentile of delay among those that keep the link as busy."""
    rows = outcome.frame[outcome.frame["scenario"] == scenario].set_index("queue")
    busy = rows[rows["utilisation"] >= KEEPS * rows["utilisation"].max()]
    least = busy["sojourn_p95"].min()
    return set(busy.index[busy["sojourn_p95"] <= NEAR * least])


def delay(seconds: float) -> str:
    """A delay in milliseconds with two digits that matter."""
    if not math.isfinite(seconds):
        return "-"
    ms = 1000 * seconds
    if ms < 0.095:
        return f"{ms:.2f}"
    return f"{ms:.1f}" if ms < 9.95 else f"{ms:.0f}"


def print_suite(outcome: Outcome, console: Console) -> None:
    """Print a row a queue and a column a scenario: delay over utilisation, the best ones bold."""
    from rich.text import Text

    from sojourn.show import tables

    view = tables.table(outcome.suite.title)
    view.add_column("queue", no_wrap=True)
    shorts = [entry.short for entry in outcome.suite.entries]
    for short in shorts:
        view.add_column(short, justify="right", no_wrap=True)
    cells = {
        (row["scenario"], row["queue"]): (row["sojourn_p95"], row["utilisation"])
        for row in outcome.frame.to_dict(orient="records")
    }
    winners = {short: best(outcome, short) for short in shorts}
    for queue in outcome.queues:
        row = [Text(queue)]
        for short in shorts:
            if (short, queue) not in cells:
                row.append(Text("-"))
                continue
            p95, utilisation = cells[short, queue]
            text = f"{delay(p95)}/{100 * utilisation:.0f}"
            won = queue in winners[short]
            row.append(Text(f"{text}*" if won else f"{text} ", style="bold" if won else ""))
        view.add_row(*row)
    console.print(view)
    console.print(
        "p95 of the queueing delay in ms / utilisation in %; mean over variants and seeds. "
        f"* least delay (within {100 * (NEAR - 1):.0f} %) of the queues that keep "
        f"{100 * KEEPS:.0f} % of the best utilisation.",
        style="dim",
    )
    for entry in outcome.suite.entries:
        where = f", section {entry.section}" if entry.section else ""
        console.print(f"  {entry.short}: {entry.title} ({entry.weight}{where})", style="dim")
