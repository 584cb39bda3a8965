"""Paired differences with simultaneous intervals, against a smallest difference of interest."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from sojourn.stats._arrays import check_level
from sojourn.stats.interval import Interval, paired_difference
from sojourn.stats.sample_size import extrapolated, seeds_for_width
from sojourn.stats.sequential import looked as looked_at

Values = npt.NDArray[np.float64]
Where = Literal["above", "below", "within", "open"]


@dataclass(frozen=True, slots=True)
class Gap:
    """The difference of two paired samples, with the smallest difference of interest."""

    interval: Interval
    """Mean difference with its interval, which is simultaneous with the intervals of other pairs.

    With one seed, the limits are NaN.
    """
    smallest: float
    """Smallest difference of interest."""
    deviation: float
    """Standard deviation of the differences by seed; NaN with one seed."""

    @property
    def where(self) -> Where:
        """Returns where the whole interval is relative to the smallest difference of interest d.

        *Above* is above d, *below* is below -d, *within* is from -d to d, and *open* is none of
        these: the seeds do not decide.
        """
        i, d = self.interval, self.smallest
        if i.low > d:
            return "above"
        if i.high < -d:
            return "below"
        return "within" if -d <= i.low and i.high <= d else "open"

    @property
    def exact(self) -> bool:
        """Returns whether every seed gave the same difference."""
        return self.deviation == 0.0

    @property
    def seeds(self) -> int | None:
        """Returns the approximate number of seeds that would decide, if the estimates are right.

        With this number, the interval would no longer include the smallest difference. Returns
        `None` if the difference is decided, or if the number cannot be extrapolated from the seeds.
        """
        if self.where != "open":
            return None
        margin = abs(abs(self.interval.estimate) - self.smallest)
        if not margin > 0:
            return None
        return extrapolated(
            self.interval.n, lambda: seeds_for_width(self.deviation, margin, self.interval.level)
        )


def unended(ended: Values, counted: Values) -> int:
    """Returns the number of runs whose times are over 1 % longer by transfers that had not ended.

    `ended` has the times of the others, NaN without any, and `counted` those of all transfers.
    """
    return int((counted > 1.01 * np.nan_to_num(ended)).sum())


def gaps(
    pairs: Sequence[tuple[Values, Values]],
    smallest: Callable[[float], float],
    alpha: float = 0.05,
    *,
    looked: bool = False,
) -> list[Gap]:
    """Returns the differences a - b of all pairs, with simultaneous intervals (Bonferroni).

    a[i] and b[i] have the same seed; seeds for which one of them is missing are omitted. `smallest`
    returns the smallest difference of interest for the smaller of the two means, so that it does
    not depend on the order of a pair. `looked` states that a required precision determined the
    number of seeds (`sequential`).
    """
    check_level(1 - alpha)
    level = 1 - alpha / max(1, len(pairs))
    found = []
    for a, b in pairs:
        both = np.isfinite(a) & np.isfinite(b)
        x, y = a[both], b[both]
        if x.size == 0:
            none = Interval(math.nan, math.nan, math.nan, level, 0)
            found.append(Gap(none, math.nan, math.nan))
            continue
        least = smallest(min(abs(float(x.mean())), abs(float(y.mean()))))
        if x.size == 1:
            one = Interval(float(x[0] - y[0]), math.nan, math.nan, level, 1)
            found.append(Gap(one, least, math.nan))
            continue
        spread = float((x - y).std(ddof=1))
        interval = looked_at(x - y, level) if looked else paired_difference(x, y, level).interval
        found.append(Gap(interval, least, spread))
    return found
