"""The paper's findings as claims, which are judged in several readings of its open details."""

from __future__ import annotations

from sojourn.papers.claim_table import ClaimTable
from sojourn.papers.rrda.scenarios import CLIENTS, CPUS, KNEE, USES
from sojourn.stats.claims import Claim

FIRST_SEED = 301
"""First seed of exploratory runs."""

_TABLE = ClaimTable(__file__)


def made(
    clients: tuple[int, ...] = CLIENTS, cpus: tuple[float, ...] = CPUS, sizes: bool = True
) -> tuple[Claim, ...]:
    """Returns the claims that can be judged on runs with these levels, in ascending order.

    `sizes` states whether many sizes of static buffers are run.
    """
    few = tuple(n for n in clients if n <= KNEE)
    many = tuple(n for n in clients if n > KNEE)
    names = {
        "few": few,
        "fewer": tuple(n for n in few if n < KNEE),
        "many": many,
        "knee": few[-1],
        "first": many[0],
        "most": many[-1],
        "beyond": f"{many[0]} to {many[-1]} clients",
        "little": tuple(cpu for cpu in cpus if cpu < 1),
        "sizes": sizes,
    }
    return _TABLE.claims("experiments", names)


def memory() -> tuple[Claim, ...]:
    """Returns the claims on memory that is released when the load falls."""
    return _TABLE.claims("memory", {"uses": USES})


def average() -> tuple[Claim, ...]:
    """Returns the claims on the moving average in the scenarios of figure 4."""
    return _TABLE.claims("average")


def spikes() -> tuple[Claim, ...]:
    """Returns the claims of `average` on scenario 3."""
    return tuple(claim for claim in average() if claim.id.endswith("3"))


def overhead() -> tuple[Claim, ...]:
    """Returns the claims on RRDA's cost of CPU, which only real runs show."""
    return _TABLE.claims("overhead")


CLAIMS: tuple[Claim, ...] = (*made(), *memory(), *average())
DECLARED = _TABLE.declared()
"""The readings, and which claims are exploratory."""
CONDITIONS = _TABLE.conditions()
WITHDRAWN = _TABLE.withdrawn()
