"""The tail-drop study: the paper's scenarios, claims that can go every way, a small run."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest

from sojourn import _core
from sojourn.papers.report import show
from sojourn.papers.taildrop import claims, mechanisms, scenarios, study
from sojourn.papers.taildrop.paper import PAPER
from sojourn.papers.taildrop.variants import BULK, FLOWS, VARIANTS, WEB
from sojourn.stats import judge
from sojourn.tune.redopt import STANDARD_WEIGHT, redopt

TINY = study.TailDropSize(
    bulk=14, bulk_warmup=11, seeds=2, proof=14, web=14, web_warmup=11, web_seeds=2,
    pilot=14, pilot_seeds=2, variant_seeds=2, web_variant_seeds=2, today=14,
)  # fmt: skip
TD, RED, GRED, REDOPT = mechanisms.MECHANISMS


def test_the_network_is_the_paper_s() -> None:
    """10 Mbit/s, 120 to 180 ms, a tenth of UDP in frames of 573 bytes."""
    plan = json.loads(scenarios.bulk(16, 100, 20).plan_json)
    links = {entry["name"]: entry["params"] for entry in plan["links"]}
    assert links["bottleneck"]["rate"] == 10_000_000
    assert links["bottleneck"]["overhead"] == 24
    round_trips = [links["bottleneck"]["delay"] + links[f"left{i}"]["delay"] for i in (1, 2, 3, 4)]
    assert round_trips == [120_000_000, 140_000_000, 160_000_000, 180_000_000]
    assert sum(links[f"left{i}.reverse"]["delay"] for i in (1, 2, 3, 4)) == 0
    counts = {group["name"]: group["count"] for group in plan["groups"]}
    assert counts == {"udp": 4, "bulk": 16}


def test_framings_are_those_of_the_paper_s_parts() -> None:
    """Ethernet and Linux's timestamps where it measured; frames alone in ns-2 and as a reading."""

    def read(plan: dict[str, Any], group: str) -> tuple[int, bool]:
        link = next(e for e in plan["links"] if e["name"] == "bottleneck")
        tcp = next(g["transport"] for g in plan["groups"] if g["name"].startswith(group))
        return link["params"]["overhead"], tcp["timestamps"]

    assert read(json.loads(scenarios.bulk(16, 100, 20).plan_json), "bulk") == (24, True)
    assert read(json.loads(scenarios.web(800, 100, 20).plan_json), "web") == (0, False)
    readings = {
        v.name: read(json.loads(v.scenario(16, 100, 20).plan_json), "bulk")
        for v in (BULK, *VARIANTS)
        if v.bulk
    }
    assert readings.pop("bulk, plain framing") == (0, False)
    assert readings.pop("bulk, no timestamps") == (24, False)
    assert set(readings.values()) == {(24, True)}


def test_redopt_weighs_less_than_redstd_in_every_reading() -> None:
    """This is the paper's sentence; the sweep goes from a half to a fiftieth."""
    assert (mechanisms.WEIGHT_PARTS[0], mechanisms.WEIGHT_PARTS[-1]) == (2, 50)
    path = study.link(256)
    found = redopt(path, largest_weight=STANDARD_WEIGHT)
    assert found.weight == pytest.approx(STANDARD_WEIGHT)
    weights = []
    for variant in (BULK, WEB, *VARIANTS):
        made = variant.queues(variant.redopt(path, found))
        queues = {k: json.loads(_core.parse_queue(q)) for k, q in made.items()}
        standard, own = (
            queues[m]["averaging"]["weight"] for m in (mechanisms.RED, mechanisms.REDOPT)
        )
        assert own <= standard / 2
        if {*variant.assumes} == {"weight"}:
            assert variant.differing == (mechanisms.REDOPT,)
            weights.append(round(standard / own))
    assert weights == [10, 50] * 2


def test_readings_change_what_they_name() -> None:
    """Buffers in proportion to the flows, from both ends; `max_p` by the formulas alone."""
    settings = {n: redopt(study.link(n), largest_weight=STANDARD_WEIGHT) for n in (16, 64, 256)}
    verified = {n: replace(one, max_p=one.max_p / 2) for n, one in settings.items()}
    made = {
        v.name: {n: v.redopt(study.link(n), one) for n, one in verified.items()}
        for v in (BULK, *VARIANTS)
        if v.bulk
    }
    main = made["bulk"]
    assert {n: one.max_p for n, one in main.items()} == {
        n: one.max_p for n, one in verified.items()
    }
    for anchor in (16, 256):
        found = made[f"bulk, proportional from {anchor}"]
        one = redopt(study.link(anchor)).limit / anchor
        for n, parameters in found.items():
            assert parameters.limit / n == pytest.approx(one, rel=0.02)
            assert parameters.minimum / parameters.limit == pytest.approx(3 / 20, abs=0.01)
    formula = made["bulk, max_p by formula"]
    assert all(one.max_p == settings[n].max_p for n, one in formula.items())
    assert {one.limit for one in made["bulk, 300 packets"].values()} == {300}
    assert made["bulk, half buffers"][256].limit == pytest.approx(main[256].limit / 2, abs=1)


def test_loads_are_as_many_as_the_paper_s_runs_say() -> None:
    """1000 simulations are 50 repetitions of 4 mechanisms under 5 loads."""
    assert len(scenarios.SESSIONS) * len(mechanisms.MECHANISMS) * study.FULL.web_seeds == 1000


def test_a_buffer_gives_tail_drop_the_delay_asked_for() -> None:
    """The delay that a known buffer gives is found again, from another one."""
    scenario = scenarios.bulk(16, 40, 20)
    wanted = float(scenario.with_queue("pfifo limit 60p").run(1).metrics["sojourn_mean"])
    found = study.buffer_for(wanted, scenario, 150)
    assert 0.9 < found / 60 < 1.1


def test_web_frames_have_the_paper_s_mean() -> None:
    """Sessions are shared evenly by frames of 1400 to 1628 bytes, mean 1514."""
    assert np.mean(scenarios.WEB_FRAMES) == 1514
    plan = json.loads(scenarios.web(803, 100, 20).plan_json)
    counts = [g["count"] for g in plan["groups"] if g["name"].startswith("web")]
    assert sum(counts) == 803
    assert max(counts) - min(counts) <= 1
    sizes = [g["transport"]["mss"] + 54 for g in plan["groups"] if g["name"].startswith("web")]
    assert sizes == list(scenarios.WEB_FRAMES)


@pytest.mark.parametrize("unit", ["packets", "bytes"])
@pytest.mark.parametrize("spacing", get_args(mechanisms.Spacing))
def test_mechanisms_have_equal_buffers(unit: str, spacing: mechanisms.Spacing) -> None:
    """All take REDopt's buffer; thresholds of the standard ones are 3/20 and 13/20 of it."""
    found = redopt(study.link(64))
    queues = {
        name: json.loads(_core.parse_queue(text))
        for name, text in mechanisms.queues(found, spacing, unit).items()
    }
    assert tuple(queues) == mechanisms.MECHANISMS
    assert len({q["limit"] for q in queues.values()}) == 1
    red = queues[mechanisms.RED]
    assert red["min"] / red["limit"] == pytest.approx(3 / 20, abs=0.01)
    assert red["max"] / red["limit"] == pytest.approx(13 / 20, abs=0.01)
    assert red["wait"] == (spacing == "ns-2")
    assert red["max_p"] / 2**32 == pytest.approx(0.1)
    assert queues[mechanisms.GRED]["ramp"] == "gentle_limit"


def _table(factor: str, levels: tuple[int, ...], value: Any) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    rows = []
    for level in levels:
        for mechanism in mechanisms.MECHANISMS:
            for seed in range(1, 13):
                noise = 1 + 1e-4 * rng.standard_normal()
                metrics = {m: v * noise for m, v in value(level, mechanism).items()}
                rows.append({factor: level, "mechanism": mechanism, "seed": seed, **metrics})
    return pd.DataFrame(rows)


def _places(mechanism: str, share: float) -> dict[str, float]:
    """Returns the lengths of a queue that is `share` of the way from lower to upper threshold."""
    queue = math.nan if mechanism == TD else 3 + 10 * share
    return dict(zip(claims.PLACES, (queue / 3, queue / 8, queue / 13), strict=True))


def _bulk_as_published(flows: int, mechanism: str) -> dict[str, float]:
    light, standard = flows < 64, mechanism in (RED, GRED)
    part = {REDOPT: 0.5, TD: 0.7}.get(mechanism, 1.0) if light else 1.0
    steep = {REDOPT: 0.05, TD: 0.6}.get(mechanism, 0.25)
    lost = 1.5 if (mechanism == TD and light) or (mechanism == RED and not light) else 1.0
    return {
        "goodput": 8.4e6 * (0.98 if standard and flows == 16 else 1.0),
        "udp_loss": 0.01 * part * (1 - 8 / flows),
        "sojourn_mean": steep * (1 + flows / 256) + (0.2 if mechanism == REDOPT else 0),
        "sojourn_sd": 0.5 / flows if mechanism == TD else 0.005 * (1 + flows / 1000),
        "consecutive_loss_mean": lost + (0.05 if mechanism == REDOPT and not light else 0.0),
        "consecutive_loss_sd": 3.0,
        **_places(mechanism, 0.5 if mechanism == REDOPT else math.log2(flows / 16) / 4),
    }


def _bulk_opposite(flows: int, mechanism: str) -> dict[str, float]:
    td, opt = mechanism == TD, mechanism == REDOPT
    return {
        "goodput": {TD: 6e6, REDOPT: 8.8e6}.get(mechanism, 9e6),
        "udp_loss": (0.04 if opt else 0.01) * (flows / 256) ** 2,
        "sojourn_mean": 0.1 * flows if opt else 0.1 * (1 - flows / 1e4),
        "sojourn_sd": 1e-4 * flows if td else 0.1 * (1 + flows / 100),
        "consecutive_loss_mean": 1.0 if td else (1.5 if mechanism == RED else 2.0),
        "consecutive_loss_sd": 1.0,
        **_places(mechanism, 1.2 - flows / 256 if opt else 0.5),
    }


def _web_as_published(sessions: int, mechanism: str) -> dict[str, float]:
    steep = {REDOPT: 0.1, TD: 0.9}.get(mechanism, 0.4)
    loss = {800: 1.0, 1000: 1.1, 1100: 1.3, 1200: 1.5, 1400: 9.0}[sessions] / 100
    deviation = {TD: 0.2 - sessions / 1e4, REDOPT: 0.07}.get(mechanism, 0.05)
    return {
        "goodput": 6e6 + 2e3 * sessions,
        "udp_loss": loss * ((0.5 if sessions == 1200 else 0.9) if mechanism == TD else 1.0),
        "sojourn_mean": steep * sessions / 1000,
        "sojourn_sd": deviation * (1 if mechanism == TD else 1 + sessions / 1e5),
        "consecutive_loss_mean": 1.0 if mechanism == TD else 1.5,
        "max_p": {800: 0.01, 1000: 0.026, 1100: 0.03, 1200: 0.04}.get(sessions, 0.04 * 16.7),
    }


def _web_opposite(sessions: int, mechanism: str) -> dict[str, float]:
    td, opt = mechanism == TD, mechanism == REDOPT
    return {
        "goodput": (6e6 if td else 9e6) - 1e3 * sessions,
        "udp_loss": (0.02 if td else 0.01) * (1 - 600 / sessions),
        "sojourn_mean": 1e-3 * sessions if opt else 0.3 - (1e-4 if td else 2e-5) * sessions,
        "sojourn_sd": 0.01 + 1e-5 * sessions if td else 0.2 + 1e-4 * sessions * (1 - 0.9 * opt),
        "consecutive_loss_mean": 1.5 if td else 1.0,
        "max_p": 0.1,
    }


OF_WEB = (*claims.WEB, *claims.BOTH)
LISTED = (
    *(*claims.BULK, *claims.EQUAL_DELAY, *OF_WEB, *claims.SETTINGS),
    *(*claims.of_reading(OF_WEB, "scaled"), *claims.WEIGHTS),
)
STORIES = {
    "holds": (_bulk_as_published, _web_as_published),
    "does not hold": (_bulk_opposite, _web_opposite),
}


@pytest.mark.parametrize("verdict", STORIES)
def test_claims_can_go_both_ways(verdict: str) -> None:
    """All hold on a table that is as the paper says, none on one that contradicts it."""
    loads = (("flows", scenarios.FLOWS), ("sessions", scenarios.SESSIONS))
    stories = zip(loads, STORIES[verdict], strict=True)
    bulk, web = (_table(*of, value) for of, value in stories)
    bulk = study.of_bulk(bulk)
    frames = {"bulk": bulk, **study.of_web(web, bulk)}
    groups = {"bulk": claims.BULK, "": (*claims.WEB, *claims.SETTINGS), "both": claims.BOTH}
    for name, listed in groups.items():
        found = {j.claim.id: j.verdict for j in judge(listed, frames[name])}
        assert found == {claim.id: verdict for claim in listed}


def test_values_over_several_runs_are_missing_if_one_run_is() -> None:
    """A range or a growth over the other runs would be another quantity."""
    bulk = _table("flows", scenarios.FLOWS, _bulk_as_published)
    gone = (bulk["flows"] == 256) & (bulk["seed"] == 3) & (bulk["mechanism"] == TD)
    bulk.loc[gone, ["udp_loss", "consecutive_loss_mean"]] = np.nan
    found = study.of_bulk(bulk)
    missing = found[found[claims.RANGE].isna()]
    assert set(missing["mechanism"]) == set(mechanisms.MECHANISMS)
    assert set(zip(missing["flows"], missing["seed"], strict=True)) == {(256, 3)}
    assert found[claims.TAIL].isna().sum() == 1
    web = study.of_web(_table("sessions", scenarios.SESSIONS, _web_as_published), found)
    both = web["both"]
    missing = both[both[claims.LATE].isna()][["traffic", "mechanism", "seed"]]
    assert set(missing.itertuples(index=False, name=None)) == {("bulk", TD, 3)}
    assert not web[""][claims.OF_TD].isna().any()


@pytest.mark.parametrize(("goodput", "verdict"), [(1.0, "holds"), (0.9, "does not hold")])
def test_equal_delay_asks_for_equal_goodput(goodput: float, verdict: str) -> None:
    """Tail drop's runs are compared with REDopt's of the main part, seed by seed."""

    def story(flows: int, mechanism: str) -> dict[str, float]:
        part = goodput if mechanism == TD else 1.0
        return {"goodput": 8e6 * part, "sojourn_mean": 1e-3 * flows}

    bulk, own = (_table("flows", scenarios.FLOWS, story) for _ in range(2))
    own = own[own["mechanism"] == TD]
    frame = study.completed(bulk, (TD, RED, GRED), own)
    assert sorted(frame["mechanism"].unique()) == [REDOPT, TD]
    assert [j.verdict for j in judge(claims.EQUAL_DELAY, frame)] == [verdict]


def test_withdrawn_claims_are_judged_no_more() -> None:
    """A claim that changed has another name."""
    judged = {claim.id for claim in LISTED}
    assert not judged & {claim.id for claim in claims.WITHDRAWN}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> study.Results:
    """A study far too short to mean anything."""
    return PAPER.run(tmp_path_factory.mktemp("taildrop"), size=TINY)


@pytest.mark.slow
def test_every_claim_has_a_verdict_and_figures(outcome: study.Results) -> None:
    """Nothing is left out, and all of it is JSON."""
    data = json.loads(json.dumps(outcome.as_dict(), allow_nan=False))
    wanted = [claim.id for claim in LISTED]
    assert [c["id"] for c in data["claims"]] == wanted
    for claim in data["claims"]:
        assert claim["verdict"] in ("holds", "does not hold", "cannot be told")
        assert claim["findings"] or claim["note"]
    assert len(data["by_reading"]) == len({claim.finding for claim in LISTED})
    assert list(data["variants"]) == [v.name for v in VARIANTS if not v.equal_rank]
    assert [s["load"] for s in data["settings"]["bulk"]] == list(scenarios.FLOWS)
    assert all(s["kind"] == "reconstructed" for s in data["settings"]["web"])
    assert {c["id"] for c in data["withdrawn"]} == {c.id for c in claims.WITHDRAWN}
    assert set(outcome.tables["bulk"].seeds) == {claims.FIRST_SEED, claims.FIRST_SEED + 1}


@pytest.mark.slow
def test_cells_are_complete(outcome: study.Results) -> None:
    """Each load meets each mechanism with each seed."""
    assert len(outcome.tables["bulk"]) == len(scenarios.FLOWS) * 4 * TINY.seeds
    assert len(outcome.tables["web"]) == len(scenarios.SESSIONS) * 4 * TINY.web_seeds
    for variant in VARIANTS:
        table = outcome.tables[variant.part]
        loads = FLOWS if variant.bulk else scenarios.SESSIONS
        assert len(table) == len(loads) * len(variant.differing) * 2
        if not variant.equal_rank:
            judged = outcome.column.readings[variant.name]
            assert len(judged) == len(claims.BULK if variant.bulk else claims.WEB)
    assert not outcome.frame("today").isna().any(axis=None)


@pytest.mark.slow
def test_a_second_call_runs_nothing_again(outcome: study.Results) -> None:
    """Existing results in the folder are used."""
    runs = sorted(outcome.folder.glob("*/runs.parquet"))
    before = {path: path.stat().st_mtime_ns for path in runs}
    again = PAPER.run(outcome.folder, size=TINY)
    assert {path: path.stat().st_mtime_ns for path in runs} == before
    pd.testing.assert_frame_equal(again.frame("bulk"), outcome.frame("bulk"))


@pytest.mark.slow
def test_the_report_is_written(outcome: study.Results, tmp_path: Path) -> None:
    """One page that needs no network, and both figures in three formats."""
    written = show(outcome)
    page = written[0].read_text()
    assert "REDopt is a reconstruction" in page
    assert {p.name for p in written} >= {"bulk.png", "bulk.svg", "bulk.pdf", "web.png"}
    assert all(p.stat().st_size > 1000 for p in written)
