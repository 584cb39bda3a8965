"""Sequential estimation of a mean: runs are added until the interval is sufficiently narrow.

The interval is examined at fixed numbers of runs, called looks. The runs end at the first look at
which the interval is sufficiently narrow and the number of runs suffices for the skewness of the
values. No other result decides, so repeated looks cannot produce a significant result.

The interval is Hall's (1992, "On the removal of skewness by transformation"): Student's t on a
monotone cubic transform of the studentised mean. `MISSED` allows for the repeated looks, `TRUSTED`
for the error of the estimated skewness. `MISSED`, `TRUSTED`, `FIRST` and `SKEWED` were calibrated
by simulation; `tests/stats/precision.py` measures the coverage of the intervals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sojourn.stats._arrays import StatisticsError, check_level, sample
from sojourn.stats.interval import Interval, mean_interval, positive_mean, t_critical

FIRST = 40
"""Number of runs at the first look.

An event that occurs in 10 % of the runs occurs in none of 40 runs with a probability of 1.5 %.
"""
MISSED = 0.85
"""Error probability of an interval as a share of the nominal one: 4.25 % for a level of 95 %."""
TRUSTED = 0.5
"""Share of the sample's skewness for which the interval is corrected."""
SKEWED = 10.0
"""Required number of runs divided by the squared skewness."""


@dataclass(frozen=True, slots=True)
class Look:
    """The estimate of a mean at a look."""

    interval: Interval
    """Mean with its interval at the nominal level, which allows for all looks."""
    least: int
    """Number of runs that the skewness of the values requires."""

    def enough(self, half_width: float) -> bool:
        """Returns whether the interval has at most this half width and the runs are sufficient."""
        return self.interval.n >= self.least and self.interval.half_width <= half_width


def looks(most: int, first: int = FIRST) -> tuple[int, ...]:
    """Returns the numbers of runs at the looks; each is 1.5 times the previous, up to `most`.

    >>> stats.looks(60)
    (40, 60)
    """
    if most < first:
        raise StatisticsError(f"{most} runs are too few: the first look is at {first} runs")
    found = [first]
    while found[-1] < most:
        found.append(min(found[-1] * 3 // 2, most))
    return tuple(found)


def look(values: npt.ArrayLike, level: float = 0.95) -> Look:
    """Returns the estimate of the mean of independent values at a look."""
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
    """Returns a mean with its interval after a look; Student's for fewer than `FIRST` runs."""
    x = sample(values)
    return look(x, level).interval if x.size >= FIRST else mean_interval(x, level)


def mean_of_runs(values: npt.ArrayLike, level: float = 0.95, *, looked: bool = False) -> Interval:
    """Returns the mean of a metric over runs, with its interval; values that are NaN are omitted.

    `looked` states that the runs ended at a required precision: `look`. Otherwise the interval is
    that of `positive_mean`, or Student's if a value is negative or all are zero. Without values,
    mean and limits are NaN.

    >>> i = stats.mean_of_runs([4.1, float('nan'), 4.4])
    >>> i.n, round(i.estimate, 2)
    (2, 4.25)
    """
    x = np.asarray(values, dtype=np.float64)
    x = x[np.isfinite(x)]
    if not x.size:
        return Interval(math.nan, math.nan, math.nan, level, 0)
    if looked and x.size >= FIRST:
        return look(x, level).interval
    positive = float(x.min()) >= 0.0 < float(x.max())
    return positive_mean(x, level) if positive else mean_interval(x, level)


def _skewness(centred: npt.NDArray[np.float64]) -> float:
    """Returns the adjusted Fisher-Pearson skewness of values whose mean was subtracted."""
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
