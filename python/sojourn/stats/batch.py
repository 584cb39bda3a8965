"""Statistics inside one long run: batch means, and where the warm-up ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sojourn.stats._arrays import Floats, StatisticsError, sample
from sojourn.stats.interval import Interval, mean_interval


@dataclass(frozen=True, slots=True)
class BatchMeans:
    """The mean of a correlated series, judged by the means of its batches."""

    interval: Interval
    batches: Floats
    lag1: float
    """Correlation of neighbouring batches; well above 0 means: longer batches are needed."""

    @property
    def trustworthy(self) -> bool:
        """Whether neighbouring batches look uncorrelated (95 %, one-sided)."""
        return self.lag1 <= 1.645 / float(np.sqrt(self.batches.size))


def lag1(values: Floats) -> float:
    """Correlation of neighbours."""
    centred = values - values.mean()
    bottom = float((centred**2).sum())
    return float((centred[1:] * centred[:-1]).sum()) / bottom if bottom > 0 else 0.0


def batch_means(values: npt.ArrayLike, batches: int = 20, level: float = 0.95) -> BatchMeans:
    """Cut a series into equal batches and treat their means as independent values.

    What does not fill a batch is left out at the *start*, where the warm-up lingers.
    """
    if batches < 2:
        raise StatisticsError("two batches are the least")
    x = sample(values, 2 * batches, "series")
    size = x.size // batches
    means = x[x.size - size * batches :].reshape(batches, size).mean(axis=1)
    return BatchMeans(mean_interval(means, level), means, lag1(means))


@dataclass(frozen=True, slots=True)
class WarmUp:
    """Where to cut a series so that the start no longer bends its mean."""

    cut: int
    """Number of values to leave out."""
    score: Floats
    """MSER statistic of each possible cut."""
    group: int
    """Values that were averaged into one before (5 in MSER-5)."""
    found: bool
    """False if the best cut lies in the second half: the run is too short to say."""


def mser(values: npt.ArrayLike, group: int = 5) -> WarmUp:
    """White's marginal standard error rule: the cut that leaves the mean best determined."""
    x = sample(values, 4 * group, "series")
    n = x.size // group
    y = x[: n * group].reshape(n, group).mean(axis=1)
    # Suffix sums give every possible cut at once.
    left = np.arange(n, 0, -1, dtype=np.float64)
    centred = y - y.mean()
    total = np.cumsum(centred[::-1])[::-1]
    square = np.cumsum((centred**2)[::-1])[::-1]
    score = np.maximum(square - total**2 / left, 0.0) / left**2
    # The last few cuts leave too little to judge, so they do not take part.
    usable = max(n - 5, 1)
    best = int(np.argmin(score[:usable]))
    return WarmUp(best * group, score[:usable], group, best <= n // 2)


def welch_plot(runs: Sequence[npt.ArrayLike], window: int = 5) -> tuple[Floats, Floats]:
    """Welch's plot: the mean over runs at each time, and its moving average of +- `window`.

    Near the start the window shrinks so that it stays centred; series are cut to the shortest.
    """
    if window < 0:
        raise StatisticsError("the window cannot be negative")
    rows = [sample(r, 1, "series") for r in runs]
    if not rows:
        raise StatisticsError("no runs given")
    length = min(r.size for r in rows)
    mean = np.mean([r[:length] for r in rows], axis=0)
    sums = np.concatenate(([0.0], np.cumsum(mean)))
    at = np.arange(length)
    w = np.minimum(np.minimum(at, length - 1 - at), window)
    smooth = (sums[at + w + 1] - sums[at - w]) / (2 * w + 1)
    return mean, smooth
