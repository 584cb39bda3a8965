"""Every kind of claim on synthetic tables that give all three verdicts."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sojourn.show.terminal import parts as shown_parts
from sojourn.stats import (
    NOT_SUPPORTED,
    SUPPORTED,
    AllIn,
    Claim,
    ClaimError,
    Difference,
    Every,
    Judgement,
    Least,
    LeastVariation,
    MeanIn,
    Monotone,
    PracticallyEqual,
    Ratio,
    Region,
    StatisticsError,
    Verdict,
    claim_from_dict,
    claim_to_dict,
    judge,
    judge_components,
    support,
)
from sojourn.stats.cells import Cell, describe_pair
from sojourn.stats.estimate import LogComponent

HOLDS: Verdict = "holds"
NOT: Verdict = "does not hold"
UNTOLD: Verdict = "cannot be told"


def table(
    means: dict[tuple[str, int], float], noise: float, seeds: int = 12, rng_seed: int = 1
) -> pd.DataFrame:
    """A study over queue and flows: cell means, noise common to a seed and noise of its own."""
    rng = np.random.default_rng(rng_seed)
    common = rng.normal(0, noise, seeds)
    rows: list[dict[str, Any]] = []
    for (queue, flows), mean in means.items():
        own = rng.normal(0, noise, seeds)
        rows += [
            {"queue": queue, "flows": flows, "seed": s, "delay": mean + common[s] + own[s]}
            for s in range(seeds)
        ]
    return pd.DataFrame(rows)


def verdict(claim: Claim, frame: pd.DataFrame) -> Judgement:
    (found,) = judge([claim], frame)
    json.dumps(found.to_dict(), allow_nan=False)
    assert claim_from_dict(json.loads(json.dumps(claim_to_dict(claim)))) == claim
    assert found.claim.id in found.summary()
    return found


def cells(td: list[float], red: list[float], gred: list[float]) -> dict[tuple[str, int], float]:
    out: dict[tuple[str, int], float] = {}
    for name, row in (("td", td), ("red", red), ("gred", gred)):
        out |= {(name, 16 * 2**i): m for i, m in enumerate(row)}
    return out


FLAT = cells([10.0, 10, 10], [10.0, 10, 10], [10.0, 10, 10])
HALF = cells([10.0, 10, 10], [5.0, 5, 5], [10.0, 10, 10])
FALL = cells([20.0, 14, 10], [10.0, 10, 10], [10.0, 11, 12])
STEADY = cells([10.0, 20, 30], [10.0, 11, 12], [10.0, 18, 26])

ID: dict[str, Any] = {"id": "c", "text": "a finding", "metric": "delay"}
TD, RED = {"queue": "td"}, {"queue": "red"}

CASES: list[tuple[str, Claim, dict[tuple[str, int], float], float, Verdict]] = []


def case(
    claim: Claim, means: dict[tuple[str, int], float], noise: float, expected: Verdict
) -> None:
    CASES.append((f"{claim.kind}-{expected}", claim, means, noise, expected))


mean_claim = MeanIn(**ID, cell={"queue": "td", "flows": 16}, region=Region(9, 11))
case(mean_claim, FLAT, 0.1, HOLDS)
case(mean_claim, FALL, 0.1, NOT)
case(mean_claim, FLAT, 5.0, UNTOLD)

ratio = Ratio(
    **ID, a={**RED, "flows": [16, 32]}, b={**TD, "flows": [16, 32]}, region=Region(0.4, 0.6)
)
case(ratio, HALF, 0.1, HOLDS)
case(ratio, FLAT, 0.1, NOT)
case(ratio, HALF, 3.0, UNTOLD)

each = Ratio(**ID, a=RED, b=TD, region=Region(high=0.7), each="flows")
case(each, HALF, 0.1, HOLDS)
case(each, FALL, 0.1, NOT)  # 0.5 and 0.71 and 1
case(each, HALF, 5.0, UNTOLD)

difference = Difference(**ID, a=RED, b=TD, region=Region(-6, -4))
case(difference, HALF, 0.1, HOLDS)
case(difference, FLAT, 0.1, NOT)
case(difference, HALF, 4.0, UNTOLD)

all_in = AllIn(**ID, cells=(TD, RED, {"queue": "gred"}), region=Region(9.5, 10.5))
case(all_in, FLAT, 0.1, HOLDS)
case(all_in, HALF, 0.1, NOT)
case(all_in, FLAT, 2.0, UNTOLD)

equal = PracticallyEqual(**ID, among="queue", margin=0.05, each="flows")
case(equal, FLAT, 0.1, HOLDS)
case(equal, HALF, 0.1, NOT)
case(equal, FLAT, 2.0, UNTOLD)

falls = Monotone(**ID, over="flows", direction="falls", cell=TD, at_least=0.2)
case(falls, FALL, 0.1, HOLDS)
case(falls, STEADY, 0.1, NOT)
case(falls, FLAT, 0.1, NOT)
case(falls, FALL, 20.0, UNTOLD)
rises = Monotone(**ID, over="flows", direction="rises", cell={"queue": "gred"}, at_least=0.1)
case(rises, FALL, 0.05, HOLDS)
case(rises, FLAT, 0.05, NOT)
case(rises, FALL, 20.0, UNTOLD)

least = Least(**ID, among="queue", who="red", margin=0.2)
case(least, HALF, 0.1, HOLDS)
case(least, FLAT, 0.1, NOT)
case(least, HALF, 6.0, UNTOLD)
largest = Least(**ID, among="queue", who="td", extreme="largest", cell={"queue": ["td", "red"]})
case(largest, HALF, 0.1, HOLDS)
case(largest, cells([5.0] * 3, [9.0] * 3, [7.0] * 3), 0.1, NOT)
case(largest, FLAT, 0.1, UNTOLD)

variation = LeastVariation(**ID, among="queue", who="red", over="flows")
case(variation, STEADY, 0.1, HOLDS)
case(variation, cells([10.0, 11, 12], [10.0, 20, 30], [10.0, 18, 26]), 0.1, NOT)
case(variation, STEADY, 9.0, UNTOLD)
by_range = LeastVariation(
    **ID, among="queue", who="red", over="flows", measure="spread", margin=0.5
)
case(by_range, STEADY, 0.1, HOLDS)

every = Every(
    id="c",
    text="both",
    claims=(ratio, MeanIn(id="d", text="x", metric="delay", cell=TD, region=Region(9, 11))),
)
case(every, HALF, 0.1, HOLDS)
case(every, FLAT, 0.1, NOT)
case(every, HALF, 4.0, UNTOLD)


@pytest.mark.parametrize(
    ("claim", "means", "noise", "expected"),
    [c[1:] for c in CASES],
    ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)],
)
def test_three_verdicts(
    claim: Claim, means: dict[tuple[str, int], float], noise: float, expected: str
) -> None:
    found = verdict(claim, table(means, noise))
    assert found.verdict == expected
    places = {f.where for f in found.findings}
    if expected == HOLDS:
        assert places == {"inside"}
    elif expected == NOT:
        assert "outside" in places
    else:
        assert found.note


@pytest.mark.parametrize(("rng_seed", "truth"), [(i, 0.58) for i in range(4)] + [(9, 0.75)])
def test_the_stated_number_of_seeds_suffices_for_a_verdict(rng_seed: int, truth: float) -> None:
    means = cells([10.0, 10, 10], [10 * truth] * 3, [10.0, 10, 10])
    claim = Ratio(**ID, a=RED, b=TD, region=Region(high=0.65))
    few = verdict(claim, table(means, 3.0, 6, rng_seed))
    if few.verdict != UNTOLD:
        return
    # The number is sized by an estimate from few seeds, so it is checked against the true spread:
    # with many more seeds than it could say, the verdict is the right one.
    assert few.seeds_needed is None or few.seeds_needed > 6
    many = verdict(claim, table(means, 3.0, 3000, rng_seed))
    assert many.verdict == (HOLDS if truth < 0.65 else NOT)


def test_seeds_needed_reaches_the_power_it_promises() -> None:
    # deviation 1 around 0.5 inside "at least 0": 34 seeds give power 0.8.
    rng = np.random.default_rng(3)
    x = rng.normal(0, 1, 10)
    x = (x - x.mean()) / x.std(ddof=1) + 0.5
    frame = pd.DataFrame({"seed": range(10), "delay": x})
    found = verdict(MeanIn(**ID, region=Region(low=0)), frame)
    assert found.verdict == UNTOLD
    assert found.seeds_needed == 34
    hits = sum(
        verdict(
            MeanIn(**ID, region=Region(low=0)),
            pd.DataFrame({"seed": range(34), "delay": rng.normal(0.5, 1, 34)}),
        ).verdict
        == HOLDS
        for _ in range(400)
    )
    assert 0.74 <= hits / 400 <= 0.86


def test_a_claim_on_the_edge_is_rarely_decided() -> None:
    """On the region's edge each wrong decision happens in at most 2.5 % of studies."""
    rng = np.random.default_rng(4)
    claim = MeanIn(**ID, region=Region(low=0))
    verdicts = [
        judge([claim], pd.DataFrame({"seed": range(10), "delay": rng.normal(0, 1, 10)}))[0].verdict
        for _ in range(700)
    ]
    assert verdicts.count(HOLDS) / 700 < 0.035
    assert verdicts.count(NOT) / 700 < 0.035


@pytest.mark.slow
def test_holm_over_the_study() -> None:
    """Twenty claims on the edge: at most 5 % of studies decide any of them."""
    rng = np.random.default_rng(5)
    wrong = 0
    claims = [MeanIn(id=f"c{i}", text="", metric=f"m{i}", region=Region(low=0)) for i in range(20)]
    for _ in range(200):
        frame = pd.DataFrame(rng.normal(0, 1, (10, 20)), columns=[f"m{i}" for i in range(20)])
        frame["seed"] = range(10)
        wrong += any(j.verdict != UNTOLD for j in judge(claims, frame))
    assert wrong / 200 <= 0.09


def test_shown_intervals_agree_with_the_verdicts() -> None:
    rng = np.random.default_rng(6)
    for trial in range(30):
        means = {(q, f): float(rng.uniform(5, 15)) for q in ("td", "red") for f in (16, 32, 64)}
        frame = table(means, float(rng.uniform(0.05, 4)), 8, trial)
        claims: list[Claim] = [
            Ratio(**{**ID, "id": "r"}, a=RED, b=TD, region=Region(0.6, 1.1)),
            Ratio(**{**ID, "id": "e"}, a=RED, b=TD, region=Region(0.6, 1.3), each="flows"),
            Difference(**{**ID, "id": "d"}, a=RED, b=TD, region=Region(-2, 2)),
            MeanIn(**{**ID, "id": "m"}, cell=RED, region=Region(8, 12)),
            LeastVariation(**{**ID, "id": "v"}, among="queue", who="red", over="flows"),
        ]
        for found in judge(claims, frame):
            places = [f.where for f in found.findings]
            assert (found.verdict == HOLDS) == (set(places) == {"inside"})
            assert (found.verdict == NOT) == ("outside" in places)


def test_the_interval_of_an_undecided_claim_is_never_outside() -> None:
    """One of ten quantities outside by 95 % alone is no refutation, nor is it shown as one."""
    rng = np.random.default_rng(8)
    seen = 0
    for trial in range(12):
        means = {("td", flows): 10.0 for flows in range(10)} | {("td", 10): 11.2}
        frame = table(means, 1.0, 8, trial + int(rng.integers(1000)))
        claim = MeanIn(**ID, cell=TD, region=Region(9, 10.5), each="flows")
        found = verdict(claim, frame)
        alone = [f for f in judge([claim], frame, alpha=0.5)[0].findings if f.where == "outside"]
        seen += found.verdict == UNTOLD and bool(alone)
        assert found.verdict == NOT or {f.where for f in found.findings} <= {"inside", "across"}
    assert seen > 1


def test_parts_of_a_conjunction_have_simultaneous_intervals() -> None:
    parts = tuple(
        Ratio(id="", text=f"at {n}", metric="delay", a={**RED, "flows": n}, b={**TD, "flows": n},
              region=Region(0.4, 0.6))
        for n in (16, 32, 64)
    )  # fmt: skip
    claim = Every(id="c", text="at every load", claims=parts)
    frame = table(HALF, 0.1)
    found = verdict(claim, frame)
    assert found.verdict == HOLDS
    assert [f.part for f in found.simultaneous] == ["at 16", "at 32", "at 64"]
    assert {round(f.interval.level, 6) for f in found.findings} == {0.95}
    assert {round(f.interval.level, 6) for f in found.simultaneous} == {round(1 - 0.05 / 3, 6)}
    assert list(shown_parts(found)) == ["at 16", "at 32", "at 64"]
    assert shown_parts(verdict(ratio, frame)) == {}


def test_seeds_are_named_only_if_the_interval_shrinks_with_them() -> None:
    """One seed far from all others leaves the interval nearly as wide as those of halves."""
    claim = MeanIn(**ID, region=Region(low=0.2))
    even = pd.DataFrame({"seed": range(12), "delay": [0, 0, 1, 1] * 3})
    even["delay"] = even["delay"] + [0.1, -0.1, 0.0] * 4
    found = verdict(claim, even)
    assert found.verdict == UNTOLD
    assert found.seeds_needed is not None
    apart = pd.DataFrame({"seed": range(12), "delay": [0.3 + 0.001 * s for s in range(11)] + [9]})
    found = verdict(claim, apart)
    assert found.verdict == UNTOLD
    assert found.seeds_needed is None
    few = verdict(claim, even[even["seed"] < 3])
    assert few.seeds_needed is None
    assert "too few seeds" in few.note
    (longer,) = judge_components([(claim, claim.components(even))], instead="run longer")
    assert longer.seeds_needed is None
    assert longer.note == "run longer"


def test_the_paper_s_own_numbers_are_held_against_its_sentence() -> None:
    """The wider region may hold where the sentence fails on its table."""
    own = pd.DataFrame({"queue": ["td", "red"], "flows": 16, "seed": 1, "delay": [10.0, 7.0]})
    wide = Ratio(**ID, a=RED, b=TD, region=Region(0.3, 0.8))
    strict = Ratio(**ID, a=RED, b=TD, region=Region(0.3, 0.8), as_published=Region(0.45, 0.55))
    assert support(wide, {"": own}).verdict == SUPPORTED
    found = support(strict, {"delay": own})
    assert found.verdict == NOT_SUPPORTED
    assert "red / queue td: 0.7, predicted 0.45 to 0.55" in found.text
    # Our runs are judged by the wider one, and the claim goes through JSON with both.
    assert verdict(strict, table(cells([10.0] * 3, [7.0] * 3, [9.0] * 3), 0.1)).verdict == HOLDS
    both = Every(id="c", text="both", claims=(wide, strict))
    assert support(both, {"": own}).holds is False
    assert support(wide, {}).verdict == ""
    other = Ratio(**ID, a={"queue": "pie"}, b=TD, region=Region())
    assert support(other, {"": own}).holds is None


def test_zero_losses_cannot_be_told() -> None:
    frame = table(FLAT, 0.0)
    frame["delay"] = 0.0
    found = verdict(ratio, frame)
    assert found.verdict == UNTOLD
    assert "denominator is not above" in found.note
    assert found.seeds_needed is None


def test_no_spread_on_the_edge_is_inside() -> None:
    frame = pd.DataFrame({"seed": [1, 2, 3], "delay": [2.0, 2, 2]})
    assert verdict(MeanIn(**ID, region=Region(2, 2)), frame).verdict == HOLDS
    assert verdict(MeanIn(**ID, region=Region(2, 3)), frame).verdict == HOLDS
    assert verdict(MeanIn(**ID, region=Region(3, 4)), frame).verdict == NOT


def test_omitted_missing_values_are_reported() -> None:
    frame = table(HALF, 0.1)
    frame.loc[(frame.queue == "red") & (frame.seed == 3) & (frame.flows == 16), "delay"] = math.nan
    found = verdict(ratio, frame)
    assert found.verdict == HOLDS
    assert "1 seeds with" in found.note
    assert found.seeds == 11
    frame["delay"] = math.nan
    assert "two are required" in verdict(ratio, frame).note


def test_one_seed_gives_no_verdict() -> None:
    found = verdict(ratio, table(HALF, 0.1, 1))
    assert found.verdict == UNTOLD
    assert "1 seeds" in found.note


def test_effect_size_is_there() -> None:
    found = verdict(ratio, table(HALF, 0.1))
    effect = found.findings[0].effect
    assert effect is not None
    assert effect.high < -1


@pytest.mark.parametrize(
    ("claim", "says"),
    [
        (Ratio(**ID, a={"queue": "tdd"}, b=TD, region=Region()), "no runs with queue = 'tdd'"),
        (Ratio(**ID, a={"queues": "td"}, b=TD, region=Region()), "did you mean `queue`"),
        (MeanIn(**{**ID, "metric": "dellay"}, region=Region()), "did you mean `delay`"),
        (Monotone(**ID, over="flows", direction="rises", cell={"flows": 16}), "needs two"),
        (Least(**ID, among="queue", who="td", cell={"queue": "td"}), "no rival to compare"),
    ],
)
def test_claims_that_do_not_fit_the_table(claim: Claim, says: str) -> None:
    with pytest.raises(ClaimError, match=says):
        judge([claim], table(FLAT, 0.1))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"kind": "ratioo", "id": "x"}, "unknown kind"),
        ({"kind": "mean", "id": "x", "text": "", "metric": "m", "regoin": [0, 1]}, "did you mean"),
        ({"kind": "mean", "id": "x", "text": "", "metric": "m"}, "needs 'region'"),
        ({"kind": "mean", "id": "x", "text": "", "metric": "m", "region": [1]}, "two numbers"),
    ],
)
def test_claim_data_is_checked(data: dict[str, Any], says: str) -> None:
    with pytest.raises(ClaimError, match=says):
        claim_from_dict(data)


def test_region() -> None:
    assert 0.5 in Region.around(0.5, 0.1)
    assert str(Region(high=2)) == "at most 2"
    assert str(Region(1, 2)) == "1 to 2"
    with pytest.raises(StatisticsError, match="limit of a region"):
        Region(2, 1)


def test_common_levels_of_compared_cells_are_listed_once() -> None:
    a: Cell = {"network": "equal", "policy": "IQLB", "clients": [4, 10]}
    b: Cell = {"network": "equal", "policy": "RR", "clients": [4, 10]}
    told = describe_pair(a, "/", b, " at load 2")
    assert told == "policy IQLB / policy RR at load 2 (network equal; clients 4, 10)"
    assert describe_pair({"queue": "pie"}, "-", {"queue": "red"}) == "queue pie - queue red"
    assert describe_pair({"a": 1, "b": 2}, "/", {"c": 3}) == "(a 1; b 2) / c 3"
    assert describe_pair({"a": 1, "b": 2}, "/", {"a": 1}) == "b 2 / all runs (a 1)"


def test_limits_too_large_for_a_number_are_infinite() -> None:
    """Two seeds with very different values leave nearly everything open."""
    component = LogComponent("wide", Region(high=1), np.array([0.0, 300.0]), 2)
    found = component.interval(0.999)
    assert (found.low, found.high) == (0.0, math.inf)
    assert found.estimate == pytest.approx(math.exp(150))
