"""The compared mechanisms as queues: tail drop and three kinds of RED, all with equal buffers.

The paper states: the thresholds of REDstd and GREDstd are 3/20 and 13/20 of the buffer, their
weight is 0.002 and their max_p 0.1. The ramp of GREDstd, gentle RED, ends at the buffer size. All
queues count packets and have REDopt's buffer.
"""

from __future__ import annotations

from dataclasses import replace

from sojourn.papers.taildrop.scenarios import FRAME, RATE
from sojourn.tune.redopt import STANDARD_WEIGHT, RedParameters, plain

TD, RED, GRED, REDOPT = "TD", "REDstd", "GREDstd", "REDopt"
#: Mechanisms in the paper's order.
MECHANISMS = (TD, RED, GRED, REDOPT)
#: Queues of today, which the paper does not have; they need no settings.
TODAY = {"fq_codel": "fq_codel", "CAKE": "cake"}


#: Words of ``red`` for the gaps between early drops, in packets, at drop probability p. The paper
#: measured bulk traffic with dummynet, whose gaps are uniform from 1 to 1/p, as in Linux. It
#: simulated Web traffic with ns-2, whose gaps are uniform from 1/p to 2/p.
DUMMYNET, NS2 = "", "wait"


#: Divisors of REDstd's weight that limit REDopt's weight. By section 5 of the paper REDopt's weight
#: is smaller than REDstd's; the formula is in reference [26], which is not available. The main
#: reading uses the first divisor, whose weight is nearest to REDstd's; each further divisor is an
#: alternative reading.
WEIGHT_PARTS = (2, 5, 10, 20, 50)


def lighter(redopt: RedParameters, part: int) -> RedParameters:
    """Returns REDopt's parameters with a weight of at most REDstd's weight / `part`."""
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
    """Returns each mechanism's queue with REDopt's buffer, as words of a scenario.

    `spacing` is `DUMMYNET` or `NS2`. With `unit` ``bytes``, limits and thresholds are in bytes
    instead of packets: each packet is replaced by the bytes of a full TCP frame. This favours small
    packets.
    """
    one = 1 if unit == "packets" else FRAME
    size = redopt.limit * one
    standard = (size, size * 3 / 20, size * 13 / 20, 0.1, STANDARD_WEIGHT, unit)
    chosen = (size, redopt.minimum * one, redopt.maximum * one, redopt.max_p, redopt.weight, unit)
    return {
        TD: f"pfifo limit {size}p" if unit == "packets" else f"bfifo limit {size}",
        RED: _red(*standard, spacing),
        GRED: _red(*standard, f"{spacing} gentle-limit".strip()),
        REDOPT: _red(*chosen, spacing),
    }
