"""Number of seeds that a question needs."""

from __future__ import annotations

import math
from collections.abc import Callable

from sojourn.stats._arrays import StatisticsError, check_level
from sojourn.stats.interval import t_critical

LEAST = 5
"""Number of seeds from which a required number may be extrapolated.

The standard deviation of five values is known to a factor of about three; that of two is unknown.
"""
FARTHEST = 10
"""Largest reported number of seeds, as a multiple of the existing seeds."""
MOST_SEEDS = 1_000_000
"""Number of seeds beyond which the answer is "no reasonable number"."""


def _check(deviation: float) -> None:
    if not deviation >= 0 or not math.isfinite(deviation):
        raise StatisticsError(f"a standard deviation cannot be {deviation}")


def power(difference: float, deviation: float, n: int, alpha: float = 0.05) -> float:
    """Returns the probability that a paired t test with n seeds detects the difference's sign.

    `deviation` is that of the paired differences. The test is two-sided; a significant result of
    the wrong sign does not count as success.
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
    """Returns the least number of seeds that detects `difference` with this power, or `None`."""
    check_level(wanted)
    return _least(lambda n: power(difference, deviation, n, alpha) >= wanted)


def seeds_for_width(deviation: float, half_width: float, level: float = 0.95) -> int | None:
    """Returns the least number of seeds whose mean has an interval of at most +- `half_width`."""
    _check(deviation)
    if not half_width > 0:
        raise StatisticsError("half_width must be positive")
    return _least(lambda n: t_critical(level, n - 1) * deviation / math.sqrt(n) <= half_width)


def extrapolated(seeds: int, needed: Callable[[], int | None]) -> int | None:
    """Returns a number of seeds needed, if the existing seeds permit an extrapolation."""
    if seeds < LEAST:
        return None
    found = needed()
    return found if found is not None and found <= FARTHEST * seeds else None


def _least(enough: Callable[[int], bool]) -> int | None:
    """Returns the least n >= 2 with `enough(n)`, which must be monotone, by bisection."""
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
