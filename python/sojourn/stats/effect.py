"""Effect sizes with confidence intervals."""

from __future__ import annotations

import math

import numpy.typing as npt
from scipy import optimize as _opt
from scipy import stats as _st

from sojourn.stats._arrays import check_level, pairs, sample
from sojourn.stats.interval import Interval
from sojourn.stats.noncentral import nct_cdf


def noncentrality_interval(t: float, df: float, level: float = 0.95) -> tuple[float, float]:
    """Returns the confidence limits of the noncentrality parameter for a t statistic."""
    check_level(level)
    tail = (1 - level) / 2
    # The limits are about t +- 2 sqrt(1 + t^2 / (2 df)); the search covers five times this
    # distance.
    reach = 10.0 * math.sqrt(1.0 + t * t / (2.0 * df))

    def solve(target: float) -> float:
        return float(
            _opt.brentq(lambda d: nct_cdf(t, df, d) - target, t - reach, t + reach, xtol=1e-12)
        )

    return solve(1 - tail), solve(tail)


def _j(df: float) -> float:
    """Returns Hedges' exact factor that corrects the bias of small samples."""
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
    """Returns Cohen's d of unpaired samples; with `unbiased`, Hedges' g.

    Cohen's d is the mean of a minus the mean of b, divided by the pooled standard deviation.

    Raises `StatisticsError` for too few values, or for values that are not finite.

    >>> round(stats.cohens_d([4.1, 3.9, 4.4, 4.0, 4.2], [5.0, 4.6, 5.3, 4.9, 5.2]).estimate, 2)
    -3.72
    """
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
    """Returns d_z of samples that are paired by seed.

    d_z is the mean of a - b divided by the standard deviation of a - b.

    Raises `StatisticsError` if the samples have different lengths or values that are not finite.

    >>> round(stats.paired_d([4.1, 3.9, 4.4, 4.0, 4.2], [5.0, 4.6, 5.3, 4.9, 5.2]).estimate, 2)
    -8.03
    """
    x, y = pairs(a, b)
    return standardised_mean(x - y, level, unbiased=unbiased)


def standardised_mean(
    values: npt.ArrayLike, level: float = 0.95, *, unbiased: bool = False
) -> Interval:
    """Returns the mean divided by the standard deviation.

    The limits follow from the noncentral t distribution.

    Raises `StatisticsError` for too few values, or for values that are not finite.

    >>> round(stats.standardised_mean([4.1, 3.9, 4.4, 4.0, 4.2]).estimate, 1)
    21.4
    """
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
    """Returns Cliff's delta of unpaired samples: P(a > b) - P(a < b), from -1 to 1.

    Raises `StatisticsError` for too few values, or for values that are not finite.

    >>> stats.cliffs_delta([4.1, 3.9, 4.4, 4.0, 4.2], [5.0, 4.6, 5.3, 4.9, 5.2])
    -1.0
    """
    x, y = sample(a), sample(b)
    u = _st.rankdata(list(x) + list(y))[: x.size].sum() - x.size * (x.size + 1) / 2
    return float(2 * u / (x.size * y.size) - 1)
