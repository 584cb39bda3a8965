"""Sequential estimation of a mean: runs until its interval is sufficiently narrow.

Looks are taken at fixed numbers of runs. A look is enough if the interval is sufficiently narrow
and the runs are enough for their skewness. Nothing else decides, so that waiting cannot produce a
verdict.

The interval is Hall's (1992, "On the removal of skewness by transformation"): Student's t on a
monotone cubic transform of the studentised mean. Two numbers allow for the looks and for the noise
of an estimated skewness: `MISSED`, the share of 5 % that remains for the interval itself, and
`TRUSTED`, the corrected share of the skewness. They, `FIRST` and `SKEWED` were calibrated by
simulation; `tests/stats/precision.py` measures their coverage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sojourn.stats._arrays import StatisticsError, check_level, sample
from sojourn.stats.interval import Interval, mean_interval, t_critical

FIRST = 40
"""Runs at the first look. An event with probability 10 % is missed by all 40 runs with probability
1.5 %.
"""
MISSED = 0.85
"""Error of the interval as a share of the nominal error: 4.25 % for 95 %."""
TRUSTED = 0.5
"""Share of the sample's skewness that the interval corrects."""
SKEWED = 10.0
"""Runs needed per unit of the squared skewness."""


@dataclass(frozen=True, slots=True)
class Look:
    """State of a mean after a number of runs."""

    interval: Interval
    """Interval at the nominal level with allowance for all looks."""
    least: int
    """Number of runs that the skewness of the values requires."""

    def enough(self, half_width: float) -> bool:
        """Returns whether the mean is known within the half width."""
        return self.interval.n >= self.least and self.interval.half_width <= half_width


def looks(most: int) -> tuple[int, ...]:
    """Returns the numbers of runs at which to look: each half as many again, `most` last."""
    if most < FIRST:
        raise StatisticsError(f"{most} runs are too few: the first look is at {FIRST} runs")
    found = [FIRST]
    while found[-1] < most:
        found.append(min(found[-1] * 3 // 2, most))
    return tuple(found)


def look(values: npt.ArrayLike, level: float = 0.95) -> Look:
    """Evaluates independent values at a look."""
    check_level(level)
    x = sample(values, 3)
    n, mean = int(x.size), float(x.mean())
    if float(np.ptp(x)) == 0.0:
        return Look(Interval(float(x[0]), float(x[0]), float(x[0]), level, n), FIRST)
    error, skewness = float(x.std(ddof=1)) / math.sqrt(n), _skewness(x - mean)
    t = t_critical(1.0 - (1.0 - level) * MISSED, n - 1)
    low, high = (mean - error * _transformed_back(y, TRUSTED * skewness, n) for y in (t, -t))
    least = max(FIRST, math.ceil(SKEWED * skewness**2))
    return Look(Interval(mean, low, high, level, n), least)


def looked(values: npt.ArrayLike, level: float = 0.95) -> Interval:
    """Returns the interval of a mean after a look; Student's if there are too few runs."""
    x = sample(values)
    return look(x, level).interval if x.size >= FIRST else mean_interval(x, level)


def _skewness(centred: npt.NDArray[np.float64]) -> float:
    """Returns the adjusted Fisher-Pearson coefficient of values about their mean."""
    n = centred.size
    second, third = float((centred**2).mean()), float((centred**3).mean())
    return third / math.sqrt(second) ** 3 * math.sqrt(n * (n - 1)) / (n - 2)


def _transformed_back(y: float, skewness: float, n: int) -> float:
    """Returns the t for which t + a t^2 + a^2 t^3 / 3 + skewness / (6 sqrt n) is y.

    a is skewness / (3 sqrt n).
    """
    a = skewness / (3.0 * math.sqrt(n))
    moved = y - a / 2.0
    if abs(a) < 1e-9:
        return moved
    return (math.cbrt(1.0 + 3.0 * a * moved) - 1.0) / a
