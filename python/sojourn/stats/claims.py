"""Claims: published findings as data, with the quantities on which they are judged.

A claim names a metric, the compared levels of factors, and the predicted region including a margin.
Values are those of independent runs, paired by seed. The verdict is *holds* if the quantity's
interval is wholly inside the region, *does not hold* if it is wholly outside, and otherwise *cannot
be told*. Holm's correction determines the confidence level of each interval, so that alpha applies
to all claims of a study together. A claim about several quantities holds if all are inside; this
needs no correction, because the worst decides. It does not hold if at least one is outside after
Bonferroni's correction among the quantities of the claim.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from sojourn.stats._arrays import Floats
from sojourn.stats.cells import (
    Cell,
    ClaimError,
    Level,
    aligned,
    by_seed,
    describe,
    describe_pair,
    levels,
)
from sojourn.stats.estimate import (
    Component,
    DifferenceComponent,
    LogComponent,
    RatioComponent,
    Region,
)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The common base of all kinds of claims."""

    id: str
    """Identifier, which is unique in a study."""
    text: str
    """The finding in words."""
    metric: str
    """Metric on which the claim is judged."""
    published: str = ""
    """Words or numbers of the paper that state the finding."""
    as_published: Region | None = None
    """Region that the paper's sentence states, if it is narrower than the claim's region.

    The paper's own numbers are compared with this region, and runs with the claim's region.
    """
    reading: str = ""
    """Name of the paper's reading under which the claim is judged; the identifier ends with it."""
    kind: ClassVar[str] = ""

    @property
    def finding(self) -> str:
        """Returns the identifier without the reading; all readings of a finding share it."""
        return self.id.removesuffix(f"-{self.reading}") if self.reading else self.id

    @property
    def parts(self) -> tuple[Claim, ...]:
        """Returns the parts of a conjunction; for other kinds, the claim itself."""
        return (self,)

    def components(self, frame: pd.DataFrame) -> list[Component]:
        """Returns the quantities of the claim, computed from a study's table."""
        raise NotImplementedError


def _expand(frame: pd.DataFrame, each: str | None, *cells: Cell) -> list[tuple[str, list[Cell]]]:
    """Returns the cells, or the cells at each level of factor `each`, with a text for labels."""
    if each is None:
        return [("", [*cells])]
    chosen: list[Level] | None = None
    for cell in cells:
        if each in cell:
            given = cell[each]
            chosen = [given] if isinstance(given, (str, int, float, bool)) else list(given)
    out: list[tuple[str, list[Cell]]] = [
        (f" at {each} {level}", [{**cell, each: level} for cell in cells])
        for level in (chosen if chosen is not None else levels(frame, each))
    ]
    return out


def _pair(claim: Ratio | Difference, sign: str, where: str) -> str:
    """Describes the two cells of a claim; `where` states the level of the factor `each`."""
    a, b = ({k: v for k, v in cell.items() if k != claim.each} for cell in (claim.a, claim.b))
    return describe_pair(a, sign, b, where)


Scale = Literal["mean", "geometric"]
"""Kind of a ratio: the ratio of means, or the geometric mean of the ratios by seed."""


def _ratio(label: str, region: Region, x: Floats, y: Floats, n: int, scale: Scale) -> Component:
    """Returns the ratio of the values of two cells, paired by seed.

    On the geometric scale the ratio is undefined if a value is zero. If the region's only limit is
    1, the difference is then compared with zero; otherwise the ratio of means is used.
    """
    if scale == "mean":
        return RatioComponent(label, region, x, y, n)
    if x.size and min(x.min(), y.min()) > 0:
        return LogComponent(label, region, np.log(x / y), n)
    if region.bounds() == (1.0,):
        sides = (0.0 if math.isfinite(b) else b for b in (region.low, region.high))
        return DifferenceComponent(f"{label}, difference", Region(*sides), x - y, n)
    return RatioComponent(label, region, x, y, n)


@dataclass(frozen=True, kw_only=True)
class MeanIn(Claim):
    """The mean of a cell is in a region."""

    kind: ClassVar[str] = "mean"
    cell: Cell = field(default_factory=dict)
    region: Region
    each: str | None = None
    """Factor at each level of which the claim must hold; `None` without such a factor."""

    def components(self, frame: pd.DataFrame) -> list[Component]:
        """Returns a quantity for each level of the factor `each`."""
        found: list[Component] = []
        for where, (cell,) in _expand(frame, self.each, self.cell):
            (x,), dropped = aligned(by_seed(frame, self.metric, cell))
            found.append(Component(describe(self.cell) + where, self.region, x, dropped))
        return found


@dataclass(frozen=True, kw_only=True)
class Ratio(Claim):
    """The ratio of two cells' means is in a region."""

    kind: ClassVar[str] = "ratio"
    a: Cell
    b: Cell
    region: Region
    each: str | None = None
    scale: Scale = "mean"

    def components(self, frame: pd.DataFrame) -> list[Component]:
        """Returns a quantity for each level of the factor `each`."""
        found: list[Component] = []
        for where, (a, b) in _expand(frame, self.each, self.a, self.b):
            (x, y), n = aligned(by_seed(frame, self.metric, a), by_seed(frame, self.metric, b))
            label = _pair(self, "/", where)
            found.append(_ratio(label, self.region, x, y, n, self.scale))
        return found


@dataclass(frozen=True, kw_only=True)
class Difference(Claim):
    """The difference of two cells' means, a - b, is in a region."""

    kind: ClassVar[str] = "difference"
    a: Cell
    b: Cell
    region: Region
    each: str | None = None

    def components(self, frame: pd.DataFrame) -> list[Component]:
        """Returns a quantity for each level of the factor `each`."""
        found: list[Component] = []
        for where, (a, b) in _expand(frame, self.each, self.a, self.b):
            (x, y), n = aligned(by_seed(frame, self.metric, a), by_seed(frame, self.metric, b))
            label = _pair(self, "-", where)
            found.append(DifferenceComponent(label, self.region, x - y, n))
        return found


@dataclass(frozen=True, kw_only=True)
class AllIn(Claim):
    """The means of several cells are all in one region."""

    kind: ClassVar[str] = "all"
    cells: tuple[Cell, ...]
    region: Region

    def components(self, frame: pd.DataFrame) -> list[Component]:
        """Returns a quantity for each cell."""
        found: list[Component] = []
        for cell in self.cells:
            (x,), dropped = aligned(by_seed(frame, self.metric, cell))
            found.append(Component(describe(cell), self.region, x, dropped))
        return found


@dataclass(frozen=True, kw_only=True)
class PracticallyEqual(Claim):
    """Every two levels of a factor are equal within a relative margin."""

    kind: ClassVar[str] = "equal"
    among: str
    margin: float
    cell: Cell = field(default_factory=dict)
    each: str | None = None

    def components(self, frame: pd.DataFrame) -> list[Component]:
        """Returns a quantity for each pair of levels of `among`, at each level of `each`."""
        given = self.cell.get(self.among)
        rest = {k: v for k, v in self.cell.items() if k != self.among}
        names = levels(frame, self.among) if given is None else list(_many(given))
        if len(names) < 2:
            raise ClaimError(f"{self.id}: {self.among} has one level; two are required")
        region = Region(1 / (1 + self.margin), 1 + self.margin)
        found: list[Component] = []
        for where, (cell,) in _expand(frame, self.each, rest):
            series = {m: by_seed(frame, self.metric, {**cell, self.among: m}) for m in names}
            for a, b in combinations(names, 2):
                (x, y), n = aligned(series[a], series[b])
                found.append(RatioComponent(f"{a} / {b}{where}", region, x, y, n))
        return found


@dataclass(frozen=True, kw_only=True)
class Monotone(Claim):
    """The mean of a cell rises (or falls) with the levels of a factor.

    From the first to the last level it changes by at least `at_least`, and between consecutive
    levels it changes against the trend by at most `tolerance`. Both are relative.
    """

    kind: ClassVar[str] = "monotone"
    over: str
    direction: Literal["rises", "falls"]
    cell: Cell = field(default_factory=dict)
    at_least: float = 0.0
    tolerance: float = 0.05
    scale: Scale = "mean"

    def components(self, frame: pd.DataFrame) -> list[Component]:
        """Returns the ratio of the last to the first level, and of consecutive levels."""
        if self.direction not in ("rises", "falls"):
            raise ClaimError(f"{self.id}: direction must be rises or falls, not {self.direction!r}")
        given = self.cell.get(self.over)
        rest = {k: v for k, v in self.cell.items() if k != self.over}
        steps = levels(frame, self.over) if given is None else list(_many(given))
        if len(steps) < 2:
            raise ClaimError(f"{self.id}: {self.over} has one level; a trend needs two")
        series = {s: by_seed(frame, self.metric, {**rest, self.over: s}) for s in steps}
        up = self.direction == "rises"
        whole = Region(1 + self.at_least, math.inf) if up else Region(0, 1 - self.at_least)
        step = Region(1 - self.tolerance, math.inf) if up else Region(0, 1 + self.tolerance)
        # The lower limit of zero is no condition, because a ratio of positive numbers is above it.
        whole, step = (r if up else Region(-math.inf, r.high) for r in (whole, step))
        ways = [(steps[-1], steps[0], whole)]
        if len(steps) > 2:
            ways += [(b, a, step) for a, b in pairwise(steps)]
        found: list[Component] = []
        for b, a, region in ways:
            (x, y), n = aligned(series[b], series[a])
            found.append(_ratio(f"{self.over} {b} / {a}", region, x, y, n, self.scale))
        return found


@dataclass(frozen=True, kw_only=True)
class Least(Claim):
    """A level of a factor has the smallest (or largest) mean, by a relative margin."""

    kind: ClassVar[str] = "least"
    among: str
    who: Level
    extreme: Literal["smallest", "largest"] = "smallest"
    margin: float = 0.0
    cell: Cell = field(default_factory=dict)
    each: str | None = None
    scale: Scale = "mean"

    def components(self, frame: pd.DataFrame) -> list[Component]:
        """Returns a quantity for each rival of `who`, at each level of `each`."""
        small = self.extreme == "smallest"
        region = Region(high=1 - self.margin) if small else Region(low=1 + self.margin)
        rest = {k: v for k, v in self.cell.items() if k != self.among}
        found: list[Component] = []
        for where, (cell,) in _expand(frame, self.each, rest):
            mine = by_seed(frame, self.metric, {**cell, self.among: self.who})
            for rival in _rivals(frame, self.among, self.who, self.cell):
                (x, y), n = aligned(mine, by_seed(frame, self.metric, {**cell, self.among: rival}))
                label = f"{self.who} / {rival}{where}"
                found.append(_ratio(label, region, x, y, n, self.scale))
        return found


@dataclass(frozen=True, kw_only=True)
class LeastVariation(Claim):
    """The mean at one level of a factor varies least over the levels of another factor.

    The means over the levels of `over` have a variation: `cv` is the standard deviation divided by
    the mean, `range` is the largest minus the smallest divided by the mean, and `deviation` and
    `spread` are these two without the division. The ratio of the variation of `who` to that of each
    rival must be at most 1 - `margin`. It is judged by the jackknife over seeds.
    """

    kind: ClassVar[str] = "least-variation"
    among: str
    who: Level
    over: str
    measure: Literal["cv", "range", "deviation", "spread"] = "cv"
    margin: float = 0.0
    cell: Cell = field(default_factory=dict)

    def components(self, frame: pd.DataFrame) -> list[Component]:
        """Returns a quantity for each rival of `who`."""
        if self.measure not in _VARIATION:
            raise ClaimError(f"{self.id}: measure must be one of {', '.join(_VARIATION)}")
        rest = {k: v for k, v in self.cell.items() if k not in (self.among, self.over)}
        given = self.cell.get(self.over)
        steps = levels(frame, self.over) if given is None else list(_many(given))
        if len(steps) < 2:
            raise ClaimError(f"{self.id}: {self.over} has one level; variation needs two")

        def rows(who: Level) -> list[pd.Series[float]]:
            return [
                by_seed(frame, self.metric, {**rest, self.among: who, self.over: s}) for s in steps
            ]

        region = Region(high=1 - self.margin)
        mine = rows(self.who)
        found: list[Component] = []
        for rival in _rivals(frame, self.among, self.who, self.cell):
            values, n = aligned(*mine, *rows(rival))
            table = np.array(values)
            pseudo = _jackknife_log_ratio(table[: len(steps)], table[len(steps) :], self.measure)
            found.append(LogComponent(f"{self.who} / {rival}", region, pseudo, n))
        return found


_VARIATION = ("cv", "range", "deviation", "spread")


def _many(given: Level | Sequence[Level]) -> tuple[Level, ...]:
    return (given,) if isinstance(given, (str, int, float, bool)) else tuple(given)


def _rivals(frame: pd.DataFrame, among: str, who: Level, cell: Cell) -> list[Level]:
    names = list(_many(cell[among])) if among in cell else levels(frame, among)
    rivals = [m for m in names if m != who]
    if not rivals:
        raise ClaimError(f"{among} {who} has no rival to compare with")
    return rivals


def _variation(means: npt.NDArray[np.float64], measure: str) -> float:
    size = float(means.std(ddof=1) if measure in ("cv", "deviation") else np.ptp(means))
    return size / float(means.mean()) if measure in ("cv", "range") else size


def _jackknife_log_ratio(
    a: npt.NDArray[np.float64],
    b: npt.NDArray[np.float64],
    measure: str,
) -> npt.NDArray[np.float64]:
    """Returns the jackknife pseudo-values of log(variation of a / variation of b), by seed.

    `a` and `b` have a row for each level and a column for each seed.
    """
    n = a.shape[1] if a.ndim == 2 else 0
    if n < 2:
        return np.empty(n)

    def value(keep: npt.NDArray[np.bool_]) -> float:
        va = _variation(a[:, keep].mean(axis=1), measure)
        vb = _variation(b[:, keep].mean(axis=1), measure)
        # Without any variation of `a` or `b`, the logarithm is undefined and gives no verdict.
        return math.log(va / vb) if va > 0 and vb > 0 else math.nan

    everyone = np.ones(n, dtype=np.bool_)
    whole = value(everyone)
    pseudo = np.empty(n)
    for i in range(n):
        keep = everyone.copy()
        keep[i] = False
        pseudo[i] = n * whole - (n - 1) * value(keep)
    return pseudo


@dataclass(frozen=True, kw_only=True)
class Every(Claim):
    """A conjunction: several claims that form one finding and must all hold."""

    kind: ClassVar[str] = "every"
    claims: tuple[Claim, ...]
    metric: str = ""

    @property
    def parts(self) -> tuple[Claim, ...]:
        """Returns the parts of the conjunction."""
        return tuple(part for claim in self.claims for part in claim.parts)

    def components(self, frame: pd.DataFrame) -> list[Component]:
        """Returns the quantities of all parts."""
        found = []
        for claim in self.claims:
            listed = claim.components(frame)
            for component in listed:
                component.part = component.part or claim.text or component.label
            found += listed
        return found


KINDS: dict[str, type[Claim]] = {
    k.kind: k
    for k in (
        MeanIn,
        Ratio,
        Difference,
        AllIn,
        PracticallyEqual,
        Monotone,
        Least,
        LeastVariation,
        Every,
    )
}
"""Classes of claims by the name of the kind."""
