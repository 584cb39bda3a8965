"""Ranks that say no more than the data: what cannot be told apart shares one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from sojourn import stats
from sojourn.metrics import Direction
from sojourn.stats.letters import letters


@dataclass(frozen=True, slots=True)
class Ranking:
    """Who is how good."""

    order: tuple[str, ...]
    """Names, best mean first."""
    ranks: Mapping[str, int]
    """1 + the number of those that are significantly better."""
    letters: Mapping[str, str]
    """Names that share a letter cannot be told apart."""
    p: Mapping[frozenset[str], float]
    """Holm-adjusted p of each pair's difference."""


def rank(
    values: Mapping[str, npt.NDArray[np.float64]], better: Direction, alpha: float = 0.05
) -> Ranking:
    """Rank samples paired by position; pairs of seeds with a missing value are left out."""
    sign = 1.0 if better == "lower" else -1.0
    mean = {name: float(np.nanmean(x)) for name, x in values.items()}
    order = sorted(values, key=lambda name: sign * mean[name])
    pairs = list(combinations(order, 2))
    raw = []
    for a, b in pairs:
        both = np.isfinite(values[a]) & np.isfinite(values[b])
        if both.sum() < 2:
            raw.append(1.0)  # one seed has no spread to judge by
        else:
            raw.append(stats.paired_difference(values[a][both], values[b][both]).p)
    adjusted = stats.holm(raw) if raw else np.empty(0)
    p = {frozenset(pair): float(x) for pair, x in zip(pairs, adjusted, strict=True)}
    apart = {pair for pair, x in p.items() if x <= alpha and not math.isnan(x)}

    def beaten(name: str, others: Sequence[str]) -> int:
        return sum(
            frozenset((name, o)) in apart and sign * mean[o] < sign * mean[name]
            for o in others
            if o != name
        )

    ranks = {name: 1 + beaten(name, order) for name in order}
    # By rank first: a better mean by chance alone does not put one before a better rank.
    order.sort(key=lambda name: (ranks[name], sign * mean[name]))
    return Ranking(tuple(order), ranks, letters(order, apart), p)
