"""Whether two engines agree on the values of a comparison.

The engines *agree* on a value if the 95 % interval of the ratio of their means is inside the
margin, and *differ* if the interval that is simultaneous over all values (Bonferroni) is outside.
Otherwise the value is *inconclusive*. Runs of two engines are not paired: intervals are Welch's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from sojourn.metrics import Interest, find, unit
from sojourn.stats import Interval, welch_difference
from sojourn.study import quantities

Values = npt.NDArray[np.float64]
Verdict = Literal["agree", "differ", "inconclusive"]

SHARES = {"bit/s": 0.03}
"""Margin of a metric as a share of the second engine's mean, by unit."""
SHARE = 0.15
"""Margin of metrics with other units, as a share of the second engine's mean."""
MARGINS = f"{100 * SHARES['bit/s']:g} % of rates, {100 * SHARE:g} % of other values"
"""The margins in words."""
NAMED = 4
"""Largest number of values that a sentence names."""


@dataclass(frozen=True)
class Agreement:
    """The values of two engines for one choice and metric."""

    choice: str
    """The queue, or the levels of the varied factors in words."""
    metric: str
    ratio: Interval
    """Mean of the first engine divided by that of the second, with its 95 % interval."""
    margin: float
    """Largest allowed difference of the ratio from 1."""
    verdict: Verdict

    def __str__(self) -> str:
        return f"{self.metric} of {self.choice} (ratio {quantities.interval(self.ratio, '1')})"


def margin(metric: str, mean: float) -> float:
    """Returns the largest difference from `mean` with which values of a metric agree.

    A difference that is smaller than the metric's smallest amount of interest does not count. For
    a metric on a fixed scale, such as the MOS, this amount is the margin.
    """
    entry = find(metric)
    interest = Interest(SHARE, 0.0, "") if entry is None else entry.interest
    share = SHARES.get(unit(metric), SHARE) if interest.share else 0.0
    return max(share * abs(mean), interest.absolute)


def judged(
    found: Sequence[tuple[str, str, Values, Values]], alpha: float = 0.05
) -> list[Agreement]:
    """Returns whether two engines agree, for choices and metrics with the values of each engine."""
    pairs = [(c, m, x[np.isfinite(x)], y[np.isfinite(y)]) for c, m, x, y in found]
    pairs = [pair for pair in pairs if pair[2].size and pair[3].size]
    return [_judged(*pair, alpha, len(pairs)) for pair in pairs]


def _judged(choice: str, metric: str, x: Values, y: Values, alpha: float, count: int) -> Agreement:
    mean, reference = float(x.mean()), float(y.mean())
    room = margin(metric, reference)
    low, high = -math.inf, math.inf
    verdict: Verdict = "inconclusive"
    if min(x.size, y.size) > 1:
        own = welch_difference(x, y, 1 - alpha).interval
        all_together = welch_difference(x, y, 1 - alpha / count).interval
        low, high = own.low, own.high
        if -room <= low and high <= room:
            verdict = "agree"
        elif all_together.low > room or all_together.high < -room:
            verdict = "differ"

    def ratio(difference: float) -> float:
        if reference:
            return 1 + difference / reference
        return 1.0 if difference == 0 else math.copysign(math.inf, difference)

    least, most = sorted((ratio(low), ratio(high)))
    interval = Interval(ratio(mean - reference), least, most, 1 - alpha, min(x.size, y.size))
    return Agreement(choice, metric, interval, abs(ratio(room) - 1), verdict)


def sentence(first: str, second: str, found: Sequence[Agreement]) -> str:
    """Returns whether two engines agree in every value, and the values in which they do not."""
    if not found:
        return f"{first} and {second} measured no value in common."
    differ, undecided = (
        [one for one in found if one.verdict == verdict] for verdict in ("differ", "inconclusive")
    )
    total = f"{len(found)} values shown"
    if differ:
        text = f"{first} and {second} differ in {len(differ)} of {total}: {_listed(differ)}."
        text += f" {len(undecided)} are inconclusive." if undecided else ""
    elif undecided:
        text = f"{first} and {second}: inconclusive in {len(undecided)} of {total}: "
        text += f"{_listed(undecided)}. More seeds may decide."
    else:
        text = f"{first} and {second} agree in all {total}."
    return f"{text} Margins: {MARGINS}."


def _listed(found: Sequence[Agreement]) -> str:
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return ", ".join(map(str, found[:NAMED])) + more
