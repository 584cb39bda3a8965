"""Statistics within one long run: batch means, and the end of the warm-up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sojourn.stats._arrays import Floats, StatisticsError, sample
from sojourn.stats.interval import Interval, mean_interval


@dataclass(frozen=True, slots=True)
class BatchMeans:
    """The mean of a correlated series, with an interval from the means of its batches."""

    interval: Interval
    batches: Floats
    lag1: float
    """Correlation of neighbouring batches; a value well above 0 means that longer batches are
    needed.
    """

    @property
    def trustworthy(self) -> bool:
        """Returns whether neighbouring batches appear uncorrelated (95 %, one-sided)."""
        return self.lag1 <= 1.645 / float(np.sqrt(self.batches.size))


def lag1(values: Floats) -> float:
    """Returns the correlation of neighbours."""
    centred = values - values.mean()
    bottom = float((centred**2).sum())
    return float((centred[1:] * centred[:-1]).sum()) / bottom if bottom > 0 else 0.0


def batch_means(values: npt.ArrayLike, batches: int = 20, level: float = 0.95) -> BatchMeans:
    """Divides a series into equal batches and treats their means as independent values.

    Values that do not fill a batch are omitted at the *start*, where effects of the warm-up remain.
    """
    if batches < 2:
        raise StatisticsError("at least two batches are required")
    x = sample(values, 2 * batches, "series")
    size = x.size // batches
    means = x[x.size - size * batches :].reshape(batches, size).mean(axis=1)
    return BatchMeans(mean_interval(means, level), means, lag1(means))


@dataclass(frozen=True, slots=True)
class WarmUp:
    """The cut of a series after which its start no longer biases the mean."""

    cut: int
    """Number of values to omit."""
    score: Floats
    """MSER statistic of each possible cut."""
    group: int
    """Number of values averaged into one beforehand (5 in MSER-5)."""
    found: bool
    """False if the best cut is in the second half: the run is then too short."""


def mser(values: npt.ArrayLike, group: int = 5) -> WarmUp:
    """Applies White's marginal standard error rule: the cut with the most precise mean."""
    x = sample(values, 4 * group, "series")
    n = x.size // group
    y = x[: n * group].reshape(n, group).mean(axis=1)
    # Suffix sums evaluate every possible cut at once.
    left = np.arange(n, 0, -1, dtype=np.float64)
    centred = y - y.mean()
    total = np.cumsum(centred[::-1])[::-1]
    square = np.cumsum((centred**2)[::-1])[::-1]
    score = np.maximum(square - total**2 / left, 0.0) / left**2
    # The last cuts leave too few values and are excluded.
    usable = max(n - 5, 1)
    best = int(np.argmin(score[:usable]))
    return WarmUp(best * group, score[:usable], group, best <= n // 2)


def welch_plot(runs: Sequence[npt.ArrayLike], window: int = 5) -> tuple[Floats, Floats]:
    """Returns Welch's plot: the mean over runs at each time, and its moving average of +- `window`.

    Near the start the window shrinks so that it remains centred. Series are cut to the shortest.
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
