"""Guarantees of consistency levels for single writes and reads, by counting replicas.

A request at a level succeeds when the required number of a record's replicas have answered. An
acknowledged write is therefore certainly on that many replicas. A read certainly sees it if the two
numbers add up to more than the number of replicas.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb
from typing import Literal

from sojourn.stats.quorum import needed

NAMED = ("quorum", "one", "all", "two", "three")
"""Levels by the preferred name if two require the same number of answers."""

Lack = Literal["durable", "own-writes", "write-down", "read-down"]


def plural(count: int, noun: str) -> str:
    """Returns a count with its noun."""
    return f"{count} {noun}{'s' if count != 1 else ''}"


@dataclass(frozen=True)
class Promise:
    """A number of replicas, and the answers that writes and reads wait for."""

    replicas: int
    writes: int
    reads: int

    @property
    def overlap(self) -> bool:
        """Returns whether a read sees every write that was acknowledged before it."""
        return self.writes + self.reads > self.replicas

    @property
    def reads_needed(self) -> int:
        """Replicas that a read must ask to see every acknowledged write."""
        return self.replicas - self.writes + 1

    def lacks(self, survive: int, down: int, *, overlap: bool = True) -> dict[Lack, str]:
        """Returns the unmet requirements in words.

        The requirements are that an acknowledged write survives the loss of `survive` nodes, that
        requests succeed with `down` of a record's replicas down, and that reads see acknowledged
        writes.
        """
        found: dict[Lack, str] = {}
        if self.writes <= survive:
            found["durable"] = (
                f"an acknowledged write is on {plural(self.writes, 'node')} for certain, and lost "
                f"with {'it' if self.writes == 1 else 'them'}"
            )
        if overlap and not self.overlap:
            found["own-writes"] = (
                f"a read asks {self.reads} of {self.replicas} replicas and may miss an "
                "acknowledged write"
            )
        for lack, what, count in (
            ("write-down", "writes", self.writes),
            ("read-down", "reads", self.reads),
        ):
            if count > self.replicas - down:
                found[lack] = f"{what} fail with {plural(down, 'node')} down"  # type: ignore[index]
        return found


def levels_of(replicas: int) -> dict[int, str]:
    """Returns the consistency levels of a store with this number of replicas, by their answers."""
    counts: dict[int, str] = {}
    for level in NAMED:
        if {"two": 2, "three": 3}.get(level, 1) <= replicas:
            counts.setdefault(needed(level, replicas), level)
    return dict(sorted(counts.items()))


def promises(nodes: int) -> Iterator[tuple[Promise, str, str]]:
    """Yields all guarantees of a store with `nodes` nodes, and the write and read levels."""
    for replicas in range(1, nodes + 1):
        named = levels_of(replicas)
        for writes, write_level in named.items():
            for reads, read_level in named.items():
                yield Promise(replicas, writes, reads), write_level, read_level


def unavailable(nodes: int, replicas: int, count: int, up: float) -> float:
    """Returns the probability that fewer than `count` of a key's replicas are up.

    The coordinator is up, and is one of the replicas with probability replicas / nodes. Each other
    node is up with the probability `up`, independently.
    """

    def too_few(n: int, wanted: int) -> float:
        return sum(comb(n, i) * up**i * (1 - up) ** (n - i) for i in range(max(wanted, 0)))

    inside = replicas / nodes
    return (1 - inside) * too_few(replicas, count) + inside * too_few(replicas - 1, count - 1)
