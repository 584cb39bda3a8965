"""The rule of all studies: verdicts are nearness times contrast, and right on papers of our own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.papers import NAMES, load, records
from sojourn.papers.edge_store import scenarios
from sojourn.papers.multiverse import Declared, Reading
from sojourn.papers.outcome import Column, Outcome
from sojourn.papers.rule import (
    ALPHA,
    FEWEST,
    QUARTER,
    RULINGS,
    Condition,
    Measured,
    Ruled,
    Ruling,
    alike,
    answered,
    near,
    nearness,
    rule,
    without_margin,
)
from sojourn.papers.side_by_side import SIMULATED
from sojourn.scenario import Scenario
from sojourn.stats import MeanIn, Ratio, Region, judge
from sojourn.stats.estimate import Component
from sojourn.stats.verdict import Verdict
from sojourn.study import Study

CONTRASTS: tuple[Verdict, ...] = ("holds", "does not hold", "cannot be told")
contrasts = st.sampled_from(CONTRASTS)
readings = st.lists(st.text("abc", min_size=1), max_size=2)
positive = st.floats(1e-6, 1e6)


@given(contrasts, readings)
def test_far_from_the_paper_there_is_no_verdict_on_it(
    contrast: Verdict, given_in: list[str]
) -> None:
    assert rule(contrast, False, given_in) == "not reproduced"


@given(contrasts, st.none() | st.booleans(), readings)
def test_a_verdict_on_the_paper_needs_nearness_and_a_decided_contrast(
    contrast: Verdict, is_near: bool | None, given_in: list[str]
) -> None:
    found = rule(contrast, is_near, given_in)
    assert found in RULINGS
    if found in ("holds", "does not hold"):
        assert is_near
        assert found == contrast
    if found.endswith("in our network"):
        assert is_near is None
        assert found.startswith(contrast)
    if found == "does not hold":
        assert not given_in
    if contrast == "cannot be told" and is_near is not False:
        assert found == "cannot be told"


def _measured(
    values: list[float], paper: float, scatter: float | None = None, runs: int = 1
) -> Measured:
    ours = MeanIn(id="", text="", metric="x", region=Region())
    condition = Condition(quantity="x", ours=ours, of=("*",), scatter=scatter, runs=runs)
    return Measured(condition, Component("x", Region(), values), paper)


@given(st.lists(positive, min_size=2, max_size=6), positive, st.none() | st.floats(0, 1), positive)
def test_nearness_does_not_depend_on_the_unit(
    values: list[float], paper: float, scatter: float | None, unit: float
) -> None:
    plain = _measured(values, paper, scatter)
    scaled = _measured([unit * value for value in values], unit * paper, scatter)
    reach = plain.reach(0.95)
    assert scaled.reach(0.95) == pytest.approx(reach, rel=1e-6)
    # A number on the very limit may fall on either side of it.
    if not alike(max(plain.ratio, 1 / plain.ratio) / reach, 1 + 1e-6):
        assert plain.near() == scaled.near()


@given(st.lists(positive, min_size=2, max_size=6), positive, st.floats(0, 1), st.floats(0, 1))
def test_more_scatter_or_fewer_runs_never_bring_a_number_farther(
    values: list[float], paper: float, scatter: float, more: float
) -> None:
    one = _measured(values, paper, scatter)
    assert _measured(values, paper, scatter + more).reach(0.95) >= one.reach(0.95) - 1e-9
    assert _measured(values, paper, scatter, runs=4).reach(0.95) <= one.reach(0.95)
    if one.near():
        assert one.near(among=4)


@given(st.lists(positive, min_size=1, max_size=6), positive)
def test_without_the_paper_s_scatter_near_is_within_a_quarter_or_one_more_run(
    values: list[float], paper: float
) -> None:
    """One more of our runs may be farther, if their number shows it."""
    one = _measured(values, paper)
    quarter = 1 / QUARTER <= float(np.mean(values)) / paper <= QUARTER
    assert one.near() or not quarter
    if len(values) < FEWEST or float(np.ptp(values)) < 0.01 * min(values):
        assert one.near() == quarter


@pytest.mark.parametrize("skewed", [False, True])
def test_one_more_run_is_near_in_nineteen_of_twenty_studies(skewed: bool) -> None:
    """Over all conditions of a claim together, for few and many runs."""
    rng = np.random.default_rng(1)

    def drawn(n: int) -> list[float]:
        return list(np.exp(rng.normal(0, 0.2, n)) if skewed else rng.normal(100, 10, n))

    for n, conditions in ((3, 1), (10, 4)):
        hits = 0
        for _ in range(600):
            listed = [_measured(drawn(n), drawn(1)[0], scatter=0.05) for _ in range(conditions)]
            hits += bool(near(listed))
        # The greater of the two scatters counts, so a few more are near.
        assert 1 - ALPHA - 0.02 < hits / 600 < 1 - ALPHA + 0.04


def test_the_paper_s_known_scatter_needs_no_degrees_of_freedom() -> None:
    """With two of our runs, the limit is the normal one if the paper's scatter dominates."""
    found = _measured([99.99, 100.01], 100.0, scatter=0.1)
    assert math.log(found.reach(0.95)) == pytest.approx(0.196, rel=0.02)
    alone = _measured([99.0, 101.0], 100.0, scatter=0.001)
    assert math.log(alone.reach(0.95)) == pytest.approx(12.7 * 0.01 * 3**0.5, rel=0.01)


def test_nearness_is_shown_by_quantity_and_for_all() -> None:
    values = pd.DataFrame(
        {
            "quantity": ["loss", "loss", "delay", "delay"],
            "paper": [1.0, 2.0, 4.0, 0.0],
            "ours": [1.1, 4.0, math.nan, 1.0],
        }
    )
    (only,) = nearness(values).to_dict("records")
    assert (only["numbers"], only["within a quarter"]) == (2, 0.5)
    both = nearness(values.fillna(4.0)).to_dict("records")
    assert [row["quantity"] for row in both] == ["loss", "delay", "all"]
    assert nearness(values[:0]).empty


def test_an_answer_says_when_more_than_a_quarter_is_not_reproduced() -> None:
    table = nearness(pd.DataFrame({"quantity": ["x"], "paper": [2.0], "ours": [1.0]}))
    far = answered(["holds", "not reproduced", "not reproduced"], table, ["slow clock"])
    assert "1 holds, 0 do not hold, 2 not reproduced, 0 cannot be told." in far
    assert "within a quarter of 0 %" in far
    assert far.endswith("More than a quarter is not reproduced; causes tried: slow clock.")
    few = answered([*["holds"] * 3, "not reproduced"], table, [])
    assert "causes tried" not in few
    assert "publishes no number" in answered(["holds"], table[:0], [])


@pytest.mark.parametrize("name", NAMES)
def test_conditions_are_of_claims_and_have_a_published_number(name: str) -> None:
    """A claim has at most four. Claims that only real runs or all levels can judge are few."""
    paper, kept = load(name), records.record(name)
    assert kept is not None
    claims = [
        MeanIn(id=claim["id"], text="", metric="", region=Region()) for claim in kept["claims"]
    ]
    published = paper.published()
    for condition in paper.conditions:
        assert condition.paper or condition.measured(published, published), condition
        left_out = "--quick" in kept["command"] or condition.of[0].startswith("cpu-overhead")
        assert any(map(condition.concerns, claims)) or left_out
    for claim in claims:
        assert sum(condition.concerns(claim) for condition in paper.conditions) <= 4, claim.id


@pytest.mark.parametrize(
    ("region", "bare"),
    [
        (Region(low=1.1), "holds"),
        (Region(high=0.95), "does not hold"),
        (Region(low=1.0), ""),
        (Region(low=0.95), ""),  # a tolerance: without it, "not worse" would be "better"
    ],
)
def test_a_margin_of_our_own_is_shown_with_the_verdict_without_it(
    region: Region, bare: str
) -> None:
    claim = Ratio(id="c", text="", metric="x", a={"q": "a"}, b={"q": "b"}, region=region)
    rows = [{"q": q, "seed": s, "x": x + s / 1e3} for q, x in (("a", 1.07), ("b", 1.0))
            for s in range(6)]  # fmt: skip
    (judgement,) = judge([claim], pd.DataFrame(rows))
    assert without_margin(judgement) == bare
    difference = replace(judgement, claim=MeanIn(id="m", text="", metric="x", region=region))
    assert without_margin(difference) == ""


@pytest.mark.parametrize(("far", "ruling"), [((), "cannot be told"), (("other",), "does not hold")])
@pytest.mark.parametrize("apart", [False, True])
def test_a_finding_that_holds_in_another_reading_near_the_paper_is_not_refuted(
    tmp_path: Path, far: tuple[str, ...], ruling: Ruling, apart: bool
) -> None:
    """Both if another claim has the reading, and if the reading has runs of its own."""
    frame = pd.DataFrame({"q": "a", "seed": range(6), "x": np.arange(6) / 1e3 + 1})
    strict, loose = (
        MeanIn(id=f"c-{name}", text="", metric="x", reading=name, region=Region(low=low))
        for name, low in (("strict", 2), ("other", 0))
    )
    judgements = tuple(judge([strict, loose], frame))
    conditions = {
        claim.id: [_measured([1.0] * 6, 2.0 if claim.reading in far else 1.0)]
        for claim in (strict, loose)
    }
    column = Column(
        judgements=judgements[:1] if apart else judgements,
        readings={"another": judgements[1:]} if apart else {},
        conditions={"": conditions, "another": conditions},
    )
    outcome = Outcome(
        paper=load("edge-store"), size=load("edge-store").quick, quick=True, folder=tmp_path,
        columns={SIMULATED: column}, found={},
    )  # fmt: skip
    found = outcome.ruled(judgements[0])
    assert (found.contrast, found.verdict) == ("does not hold", ruling)
    assert found.given_in == (() if far else ("another" if apart else "other",))


# Papers that are written from our own runs


WRITES = 120
SEEDS = 24
PAPERS = range(101, 101 + 3 * SEEDS)
NETWORKS: dict[str, Callable[..., Scenario]] = {
    "ours": scenarios.scenario,
    "less loss": lambda n, rf, _loss, delay, w: scenarios.scenario(n, rf, "low", delay, w),
    "longer": lambda n, rf, loss, delay, w: scenarios.scenario(n, rf, loss, 2 * delay, w),
    "shorter": lambda n, rf, loss, delay, w: scenarios.scenario(n, rf, loss, delay // 2, w),
    "short timeout": partial(scenarios.scenario, tcp="cubic min_rto 20ms"),
}
DECLARED = Declared(
    {"longer": Reading(name="longer", assumes={"delay": "doubled"}, calibrated=("2-5",))}
)
CELLS = [(rf, delay) for delay in (20, 50) for rf in (1, 2, 3, 5)]


@cache
def runs(network: str, first: int, seeds: int = SEEDS) -> pd.DataFrame:
    """The latency of each cell and seed in a network of which a paper may be."""
    cells = [
        ({"rf": rf, "delay": delay}, NETWORKS[network](5, rf, "high", delay, WRITES))
        for rf, delay in CELLS
    ]
    study = Study.of_cells("papers", cells, kind="paper", question={"paper": "own"})
    frame = study.seeds(range(first, first + seeds)).run().frame
    return frame[["rf", "delay", "seed"]].assign(latency=frame["store.latency_mean"])


def written(network: str, seed: int) -> pd.DataFrame:
    """The table of a paper: one run of each cell; of other networks there are three papers."""
    seeds = len(PAPERS) if network in ("ours", "longer") else 3
    return runs(network, PAPERS.start, seeds).query("seed == @seed").assign(seed=1)


def rulings(
    paper: pd.DataFrame, wrong: bool, scatter: float | None, reading: str = "ours"
) -> dict[str, Ruling]:
    """The verdicts on sentences "a is slower than b" that a paper's table supports, by finding.

    The sentences are those of which our own runs are sure. If `wrong`, each is turned round. Our
    runs are those of the network `reading`; a finding that chose it does not judge it.
    """
    ours = runs(reading, 1)
    found: dict[str, Ruling] = {}
    for one, other in combinations([cell for cell in CELLS if cell[1] == 50], 2):
        a, b = ({"rf": rf, "delay": delay} for rf, delay in (one, other))
        claim = Ratio(
            id=f"{one[0]}-{other[0]}", text="", metric="latency", a=a, b=b, region=Region(low=1)
        )
        theirs = claim.components(paper)[0].point()
        if abs(math.log(theirs)) < 0.15 or DECLARED.chose(claim, reading):
            continue
        if (theirs < 1) != wrong:
            claim = replace(claim, a=b, b=a)
        levels = [cell for cell in CELLS if cell not in (one, other)][:4]
        conditions = [
            Condition(
                quantity="latency", of=(claim.id,), scatter=scatter,
                ours=MeanIn(id="", text="", metric="latency", cell={"rf": rf, "delay": delay},
                            region=Region()),
            )
            for rf, delay in levels
        ]  # fmt: skip
        measured = [c.measured({"": ours}, {"": paper}) for c in conditions]
        (judgement,) = judge([claim], ours)
        ruled = Ruled(judgement.verdict, tuple(m for m in measured if m))
        found[claim.finding] = ruled.verdict
    return found


@pytest.mark.parametrize("scatter", [None, 0.05])
def test_nine_of_ten_synthetic_papers_get_the_right_verdicts(scatter: float | None) -> None:
    """True papers hold, planted falsehoods do not, and other networks are not reproduced."""
    papers = [written("ours", seed) for seed in PAPERS]
    true, false = (
        [v for paper in papers for v in rulings(paper, wrong, scatter).values()]
        for wrong in (False, True)
    )
    others = [
        verdict
        for network in NETWORKS
        if network != "ours"
        for seed in (101, 102, 103)
        for verdict in rulings(written(network, seed), False, scatter).values()
    ]
    for verdicts, right in ((true, "holds"), (false, "does not hold"), (others, "not reproduced")):
        assert len(verdicts) >= 10
        hits = sum(verdict == right for verdict in verdicts)
        assert hits >= 0.9 * len(verdicts), (right, verdicts)


def test_a_calibrated_reading_is_judged_by_the_findings_that_did_not_choose_it() -> None:
    """A paper from another network is not reproduced, but holds in the reading with its delay.

    The finding that chose the delay has no verdict there, and the reading flips the others alone.
    """
    papers = [written("longer", seed) for seed in PAPERS]
    main, longer = (
        [rulings(paper, False, 0.05, reading) for paper in papers] for reading in ("ours", "longer")
    )
    assert not any("2-5" in found for found in longer)
    assert sum("2-5" in found for found in main) >= 0.9 * len(papers)
    verdicts = [verdict for found in longer for verdict in found.values()]
    assert len(verdicts) >= 10
    told = [verdict for verdict in verdicts if verdict != "cannot be told"]
    assert len(told) >= 0.8 * len(verdicts), verdicts
    assert told.count("holds") >= 0.9 * len(told), verdicts
    probe = MeanIn(id="2-5-longer", text="", metric="", region=Region(), reading="longer")
    assert DECLARED.labels(probe) == ["exploratory", "calibrated by 2-5"]
    assert DECLARED.flips({"main": "does not hold", "longer": "holds"}) == ("delay",)
