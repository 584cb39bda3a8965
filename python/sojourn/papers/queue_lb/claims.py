"""The paper's findings as claims, for each of three networks.

The paper does not describe its network completely; each network here is a reading of the paper.
*Higher* means that the mean throughput of a client is higher in runs paired by seed: the whole
interval of the ratio is above 1. *22.5 %* means 15 to 30 %. The ANOVA is the paper's own: the
clients of one run are pooled as independent values. The claim on the ANOVA is that F exceeds its
critical value: the logarithm of F over this value is above 0.

The paper also shows that the total throughput of all clients rises with their number. This is no
claim, because the networks were chosen to fit this finding.
"""

from __future__ import annotations

from sojourn.papers.claim_table import ClaimTable
from sojourn.papers.queue_lb.scenarios import NETWORKS, TRANSPORTS
from sojourn.stats.claims import Claim

FROZEN = "2026-11-23"
"""Date when the claims were fixed.

At that date the authors had seen all earlier results, and one or two runs of each cell, with the
seeds 901 and 902.
"""
FIRST_SEED = 1001
"""First seed of the runs that judge the claims; no earlier run had this seed or a greater one."""

_TABLE = ClaimTable(__file__)


def made(
    networks: tuple[str, ...], transports: tuple[str, ...] = TRANSPORTS, anova: bool = True
) -> tuple[Claim, ...]:
    """Returns the claims for these networks and transports.

    `anova` states whether runs have the paper's number of measurements, which claims on the paper's
    ANOVA require.
    """
    names = {
        "transports": transports,
        "transports-in-words": " and ".join(transports),
        "anova": anova,
    }
    return tuple(
        claim
        for network in networks
        for claim in _TABLE.claims("claims", {**names, "networks": (network,)})
    )


CLAIMS: tuple[Claim, ...] = made(tuple(network.name for network in NETWORKS))
"""All claims; their cells have the factors `network`, `transport`, `clients` and `policy`."""
DECLARED = _TABLE.declared()
"""The readings, and which claims are exploratory."""
CONDITIONS = _TABLE.conditions({"networks": tuple(n.name for n in NETWORKS)})
"""Published quantities that runs near the paper's have."""
WITHDRAWN = _TABLE.withdrawn()
