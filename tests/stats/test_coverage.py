"""Whether 95 % intervals cover: tested by simulation, not believed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sojourn.stats import batch_means, mean_interval, median_interval, paired_ratio
from sojourn.stats.claims import _jackknife_log_ratio
from sojourn.stats.effect import standardised_mean
from sojourn.stats.interval import jackknife, paired_difference, welch_difference

TRIALS = 3000


def covers(share: float) -> bool:
    return 0.93 <= share <= 0.97


def test_mean_covers() -> None:
    rng = np.random.default_rng(1)
    hits = sum(5.0 in mean_interval(rng.normal(5, 2, 10)) for _ in range(TRIALS))
    assert covers(hits / TRIALS)


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
        hits += truth in jackknife(_jackknife_log_ratio(a, b, measure))
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
