"""A live view of a wire's links in the terminal: rate, backlog, sojourn time, drops, marks.

`View` converts the wire's counters into rows. `follow` shows the rows until the wire ends. `Beside`
shows them from a separate thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sojourn.lab.errors import LabError
from sojourn.lab.wire.control import Client
from sojourn.lab.wire.counters import Counters, LinkCounters
from sojourn.lab.wire.quantities import bits, duration, octets, sparkline

EVERY = 0.5
"""Default interval between two readings, in seconds."""
SAMPLES = 32
"""Number of readings in a sparkline."""
SPARE = ("sends over time", "sojourn over time", "lost", "marks", "rate", "drops")
"""Columns that a narrow terminal omits, the least important first."""
NAMES = 16
"""Width of a column of names, in characters, below which other columns are omitted."""
GAP = 3
"""Width in characters of the space between two columns."""


@dataclass(frozen=True)
class Row:
    """State of one link, from two readings of its counters.

    Times are in seconds, rates in bit/s.
    """

    link: str
    queue: str
    rate: int | None
    """Configured rate; `None` for a link without a rate limit."""
    throughput: float
    """Throughput; packet sizes include the link's overhead."""
    packets_per_second: float
    backlog_packets: int
    backlog_bytes: int
    sojourn: float | None
    """Sojourn time of the packet that left last; `None` if no packet left since the last reading
    and the queue is empty.
    """
    drops: int
    """Number of packets dropped by the queue since the start of the measurement."""
    marks: int
    """Number of packets marked since the start of the measurement."""
    lost: int
    """Number of packets lost outside the queue since the start of the measurement."""
    drops_per_second: float
    marks_per_second: float

    @property
    def utilisation(self) -> float | None:
        """Throughput as a share of the rate; `None` for a link without a rate limit."""
        return self.throughput / self.rate if self.rate else None


@dataclass
class _History:
    throughput: deque[float] = field(default_factory=lambda: deque(maxlen=SAMPLES))
    sojourn: deque[float] = field(default_factory=lambda: deque(maxlen=SAMPLES))


class View:
    """The state of all links of a wire, with the history for sparklines."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.rows: list[Row] = []
        self.history: dict[str, _History] = {}
        self.time = 0.0
        self.lateness: tuple[float | None, float | None] = (None, None)
        """Median and 99th percentile of packets' lateness in seconds; `None` without packets."""
        self._before: Counters | None = None

    def update(self, counters: Counters) -> list[Row]:
        """Updates the view with new counters; returns one row for each link."""
        before = self._before or replace(counters, links=())
        span = counters.time - before.time
        earlier = {link.link: link for link in before.links}
        self.rows = [_row(link, earlier.get(link.link), span) for link in counters.links]
        self.time = counters.time
        self.lateness = counters.lateness
        if span > 0:
            for row in self.rows:
                history = self.history.setdefault(row.link, _History())
                history.throughput.append(row.throughput)
                history.sojourn.append(row.sojourn or 0.0)
        self._before = counters
        return self.rows

    def render(self, width: int, height: int) -> Group:
        """Returns the view for a terminal of this size, in columns and lines."""
        late = ", ".join(
            f"{text} {duration(seconds)}"
            for text, seconds in zip(("median", "p99"), self.lateness, strict=True)
            if seconds is not None
        )
        head = Text(
            f"{self.title}   {self.time:.1f} s" + (f"   late: {late}" if late else ""),
            style="bold",
            no_wrap=True,
        )
        shown = self._chosen(max(1, height - 6))
        table = _fitting([self._cells(row) for row in shown], width)
        more = len(self.rows) - len(shown)
        foot = [Text(f"and {more} more links with shorter queues", style="dim")] if more else []
        return Group(head, table, *foot)

    def _cells(self, row: Row) -> dict[str, str]:
        """Returns the texts of a row by column."""
        history = self.history.get(row.link, _History())
        return {
            "link": row.link,
            "queue": row.queue,
            "rate": "no limit" if row.rate is None else bits(row.rate),
            "sends": bits(row.throughput),
            "backlog": f"{row.backlog_packets} p, {octets(row.backlog_bytes)}",
            "sojourn": "" if row.sojourn is None else duration(row.sojourn),
            "drops": _count(row.drops, row.drops_per_second),
            "marks": _count(row.marks, row.marks_per_second),
            "lost": str(row.lost),
            "sojourn over time": sparkline(history.sojourn),
            "sends over time": sparkline(history.throughput, row.rate),
        }

    def _chosen(self, most: int) -> list[Row]:
        """Returns the `most` rows with the longest queues, in the order of the links."""
        if len(self.rows) <= most:
            return self.rows
        busy = sorted(self.rows, key=lambda r: (r.backlog_bytes, r.throughput), reverse=True)
        wanted = {row.link for row in busy[:most]}
        return [row for row in self.rows if row.link in wanted]


def _fitting(rows: list[dict[str, str]], width: int) -> Table:
    """Returns rows as a table; in a narrow terminal the least important columns are omitted."""
    widths = {
        name: max(len(name), *(len(row[name]) for row in rows)) + GAP
        for name in (rows[0] if rows else ())
    }
    names = {"link": NAMES, "queue": NAMES}
    for name in SPARE:
        if sum(min(wide, names.get(one, wide)) for one, wide in widths.items()) <= width + 1:
            break
        widths.pop(name, None)
    free = width + 1 - sum(wide for name, wide in widths.items() if name not in names)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for name in widths:
        table.add_column(
            name,
            justify="left" if name in names or name.endswith("time") else "right",
            overflow="ellipsis",
            no_wrap=True,
            max_width=max(free // 2, NAMES) - GAP if name in names else None,
        )
    for row in rows:
        table.add_row(*(Text(row[name]) for name in widths))
    return table


def _row(link: LinkCounters, before: LinkCounters | None, span: float) -> Row:
    def per_second(now: int, then: int) -> float:
        # The wire resets its counters at the end of the warm-up.
        return (now - then if now >= then else now) / span if span > 0 else 0.0

    drops = sum(link.dropped.values())
    then = before or link
    sent = per_second(link.sent[0], then.sent[0])
    idle = not sent and not link.backlog_packets
    return Row(
        link.link,
        link.queue,
        link.rate,
        per_second(link.sent[1], then.sent[1]) * 8,
        sent,
        link.backlog_packets,
        link.backlog_bytes,
        None if idle else link.sojourn,
        drops,
        link.marked,
        link.lost,
        per_second(drops, sum(then.dropped.values())),
        per_second(link.marked, then.marked),
    )


def _count(total: int, per_second: float) -> str:
    return f"{total} ({per_second:.0f}/s)" if per_second else str(total)


def looks(client: Client, every: float = EVERY) -> Iterator[View]:
    """Yields the view after each update, every `every` seconds, until the wire ends."""
    view = View(client.about().wire)
    for counters in client.watch(every):
        view.update(counters)
        yield view


def follow(client: Client, console: Console, every: float = EVERY) -> None:
    """Shows a wire on a terminal until it ends."""
    with Live(console=console, auto_refresh=False, screen=False, transient=False) as live:
        for view in looks(client, every):
            live.update(view.render(*console.size), refresh=True)


class Beside:
    """Shows a wire from a separate thread during the context, for `sojourn lab run --watch`.

    `path` is the wire's control socket, which may not exist yet.
    """

    def __init__(self, path: Path, console: Console, every: float = EVERY) -> None:
        self.path = path
        self.console = console
        self.every = every
        self._over = threading.Event()
        self._client: Client | None = None
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._client is not None:
            self._client.interrupt()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                with Client(self.path) as client:
                    self._client = client
                    if self._over.is_set():
                        return
                    follow(client, self.console, self.every)
                return
            except LabError:
                with suppress(TimeoutError):
                    self._over.wait(self.every)
