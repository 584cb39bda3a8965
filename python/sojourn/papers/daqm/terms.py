"""Names of the thesis' metrics in each reading, and the form of claims in these terms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sojourn.papers.daqm.mechanisms import EIGHT
from sojourn.stats.cells import Cell, Level
from sojourn.stats.claims import Claim, Every, Least, PracticallyEqual, Ratio
from sojourn.stats.estimate import Region

LOWER, HIGHER = Region(high=1.0), Region(low=1.0)
PAR = 0.05
"""Relative difference within which values are *on par*."""
SAME = 0.25
"""Relative difference for *the same*, *aligned*, *consistent*."""

#: Metrics of the findings in the runs on the switch.
SOJOURN, QUEUE, LOSS = "sojourn_mean", "queue_mean", "loss"
DELAY = "clients.packet_delay_mean"
"""Delay of packets from host to host, as the thesis defines it, excluding unsent data."""
DELIVERED = "clients.delivered"
"""Application payload delivered per second, by TCP or UDP: `goodput` or `udp_goodput`."""
COMPLETION = "completion"
"""Mean flow completion time in seconds; an unfinished flow counts with the run's length."""
AGAINST_RED = "sojourn_against_red"
"""Sojourn time divided by RED's in the same cell and with the same seed."""
FIRST_DROP = "first_drop"
"""Time of a queue's first drop, in seconds."""


@dataclass(frozen=True)
class Terms:
    """Names of the thesis' metrics in a reading, and the place of the thesis' cells."""

    sojourn: str
    queue: str
    loss: str
    delay: str
    throughput: str
    completion: str = ""
    """Empty if the reading does not measure it."""
    first_drop: str = ""
    figures: bool = False
    """Whether cells state which of the thesis' figures they belong to."""
    each: str | None = None
    """A factor at each level of which findings without a swept quantity are judged."""
    full: Mapping[str, Cell] = field(default_factory=dict)
    """The heaviest load of section 6.3.2, by flow."""

    def at(self, figure: int, **levels: Level | Sequence[Level]) -> Cell:
        """Returns a cell of a figure."""
        return {"figure": figure, **levels} if self.figures else levels


PUBLISHED = Terms(
    "sojourn", "queue", "plr", "delay", "throughput", "fct", FIRST_DROP, figures=True,
    full={"http": {"rate": 4000}, "ftp": {"rate": 10_000}},
)  # fmt: skip
"""The published averaging; sweeps are over the clients' rate."""
MEANT = Terms(
    SOJOURN, QUEUE, LOSS, DELAY, DELIVERED, each="load",
    full={"http": {"load": 2.0}, "ftp": {"load": 2.0}},
)  # fmt: skip
"""Everything counted once; sweeps are over the load of the ports."""
ENDING = Terms(
    SOJOURN, QUEUE, LOSS, DELAY, DELIVERED, COMPLETION,
    full={"http": {"load": 2.0}, "ftp": {"load": 2.0}},
)  # fmt: skip
"""As meant, where clients stop and all data are delivered."""


def others(*left_out: str, among: tuple[str, ...] = EIGHT) -> tuple[str, ...]:
    """Returns all mechanisms but some."""
    return tuple(m for m in among if m not in left_out)


def better(percent: float, more: bool = False) -> Region:
    """Returns the region of an improvement by about this many per cent, or by more."""
    rest = 1 - percent / 100
    return Region(high=rest) if more else Region(rest - 0.1, rest + 0.1)


class Section:
    """Adds the claims of a section in a reading's terms."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.made: list[Claim] = []

    def add(self, name: str, text: str, published: str, *parts: Claim | Iterable[Claim]) -> None:
        """Adds one sentence of the thesis, with one part or several."""
        listed = tuple(
            claim for part in parts for claim in ([part] if isinstance(part, Claim) else part)
        )
        # A reading that does not measure a sentence's metric has no claim on it.
        if all(claim.metric for claim in listed):
            self.made.append(Every(id=name, text=text, published=published, claims=listed))

    def _each(self, figure: int) -> str | None:
        return self.terms.each if figure <= 10 else None

    def least(
        self, metric: str, who: str, among: Iterable[str], figure: int, cell: Cell,
        largest: bool = False, margin: float = 0.0,
    ) -> Claim:  # fmt: skip
        """Returns the claim that a mechanism has the least, or the most, of several."""
        where = ", ".join(str(level) for level in cell.values())
        return Least(
            id="", text=f"{who}'s {word(metric)}, {where}", metric=metric, among="mechanism",
            who=who, margin=margin, extreme="largest" if largest else "smallest",
            cell={**self.terms.at(figure, **dict(cell)), "mechanism": (*among, who)},
            each=self._each(figure), scale="geometric",
        )  # fmt: skip

    def most(self, metric: str, who: str, among: Iterable[str], figure: int, cell: Cell) -> Claim:
        """Returns the claim that a mechanism has the most."""
        return self.least(metric, who, among, figure, cell, largest=True)

    def ratio(self, metric: str, a: str, b: str, region: Region, figure: int, cell: Cell) -> Claim:
        """Returns the claim about a mechanism's value over another's."""
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
        """Returns the claim on a mechanism's value at the end of a sweep over that at its start."""
        at = {**self.terms.at(figure, **dict(cell)), "mechanism": mechanism}
        first, last = ends
        return Ratio(
            id="", text=f"{mechanism}'s {word(metric)}, {', '.join(map(str, cell.values()))}",
            metric=metric, region=region, a={**at, over: last}, b={**at, over: first},
            scale="geometric",
        )  # fmt: skip

    def same(self, metric: str, among: Iterable[str], figure: int, cell: Cell) -> Claim:
        """Returns the claim that mechanisms agree."""
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
    """Returns a metric in words."""
    return _WORDS[metric]
