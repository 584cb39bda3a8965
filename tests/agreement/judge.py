"""How agreement is judged: an interval of the ratio, and margins that were fixed before any run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from typing import Literal

from scipy import stats

from tests.agreement.cells import FRAME, Cell
from tests.agreement.trees import TreeCell

Verdict = Literal["equal", "different", "undecided"]
CONFIDENCE = 0.9
FEWEST = 200
"""Drops or marks below which the margin is a share of the packets."""


@dataclass(frozen=True)
class Margin:
    """Margin of equality: the larger one of a share of Linux's mean and an absolute difference."""

    share: float
    absolute: float = 0.0


def margins(cell: Cell | TreeCell) -> dict[str, Margin]:
    """The margins of a cell's quantities; times are seconds."""
    time = max(FRAME * 8 / cell.rate, 0.01 * cell.rtt, 1e-4)
    found = {
        "goodput": Margin(0.03),
        "sojourn_mean": Margin(0.15, time),
        "sojourn_p95": Margin(0.15, time),
        "drops": Margin(0.2),
    }
    if cell.ecn:
        found["marks"] = Margin(0.2)
    if cell.transfer:
        found["fct_mean"] = Margin(0.1)
    found |= {f"{group}.goodput": Margin(0.03) for group in cell.groups}
    found |= {f"{group}.queueing": Margin(0.15, time) for group in cell.timed}
    return found


@dataclass(frozen=True)
class Judged:
    """A quantity of a cell."""

    verdict: Verdict
    ratio: float
    low: float
    high: float
    """The interval of the ratio."""
    inside: bool
    """Whether the estimate itself is inside the margin."""


def judge(ours: Sequence[float], theirs: Sequence[float], margin: Margin) -> Judged:
    """Compare two samples of independent runs (Welch's interval of the difference of means)."""
    mean, reference = fmean(ours), fmean(theirs)
    difference = mean - reference
    a, b = variance(ours) / len(ours), variance(theirs) / len(theirs)
    if a + b > 0:
        freedom = (a + b) ** 2 / (a**2 / (len(ours) - 1) + b**2 / (len(theirs) - 1))
        half = float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom)) * math.sqrt(a + b)
    else:
        half = 0.0
    room = max(margin.share * abs(reference), margin.absolute)
    low, high = difference - half, difference + half
    verdict: Verdict = "undecided"
    if -room <= low and high <= room:
        verdict = "equal"
    elif high < -room or low > room:
        verdict = "different"

    def share(of: float) -> float:
        return 1 + of / reference if reference else math.nan

    return Judged(verdict, share(difference), share(low), share(high), abs(difference) <= room)


def counted(margin: Margin, theirs: Sequence[float], packets: float) -> Margin:
    """The margin of a count: a thousandth of the packets where few are counted."""
    few = fmean(theirs) < FEWEST
    return Margin(margin.share, 0.001 * packets) if few else margin
