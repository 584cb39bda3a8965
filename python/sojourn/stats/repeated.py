"""Comparison of two programs by pairs of runs, with repeated confidence intervals.

The interval of the typical logarithm of B / A is that of the signed-rank test (Hodges and Lehmann
1963; Walsh averages between the exact quantiles of Wilcoxon's statistic). If A and B are equal and
the order within each pair is random, the differences are symmetric for any distribution of the
runs, with outliers and drift, so the test is exact.

The pairs are examined at declared looks. All intervals have one level, at which they cover the true
value together with 95 % (Pocock 1977; Jennison and Turnbull 1989): any rule may stop at a look.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from sojourn.stats._arrays import StatisticsError, check_level, sample
from sojourn.stats.interval import Interval
from sojourn.stats.sequential import looks

FIRST = 8
"""Number of pairs at the first look; six would not suffice for the level of a look."""
PILOT = 8
"""Number of pairs of A with itself, which show the noise."""
MOST = 303
"""Largest number of pairs, unless the caller chooses another one."""
POWER = 0.9
"""Probability with which the planned pairs find the smallest difference of interest."""
CAUTION = 1.15
"""Factor for the noise of the pilot pairs, whose estimate is uncertain.

Calibrated by simulation (`tests/stats/test_repeated.py`), as is the further look in `planned`.
"""
EFFICIENCY = 3.0 / math.pi
"""Efficiency of the signed-rank test for normal differences, relative to Student's t."""


@cache
def critical(at: tuple[int, ...], level: float = 0.95) -> float:
    """Returns the standard normal bound that no look at these numbers crosses, with `level`.

    By numerical integration (Armitage, McPherson and Rowe 1969).
    """
    check_level(level)
    nodes, weights = np.polynomial.legendre.leggauss(80)

    def inside(bound: float) -> float:
        z, w = bound * nodes, bound * weights
        mass = np.exp(-z * z / 2) / math.sqrt(2 * math.pi) * w
        for before, now in pairwise(at):
            kept, new = math.sqrt(before / now), math.sqrt(1 - before / now)
            step = np.exp(-(((z[:, None] - kept * z) / new) ** 2) / 2)
            mass = step @ mass / (new * math.sqrt(2 * math.pi)) * w
        return float(mass.sum())

    low, high = 1.0, 8.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if inside(middle) >= level else (middle, high)
    return high


@cache
def _rank(n: int, tail: float) -> int:
    """Returns the number of sums of signed ranks whose probability is at most `tail` together."""
    chances = np.zeros(n * (n + 1) // 2 + 1)
    chances[0] = 1.0
    for rank in range(1, n + 1):
        moved = np.zeros_like(chances)
        moved[rank:] = chances[:-rank]
        chances = (chances + moved) / 2
    return int(np.searchsorted(np.cumsum(chances), tail, side="right"))


def typical(differences: npt.ArrayLike, level: float = 0.95) -> Interval:
    """Returns the centre of symmetric differences, with the interval of the signed-rank test.

    The limits are infinite if there are too few differences for the level.
    """
    x = sample(differences)
    first, second = np.triu_indices(x.size)
    walsh = np.sort((x[first] + x[second]) / 2)
    k = _rank(int(x.size), (1.0 - check_level(level)) / 2)
    low, high = (walsh[k - 1], walsh[-k]) if k else (-math.inf, math.inf)
    return Interval(float(np.median(walsh)), float(low), float(high), level, int(x.size))


@dataclass(frozen=True)
class Design:
    """Numbers of pairs at which a comparison is examined."""

    looks: tuple[int, ...]
    level: float = 0.95

    @property
    def most(self) -> int:
        """Returns the largest number of pairs."""
        return self.looks[-1]

    def interval(self, differences: Sequence[float]) -> Interval:
        """Returns the interval at a look, which allows for all looks."""
        normal = NormalDist()
        level = 1.0 - 2.0 * normal.cdf(-critical(self.looks, self.level))
        found = typical(differences, level)
        return Interval(found.estimate, found.low, found.high, self.level, found.n)

    def found(self, noise: float) -> float:
        """Returns the difference of logarithms that all pairs find with the probability `POWER`.

        `noise` is the standard deviation of the differences between A and itself.
        """
        bound = critical(self.looks, self.level) + NormalDist().inv_cdf(POWER)
        return bound * noise / math.sqrt(self.most * EFFICIENCY)


def noise_of(differences: npt.ArrayLike) -> float:
    """Returns the standard deviation of differences between A and itself, whose mean is 0."""
    return CAUTION * math.sqrt(float(np.mean(sample(differences) ** 2)))


def planned(noise: float, difference: float, most: int = MOST, level: float = 0.95) -> Design:
    """Returns the looks with which this difference of logarithms is found, up to `most` pairs.

    There is one look more than the noise requires.
    """
    if difference <= 0.0 or not math.isfinite(difference):
        raise StatisticsError(f"the difference must be above 0, not {difference}")
    declared = looks(most, FIRST)
    for count in range(1, len(declared) + 1):
        if Design(declared[:count], level).found(noise) <= difference:
            break
    return Design(declared[: count + 1], level)
