"""Names of the thesis' metrics in each reading, and functions that make claims with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sojourn.papers.daqm.mechanisms import EIGHT
from sojourn.stats.cells import Cell, Level
from sojourn.stats.claims import Claim, Every, Least, PracticallyEqual, Ratio
from sojourn.stats.estimate import Region

LOWER, HIGHER = Region(high=1.0), Region(low=1.0)
PAR = 0.05
"""Maximum relative difference of values that are *on par*."""
SAME = 0.25
"""Maximum relative difference of values that are *the same*, *aligned* or *consistent*."""

#: Metrics of the runs on the switch: mean sojourn time, mean queue length, share of lost packets.
SOJOURN, QUEUE, LOSS = "sojourn_mean", "queue_mean", "loss"
DELAY = "clients.packet_delay_mean"
"""Mean delay of packets from host to host, without waiting in the sender, as in the thesis."""
DELIVERED = "clients.delivered"
"""Delivered payload in bit/s: `goodput` of TCP plus `udp_goodput`."""
COMPLETION = "completion"
"""Mean flow completion time in seconds; an unfinished flow counts with the measured time."""
AGAINST_RED = "sojourn_against_red"
"""Sojourn time divided by RED's sojourn time in the same cell and with the same seed."""
FIRST_DROP = "first_drop"
"""Time of the first sample with a drop, in seconds; samples are 0.1 s apart."""


@dataclass(frozen=True)
class Terms:
    """Names of the thesis' metrics in a reading, and the levels that identify its cells."""

    sojourn: str
    queue: str
    loss: str
    delay: str
    throughput: str
    completion: str = ""
    """Flow completion time; empty if the reading does not measure it."""
    first_drop: str = ""
    """Time of the first drop; empty if the reading does not measure it."""
    figures: bool = False
    """Whether cells have the factor `figure`, the number of the thesis' figure."""
    each: str | None = None
    """Factor at whose levels the claims about figures 6 to 10 are judged separately.

    `None` if these claims are judged on all runs together.
    """
    full: Mapping[str, Cell] = field(default_factory=dict)
    """Levels of the heaviest load in section 6.3.2, by flow."""

    def at(self, figure: int, **levels: Level | Sequence[Level]) -> Cell:
        """Returns the cell with these levels, and the factor `figure` if the reading has it."""
        return {"figure": figure, **levels} if self.figures else levels


PUBLISHED = Terms(
    "sojourn", "queue", "plr", "delay", "throughput", "fct", FIRST_DROP, figures=True,
    full={"http": {"rate": 4000}, "ftp": {"rate": 10_000}},
)  # fmt: skip
"""Terms of the reading as published: the published averaging; loads are the clients' rates."""
MEANT = Terms(
    SOJOURN, QUEUE, LOSS, DELAY, DELIVERED, each="load",
    full={"http": {"load": 2.0}, "ftp": {"load": 2.0}},
)  # fmt: skip
"""Terms of the reading as meant: every packet counts once; loads are those of the ports."""
ENDING = Terms(
    SOJOURN, QUEUE, LOSS, DELAY, DELIVERED, COMPLETION,
    full={"http": {"load": 2.0}, "ftp": {"load": 2.0}},
)  # fmt: skip
"""Terms of the reading as meant, for runs in which clients stop and all data are delivered."""


def others(*left_out: str, among: tuple[str, ...] = EIGHT) -> tuple[str, ...]:
    """Returns the mechanisms of `among` except `left_out`."""
    return tuple(m for m in among if m not in left_out)


def better(percent: float, more: bool = False) -> Region:
    """Returns the region of ratios that are an improvement by about `percent`.

    *About* means within 10 percentage points. With `more`, the region has no lower limit and no
    tolerance.
    """
    rest = 1 - percent / 100
    return Region(high=rest) if more else Region(rest - 0.1, rest + 0.1)


class Section:
    """Collects the claims of a section of the thesis, in the terms of a reading."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.made: list[Claim] = []

    def add(self, name: str, text: str, published: str, *parts: Claim | Iterable[Claim]) -> None:
        """Adds a sentence of the thesis as a claim that holds if all `parts` hold.

        `published` is the sentence. A sentence about a metric that the reading does not measure is
        not added.
        """
        listed = tuple(
            claim for part in parts for claim in ([part] if isinstance(part, Claim) else part)
        )

        if all(claim.metric for claim in listed):
            self.made.append(Every(id=name, text=text, published=published, claims=listed))

    def _each(self, figure: int) -> str | None:
        return self.terms.each if figure <= 10 else None

    def least(
        self, metric: str, who: str, among: Iterable[str], figure: int, cell: Cell,
        largest: bool = False, margin: float = 0.0,
    ) -> Claim:  # fmt: skip
        """Returns the claim that `who` has the smallest value of `among`, or the `largest`.

        `margin` is the relative difference to the next value that the claim requires.
        """
        where = ", ".join(str(level) for level in cell.values())
        return Least(
            id="", text=f"{who}'s {word(metric)}, {where}", metric=metric, among="mechanism",
            who=who, margin=margin, extreme="largest" if largest else "smallest",
            cell={**self.terms.at(figure, **dict(cell)), "mechanism": (*among, who)},
            each=self._each(figure), scale="geometric",
        )  # fmt: skip

    def most(self, metric: str, who: str, among: Iterable[str], figure: int, cell: Cell) -> Claim:
        """Returns the claim that `who` has the largest value of `among`."""
        return self.least(metric, who, among, figure, cell, largest=True)

    def ratio(self, metric: str, a: str, b: str, region: Region, figure: int, cell: Cell) -> Claim:
        """Returns the claim that the value of `a` divided by that of `b` is in `region`."""
        at = self.terms.at(figure, **dict(cell))
        where = ", ".join(str(level) for level in cell.values())
        return Ratio(
            id="", text=f"{word(metric)}, {a} / {b}, {where}", metric=metric, region=region,
            a={**at, "mechanism": a}, b={**at, "mechanism": b}, each=self._each(figure),
            scale="geometric",
        )  # fmt: skip

    def moves(
        self, metric: str, mechanism: str, figure: int, cell: Cell, over: str,
        ends: tuple[float, float], region: Region,
    ) -> Claim:  # fmt: skip
        """Returns the claim that a mechanism's value changes over a sweep as `region` states.

        `region` limits the value at the second of the two `ends`, divided by that at the first.
        `over` is the swept factor.
        """
        at = {**self.terms.at(figure, **dict(cell)), "mechanism": mechanism}
        first, last = ends
        return Ratio(
            id="", text=f"{mechanism}'s {word(metric)}, {', '.join(map(str, cell.values()))}",
            metric=metric, region=region, a={**at, over: last}, b={**at, over: first},
            scale="geometric",
        )  # fmt: skip

    def same(self, metric: str, among: Iterable[str], figure: int, cell: Cell) -> Claim:
        """Returns the claim that the values of mechanisms are the same, within `SAME`."""
        where = ", ".join(str(level) for level in cell.values())
        return PracticallyEqual(
            id="", text=f"{word(metric)}, {where}", metric=metric, among="mechanism",
            margin=SAME, each=self._each(figure),
            cell={**self.terms.at(figure, **dict(cell)), "mechanism": tuple(among)},
        )  # fmt: skip


_WORDS = {
    SOJOURN: "sojourn time", "sojourn": "sojourn time", QUEUE: "queue", "queue": "queue",
    LOSS: "loss", "plr": "loss", DELAY: "delay", "delay": "delay", DELIVERED: "throughput",
    "throughput": "throughput", COMPLETION: "completion time", "fct": "completion time",
    AGAINST_RED: "sojourn time over RED's", "": "",
}  # fmt: skip


def word(metric: str) -> str:
    """Returns the name of a metric in words."""
    return _WORDS[metric]
