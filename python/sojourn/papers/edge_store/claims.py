"""The paper's findings as claims, on tables derived from the mean latency of writes.

RF2 means a replication factor of two. All quantities are in milliseconds except the slope:

- *latency*: the mean latency of a write for one combination of levels;
- *excess*: the latency of RF2 minus the mean latency of RF3 to RF5;
- *slope*: the rise of latency per millisecond of a link's delay, by least squares;
- *degradation*: the latency at high loss minus the latency at low loss;
- *deviation*: the standard deviation of the latencies of RF3 in clusters of 3, 4 and 5 nodes;
- *median*: the median of the latencies at the three losses;
- *many*: the mean latency of RF3 to RF5.

*Alike* and *similar* mean within 5 %. *Similar to others* means an excess below 10 ms. A slope is
*greater* if it is greater by at least a tenth. *Best* and *worst* have no margin.

The first claims were judged on runs with seeds from 1 on. On 2026-11-23, after these verdicts,
claims were changed and added; `WITHDRAWN` lists the replaced claims. All claims are judged on runs
with seeds from `FIRST_SEED` on, which no earlier run used.
"""

from __future__ import annotations

from dataclasses import replace

from sojourn.papers.claim_table import ClaimTable
from sojourn.stats import Claim, Every, Least, MeanIn, PracticallyEqual, Ratio

FROZEN = "2026-11-23"
"""Date when the claims were last changed."""
#: First seed of the runs that judge the claims.
FIRST_SEED = 1001

MANY = (3, 4, 5)
FEWER = (3, 4)
"""Numbers of nodes of the clusters that the paper describes without a figure."""
_DELAYS = "at every delay"

_TABLE = ClaimTable(__file__)
TWO = _TABLE.claims("two")
"""Claims of section 5.1."""
BEST = _TABLE.claims("best")
"""Claims of sections 5.2 and 5.3."""
SLOPES = _TABLE.claims("slopes")
"""Claims on the lines in figures 2 and 3."""
DEVIATION = _TABLE.claims("deviation")
"""Claims of section 5.4, one for each reading."""
ALIKE = _TABLE.claims("alike")
"""Claims of section 5.5, one for each reading."""
MECHANISM = _TABLE.claims("mechanism")
"""Predictions of the two explanations: the paper's phi, and order statistics of TCP's timers."""
DECLARED = _TABLE.declared()
"""The readings, and which claims are exploratory."""
CONDITIONS = _TABLE.conditions()
"""Published quantities that runs near the paper's have."""
WITHDRAWN = _TABLE.withdrawn()
"""Claims that are no longer judged."""
GRID: tuple[Claim, ...] = (*TWO, *BEST, *SLOPES, *DEVIATION, *ALIKE)
"""Claims about the paper's grid."""

REAL_DELAY = 20
"""Delay between nodes in milliseconds at which claims are judged on real nodes."""


def _at(claim: Claim, delay: int) -> Claim:
    """Returns the claim limited to one delay in milliseconds.

    Raises `TypeError` for a claim that compares delays.
    """
    text = claim.text.replace(_DELAYS, f"at {delay} ms")
    match claim:
        case Every():
            return replace(claim, text=text, claims=tuple(_at(c, delay) for c in claim.claims))
        case Ratio():
            a, b = ({**cell, "delay": delay} for cell in (claim.a, claim.b))
            return replace(claim, text=text, a=a, b=b, each=None)
        case Least() | MeanIn() | PracticallyEqual():
            return replace(claim, text=text, cell={**claim.cell, "delay": delay}, each=None)
        case _:
            raise TypeError(f"the claim {claim.id} compares delays and cannot be limited to one")


_REAL = ("rf2-worst-high", "rf2-similar", "rf2-excess-figure-2", "rf5-best-high", "rf1-best-low",
         "rf1-best-low-fewer-nodes", "rf3-scales-each", "rf3-scales-averaged", "many-alike-median",
         "many-alike-each", "many-alike-losses")  # fmt: skip
_REAL_HIGH = ("rf2-worst-high", "rf2-excess-figure-2", "rf5-best-high")

REAL: tuple[Claim, ...] = tuple(_at(c, REAL_DELAY) for c in GRID if c.id in _REAL)
"""Claims that are judged on real nodes, limited to `REAL_DELAY`."""
REAL_HIGH: tuple[Claim, ...] = tuple(c for c in REAL if c.id in _REAL_HIGH)
"""Claims on real nodes that concern only five nodes at high loss."""
