"""Differences of interest: the interval decides, and is right as often as it says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sojourn.stats import LEAST, extrapolated, gaps, mean_interval, seeds_for_width


def test_the_interval_is_that_of_the_paired_differences_at_the_shared_level() -> None:
    rng = np.random.default_rng(1)
    common = rng.normal(10, 3, 8)
    a, b, c = (common + rng.normal(0, 0.2, 8) for _ in range(3))
    found = gaps([(a, b), (a, c), (b, c)], lambda _: 1.0)
    for gap, (x, y) in zip(found, [(a, b), (a, c), (b, c)], strict=True):
        expected = mean_interval(x - y, 1 - 0.05 / 3)
        assert (gap.interval.low, gap.interval.high) == pytest.approx((expected.low, expected.high))
        assert gap.where == "within"


def test_the_smallest_difference_is_a_share_of_the_smaller_mean() -> None:
    a, b = np.array([1.0, 1.1, 0.9]), np.array([2.0, 2.1, 2.0])
    for pair in ((a, b), (b, a), (-a, b)):
        [gap] = gaps([pair], lambda mean: 0.05 * mean)
        assert gap.smallest == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("values", "where"),
    [
        ([2.0, 2.1, 1.9, 2.0], "above"),
        ([-2.0, -2.1, -1.9, -2.0], "below"),
        ([0.1, 0.2, 0.0, 0.1], "within"),
        ([1.0, 1.1, 0.9, 1.0], "open"),
        ([0.0, 5.0, -5.0, 0.0], "open"),
        ([2.0], "open"),
        ([], "open"),
        ([2.0, math.nan, 2.0], "above"),
        ([0.5, 0.5], "within"),
    ],
)
def test_where_the_interval_lies(values: list[float], where: str) -> None:
    x = np.array(values, dtype=np.float64)
    [gap] = gaps([(x, np.zeros(x.size))], lambda _: 1.0)
    assert gap.where == where


def test_equal_values_are_as_good_even_where_nothing_is_of_no_interest() -> None:
    [gap] = gaps([(np.ones(3), np.ones(3))], lambda _: 0.0)
    assert (gap.where, gap.exact) == ("within", True)


@pytest.mark.parametrize("truth", [0.0, 1.0])
def test_verdicts_are_wrong_in_one_of_twenty_studies_at_most(truth: float) -> None:
    """Three pairs whose true difference is 0, or just the smallest of interest."""
    rng = np.random.default_rng(7)
    wrong = 0
    for _ in range(400):
        pairs = [(rng.normal(truth, 1, 6), np.zeros(6)) for _ in range(3)]
        found = [gap.where for gap in gaps(pairs, lambda _: 1.0)]
        # At the edge itself neither verdict is right.
        right = ("open",) if truth else ("open", "within")
        wrong += any(where not in right for where in found)
    assert wrong / 400 <= 0.08


def test_a_number_of_seeds_is_named_from_enough_seeds_and_not_too_far() -> None:
    rng = np.random.default_rng(3)

    def named(seeds: int, smallest: float) -> int | None:
        x = rng.normal(0.0, 1.0, seeds)
        [gap] = gaps([(x, np.zeros(seeds))], lambda _: smallest)
        assert gap.where == "open"
        if gap.seeds is not None:
            margin = abs(abs(gap.interval.estimate) - smallest)
            assert gap.seeds == seeds_for_width(gap.deviation, margin, gap.interval.level)
        return gap.seeds

    assert named(LEAST - 1, 0.3) is None
    assert named(20, 0.4) is not None
    [far] = gaps([(np.array([-1.0, 1.0] * 5), np.zeros(10))], lambda _: 0.01)
    assert (far.where, far.seeds) == ("open", None)
    assert extrapolated(LEAST, lambda: 10 * LEAST) == 10 * LEAST
    assert extrapolated(LEAST, lambda: 10 * LEAST + 1) is None
    assert extrapolated(LEAST, lambda: None) is None
