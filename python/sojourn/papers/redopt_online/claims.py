"""Our claims on REDopt on-line, fixed before the runs that judge them.

The queue of REDopt on-line *follows* if its mean is 0.75 to 1.33 times the mean queue of REDopt set
by hand for the same number of flows. From 20 to 40 s after a change of the number of flows (*soon*)
0.67 to 1.5 times suffices. *Equal* means within 3 %, *less* means at least 10 % less, and *far
less* means at most half. Means are over the three courses.

Results known before the claims were fixed: single runs of 200 s with seed 1 and a constant number
of flows, and two seeds of a short course of 16, 64 and 16 flows. No number of the claims was
changed after these runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from sojourn.stats import Claim, Difference, Every, Ratio, Region
from sojourn.stats.cells import Cell

FROZEN = "2026-11-23"
"""Date when the claims were fixed."""
FIRST_SEED = 2001
"""First seed of the runs that judge the claims; no earlier run had this seed or a greater one."""

ONLINE, STANDARD, TAIL_DROP, FAIR = "on-line", "REDstd", "TD", "fq_codel"
_QUARTER, _THIRD = Region(0.75, 1 / 0.75), Region(2 / 3, 1.5)
_EQUAL = Region(0.97, 1 / 0.97)
_LESS, _FAR_LESS = Region(high=0.9), Region(high=0.5)


def fixed(flows: int) -> str:
    """Returns the name of the mechanism: REDopt, set by hand for `flows` TCP flows."""
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
    """Returns the claims for these numbers of flows, given in ascending order."""
    light, heavy = loads[0], loads[-1]

    def each(metric: str, rival: str, region: Region) -> tuple[Claim, ...]:
        return tuple(_ratio(metric, ONLINE, rival, n, region) for n in loads)

    return (
        Every(
            id="follows",
            text="At each number of flows, the mean queue of REDopt on-line is 0.75 to 1.33 times "
            "that of REDopt set for this number",
            claims=tuple(_ratio("queue", ONLINE, fixed(n), n, _QUARTER) for n in loads),
        ),
        Every(
            id="follows-soon",
            text="From 20 to 40 s after a change of the number of flows, the mean queue of REDopt "
            "on-line is 0.67 to 1.5 times that of REDopt set for the new number",
            claims=tuple(_ratio("queue", ONLINE, fixed(n), n, _THIRD, "soon") for n in loads),
        ),
        Every(
            id="goodput",
            text="At each number of flows, TCP goodput with REDopt on-line equals that with tail "
            "drop, within 3 %",
            claims=each("goodput", TAIL_DROP, _EQUAL),
        ),
        _named(
            "light-delay",
            f"With {light} flows, the queue of REDopt on-line is at most half that of REDopt set "
            f"for {heavy} flows",
            _ratio("queue", ONLINE, fixed(heavy), light, _FAR_LESS),
        ),
        _named(
            "heavy-loss",
            f"With {heavy} flows, REDopt on-line loses at least 10 % less UDP traffic than REDopt "
            f"set for {light} flows",
            _ratio("udp_loss", ONLINE, fixed(light), heavy, _LESS),
        ),
        _named(
            "swing-standard",
            f"With {heavy} flows, the standard deviation of the queue is at least 10 % smaller "
            "with REDopt on-line than with REDstd",
            _ratio("swing", ONLINE, STANDARD, heavy, _LESS),
        ),
        Every(
            id="shorter-than-tail-drop",
            text="At each number of flows, the queue of REDopt on-line is at least 10 % shorter "
            "than that of tail drop with the largest buffer",
            claims=each("queue", TAIL_DROP, _LESS),
        ),
        Every(
            id="fair-shorter",
            text="At each number of flows, fq_codel's queue is at most half that of REDopt on-line",
            claims=tuple(_ratio("queue", FAIR, ONLINE, n, _FAR_LESS) for n in loads),
        ),
        Difference(
            id="fair-heavy-loss",
            text=f"With {heavy} flows, fq_codel loses at least 10 percentage points more of the "
            "UDP traffic than REDopt on-line",
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
