"""Our statistics against figures that R and textbooks publish, to the digits published."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from sojourn.stats import (
    Check,
    cohens_d,
    dunn,
    friedman,
    holm,
    jain,
    kruskal_wallis,
    levene,
    lsd,
    mean_interval,
    normal_residuals,
    one_way,
    paired_difference,
    power,
    seeds_for_power,
    shapiro_wilk,
    tukey,
    welch,
    welch_difference,
)
from tests.stats.datasets import (
    CHICK_WEIGHTS,
    INSECT_SPRAYS,
    PLANT_GROWTH,
    PONDS,
    ROUNDING_TIMES,
    SLEEP_1,
    SLEEP_2,
    SWEET_POTATO,
)


def digits(value: float, text: str) -> bool:
    """Whether `value` prints as the published `text`, rounded to its last digit."""
    mantissa, _, exponent = text.partition("e")
    places = len(mantissa.partition(".")[2])
    scaled: float = value / 10.0 ** int(exponent or 0)
    # Half a unit in the last place, and a little for the decimal to binary conversion.
    return abs(scaled - float(mantissa)) <= 0.5 * 10.0 ** (-places) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("data", "f", "p", "df"),
    [
        (PLANT_GROWTH, "4.846", "0.01591", (2, 27)),
        (INSECT_SPRAYS, "34.70", "3.18e-17", (5, 66)),
        (CHICK_WEIGHTS, "15.36", "5.94e-10", (5, 65)),
        (SWEET_POTATO, "17.345", "0.0007334", (3, 8)),
    ],
)
def test_anova(data: dict[str, list[float]], f: str, p: str, df: tuple[int, int]) -> None:
    table = one_way(data)
    assert digits(table.f, f)
    assert digits(table.p, p)
    assert (table.df_between, table.df_within) == df


def test_anova_squares_of_sweet_potato() -> None:
    table = one_way(SWEET_POTATO)
    assert digits(table.ss_between, "1170.21")
    assert digits(table.ms_between, "390.07")
    assert digits(table.ms_within, "22.48917")
    assert "1170.21" in table.summary()


@pytest.mark.parametrize(
    ("data", "f", "df", "p"),
    [
        (PLANT_GROWTH, "5.181", "17.128", "0.01739"),
        (INSECT_SPRAYS, "36.065", "30.043", "7.999e-12"),
    ],
)
def test_welch_anova(data: dict[str, list[float]], f: str, df: str, p: str) -> None:
    table = welch(data)
    assert digits(table.f, f)
    assert digits(table.df_within, df)
    assert digits(table.p, p)


def test_tukey_of_plant_growth() -> None:
    found = tukey(PLANT_GROWTH)
    for a, b, difference, low, high, p in [
        ("ctrl", "trt1", "-0.371", "-1.0622161", "0.3202161", "0.3908711"),
        ("ctrl", "trt2", "0.494", "-0.1972161", "1.1852161", "0.1979960"),
        ("trt1", "trt2", "0.865", "0.1737839", "1.5562161", "0.0120064"),
    ]:
        pair = found.pair(a, b)
        assert digits(pair.difference, difference)
        assert digits(pair.low, low)
        assert digits(pair.high, high)
        assert digits(pair.p, p)
    assert found.groups() == {"trt2": "a", "ctrl": "ab", "trt1": "b"}


def test_lsd_of_sweet_potato() -> None:
    found = lsd(SWEET_POTATO)
    assert found.least_difference is not None
    assert digits(found.least_difference, "8.928965")
    assert digits(found.critical, "2.306004")
    assert found.groups() == {"oo": "a", "ff": "a", "cc": "b", "fc": "c"}
    assert digits(found.pair("cc", "fc").p, "0.0176")
    assert digits(found.pair("cc", "fc").difference, "-11.5333")


@pytest.mark.parametrize(
    ("data", "h", "df", "p"),
    [
        (INSECT_SPRAYS, "54.691", 5, "1.511e-10"),
        (CHICK_WEIGHTS, "37.343", 5, "5.113e-07"),
        (PLANT_GROWTH, "7.9882", 2, "0.01842"),
        (PONDS, "11.94", 3, "0.00758"),
    ],
)
def test_kruskal_wallis(data: dict[str, list[float]], h: str, df: int, p: str) -> None:
    found = kruskal_wallis(data)
    assert digits(found.h, h)
    assert found.df == df
    assert digits(found.p, p)


def test_dunn_of_ponds_finds_what_zar_finds() -> None:
    # Zar's conclusion: pond 1 differs from 3 and 4; pond 2 from none.
    apart = {(p.a, p.b) for p in dunn(PONDS).pairs if p.differs}
    assert apart == {("1", "3"), ("1", "4")}


def test_paired_t_of_sleep() -> None:
    test = paired_difference(SLEEP_1, SLEEP_2)
    assert digits(test.t, "-4.0621")
    assert digits(test.p, "0.002833")
    assert digits(test.interval.low, "-2.4598858")
    assert digits(test.interval.high, "-0.7001142")
    assert digits(test.interval.estimate, "-1.58")


def test_welch_t_of_sleep() -> None:
    test = welch_difference(SLEEP_1, SLEEP_2)
    assert digits(test.t, "-1.8608")
    assert digits(test.df, "17.776")
    assert digits(test.p, "0.07939")
    assert digits(test.interval.low, "-3.3654832")
    assert digits(test.interval.high, "0.2054832")


def test_mean_interval_of_sleep() -> None:
    # t.test(sleep$extra): mean 1.54, 0.5955845 to 2.4844155.
    i = mean_interval(SLEEP_1 + SLEEP_2)
    assert digits(i.low, "0.5955845")
    assert digits(i.high, "2.4844155")


def test_power_of_r() -> None:
    # power.t.test(power = .80, delta = .5, sd = 1, type = "paired"): n = 33.36713.
    assert seeds_for_power(0.5, 1.0) == 34
    assert power(0.5, 1.0, 33) < 0.8 < power(0.5, 1.0, 34)


def test_holm_by_hand() -> None:
    # As R's p.adjust gives them.
    assert holm([0.01, 0.02, 0.03, 0.04, 0.05]) == pytest.approx([0.05, 0.08, 0.09, 0.09, 0.09])
    assert holm([0.04, 0.001, 0.9]) == pytest.approx([0.08, 0.003, 0.9])


def test_jain_by_hand() -> None:
    assert jain([1, 1, 1, 1]) == 1
    assert jain([7, 0, 0, 0]) == 0.25
    assert jain([1, 2, 3]) == pytest.approx(36 / 42)
    assert math.isnan(jain([0, 0]))
    assert jain([1e-300, 1e-300]) == 1


def test_cohens_d_of_sleep() -> None:
    # t * sqrt(1/n + 1/m) by the published t.
    assert cohens_d(SLEEP_1, SLEEP_2).estimate == pytest.approx(-1.8608 * math.sqrt(0.2), abs=5e-5)


def test_assumptions_of_plant_growth_and_insect_sprays() -> None:
    check = normal_residuals(PLANT_GROWTH)
    assert digits(check.statistic, "0.96607")
    assert digits(check.p, "0.4379")
    check = shapiro_wilk([x for group in PLANT_GROWTH.values() for x in group])
    assert digits(check.statistic, "0.98268")
    assert digits(check.p, "0.8915")
    cases: list[tuple[Any, Callable[..., Check], str, str]] = [
        (PLANT_GROWTH, levene, "1.1192", "0.3412"),
        (INSECT_SPRAYS, levene, "3.8214", "0.004223"),
    ]
    for data, method, statistic, p in cases:
        found = method(data)
        assert digits(found.statistic, statistic)
        assert digits(found.p, p)
        assert f"n = {found.n}" in found.summary()
        assert found.frame().loc[found.method, "p"] == found.p


def test_friedman_of_rounding_times() -> None:
    found = friedman(ROUNDING_TIMES)
    assert digits(found.chi2, "11.143")
    assert (found.df, found.blocks) == (2, 22)
    assert digits(found.p, "0.003805")
    assert found.kendall_w == pytest.approx(found.chi2 / 44)
    assert "Friedman" in found.summary()
    assert list(found.frame()["group"]) == ["round", "narrow", "wide"]
