"""The paper's findings as claims, fixed before the runs that judge them.

If the paper gives a number, the region is this number with a margin. The paper's words are
interpreted as follows. *Practically equal* means within 3 % of each other. A *factor* f means f
within a factor of the square root of two. *Better* and *worse* mean by at least 5 %. *Marginally
below* means below by at most 3 %. *Varies* and *steep* concern the difference between the largest
and the smallest mean over the loads, in the metric's own unit.

The first claims were judged on runs with seeds from 1 on. On 2026-11-23, after these verdicts,
claims were changed and added. After short runs with seeds from 1001 on, two findings were changed
again. `WITHDRAWN` lists the replaced claims. All claims are judged on runs with seeds from
`FIRST_SEED` on, which no earlier run used.
"""

from __future__ import annotations

from sojourn.papers.claim_table import ClaimTable

#: First seed of the runs that judge the claims.
FIRST_SEED = 2001

RANGE = "udp_loss_range"
"""Relative range of UDP loss among the mechanisms at one load and with one seed.

The range is the largest minus the smallest loss, divided by the mean loss.
"""
LATE = "udp_loss_late"
"""Slope of UDP loss in the last step of the load, divided by the slope over all loads.

The ratio of slopes is 1 if loss grows linearly with the number of sessions or flows. Each mechanism
and seed has a value.
"""
LATE_BULK = "udp_loss_late_bulk"
"""`LATE` of bulk traffic, in the table of Web traffic."""
TAIL = "consecutive_loss_tail"
"""Ratio of the variance of consecutive losses to the variance of a geometric distribution.

The geometric distribution has the same mean. A ratio above 1 means a heavier tail than if each loss
ended the sequence with the same probability.
"""

_TABLE = ClaimTable(__file__)
BULK = _TABLE.claims("bulk")
"""Claims on bulk traffic; their cells have the factors `flows` and `mechanism`."""
EQUAL_DELAY = _TABLE.claims("equal-delay")
"""Claim on tail drop with a buffer that gives REDopt's delay; factors `flows` and `mechanism`."""
WEB = _TABLE.claims("web")
"""Claims on Web traffic; their cells have the factors `sessions` and `mechanism`."""
SETTINGS = _TABLE.claims("settings")
"""Claims on REDopt's parameters, which are the same in all runs of a load and have no interval."""
DECLARED = _TABLE.declared()
"""The readings, and which claims are exploratory."""
CONDITIONS = _TABLE.conditions()
"""Published quantities that runs near the paper's have."""
WITHDRAWN = _TABLE.withdrawn()
"""Claims that are no longer judged."""
