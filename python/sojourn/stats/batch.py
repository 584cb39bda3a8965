"""Statistics of the time series of a run: batch means, and the end of the warm-up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sojourn.stats._arrays import Floats, StatisticsError, sample
from sojourn.stats.interval import Interval, mean_interval


@dataclass(frozen=True, slots=True)
class BatchMeans:
    """The mean of a correlated series, with an interval from the means of batches."""

    interval: Interval
    """Mean with its interval."""
    batches: Floats
    """Means of the batches."""
    lag1: float
    """Correlation of the means of consecutive batches; far above 0 if batches are too short."""

    @property
    def trustworthy(self) -> bool:
        """Returns whether consecutive batches are not significantly correlated (one-sided, 5 %)."""
        return self.lag1 <= 1.645 / float(np.sqrt(self.batches.size))


def lag1(values: Floats) -> float:
    """Returns the correlation between consecutive values; 0 if all values are equal."""
    centred = values - values.mean()
    bottom = float((centred**2).sum())
    return float((centred[1:] * centred[:-1]).sum()) / bottom if bottom > 0 else 0.0


def batch_means(values: npt.ArrayLike, batches: int = 20, level: float = 0.95) -> BatchMeans:
    """Returns the mean of a series, with an interval from the means of equal batches.

    The means are treated as independent values. Values that do not fill a batch are omitted at the
    start, where effects of the warm-up may remain.

    Raises `StatisticsError` for too few values, or for values that are not finite.

    >>> stats.batch_means(range(100), batches=10).interval.estimate
    49.5
    """
    if batches < 2:
        raise StatisticsError("at least two batches are required")
    x = sample(values, 2 * batches, "series")
    size = x.size // batches
    means = x[x.size - size * batches :].reshape(batches, size).mean(axis=1)
    return BatchMeans(mean_interval(means, level), means, lag1(means))


@dataclass(frozen=True, slots=True)
class WarmUp:
    """The end of the warm-up in a series."""

    cut: int
    """Number of values at the start to omit."""
    score: Floats
    """MSER statistic of each possible cut."""
    group: int
    """Number of consecutive values that are averaged first (5 in MSER-5)."""
    found: bool
    """Whether the cut is in the first half; otherwise the run is too short."""


def mser(values: npt.ArrayLike, group: int = 5) -> WarmUp:
    """Returns the end of the warm-up by White's marginal standard error rule (MSER).

    The warm-up ends at the cut after which the mean has the smallest standard error. `group`
    consecutive values are averaged first.

    Raises `StatisticsError` for too few values, or for values that are not finite.

    >>> stats.mser([9, 7, 5] + [1, 2] * 50, group=1).cut
    3
    """
    if group < 1:
        raise StatisticsError(f"`group` must be at least 1; found {group}")
    x = sample(values, 4 * group, "series")
    n = x.size // group
    y = x[: n * group].reshape(n, group).mean(axis=1)
    # Sums from each value to the end give the statistic of all cuts.
    left = np.arange(n, 0, -1, dtype=np.float64)
    centred = y - y.mean()
    total = np.cumsum(centred[::-1])[::-1]
    square = np.cumsum((centred**2)[::-1])[::-1]
    score = np.maximum(square - total**2 / left, 0.0) / left**2
    # Cuts that leave at most five values are excluded.
    usable = max(n - 5, 1)
    best = int(np.argmin(score[:usable]))
    return WarmUp(best * group, score[:usable], group, best <= n // 2)


def welch_plot(runs: Sequence[npt.ArrayLike], window: int = 5) -> tuple[Floats, Floats]:
    """Returns Welch's plot: the mean over runs at each time, and its moving average.

    The moving average covers `window` values before and after each time. Near both ends the window
    is smaller, so that it remains centred. All series are cut to the length of the shortest.

    >>> mean, smooth = stats.welch_plot([[9, 5, 1, 1], [7, 3, 1, 1]], window=1)
    >>> [float(x) for x in mean]
    [8.0, 4.0, 1.0, 1.0]
    """
    if window < 0:
        raise StatisticsError(f"the window must be 0 or more, not {window}")
    rows = [sample(r, 1, "series") for r in runs]
    if not rows:
        raise StatisticsError("the list of runs is empty; at least one run is required")
    length = min(r.size for r in rows)
    mean = np.mean([r[:length] for r in rows], axis=0)
    sums = np.concatenate(([0.0], np.cumsum(mean)))
    at = np.arange(length)
    w = np.minimum(np.minimum(at, length - 1 - at), window)
    smooth = (sums[at + w + 1] - sums[at - w]) / (2 * w + 1)
    return mean, smooth
