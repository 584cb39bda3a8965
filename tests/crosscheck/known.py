"""Differences that were looked into and understood: where, which figure, how large, and why.

A cell's figure may leave its margin only if it is listed here, and only within the range found when
it was understood; outside that range it counts as a difference again. The long form, with the
measurements, is FINDINGS.md.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """One understood difference."""

    cell: str  # `queue/flows/rate`, each part may be `*`
    metric: str  # goodput, delay or loss
    low: float  # ratio ours / ns-3 lies here
    high: float
    reason: str  # one line; the section of FINDINGS.md

    def covers(self, key: str, metric: str) -> bool:
        same = all(a in ("*", b) for a, b in zip(self.cell.split("/"), key.split("/"), strict=True))
        return same and metric == self.metric


OWN_BACKLOG = (
    "the kernel's FQ-CoDel spares packets while the whole discipline holds at most one MTU, "
    "ns-3's while the flow's own queue does (FINDINGS.md, 1)"
)
PIPE = (
    "after a loss ns-3's NewReno halves its pipe, a segment or two less than the FlightSize that "
    "RFC 5681 halves, so it loses less; with --flight they agree (FINDINGS.md, 2)"
)
SPACING = (
    "the kernel spaces RED's drops by one threshold drawn in advance, ns-3 by a coin at each "
    "arrival; they differ while the average moves (FINDINGS.md, 3)"
)

KNOWN: tuple[Known, ...] = (
    Known("fq_codel/8/10M", "goodput", 0.965, 0.990, OWN_BACKLOG),
    Known("fq_codel/8/10M", "delay", 0.58, 0.72, OWN_BACKLOG),
    Known("fq_codel/8/10M", "loss", 1.10, 1.30, OWN_BACKLOG),
    Known("fq_codel/64/10M", "delay", 0.19, 0.24, OWN_BACKLOG),
    Known("fq_codel/64/10M", "loss", 1.15, 1.36, OWN_BACKLOG),
    Known("fq_codel/8/100M", "delay", 0.78, 0.92, OWN_BACKLOG),
    Known("fq_codel/64/100M", "delay", 0.61, 0.75, OWN_BACKLOG),
    Known("fq_codel/64/100M", "loss", 1.08, 1.28, OWN_BACKLOG),
    Known("red/8/100M", "goodput", 1.00, 1.04, SPACING),
    Known("*/8/10M", "loss", 1.05, 1.30, PIPE),
    Known("*/64/100M", "loss", 1.05, 1.30, PIPE),
)


def lookup(key: str, metric: str) -> Known | None:
    """The understood difference of a cell's figure, if there is one."""
    return next((k for k in KNOWN if k.covers(key, metric)), None)
