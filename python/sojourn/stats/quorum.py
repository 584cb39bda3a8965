"""Quorum writes by arithmetic: the ratio phi, and latency as an order statistic.

*phi* (the edge-store paper, section 6) is the share of the messages that a coordinator sends whose
answers it needs, averaged over where the coordinator stands. It is exact here, as a fraction.

The other model takes the latency of a write for an order statistic: of n messages at once, each
with a delay of its own, the k-th answer decides. A message or its answer that is lost comes a
retransmission timeout later, a second loss two more, and so on. It knows nothing of what else is
on a connection: no head-of-line blocking, no fast retransmission, no connection that recovers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from sojourn.stats._arrays import StatisticsError

LEVELS = ("one", "two", "three", "quorum", "all")
"""Consistency levels that do not tell data centres apart."""


def needed(level: str | int, replicas: int) -> int:
    """Answers that a consistency level wants of so many replicas; a number stands for itself."""
    if isinstance(level, int):
        count = level
    else:
        fixed = {"one": 1, "two": 2, "three": 3, "quorum": replicas // 2 + 1, "all": replicas}
        if level not in fixed:
            raise StatisticsError(f"unknown consistency level {level!r}: {', '.join(LEVELS)}")
        count = fixed[level]
    if not 1 <= count <= replicas:
        raise StatisticsError(f"{count} answers of {replicas} replicas: 1 to {replicas} can be had")
    return count


def _check(nodes: int, replicas: int) -> None:
    if not 1 <= replicas <= nodes:
        raise StatisticsError(f"{replicas} replicas on {nodes} nodes: 1 to {nodes} fit")


def phi(nodes: int, replicas: int, level: str | int = "quorum") -> Fraction:
    """The share of a coordinator's messages whose answers it needs.

    phi = (1 - RF/N) CL/RF + (RF/N) (CL - 1)/(RF - 1). The second term is that of a coordinator that
    is a replica itself; with one replica it sends nothing, and the term is taken as 0.
    """
    _check(nodes, replicas)
    count = needed(level, replicas)
    inside = Fraction(replicas, nodes)
    own = Fraction(count - 1, replicas - 1) if replicas > 1 else Fraction(0)
    return (1 - inside) * Fraction(count, replicas) + inside * own


def phi_table(nodes: tuple[int, ...] = (3, 4, 5)) -> dict[int, dict[int, Fraction]]:
    """The paper's table 1: phi at QUORUM by replication factor from 2 on and number of nodes."""
    return {rf: {n: phi(n, rf) for n in nodes if rf <= n} for rf in range(2, max(nodes) + 1)}


_RETRANSMISSIONS = 12
"""More of one message in a row are left out; their probability is shared out among fewer."""


@dataclass(frozen=True)
class QuorumModel:
    """A write's latency as an order statistic over retransmission timeouts.

    Times are in seconds. `delay` is one way between nodes, `loss` that of one packet, `rto` the
    timeout beyond the round-trip time (Linux: at least 200 ms), `client` the way to the client and
    back, `work` what is spent on a write besides.
    """

    nodes: int
    replicas: int
    delay: float
    loss: float
    level: str | int = "quorum"
    rto: float = 0.2
    client: float = 0.0
    work: float = 0.0

    def __post_init__(self) -> None:
        _check(self.nodes, self.replicas)
        needed(self.level, self.replicas)
        if not (0 <= self.loss < 0.5 and self.delay >= 0 and self.rto > 0):
            raise StatisticsError("needs a loss from 0 to below 0.5, and times not below 0")

    @cached_property
    def _replica(self) -> list[tuple[float, float]]:
        """Times of one replica's answer with the probabilities that it is no later."""
        timeout = 2 * self.delay + self.rto
        legs = [
            ((2**j - 1) * timeout, self.loss**j * (1 - self.loss)) for j in range(_RETRANSMISSIONS)
        ]
        times: dict[float, float] = {}
        for a, p in legs:
            for b, q in legs:
                at = 2 * self.delay + a + b
                times[at] = times.get(at, 0.0) + p * q
        total, below, found = sum(times.values()), 0.0, []
        for at in sorted(times):
            below += times[at] / total
            found.append((at, min(below, 1.0)))
        return found

    def _order(self, k: int, n: int) -> list[tuple[float, float]]:
        """Times of the k-th of n answers with the probabilities that it is no later."""
        if k == 0:
            return [(0.0, 1.0)]
        return [
            (at, sum(math.comb(n, i) * f**i * (1 - f) ** (n - i) for i in range(k, n + 1)))
            for at, f in self._replica
        ]

    @cached_property
    def distribution(self) -> list[tuple[float, float]]:
        """The latencies that there are, each with its probability, in rising order."""
        count = needed(self.level, self.replicas)
        inside = self.replicas / self.nodes
        ways = [(1 - inside, self._order(count, self.replicas))]
        ways.append((inside, self._order(count - 1, self.replicas - 1)))
        steps: dict[float, float] = {}
        for weight, cumulative in ways:
            before = 0.0
            for at, below in cumulative:
                latency = self.client + self.work + at
                steps[latency] = steps.get(latency, 0.0) + weight * (below - before)
                before = below
        return sorted((at, p) for at, p in steps.items() if p > 0)

    @property
    def mean(self) -> float:
        """The mean latency."""
        return math.fsum(at * p for at, p in self.distribution)

    def quantile(self, q: float) -> float:
        """The least latency that a share `q` of the writes does not exceed."""
        below = 0.0
        for at, p in self.distribution:
            below += p
            if below >= q - 1e-12:
                return at
        return self.distribution[-1][0]
