"""Verdicts on the winner of a search, from runs with fresh seeds that are paired by seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sojourn.data import Object
from sojourn.stats import Gap, Interval, gaps, paired_ratio
from sojourn.study import quantities
from sojourn.study.answer import interest_text, words
from sojourn.study.comparison import Comparison
from sojourn.study.ranking import Verdict as Outcome
from sojourn.study.ranking import verdict


@dataclass(frozen=True)
class Verdict:
    """The verdict on the winner against one rival."""

    rival: str
    """Queue of the rival."""
    outcome: Outcome
    sentence: str
    """The verdict as a sentence."""
    difference: Interval | None = None
    """Difference of the objective, winner minus rival; `None` without common values.

    The intervals of all rivals are simultaneous.
    """
    needed: int | None = None
    """Approximate number of seeds that would decide; `None` if decided or unknown."""

    @property
    def wins(self) -> bool:
        """Returns whether the winner is significantly better than the rival."""
        return self.outcome == "better"

    def as_dict(self) -> Object:
        """Returns the fields as data for JSON."""
        gap = self.difference
        limits = None if gap is None else {"mean": gap.estimate, "low": gap.low, "high": gap.high}
        return {
            "rival": self.rival,
            "outcome": self.outcome,
            "sentence": self.sentence,
            "difference": limits,
            "seeds_needed": self.needed,
        }


def verdicts(proof: Comparison, found: str, rivals: Mapping[str, str]) -> list[Verdict]:
    """Returns the verdicts on the winner `found` against each rival.

    `rivals` has names in words by queue, such as `the original queue (codel)`. Runs are paired by
    seed, and the intervals of all differences are simultaneous.
    """
    values = proof.values(proof.by)
    pairs = [(values[found], values[rival]) for rival in rivals]
    judged = gaps(pairs, proof.interest.at, proof.alpha)
    return [
        _verdict(proof, found, rival, name, gap)
        for (rival, name), gap in zip(rivals.items(), judged, strict=True)
    ]


def _verdict(proof: Comparison, found: str, rival: str, name: str, gap: Gap) -> Verdict:
    mine, theirs = proof.entry(found).feasible, proof.entry(rival).feasible
    interval = gap.interval if math.isfinite(gap.interval.low) else None
    if mine != theirs:
        text = (
            f"The winner meets the condition, but {name} does not ({proof.entry(rival).reason})."
            if mine
            else f"The winner does not meet the condition, but {name} does."
        )
        return Verdict(rival, "better" if mine else "worse", text, interval)
    if interval is None:
        return Verdict(rival, "inconclusive", f"{name} has no values to compare.")
    figures = _figures(proof, found, rival, interval)
    outcome = verdict(gap, proof.better)
    text = {
        "better": f"It beats {name}: {figures}.",
        "worse": f"It is worse than {name}: {figures}.",
        "as good as": f"It is as good as {name}: {figures}, within "
        f"{interest_text(proof.by, proof.interest)}.",
        "inconclusive": f"{interval.n} seeds do not decide whether it beats {name}: "
        f"{figures}." + (f" About {gap.seeds} seeds would decide." if gap.seeds else ""),
    }[outcome]
    return Verdict(rival, outcome, text, interval, gap.seeds)


def _figures(proof: Comparison, found: str, rival: str, difference: Interval) -> str:
    values = proof.values(proof.by)
    both = np.isfinite(values[found]) & np.isfinite(values[rival])
    x, y = values[found][both], values[rival][both]
    unit = proof.table.units.get(proof.by, "")
    here, there = (quantities.value(float(v.mean()), unit, proof.by) for v in (x, y))
    gap = quantities.interval(difference, unit, proof.by)
    text = f"{words(proof.by)} {here} against {there}, difference {gap}"
    ratio = paired_ratio(x, y)
    if float(y.mean()) > 0 and math.isfinite(ratio.low) and math.isfinite(ratio.high):
        part = 100 * (ratio.estimate - 1)
        text += f" ({'+' * (part > 0)}{quantities.rounded(part, 100 * ratio.half_width)} %)"
    return text
