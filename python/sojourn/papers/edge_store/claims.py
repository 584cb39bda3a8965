"""The paper's findings as claims, on tables derived from means of a write in milliseconds.

Its findings are about these quantities: *latency*, the mean of a cell; *excess*, the cost of two
replicas above the mean of three to five; *slope*, latency over the delay of a link, by least
squares; *degradation*, latency at high loss minus that at low; *deviation*, the standard deviation
of the means of clusters of three, four and five nodes; *median*, of the latencies at the three
losses; *many*, the mean of three to five replicas. *Alike* and *similar* mean within 5 %, an excess
is *similar to others* below 10 ms, a slope is *greater* by at least a tenth, *best* and *worst*
have no margin.

The first claims were judged on seeds from 1 on. On 2026-11-23 claims were changed and added with
those results known; `WITHDRAWN` lists the replaced ones. All are judged on seeds from `FIRST_SEED`
on, which no earlier run had.
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
"""Date when the claims were written."""
#: First seed of the runs that judge the claims.
FIRST_SEED = 1001

MANY = (3, 4, 5)
LOSSES = ("low", "medium", "high")
FEWER = (3, 4)
"""Nodes of the clusters that the paper describes without a figure."""
_ALIKE = 0.05
_SIMILAR_EXCESS = Region(0.0, 10.0)
_GREATER = 0.1
#: Relative margin of the slopes that were read off the figures.
_SLOPE = 0.05
_DELAYS = "at every delay"


def _best(rf: int, loss: str, nodes: int) -> Least:
    """Returns the claim that one replication factor has the least latency."""
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
    """Returns the claim that two replicas have the greatest latency at high loss."""
    return replace(_best(2, "high", nodes), text=f"worst in {nodes} nodes", extreme="largest")


def _steepest(nodes: int) -> Least:
    """Returns the claim that two replicas' latency rises most with the delay at high loss."""
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
    """Returns the claim that one replica degrades more than three or more do."""
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
    """Returns the claim that one replica is not faster than the mean of more at high loss."""
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
    """Returns the claim on the cost of two replicas above the mean of more, at every delay."""
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
        text=f"At high loss RF2 has the greatest latency, five nodes, {_DELAYS}",
        published="RF2 results in the worst performance (5.1)",
    ),
    Every(
        id="rf2-similar",
        text="RF2 exceeds the mean of RF3 to RF5 by less than 10 ms at low and medium loss, by "
        f"more at high, {_DELAYS}",
        published="performed similarly to others under low and medium packet losses, in contrast "
        "to high (5.1); 2 to 6 ms in figure 3",
        claims=(
            _excess("low", _SIMILAR_EXCESS),
            _excess("medium", _SIMILAR_EXCESS),
            _excess("high", Region(low=_SIMILAR_EXCESS.high)),
        ),
    ),
    replace(
        _excess("high", Region(17.0, 90.0)),
        id="rf2-excess-figure-2",
        text=f"At high loss RF2 exceeds the mean of RF3 to RF5 by 17 to 90 ms {_DELAYS}",
        published="17 to 90 ms in figure 2",
    ),
    Monotone(
        id="rf2-excess-grows",
        text="At high loss RF2's excess grows from each delay to the next (or falls by 5 % at "
        "most)",
        metric="excess",
        published="the difference between RF2 and the others gradually increases (5.1)",
        over="delay",
        direction="rises",
        cell={"nodes": 5, "loss": "high"},
    ),
    replace(
        _steepest(5),
        id="rf2-steepest-high",
        text="At high loss RF2's slope is the greatest, by a tenth at least",
        published="more significant than any other slope (5.1)",
    ),
    Every(
        id="rf2-fewer-nodes",
        text=f"In three and four nodes too RF2 is worst at high loss, {_DELAYS}, and its slope the "
        "greatest",
        published="similar behaviour is observed in the 3 and 4-node clusters (5.1)",
        claims=tuple(made(nodes) for nodes in FEWER for made in (_worst, _steepest)),
    ),
)
"""Claims of section 5.1."""

BEST: tuple[Claim, ...] = (
    replace(
        _best(5, "high", 5),
        id="rf5-best-high",
        text=f"RF5 has the least latency at high loss, five nodes, {_DELAYS}",
        published="RF5 gives the best performance (5.2)",
    ),
    replace(
        _best(1, "low", 5),
        id="rf1-best-low",
        text=f"RF1 has the least latency at low loss, five nodes, {_DELAYS}",
        published="RF1 gives the best performance (5.3)",
    ),
    Every(
        id="rf1-best-low-fewer-nodes",
        text=f"RF1 has the least latency at low loss in three and four nodes too, {_DELAYS}",
        published="the 3-node and 4-node setups indicate that RF1 performs best (5.3)",
        claims=tuple(_best(1, "low", nodes) for nodes in FEWER),
    ),
    Every(
        id="rf1-degrades-and-matches",
        text="From low loss to high RF1's latency rises more than RF3's, RF4's and RF5's, and at "
        f"high loss it matches or surpasses their mean {_DELAYS}",
        published="degrades faster than other RFs, eventually matching or surpassing them (5.3)",
        claims=(_degrades(5), _matches(5)),
    ),
    Ratio(
        id="rf1-slope-high",
        text="At high loss RF1's slope is similar to the mean of RF3's, RF4's and RF5's",
        metric="slope",
        published="RF1's slope is similar to RF3, RF4, and RF5 (5.3)",
        a={"nodes": 5, "loss": "high", "rf": 1},
        b={"nodes": 5, "loss": "high", "rf": MANY},
        region=Region(1 / (1 + _ALIKE), 1 + _ALIKE),
    ),
    Every(
        id="rf1-fewer-nodes",
        text="In three and four nodes too RF1 degrades faster than RF3 and RF4, and at high loss "
        f"matches or surpasses their mean {_DELAYS}",
        published="similar trends are observed in the other clusters as well (5.3)",
        claims=tuple(made(nodes) for nodes in FEWER for made in (_degrades, _matches)),
    ),
)
"""Claims of sections 5.2 and 5.3."""

SLOPES: tuple[Claim, ...] = (
    MeanIn(
        id="rf2-slope-high",
        text="At high loss RF2's latency rises by 2.62 ms a millisecond of delay (within 5 %)",
        metric="slope",
        published="2.62 in figure 2",
        cell={"nodes": 5, "loss": "high", "rf": 2},
        region=Region.around(2.62, _SLOPE),
    ),
    MeanIn(
        id="other-slopes-high",
        text="At high loss the others' rise by 2.03 to 2.18 (within 5 %)",
        metric="slope",
        published="2.03 to 2.18 in figure 2",
        cell={"nodes": 5, "loss": "high", "rf": (1, *MANY)},
        region=Region(2.03 * (1 - _SLOPE), 2.18 * (1 + _SLOPE)),
        each="rf",
    ),
    MeanIn(
        id="slopes-low",
        text="At low loss the slopes of RF2 to RF5 are 1.97 to 2.00 (within 5 %)",
        metric="slope",
        published="2.00 against 1.97 to 2.00 in figure 3",
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
        text=f"RF3's means in 3, 4 and 5 nodes deviate by less than 1.5 ms {_DELAYS} and each loss",
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
        text=f"The same of RF3's means over the three losses, {_DELAYS}",
        metric="averaged_deviation",
        published="< 1.5 ms for any link latency (5.4)",
        region=Region(high=1.5),
        each="delay",
    ),
)
"""Claims of section 5.4, which does not state whether losses were averaged before the deviation."""

ALIKE: tuple[Claim, ...] = (
    PracticallyEqual(
        id="many-alike-median",
        reading="median",
        text=f"The medians over the three losses of RF3, RF4 and RF5 are alike, five nodes, "
        f"{_DELAYS}",
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
        text=f"RF3, RF4 and RF5 are alike at each loss, five nodes, {_DELAYS}",
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
        text=f"The mean of RF3 to RF5 is alike at low, medium and high loss, five nodes, {_DELAYS}",
        metric="many",
        published="the average of RF3, RF4, and RF5 in terms of packet losses (figure 4)",
        among="loss",
        margin=_ALIKE,
        cell={"nodes": 5, "loss": LOSSES},
        each="delay",
    ),
)
"""Claims of section 5.5, which mentions a median where figure 4 has a mean."""

#: Differences between phi and order statistics over TCP's timers. Each claim is phi's prediction.
MECHANISM: tuple[Claim, ...] = (
    Ratio(
        id="phi-all",
        text="phi: at ALL every replication factor has phi = 1, so RF5 is as slow as RF2",
        metric="latency",
        published="the higher phi, the more impact packet loss has (6)",
        a={"variant": "all", "rf": 5},
        b={"variant": "all", "rf": 2},
        region=Region(0.95, 1.05),
    ),
    Monotone(
        id="both-one",
        text="Both: at ONE latency falls with every further replica",
        metric="latency",
        over="rf",
        direction="falls",
        cell={"variant": "one"},
        at_least=0.3,
        tolerance=0.0,
    ),
    Ratio(
        id="phi-timer",
        text="phi: TCP's least timeout is not in it, so RF2's excess is the same at 20 ms",
        metric="excess",
        published="the coordinator sending the request for acknowledgment again (6)",
        a={"variant": "min_rto 20ms"},
        b={"variant": "as it was"},
        region=Region(0.9, 1.1),
    ),
    Ratio(
        id="both-probe",
        text="Both: tail loss probes and RACK make no difference to a lone message",
        metric="excess",
        published="",
        a={"variant": "no RACK, no TLP"},
        b={"variant": "as it was"},
        region=Region(0.85, 1.15),
    ),
    Ratio(
        id="phi-parallel",
        text="phi: it does not know of other requests, so 32 at a time leave RF2's excess as it is",
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
"""The delay in ms at which claims are judged on real nodes."""


def _at(claim: Claim, delay: int) -> Claim:
    """Returns the same claim at one delay instead of all."""
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
            raise TypeError(f"{claim.id} is not about one delay")


_REAL = ("rf2-worst-high", "rf2-similar", "rf2-excess-figure-2", "rf5-best-high", "rf1-best-low",
         "rf1-best-low-fewer-nodes", "rf3-scales-each", "rf3-scales-averaged", "many-alike-median",
         "many-alike-each", "many-alike-losses")  # fmt: skip
_REAL_HIGH = ("rf2-worst-high", "rf2-excess-figure-2", "rf5-best-high")

REAL: tuple[Claim, ...] = tuple(_at(c, REAL_DELAY) for c in GRID if c.id in _REAL)
"""Claims that are judged on real nodes: those about single delays."""
REAL_HIGH: tuple[Claim, ...] = tuple(c for c in REAL if c.id in _REAL_HIGH)
"""Those about five nodes and high loss only."""

_SCALES: dict[str, Verdict] = {"low": "holds", "medium": "holds", "high": "does not hold"}
_MANY: dict[str, Verdict] = {"low": "holds", "high": "does not hold"}

WITHDRAWN: tuple[Withdrawn, ...] = (
    Withdrawn(
        id="rf2-excess-low",
        text="At low loss RF2 exceeds the mean of RF3 to RF5 by less than 10 ms at every delay",
        verdict="holds",
        date=FROZEN,
        reason="The paper's sentence names medium loss and the contrast with high: rf2-similar",
    ),
    Withdrawn(
        id="rf2-excess-high",
        text="At high loss RF2 exceeds the mean of RF3 to RF5 by 17 to 80 ms at every delay",
        verdict="cannot be told",
        date=FROZEN,
        reason="Figure 2 has 90 ms at 100, so the region was a slip: rf2-excess-figure-2",
    ),
    Withdrawn(
        id="rf1-degrades",
        text="From low loss to high, RF1's latency rises more than RF3's, RF4's and RF5's",
        verdict="holds",
        date=FROZEN,
        reason="Half of the paper's sentence: rf1-degrades-and-matches",
    ),
    *(
        Withdrawn(
            id=f"rf3-scales-{loss}",
            text=f"At {loss} loss RF3's means in 3, 4 and 5 nodes deviate by less than 1.5 ms",
            verdict=verdict,
            date=FROZEN,
            reason="The paper says it of every loss in one sentence: rf3-scales-each",
        )
        for loss, verdict in _SCALES.items()
    ),
    *(
        Withdrawn(
            id=f"many-alike-{loss}",
            text=f"RF3, RF4 and RF5 are alike at {loss} loss, five nodes, at every delay",
            verdict=verdict,
            date=FROZEN,
            reason="The paper's sentence is about medians over the losses: many-alike-median",
        )
        for loss, verdict in _MANY.items()
    ),
)
"""Claims of the first study that are no longer judged."""
