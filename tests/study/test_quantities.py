"""Numbers as people read them."""

from __future__ import annotations

import math

import pytest

from sojourn.stats import Interval
from sojourn.study import quantities as q


@pytest.mark.parametrize(
    ("value", "unit", "metric", "text"),
    [
        (0.0123, "s", "", "12.3 ms"),
        (1.5, "s", "", "1.50 s"),
        (12e-6, "s", "", "12.0 µs"),
        (0.0, "s", "", "0 ms"),
        (9.4e6, "bit/s", "", "9.40 Mbit/s"),
        (0.9999e9, "bit/s", "", "1.00 Gbit/s"),
        (0.5, "bit/s", "", "0.500 bit/s"),
        (1514, "B", "", "1.51 kB"),
        (64.0, "B", "", "64 B"),
        (0.0123, "1", "uplink.loss", "1.23 %"),
        (4.2, "1", "call.mos", "4.20"),
        (17.0, "1", "drops", "17"),
        (math.nan, "s", "", "– µs"),
    ],
)
def test_values(value: float, unit: str, metric: str, text: str) -> None:
    if math.isnan(value):
        assert q.value(value, unit, metric).startswith("–")
    else:
        assert q.value(value, unit, metric) == text


def test_intervals_have_the_digits_they_deserve() -> None:
    assert (
        q.interval(Interval(0.0123456, 0.0120, 0.0127, 0.95, 9), "s") == "12.35 [12.00, 12.70] ms"
    )
    assert q.interval(Interval(0.5, 0.1, 0.9, 0.95, 9), "s") == "500 [100, 900] ms"
    one = Interval(9.4e6, math.nan, math.nan, 0.95, 1)
    assert q.interval(one, "bit/s") == "9.40 Mbit/s"
    sure = Interval(9.4e6, 9.4e6, 9.4e6, 0.95, 5)
    assert q.interval(sure, "bit/s") == "9.40 [9.40, 9.40] Mbit/s"


def test_no_minus_zero() -> None:
    assert q.number(-0.001, 1) == "0.0"
    assert q.number(math.inf, 1) == "∞"


def test_one_large_value_does_not_make_all_others_small() -> None:
    delays = [0.0089, 0.0142, 0.0125, 0.0256, 1.1603]
    assert q.scale("s", delays).unit == "ms"
    # Most are large, or the largest would have five digits.
    assert q.scale("s", [0.9, 1.2, 0.001]).unit == "s"
    assert q.scale("s", [0.01, 0.02, 12.0]).unit == "s"
    assert q.scale("bit/s", [4e6, 5e6, 2e9]).unit == "Mbit/s"


def test_a_small_value_keeps_its_digits_among_large_ones() -> None:
    means, halves = [0.1662, 296.0, 310.0], [0.0033, 227.0, 3931.0]
    places = q.decimals_of_each(means, halves)
    shown = [q.number(m, p) for m, p in zip(means, places, strict=True)]
    assert shown == ["0.1662", "296", "310"]
    assert q.decimals_of_each([0.0, 12.5], [0.0, 0.5]) == [0, 2]


def test_each_mean_has_the_digits_of_its_own_interval() -> None:
    widths = [(4.4092, 0.0003), (4.3214, 0.2), (36.0, 0.0), (9.52781, 0.0022)]
    found = [Interval(m, m - h, m + h, 0.95, 9) for m, h in widths]
    texts = ["4.409 ± <0.001", "4.32 ± 0.20", "36.00 ± 0", "9.528 ± 0.002"]
    assert q.means(found, q.Scale(1.0, "")) == texts
    assert q.estimate(Interval(0.583, 0.543, 0.623, 0.95, 9), "s") == "583 ms"
    assert q.estimate(Interval(3.4241, 3.0, 3.9, 0.95, 9), "1") == "3.42"
