"""A quantity of a claim, estimated from runs that are paired by seed, and its predicted region.

All decisions are one-sample t tests. For a bound b, each seed has a number z_i, and the mean of
these numbers is positive if and only if the quantity is above b. The interval, the decision and the
required number of seeds follow from these numbers, so they cannot contradict each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Self

import numpy as np

from sojourn.stats._arrays import Floats, StatisticsError
from sojourn.stats.interval import (
    Interval,
    mean_interval,
    one_sample,
    paired_ratio,
    t_critical,
)
from sojourn.stats.sample_size import seeds_for_power


@dataclass(frozen=True, slots=True)
class Region:
    """A closed range of values; a missing limit is infinite."""

    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        if math.isnan(self.low) or math.isnan(self.high) or self.low > self.high:
            raise StatisticsError(
                f"the lower limit of a region must not exceed the upper limit: {self.low} to "
                f"{self.high}"
            )

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def bounds(self) -> tuple[float, ...]:
        """Returns the finite limits of the region."""
        return tuple(b for b in (self.low, self.high) if math.isfinite(b))

    def __str__(self) -> str:
        if math.isinf(self.low) and math.isinf(self.high):
            return "anything"
        if math.isinf(self.low):
            return f"at most {self.high:.6g}"
        if math.isinf(self.high):
            return f"at least {self.low:.6g}"
        return f"{self.low:.6g} to {self.high:.6g}"

    @classmethod
    def around(cls, value: float, margin: float) -> Region:
        """Returns the region around a value with a relative margin."""
        reach = abs(value) * margin
        return cls(value - reach, value + reach)


LEAST_HALVED = 4
"""Minimum number of seeds for which both halves of the seeds have an interval."""


@dataclass(frozen=True, slots=True)
class Side:
    """The side of a bound on which a quantity is."""

    sign: int
    """1 above the bound, -1 below it, 0 on it."""
    p: float
    """P value of the test that the quantity equals the bound."""


class Component:
    """A quantity that is the mean of its values by seed, with its predicted region."""

    def __init__(
        self, label: str, region: Region, values: Sequence[float] | Floats, dropped: int = 0
    ) -> None:
        self.label = label
        self.region = region
        self.values = np.asarray(values, dtype=np.float64)
        self.dropped = dropped
        """Number of seeds that were omitted because a value is missing."""
        self.part = ""
        """Text of the part of a conjunction to which the quantity belongs; empty without one."""

    @property
    def n(self) -> int:
        """Returns the number of seeds with a value."""
        return int(self.values.size)

    def problem(self) -> str | None:
        """Returns why the quantity cannot be estimated; `None` if it can."""
        if self.n < 2:
            return f"{self.label}: {self.n} seeds have a value; two are required"
        if not np.isfinite(self.values).all():
            return f"{self.label}: the value is not defined for some seeds"
        return None

    def z(self, bound: float) -> Floats:
        """Returns numbers by seed, whose mean is positive if the quantity is above `bound`."""
        return self.values - bound

    def interval(self, level: float) -> Interval:
        """Returns the estimate with its confidence interval."""
        return mean_interval(self.values, level)

    def point(self) -> float:
        """Returns the estimate without an interval; NaN without values."""
        return float(self.values.mean()) if self.n else math.nan

    def taken(self, seeds: slice | Floats) -> Self:
        """Returns the quantity from the seeds with these indices."""
        other = copy(self)
        other.values = self.values[seeds]
        return other

    def shrinks(self) -> bool | None:
        """Returns whether the interval is narrower than the average interval of the data's halves.

        The reduction must be at least half of the reduction for independent values with equal
        variance. If single seeds are far from the other seeds, the reduction is smaller, and more
        seeds would contain more such values. Returns `None` for fewer than `LEAST_HALVED` seeds.
        """
        if self.n < LEAST_HALVED:
            return None
        n, half = self.n, self.n / 2
        due = t_critical(0.95, n - 1) / t_critical(0.95, half - 1) / math.sqrt(2)
        halves = [self.taken(slice(first, None, 2)).interval(0.95).half_width for first in (0, 1)]
        whole = self.interval(0.95).half_width
        return math.isfinite(whole) and whole <= (1 + due) / 2 * sum(halves) / 2

    def effect(self) -> Floats | None:
        """Returns the paired differences whose standardised mean is the effect size.

        `None` if the quantity does not compare two cells.
        """
        return None

    def floor(self) -> float:
        """Returns the lowest possible p value of a decision; above 0 only for ratios."""
        return 0.0

    def side(self, bound: float) -> Side:
        """Returns the side of the bound on which the quantity is, with the p value."""
        test = one_sample(self.z(bound))
        mean = test.interval.estimate
        return Side(int(np.sign(mean)), max(test.p, self.floor()))

    def p_inside(self) -> float:
        """Returns the smallest alpha at which the interval is wholly inside the region."""
        worst = self.floor() if self.region.bounds() else 0.0
        for bound in self.region.bounds():
            side = self.side(bound)
            wanted = 1 if bound == self.region.low else -1
            if self.region.low == self.region.high or side.sign == 0:
                # A quantity on the bound is inside the region only if it is equal for all seeds.
                on = float(np.ptp(self.z(bound))) == 0.0 and side.sign == 0
                worst = max(worst, 0.0 if on else 1.0)
            else:
                worst = max(worst, side.p if side.sign == wanted else 1.0)
        return worst

    def p_outside(self) -> float:
        """Returns the smallest alpha at which the interval is wholly outside the region."""
        best = 1.0
        for bound, beyond in ((self.region.low, -1), (self.region.high, 1)):
            if math.isfinite(bound):
                side = self.side(bound)
                if side.sign == beyond:
                    best = min(best, side.p)
        return best

    def seeds_needed(self, alpha: float) -> int | None:
        """Returns the number of seeds that would decide with probability 0.8.

        The number assumes that the estimate and the standard deviation are right. Returns `None` if
        more than a million seeds are required.
        """
        needed: list[int | None] = []
        estimate = self.interval(0.95).estimate
        for bound in self.region.bounds():
            z = self.z(bound)
            needed.append(seeds_for_power(float(z.mean()), float(z.std(ddof=1)), alpha))
        if not needed:
            return self.n
        if estimate in self.region:
            return None if None in needed else max(n for n in needed if n is not None)
        # Outside the region, the nearer bound decides.
        known = [n for n in needed if n is not None]
        beyond = needed[0] if estimate < self.region.low or len(needed) == 1 else needed[-1]
        return beyond if beyond is not None else (max(known) if len(known) == len(needed) else None)


class RatioComponent(Component):
    """The ratio of two means, with an interval by Fieller's theorem."""

    def __init__(
        self,
        label: str,
        region: Region,
        over: Sequence[float] | Floats,
        under: Sequence[float] | Floats,
        dropped: int = 0,
    ) -> None:
        super().__init__(label, region, over, dropped)
        self.under = np.asarray(under, dtype=np.float64)

    def problem(self) -> str | None:
        """Returns why the ratio cannot be estimated; the denominator must be above zero."""
        found = super().problem()
        if found is None and float(self.under.mean()) <= 0.0:
            return f"{self.label}: the mean of the denominator is not above zero"
        return found

    def point(self) -> float:
        """Returns the ratio of the means; NaN for a zero denominator."""
        under = float(self.under.mean()) if self.n else 0.0
        return super().point() / under if under else math.nan

    def taken(self, seeds: slice | Floats) -> Self:
        """Returns the ratio from the seeds with these indices."""
        other = super().taken(seeds)
        other.under = self.under[seeds]
        return other

    def z(self, bound: float) -> Floats:
        """Returns the numerator minus `bound` times the denominator."""
        return self.values - bound * self.under

    def interval(self, level: float) -> Interval:
        """Returns the ratio with Fieller's interval; it is cut at 0 for non-negative values."""
        i = paired_ratio(self.values, self.under, level)
        if i.low < 0 and self.values.min() >= 0 and self.under.min() >= 0:
            return Interval(i.estimate, 0.0, i.high, i.level, i.n)
        return i

    def effect(self) -> Floats | None:
        """Returns numerator minus denominator by seed."""
        return self.values - self.under

    def floor(self) -> float:
        """Returns the p value of the denominator, which must differ significantly from zero."""
        return one_sample(self.under).p

    def seeds_needed(self, alpha: float) -> int | None:
        """Returns the number of seeds that would decide and show a nonzero denominator."""
        first = super().seeds_needed(alpha)
        spread = float(self.under.std(ddof=1))
        second = seeds_for_power(float(self.under.mean()), spread, alpha)
        return None if first is None or second is None else max(first, second)


class DifferenceComponent(Component):
    """The difference of two means."""

    def effect(self) -> Floats | None:
        """Returns the differences by seed."""
        return self.values


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def raised(i: Interval) -> Interval:
    """Converts an interval of a logarithm to the original scale; limits may become infinite."""
    return Interval(_exp(i.estimate), _exp(i.low), _exp(i.high), i.level, i.n)


class LogComponent(Component):
    """A positive quantity, given by values of its logarithm (or jackknife pseudo-values) by seed.

    Estimates and intervals are on the original scale.
    """

    def point(self) -> float:
        """Returns the estimate on the original scale."""
        return _exp(super().point())

    def z(self, bound: float) -> Floats:
        """Returns the logarithms minus that of the bound; infinite for a bound of 0 or less."""
        return self.values - (math.log(bound) if bound > 0 else -math.inf)

    def side(self, bound: float) -> Side:
        """Returns the side of the bound; a positive quantity is above a bound of 0 or less."""
        return Side(1, 0.0) if bound <= 0 else super().side(bound)

    def interval(self, level: float) -> Interval:
        """Returns the estimate with its interval on the original scale."""
        return raised(mean_interval(self.values, level))

    def seeds_needed(self, alpha: float) -> int | None:
        """Returns the number of seeds that would decide; a lower limit of 0 is ignored."""
        if self.region.low > 0:
            return super().seeds_needed(alpha)
        plain = LogComponent(self.label, Region(-math.inf, self.region.high), self.values)
        return Component.seeds_needed(plain, alpha)
