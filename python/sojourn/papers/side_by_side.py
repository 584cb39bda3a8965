"""Comparison of real and simulated results."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from sojourn.papers.part import Frames
from sojourn.stats import Claim, Interval, Judgement, Region, judge_components, welch_difference
from sojourn.stats._arrays import Floats
from sojourn.stats.estimate import Component, LogComponent, Side, raised
from sojourn.study.cells import Level

SIMULATED, REAL = "simulated", "real"
RATIO = "real / simulated"
RUNS = "real runs"
FEWEST = 5
"""Number of valid wall-clock runs of a cell below which their mean is weak evidence."""
AGREE = {"holds": "agree", "does not hold": "differ", "cannot be told": "undecided"}
"""Whether two engines agree, by the verdict on the claim that their ratio is within the margin."""
_HOLE = "\0"
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
Quantified = list[tuple[Claim, list[Component]]]
"""Claims, each with the quantities on which it is judged."""


class UnpairedRatio(Component):
    """The ratio of a quantity in two engines whose runs are not paired by seed.

    The jackknife gives a value of the quantity's logarithm for each run of each engine. Welch's
    interval compares the means of these values.
    """

    def __init__(self, real: Component, simulated: Component, margin: float) -> None:
        super().__init__(real.label, Region(1 / (1 + margin), 1 + margin), _logs(real))
        self.other = _logs(simulated)

    def problem(self) -> str | None:
        """Returns why the ratio cannot be computed; `None` if it can.

        Each engine needs two runs, and the quantity must be positive.
        """
        if min(self.n, self.other.size) < 2:
            return f"{self.label}: two runs of each engine are required; run more seeds"
        if not (np.isfinite(self.values).all() and np.isfinite(self.other).all()):
            return f"{self.label}: a value is not above zero, so the ratio is undefined"
        return None

    def z(self, bound: float) -> Floats:
        """Returns the real runs' logarithms, less the simulated mean and the bound's logarithm."""
        return self.values - float(self.other.mean()) - math.log(bound)

    def side(self, bound: float) -> Side:
        """Returns the side of the bound on which the ratio is, with the p value of Welch's test."""
        test = welch_difference(self.values - math.log(bound), self.other)
        return Side(int(np.sign(test.interval.estimate)), test.p)

    def interval(self, level: float) -> Interval:
        """Returns Welch's interval of the ratio, on the original scale."""
        return raised(welch_difference(self.values, self.other, level).interval)

    def shrinks(self) -> bool | None:
        """Returns `None`, because the required number of seeds is not estimated for two engines."""
        return None


def _logs(component: Component) -> Floats:
    """Returns the jackknife values of a quantity's logarithm, one for each seed.

    All are NaN if a value of the quantity is not positive.
    """
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


def agreement(real: Quantified, simulated: Quantified, margin: float) -> dict[str, Judgement]:
    """Returns, by claim, whether the ratio of real to simulated results is within the margin.

    The engines *agree* if the ratio's interval is inside the margin, and *differ* if the interval
    is outside. Otherwise they are undecided. One alpha applies to all claims together.
    """
    here = {claim.id: components for claim, components in simulated}
    pairs: Quantified = []
    for claim, components in real:
        known = {c.label: c for c in here.get(claim.id, ())}
        both = [(c, known[c.label]) for c in components if c.label in known]
        if both:
            pairs.append((claim, [UnpairedRatio(*pair, margin) for pair in both]))
    return {j.claim.id: j for j in judge_components(pairs)}


@dataclass(frozen=True)
class WallClock:
    """Numbers of runs and load: the strength of the evidence of real runs in wall-clock time."""

    fewest: int
    """Smallest number of valid runs of a cell."""
    valid: int
    """Number of valid runs of all parts."""
    runs: int
    """Number of runs of all parts, including invalid runs."""
    load: tuple[float, float]
    """Lowest and highest one-minute load average of the machine during the runs."""

    @classmethod
    def of(cls, runs: Sequence[tuple[str, bool, float]]) -> WallClock | None:
        """Returns the numbers from the cell, validity and load of each run.

        Returns `None` if there are no runs.
        """
        if not runs:
            return None
        cells = Counter({cell: 0 for cell, _, _ in runs})
        cells.update(cell for cell, valid, _ in runs if valid)
        loads = [load for _, _, load in runs]
        return cls(min(cells.values()), cells.total(), len(runs), (min(loads), max(loads)))

    def __str__(self) -> str:
        few = f" (fewer than {FEWEST} are weak evidence)" if self.fewest < FEWEST else ""
        low, high = self.load
        return (
            f"wall clock: {self.valid} of {self.runs} runs valid, at least {self.fewest} for each "
            f"cell{few}; load average of the machine {low:.1f} to {high:.1f}"
        )


def merged(reasons: Iterable[str]) -> dict[str, tuple[int, set[str]]]:
    """Returns reasons, those that differ in numbers only as one, with the range of each number.

    A text has the number of its reasons, and the reasons without duplicates.
    """
    alike: dict[str, list[str]] = {}
    for reason in reasons:
        alike.setdefault(_NUMBER.sub(_HOLE, reason), []).append(reason)
    found = {}
    for text, listed in alike.items():
        numbers = [list(map(float, _NUMBER.findall(reason))) for reason in listed]
        ends = [(min(column), max(column)) for column in zip(*numbers, strict=True)]
        ranges = [f"{a:g}" if a == b else f"{a:g} to {b:g}" for a, b in ends]
        words = [w for pair in zip(text.split(_HOLE), [*ranges, ""], strict=True) for w in pair]
        found["".join(words)] = len(listed), set(listed)
    return found


def ratio(a: float, b: float) -> float:
    """Returns a / b: 1 if both are equal, even zero, and NaN if only `b` is zero."""
    if a == b:
        return 1.0
    return float(a / b) if b else float("nan")


@dataclass(frozen=True, kw_only=True)
class MeansTable:
    """Specification of the table that compares the means of real and simulated runs."""

    part: str
    """Name of the part with the runs."""
    factors: Sequence[str]
    """Factors whose levels identify a row of the table."""
    metrics: Sequence[str]
    """Metrics whose means are compared."""
    frame: str = ""
    """Name of the table among the part's tables."""
    paper: Callable[[], Mapping[tuple[Level, ...], float]] | None = None
    """Function that returns the paper's own values by levels of `factors`; `None` without such
    values.
    """
    unit: str = ""
    """Unit of the metrics whose unit is in no table of the runs."""
    margin: float = 0.15
    """Relative margin within which two engines agree on a claim.

    The margin was fixed before the first run.
    """


def means(
    real: pd.DataFrame, simulated: pd.DataFrame, factors: Sequence[str], metrics: Sequence[str]
) -> pd.DataFrame:
    """Returns a row for each cell and metric: the simulated mean, the real mean and their ratio.

    The row also has the number of real runs.
    """
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


def beside(
    frame: pd.DataFrame, how: MeansTable, quantity: Callable[[Mapping[str, Level]], str]
) -> pd.DataFrame:
    """Returns the published means of a metric and ours, for `sojourn.papers.rule.nearness`.

    `frame` has our runs, and `quantity` names the quantity of a cell, given its levels.
    """
    assert how.paper is not None
    ours = frame.groupby(list(how.factors), sort=False)[how.metrics[0]].mean()
    rows = [
        (quantity(dict(zip(how.factors, cell, strict=True))), value, float(ours.loc[cell]))
        for cell, value in how.paper().items()
        if cell in ours.index
    ]
    return pd.DataFrame(rows, columns=["quantity", "paper", "ours"])


def compared_means(
    how: MeansTable, real: Mapping[str, Frames], simulated: Mapping[str, Frames]
) -> pd.DataFrame:
    """Returns the means that a real study compares: published (if known), simulated and real.

    `real` and `simulated` have the derived tables of both engines by part.
    """
    there, here = (frames[how.part][how.frame] for frames in (real, simulated))
    found = means(there, here, how.factors, how.metrics)
    if how.paper is not None:
        known = how.paper()
        cells = found[list(how.factors)].itertuples(index=False, name=None)
        theirs = [known.get(tuple(cell), float("nan")) for cell in cells]
        found.insert(len(how.factors) + 1, "paper", theirs)
    return found if len(how.metrics) > 1 else found.drop(columns="metric")
