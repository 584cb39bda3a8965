"""Confidence intervals of a mean, a difference of means, and a ratio of means."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from sojourn import _core
from sojourn.stats._arrays import StatisticsError, check_level, pairs, sample

VAST = 1000.0
"""Ratio of the limits above which the interval of a positive value has no meaning."""
USEFUL = 3.0
"""Ratio of the limits above which the interval of a positive mean is `wide`."""
SKEWED = 3.0
"""Weight of the skewness in `positive_mean`, calibrated by simulation (`tests/stats`)."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its confidence interval."""

    estimate: float
    low: float
    """Lower confidence limit; NaN or infinite if it is unknown."""
    high: float
    """Upper confidence limit; NaN or infinite if it is unknown."""
    level: float
    """Confidence level, such as 0.95."""
    n: int
    """Number of values or pairs from which the estimate is computed."""

    @property
    def half_width(self) -> float:
        """Returns half of the distance between the limits."""
        return (self.high - self.low) / 2.0

    @property
    def wide(self) -> bool:
        """Returns whether the limits of a positive mean differ by more than the factor `USEFUL`."""
        return 0.0 < USEFUL * self.low < self.high

    @property
    def vast(self) -> bool:
        """Returns whether a limit is unknown, or the limits of a positive value are `VAST`."""
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            return True
        return self.low >= 0.0 and self.high > VAST * (self.low or self.estimate)

    @property
    def shown(self) -> Interval:
        """Returns the interval of a positive mean for texts; the limits are NaN if it is `wide`."""
        return replace(self, low=math.nan, high=math.nan) if self.wide else self

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def __str__(self) -> str:
        return f"{self.estimate:.6g} [{self.low:.6g}, {self.high:.6g}]"


@dataclass(frozen=True, slots=True)
class TTest:
    """The result of a t test."""

    interval: Interval
    """Tested mean or difference with its interval."""
    t: float
    """The t statistic."""
    df: float
    """Degrees of freedom."""
    p: float
    """Two-sided p value."""

    def summary(self) -> str:
        """Returns the result as a line of text, in the form used in papers."""
        pct = f"{self.interval.level * 100:g} %"
        return f"{self.interval} ({pct}), t = {self.t:.4g}, df = {self.df:.4g}, p = {self.p:.4g}"


def t_critical(level: float, df: float) -> float:
    """Returns the two-sided critical value of Student's t for a confidence level."""
    return _core.t_isf(0.5 - check_level(level) / 2.0, df)


def two_sided_p(t: float, df: float) -> float:
    """Returns the two-sided p value of a t statistic."""
    return 2.0 * _core.t_sf(abs(t), df)


def mean_interval(values: npt.ArrayLike, level: float = 0.95) -> Interval:
    """Returns the mean of independent values with Student's t interval.

    For a single value, the limits are NaN.

    Raises `StatisticsError` for too few values, or for values that are not finite.

    >>> i = stats.mean_interval([4.1, 3.9, 4.4, 4.0, 4.2])
    >>> round(i.low, 2), round(i.estimate, 2), round(i.high, 2)
    (3.88, 4.12, 4.36)
    """
    check_level(level)
    x = sample(values)
    mean = float(x.mean())
    if x.size < 2:
        return Interval(mean, math.nan, math.nan, level, 1)
    half = t_critical(level, x.size - 1) * float(x.std(ddof=1)) / math.sqrt(x.size)
    return Interval(mean, mean - half, mean + half, level, int(x.size))


def log_half_width(variation: float, n: int, level: float) -> float:
    """Returns half of the interval of a positive mean's logarithm, for n values.

    `variation` is the coefficient of variation, whose square divided by n is the variance of the
    logarithm (delta method). The root allows for the skewness of positive values.
    """
    wider = math.sqrt(1.0 + SKEWED * variation**2 / n**0.75)
    return t_critical(level, n - 1) * variation / math.sqrt(n) * wider


def positive_mean(values: npt.ArrayLike, level: float = 0.95) -> Interval:
    """Returns the mean of independent values from 0 on, with an interval above zero.

    The interval is that of the mean's logarithm. It covers the mean in 94 to 96 % of samples of
    five values or more, if their distribution is not more skewed than an exponential one. The mean
    must be positive; for a single value, the limits are NaN.

    Raises `StatisticsError` for too few values, or for values that are not finite.

    >>> i = stats.positive_mean([4.1, 3.9, 4.4, 4.0, 4.2])
    >>> round(i.low, 3), round(i.estimate, 3), round(i.high, 3)
    (3.888, 4.12, 4.366)
    """
    x = sample(values)
    if x.size < 2:
        return mean_interval(x, level)
    mean = float(x.mean())
    half = log_half_width(float(x.std(ddof=1)) / mean, x.size, check_level(level))
    factor = math.exp(min(half, 300.0))  # wider intervals have no meaning, and overflow
    return Interval(mean, mean / factor, mean * factor, level, int(x.size))


def _t_test(mean: float, error: float, df: float, level: float, n: int) -> TTest:
    half = t_critical(level, df) * error
    interval = Interval(mean, mean - half, mean + half, level, n)
    if error == 0.0:
        # Values that do not vary leave no doubt whether the mean is zero.
        t = 0.0 if mean == 0.0 else math.copysign(math.inf, mean)
        return TTest(interval, t, df, 1.0 if mean == 0.0 else 0.0)
    t = mean / error
    return TTest(interval, t, df, two_sided_p(t, df))


def one_sample(values: npt.ArrayLike, popmean: float = 0.0, level: float = 0.95) -> TTest:
    """Returns the t test of a mean against the value `popmean`, with the interval of the mean.

    Raises `StatisticsError` for too few values, or for values that are not finite.

    >>> round(stats.one_sample([4.1, 3.9, 4.4, 4.0, 4.2], popmean=4).p, 3)
    0.235
    """
    check_level(level)
    x = sample(values, 2)
    test = _t_test(
        float((x - popmean).mean()),
        float(x.std(ddof=1)) / math.sqrt(x.size),
        x.size - 1,
        level,
        int(x.size),
    )
    i = test.interval
    moved = Interval(i.estimate + popmean, i.low + popmean, i.high + popmean, level, i.n)
    return TTest(moved, test.t, test.df, test.p)


def paired_difference(a: npt.ArrayLike, b: npt.ArrayLike, level: float = 0.95) -> TTest:
    """Returns the t test of the mean of a - b, where a[i] and b[i] have the same seed.

    Runs with the same seed have the same random draws, whose effects partly cancel.

    Raises `StatisticsError` if the samples have different lengths or values that are not finite.

    >>> test = stats.paired_difference([4.1, 3.9, 4.4, 4.0, 4.2], [5.0, 4.6, 5.3, 4.9, 5.2])
    >>> round(test.interval.estimate, 2), test.p < 0.001
    (-0.88, True)
    """
    x, y = pairs(a, b)
    return one_sample(x - y, 0.0, level)


def welch_difference(a: npt.ArrayLike, b: npt.ArrayLike, level: float = 0.95) -> TTest:
    """Returns Welch's t test of the difference of means, a - b, of unpaired samples.

    The variances of the samples may be different.

    Raises `StatisticsError` for too few values, or for values that are not finite.

    >>> round(stats.welch_difference([4.1, 3.9, 4.4], [5.0, 4.6, 5.3, 4.9]).interval.estimate, 2)
    -0.82
    """
    check_level(level)
    x, y = sample(a, 2, "first sample"), sample(b, 2, "second sample")
    vx, vy = float(x.var(ddof=1)) / x.size, float(y.var(ddof=1)) / y.size
    error = math.sqrt(vx + vy)
    if error == 0.0:
        df = float(x.size + y.size - 2)
    else:
        df = (vx + vy) ** 2 / (vx**2 / (x.size - 1) + vy**2 / (y.size - 1))
    n = int(min(x.size, y.size))
    return _t_test(float(x.mean() - y.mean()), error, df, level, n)


def paired_ratio(a: npt.ArrayLike, b: npt.ArrayLike, level: float = 0.95) -> Interval:
    """Returns mean(a) / mean(b) for paired samples, with an interval by Fieller's theorem.

    The interval has all ratios r for which the mean of a - r b is not significantly different from
    zero. The limits are infinite if the mean of b is not significantly different from zero.

    Raises `StatisticsError` if the samples have different lengths or values that are not finite.

    >>> i = stats.paired_ratio([4.1, 3.9, 4.4, 4.0, 4.2], [5.0, 4.6, 5.3, 4.9, 5.2])
    >>> round(i.low, 3), round(i.estimate, 3), round(i.high, 3)
    (0.806, 0.824, 0.843)
    """
    check_level(level)
    x, y = pairs(a, b)
    n = x.size
    mx, my = float(x.mean()), float(y.mean())
    if my == 0.0:
        return Interval(math.nan, -math.inf, math.inf, level, int(n))
    ratio = mx / my
    cov = np.cov(x, y, ddof=1) / n
    t2 = t_critical(level, n - 1) ** 2
    # The limits r solve (mx - r my)^2 = t2 (cov_xx - 2 r cov_xy + r^2 cov_yy).
    qa = my**2 - t2 * float(cov[1, 1])
    qb = mx * my - t2 * float(cov[0, 1])
    qc = mx**2 - t2 * float(cov[0, 0])
    if qa <= 0.0:
        return Interval(ratio, -math.inf, math.inf, level, int(n))
    root = math.sqrt(max(qb * qb - qa * qc, 0.0))
    return Interval(ratio, (qb - root) / qa, (qb + root) / qa, level, int(n))


def median_interval(values: npt.ArrayLike, level: float = 0.95) -> Interval:
    """Returns the median with an interval from order statistics.

    The interval assumes no distribution. Its actual level is at least `level`; with too few values
    the limits are infinite.

    Raises `StatisticsError` for too few values, or for values that are not finite.

    >>> i = stats.median_interval(range(1, 12))
    >>> i.low, i.estimate, i.high
    (2.0, 6.0, 10.0)
    """
    from scipy import stats as _st

    check_level(level)
    x = np.sort(sample(values))
    n = int(x.size)
    k = int(_st.binom.ppf((1.0 - level) / 2.0, n, 0.5))
    # The k-th smallest and k-th largest value enclose the median with probability 1 - 2 cdf(k - 1).
    while k > 0 and 2.0 * float(_st.binom.cdf(k - 1, n, 0.5)) > 1.0 - level:
        k -= 1
    low, high = (float(x[k - 1]), float(x[n - k])) if k > 0 else (-math.inf, math.inf)
    return Interval(float(np.median(x)), low, high, level, n)


def tost(values: npt.ArrayLike, low: float, high: float) -> float:
    """Returns the p value of an equivalence test: two one-sided tests (Schuirmann).

    A small p is evidence that the mean is between `low` and `high`.

    Raises `StatisticsError` for too few values, or for values that are not finite.

    >>> p = stats.tost([0.01, -0.02, 0.03, 0.00, -0.01], low=-0.1, high=0.1)
    >>> p < 0.001  # the mean is within ±0.1
    True
    """
    if not low < high:
        raise StatisticsError(f"`low` must be below `high`, not {low} and {high}")
    x = sample(values, 2)
    error = float(x.std(ddof=1)) / math.sqrt(x.size)
    if error == 0.0:
        return 0.0 if low < float(x.mean()) < high else 1.0
    df = x.size - 1
    p_low = _core.t_sf((float(x.mean()) - low) / error, df)
    p_high = _core.t_sf((high - float(x.mean())) / error, df)
    return max(p_low, p_high)
