"""The paper's findings as claims, and the readings of what the paper leaves open.

The ANOVA is the paper's own: the clients of one run are pooled as independent values. The claim on
it is that F exceeds its critical value: the logarithm of F over this value is above 0. The claims
on its least significant difference (LSD) are about the smallest difference of the means of a
proposed policy and another one, over the LSD of the same run.

The paper also shows that the total throughput of all clients rises with their number. This is no
claim, because the main reading was chosen to fit this finding.
"""

from __future__ import annotations

from collections.abc import Mapping

from sojourn.papers.claim_table import ClaimTable
from sojourn.papers.queue_lb.scenarios import MAIN, TRANSPORTS
from sojourn.stats.claims import Claim

_TABLE = ClaimTable(__file__)


def made(
    transports: tuple[str, ...] = TRANSPORTS,
    policies: Mapping[str, str] = MAIN.policies,
    anova: bool = False,
) -> tuple[Claim, ...]:
    """Returns the claims for these transports.

    `policies` are the policies that a reading uses under the paper's names. `anova` states whether
    runs have the paper's number of measurements, which claims on the paper's ANOVA require.
    """
    names = {
        **policies,
        "transports": transports,
        "transports-in-words": " and ".join(transports),
        "anova": anova,
    }
    return _TABLE.claims("claims", names)


CLAIMS: tuple[Claim, ...] = made(anova=True)
"""The claims of the main reading; their cells have the factors `transport`, `clients`, `policy`."""
VALUES: tuple[Claim, ...] = _TABLE.claims("values")
"""Claims on the values that the paper calls empirical."""
BURSTS: tuple[Claim, ...] = _TABLE.claims("bursts")
"""The claim on bursts; its cells have the factors `policy` and `age`."""
DECLARED = _TABLE.declared()
"""The readings, and which claims are exploratory."""
CONDITIONS = _TABLE.conditions()
"""Published quantities that runs near the paper's have."""
WITHDRAWN = _TABLE.withdrawn()
