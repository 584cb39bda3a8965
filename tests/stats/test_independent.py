"""Our statistics against other programs' and other formulas, to 1e-10."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

from sojourn import stats as ours
from tests.stats.datasets import CHICK_WEIGHTS, INSECT_SPRAYS, PLANT_GROWTH, PONDS, SWEET_POTATO

SETS = [PLANT_GROWTH, INSECT_SPRAYS, CHICK_WEIGHTS, SWEET_POTATO, PONDS]
Groups = dict[str, list[float]]


@pytest.fixture(params=range(len(SETS)))
def data(request: pytest.FixtureRequest) -> Groups:
    return {k: [float(x) for x in v] for k, v in SETS[request.param].items()}


def t_density(x: float, df: float) -> float:
    c = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)
    return math.exp(c - (df + 1) / 2 * math.log1p(x * x / df))


def test_anova_as_regression(data: Groups) -> None:
    """F by projecting on dummy variables, its p by the incomplete beta function."""
    y = np.concatenate([np.asarray(v) for v in data.values()])
    group = np.repeat(np.arange(len(data)), [len(v) for v in data.values()])
    x = (group[:, None] == np.arange(len(data))).astype(float)
    fit, *_ = np.linalg.lstsq(x, y, rcond=None)
    rss = ((y - x @ fit) ** 2).sum()
    tss = ((y - y.mean()) ** 2).sum()
    d1, d2 = len(data) - 1, y.size - len(data)
    f = (tss - rss) / d1 / (rss / d2)
    p = special.betainc(d2 / 2, d1 / 2, d2 / (d2 + d1 * f))
    table = ours.one_way(data)
    assert table.f == pytest.approx(f, rel=1e-10)
    assert table.p == pytest.approx(p, rel=1e-10)
    assert table.eta_squared == pytest.approx((tss - rss) / tss, rel=1e-10)


def test_anova_of_scipy_and_statsmodels(data: Groups) -> None:
    from statsmodels.stats.oneway import anova_oneway

    reference = stats.f_oneway(*data.values())
    table = ours.one_way(data)
    assert table.f == pytest.approx(float(reference.statistic), rel=1e-10)
    assert table.p == pytest.approx(float(reference.pvalue), rel=1e-10)
    for unequal, mine in (("equal", ours.one_way(data)), ("unequal", ours.welch(data))):
        other = anova_oneway(list(map(np.asarray, data.values())), use_var=unequal)
        assert mine.f == pytest.approx(other.statistic, rel=1e-10)
        assert mine.p == pytest.approx(other.pvalue, rel=1e-9)


WARP_BREAKS = {
    ("A", "L"): [26, 30, 54, 25, 70, 52, 51, 26, 67],
    ("A", "M"): [18, 21, 29, 17, 12, 18, 35, 30, 36],
    ("A", "H"): [36, 21, 24, 18, 10, 43, 28, 15, 26],
    ("B", "L"): [27, 14, 29, 19, 29, 31, 41, 20, 44],
    ("B", "M"): [42, 26, 19, 16, 39, 28, 21, 39, 29],
    ("B", "H"): [20, 21, 24, 17, 13, 15, 15, 16, 28],
}
"""Breaks of yarn by wool and tension (R's `warpbreaks`, after Tippett)."""


def test_interactions_of_warpbreaks() -> None:
    """As R prints `summary(aov(breaks ~ wool * tension))`."""
    cells = [key for key, values in WARP_BREAKS.items() for _ in values]
    found = ours.factorial(
        [float(x) for values in WARP_BREAKS.values() for x in values],
        {"wool": [a for a, _ in cells], "tension": [b for _, b in cells]},
    )
    assert [(str(e), e.df, f"{e.f:.3f}", f"{e.p:.6f}") for e in found.effects] == [
        ("wool", 1, "3.765", "0.058213"),
        ("tension", 2, "8.498", "0.000693"),
        ("wool × tension", 2, "4.189", "0.021044"),
    ]
    assert (found.df, f"{found.squares:.0f}") == (48, "5745")
    assert found.effect("tension", "wool").f == found.effects[2].f


@pytest.mark.parametrize("seed", range(8))
def test_interactions_of_statsmodels(seed: int) -> None:
    """Two or three factors with unequal numbers of values; changes of scale change no F."""
    import pandas as pd
    from statsmodels.formula.api import ols
    from statsmodels.stats.anova import anova_lm

    draw = np.random.default_rng(seed)
    sizes = draw.integers(2, 5, 2 + seed % 2)
    rows = [
        [*where, draw.normal() + where[0] * where[1] + where[-1]]
        for where in np.ndindex(*sizes)
        for _ in range(draw.integers(2, 5))
    ]
    names = ["a", "b", "c"][: len(sizes)]
    frame = pd.DataFrame(rows, columns=[*names, "y"])
    levels = {name: frame[name].tolist() for name in names}
    found = ours.factorial(frame["y"], levels)
    formula = "y ~ " + " * ".join(f"C({name})" for name in names)
    other = anova_lm(ols(formula, frame).fit(), typ=2)
    assert len(found.effects) == len(other) - 1
    for effect in found.effects:
        row = other.loc[":".join(f"C({name})" for name in effect.factors)]
        assert effect.df == row["df"]
        assert effect.f == pytest.approx(row["F"], rel=1e-8)
        assert effect.p == pytest.approx(row["PR(>F)"], rel=1e-7)
    assert found.squares == pytest.approx(other.loc["Residual", "sum_sq"], rel=1e-10)
    scaled = ours.factorial(1e3 - 1e-6 * frame["y"], levels)
    assert [e.f for e in scaled.effects] == pytest.approx([e.f for e in found.effects], rel=1e-5)


def test_one_factor_has_no_interactions(data: Groups) -> None:
    y = [x for v in data.values() for x in v]
    found = ours.factorial(y, {"group": [k for k, v in data.items() for _ in v]})
    one = ours.one_way(data)
    assert [e.f for e in found.effects] == pytest.approx([one.f], rel=1e-10)
    assert found.frame().loc["within", "mean square"] == pytest.approx(one.ms_within, rel=1e-10)


def test_a_factorial_analysis_needs_every_combination_and_repetitions() -> None:
    a, b = ["x", "x", "y", "y", "y"], [1, 1, 1, 2, 2]
    with pytest.raises(ours.StatisticsError, match="a x, b 2"):
        ours.factorial([1.0, 2, 3, 4, 5], {"a": a, "b": b})
    with pytest.raises(ours.StatisticsError, match="more seeds"):
        ours.factorial([1.0, 2], {"a": ["x", "y"]})
    with pytest.raises(ours.StatisticsError, match="b has one level"):
        ours.factorial([1.0, 2, 3], {"a": ["x", "y", "y"], "b": [1, 1, 1]})
    with pytest.raises(ours.StatisticsError, match="no effect c"):
        ours.factorial([1.0, 2, 3], {"a": ["x", "y", "y"]}).effect("c")
    flat = ours.factorial([1.0] * 4, {"a": ["x", "x", "y", "y"]}).effects[0]
    assert math.isnan(flat.f)
    exact = ours.factorial([1.0, 1, 2, 2], {"a": ["x", "x", "y", "y"]}).effects[0]
    assert (exact.f, exact.p) == (math.inf, 0.0)


def test_lsd_by_integration(data: Groups) -> None:
    """The t distribution integrated by hand."""
    found = ours.lsd(data, protected=False)
    n = sum(map(len, data.values()))
    df = n - len(data)
    mse = sum(((np.asarray(v) - np.mean(v)) ** 2).sum() for v in data.values()) / df

    def upper(t: float) -> float:
        return 0.5 - float(integrate.quad(t_density, 0, t, args=(df,), epsabs=1e-14)[0])

    critical = float(optimize.brentq(lambda t: upper(t) - 0.025, 0.1, 20, xtol=1e-13))
    assert found.critical == pytest.approx(critical, rel=1e-10)
    for a, b in combinations(data, 2):
        pair = found.pair(a, b)
        se = math.sqrt(mse * (1 / len(data[a]) + 1 / len(data[b])))
        d = float(np.mean(data[b]) - np.mean(data[a]))
        assert pair.difference == pytest.approx(d, rel=1e-10)
        assert pair.high - pair.low == pytest.approx(2 * critical * se, rel=1e-10)
        assert pair.p == pytest.approx(2 * upper(abs(d) / se), abs=1e-10)
        assert pair.differs == (abs(d) > critical * se)


def range_cdf(q: float, k: int, df: float) -> float:
    """The studentised range distribution as its definition says: two nested integrals."""
    z, wz = np.polynomial.legendre.leggauss(200)
    z, wz = z * 9.0, wz * 9.0
    cdf = special.ndtr

    def inner(w: float) -> float:
        density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        return float(k * (wz * density * (cdf(z) - cdf(z - w)) ** (k - 1)).sum())

    def outer(s: float) -> float:
        log = (
            math.log(2) + df / 2 * math.log(df / 2) - math.lgamma(df / 2)
            + (df - 1) * math.log(s) - df * s * s / 2
        )  # fmt: skip
        return math.exp(log) * inner(q * s)

    return float(integrate.quad(outer, 1e-12, 4, epsabs=1e-13, limit=200)[0])


def test_tukey_by_integration(data: Groups) -> None:
    found = ours.tukey(data)
    table = ours.one_way(data)
    for a, b in combinations(data, 2):
        pair = found.pair(a, b)
        se = math.sqrt(table.ms_within / 2 * (1 / len(data[a]) + 1 / len(data[b])))
        q = abs(float(np.mean(data[b]) - np.mean(data[a]))) / se
        assert pair.p == pytest.approx(1 - range_cdf(q, len(data), table.df_within), abs=1e-8)
        assert pair.high - pair.low == pytest.approx(2 * found.critical * se, rel=1e-10)
    assert range_cdf(found.critical, len(data), table.df_within) == pytest.approx(0.95, abs=1e-8)


def test_kruskal_of_scipy(data: Groups) -> None:
    reference = stats.kruskal(*data.values())
    found = ours.kruskal_wallis(data)
    assert found.h == pytest.approx(float(reference.statistic), rel=1e-10)
    assert found.p == pytest.approx(float(reference.pvalue), rel=1e-10)


def test_dunn_by_naive_ranks(data: Groups) -> None:
    everything = sorted(x for v in data.values() for x in v)
    n = len(everything)
    rank = {
        x: (everything.index(x) + 1 + n - everything[::-1].index(x)) / 2 for x in set(everything)
    }
    ties = sum(everything.count(x) ** 3 - everything.count(x) for x in set(everything))
    mean = {k: sum(rank[x] for x in v) / len(v) for k, v in data.items()}
    raw = {}
    for a, b in combinations(data, 2):
        variance = (n * (n + 1) / 12 - ties / (12 * (n - 1))) * (
            1 / len(data[a]) + 1 / len(data[b])
        )
        raw[a, b] = math.erfc(abs(mean[b] - mean[a]) / math.sqrt(2 * variance))
    expected, worst = {}, 0.0
    for i, (key, p) in enumerate(sorted(raw.items(), key=lambda item: item[1])):
        worst = max(worst, min(1.0, p * (len(raw) - i)))
        expected[key] = worst
    found = ours.dunn(data)
    for (a, b), p in expected.items():
        assert found.pair(a, b).p == pytest.approx(p, rel=1e-10)


def test_paired_and_welch_of_scipy() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.normal(3, 1, 17), rng.normal(2, 4, 17)
    paired = ours.paired_difference(a, b, 0.9)
    other = stats.ttest_rel(a, b)
    assert paired.p == pytest.approx(float(other.pvalue), rel=1e-10)
    limits = other.confidence_interval(0.9)
    assert paired.interval.low == pytest.approx(float(limits.low), rel=1e-10)
    unpaired = ours.welch_difference(a, b[:9])
    reference = stats.ttest_ind(a, b[:9], equal_var=False)
    assert unpaired.p == pytest.approx(float(reference.pvalue), rel=1e-10)
    assert unpaired.t == pytest.approx(float(reference.statistic), rel=1e-10)


def test_fieller_is_the_set_of_ratios_not_rejected() -> None:
    rng = np.random.default_rng(7)
    b = rng.normal(10, 1, 12)
    a = 0.5 * b + rng.normal(0, 0.4, 12)
    i = ours.paired_ratio(a, b)
    for edge in (i.low, i.high):
        assert ours.one_sample(a - edge * b).p == pytest.approx(0.05, abs=1e-10)
    assert ours.one_sample(a - i.estimate * b).p == pytest.approx(1.0, abs=1e-10)


def test_noncentral_t_interval_by_scipy() -> None:
    rng = np.random.default_rng(8)
    x = rng.normal(0.7, 1, 15)
    i = ours.standardised_mean(x)
    t = i.estimate * math.sqrt(15)
    assert stats.nct.cdf(t, 14, i.low * math.sqrt(15)) == pytest.approx(0.975, abs=1e-9)
    assert stats.nct.cdf(t, 14, i.high * math.sqrt(15)) == pytest.approx(0.025, abs=1e-9)


def test_power_of_statsmodels() -> None:
    from statsmodels.stats.power import TTestPower

    for d, n in [(0.3, 20), (0.5, 34), (1.2, 8), (2.0, 5)]:
        reference = TTestPower().power(d, n, 0.05, alternative="two-sided")
        # Ours leaves out the chance of a significant result on the wrong side.
        assert 0 <= reference - ours.power(d, 1.0, n) < 3e-3


def test_cliffs_delta_by_counting() -> None:
    a, b = [1.0, 2, 3, 3], [2.0, 3, 0]
    count = sum((x > y) - (x < y) for x in a for y in b) / 12
    assert ours.cliffs_delta(a, b) == pytest.approx(count)


def test_hedges_correction() -> None:
    # The usual approximation 1 - 3 / (4 df - 1) is good to a few in ten thousand.
    rng = np.random.default_rng(9)
    a, b = rng.normal(1, 1, 12), rng.normal(0, 1, 12)
    d, g = ours.cohens_d(a, b), ours.cohens_d(a, b, unbiased=True)
    assert g.estimate / d.estimate == pytest.approx(1 - 3 / (4 * 22 - 1), abs=3e-4)


def test_median_interval_of_r() -> None:
    # Ten values: the 2nd and 9th order statistic give 97.9 %.
    i = ours.median_interval(list(range(1, 11)))
    assert (i.low, i.high) == (2, 9)
    few = ours.median_interval([1, 2, 3])
    assert (few.low, few.high) == (-math.inf, math.inf)


def test_tost_of_statsmodels() -> None:
    from statsmodels.stats.weightstats import ttost_paired

    rng = np.random.default_rng(11)
    a, b = rng.normal(0, 1, 25), rng.normal(0.1, 1, 25)
    assert ours.tost(a - b, -0.6, 0.6) == pytest.approx(ttost_paired(a, b, -0.6, 0.6)[0], rel=1e-10)


def test_games_howell_of_scipy(data: Groups) -> None:
    found = ours.games_howell(data)
    theirs = stats.tukey_hsd(*data.values(), equal_var=False)
    limits: Any = theirs.confidence_interval(0.95)
    their_p: Any = theirs.pvalue
    their_gap: Any = theirs.statistic
    names = list(data)
    for pair in found.pairs:
        i, j = names.index(pair.a), names.index(pair.b)
        assert pair.difference == pytest.approx(their_gap[j, i], rel=1e-10)
        assert pair.p == pytest.approx(their_p[j, i], abs=1e-10)
        assert (pair.low, pair.high) == pytest.approx(
            (limits.low[j, i], limits.high[j, i]), rel=1e-8
        )
        assert pair.differs == (pair.p <= 0.05)
    assert list(found.frame()["p"]) == [pair.p for pair in found.pairs]
    assert found.omnibus.p == ours.welch(data).p


def test_blocks_as_regression() -> None:
    """F of what groups explain beyond seeds, by projecting on dummy variables."""
    rng = np.random.default_rng(5)
    seeds = rng.normal(0, 5, 12)
    data = {
        name: seeds + shift + rng.normal(0, 1, 12)
        for name, shift in zip("abc", (0, 0.5, 2), strict=True)
    }
    y = np.concatenate(list(data.values()))
    group, seed = np.repeat(np.arange(3), 12), np.tile(np.arange(12), 3)
    blocks = (seed[:, None] == np.arange(12)).astype(float)
    both = np.hstack([blocks, (group[:, None] == np.arange(1, 3)).astype(float)])

    def left(x: np.ndarray) -> float:
        fit, *_ = np.linalg.lstsq(x, y, rcond=None)
        return float(((y - x @ fit) ** 2).sum())

    rest = left(both)
    f = (left(blocks) - rest) / 2 / (rest / 22)
    table = ours.blocks(data)
    assert (table.df_between, table.df_within) == (2, 22)
    assert table.f == pytest.approx(f, rel=1e-10)
    assert table.p == pytest.approx(float(stats.f.sf(f, 2, 22)), rel=1e-10)
    assert table.ms_within == pytest.approx(rest / 22, rel=1e-10)
    assert table.frame().loc["within", "mean square"] == table.ms_within
    # Seeds that differ hide what the groups do; pairing takes them out.
    assert table.p < 1e-3 < ours.one_way(data).p


def test_two_blocks_are_a_paired_t_test() -> None:
    rng = np.random.default_rng(6)
    a, b = rng.normal(0, 1, 15), rng.normal(0.3, 1, 15)
    test, table = ours.paired_difference(a, b), ours.blocks([a, b])
    assert table.f == pytest.approx(test.t**2, rel=1e-10)
    assert table.p == pytest.approx(test.p, rel=1e-10)


def test_friedman_of_scipy() -> None:
    rng = np.random.default_rng(7)
    for decimals in (6, 0):  # without and with ties
        data = [np.round(rng.normal(shift, 2, 20), decimals) for shift in (0, 1, 2, 0)]
        found, theirs = ours.friedman(data), stats.friedmanchisquare(*data)
        assert found.chi2 == pytest.approx(theirs.statistic, rel=1e-10)
        assert found.p == pytest.approx(theirs.pvalue, rel=1e-10)


def test_levene_of_scipy(data: Groups) -> None:
    theirs = stats.levene(*data.values(), center="median")
    assert ours.levene(data).statistic == pytest.approx(theirs.statistic, rel=1e-10)
    assert ours.levene(data).p == pytest.approx(theirs.pvalue, rel=1e-10)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: ours.blocks([[1.0, 2.0], [1.0, 2.0, 3.0]]), "a value for each seed"),
        (lambda: ours.friedman([[1.0, 2.0], [1.0, 2.0, 3.0]]), "a value for each seed"),
        (lambda: ours.shapiro_wilk([1.0, 1.0, 1.0]), "all values are equal"),
        (lambda: ours.shapiro_wilk([1.0, 2.0]), "3 are required"),
        (lambda: ours.games_howell([[1.0, 1.0], [1.0, 2.0]]), "no variation"),
    ],
)
def test_invalid_input_is_refused(call: object, says: str) -> None:
    with pytest.raises(ours.StatisticsError, match=says):
        call()  # type: ignore[operator]
