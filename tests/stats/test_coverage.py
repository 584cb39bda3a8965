"""Whether 95 % intervals cover: tested by simulation, not believed."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from sojourn.stats import (
    batch_means,
    mean_interval,
    mean_of_runs,
    median_interval,
    paired_ratio,
    seeds_for_use,
)
from sojourn.stats.claims import _jackknife_log_ratio
from sojourn.stats.effect import standardised_mean
from sojourn.stats.interval import (
    log_half_width,
    paired_difference,
    welch_difference,
)

TRIALS = 3000


def covers(share: float) -> bool:
    return 0.93 <= share <= 0.97


def test_mean_covers() -> None:
    rng = np.random.default_rng(1)
    hits = sum(5.0 in mean_interval(rng.normal(5, 2, 10)) for _ in range(TRIALS))
    assert covers(hits / TRIALS)


Draws = Callable[[np.random.Generator, tuple[int, int]], npt.NDArray[np.float64]]
SKEWED: dict[str, tuple[Draws, float]] = {
    "normal": (lambda rng, size: rng.normal(1, 0.2, size), 1.0),
    "lognormal, 0.25": (lambda rng, size: rng.lognormal(0, 0.25, size), math.exp(0.25**2 / 2)),
    "lognormal, 0.5": (lambda rng, size: rng.lognormal(0, 0.5, size), math.exp(0.5**2 / 2)),
    "gamma, 4": (lambda rng, size: rng.gamma(4, 1, size), 4.0),
    "gamma, 2": (lambda rng, size: rng.gamma(2, 1, size), 2.0),
    "Weibull, 2": (lambda rng, size: rng.weibull(2, size), math.gamma(1.5)),
    "exponential": (lambda rng, size: rng.exponential(1, size), 1.0),
}
"""Draws of positive values, and their mean."""


@pytest.mark.parametrize("kind", SKEWED)
@pytest.mark.parametrize("n", [5, 10, 20, 60])
def test_the_mean_of_skewed_runs_is_covered_by_94_to_96_percent(kind: str, n: int) -> None:
    draw, mean = SKEWED[kind]
    rng = np.random.default_rng(11)
    found = [mean_of_runs(x) for x in draw(rng, (6000, n))]
    assert min(i.low for i in found) > 0
    # Three standard deviations of the share itself are 0.8 %.
    assert 0.932 <= sum(mean in i for i in found) / len(found) <= 0.968


def test_the_mean_of_runs_has_an_interval_above_zero_unless_values_are_negative() -> None:
    """Values of two seeds of a store, whose interval was [-3437.5, 4296.8]."""
    i = mean_of_runs([125.8, 733.6])
    assert i.wide
    assert i.estimate == pytest.approx(429.7)
    assert 0 < i.low < 429.7 < i.high
    assert math.isnan(i.shown.low)
    assert mean_of_runs([0.0, 0.0, 3.0]).low > 0
    assert mean_of_runs([0.0, 0.0]) == mean_interval([0.0, 0.0])
    assert mean_of_runs([-1.0, 0.0, 2.0]) == mean_interval([-1.0, 0.0, 2.0])
    assert mean_of_runs([2.0, 2.0]).half_width == 0
    assert mean_of_runs([math.nan, 2.0]).n == 1
    assert mean_of_runs([math.nan]).n == 0
    # With little variation it is Student's.
    little = [100.0, 101.0, 99.5, 100.4]
    assert mean_of_runs(little).low == pytest.approx(mean_interval(little).low, rel=1e-3)


@pytest.mark.parametrize(
    "values", [[125.8, 733.6], [1.0, 2.0, 9.0], [0.1, 0.2, 3.0, 0.2, 0.1, 8.0]]
)
def test_the_number_of_seeds_for_a_useful_interval_is_the_least(values: list[float]) -> None:
    """For values that vary as much."""
    x = np.array(values)
    wanted = seeds_for_use(mean_of_runs(x))
    assert wanted is not None

    def wide(n: int) -> bool:
        return log_half_width(float(x.std(ddof=1) / x.mean()), n, 0.95) > math.log(3) / 2

    assert not wide(wanted)
    assert wanted == max(5, x.size + 1) or wide(wanted - 1)


def test_paired_difference_covers_and_is_narrower_than_unpaired() -> None:
    rng = np.random.default_rng(2)
    hits = 0
    narrow = []
    for _ in range(TRIALS):
        common = rng.normal(0, 3, 10)
        a, b = 2 + common + rng.normal(0, 1, 10), common + rng.normal(0, 1, 10)
        paired = paired_difference(a, b).interval
        hits += 2.0 in paired
        narrow.append(paired.half_width / welch_difference(a, b).interval.half_width)
    assert covers(hits / TRIALS)
    assert np.median(narrow) < 0.6


def test_welch_difference_covers() -> None:
    rng = np.random.default_rng(3)
    hits = sum(
        1.0 in welch_difference(rng.normal(1, 5, 8), rng.normal(0, 1, 20)).interval
        for _ in range(TRIALS)
    )
    assert covers(hits / TRIALS)


def test_fieller_ratio_covers() -> None:
    rng = np.random.default_rng(4)
    hits = 0
    for _ in range(TRIALS):
        b = rng.normal(10, 2, 10)
        a = 0.5 * b + rng.normal(0, 1, 10)
        hits += 0.5 in paired_ratio(a, b)
    assert covers(hits / TRIALS)


@pytest.mark.parametrize("measure", ["cv", "range"])
def test_variation_ratio_by_jackknife_covers(measure: str) -> None:
    rng = np.random.default_rng(6)
    la, lb = np.array([10.0, 11, 12, 13]), np.array([10.0, 14, 18, 22])

    def size(x: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        return float((x.std(ddof=1) if measure == "cv" else np.ptp(x)) / x.mean())

    truth = math.log(size(la) / size(lb))
    hits = 0
    trials = 1500
    for _ in range(trials):
        shared = rng.normal(0, 0.7, (4, 12))
        a = la[:, None] + shared + rng.normal(0, 0.5, (4, 12))
        b = lb[:, None] + shared + rng.normal(0, 0.8, (4, 12))
        hits += truth in mean_interval(_jackknife_log_ratio(a, b, measure))
    assert covers(hits / trials)


def test_median_interval_covers_at_least() -> None:
    rng = np.random.default_rng(7)
    truth = math.log(2)
    hits = sum(truth in median_interval(rng.exponential(1, 30)) for _ in range(TRIALS))
    assert 0.94 <= hits / TRIALS <= 0.98


def test_effect_size_covers() -> None:
    rng = np.random.default_rng(8)
    trials = 800
    hits = sum(0.8 in standardised_mean(rng.normal(0.8, 1, 12)) for _ in range(trials))
    assert covers(hits / trials)


def test_batch_means_cover_a_correlated_series() -> None:
    rng = np.random.default_rng(9)
    hits = naive = 0
    trials = 600
    for _ in range(trials):
        noise = rng.normal(0, 1, 8200)
        x = np.empty_like(noise)
        x[0] = 0.0
        for i in range(1, noise.size):
            x[i] = 0.8 * x[i - 1] + noise[i]
        x = x[200:] + 3.0
        found = batch_means(x, 20)
        hits += 3.0 in found.interval
        naive += 3.0 in mean_interval(x)
    assert covers(hits / trials)
    assert naive / trials < 0.6  # what ignoring the correlation would give
