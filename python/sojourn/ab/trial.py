"""The trial of two programs: pairs in random order, the noise of A against itself, the verdict.

Differences are logarithms of ratios, positive if B is worse.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

from sojourn.metrics import Direction, percent
from sojourn.stats import Interval
from sojourn.stats.repeated import MOST, PILOT, POWER, Design, noise_of, planned

Which = Literal["A", "B"]
Verdict = Literal["worse", "better", "equal", "holds", "inconclusive"]
Measure = Callable[[Which, int], float | None]
"""Function that runs a program with a seed; returns its number, or `None` if a run is not valid."""
SMALLEST = 0.03
"""Default of the smallest difference of interest, as a share."""
PATIENCE = 2
"""Pairs that may be not valid, as a multiple of the valid pairs."""


class TrialError(RuntimeError):
    """The programs cannot be compared."""


@dataclass(frozen=True)
class Question:
    """The question of a trial."""

    better: Direction = "lower"
    """Whether lower or higher numbers are better."""
    smallest: float = SMALLEST
    """Smallest difference of interest, as a share of A's number."""
    margin: float | None = None
    """Share by which B may be worse; `None`: B and A are compared."""
    most: int = MOST
    """Largest number of pairs."""

    @property
    def limit(self) -> float:
        """Returns the margin, or else the smallest difference of interest, as a difference."""
        if self.margin is None:  # neither number is more than this share above the other
            return math.log1p(self.smallest)
        return math.log1p(self.margin) if self.better == "lower" else -math.log1p(-self.margin)

    def difference(self, a: float, b: float) -> float:
        """Returns the difference of two numbers; raises `TrialError` unless both are positive."""
        if not (a > 0 and b > 0):
            raise TrialError(f"only numbers above 0 have a ratio; found {min(a, b):g}")
        more = math.log(b) - math.log(a)
        return more if self.better == "lower" else -more

    def verdict(self, found: Interval) -> Verdict:
        """Returns what an interval of the difference decides."""
        if self.margin is not None:
            if found.low > self.limit:
                return "worse"
            return "holds" if found.high <= self.limit else "inconclusive"
        if -self.limit <= found.low and found.high <= self.limit:
            return "equal"
        return "worse" if found.low > 0 else "better" if found.high < 0 else "inconclusive"

    def change(self, found: Interval) -> Interval:
        """Returns B's number relative to A's, minus 1, from the difference with its interval."""
        sign = 1 if self.better == "lower" else -1
        low, high = sorted(_share(sign * x) for x in (found.low, found.high))
        return Interval(_share(sign * found.estimate), low, high, found.level, found.n)


def _share(difference: float) -> float:
    return math.expm1(min(difference, 700.0))


@dataclass(frozen=True)
class Pair:
    """A run of each program with one seed."""

    seed: int
    order: Literal["AB", "BA", "AA"]
    """The program that ran first, then the other one."""
    values: tuple[float, float]
    """Number of A, then of B (or of A again)."""


@dataclass
class Trial:
    """A trial with its results so far."""

    question: Question
    seed: int
    """Seed of the order within pairs; those of the runs follow."""
    noise: float = math.nan
    """Standard deviation of the difference of A and itself."""
    design: Design = field(default_factory=lambda: Design((1,)))
    pilot: list[Pair] = field(default_factory=list)
    """Pairs of A with itself."""
    pairs: list[Pair] = field(default_factory=list)
    excluded: int = 0
    """Number of pairs with a run that is not valid."""
    interval: Interval = field(
        default_factory=lambda: Interval(math.nan, -math.inf, math.inf, 0.95, 0)
    )
    """The difference at the last look."""
    verdict: Verdict = "inconclusive"

    @property
    def change(self) -> Interval:
        """Returns B's number relative to A's, minus 1, with its interval."""
        return self.question.change(self.interval)

    @property
    def floor(self) -> float:
        """Returns the noise as a share: the typical difference of two runs of A."""
        return _share(self.noise)

    @property
    def found(self) -> float:
        """Returns the share that all planned pairs find with the probability `POWER`."""
        return _share(self.design.found(self.noise))

    @property
    def alike(self) -> bool:
        """Returns whether all pairs are equal, as in virtual time if nothing varies."""
        return len(self.pairs) > 1 and len({pair.values for pair in self.pairs}) == 1

    def median(self, which: Which) -> float:
        """Returns the median of a program's numbers."""
        return median(pair.values["AB".index(which)] for pair in self.pairs)

    def plan(self) -> str:
        """Returns the planned number of pairs in words."""
        size = f"a difference of {percent(self.found)}"
        return (
            f"two runs of A differ by {percent(self.floor)} (noise floor, {len(self.pilot)} "
            f"pairs); at most {self.design.most} pairs find {size} with probability {POWER:g}"
        )


def trial(
    measure: Measure,
    question: Question,
    seed: int = 1,
    *,
    repeats: bool = False,
    tell: Callable[[Trial], object] = lambda _: None,
) -> Trial:
    """Compares two programs; `tell` is called after each pair.

    `repeats` states that runs with one seed are equal, so that the noise comes from the seeds.
    """
    made = Trial(question, seed)
    draw = random.Random(seed)  # noqa: S311 - order of runs
    number = seed
    if not repeats:  # fills the caches of files and programs
        measure("A", number)
        measure("B", number)

    def add(to: list[Pair], names: tuple[Which, Which]) -> None:
        nonlocal number
        while True:
            number += 1
            swapped = draw.random() < 0.5
            seeds = (number, number + 1) if repeats and names == ("A", "A") else (number, number)
            number = seeds[1]
            values: dict[int, float | None] = {}
            for i in (1, 0) if swapped else (0, 1):
                values[i] = measure(names[i], seeds[i])
            tell(made)
            a, b = values[0], values[1]
            if a is not None and b is not None:
                question.difference(a, b)
                order: Literal["AB", "BA", "AA"] = "BA" if swapped else "AB"
                order = "AA" if names == ("A", "A") else order
                to.append(Pair(seeds[0], order, (a, b)))
                return
            made.excluded += 1
            if made.excluded > PATIENCE * (len(made.pilot) + len(made.pairs)) + PILOT:
                raise TrialError(
                    f"{made.excluded} pairs have a run that is not valid: leave the machine idle, "
                    "or use `--engine linux`"
                )

    for _ in range(min(PILOT, question.most)):
        add(made.pilot, ("A", "A"))
    made.noise = noise_of([question.difference(*pair.values) for pair in made.pilot])
    made.design = planned(made.noise, question.limit, question.most)
    tell(made)
    for look in made.design.looks:
        while len(made.pairs) < look:
            add(made.pairs, ("A", "B"))
        made.interval = made.design.interval([question.difference(*p.values) for p in made.pairs])
        made.verdict = question.verdict(made.interval)
        if made.verdict != "inconclusive":
            break
    return made
