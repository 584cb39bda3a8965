"""Guarantees of consistency levels for single writes and reads, by counting replicas.

A request succeeds when as many replicas of a record have answered as its consistency level
requires. So an acknowledged write is certainly on this number of replicas. A read certainly sees
the write if the numbers of the write level and of the read level add up to more than the number of
replicas.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb
from typing import Literal

from sojourn.stats.quorum import needed

NAMED = ("quorum", "one", "all", "two", "three")
"""Consistency levels; of levels that require the same number of answers, the first is used."""

Lack = Literal["durable", "own-writes", "write-down", "read-down"]


def plural(count: int, noun: str) -> str:
    """Returns a count with a noun in singular or plural."""
    return f"{count} {noun}{'s' if count != 1 else ''}"


@dataclass(frozen=True)
class Promise:
    """The numbers that determine the guarantees of a store."""

    replicas: int
    """Number of replicas of a record."""
    writes: int
    """Number of answers that a write waits for."""
    reads: int
    """Number of answers that a read waits for."""

    @property
    def overlap(self) -> bool:
        """Returns whether a read sees every write that was acknowledged before the read."""
        return self.writes + self.reads > self.replicas

    @property
    def reads_needed(self) -> int:
        """Returns the number of answers that a read needs to see every acknowledged write."""
        return self.replicas - self.writes + 1

    def lacks(self, survive: int, down: int, *, overlap: bool = True) -> dict[Lack, str]:
        """Returns the requirements that are not met, in words.

        The requirements: an acknowledged write survives the loss of `survive` nodes; requests
        succeed with `down` of a record's replicas down; and, with `overlap`, reads see all
        acknowledged writes.
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
    """Returns the consistency levels of a store by the number of answers that they require."""
    counts: dict[int, str] = {}
    for level in NAMED:
        if {"two": 2, "three": 3}.get(level, 1) <= replicas:
            counts.setdefault(needed(level, replicas), level)
    return dict(sorted(counts.items()))


def promises(nodes: int) -> Iterator[tuple[Promise, str, str]]:
    """Yields the guarantees of all settings of a store, each with its write and read levels.

    The settings are all replication factors up to `nodes` with all pairs of levels.
    """
    for replicas in range(1, nodes + 1):
        named = levels_of(replicas)
        for writes, write_level in named.items():
            for reads, read_level in named.items():
                yield Promise(replicas, writes, reads), write_level, read_level


def unavailable(nodes: int, replicas: int, count: int, up: float) -> float:
    """Returns the probability that fewer than `count` replicas of a record are up.

    Nodes are up independently with the probability `up`. At least one is, which the client takes as
    coordinator: it takes another one if its coordinator is down.
    """
    none = (1 - up) ** nodes
    few = sum(comb(replicas, i) * up**i * (1 - up) ** (replicas - i) for i in range(count))
    return (few - none) / (1 - none) if none < 1 else 1.0
