"""The compared mechanisms as queues: tail drop and three kinds of RED, all with equal buffers.

The paper states: the thresholds of REDstd and GREDstd are 3/20 and 13/20 of the buffer, their
weight is 0.002 and their max_p 0.1. The ramp of GREDstd, gentle RED, ends at the buffer size. All
queues count packets and have REDopt's buffer.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal

from sojourn.papers.taildrop.scenarios import FRAME, RATE
from sojourn.tune.redopt import STANDARD_WEIGHT, RedParameters, plain

TD, RED, GRED, REDOPT = "TD", "REDstd", "GREDstd", "REDopt"
#: Mechanisms in the paper's order.
MECHANISMS = (TD, RED, GRED, REDOPT)
#: Queues of today, which the paper does not have; they need no settings. All can mark ECN.
TODAY = {"PIE": "pie ecn", "CoDel": "codel ecn", "fq_codel": "fq_codel", "CAKE": "cake"}

Spacing = Literal["dummynet", "ns-2"]
"""Gaps between early drops, in packets, at drop probability p.

dummynet's gaps are uniform from 1 to 1/p, as in Linux, those of ns-2 from 1/p to 2/p.
"""
#: Divisors of REDstd's weight that limit REDopt's weight, the main reading's first.
WEIGHT_PARTS = (2, 10, 50)


def lighter(redopt: RedParameters, part: int) -> RedParameters:
    """Returns REDopt's parameters with a weight of at most REDstd's weight / `part`."""
    return replace(redopt, weight=min(redopt.weight, STANDARD_WEIGHT / part))


def weighted(queue: str, weight: float) -> str:
    """Returns the words of a RED with another weight."""
    return re.sub(r"weight \S+", f"weight {plain(weight)}", queue)


def _red(
    limit: float, low: float, high: float, p: float, weight: float, unit: str, extra: str
) -> str:
    words = (
        f"red unit {unit} limit {round(limit)} min {round(low)} max {round(high)} "
        f"probability {plain(p)} weight {plain(weight)} avpkt {FRAME} bandwidth {round(RATE)}bit"
    )
    return f"{words} {extra}".strip()


def thresholds(redopt: RedParameters) -> dict[str, tuple[float, float]]:
    """Returns each RED's lower and upper threshold in packets."""
    standard = (redopt.limit * 3 / 20, redopt.limit * 13 / 20)
    return {RED: standard, GRED: standard, REDOPT: (redopt.minimum, redopt.maximum)}


def queues(redopt: RedParameters, spacing: Spacing, unit: str = "packets") -> dict[str, str]:
    """Returns each mechanism's queue with REDopt's buffer, as words of a scenario.

    With `unit` ``bytes``, limits and thresholds are in bytes instead of packets: each packet is
    replaced by the bytes of a full TCP frame. This favours small packets.
    """
    one = 1 if unit == "packets" else FRAME
    size, extra = redopt.limit * one, "wait" if spacing == "ns-2" else ""
    (low, high), *_, own = thresholds(redopt).values()
    standard = (size, low * one, high * one, 0.1, STANDARD_WEIGHT, unit)
    chosen = (size, own[0] * one, own[1] * one, redopt.max_p, redopt.weight, unit)
    return {
        TD: f"pfifo limit {size}p" if unit == "packets" else f"bfifo limit {size}",
        RED: _red(*standard, extra),
        GRED: _red(*standard, f"{extra} gentle-limit".strip()),
        REDOPT: _red(*chosen, extra),
    }
