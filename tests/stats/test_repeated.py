"""Repeated intervals of paired differences: error rates, power, published values."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import accumulate

import numpy as np
import pytest
from scipy import stats as reference

from sojourn.ab.trial import Question, Trial, Which, trial
from sojourn.stats import StatisticsError
from sojourn.stats.repeated import PILOT, Design, critical, planned, typical

Draw = Callable[[np.random.Generator], Callable[[], float]]


def normal(noise: float) -> Draw:
    return lambda random: lambda: 1.0 + noise * random.standard_normal()


def lognormal(noise: float) -> Draw:
    return lambda random: lambda: float(random.lognormal(0.0, noise))


def heavy(noise: float) -> Draw:
    return lambda random: lambda: math.exp(noise / 2 * random.standard_t(2))


def spikes(noise: float) -> Draw:
    """Every tenth run is much longer."""

    def sampler(random: np.random.Generator) -> Callable[[], float]:
        def value() -> float:
            late = random.exponential(0.5) if random.random() < 0.1 else 0.0
            return 1.0 + noise * random.standard_normal() / 3 + late

        return value

    return sampler


def drift(noise: float) -> Draw:
    """The machine becomes slower, and its speed walks at random."""

    def sampler(random: np.random.Generator) -> Callable[[], float]:
        steps = accumulate(0.003 + 0.02 * random.standard_normal() for _ in iter(int, 1))
        return lambda: math.exp(next(steps) + noise * random.standard_normal() / 2)

    return sampler


def compared(draw: Draw, seed: int, ratio: float = 1.0, **asked: float) -> Trial:
    value = draw(np.random.default_rng(seed))

    def measure(which: Which, number: int) -> float:
        return value() * (ratio if which == "B" else 1.0)

    return trial(measure, Question(**asked), seed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "draw", [normal(0.03), lognormal(0.03), heavy(0.04), spikes(0.03), drift(0.04)]
)
def test_equal_programs_rarely_differ_and_three_percent_is_found(draw: Draw) -> None:
    wrong = {"worse", "better"}
    equal = [compared(draw, seed).verdict for seed in range(2000)]
    assert sum(verdict in wrong for verdict in equal) <= 0.065 * 2000
    assert sum(verdict == "equal" for verdict in equal) >= 0.75 * 2000
    worse = [compared(draw, seed, 1.03) for seed in range(500)]
    # The plan says with how many pairs 3 % is found, and finds it with probability 0.9.
    able = [one for one in worse if one.found <= 0.03]
    assert sum(one.verdict == "worse" for one in worse) >= 0.9 * len(worse)
    assert len(able) > 0.3 * len(worse)


def test_b_at_the_margin_rarely_passes_or_fails() -> None:
    found = [compared(normal(0.02), n, 1.03, margin=0.03, most=60).verdict for n in range(1000)]
    assert found.count("holds") <= 0.04 * 1000
    assert found.count("worse") <= 0.04 * 1000
    equal = [compared(normal(0.02), n, margin=0.03).verdict for n in range(300)]
    assert equal.count("holds") >= 0.9 * 300


def test_intervals_cover_at_all_looks_together() -> None:
    random = np.random.default_rng(5)
    design = Design((8, 12, 18, 27, 40))
    missed = 0
    for _ in range(2000):
        values = list(random.standard_t(3, 40) + 0.5)
        missed += any(0.5 not in design.interval(values[:n]) for n in design.looks)
    assert 0.02 * 2000 < missed < 0.06 * 2000


def test_bounds_are_pococks() -> None:
    # Jennison and Turnbull 2000, table 2.1: constants for equally spaced looks.
    assert critical((10,)) == pytest.approx(1.960, abs=0.001)
    assert critical((10, 20, 30)) == pytest.approx(2.289, abs=0.001)
    assert critical((10, 20, 30, 40, 50)) == pytest.approx(2.413, abs=0.001)


def test_the_interval_is_that_of_the_signed_rank_test() -> None:
    values = np.array([0.3, -0.1, 0.7, 1.2, 0.5, -0.4, 0.9, 0.25, 0.6, 1.1])
    found = typical(values, 0.95)
    for limit in (found.low, found.high):
        inside, outside = limit + 1e-9, limit - 1e-9
        p = [reference.wilcoxon(values - x, method="exact").pvalue for x in (inside, outside)]
        assert min(p) <= 0.05 < max(p)
    assert found.low < found.estimate < found.high
    assert typical([1.0, 2.0], 0.95).low == -math.inf


def test_the_plan_follows_the_noise() -> None:
    assert planned(0.001, 0.03).looks == (8, 12)
    assert planned(0.05, 0.03).most > planned(0.03, 0.03).most
    assert planned(10.0, 0.03, 50).most == 50
    assert planned(0.05, 0.03).found(0.05) <= 0.03
    with pytest.raises(StatisticsError, match="above 0"):
        planned(0.01, 0.0)
    with pytest.raises(StatisticsError, match="too few"):
        planned(0.01, 0.03, PILOT - 1)
