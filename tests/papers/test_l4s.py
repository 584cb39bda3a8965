"""The study of L4S: its scenarios, claims that can go every way, small runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sojourn.papers import load
from sojourn.papers.bench import quantified
from sojourn.papers.l4s import claims, figures, published, scenarios, study
from sojourn.papers.report import show
from sojourn.stats import SUPPORTED, AllIn, Claim, judge_components, support

PAPER = load("l4s")
GRID = [(20, 10), (100, 100)]
EQUAL = ("10/10", "20/20", "80/80")
MADE: dict[str, tuple[Claim, ...]] = {
    "rfc9332": claims.rfc(GRID),
    "rtt": claims.S1,
    "step": claims.S2,
    "bursts": claims.S2_BURSTS,
    "rates": claims.S3,
    "shared": claims.S6,
    "partial": claims.PARTIAL,
    "multiple": claims.MULTIPLE,
    "environments": claims.ENVIRONMENTS,
}


def test_every_claim_quotes_its_source_and_says_how_it_is_judged() -> None:
    made = [claim for listed in MADE.values() for claim in listed]
    assert len(made) == 32
    sources = ("RFC 9332, ", "Heist and Morton, ", "arXiv 24", "arXiv 26")
    for claim in made:
        assert claim.published.startswith(sources), claim.id
        assert claim.published.count('"') >= 2, claim.id
        assert claim.text, claim.id


def test_the_reading_has_no_mix_of_many_flows() -> None:
    made = claims.few(GRID)
    assert [c.finding for c in made] == ["rfc-mean-delay", "rfc-tail-delay", "rfc-no-losses"]
    flows = {m: sum(n for *_, n in groups) for m, groups in scenarios.MIXES.items()}
    assert {flows[m] for m in claims.FEW_MIXES} == {1, 2}
    cells = [cell for c in made if isinstance(c, AllIn) for cell in c.cells]
    assert {cell["mix"] for cell in cells} == set(claims.FEW_MIXES)


def test_measurements_of_the_sources_support_their_sentences() -> None:
    """Where they give numbers, each sentence is true of them: the verdicts then."""
    own = published.frames()
    told = {c.id: support(c, own).verdict for listed in MADE.values() for c in listed}
    known = {name for name, verdict in told.items() if verdict}
    assert {told[name] for name in known} == {SUPPORTED}
    assert {"s1-advantage", "s1-beyond-16", "s6-dominate", "2411-harm"} <= known


def test_the_sources_tables_have_every_cell() -> None:
    assert {len(row) for row in published.S6.values()} == {len(scenarios.S6_QUEUES)}
    assert list(published.S6) == list(scenarios.S6_RIVALS)
    assert {len(row) for row in published.PARTIAL.values()} == {len(scenarios.PARTIAL_QUEUES)}
    assert list(published.PARTIAL) == list(scenarios.PARTIAL_RIVALS)
    for queue, pair, rtts in published.S1:
        assert queue in scenarios.S1_QUEUES
        assert pair in scenarios.S1_PAIRS
        assert rtts in scenarios.S1_RTTS


GOOD: dict[str, Any] = {
    "rfc_share": 0.5, "rfc_window": 0.5, "rfc_delay": 0.5e-3, "rfc_delay_p99": 1e-3,
    "rfc_loss": 0.0, "rfc_classic_p99": 0.02, "rfc_utilisation": 0.99, "s5_share": 0.95,
    "s6_share": 0.95, "multiple_share": 0.9, "s2_greatest": 4.0,
}  # fmt: skip
BAD: dict[str, Any] = {
    "rfc_share": 0.9, "rfc_window": 0.9, "rfc_delay": 5e-3, "rfc_delay_p99": 9e-3,
    "rfc_loss": 0.01, "rfc_classic_p99": 0.02, "rfc_utilisation": 0.5, "s5_share": 0.5,
    "s6_share": 0.5, "multiple_share": 0.5, "s2_greatest": 0.2,
}  # fmt: skip


def value(metric: str, cell: dict[str, Any], good: bool) -> float:
    """A cell's mean where the sentences are true, or where their contrary is."""
    match metric:
        case "s1_share" if not good:
            equal = cell["rtts"] in EQUAL
            return 0.6 if cell["queue"] != "dualpi2" else 0.4 if equal else 0.7
        case "s1_share":
            if cell["queue"] == "pfifo":
                return 0.2 if cell["pair"] == "Prague, CUBIC" else 0.4
            if cell["queue"] == "fq_codel":
                return 0.5
            return 0.72 if cell["rtts"] in EQUAL else 0.03
        case "s2_spike":
            slow = 40.0 if cell["to"] == "1mbit" else 5.0
            return (slow if cell["control"] == "Prague" else 1.0) if good else 0.5
        case "s2_utilisation":
            return 10e6 if good and cell["sender"] == "Prague, dualpi2" else 20e6
        case "s3_excess":
            return 0.2 if good and cell["control"] == "Prague" else 0.05
        case "partial_share":
            high = cell["queue"] == "CoDel"
            return (0.95 if high else 0.05) if good else 0.5
        case "environment_delay":
            return 1e-3 if good and cell["where"] == "Mahimahi" else 0.5e-3
        case "rfc_classic_p99":
            return 0.02 if good or cell["mix"] == "20 CUBIC" else 0.2
        case _:
            return float((GOOD if good else BAD)[metric])


def frame(part: str, good: bool, spread: float) -> pd.DataFrame:
    """Runs of a part's cells, with noise that differs by cell and seed."""
    size = replace(study.QUICK, rates=(20, 100), rtts=(10, 100))
    cells = {
        "rfc9332": study.mixed(size), "rtt": study.fair(size), "step": study.steps(size),
        "bursts": study.bursts(size), "rates": study.varying(), "shared": study.shared(size),
        "partial": study.partial(size), "multiple": study.multiple(size),
        "environments": study.environments(size),
    }[part]  # fmt: skip
    metrics = {p.metric for claim in MADE[part] for p in claim.parts}
    draws = np.random.default_rng(11)
    return pd.DataFrame(
        {
            **levels,
            "seed": seed,
            **{
                m: value(m, dict(levels), good) * (1 + spread * draws.standard_normal())
                for m in sorted(metrics)
            },
        }
        for levels, _ in cells
        for seed in range(1, 9)
    )


@pytest.mark.parametrize("part", list(MADE))
def test_every_claim_can_hold_and_can_fail_and_can_be_left_open(part: str) -> None:
    for good, verdict in ((True, "holds"), (False, "does not hold")):
        rows = {"": frame(part, good, 0.002)}
        found = {j.claim.id: j.verdict for j in judge_components(quantified(MADE[part], rows))}
        assert set(found.values()) == {verdict}, found
    noisy = judge_components(quantified(MADE[part], {"": frame(part, True, 1.5)}))
    assert "cannot be told" in {j.verdict for j in noisy}


def test_delays_are_beyond_propagation_and_transmission() -> None:
    """A full packet that meets no queue has none."""
    scenario = scenarios.mixed("1 Prague", 20_000_000, 10, 4, 2)
    alone = {"name": "l4s", "from": "host-l4s", "to": "east", "app": "cbr rate 1mbit size 1514"}
    run = scenario.replace({"flows": [alone]}).run(seed=1)
    floor = scenarios.base(20_000_000, 10)
    assert run.metrics["l4s.delay_mean"] == pytest.approx(floor, rel=1e-6)


def test_a_trace_has_the_links_rate() -> None:
    for product, (packets, _) in scenarios.PRODUCTS.items():
        rates = {
            where: scenarios.environment(where, product, 10, 5).bottleneck_rate
            for where in ("link", "Mahimahi")
        }
        assert set(rates.values()) == {12_000_000 * packets}


def test_the_rate_steps_as_the_batch_says() -> None:
    plan = json.loads(
        scenarios.step(scenarios.PRAGUE, "fq_codel", "25mbit", 80, True, 30).plan_json
    )
    assert plan["duration"] == 60 * 10**9
    assert any("bursts" in link["name"] for link in plan["links"])
    varied = json.loads(scenarios.varying(scenarios.CUBIC, "fq_codel", 20).plan_json)
    assert [len(link["changes"]) for link in varied["links"][:2]] == [4, 4]


def tiny() -> study.L4sSize:
    return replace(
        study.QUICK, seeds=2, rates=(20,), rtts=(10,), mixed=(3, 1), fair=(3, 1), shared=(3, 1),
        after=3,
    )  # fmt: skip


@pytest.mark.usefixtures("one_format")
def test_a_small_run_is_kept_and_shown(tmp_path: Path) -> None:
    outcome = PAPER.run(tmp_path, size=tiny(), shift=-claims.FIRST_SEED + 1)
    data = json.loads(json.dumps(outcome.as_dict(), allow_nan=False))
    assert len(data["claims"]) == 32
    assert set(outcome.column.readings) == {claims.FEW}
    assert len(outcome.how_near()) > 1
    written = show(outcome)
    page = written[0].read_text(encoding="utf-8")
    assert "a flow will get roughly the same throughput" in page
    assert "RFC 9332 cites" in page
    drawn = {path.stem for path in written if path.suffix == ".png"}
    assert drawn == {"delays", "rtt", "rfc3168", "partial", "step"}
    assert {m for m in outcome.units if m in figures.METRICS} == set(figures.METRICS)
