"""Differences that were looked into and understood: where, which figure, how large, and why.

A cell's figure may leave its margin only if it is listed here, and only within the range found when it
was understood; outside that range it counts as a difference again. The long form, with the
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
        same = all(
            a in ("*", b) for a, b in zip(self.cell.split("/"), key.split("/"), strict=True)
        )
        return same and metric == self.metric


KNOWN: tuple[Known, ...] = ()


def lookup(key: str, metric: str) -> Known | None:
    """The understood difference of a cell's figure, if there is one."""
    return next((k for k in KNOWN if k.covers(key, metric)), None)
