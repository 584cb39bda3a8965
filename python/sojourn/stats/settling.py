"""Whether a series still changes: a comparison of its parts, and one cut for the warm-up of runs.

`sojourn run` imports this module, so it needs no NumPy before a series is found to change.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import pairwise

from sojourn import _core

CERTAIN = 0.001
"""Probability with which a series that does not change is found to change, for each test."""

SHARE = 0.2
"""Smallest relative difference of two parts of a series that counts as a change.

If the first fifth of a series differs by this share, the mean of the series moves by 4 %.
"""

EQUAL = 0.01
"""Largest relative deviation from the mean of the second half that counts as none."""

NEARLY = 1.01
"""Largest ratio of MSER's statistic to its least value at which the warm-up ends."""

RUNS = 5
"""Minimum number of runs of which each counts as one value; of fewer, batches are compared."""

BATCHES = 10

Series = Sequence[Sequence[float]]
"""Values at equal times, for each run."""


def fmean(values: Collection[float]) -> float:
    """Returns the mean; the module `statistics` would take a noticeable time to import."""
    return math.fsum(values) / len(values)


def variance(values: Collection[float]) -> float:
    """Returns the variance of a sample."""
    middle = fmean(values)
    return math.fsum((x - middle) ** 2 for x in values) / (len(values) - 1)


def drift(early: Series, late: Series, least: float = 0.0) -> float:
    """Returns the relative change of the mean from the early to the late part of some runs.

    The result is 0 if the change is not significant, below `SHARE`, or at most `least`. Of `RUNS`
    runs or more, the parts' means are compared run by run; correlation within a run has no effect.
    Of fewer, means of batches are compared, with a variance that allows for their correlation.
    """
    before, after = (fmean([*map(fmean, part)]) for part in (early, late))
    change = after - before
    if abs(change) <= max(SHARE * max(abs(before), abs(after)), least):
        return 0.0
    if len(early) >= RUNS:
        gaps = [fmean(b) - fmean(a) for a, b in zip(early, late, strict=True)]
        error, free = math.sqrt(variance(gaps) / len(gaps)), float(len(gaps) - 1)
    else:
        size = max(len(late[0]) // BATCHES, 1)
        found = [_error(part, size) for part in (early, late)]
        error, free = math.sqrt(sum(e for e, _ in found)), float(sum(n - 1 for _, n in found))
        if free < 4:
            return 0.0
    significant = error == 0.0 or 2.0 * _core.t_sf(abs(change) / error, free) < CERTAIN
    return change / max(abs(before), abs(after)) if significant else 0.0


def _error(part: Series, size: int) -> tuple[float, int]:
    """Returns the variance of the mean of the averaged runs, and the number of batches."""
    y = [fmean(values) for values in zip(*part, strict=True)]
    means = [fmean(y[i : i + size]) for i in range(len(y) % size, len(y), size)]
    if len(means) < 2:
        return math.inf, 1
    middle, spread = fmean(means), variance(means)
    both = sum((a - middle) * (b - middle) for a, b in pairwise(means))
    along = min(max(both / (spread * (len(means) - 1)), 0.0), 0.9) if spread > 0 else 0.0
    return spread / len(means) * (1 + along) / (1 - along), len(means)


def begins_late(runs: Series, least: float = 0.0) -> float:
    """Returns the change from the first fifth or the first half to the second half, as `drift`."""
    n = len(runs[0])
    if n < 10:
        return 0.0
    rest = [r[n // 2 :] for r in runs]
    found = (drift([r[:end] for r in runs], rest, least) for end in (n // 5, n // 2))
    return max(found, key=abs)


def ends_early(runs: Series, least: float = 0.0) -> float:
    """Returns the change between the third and the last quarter, as `drift` does.

    A slow oscillation of fewer than `RUNS` runs resembles a trend, so that the result is then 0.
    """
    n = len(runs[0]) if len(runs) >= RUNS else 0
    last = [r[3 * n // 4 :] for r in runs]
    return drift([r[n // 2 : 3 * n // 4] for r in runs], last, least) if n >= 10 else 0.0


def common_cut(runs: Series, least: float = 0.0) -> int | None:
    """Returns one cut for the warm-up of all runs: the number of values at the start to omit.

    The cut is the first that nearly has the least statistic of MSER-5 in the first half of the
    average over the runs (of MSER for fewer than 100 values), moved on while the rest still
    changes. `None` if that leaves about half of the values, or the series never settles.
    """
    from sojourn.stats.batch import mser  # noqa: PLC0415 - needs NumPy

    mean = [fmean(values) for values in zip(*runs, strict=True)]
    n = len(mean)
    if n < 20:
        return None
    # Of a busy line's constant throughput, MSER would cut all up to the last small dip.
    late = fmean(mean[n // 2 :])
    mean = [late if abs(x - late) <= EQUAL * abs(late) else x for x in mean]
    found = mser(mean, 5 if n >= 100 else 1)
    scores = found.score[: len(mean) // found.group // 2 + 1].tolist()
    cut = found.group * next(i for i, x in enumerate(scores) if x <= NEARLY * min(scores))
    if cut > 0.45 * n:
        return None
    while cut <= n // 2:
        rest = [r[cut:] for r in runs]
        if not begins_late(rest, least):
            return None if ends_early(rest, least) else cut
        cut += max(n // 20, 1)
    return None
