"""The paper's findings as claims, on tables derived from the mean latency of writes.

RF2 means a replication factor of two. All quantities are in milliseconds except the slope:

- *latency*: the mean latency of a write for one combination of levels;
- *excess*: the latency of RF2 minus the mean latency of RF3 to RF5;
- *slope*: the rise of latency per millisecond of a link's delay, by least squares;
- *degradation*: the latency at high loss minus the latency at low loss; *per_phi* and *per_late*
  are this divided by phi, and by the rise of the probability that an answer waits for a timeout;
- *deviation*: the standard deviation of the latencies of RF3 in clusters of 3, 4 and 5 nodes;
- *median*: the median of the latencies at the three losses;
- *many*: the mean latency of RF3 to RF5;
- *best*: the factor with the least latency;
- *regret*: the greatest excess over the best factor, of all losses; *replicated_regret* is this
  among factors of two and more;
- *of_model*: the latency divided by that of the order-statistics model.

`WITHDRAWN` lists the replaced claims. The claims were written with earlier runs known.
"""

from __future__ import annotations

from dataclasses import replace

from sojourn.papers.claim_table import ClaimTable
from sojourn.stats import Claim, Every, claim_from_dict, claim_to_dict

#: First seed of exploratory runs.
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
WHY = _TABLE.claims("why")
"""Predictions of the two explanations, the paper's phi and order statistics, on the grid."""
SIZES = _TABLE.claims("sizes")
"""Claims on more nodes than the paper's."""
MECHANISM = _TABLE.claims("mechanism")
"""Predictions of the two explanations for changes of the scenario."""
DECLARED = _TABLE.declared()
"""The readings, and which claims are exploratory."""
CONDITIONS = _TABLE.conditions()
"""Published quantities that runs near the paper's have."""
WITHDRAWN = _TABLE.withdrawn()
"""Claims that are no longer judged."""
GRID: tuple[Claim, ...] = (*TWO, *BEST, *SLOPES, *DEVIATION, *ALIKE, *WHY)
"""Claims about the paper's grid."""

REAL_DELAY = 20
"""Delay between nodes in milliseconds at which claims are judged on real nodes."""


def _at(claim: Claim, delay: int) -> Claim:
    """Returns the claim limited to one delay in milliseconds."""
    text = claim.text.replace(_DELAYS, f"at {delay} ms")
    if isinstance(claim, Every):
        return replace(claim, text=text, claims=tuple(_at(c, delay) for c in claim.claims))
    data = {"cell": {}, **claim_to_dict(claim), "text": text}
    cells = {k: {**v, "delay": delay} for k, v in data.items() if isinstance(v, dict)}
    data = {k: v for k, v in {**data, **cells}.items() if k != "each"}
    return claim_from_dict(data if "a" not in data else {k: data[k] for k in data if k != "cell"})


_REAL_FIVE = ("rf2-worst-high", "rf2-excess-figure-2", "rf5-best-high", "rf-increase-best",
              "rf-increase-step", "rf1-best-low", "rf1-degrades-and-matches",
              "many-when-unknown-regret", "many-when-unknown-replicated",
              "many-when-unknown-spread", "both-ranks", "phi-proportional",
              "order-proportional")  # fmt: skip
_REAL = (*_REAL_FIVE, "rf2-similar", "rf1-best-low-fewer-nodes", "rf3-scales-each",
         "rf3-scales-averaged", "many-alike-median", "many-alike-each", "many-alike-losses",
         "phi-nodes")  # fmt: skip

REAL: tuple[Claim, ...] = tuple(_at(c, REAL_DELAY) for c in GRID if c.id in _REAL)
"""Claims that are judged on real nodes, limited to `REAL_DELAY`."""
REAL_FIVE: tuple[Claim, ...] = tuple(c for c in REAL if c.id in _REAL_FIVE)
"""Claims on real nodes that concern only five nodes at low and high loss."""
