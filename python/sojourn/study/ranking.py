"""Ranking of choices by simultaneous intervals of the differences of all pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Literal

import numpy as np
import numpy.typing as npt

from sojourn.metrics import Direction, Interest
from sojourn.stats import Gap, gaps
from sojourn.stats.letters import letters

Verdict = Literal["better", "worse", "as good as", "inconclusive"]
"""Verdict on a pair of choices.

*Better* and *worse*: the whole interval of the difference is beyond the smallest difference of
interest. *As good as*: the whole interval is within the smallest difference. *Inconclusive*: all
other cases.
"""


def verdict(gap: Gap, better: Direction) -> Verdict:
    """Returns the verdict on the first choice of a pair against the second."""
    match gap.where:
        case "within":
            return "as good as"
        case "open":
            return "inconclusive"
        case where:
            return "better" if (where == "below") == (better == "lower") else "worse"


@dataclass(frozen=True)
class Ranking:
    """The ranking of several choices."""

    order: tuple[str, ...]
    """Names of the choices by mean, the best first."""
    gaps: Mapping[tuple[str, str], Gap]
    """Differences a - b by pair (a, b), where a precedes b in `order`."""
    better: Direction

    def verdict(self, a: str, b: str) -> Verdict:
        """Returns the verdict on `a` against `b`."""
        if (a, b) in self.gaps:
            return verdict(self.gaps[a, b], self.better)
        other = verdict(self.gaps[b, a], self.better)
        return {"better": "worse", "worse": "better"}.get(other, other)  # type: ignore[return-value]

    @cached_property
    def unbeaten(self) -> tuple[str, ...]:
        """Returns the choices that are not significantly worse than another choice."""
        beaten = {a if self.verdict(a, b) == "worse" else b for a, b in self._apart}
        return tuple(name for name in self.order if name not in beaten)

    @cached_property
    def letters(self) -> Mapping[str, str]:
        """Returns the group letters by choice: choices with a common letter do not differ."""
        return letters(self.order, {frozenset(pair) for pair in self._apart})

    @property
    def _apart(self) -> list[tuple[str, str]]:
        return [p for p in self.gaps if self.verdict(*p) in ("better", "worse")]


def rank(
    values: Mapping[str, npt.NDArray[np.float64]],
    better: Direction,
    interest: Interest,
    alpha: float = 0.05,
    *,
    looked: bool = False,
) -> Ranking:
    """Returns the ranking of choices by samples that are paired by position.

    Pairs of values with NaN are omitted. `looked` states that the runs ended at a required
    precision; the intervals then allow for the repeated looks.
    """
    sign = 1.0 if better == "lower" else -1.0
    mean = {name: float(np.nanmean(x)) for name, x in values.items()}
    order = tuple(sorted(values, key=lambda name: sign * mean[name]))
    pairs = list(combinations(order, 2))
    found = gaps([(values[a], values[b]) for a, b in pairs], interest.at, alpha, looked=looked)
    return Ranking(order, dict(zip(pairs, found, strict=True)), better)
