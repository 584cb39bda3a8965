"""Measures what intervals cover that are read when they are narrow enough, for the page on it.

    python -m tests.stats.precision [REPETITIONS]

prints anew the tables of docs/background/precision.md. The seed of each row is its number.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sojourn.stats.sequential import look, looks

PAGE = Path(__file__).resolve().parents[2] / "docs" / "background" / "precision.md"
BAND = (0.936, 0.964)
"""Where the coverage of 1000 repetitions lies if nominal 95 % is true."""
MOST, LONGEST = 1000, 454
"""Runs at most, of one distribution and in comparisons."""
TARGETS = (0.5, 0.25, 0.12)
"""Half widths wanted, in standard deviations."""
Draw = Callable[[np.random.Generator, int], npt.NDArray[np.float64]]


@dataclass(frozen=True)
class Kind:
    """A distribution of values of runs."""

    name: str
    mean: float
    deviation: float
    draw: Draw
    met: bool = True
    """Whether the page promises the band."""


def lognormal(sigma: float) -> tuple[float, float]:
    """Mean and standard deviation."""
    square = math.exp(sigma**2)
    return math.sqrt(square), math.sqrt((square - 1) * square)


def inflated(zeros: float, mean: float, deviation: float) -> tuple[float, float]:
    """Mean and standard deviation of what is zero so often."""
    kept = 1 - zeros
    return kept * mean, math.sqrt(kept * (deviation**2 + mean**2) - (kept * mean) ** 2)


def modes(share: float) -> tuple[float, float]:
    """Mean and standard deviation of 1 with so large a share and 3, each give or take 0.4."""
    return 3 - 2 * share, math.sqrt(4 * share * (1 - share) + 0.16)


def of_modes(share: float) -> Draw:
    """Draws of these."""
    return lambda r, n: np.where(r.random(n) < share, 1.0, 3.0) + r.normal(0, 0.4, n)


def of_zeros(zeros: float, draw: Draw) -> Draw:
    """Draws that are zero so often."""
    return lambda r, n: draw(r, n) * (r.random(n) >= zeros)


def exponential(r: np.random.Generator, n: int) -> npt.NDArray[np.float64]:
    """Draws of mean 1."""
    return r.exponential(1, n)


def halved(r: np.random.Generator, n: int) -> npt.NDArray[np.float64]:
    """Draws of lognormal values with sigma 0.5."""
    return r.lognormal(0, 0.5, n)


def often_equal(r: np.random.Generator, n: int) -> npt.NDArray[np.float64]:
    """Draws of differences of what is zero in 60 % of runs."""
    draw = of_zeros(0.6, exponential)
    return draw(r, n) - draw(r, n)


KINDS = (
    Kind("normal", 5, 1, lambda r, n: r.normal(5, 1, n)),
    Kind("uniform", 1.5, 12**-0.5, lambda r, n: r.uniform(1, 2, n)),
    Kind("skewed: lognormal, σ 0.5", *lognormal(0.5), halved),
    Kind("skewed: gamma, shape 2", 2, 2**0.5, lambda r, n: r.gamma(2, 1, n)),
    Kind("skewed: exponential", 1, 1, exponential),
    Kind("skewed to the left: 9 − gamma", 7, 2**0.5, lambda r, n: 9 - r.gamma(2, 1, n)),
    Kind("heavy-tailed: Laplace", 5, 2**0.5, lambda r, n: r.laplace(5, 1, n)),
    Kind(
        "heavy-tailed: t with 5 degrees of freedom",
        9,
        (5 / 3) ** 0.5,
        lambda r, n: 9 + r.standard_t(5, n),
    ),
    Kind(
        "heavy-tailed: t with 3 degrees of freedom", 9, 3**0.5, lambda r, n: 9 + r.standard_t(3, n)
    ),
    Kind("30 % zeros, else exponential", *inflated(0.3, 1, 1), of_zeros(0.3, exponential)),
    Kind("50 % zeros, else lognormal", *inflated(0.5, *lognormal(0.5)), of_zeros(0.5, halved)),
    Kind("80 % zeros, else exponential", *inflated(0.8, 1, 1), of_zeros(0.8, exponential)),
    Kind("90 % zeros, else lognormal", *inflated(0.9, *lognormal(0.5)), of_zeros(0.9, halved)),
    Kind("two modes, 50 : 50", *modes(0.5), of_modes(0.5)),
    Kind("two modes, 70 : 30", *modes(0.7), of_modes(0.7)),
    Kind("two modes, 90 : 10", *modes(0.9), of_modes(0.9)),
    Kind("difference of exponentials", 0, 2**0.5, lambda r, n: r.laplace(0, 1, n)),
    Kind("difference, zero in 36 %", 0, (2 * (0.4 * 2 - 0.16)) ** 0.5, often_equal),
    Kind("two modes, 80 : 20", *modes(0.8), of_modes(0.8)),
    Kind("lognormal, σ 1", *lognormal(1), lambda r, n: r.lognormal(0, 1, n), met=False),
    Kind("Pareto, exponent 5", 1.25, (5 / 48) ** 0.5, lambda r, n: 1 + r.pareto(5, n), met=False),
    Kind("Pareto, exponent 3", 1.5, 0.75**0.5, lambda r, n: 1 + r.pareto(3, n), met=False),
)


@dataclass(frozen=True)
class Found:
    """The results of repetitions of a rule."""

    covered: float
    """Share of the intervals that hold the true mean, of those that were narrow enough."""
    runs: float
    """Mean number of runs."""
    reached: float
    """Share of the repetitions that came to an end before the maximum."""


def measured(
    kind: Kind, target: float, repetitions: int, seed: int, *, share: bool = False
) -> Found:
    """Repeat the rule with a half width in standard deviations, or that share of the mean."""
    rng = np.random.default_rng(seed)
    wanted = target * kind.deviation
    hits = reached = runs = 0
    for _ in range(repetitions):
        values = kind.draw(rng, MOST)
        for n in looks(MOST):
            found = look(values[:n])
            if share:
                wanted = target * kind.deviation / abs(kind.mean) * abs(found.interval.estimate)
            if found.enough(wanted):
                reached += 1
                hits += kind.mean in found.interval
                break
        runs += n
    covered = hits / reached if reached else math.nan
    return Found(covered, runs / repetitions, reached / repetitions)


def told_apart(kind: Kind, target: float, repetitions: int, seed: int, queues: int = 4) -> float:
    """Share of the comparisons that call any two of some equal queues different."""
    rng = np.random.default_rng(seed)
    pairs = list(combinations(range(queues), 2))
    level = 1 - 0.05 / len(pairs)
    wrong = 0
    for _ in range(repetitions):
        # Half of the variance comes from the seed, and is the same for all.
        common = kind.draw(rng, LONGEST)
        values = [common + kind.draw(rng, LONGEST) for _ in range(queues)]
        for n in looks(LONGEST):
            found = [look((values[a] - values[b])[:n], level) for a, b in pairs]
            if all(one.enough(target * kind.deviation) for one in found):
                break
        wrong += any(0.0 not in one.interval for one in found)
    return wrong / repetitions


def cell(found: Found) -> str:
    """Return the coverage and the runs, marked where the coverage is outside the band."""
    text = f"{100 * found.covered:.1f}"
    low, high = BAND
    if not low <= round(found.covered, 3) <= high:
        text = f"**{text}**"
    part = "" if found.reached > 0.995 else f", {100 * found.reached:.0f} %"
    return f"{text} ({found.runs:.0f}{part})"


def coverage(repetitions: int) -> Iterator[str]:
    """Yield the rows of the first table."""
    heads = [f"± {target:g} s" for target in TARGETS]
    yield f"| values | {' | '.join(heads)} | ± {TARGETS[1]:g} s as a share of the mean |"
    yield "|---|" + "---|" * (len(TARGETS) + 1)
    for seed, kind in enumerate(KINDS, 1):
        cells = [cell(measured(kind, target, repetitions, seed)) for target in TARGETS]
        relative = measured(kind, TARGETS[1], repetitions, seed, share=True) if kind.mean else None
        yield f"| {kind.name} | {' | '.join(cells)} | {cell(relative) if relative else '–'} |"


def equal_queues(repetitions: int) -> Iterator[str]:
    """Yield the rows of the second table."""
    targets = TARGETS[:2]
    yield f"| values | {' | '.join(f'± {target:g} s' for target in targets)} |"
    yield "|---|" + "---|" * len(targets)
    for seed, kind in enumerate(KINDS, 1):
        if kind.mean and kind.met:
            shares = [told_apart(kind, target, repetitions, seed) for target in targets]
            yield f"| {kind.name} | {' | '.join(f'{100 * share:.1f} %' for share in shares)} |"


def main() -> None:
    """Write the tables into the page."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    for name, rows in (
        ("coverage", coverage(repetitions)),
        ("equal queues", equal_queues(repetitions // 4)),
    ):
        table = "\n".join(rows)
        text = PAGE.read_text("utf-8")
        found = re.search(rf"(?<=<!-- table: {name} -->\n\n).*?(?=\n\n)", text, re.DOTALL)
        assert found is not None, name
        PAGE.write_text(text[: found.start()] + table + text[found.end() :], "utf-8")


if __name__ == "__main__":
    main()
