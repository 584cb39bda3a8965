"""Comparison of real and simulated results."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sojourn.show.terminal import BADGES, decisive
from sojourn.stats import Claim, Interval, Judgement, Region, judge_components, welch_difference
from sojourn.stats._arrays import Floats
from sojourn.stats.estimate import Component, LogComponent, Side, raised
from sojourn.study.quantities import interval, value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.papers.outcome import Outcome

SIMULATED, REAL = "simulated", "real"
RATIO = "real / simulated"
VERDICTS = ("finding", "simulated", "verdict simulated", "real", "verdict real", "engines")
RUNS = "real runs"
FEWEST = 5
"""Number of runs per cell below which a mean of wall-clock runs is weak evidence."""
AGREE = {"holds": "agree", "does not hold": "differ", "cannot be told": "undecided"}
"""Words for the verdict on the ratio of two engines."""
Measured = list[tuple[Claim, list[Component]]]
"""Claims with their quantities."""


class UnpairedRatio(Component):
    """The ratio of one quantity in two engines with unrelated runs.

    It works on logarithms: by the jackknife each run has a value in each engine, and the means of
    these values are compared by Welch's interval.
    """

    def __init__(self, real: Component, simulated: Component, margin: float) -> None:
        super().__init__(real.label, Region(1 / (1 + margin), 1 + margin), _logs(real))
        self.other = _logs(simulated)

    def problem(self) -> str | None:
        """Also reports too few runs for a comparison."""
        if min(self.n, self.other.size) < 2:
            return f"{self.label}: two runs of each engine are required"
        if not (np.isfinite(self.values).all() and np.isfinite(self.other).all()):
            return f"{self.label}: not above zero, so the ratio is undefined"
        return None

    def z(self, bound: float) -> Floats:
        """Returns the logarithms minus those of the other engine's mean and of the bound."""
        return self.values - float(self.other.mean()) - math.log(bound)

    def side(self, bound: float) -> Side:
        """Returns the side by Welch's test."""
        test = welch_difference(self.values - math.log(bound), self.other)
        return Side(int(np.sign(test.interval.estimate)), test.p)

    def interval(self, level: float) -> Interval:
        """Returns limits on the original scale."""
        return raised(welch_difference(self.values, self.other, level).interval)

    def shrinks(self) -> bool | None:
        """Returns `None`: the number of seeds is not estimated for two engines."""
        return None


def _logs(component: Component) -> Floats:
    """Returns a quantity's logarithm, one jackknife value per seed; NaN unless it is positive."""
    if isinstance(component, LogComponent):
        return component.values
    n = component.n
    whole = component.point()
    seeds = np.arange(n)
    least = [component.taken(seeds[seeds != seed]).point() for seed in range(n if n > 1 else 0)]
    if not least or not min(whole, *least) > 0:
        return np.full(len(least), np.nan)
    logs: Floats = np.log(np.asarray(least))
    return np.asarray(n * math.log(whole) - (n - 1) * logs)


def agreement(real: Measured, simulated: Measured, margin: float) -> dict[str, Judgement]:
    """Returns, by claim, the verdict on the ratio of real to simulated against the margin.

    The engines *agree* if the interval is inside, *differ* if it is outside, and are undecided
    otherwise. Alpha applies to all claims together.
    """
    here = {claim.id: components for claim, components in simulated}
    pairs: Measured = []
    for claim, components in real:
        known = {c.label: c for c in here.get(claim.id, ())}
        both = [(c, known[c.label]) for c in components if c.label in known]
        if both:
            pairs.append((claim, [UnpairedRatio(*pair, margin) for pair in both]))
    return {j.claim.id: j for j in judge_components(pairs)}


@dataclass(frozen=True)
class WallClock:
    """Data on the strength of the means of wall-clock runs."""

    fewest: int
    """Valid runs of the cell with the fewest."""
    valid: int
    """Valid runs of all parts."""
    runs: int
    """Runs of all parts, including invalid ones."""
    load: tuple[float, float]
    """Lowest and highest load of the machine: mean number of running or ready programs in a minute.
    """

    @classmethod
    def of(cls, runs: Sequence[tuple[str, bool, float]]) -> WallClock | None:
        """Returns the data from the cell, validity and load of each run; `None` without any run."""
        if not runs:
            return None
        cells = Counter({cell: 0 for cell, _, _ in runs})
        cells.update(cell for cell, valid, _ in runs if valid)
        loads = [load for _, _, load in runs]
        return cls(min(cells.values()), cells.total(), len(runs), (min(loads), max(loads)))

    def __str__(self) -> str:
        few = f": fewer than {FEWEST}, which is weak evidence" if self.fewest < FEWEST else ""
        low, high = self.load
        return (
            f"wall clock: {self.valid} of {self.runs} runs valid, at least {self.fewest} a cell"
            f"{few}; load of the machine {low:.1f} to {high:.1f}"
        )


def ratio(a: float, b: float) -> float:
    """Returns the quotient; 1 for equal values, including zeros."""
    if a == b:
        return 1.0
    return float(a / b) if b else float("nan")


def means(
    real: pd.DataFrame, simulated: pd.DataFrame, factors: Sequence[str], metrics: Sequence[str]
) -> pd.DataFrame:
    """Returns the means of every cell in both engines, and the ratio of real to simulated."""
    keys = list(factors)
    known = [metric for metric in metrics if metric in real and metric in simulated]
    there, here = (frame.groupby(keys, sort=False)[known].mean() for frame in (real, simulated))
    runs = real.groupby(keys, sort=False).size()
    if len(keys) == 1:
        there.index, here.index = (pd.MultiIndex.from_arrays([f.index]) for f in (there, here))
    return pd.DataFrame(
        {
            **dict(zip(keys, cell, strict=True)),
            "metric": metric,
            SIMULATED: float(here.loc[cell, metric]),
            REAL: float(there.loc[cell, metric]),
            RATIO: ratio(there.loc[cell, metric], here.loc[cell, metric]),
            RUNS: int(number),
        }
        for cell, number in zip(there.index, runs, strict=True)
        for metric in known
    )


def beside(outcome: Outcome) -> pd.DataFrame:
    """Returns the means that the study compares: the paper's if given, simulated, real."""
    assert outcome.real is not None
    how = outcome.real.beside
    real, simulated = (outcome.columns[n].frames[how.part][how.frame] for n in (REAL, SIMULATED))
    found = means(real, simulated, how.factors, how.metrics)
    if how.paper is not None:
        known = how.paper()
        cells = found[list(how.factors)].itertuples(index=False, name=None)
        theirs = [known.get(tuple(cell), float("nan")) for cell in cells]
        found.insert(len(how.factors) + 1, "paper", theirs)
    return found if len(how.metrics) > 1 else found.drop(columns="metric")


def rows(outcome: Outcome) -> list[dict[str, str]]:
    """Returns the same means as texts with units."""
    assert outcome.real is not None
    how = outcome.real.beside

    def shown(row: dict[Any, Any], column: str) -> str:
        metric = row.get("metric", how.metrics[0])
        return value(row[column], outcome.units.get(metric, how.unit), metric)

    return [
        {
            **{str(k): str(row[k]) for k in (*how.factors, "metric") if k in row},
            **{k: shown(row, k) for k in ("paper", SIMULATED, REAL) if k in row},
            RATIO: f"{row[RATIO]:.2f}",
            RUNS: str(row[RUNS]),
        }
        for row in beside(outcome).to_dict("records")
    ]


def verdicts(outcome: Outcome) -> list[dict[str, str]]:
    """Returns each claim's verdicts in both columns as texts."""

    def told(judgement: Judgement | None) -> tuple[str, str]:
        if judgement is None:
            return "cannot be simulated", ""
        word = BADGES[judgement.verdict][0]
        if not judgement.findings or not math.isfinite(decisive(judgement).interval.low):
            return judgement.note, word
        plain = judgement.claim.kind in ("mean", "all", "difference")
        metric = judgement.claim.metric if plain else ""
        unit = outcome.units.get(metric, "1")
        return interval(decisive(judgement).interval, unit, metric), word

    def engines(claim: Claim) -> str:
        found = outcome.agreement.get(claim.id)
        if found is None:
            return ""
        word = AGREE[found.verdict]
        ends = decisive(found).interval
        return f"{word}: {ends}" if math.isfinite(ends.low) else f"{word}: {found.note}"

    here = outcome.in_simulation
    return [
        dict(
            zip(
                VERDICTS,
                (j.claim.text, *told(here.get(j.claim.id)), *told(j), engines(j.claim)),
                strict=True,
            )
        )
        for j in outcome.judgements
    ]
