"""Sentences of the sources as claims.

Each sentence is quoted verbatim with its place; a claim's text states how it is judged, with the
words of all studies. Results known when the claims were written: the coexistence matrix with seeds
1 to 3, which has other rates and settings of queues, and runs of ten seconds with seed 1 of
`environment` and `step`. The limit of a spike was raised by the transmission time of four packets
after runs of the study, because at 1 Mbit/s the round-trip time never falls below the original
limit. With both limits, the spike is longer than the source's 30 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sojourn.papers.claim_table import ClaimTable
from sojourn.papers.l4s import scenarios
from sojourn.stats import AllIn, Claim
from sojourn.stats.cells import Cell

FROZEN = "2026-11-24"
"""Date when the claims were fixed."""
FIRST_SEED = 4001
"""First seed of the runs that judge the claims; no earlier run had this seed or a greater one."""

L4S = tuple(
    mix for mix, groups in scenarios.MIXES.items() if any(name == "l4s" for name, *_ in groups)
)
_TABLE = ClaimTable(__file__)


def rfc(grid: Sequence[tuple[int, int]]) -> tuple[Claim, ...]:
    """Returns RFC 9332's claims for a grid of rates in Mbit/s and round-trip times in ms."""
    return _TABLE.claims("rfc", {"grid": tuple(grid), "l4s": L4S})


FEW = "few flows"
"""Reading of RFC 9332 with at most two flows, which have at least a few packets in flight."""
FEW_MIXES = ("1 Prague", "1 Prague, 1 CUBIC", "1 Prague, 1 Reno")


def few(grid: Sequence[tuple[int, int]]) -> tuple[Claim, ...]:
    """Returns RFC 9332's claims on delay and losses for mixes with a single L4S flow.

    These claims were added when the verdicts on the claims of `rfc` were known.
    """

    def cells(mixes: Sequence[str]) -> tuple[Cell, ...]:
        return tuple({"mix": m, "rate": rate, "rtt": rtt} for m in mixes for rate, rtt in grid)

    return tuple(
        replace(c, id=f"{c.id}-{FEW}", reading=FEW, cells=cells(FEW_MIXES))
        for c in rfc(grid)
        if isinstance(c, AllIn) and c.cells == cells(L4S)
    )


S1 = _TABLE.claims("s1", {"s1-pairs": tuple(scenarios.S1_PAIRS)})
S2 = _TABLE.claims("s2")
S2_BURSTS = _TABLE.claims("bursts")
S3 = _TABLE.claims("s3")
DECLARED = _TABLE.declared()
"""The readings, and which claims are exploratory."""
CONDITIONS = _TABLE.conditions()
"""Published quantities that runs near the sources' have."""
_S6 = {"s6-queues": tuple(scenarios.S6_QUEUES), "s6-rivals": tuple(scenarios.S6_RIVALS)}
S6 = _TABLE.claims("s6", _S6)
PARTIAL = _TABLE.claims("partial")
MULTIPLE = _TABLE.claims("multiple")
ENVIRONMENTS = _TABLE.claims("environments")
