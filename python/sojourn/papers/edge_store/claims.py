"""The paper's findings as claims, on tables derived from means of a write in milliseconds.

Its findings are about these quantities: *latency*, the mean of a cell; *excess*, what two replicas
cost above the mean of three to five; *slope*, latency over the delay of a link, by least squares;
*degradation*, latency at high loss less that at low; *deviation*, the standard deviation of the
means of clusters of three, four and five nodes. *Alike* is within 5 %, *best* has no margin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from sojourn.stats import Claim, Least, MeanIn, Monotone, PracticallyEqual, Ratio, Region
from sojourn.stats.estimate import RatioComponent

MANY = (3, 4, 5)
#: Relative room around the slopes that were read off the figures.
_SLOPE = 0.05

LATENCY: tuple[Claim, ...] = (
    *(
        Least(
            id=f"{name}-best-{loss}",
            text=f"RF{rf} has the least latency at {loss} loss, five nodes, at every delay",
            metric="latency",
            published=published,
            among="rf",
            who=rf,
            cell={"nodes": 5, "loss": loss},
            each="delay",
        )
        for name, rf, loss, published in (
            ("rf5", 5, "high", "RF5 gives the best performance (5.2)"),
            ("rf1", 1, "low", "RF1 gives the best performance (5.3)"),
        )
    ),
    *(
        PracticallyEqual(
            id=f"many-alike-{loss}",
            text=f"RF3, RF4 and RF5 are alike at {loss} loss, five nodes, at every delay",
            metric="latency",
            published="show similar performance (5.5)",
            among="rf",
            margin=0.05,
            cell={"nodes": 5, "loss": loss, "rf": MANY},
            each="delay",
        )
        for loss in ("low", "high")
    ),
)

EXCESS: tuple[Claim, ...] = (
    MeanIn(
        id="rf2-excess-low",
        text="At low loss RF2 exceeds the mean of RF3 to RF5 by less than 10 ms at every delay",
        metric="excess",
        published="performed similarly to others under low loss (5.1); 2 to 6 ms in figure 3",
        cell={"nodes": 5, "loss": "low"},
        region=Region(0.0, 10.0),
        each="delay",
    ),
    MeanIn(
        id="rf2-excess-high",
        text="At high loss RF2 exceeds the mean of RF3 to RF5 by 17 to 80 ms at every delay",
        metric="excess",
        published="the worst performance (5.1); 17 to 90 ms in figure 2",
        cell={"nodes": 5, "loss": "high"},
        region=Region(17.0, 80.0),
        each="delay",
    ),
)

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
    Least(
        id="rf2-steepest-high",
        text="At high loss RF2's slope is the greatest, by a tenth at least",
        metric="slope",
        published="more significant than any other slope (5.1)",
        among="rf",
        who=2,
        extreme="largest",
        margin=0.1,
        cell={"nodes": 5, "loss": "high"},
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

DEGRADATION: tuple[Claim, ...] = (
    Least(
        id="rf1-degrades",
        text="From low loss to high, RF1's latency rises more than RF3's, RF4's and RF5's",
        metric="degradation",
        published="degrades faster than other RFs (5.3)",
        among="rf",
        who=1,
        extreme="largest",
        cell={"nodes": 5, "rf": (1, *MANY)},
    ),
)

DEVIATION: tuple[Claim, ...] = tuple(
    MeanIn(
        id=f"rf3-scales-{loss}",
        text=f"At {loss} loss RF3's means in 3, 4 and 5 nodes deviate by less than 1.5 ms",
        metric="deviation",
        published="< 1.5 ms for any link latency (5.4)",
        cell={"loss": loss},
        region=Region(high=1.5),
        each="delay",
    )
    for loss in ("low", "medium", "high")
)

#: What phi and order statistics over TCP's timers say differently. Each claim is what phi predicts.
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


GRID: tuple[Claim, ...] = (*LATENCY, *EXCESS, *SLOPES, *DEGRADATION, *DEVIATION)
"""Claims about the paper's grid."""

REAL: tuple[Claim, ...] = (
    Least(
        id="rf2-worst-high",
        text="RF2 has the greatest latency at high loss, five nodes",
        metric="latency",
        published="RF2 gives the worst performance (5.1)",
        among="rf",
        who=2,
        extreme="largest",
        cell={"nodes": 5, "loss": "high", "delay": 20},
    ),
    Least(
        id="rf5-best-high",
        text="RF5 has the least latency at high loss, five nodes",
        metric="latency",
        published="RF5 gives the best performance (5.2)",
        among="rf",
        who=5,
        cell={"nodes": 5, "loss": "high", "delay": 20},
    ),
    next(claim for claim in EXCESS if claim.id == "rf2-excess-high"),
)
"""Claims about the few cells that are run on real nodes."""


@dataclass(frozen=True)
class OnPaper:
    """What a claim comes to on the paper's own points, which have no repetitions."""

    holds: bool | None
    """`None` where no points were published."""
    text: str


def on_paper(claim: Claim, tables: Mapping[str, pd.DataFrame]) -> OnPaper:
    """The claim on the paper's own points: whether each of its quantities lies in its region."""
    frame = tables.get(claim.metric)
    if frame is None or claim in MECHANISM:
        return OnPaper(None, "no points published")
    outside, most = [], []
    for component in claim.components(frame):
        value = float(component.values.mean())
        if isinstance(component, RatioComponent):
            value /= float(component.under.mean())
        most.append(value)
        if value not in component.region:
            outside.append(f"{component.label}: {value:.3g}")
    span = f"{min(most):.3g} to {max(most):.3g}" if len(most) > 1 else f"{most[0]:.3g}"
    if not outside:
        return OnPaper(True, f"holds ({span})")
    some = "; ".join(outside[:3]) + (f" and {len(outside) - 3} more" if len(outside) > 3 else "")
    return OnPaper(False, f"does not hold ({span}; outside: {some})")
