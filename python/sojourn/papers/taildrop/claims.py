"""The paper's findings as claims, fixed before the runs that judge them.

The words of the paper have the regions of all studies (`words.toml`). *Varies* and *steep* concern
the difference between the largest and the smallest mean over the loads, in the metric's own unit.
"""

from __future__ import annotations

from dataclasses import replace

from sojourn.papers.claim_table import ClaimTable
from sojourn.papers.taildrop.scenarios import FLOWS
from sojourn.stats import Claim

#: First seed of runs that judge nothing yet.
FIRST_SEED = 2001

RANGE = "udp_loss_range"
"""Relative range of UDP loss among the mechanisms at one load and with one seed.

The range is the largest minus the smallest loss, divided by the mean loss.
"""
OF_TD = "udp_loss_of_td"
"""UDP loss of tail drop divided by the mean of the REDs, at one load and with one seed."""
LATE = "udp_loss_late"
"""Slope of UDP loss in the last step of the load, divided by the slope over all loads.

The ratio of slopes is 1 if loss grows linearly with the number of sessions or flows. Each mechanism
and seed has a value.
"""
TAIL = "consecutive_loss_tail"
"""Ratio of the variance of consecutive losses to the variance of a geometric distribution.

The geometric distribution has the same mean. A ratio above 1 means a heavier tail than if each loss
ended the sequence with the same probability.
"""
PLACES = ("queue_over_min", "queue_over_middle", "queue_over_max")
"""Mean length of a RED's queue divided by its lower threshold, their middle, and the upper one.

The mean of the queue is that of its average, from which RED drops. Tail drop has no value.
"""
BUFFER = "buffer"
"""Size of the buffer in packets."""

_TABLE = ClaimTable(__file__)


def bulk(flows: tuple[int, ...]) -> tuple[Claim, ...]:
    """Returns the claims on bulk traffic with these loads.

    Their cells have the factors `flows` and `mechanism`.
    """
    more = tuple(n for n in flows if n > FLOWS[0]) or FLOWS[1:]
    return _TABLE.claims("bulk", {"more_flows": more})


def of_reading(claims: tuple[Claim, ...], reading: str) -> tuple[Claim, ...]:
    """Returns claims of the main reading as claims of a reading of equal rank."""
    return tuple(replace(c, id=f"{c.id}-{reading}", reading=reading) for c in claims)


BULK = bulk(FLOWS)
"""Claims on bulk traffic with all loads."""
EQUAL_DELAY = _TABLE.claims("equal-delay")
"""Claim on tail drop with a buffer that gives REDopt's delay; factors `flows` and `mechanism`."""
WEB = _TABLE.claims("web")
"""Claims on Web traffic; their cells have the factors `sessions` and `mechanism`."""
BOTH = _TABLE.claims("both")
"""Claims on both kinds of traffic; factors `traffic`, `load` and `mechanism`."""
SETTINGS = _TABLE.claims("settings")
"""Claim on REDopt's parameters, which are the same in all runs of a load and have no interval."""
WEIGHTS = _TABLE.claims("weights")
"""Claim on the weights of all REDs; factors `mechanism` and `weight`."""
CONDITIONS = _TABLE.conditions()
"""Published quantities that runs near the paper's have."""
DECLARED = _TABLE.declared()
"""The readings other than the main one."""
WITHDRAWN = _TABLE.withdrawn()
"""Claims that are no longer judged."""
