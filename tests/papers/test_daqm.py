"""The dAQM study: published numbers, estimators, claims that can go every way, a small run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sojourn.papers.daqm import claims, estimators, parts, published, scenarios, study
from sojourn.papers.daqm.mechanisms import C1, C2, C3, COBALT, CONFIGURATIONS, EIGHT, RED, SIXTEEN
from sojourn.papers.daqm.paper import PAPER
from sojourn.papers.outcome import Outcome
from sojourn.papers.paper import Part
from sojourn.papers.report import show
from sojourn.stats import judge

TINY = parts.Size(
    short=0.6, long=0.6, warmup=0.6, loads=(1.2,), published_seeds=1, described_seeds=1,
    seeds=2, whole=False, published_share=0.4,
)  # fmt: skip


def test_published_tables_agree_with_the_raw_results() -> None:
    """Tables 4 and 6 come from the same runs as the follow-up's files: RED's row shows it."""
    known = published.frame()
    red = known[(known["mechanism"] == RED) & (known["metric"] == "plr")]
    assert (red.loc[red["flow"] == "http", "published"] <= 0.57).all()
    one = known[(known["source"] == "table 6") & (known["metric"] == "delay")]
    raw = known[(known["source"] == "load, 4000 kbit/s") & (known["metric"] == "delay")]
    np.testing.assert_allclose(one["published"].to_numpy(), raw["published"].to_numpy(), rtol=0.01)
    for source in published.SOURCES:
        for row in source.values.values():
            assert len(row) == len(source.mechanisms), source.name


def test_every_published_value_has_its_cell() -> None:
    """The runs as published are those that published values are about."""
    cells = {
        tuple(factors[name] for name in parts.KEY)
        for factors, _ in parts.as_published(parts.FULL).cells
    }
    for row in published.frame().to_dict("records"):
        assert parts.key_of({str(k): v for k, v in row.items()}) in cells, row


def _flow_series(**columns: list[float]) -> pd.DataFrame:
    rows = len(columns["time"])
    base: dict[str, Any] = {
        "group": ["clients"] * rows, "flow": [0] * rows, "back": [False] * rows,
        "sent": [100] * rows, "received": [80] * rows, "received_bytes": [80_000] * rows,
        "dropped": [0] * rows, "measurement_drops": [0] * rows, "lost": [0] * rows,
        "delay_sum": [8.0] * rows, "first_sent": [1.0] * rows, "last_received": [3.0] * rows,
    }  # fmt: skip
    return pd.DataFrame({**base, **columns})


def _series(times: list[float], queue: list[float], sojourn: list[float]) -> pd.DataFrame:
    return pd.DataFrame({"time": times, "latest.queue": queue, "latest.last_sojourn": sojourn})


def test_the_published_averages_by_hand() -> None:
    """Drops twice, discards late, acknowledgements as flows, zeros left out."""
    watched = _flow_series(
        time=[1.0, 1.0, 12.0, 12.0],
        back=[False, True, False, True],
        received=[80, 40, 80, 40],
        delay_sum=[8.0, 0.4, 8.0, 0.4],
        dropped=[15, 0, 15, 0],
        measurement_drops=[10, 0, 10, 0],
    )
    found = estimators.samples(watched, _series([1.0, 12.0], [0, 6], [0.0, 0.3]))
    # 100 ms there, 10 ms back: the plain mean over both.
    assert found["delay"].tolist() == pytest.approx([55.0, 55.0])
    # 5 real drops twice; the 10 discards of 1 s count from 11 s on, but no sample stands there.
    assert found["plr"].tolist() == pytest.approx([0.05, 0.05])
    assert found["throughput"].iloc[0] == pytest.approx(8e-3 * 80_000 / 2)
    assert found["fct"].iloc[0] == pytest.approx(2.0)
    means = estimators.averages(found)
    assert means["queue"] == 6
    assert means["sojourn"] == pytest.approx(300)
    assert estimators.with_zeros(found)["queue"] == 3
    books = estimators.books(watched)
    assert books["loss"] == pytest.approx(0.15)
    assert books["discarded"] == pytest.approx(0.10)


def test_discards_count_ten_seconds_late() -> None:
    """A packet without a trace is missed for 10 s, then lost once."""
    watched = _flow_series(time=[1.0, 11.0], measurement_drops=[10, 10], dropped=[10, 10])
    found = estimators.samples(watched, _series([1.0, 11.0], [1, 1], [0.1, 0.1]))
    assert found["plr"].tolist() == pytest.approx([0.0, 0.1])


def test_offered_loads_are_those_of_the_models() -> None:
    """A port at load 1 carries what twenty clients send on the mean, headers included."""
    port = scenarios.port_rate(scenarios.Traffic(scenarios.HTTP, "vbr"), 1.0)
    assert port == pytest.approx(20 * 1.5e6 * 0.4 * 1454 / 1400)
    http = scenarios.Traffic(scenarios.HTTP, "cbr")
    assert scenarios.port_rate(http, 2.0) * 2 == pytest.approx(
        scenarios.port_rate(http, 1.0), abs=2
    )


def _story(mechanism: str, flow: str, model: str) -> dict[str, float]:
    """A world in which everything is as the thesis says."""
    daqm = mechanism.startswith("dAQM")
    if flow == "http" and model == "cbr":
        sojourn = {C3: 4.0, RED: 100.0}.get(mechanism, 5.0 if daqm else 20.0)
    else:
        sojourn = {COBALT: 1.0, C3: 3.0, RED: 100.0}.get(mechanism, 5.0)
    if flow in ("voip", "gaming") and mechanism == RED:
        sojourn = 10.0
    delivered = 1e6
    if daqm and flow in ("ftp", "streaming") and model == "poisson-onoff":
        delivered = 0.9e6
    if mechanism == COBALT and (flow, model) == ("streaming", "cbr"):
        delivered = 1.1e6
    return {
        claims.SOJOURN: sojourn,
        claims.QUEUE: {C3: 1.0, RED: 50.0}.get(mechanism, 2.0 if daqm else 4.0),
        claims.LOSS: {C1: 0.01, COBALT: 0.09}.get(mechanism, 0.05),
        claims.DELAY: {C2: 1.0, COBALT: 1.01}.get(mechanism, 1.03),
        claims.DELIVERED: delivered,
        claims.COMPLETION: 8.0 if mechanism == COBALT else 10.0,
    }


def _opposite(mechanism: str, flow: str, model: str) -> dict[str, float]:
    """A world in which nothing is."""
    daqm = mechanism.startswith("dAQM")
    number = (*SIXTEEN,).index(mechanism)
    return {
        claims.SOJOURN: {COBALT: 90.0, C3: 95.0, RED: 1.0}.get(mechanism, 50.0 if daqm else 20.0)
        * (1.0 if flow not in ("voip", "gaming") or not daqm else 0.5),
        claims.QUEUE: {C3: 90.0, RED: 1.0}.get(mechanism, 50.0 if daqm else 20.0),
        claims.LOSS: {C1: 0.09, COBALT: 0.01}.get(mechanism, 0.05),
        claims.DELAY: {C2: 2.0, COBALT: 1.0}.get(mechanism, 1.1 + number / 10),
        claims.DELIVERED: (2e6 if daqm else 1e6) * (1 + number / 10) * (
            0.5 if mechanism == COBALT else 1.0
        ),
        claims.COMPLETION: 30.0 if mechanism == COBALT else 10.0,
    }  # fmt: skip


def _frame(part: Part, story: Callable[..., dict[str, float]], up: bool) -> pd.DataFrame:
    """A part's table, made up; swept quantities push where the thesis says, or the other way."""
    rng = np.random.default_rng(1)
    rows = []
    for factors, _ in part.cells:
        value = story(
            str(factors["mechanism"]), str(factors["flow"]), str(factors.get("model", "cbr"))
        )
        way = 1.0 if up else -1.0
        rate = float(factors.get("drop_rate", 0.0))
        value[claims.LOSS] *= 1 + way * rate / 2
        value[claims.QUEUE] *= 1 - way * rate / 2
        value[claims.SOJOURN] *= 1 - way * rate / 2
        if factors["flow"] == "ftp":
            value[claims.DELIVERED] *= 1 - way * rate / 5
        if "payload" in factors:
            value[claims.QUEUE] *= 1 - way * float(factors["payload"]) / 4000
        for seed in range(1, 13):
            noise = 1 + 1e-4 * rng.standard_normal()
            rows.append({**factors, "seed": seed, **{k: v * noise for k, v in value.items()}})
    frame = pd.DataFrame(rows)
    frame["clients.goodput"] = frame.pop(claims.DELIVERED)
    return study.judged(study.derived(frame))


@pytest.fixture(scope="module")
def listed() -> list[Part]:
    return parts.as_meant(TINY)


def test_all_claims_hold_in_the_thesis_own_world(listed: list[Part]) -> None:
    """Runs that are as the thesis says make every claim hold."""
    for part in listed:
        found = judge(part.claims, _frame(part, _story, up=True))
        verdicts = {j.claim.id: j.verdict for j in found}
        assert set(verdicts.values()) == {"holds"}, verdicts


def test_no_claim_holds_in_the_opposite_world(listed: list[Part]) -> None:
    """Runs that contradict it make none hold."""
    for part in listed:
        found = judge(part.claims, _frame(part, _opposite, up=False))
        verdicts = {j.claim.id: j.verdict for j in found}
        assert set(verdicts.values()) == {"does not hold"}, verdicts


def test_noise_cannot_be_told(listed: list[Part]) -> None:
    """Runs that differ by chance alone decide no claim that one is better than another."""
    part = next(p for p in listed if p.name == "features")
    frame = _frame(part, _story, up=True)
    rng = np.random.default_rng(2)
    for metric in (claims.SOJOURN, claims.QUEUE, claims.LOSS):
        frame[metric] = np.exp(rng.standard_normal(len(frame)))
    verdicts = {j.claim.id: j.verdict for j in judge(part.claims, frame)}
    assert verdicts["http-loss-c1"] == "cannot be told"
    assert verdicts["http-c3-shortest"] == "cannot be told"


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """A study far too short to mean anything."""
    return PAPER.run(tmp_path_factory.mktemp("daqm"), size=TINY)


@pytest.mark.slow
def test_every_claim_has_a_verdict(outcome: Outcome, listed: list[Part]) -> None:
    """Nothing is left out, and all of it is JSON."""
    data = json.loads(json.dumps(outcome.as_dict(), allow_nan=False))
    assert [c["id"] for c in data["claims"]] == [c.id for p in listed for c in p.claims]
    for claim in data["claims"]:
        assert claim["verdict"] in ("holds", "does not hold", "cannot be told")
    assert len(data["differences"]) >= 5
    assert {row["source"] for row in data["published"]} >= {"table 4", "HTTP CBR"}


@pytest.mark.slow
def test_as_described_nothing_is_congested(outcome: Outcome) -> None:
    """Ports of 2 Gbit/s carry what 100 clients offer without a drop."""
    described = outcome.frame("described")
    assert described["drops"].sum() == 0
    assert described["utilisation"].max() < 0.25
    assert described[claims.SOJOURN].max() < 1e-3


@pytest.mark.slow
def test_measuring_discards_only_as_published(outcome: Outcome) -> None:
    """The quirk is in the ledger where it is on, and nowhere else."""
    discarded = outcome.frame("quirks", "estimates").groupby("quirks")["discarded"].max()
    assert discarded["none"] == 0
    assert discarded["all but discards"] == 0
    features = outcome.frame("features", "all")
    assert (features["drops_measurement"] == 0).all()
    assert set(outcome.frame("quirks", "estimates")["mechanism"]) == set(CONFIGURATIONS)
    assert set(features["mechanism"]) == set(SIXTEEN) > set(EIGHT)


@pytest.mark.slow
def test_the_report_is_written(outcome: Outcome) -> None:
    """One page, and figures of all kinds in three formats."""
    written = show(outcome)
    page = Path(written[0]).read_text()
    assert "As described, nothing is ever congested" in page
    names = {p.name for p in written}
    assert {"published-6a.png", "published-9.svg", "meant-7.pdf", "meant-16.png"} <= names
    assert all(p.stat().st_size > 1000 for p in written)


def test_the_time_of_a_run_is_told_from_its_beginning() -> None:
    # Its flows start after a fourth of it.
    part = parts.as_described(parts.FULL)
    assert 0 < study._seconds(part.cells[0][1]) < 600


def test_the_full_study_tells_its_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells, runs and a measured estimate."""
    monkeypatch.setattr(study, "_seconds", lambda scenario: 3.0)
    part = parts.as_described(TINY)
    text = study.estimate([part], 2)
    assert text.startswith(f"{len(part.cells)} runs of {len(part.cells)} cells")
    assert f"about {round(len(part.cells) * 3.0 / 2 / 60) or 1} minute" in text
