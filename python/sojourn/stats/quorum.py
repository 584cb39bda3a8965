"""Two models of quorum writes: the ratio phi, and latency as an order statistic.

*phi* (section 6 of the edge-store paper) is the share of a coordinator's messages whose answers the
coordinator needs, averaged over the coordinator's position. It is computed exactly, as a fraction.

In the second model, the latency of a write is an order statistic: of n simultaneous messages with
independent delays, the k-th answer decides. A lost message or answer arrives one retransmission
timeout later, after a second loss two further timeouts later, and so on. The model ignores all
other effects of a connection: head-of-line blocking, fast retransmission and recovery.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from sojourn.stats._arrays import StatisticsError

LEVELS = ("one", "two", "three", "quorum", "all")
"""Consistency levels that do not distinguish data centres."""


def needed(level: str | int, replicas: int) -> int:
    """Returns the number of answers that a consistency level requires; a number is unchanged.

    Raises `StatisticsError` for an unknown level, or a number that `replicas` does not allow.
    """
    if isinstance(level, int):
        count = level
    else:
        fixed = {"one": 1, "two": 2, "three": 3, "quorum": replicas // 2 + 1, "all": replicas}
        if level not in fixed:
            raise StatisticsError(f"unknown consistency level {level!r}: {', '.join(LEVELS)}")
        count = fixed[level]
    if not 1 <= count <= replicas:
        raise StatisticsError(f"{count} answers of {replicas} replicas: must be 1 to {replicas}")
    return count


def _check(nodes: int, replicas: int) -> None:
    if not 1 <= replicas <= nodes:
        raise StatisticsError(f"{replicas} replicas on {nodes} nodes: must be 1 to {nodes}")


def phi(nodes: int, replicas: int, level: str | int = "quorum") -> Fraction:
    """Returns phi: the share of a coordinator's messages whose answers the coordinator needs.

    phi = (1 - RF/N) CL/RF + (RF/N) (CL - 1)/(RF - 1) for N nodes, RF replicas and CL answers. In
    the second term the coordinator is a replica; with RF = 1 it sends none, and the term is 0.
    """
    _check(nodes, replicas)
    count = needed(level, replicas)
    inside = Fraction(replicas, nodes)
    own = Fraction(count - 1, replicas - 1) if replicas > 1 else Fraction(0)
    return (1 - inside) * Fraction(count, replicas) + inside * own


def phi_table(nodes: tuple[int, ...] = (3, 4, 5)) -> dict[int, dict[int, Fraction]]:
    """Returns the paper's table 1: phi at QUORUM by replication factor (from 2 on) and nodes."""
    return {rf: {n: phi(n, rf) for n in nodes if rf <= n} for rf in range(2, max(nodes) + 1)}


_RETRANSMISSIONS = 12
"""Number of transmissions of a message that the model considers.

The probability of further transmissions is distributed over these.
"""


@dataclass(frozen=True)
class QuorumModel:
    """The latency of a write as an order statistic of answers with retransmission timeouts.

    Times are in seconds. `delay` is the one-way delay between nodes, `loss` the probability that a
    packet is lost, and `rto` the retransmission timeout minus the round-trip time (Linux: at least
    200 ms). `client` is the round-trip time to the client, `work` the processing time of a write.
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
            raise StatisticsError(
                "loss must be from 0 to below 0.5, delay 0 or more, and rto above 0"
            )

    @cached_property
    def _replica(self) -> list[tuple[float, float]]:
        """Returns the possible times of a replica's answer, with their cumulative probabilities."""
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
        """Returns the times of the k-th of n answers, with their cumulative probabilities."""
        if k == 0:
            return [(0.0, 1.0)]
        return [
            (at, sum(math.comb(n, i) * f**i * (1 - f) ** (n - i) for i in range(k, n + 1)))
            for at, f in self._replica
        ]

    @cached_property
    def distribution(self) -> list[tuple[float, float]]:
        """Returns the possible latencies with their probabilities, in ascending order."""
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
    def late(self) -> float:
        """Returns the probability that a write waits for a timeout.

        This is 1 - P(k of n): fewer of the answers than needed arrive without a loss of the message
        or of its acknowledgement.
        """
        first = self.client + self.work + 2 * self.delay
        return math.fsum(p for at, p in self.distribution if at > first + 1e-9)

    @property
    def mean(self) -> float:
        """Returns the mean latency in seconds."""
        return math.fsum(at * p for at, p in self.distribution)

    def quantile(self, q: float) -> float:
        """Returns the latency in seconds that a share `q` of the writes does not exceed."""
        below = 0.0
        for at, p in self.distribution:
            below += p
            if below >= q - 1e-12:
                return at
        return self.distribution[-1][0]
