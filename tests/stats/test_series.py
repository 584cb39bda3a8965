"""Batch means, warm-up, letters and what bad input says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.stats import (
    StatisticsError,
    batch_means,
    holm,
    jain,
    kruskal_wallis,
    mean_interval,
    mser,
    one_way,
    paired_difference,
    paired_ratio,
    seeds_for_power,
    seeds_for_width,
    welch,
    welch_plot,
)
from sojourn.stats.letters import letters
from sojourn.stats.multiple import holm_alphas


def test_mser_finds_the_ramp() -> None:
    rng = np.random.default_rng(1)
    ramp = np.linspace(50, 10, 100)
    x = np.concatenate([ramp, np.full(900, 10.0)]) + rng.normal(0, 1, 1000)
    found = mser(x)
    assert found.found
    assert 70 <= found.cut <= 140


def test_mser_says_when_the_run_is_too_short() -> None:
    assert not mser(np.linspace(0, 100, 300) ** 3).found


def test_mser_by_definition() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(1e6, 1, 100)  # a large mean must not eat the digits
    found = mser(x, group=1)
    for d in (0, 3, 40):
        tail = x[d:]
        assert found.score[d] == pytest.approx(((tail - tail.mean()) ** 2).sum() / tail.size**2)


def test_batches_leave_out_the_start() -> None:
    x = np.concatenate([[1e9] * 3, np.arange(20.0)])
    found = batch_means(x, 4)
    assert found.batches.tolist() == [2, 7, 12, 17]
    assert found.interval.estimate == 9.5


def test_trustworthy_batches() -> None:
    rng = np.random.default_rng(3)
    assert batch_means(rng.normal(0, 1, 2000)).trustworthy
    assert not batch_means(np.arange(2000.0)).trustworthy


def test_welch_plot_shrinks_at_the_ends() -> None:
    mean, smooth = welch_plot([[1.0, 2, 3, 4, 9], [1.0, 2, 3, 4, 9, 77]], window=2)
    assert mean.tolist() == [1, 2, 3, 4, 9]
    assert smooth.tolist() == pytest.approx([1, 2, 19 / 5, 16 / 3, 9])


names = st.lists(st.sampled_from("abcdefgh"), min_size=2, max_size=7, unique=True)


@given(names, st.data())
def test_letters_say_exactly_who_is_apart(order: list[str], data: st.DataObject) -> None:
    pairs = [frozenset((a, b)) for i, a in enumerate(order) for b in order[:i]]
    apart = set(data.draw(st.lists(st.sampled_from(pairs), unique=True)))
    marks = letters(order, apart)
    for pair in pairs:
        a, b = pair
        assert bool(set(marks[a]) & set(marks[b])) == (pair not in apart)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0.01, 0.2))
def test_holm_twice_the_same_decision(p: list[float], alpha: float) -> None:
    adjusted, shares = holm(p), holm_alphas(p, alpha)
    for raw, adj, share in zip(p, adjusted, shares, strict=True):
        if abs(adj - alpha) > 1e-9:
            assert (adj <= alpha) == (raw <= share)
        assert raw <= adj + 1e-15


def test_one_value_has_no_interval() -> None:
    i = mean_interval([3.0])
    assert i.estimate == 3
    assert np.isnan(i.low)
    assert i.n == 1


def test_no_spread() -> None:
    assert mean_interval([2.0, 2.0]).half_width == 0
    assert paired_difference([1.0, 2], [1.0, 2]).p == 1
    assert paired_difference([2.0, 3], [1.0, 2]).p == 0
    assert one_way([[1.0, 1], [2.0, 2]]).p == 0
    assert kruskal_wallis([[1.0, 1], [1.0, 1]]).p == 1
    with pytest.raises(StatisticsError, match="no variation"):
        welch([[1.0, 1], [1.0, 2]])


def test_ratio_of_an_uncertain_denominator_is_anything() -> None:
    i = paired_ratio([1.0, 2, 3], [1.0, -1, 0.3])
    assert (i.low, i.high) == (-np.inf, np.inf)
    assert np.isnan(paired_ratio([1.0, 2], [0.0, 0.0]).estimate)


def test_seeds() -> None:
    assert seeds_for_width(1.0, 0.1) == pytest.approx(387, abs=1)
    assert seeds_for_power(1e-9, 1.0) is None
    assert seeds_for_power(0.0, 0.0) is None
    assert seeds_for_power(5.0, 0.0) == 2


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: mean_interval([]), "0 values"),
        (lambda: mean_interval([1.0, float("nan")]), "not finite"),
        (lambda: mean_interval([[1.0]]), "one-dimensional"),
        (lambda: mean_interval([1.0, 2], 95), "between 0 and 1"),
        (lambda: paired_difference([1.0, 2], [1.0, 2, 3]), "equally long"),
        (lambda: one_way([[1.0, 2]]), "at least two"),
        (lambda: one_way([[1.0], [2.0]]), "estimate of the variance"),
        (lambda: jain([-1.0]), "negative"),
        (lambda: holm([1.5]), "from 0 to 1"),
        (lambda: batch_means([1.0] * 5, 4), "8 are required"),
        (lambda: seeds_for_width(1.0, 0.0), "above 0"),
        (lambda: welch_plot([]), "list of runs is empty"),
    ],
)
def test_invalid_input_is_refused(call: object, says: str) -> None:
    assert callable(call)
    with pytest.raises(StatisticsError, match=says):
        call()
