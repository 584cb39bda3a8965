"""The paper's findings as claims, each under the readings of the paper's open details.

A *factor* of 10 means 5 to 20; *about 30 %* means 15 to 45 %;
*equal* means within 3 %; *higher* means by at least 5 %; *slightly* means by at most one message in
a hundred; *rapidly* means at least doubled. The paper prints no values of figures 2 to 8 on which
its claims could be judged.
"""

from __future__ import annotations

from dataclasses import replace

from sojourn.papers.claim_table import ClaimTable
from sojourn.papers.rrda.scenarios import (
    BEFORE_LOAD_FALLS,
    CLIENTS,
    CPUS,
    KNEE,
    READINGS,
    USES,
)
from sojourn.stats.claims import Claim

FROZEN = "2026-11-23"
"""Date when the claims were fixed, with all earlier results known.

Runs with seeds that were used before are no evidence for the claims.
"""
FIRST_SEED = 301
"""First seed of the runs that judge the claims; no earlier run had this seed or a greater one.

Earlier runs had up to five seeds: from 101 on for reading `steady`, memory and the average, and
from 201 on for reading `datagram` and the average.
"""

_TABLE = ClaimTable(__file__)


def _claims(
    reading: str, clients: tuple[int, ...], cpus: tuple[float, ...], sizes: bool
) -> tuple[Claim, ...]:
    """Returns the claims on the paper's experiments in one reading.

    `clients` and `cpus` are the levels that are run, in ascending order. `sizes` states whether
    many sizes of static buffers are run.
    """
    few = tuple(n for n in clients if n <= KNEE)
    many = tuple(n for n in clients if n > KNEE)
    names = {
        "reading": reading,
        "few": few,
        "fewer": tuple(n for n in few if n < KNEE),
        "many": many,
        "knee": few[-1],
        "most": many[-1],
        "beyond": f"{many[0]} to {many[-1]} clients",
        "little": tuple(cpu for cpu in cpus if cpu < 1),
        "sizes": sizes,
    }
    return tuple(replace(claim, reading=reading) for claim in _TABLE.claims("experiments", names))


def made(
    readings: tuple[str, ...] = tuple(READINGS),
    clients: tuple[int, ...] = CLIENTS,
    cpus: tuple[float, ...] = CPUS,
    sizes: bool = True,
) -> tuple[Claim, ...]:
    """Returns the claims that can be judged on runs with these levels.

    `sizes` states whether many sizes of static buffers are run. A reading is not judged by claims
    that determined its numbers.
    """
    return tuple(
        claim
        for reading in readings
        for claim in _claims(reading, clients, cpus, sizes)
        if claim.finding not in READINGS[reading].calibrated
    )


_SWEPT = ("figure-6-rises", "figure-6-factor", "throughput-third", "figure-8-many")


def swept() -> tuple[Claim, ...]:
    """Returns the claims that are judged for each retransmission time, in reading `datagram`."""
    found = _claims("datagram", CLIENTS, CPUS, sizes=False)
    return tuple(claim for claim in found if claim.finding in _SWEPT)


def memory() -> tuple[Claim, ...]:
    """Returns the claims on memory that is released when the load falls."""
    return _TABLE.claims("memory", {"readings": BEFORE_LOAD_FALLS, "uses": USES})


def average() -> tuple[Claim, ...]:
    """Returns the claims on the moving average in the scenarios of figure 4."""
    return _TABLE.claims("average")


def overhead(readings: tuple[str, ...]) -> tuple[Claim, ...]:
    """Returns the claims on RRDA's cost of CPU, which only real runs show."""
    return _TABLE.claims("overhead", {"readings": readings})


CLAIMS: tuple[Claim, ...] = (*made(), *memory(), *average())
DECLARED = _TABLE.declared()
"""The readings, and which claims are exploratory."""
CONDITIONS = _TABLE.conditions({"readings": tuple(READINGS)})
WITHDRAWN = _TABLE.withdrawn()
