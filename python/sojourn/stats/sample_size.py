"""The number of seeds that a required power or precision needs."""

from __future__ import annotations

import math
from collections.abc import Callable

from sojourn.stats._arrays import StatisticsError, check_level
from sojourn.stats.interval import SKEWED, USEFUL, Interval, log_half_width, t_critical

LEAST = 5
"""Minimum number of seeds from which a required number of seeds is extrapolated.

With five values, the standard deviation is known within a factor of about three.
"""
FARTHEST = 10
"""Maximum of an extrapolated number of seeds, as a multiple of the existing seeds."""
MOST_SEEDS = 1_000_000
"""Maximum number of seeds in a search; if more are required, functions return `None`."""


def _check(deviation: float) -> None:
    if not deviation >= 0 or not math.isfinite(deviation):
        raise StatisticsError(f"a standard deviation must be finite and 0 or more, not {deviation}")


def power(difference: float, deviation: float, n: int, alpha: float = 0.05) -> float:
    """Returns the power of a paired t test with n seeds: the probability to detect `difference`.

    `deviation` is the standard deviation of the paired differences. The test is two-sided; a
    significant result with the wrong sign does not count as detected.

    Raises `StatisticsError` for a deviation or a probability that is out of range.

    >>> round(stats.power(difference=2.0, deviation=3.0, n=20), 2)
    0.81
    """
    _check(deviation)
    check_level(1 - alpha)
    if n < 2:
        return 0.0
    if deviation == 0.0:
        return 1.0 if difference != 0.0 else 0.0
    from sojourn.stats.noncentral import nct_cdf

    delta = abs(difference) / deviation * math.sqrt(n)
    return 1.0 - nct_cdf(t_critical(1 - alpha, n - 1), n - 1, delta)


def seeds_for_power(
    difference: float, deviation: float, alpha: float = 0.05, wanted: float = 0.8
) -> int | None:
    """Returns the smallest number of seeds that detects `difference` with the power `wanted`.

    `deviation` is the standard deviation of the paired differences. Returns `None` if more than
    `MOST_SEEDS` are required.

    Raises `StatisticsError` for a deviation or a probability that is out of range.

    >>> stats.seeds_for_power(difference=2.0, deviation=3.0)
    20
    """
    check_level(wanted)
    return _least(lambda n: power(difference, deviation, n, alpha) >= wanted)


def seeds_for_width(deviation: float, half_width: float, level: float = 0.95) -> int | None:
    """Returns the smallest number of seeds for which the mean has at most this half width.

    `deviation` is the standard deviation of the values. Returns `None` if more than `MOST_SEEDS`
    are required.

    Raises `StatisticsError` for a width or a level that is out of range.

    >>> stats.seeds_for_width(deviation=3.0, half_width=1.0)
    38
    """
    _check(deviation)
    if not half_width > 0:
        raise StatisticsError(f"half_width must be above 0, not {half_width}")
    return _least(lambda n: t_critical(level, n - 1) * deviation / math.sqrt(n) <= half_width)


def seeds_for_use(wide: Interval) -> int | None:
    """Returns the approximate number of seeds with which a `wide` interval is wide no more.

    The interval is that of `positive_mean`. Returns `None` if more than `MOST_SEEDS` are required.
    """
    n, level = wide.n, wide.level
    # Solves `log_half_width` for the square of the variation.
    found = math.log(wide.high / wide.low) / 2.0 * math.sqrt(n) / t_critical(level, n - 1)
    weight = 2.0 * SKEWED / n**0.75
    variation = math.sqrt((math.sqrt(1.0 + 2.0 * weight * found**2) - 1.0) / weight)
    enough = math.log(USEFUL) / 2.0
    seeds = _least(lambda m: log_half_width(variation, m, level) <= enough)
    return None if seeds is None else max(seeds, n + 1, LEAST)


def extrapolated(seeds: int, needed: Callable[[], int | None]) -> int | None:
    """Returns the required number of seeds from `needed`, if `seeds` existing seeds are enough.

    `None` with fewer than `LEAST` seeds, or if more than `FARTHEST` times as many are required.
    """
    if seeds < LEAST:
        return None
    found = needed()
    return found if found is not None and found <= FARTHEST * seeds else None


def _least(enough: Callable[[int], bool]) -> int | None:
    """Returns the smallest n >= 2 for which `enough(n)` is true; `None` above `MOST_SEEDS`.

    `enough` must be monotone.
    """
    high = 2
    while not enough(high):
        high *= 2
        if high > MOST_SEEDS:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return max(high, 2)
