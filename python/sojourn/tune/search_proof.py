"""How sure it is that what a search found is better: fresh seeds, paired tests, plain words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sojourn.stats import Interval, TTest, holm, paired_difference, paired_ratio, seeds_for_power
from sojourn.study import quantities
from sojourn.study.answer import words
from sojourn.study.comparison import Comparison

ALPHA = 0.05
Outcome = Literal["better", "worse", "cannot be told"]


@dataclass(frozen=True)
class Verdict:
    """What was found against what it has to beat."""

    rival: str
    outcome: Outcome
    sentence: str
    difference: Interval | None = None
    """Of the objective, found minus rival, with its 95 % interval."""
    p: float = math.nan
    """Of no difference, Holm-corrected over all rivals."""
    needed: int | None = None
    """Seeds that would probably show the difference measured, where it cannot be told."""

    @property
    def wins(self) -> bool:
        """Whether what was found is surely better."""
        return self.outcome == "better"

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        gap = self.difference
        limits = None if gap is None else {"mean": gap.estimate, "low": gap.low, "high": gap.high}
        return {
            "rival": self.rival,
            "outcome": self.outcome,
            "sentence": self.sentence,
            "difference": limits,
            "p_holm": None if math.isnan(self.p) else self.p,
            "seeds_needed": self.needed,
        }


def verdicts(proof: Comparison, found: str, rivals: Mapping[str, str]) -> list[Verdict]:
    """Judge what was found against each rival, named in words (`the default codel`).

    Runs are paired by seed. The tests are Holm-corrected: each has to stand beside the others.
    """
    values = proof.values(proof.by)
    tests: dict[str, TTest | None] = {}
    for rival in rivals:
        x, y = _both(values[found], values[rival])
        tests[rival] = paired_difference(x, y) if x.size > 1 else None
    tested = [rival for rival, test in tests.items() if test is not None]
    raw = [t.p for t in tests.values() if t is not None]
    corrected = dict(zip(tested, map(float, holm(raw)), strict=True)) if raw else {}
    return [
        _verdict(proof, found, rival, name, tests[rival], corrected.get(rival, math.nan))
        for rival, name in rivals.items()
    ]


def _both(
    a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    both = np.isfinite(a) & np.isfinite(b)
    return a[both], b[both]


def _verdict(
    proof: Comparison, found: str, rival: str, name: str, test: TTest | None, p: float
) -> Verdict:
    mine, theirs = proof.entry(found).feasible, proof.entry(rival).feasible
    if mine != theirs:
        missing = found if theirs else rival
        reason = proof.entry(missing).reason
        text = (
            f"Only it meets the condition: {name} does not ({reason})."
            if mine
            else f"It misses the condition, which {name} meets ({reason})."
        )
        gap = None if test is None else test.interval
        return Verdict(rival, "better" if mine else "worse", text, gap, p)
    if test is None:
        return Verdict(rival, "cannot be told", f"With {name} there is nothing to compare.")
    x, y = _both(proof.values(proof.by)[found], proof.values(proof.by)[rival])
    figures = _figures(proof, x, y, test)
    sign = -1.0 if proof.better == "lower" else 1.0
    if p <= ALPHA:
        good = sign * test.interval.estimate > 0
        text = f"It {'beats' if good else 'is worse than'} {name}: {figures}, p = {p:.2g}."
        return Verdict(rival, "better" if good else "worse", text, test.interval, p)
    needed = _needed(x, y)
    more = f" A difference as measured would take about {needed} seeds." if needed else ""
    text = f"It cannot be told from {name} with {x.size} seeds: {figures}, p = {p:.2g}.{more}"
    return Verdict(rival, "cannot be told", text, test.interval, p, needed)


def _figures(
    proof: Comparison, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64], test: TTest
) -> str:
    unit = proof.table.units.get(proof.by, "")
    here, there = (quantities.value(float(v.mean()), unit, proof.by) for v in (x, y))
    gap = quantities.interval(test.interval, unit, proof.by)
    text = f"{words(proof.by)} {here} against {there}, difference {gap}"
    ratio = paired_ratio(x, y)
    if float(y.mean()) > 0 and math.isfinite(ratio.low) and math.isfinite(ratio.high):
        part = 100 * (ratio.estimate - 1)
        text += f" ({part:+.3g} %)"
    return text


def _needed(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> int | None:
    gaps = x - y
    deviation = float(gaps.std(ddof=1))
    mean = float(gaps.mean())
    if deviation == 0 or mean == 0:
        return None
    return seeds_for_power(mean, deviation)
