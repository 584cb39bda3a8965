"""One number a claim speaks about, estimated from paired runs, and the region it should lie in.

Everything here is a one-sample t test in disguise: for a bound b there are numbers z_i, one a seed,
whose mean is positive exactly if the quantity lies above b. That gives the interval, the decision
and the number of seeds needed from one place, so that they cannot contradict each other.
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
    """A closed range of values; an open end is infinite."""

    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        if math.isnan(self.low) or math.isnan(self.high) or self.low > self.high:
            raise StatisticsError(f"a region goes upwards, not from {self.low} to {self.high}")

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def bounds(self) -> tuple[float, ...]:
        """Return the ends that are there."""
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
        """Within a relative margin of a value."""
        reach = abs(value) * margin
        return cls(value - reach, value + reach)


LEAST_HALVED = 4
"""Seeds of which each half has an interval."""


@dataclass(frozen=True, slots=True)
class Side:
    """How clearly a quantity lies above (+) or below (-) a bound."""

    sign: int
    p: float


class Component:
    """A quantity, its values by seed, and the region predicted for it."""

    def __init__(
        self, label: str, region: Region, values: Sequence[float] | Floats, dropped: int = 0
    ) -> None:
        self.label = label
        self.region = region
        self.values = np.asarray(values, dtype=np.float64)
        self.dropped = dropped
        """Seeds left out because a value was missing."""
        self.part = ""
        """The part of a conjunction that it belongs to, in words."""

    @property
    def n(self) -> int:
        """Number of seeds."""
        return int(self.values.size)

    def problem(self) -> str | None:
        """Why nothing can be said at all, if so."""
        if self.n < 2:
            return f"{self.label}: {self.n} seeds with a value; two are the least"
        if not np.isfinite(self.values).all():
            return f"{self.label}: not defined for some seeds"
        return None

    def z(self, bound: float) -> Floats:
        """Numbers, one a seed, with a positive mean if the quantity lies above the bound."""
        return self.values - bound

    def interval(self, level: float) -> Interval:
        """Return the estimate with its limits."""
        return mean_interval(self.values, level)

    def point(self) -> float:
        """Return the estimate alone, which one seed has too; NaN if there is none."""
        return float(self.values.mean()) if self.n else math.nan

    def taken(self, seeds: slice | Floats) -> Self:
        """Return the same quantity from some of the seeds."""
        other = copy(self)
        other.values = self.values[seeds]
        return other

    def shrinks(self) -> bool | None:
        """Whether the interval is narrower than those of the halves of the seeds.

        Half of what independent values of one spread give is enough. It is less where single seeds
        stand far apart from the others: then more seeds find more of these. `None`: the seeds are
        too few to see it.
        """
        if self.n < LEAST_HALVED:
            return None
        n, half = self.n, self.n / 2
        due = t_critical(0.95, n - 1) / t_critical(0.95, half - 1) / math.sqrt(2)
        halves = [self.taken(slice(first, None, 2)).interval(0.95).half_width for first in (0, 1)]
        whole = self.interval(0.95).half_width
        return math.isfinite(whole) and whole <= (1 + due) / 2 * sum(halves) / 2

    def effect(self) -> Floats | None:
        """Paired differences whose standardised mean is the effect size, where there are any."""
        return None

    def floor(self) -> float:
        """Return a p value below which no decision is possible (a denominator that may be zero)."""
        return 0.0

    def side(self, bound: float) -> Side:
        """On which side of the bound the quantity lies."""
        test = one_sample(self.z(bound))
        mean = test.interval.estimate
        return Side(int(np.sign(mean)), max(test.p, self.floor()))

    def p_inside(self) -> float:
        """Return the least alpha at which the interval lies wholly inside the region."""
        worst = self.floor() if self.region.bounds() else 0.0
        for bound in self.region.bounds():
            side = self.side(bound)
            wanted = 1 if bound == self.region.low else -1
            if self.region.low == self.region.high or side.sign == 0:
                # On the bound itself: inside a closed region only if there is no spread.
                on = float(np.ptp(self.z(bound))) == 0.0 and side.sign == 0
                worst = max(worst, 0.0 if on else 1.0)
            else:
                worst = max(worst, side.p if side.sign == wanted else 1.0)
        return worst

    def p_outside(self) -> float:
        """Return the least alpha at which the interval lies wholly outside the region."""
        best = 1.0
        for bound, beyond in ((self.region.low, -1), (self.region.high, 1)):
            if math.isfinite(bound):
                side = self.side(bound)
                if side.sign == beyond:
                    best = min(best, side.p)
        return best

    def seeds_needed(self, alpha: float) -> int | None:
        """Seeds that would tell with probability 0.8, if the estimate is right; None: too many."""
        needed: list[int | None] = []
        estimate = self.interval(0.95).estimate
        for bound in self.region.bounds():
            z = self.z(bound)
            needed.append(seeds_for_power(float(z.mean()), float(z.std(ddof=1)), alpha))
        if not needed:
            return self.n
        if estimate in self.region:
            return None if None in needed else max(n for n in needed if n is not None)
        # Outside: the bound it lies beyond decides, which is the nearer one.
        told = [n for n in needed if n is not None]
        beyond = needed[0] if estimate < self.region.low or len(needed) == 1 else needed[-1]
        return beyond if beyond is not None else (max(told) if len(told) == len(needed) else None)


class RatioComponent(Component):
    """The ratio of two means, by Fieller's theorem."""

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
        """Also: a denominator that is zero."""
        found = super().problem()
        if found is None and float(self.under.mean()) <= 0.0:
            return f"{self.label}: the value compared with is zero in every run"
        return found

    def point(self) -> float:
        """Return the ratio of the means; NaN over zero."""
        under = float(self.under.mean()) if self.n else 0.0
        return super().point() / under if under else math.nan

    def taken(self, seeds: slice | Floats) -> Self:
        """Return the same ratio from some of the seeds."""
        other = super().taken(seeds)
        other.under = self.under[seeds]
        return other

    def z(self, bound: float) -> Floats:
        """Return the numerator less `bound` times the denominator."""
        return self.values - bound * self.under

    def interval(self, level: float) -> Interval:
        """Fieller's limits; a ratio of what is never negative is not either."""
        i = paired_ratio(self.values, self.under, level)
        if i.low < 0 and self.values.min() >= 0 and self.under.min() >= 0:
            return Interval(i.estimate, 0.0, i.high, i.level, i.n)
        return i

    def effect(self) -> Floats | None:
        """Return the paired differences."""
        return self.values - self.under

    def floor(self) -> float:
        """Until the denominator is clearly above zero, its ratio is anything."""
        return one_sample(self.under).p

    def seeds_needed(self, alpha: float) -> int | None:
        """Also enough seeds to know that the denominator is not zero."""
        first = super().seeds_needed(alpha)
        spread = float(self.under.std(ddof=1))
        second = seeds_for_power(float(self.under.mean()), spread, alpha)
        return None if first is None or second is None else max(first, second)


class DifferenceComponent(Component):
    """The difference of two means."""

    def effect(self) -> Floats | None:
        """Return the differences themselves."""
        return self.values


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def raised(i: Interval) -> Interval:
    """An interval brought back from the logarithm; what is too large for a number is infinite."""
    return Interval(_exp(i.estimate), _exp(i.low), _exp(i.high), i.level, i.n)


class LogComponent(Component):
    """A positive quantity whose logarithm has (pseudo-)values by seed; shown as itself."""

    def point(self) -> float:
        """Return the estimate, brought back from the logarithm."""
        return _exp(super().point())

    def z(self, bound: float) -> Floats:
        """On the logarithmic scale; everything is above a bound of zero or less."""
        return self.values - (math.log(bound) if bound > 0 else -math.inf)

    def side(self, bound: float) -> Side:
        """Put a positive quantity above zero without a test."""
        return Side(1, 0.0) if bound <= 0 else super().side(bound)

    def interval(self, level: float) -> Interval:
        """Limits brought back from the logarithm."""
        return raised(mean_interval(self.values, level))

    def seeds_needed(self, alpha: float) -> int | None:
        """As for any, without a bound that is met by nature."""
        if self.region.low > 0:
            return super().seeds_needed(alpha)
        plain = LogComponent(self.label, Region(-math.inf, self.region.high), self.values)
        return Component.seeds_needed(plain, alpha)
