"""Our claims on REDopt on-line, fixed before the runs that judge them.

*Follows* means within a quarter of the queue that REDopt holds when set for this number of flows by
hand; *soon* means from 20 to 40 s after the number changed, and within a third. *Equal* means
within 3 %, *less* by at least a tenth, *far less* by half. Means are over the three courses.

Earlier looks during development: single runs of 200 s with seed 1 and a constant number of flows,
and two seeds of a short course of 16, 64 and 16 flows. No number of the claims was changed after
them.
"""

from __future__ import annotations

from collections.abc import Sequence

from sojourn.stats import Claim, Difference, Every, Ratio, Region
from sojourn.stats.cells import Cell

FROZEN = "2026-11-23"
"""Date when the claims were written."""
FIRST_SEED = 2001
"""First seed of the runs that judge them; no earlier run had it or a later one."""

ONLINE, STANDARD, TAIL_DROP, FAIR = "on-line", "REDstd", "TD", "fq_codel"
_QUARTER, _THIRD = Region(0.75, 1 / 0.75), Region(2 / 3, 1.5)
_EQUAL = Region(0.97, 1 / 0.97)
_LESS, _FAR_LESS = Region(high=0.9), Region(high=0.5)


def fixed(flows: int) -> str:
    """Returns the name of REDopt set by hand for this many flows."""
    return f"REDopt {flows}"


def _ratio(metric: str, a: str, b: str, flows: int, region: Region, when: str = "later") -> Ratio:
    cell: Cell = {"flows": flows, "when": when}
    return Ratio(
        id="",
        text=f"{flows} flows",
        metric=metric,
        a={**cell, "mechanism": a},
        b={**cell, "mechanism": b},
        region=region,
    )


def made(loads: Sequence[int]) -> tuple[Claim, ...]:
    """Returns the claims for these numbers of flows, the smallest first."""
    light, heavy = loads[0], loads[-1]

    def each(metric: str, rival: str, region: Region) -> tuple[Claim, ...]:
        return tuple(_ratio(metric, ONLINE, rival, n, region) for n in loads)

    return (
        Every(
            id="follows",
            text="On-line the queue is within a quarter of that of REDopt set for the number of "
            "flows, at each number",
            claims=tuple(_ratio("queue", ONLINE, fixed(n), n, _QUARTER) for n in loads),
        ),
        Every(
            id="follows-soon",
            text="From 20 to 40 s after a change it is within a third of it",
            claims=tuple(_ratio("queue", ONLINE, fixed(n), n, _THIRD, "soon") for n in loads),
        ),
        Every(
            id="goodput",
            text="On-line TCP goodput is that of tail drop, at each number of flows",
            claims=each("goodput", TAIL_DROP, _EQUAL),
        ),
        _named(
            "light-delay",
            f"With {light} flows the queue is shorter by half than with REDopt set for {heavy}",
            _ratio("queue", ONLINE, fixed(heavy), light, _FAR_LESS),
        ),
        _named(
            "heavy-loss",
            f"With {heavy} flows UDP loses less than with REDopt set for {light}",
            _ratio("udp_loss", ONLINE, fixed(light), heavy, _LESS),
        ),
        _named(
            "swing-standard",
            f"With {heavy} flows the queue swings less than with REDstd",
            _ratio("swing", ONLINE, STANDARD, heavy, _LESS),
        ),
        Every(
            id="shorter-than-tail-drop",
            text="The queue is shorter than with tail drop of the largest buffer, at each number "
            "of flows",
            claims=each("queue", TAIL_DROP, _LESS),
        ),
        Every(
            id="fair-shorter",
            text="fq_codel's queue is far shorter than on-line, at each number of flows",
            claims=tuple(_ratio("queue", FAIR, ONLINE, n, _FAR_LESS) for n in loads),
        ),
        Difference(
            id="fair-heavy-loss",
            text=f"With {heavy} flows fq_codel loses more of the UDP traffic than on-line, by 0.1 "
            "at least",
            metric="udp_loss",
            a={"flows": heavy, "when": "later", "mechanism": FAIR},
            b={"flows": heavy, "when": "later", "mechanism": ONLINE},
            region=Region(low=0.1),
        ),
    )


def _named(identifier: str, text: str, claim: Ratio) -> Ratio:
    return Ratio(
        id=identifier, text=text, metric=claim.metric, a=claim.a, b=claim.b, region=claim.region
    )
