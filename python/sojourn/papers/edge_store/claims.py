"""The paper's findings as claims, on tables derived from the mean latency of writes.

RF2 means a replication factor of two. All quantities are in milliseconds except the slope:

- *latency*: the mean latency of a write for one combination of levels;
- *excess*: the latency of RF2 minus the mean latency of RF3 to RF5;
- *slope*: the rise of latency per millisecond of a link's delay, by least squares;
- *degradation*: the latency at high loss minus the latency at low loss;
- *deviation*: the standard deviation of the latencies of RF3 in clusters of 3, 4 and 5 nodes;
- *median*: the median of the latencies at the three losses;
- *many*: the mean latency of RF3 to RF5.

*Alike* and *similar* mean within 5 %. *Similar to others* means an excess below 10 ms. A slope is
*greater* if it is greater by at least a tenth. *Best* and *worst* have no margin.

The first claims were judged on runs with seeds from 1 on. On 2026-11-23, after these verdicts,
claims were changed and added; `WITHDRAWN` lists the replaced claims. All claims are judged on runs
with seeds from `FIRST_SEED` on, which no earlier run used.
"""

from __future__ import annotations

from dataclasses import replace

from sojourn.papers.paper import Withdrawn
from sojourn.stats import (
    Claim,
    Every,
    Least,
    MeanIn,
    Monotone,
    PracticallyEqual,
    Ratio,
    Region,
)
from sojourn.stats.cells import Cell
from sojourn.stats.verdict import Verdict

FROZEN = "2026-11-23"
"""Date when the claims were last changed."""
#: First seed of the runs that judge the claims.
FIRST_SEED = 1001

MANY = (3, 4, 5)
LOSSES = ("low", "medium", "high")
FEWER = (3, 4)
"""Numbers of nodes of the clusters that the paper describes without a figure."""
_ALIKE = 0.05
_SIMILAR_EXCESS = Region(0.0, 10.0)
_GREATER = 0.1
#: Relative tolerance of slopes that were read off the paper's figures.
_SLOPE = 0.05
_DELAYS = "at every delay"


def _best(rf: int, loss: str, nodes: int) -> Least:
    """Returns the claim that the replication factor `rf` has the least latency at every delay."""
    return Least(
        id="",
        text=f"{nodes} nodes",
        metric="latency",
        among="rf",
        who=rf,
        cell={"nodes": nodes, "loss": loss, "rf": tuple(range(1, nodes + 1))},
        each="delay",
    )


def _worst(nodes: int) -> Least:
    """Returns the claim that RF2 has the greatest latency at high loss and every delay."""
    return replace(_best(2, "high", nodes), text=f"worst in {nodes} nodes", extreme="largest")


def _steepest(nodes: int) -> Least:
    """Returns the claim that RF2 has the greatest slope at high loss."""
    return Least(
        id="",
        text=f"steepest in {nodes} nodes",
        metric="slope",
        among="rf",
        who=2,
        extreme="largest",
        margin=_GREATER,
        as_published=Region(low=1.0),
        cell={"nodes": nodes, "loss": "high", "rf": tuple(range(1, nodes + 1))},
    )


def _degrades(nodes: int) -> Least:
    """Returns the claim that RF1 has a greater degradation than RF3 and higher factors."""
    return Least(
        id="",
        text=f"degrades faster in {nodes} nodes",
        metric="degradation",
        among="rf",
        who=1,
        extreme="largest",
        cell={"nodes": nodes, "rf": (1, *range(3, nodes + 1))},
    )


def _matches(nodes: int) -> Ratio:
    """Returns the claim that at high loss the mean of RF3 and higher is at most 1.05 times RF1."""
    many: Cell = {"nodes": nodes, "loss": "high", "rf": tuple(range(3, nodes + 1))}
    return Ratio(
        id="",
        text=f"matches or surpasses in {nodes} nodes",
        metric="latency",
        a={**many, "rf": 1},
        b=many,
        region=Region(low=1 / (1 + _ALIKE)),
        each="delay",
    )


def _excess(loss: str, region: Region) -> MeanIn:
    """Returns the claim that the excess of RF2 in five nodes is in `region` at every delay."""
    return MeanIn(
        id="",
        text=f"{loss} loss",
        metric="excess",
        cell={"nodes": 5, "loss": loss},
        region=region,
        each="delay",
    )


TWO: tuple[Claim, ...] = (
    replace(
        _worst(5),
        id="rf2-worst-high",
        text=f"At high loss in five nodes, RF2 has the greatest latency {_DELAYS}",
        published="RF2 results in the worst performance (5.1)",
    ),
    Every(
        id="rf2-similar",
        text="In five nodes RF2's latency exceeds the mean of RF3 to RF5 by less than 10 ms at low "
        f"and medium loss, and by more at high loss, {_DELAYS}",
        published="performed similarly to others under low and medium packet losses, in contrast "
        "to high (5.1); an excess of 2 to 6 ms in figure 3 (low loss)",
        claims=(
            _excess("low", _SIMILAR_EXCESS),
            _excess("medium", _SIMILAR_EXCESS),
            _excess("high", Region(low=_SIMILAR_EXCESS.high)),
        ),
    ),
    replace(
        _excess("high", Region(17.0, 90.0)),
        id="rf2-excess-figure-2",
        text=f"At high loss RF2's latency exceeds the mean of RF3 to RF5 by 17 to 90 ms {_DELAYS}",
        published="17 to 90 ms in figure 2",
    ),
    Monotone(
        id="rf2-excess-grows",
        text="At high loss in five nodes, RF2's excess over the mean of RF3 to RF5 grows from each "
        "delay to the next, or falls by 5 % at most",
        metric="excess",
        published="the difference between RF2 and the others gradually increases (5.1)",
        over="delay",
        direction="rises",
        cell={"nodes": 5, "loss": "high"},
    ),
    replace(
        _steepest(5),
        id="rf2-steepest-high",
        text="At high loss in five nodes, the slope of RF2's latency over the delay is the "
        "greatest, by at least a tenth",
        published="more significant than any other slope (5.1)",
    ),
    Every(
        id="rf2-fewer-nodes",
        text="In three and four nodes too, RF2 at high loss has the greatest latency "
        f"{_DELAYS}, and the greatest slope by at least a tenth",
        published="similar behaviour is observed in the 3 and 4-node clusters (5.1)",
        claims=tuple(made(nodes) for nodes in FEWER for made in (_worst, _steepest)),
    ),
)
"""Claims of section 5.1."""

BEST: tuple[Claim, ...] = (
    replace(
        _best(5, "high", 5),
        id="rf5-best-high",
        text=f"At high loss in five nodes, RF5 has the least latency {_DELAYS}",
        published="RF5 gives the best performance (5.2)",
    ),
    replace(
        _best(1, "low", 5),
        id="rf1-best-low",
        text=f"At low loss in five nodes, RF1 has the least latency {_DELAYS}",
        published="RF1 gives the best performance (5.3)",
    ),
    Every(
        id="rf1-best-low-fewer-nodes",
        text=f"At low loss in three and four nodes too, RF1 has the least latency {_DELAYS}",
        published="the 3-node and 4-node setups indicate that RF1 performs best (5.3)",
        claims=tuple(_best(1, "low", nodes) for nodes in FEWER),
    ),
    Every(
        id="rf1-degrades-and-matches",
        text="In five nodes RF1's latency rises more from low to high loss than RF3's, RF4's and "
        f"RF5's, and at high loss it is at most 5 % below their mean {_DELAYS}",
        published="degrades faster than other RFs, eventually matching or surpassing them (5.3)",
        claims=(_degrades(5), _matches(5)),
    ),
    Ratio(
        id="rf1-slope-high",
        text="At high loss RF1's slope equals the mean of RF3's, RF4's and RF5's within 5 %",
        metric="slope",
        published="RF1's slope is similar to RF3, RF4, and RF5 (5.3)",
        a={"nodes": 5, "loss": "high", "rf": 1},
        b={"nodes": 5, "loss": "high", "rf": MANY},
        region=Region(1 / (1 + _ALIKE), 1 + _ALIKE),
    ),
    Every(
        id="rf1-fewer-nodes",
        text="In three and four nodes too, RF1's latency rises more from low to high loss than "
        f"RF3's and RF4's, and at high loss it is at most 5 % below their mean {_DELAYS}",
        published="similar trends are observed in the other clusters as well (5.3)",
        claims=tuple(made(nodes) for nodes in FEWER for made in (_degrades, _matches)),
    ),
)
"""Claims of sections 5.2 and 5.3."""

SLOPES: tuple[Claim, ...] = (
    MeanIn(
        id="rf2-slope-high",
        text="At high loss RF2's latency rises by 2.62 ms for each millisecond of delay, within "
        "5 %",
        metric="slope",
        published="2.62 in figure 2",
        cell={"nodes": 5, "loss": "high", "rf": 2},
        region=Region.around(2.62, _SLOPE),
    ),
    MeanIn(
        id="other-slopes-high",
        text="At high loss the latencies of RF1, RF3, RF4 and RF5 rise by 2.03 to 2.18 ms for each "
        "millisecond of delay, within 5 %",
        metric="slope",
        published="2.03 to 2.18 in figure 2",
        cell={"nodes": 5, "loss": "high", "rf": (1, *MANY)},
        region=Region(2.03 * (1 - _SLOPE), 2.18 * (1 + _SLOPE)),
        each="rf",
    ),
    MeanIn(
        id="slopes-low",
        text="At low loss the latencies of RF2 to RF5 rise by 1.97 to 2.00 ms for each millisecond "
        "of delay, within 5 %",
        metric="slope",
        published="RF2 2.00, RF3 to RF5 1.97 to 2.00 in figure 3",
        cell={"nodes": 5, "loss": "low", "rf": (2, *MANY)},
        region=Region(1.97 * (1 - _SLOPE), 2.00 * (1 + _SLOPE)),
        each="rf",
    ),
)
"""Claims on the lines in figures 2 and 3."""

DEVIATION: tuple[Claim, ...] = (
    Every(
        id="rf3-scales-each",
        reading="each",
        text="The standard deviation of RF3's mean latencies in 3, 4 and 5 nodes is below 1.5 ms "
        f"{_DELAYS} and each loss",
        published="< 1.5 ms for any link latency, irrespective of packet loss (5.4)",
        claims=tuple(
            MeanIn(
                id="",
                text=f"{loss} loss",
                metric="deviation",
                cell={"loss": loss},
                region=Region(high=1.5),
                each="delay",
            )
            for loss in LOSSES
        ),
    ),
    MeanIn(
        id="rf3-scales-averaged",
        reading="averaged",
        text="The standard deviation of RF3's latencies in 3, 4 and 5 nodes, averaged over the "
        f"three losses, is below 1.5 ms {_DELAYS}",
        metric="averaged_deviation",
        published="< 1.5 ms for any link latency (5.4)",
        region=Region(high=1.5),
        each="delay",
    ),
)
"""Claims of section 5.4, one for each reading.

The section does not state whether the deviation is that of latencies averaged over losses.
"""

ALIKE: tuple[Claim, ...] = (
    PracticallyEqual(
        id="many-alike-median",
        reading="median",
        text="In five nodes, the medians of RF3, RF4 and RF5 over the three losses are alike "
        f"within 5 % {_DELAYS}",
        metric="median",
        published="taking the median for different packet losses, RF3, RF4, and RF5 show similar "
        "performance (5.5)",
        among="rf",
        margin=_ALIKE,
        cell={"nodes": 5, "rf": MANY},
        each="delay",
    ),
    Every(
        id="many-alike-each",
        reading="each",
        text="In five nodes, the latencies of RF3, RF4 and RF5 are alike within 5 % at each loss, "
        f"{_DELAYS}",
        published="RF3, RF4, and RF5 show similar performance (5.5)",
        claims=tuple(
            PracticallyEqual(
                id="",
                text=f"{loss} loss",
                metric="latency",
                among="rf",
                margin=_ALIKE,
                cell={"nodes": 5, "loss": loss, "rf": MANY},
                each="delay",
            )
            for loss in LOSSES
        ),
    ),
    PracticallyEqual(
        id="many-alike-losses",
        reading="losses",
        text="In five nodes, the mean latency of RF3 to RF5 is alike within 5 % at low, medium and "
        f"high loss, {_DELAYS}",
        metric="many",
        published="the average of RF3, RF4, and RF5 in terms of packet losses (figure 4)",
        among="loss",
        margin=_ALIKE,
        cell={"nodes": 5, "loss": LOSSES},
        each="delay",
    ),
)
"""Claims of section 5.5, one for each reading. The section mentions a median; figure 4 has a mean.
"""

#: Predictions of the two explanations: the paper's phi, and order statistics of TCP's timers.
#: Each claim's text begins with the explanation that predicts it.
MECHANISM: tuple[Claim, ...] = (
    Ratio(
        id="phi-all",
        text="phi: at ALL every replication factor has phi = 1, so RF5 is as slow as RF2 within "
        "5 %",
        metric="latency",
        published="the higher phi, the more impact packet loss has (6)",
        a={"variant": "all", "rf": 5},
        b={"variant": "all", "rf": 2},
        region=Region(0.95, 1.05),
    ),
    Monotone(
        id="both-one",
        text="Both explanations: at ONE, latency falls with each replica, in all by at least 30 %",
        metric="latency",
        over="rf",
        direction="falls",
        cell={"variant": "one"},
        at_least=0.3,
        tolerance=0.0,
    ),
    Ratio(
        id="phi-timer",
        text="phi, which ignores TCP's minimum timeout: a minimum of 20 ms leaves RF2's excess "
        "over RF3 to RF5 unchanged within 10 %",
        metric="excess",
        published="the coordinator sending the request for acknowledgment again (6)",
        a={"variant": "min_rto 20ms"},
        b={"variant": "as it was"},
        region=Region(0.9, 1.1),
    ),
    Ratio(
        id="both-probe",
        text="Both explanations: without tail loss probes and RACK, RF2's excess over RF3 to RF5 "
        "is unchanged within 15 %",
        metric="excess",
        published="",
        a={"variant": "no RACK, no TLP"},
        b={"variant": "as it was"},
        region=Region(0.85, 1.15),
    ),
    Ratio(
        id="phi-parallel",
        text="phi, which ignores concurrent requests: 32 requests at a time leave RF2's excess "
        "over RF3 to RF5 unchanged within 10 %",
        metric="excess",
        published="",
        a={"variant": "32 at a time"},
        b={"variant": "as it was"},
        region=Region(0.9, 1.1),
    ),
)


GRID: tuple[Claim, ...] = (*TWO, *BEST, *SLOPES, *DEVIATION, *ALIKE)
"""Claims about the paper's grid."""

REAL_DELAY = 20
"""Delay between nodes in milliseconds at which claims are judged on real nodes."""


def _at(claim: Claim, delay: int) -> Claim:
    """Returns the claim limited to one delay in milliseconds.

    Raises `TypeError` for a claim that compares delays.
    """
    text = claim.text.replace(_DELAYS, f"at {delay} ms")
    match claim:
        case Every():
            return replace(claim, text=text, claims=tuple(_at(c, delay) for c in claim.claims))
        case Ratio():
            a, b = ({**cell, "delay": delay} for cell in (claim.a, claim.b))
            return replace(claim, text=text, a=a, b=b, each=None)
        case Least() | MeanIn() | PracticallyEqual():
            return replace(claim, text=text, cell={**claim.cell, "delay": delay}, each=None)
        case _:
            raise TypeError(f"the claim {claim.id} compares delays and cannot be limited to one")


_REAL = ("rf2-worst-high", "rf2-similar", "rf2-excess-figure-2", "rf5-best-high", "rf1-best-low",
         "rf1-best-low-fewer-nodes", "rf3-scales-each", "rf3-scales-averaged", "many-alike-median",
         "many-alike-each", "many-alike-losses")  # fmt: skip
_REAL_HIGH = ("rf2-worst-high", "rf2-excess-figure-2", "rf5-best-high")

REAL: tuple[Claim, ...] = tuple(_at(c, REAL_DELAY) for c in GRID if c.id in _REAL)
"""Claims that are judged on real nodes, limited to `REAL_DELAY`."""
REAL_HIGH: tuple[Claim, ...] = tuple(c for c in REAL if c.id in _REAL_HIGH)
"""Claims on real nodes that concern only five nodes at high loss."""

_SCALES: dict[str, Verdict] = {"low": "holds", "medium": "holds", "high": "does not hold"}
_MANY: dict[str, Verdict] = {"low": "holds", "high": "does not hold"}

WITHDRAWN: tuple[Withdrawn, ...] = (
    Withdrawn(
        id="rf2-excess-low",
        text="At low loss RF2's latency exceeds the mean of RF3 to RF5 by less than 10 ms at every "
        "delay",
        verdict="holds",
        date=FROZEN,
        reason="The paper's sentence also names medium loss, and contrasts both with high loss; "
        "replaced by rf2-similar",
    ),
    Withdrawn(
        id="rf2-excess-high",
        text="At high loss RF2's latency exceeds the mean of RF3 to RF5 by 17 to 80 ms at every "
        "delay",
        verdict="cannot be told",
        date=FROZEN,
        reason="The limit of 80 ms was an error, because figure 2 shows 90 ms at a delay of 100 "
        "ms; replaced by rf2-excess-figure-2",
    ),
    Withdrawn(
        id="rf1-degrades",
        text="RF1's latency rises more from low to high loss than RF3's, RF4's and RF5's",
        verdict="holds",
        date=FROZEN,
        reason="The claim covered half of the paper's sentence; replaced by "
        "rf1-degrades-and-matches",
    ),
    *(
        Withdrawn(
            id=f"rf3-scales-{loss}",
            text=f"At {loss} loss the standard deviation of RF3's mean latencies in 3, 4 and 5 "
            "nodes is below 1.5 ms",
            verdict=verdict,
            date=FROZEN,
            reason="The paper's sentence is about every loss; replaced by rf3-scales-each",
        )
        for loss, verdict in _SCALES.items()
    ),
    *(
        Withdrawn(
            id=f"many-alike-{loss}",
            text=f"In five nodes at {loss} loss, the latencies of RF3, RF4 and RF5 are alike at "
            "every delay",
            verdict=verdict,
            date=FROZEN,
            reason="The paper's sentence is about medians over the losses; replaced by "
            "many-alike-median",
        )
        for loss, verdict in _MANY.items()
    ),
)
"""Claims that are no longer judged."""
