"""The mechanisms compared, as queues: tail drop and three kinds of RED, all with equal buffers.

From the paper: thresholds of (G)REDstd at 3/20 and 13/20 of the buffer, weight 0.002, max_p 0.1;
gentle RED's ramp ends at the buffer size; all queues count packets and take REDopt's buffer.
"""

from __future__ import annotations

from dataclasses import replace

from sojourn.papers.taildrop.scenarios import FRAME, RATE
from sojourn.tune.redopt import STANDARD_WEIGHT, RedParameters, plain

TD, RED, GRED, REDOPT = "TD", "REDstd", "GREDstd", "REDopt"
#: In the paper's order.
MECHANISMS = (TD, RED, GRED, REDOPT)
#: Queues of today's practice; they need no settings, and the paper has none of them.
TODAY = {"fq_codel": "fq_codel", "CAKE": "cake"}


#: Words of ``red`` for the spacing of early drops. The bulk figures were measured with dummynet,
#: whose gaps are uniform from 1 to 1/p as Linux's; the Web figures were simulated with ns-2, which
#: waits.
DUMMYNET, NS2 = "", "wait"


#: REDopt's weight is smaller than REDstd's (section 5); the amount is lost with the formula of
#: reference [26]. So it is at most REDstd's over the first of these numbers, which differs least
#: from REDstd, and over each of the others in other readings.
WEIGHT_PARTS = (2, 5, 10, 20, 50)


def lighter(redopt: RedParameters, part: int) -> RedParameters:
    """Returns REDopt with a weight of at most REDstd's over `part`, otherwise unchanged."""
    return replace(redopt, weight=min(redopt.weight, STANDARD_WEIGHT / part))


def _red(
    limit: float, low: float, high: float, p: float, weight: float, unit: str, extra: str
) -> str:
    words = (
        f"red unit {unit} limit {round(limit)} min {round(low)} max {round(high)} "
        f"probability {plain(p)} weight {plain(weight)} avpkt {FRAME} bandwidth {round(RATE)}bit"
    )
    return f"{words} {extra}".strip()


def queues(redopt: RedParameters, spacing: str, unit: str = "packets") -> dict[str, str]:
    """Returns each mechanism's queue with REDopt's buffer.

    With `unit` ``bytes`` a packet counts as many bytes as a full TCP frame, which favours small
    ones.
    """
    one = 1 if unit == "packets" else FRAME
    size = redopt.limit * one
    standard = (size, size * 3 / 20, size * 13 / 20, 0.1, STANDARD_WEIGHT, unit)
    chosen = (
        size, redopt.minimum * one, redopt.maximum * one, redopt.max_p, redopt.weight, unit
    )  # fmt: skip
    return {
        TD: f"pfifo limit {size}p" if unit == "packets" else f"bfifo limit {size}",
        RED: _red(*standard, spacing),
        GRED: _red(*standard, f"{spacing} gentle-limit".strip()),
        REDOPT: _red(*chosen, spacing),
    }
