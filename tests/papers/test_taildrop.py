"""The tail-drop study: the paper's scenarios, claims that can go every way, a small run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sojourn import _core
from sojourn.papers.outcome import Outcome
from sojourn.papers.report import show
from sojourn.papers.taildrop import claims, mechanisms, scenarios, study
from sojourn.papers.taildrop.paper import PAPER
from sojourn.papers.taildrop.variants import FLOWS, VARIANTS
from sojourn.stats import judge
from sojourn.tune.redopt import redopt

TINY = study.Size(
    bulk=14, bulk_warmup=11, bulk_seeds=2, proof=14, web=14, web_warmup=11, web_seeds=2,
    pilot=14, pilot_seeds=2, variant_seeds=2, web_variant_seeds=2,
)  # fmt: skip


def test_the_network_is_the_paper_s() -> None:
    """10 Mbit/s, 120 to 180 ms, a tenth of UDP in frames of 573 bytes."""
    plan = scenarios.bulk(16, 100, 20).plan()
    links = {entry["name"]: entry["params"] for entry in plan["links"]}
    assert links["bottleneck"]["rate"] == 10_000_000
    round_trips = [links["bottleneck"]["delay"] + links[f"left{i}"]["delay"] for i in (1, 2, 3, 4)]
    assert round_trips == [120_000_000, 140_000_000, 160_000_000, 180_000_000]
    assert sum(links[f"left{i}.reverse"]["delay"] for i in (1, 2, 3, 4)) == 0
    counts = {group["name"]: group["count"] for group in plan["groups"]}
    assert counts == {"udp": 4, "bulk": 16}


def test_web_frames_have_the_paper_s_mean() -> None:
    """Sessions are shared evenly by frames of 1400 to 1628 bytes, mean 1514."""
    assert np.mean(scenarios.WEB_FRAMES) == 1514
    plan = scenarios.web(803, 100, 20).plan()
    counts = [g["count"] for g in plan["groups"] if g["name"].startswith("web")]
    assert sum(counts) == 803
    assert max(counts) - min(counts) <= 1
    sizes = [g["transport"]["mss"] + 54 for g in plan["groups"] if g["name"].startswith("web")]
    assert sizes == list(scenarios.WEB_FRAMES)


@pytest.mark.parametrize("unit", ["packets", "bytes"])
@pytest.mark.parametrize("spacing", [mechanisms.DUMMYNET, mechanisms.NS2])
def test_mechanisms_have_equal_buffers(unit: str, spacing: str) -> None:
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
    assert red["wait"] == (spacing == "wait")
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


def _as_published(flows: int, mechanism: str) -> dict[str, float]:
    opt, std = mechanism == mechanisms.REDOPT, mechanism == mechanisms.RED
    light = flows < 64
    return {
        "goodput": 8.4e6,
        "udp_loss": 0.01 * (0.5 if opt and light else 1.0),
        "sojourn_mean": 0.2 * (1 if opt else flows / 64),
        "sojourn_sd": (0.5 / flows) if mechanism == mechanisms.TD else 0.005,
        "consecutive_loss_mean": 1.5 if (mechanism == mechanisms.TD and light)
        or (std and not light) else 1.0,
    }  # fmt: skip


def test_bulk_claims_hold_on_the_paper_s_own_story() -> None:
    """A table that is as the paper says makes every claim hold."""
    frame = _table("flows", scenarios.FLOWS, _as_published)
    verdicts = {j.claim.id: j.verdict for j in judge(claims.BULK, frame)}
    assert set(verdicts.values()) == {"holds"}, verdicts


def test_bulk_claims_fail_on_the_opposite_story() -> None:
    """A table that contradicts the paper makes none hold."""

    def opposite(flows: int, mechanism: str) -> dict[str, float]:
        td, opt = mechanism == mechanisms.TD, mechanism == mechanisms.REDOPT
        return {
            "goodput": 6e6 if td else 9e6,
            "udp_loss": 0.04 if opt else 0.01,
            "sojourn_mean": 0.1 * flows if opt else 0.1 * (1 + flows / 1e4),
            "sojourn_sd": 1e-4 * flows if td else 0.1,
            "consecutive_loss_mean": 1.0 if td else (2.0 if mechanism != mechanisms.RED else 1.5),
        }

    frame = _table("flows", scenarios.FLOWS, opposite)
    verdicts = {j.claim.id: j.verdict for j in judge(claims.BULK, frame)}
    assert set(verdicts.values()) == {"does not hold"}, verdicts


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """A study far too short to mean anything."""
    return PAPER.run(tmp_path_factory.mktemp("taildrop"), size=TINY)


@pytest.mark.slow
def test_every_claim_has_a_verdict_and_figures(outcome: Outcome) -> None:
    """Nothing is left out, and all of it is JSON."""
    data = json.loads(json.dumps(outcome.as_dict(), allow_nan=False))
    wanted = [c.id for c in (*claims.BULK, *claims.WEB, *claims.SETTINGS)]
    assert [c["id"] for c in data["claims"]] == wanted
    for claim in data["claims"]:
        assert claim["verdict"] in ("holds", "does not hold", "cannot be told")
        assert claim["findings"] or claim["note"]
        assert bool(claim["reason"]) == (claim["verdict"] == "does not hold")
    assert list(data["variants"]) == [v.name for v in VARIANTS]
    assert [s["load"] for s in data["settings"]["bulk"]] == list(scenarios.FLOWS)
    assert all(s["kind"] == "reconstructed" for s in data["settings"]["web"])


@pytest.mark.slow
def test_cells_are_complete(outcome: Outcome) -> None:
    """Each load meets each mechanism with each seed."""
    assert len(outcome.tables["bulk"]) == len(scenarios.FLOWS) * 4 * TINY.bulk_seeds
    assert len(outcome.tables["web"]) == len(scenarios.SESSIONS) * 4 * TINY.web_seeds
    for variant in VARIANTS:
        table = outcome.tables[variant.part]
        loads = FLOWS if variant.world == "bulk" else scenarios.SESSIONS
        assert len(table) == len(loads) * 4 * 2


@pytest.mark.slow
def test_a_second_call_runs_nothing_again(outcome: Outcome) -> None:
    """What is in the folder is used."""
    runs = sorted(outcome.folder.glob("*/runs.parquet"))
    before = {path: path.stat().st_mtime_ns for path in runs}
    again = PAPER.run(outcome.folder, size=TINY)
    assert {path: path.stat().st_mtime_ns for path in runs} == before
    pd.testing.assert_frame_equal(again.frame("bulk"), outcome.frame("bulk"))


@pytest.mark.slow
def test_the_report_is_written(outcome: Outcome, tmp_path: Path) -> None:
    """One page that needs no network, and both figures in three formats."""
    written = show(outcome)
    page = written[0].read_text()
    assert "REDopt is a reconstruction" in page
    assert {p.name for p in written} >= {"bulk.png", "bulk.svg", "bulk.pdf", "web.png"}
    assert all(p.stat().st_size > 1000 for p in written)
