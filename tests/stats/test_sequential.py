"""Means that are read when they are precise enough: what their intervals cover."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sojourn.stats import StatisticsError, look, looked, looks, mean_interval
from sojourn.stats.sequential import FIRST
from tests.stats.precision import BAND, KINDS, PAGE, TARGETS, Kind, measured, told_apart

TRIALS = 1500
NAMED = {kind.name: kind for kind in KINDS}


@pytest.mark.parametrize(
    "name",
    [
        "normal",
        "skewed: exponential",
        "heavy-tailed: t with 3 degrees of freedom",
        "50 % zeros, else lognormal",
        "two modes, 70 : 30",
        "difference of exponentials",
    ],
)
def test_intervals_cover_where_they_were_narrow_enough(name: str) -> None:
    found = measured(NAMED[name], TARGETS[0], TRIALS, seed=7)
    margin = 2.6 * math.sqrt(0.95 * 0.05 / TRIALS)
    assert found.reached > 0.99
    assert BAND[0] - margin / 2 <= found.covered <= BAND[1] + margin / 2


def test_students_interval_at_ten_looks_covers_too_little() -> None:
    """Why the rule is as it is: the usual one, from ten seeds on, at every seed."""
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(600):
        values = rng.exponential(1, 400)
        ends = (n for n in range(10, 400) if mean_interval(values[:n]).half_width <= 0.5)
        hits += 1.0 in mean_interval(values[: next(ends)])
    assert hits / 600 < 0.92


def test_the_interval_does_not_cover_a_heavy_tail() -> None:
    kind = NAMED["Pareto, exponent 3"]
    assert not kind.met
    assert measured(kind, TARGETS[0], 300, seed=7).covered < BAND[0]


def test_equal_queues_differ_in_few_comparisons() -> None:
    wrong = told_apart(NAMED["skewed: exponential"], TARGETS[0], 400, seed=7)
    assert wrong <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 400)


def test_looks_are_fixed() -> None:
    assert looks(200) == (40, 60, 90, 135, 200)
    assert looks(FIRST) == (FIRST,)
    with pytest.raises(StatisticsError, match=r"39 runs.*40 runs"):
        looks(FIRST - 1)


def test_the_interval_leans_towards_the_long_tail() -> None:
    values = np.random.default_rng(1).exponential(1, 60)
    right, left = look(values).interval, look(-values).interval
    assert right.high - right.estimate > right.estimate - right.low
    assert (right.low, right.high) == pytest.approx((-left.high, -left.low))
    plain = mean_interval(values)
    assert abs(right.high - right.low) == pytest.approx(plain.high - plain.low, rel=0.15)
    assert looked(values) == right
    assert looked(values[:10]) == mean_interval(values[:10])


def test_skewed_values_need_more_runs_than_their_width_says() -> None:
    rare = np.zeros(FIRST)
    rare[0] = 1.0
    found = look(rare)
    assert found.least > FIRST
    assert not found.enough(1.0)
    assert found.enough(found.interval.half_width) is False
    even = look(np.arange(FIRST))
    assert even.enough(even.interval.half_width)
    assert not even.enough(even.interval.half_width * 0.99)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_units_do_not_matter(scale: float) -> None:
    values = np.random.default_rng(2).exponential(1, 50)
    a, b = look(values).interval, look(values * scale).interval
    assert (b.low / scale, b.high / scale) == pytest.approx((a.low, a.high))


def test_values_without_spread_are_known_at_the_first_look() -> None:
    found = look(np.full(FIRST, 0.1))
    assert (found.interval.low, found.interval.high) == (0.1, 0.1)
    assert found.enough(0.0)
    assert not look(np.full(FIRST - 1, 0.1)).enough(1.0)


def test_means_and_deviations_of_the_distributions_are_theirs() -> None:
    def check(kind: Kind) -> None:
        x = kind.draw(np.random.default_rng(5), 400_000)
        error = kind.deviation / math.sqrt(x.size)
        assert x.mean() == pytest.approx(kind.mean, abs=5 * error)
        if kind.name != "Pareto, exponent 3":  # whose deviation cannot be estimated from samples
            assert x.std() == pytest.approx(kind.deviation, rel=0.05)

    for kind in KINDS:
        check(kind)


def test_the_page_has_every_distribution_and_marks_what_is_outside_the_band() -> None:
    text = PAGE.read_text("utf-8")
    table = text.partition("<!-- table: coverage")[2].partition("<!-- table: equal")[0]
    rows = {line.split("|")[1].strip(): line for line in table.splitlines() if "|" in line}
    for kind in KINDS:
        assert kind.name in rows, kind.name
        assert not (kind.met and "**" in rows[kind.name]), kind.name
