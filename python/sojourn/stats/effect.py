"""Effect sizes with confidence intervals: the size of a difference, not only its significance."""

from __future__ import annotations

import math

import numpy.typing as npt
from scipy import optimize as _opt
from scipy import stats as _st

from sojourn.stats._arrays import check_level, pairs, sample
from sojourn.stats.interval import Interval
from sojourn.stats.noncentral import nct_cdf


def noncentrality_interval(t: float, df: float, level: float = 0.95) -> tuple[float, float]:
    """Returns the limits of the noncentrality that is compatible with a t statistic."""
    check_level(level)
    tail = (1 - level) / 2
    # The limits are about t +- 2 sqrt(1 + t^2 / (2 df)); four times this distance is sufficient.
    reach = 10.0 * math.sqrt(1.0 + t * t / (2.0 * df))

    def solve(target: float) -> float:
        return float(
            _opt.brentq(lambda d: nct_cdf(t, df, d) - target, t - reach, t + reach, xtol=1e-12)
        )

    return solve(1 - tail), solve(tail)


def _j(df: float) -> float:
    """Returns Hedges' exact correction of the small-sample bias."""
    return math.exp(math.lgamma(df / 2) - math.lgamma((df - 1) / 2)) / math.sqrt(df / 2)


def _standardised(
    d: float, root_n: float, df: float, level: float, n: int, *, unbiased: bool
) -> Interval:
    low, high = noncentrality_interval(d * root_n, df, level)
    factor = _j(df) if unbiased and df > 1 else 1.0
    return Interval(d * factor, low / root_n * factor, high / root_n * factor, level, n)


def cohens_d(
    a: npt.ArrayLike, b: npt.ArrayLike, level: float = 0.95, *, unbiased: bool = False
) -> Interval:
    """Returns (mean a - mean b) / pooled deviation, unpaired; `unbiased` gives Hedges' g."""
    x, y = sample(a, 2, "first sample"), sample(b, 2, "second sample")
    df = x.size + y.size - 2
    pooled = math.sqrt(
        ((x.size - 1) * float(x.var(ddof=1)) + (y.size - 1) * float(y.var(ddof=1))) / df
    )
    n = int(min(x.size, y.size))
    gap = float(x.mean() - y.mean())
    if pooled == 0.0:
        return _certain(gap, level, n)
    root_n = math.sqrt(x.size * y.size / (x.size + y.size))
    return _standardised(gap / pooled, root_n, df, level, n, unbiased=unbiased)


def paired_d(
    a: npt.ArrayLike, b: npt.ArrayLike, level: float = 0.95, *, unbiased: bool = False
) -> Interval:
    """Returns the mean of a - b over its deviation, for pairs of the same seed (d_z)."""
    x, y = pairs(a, b)
    return standardised_mean(x - y, level, unbiased=unbiased)


def standardised_mean(
    values: npt.ArrayLike, level: float = 0.95, *, unbiased: bool = False
) -> Interval:
    """Returns the mean over the deviation, with limits from the noncentral t distribution."""
    x = sample(values, 2)
    spread, mean = float(x.std(ddof=1)), float(x.mean())
    if spread == 0.0:
        return _certain(mean, level, int(x.size))
    return _standardised(
        mean / spread, math.sqrt(x.size), x.size - 1, level, int(x.size), unbiased=unbiased
    )


def _certain(gap: float, level: float, n: int) -> Interval:
    value = 0.0 if gap == 0.0 else math.copysign(math.inf, gap)
    return Interval(value, value, value, level, n)


def cliffs_delta(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Returns P(a > b) - P(a < b) for unpaired samples: from -1 to 1, 0 without a tendency."""
    x, y = sample(a), sample(b)
    u = _st.rankdata(list(x) + list(y))[: x.size].sum() - x.size * (x.size + 1) / 2
    return float(2 * u / (x.size * y.size) - 1)
