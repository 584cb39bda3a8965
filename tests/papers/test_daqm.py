"""The dAQM study: published numbers, estimators, claims that can go every way, a small run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from sojourn.papers.bench import named
from sojourn.papers.daqm import claims, estimators, parts, published, scenarios, study, terms
from sojourn.papers.daqm.mechanisms import (
    C1,
    C3,
    COBALT,
    CONFIGURATIONS,
    EIGHT,
    PIE,
    RED,
    RIVALS,
    SIXTEEN,
)
from sojourn.papers.daqm.paper import PAPER
from sojourn.papers.part import Part
from sojourn.papers.report import show
from sojourn.scenario.errors import ScenarioError
from sojourn.stats import Claim, judge, support
from tests.papers import pretend

# The first test that asks for the runs of the study makes them: four minutes of a core.
pytestmark = pytest.mark.timeout(1200)

TINY = parts.DaqmSize(
    seeds=2, meant_seeds=2, short=0.6, long=0.6, warmup=0.6, loads=(1.2,), other_seeds=2,
    whole=False, published_share=0.3,
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


def unmade() -> Any:
    """Cells with their texts in place of scenarios, of which there are many."""

    def make(text: str) -> SimpleNamespace:
        return SimpleNamespace(text=text)

    return mock.patch.object(scenarios, "Scenario", SimpleNamespace(from_toml=make))


@pytest.mark.parametrize("size", [parts.QUICK, parts.QUARTER, parts.FULL])
def test_every_published_value_has_its_cell(size: parts.DaqmSize) -> None:
    """The runs as published are those that published values are about, and claims the others."""
    with unmade():
        part = parts.as_published(size)
    cells = {tuple(factors[name] for name in parts.KEY) for factors, _ in part.cells}
    run = {flow.name for flow in size.flows}
    rows = [row for row in published.frame().to_dict("records") if row["flow"] in run]
    assert len(rows) > 50
    for row in rows:
        assert parts.key_of({str(k): v for k, v in row.items()}) in cells, row
    assert bool(part.open) == (run < set(scenarios.FLOWS))
    assert all(named(claim, "flow") - run for claim in part.open)


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
    with mock.patch.object(estimators, "monitored", lambda f: f):
        found = estimators.samples(watched, _series([1.0, 12.0], [0, 6], [0.0, 0.3]))
    # 100 ms there, 10 ms back: the plain mean over both.
    assert found["delay"].tolist() == pytest.approx([55.0, 55.0])
    # 5 real drops twice; the 10 discards of 1 s count from 11 s on, where no sample is.
    assert found["plr"].tolist() == pytest.approx([0.05, 0.05])
    assert found["throughput"].iloc[0] == pytest.approx(8e-3 * 80_000 / 2)
    assert found["fct"].iloc[0] == pytest.approx(2.0)
    means = estimators.averages(found)
    assert means["queue"] == pytest.approx(6.5 / 1.5)
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


def test_a_connection_begins_before_its_server_listens() -> None:
    """The monitor sees a SYN at 0 s and its reset; each first packet waits for an address."""
    nan, times = float("nan"), [0.5, 2.0, 3.5]
    watched = pd.concat([
        _flow_series(time=times, flow=[0] * 3, lost=[1] * 3, received=[0, 0, 4],
                     last_received=[nan, nan, 3.1]),
        _flow_series(time=times, flow=[1] * 3, received=[1, 2, 2], last_received=[1.0, 1.1, 1.1]),
    ])  # fmt: skip
    found = estimators.monitored(watched).sort_values("time")
    first, later = (found[(found["flow"] == flow) & ~found["back"]] for flow in (0, 1))
    resets = found[found["back"]]
    assert first["sent"].tolist() == [100] * 3
    assert first["received"].tolist() == [1, 1, 5]
    assert first["first_sent"].tolist() == [0] * 3
    assert resets["sent"].tolist() == [1] * 3
    assert resets["received_bytes"].tolist() == [estimators.RESET] * 3
    arrived = first["last_received"].tolist()
    assert 0.003 < arrived[0] == arrived[1] == resets["first_sent"].iloc[0] < 0.013
    assert arrived[2] == 3.1
    waits = later["last_received"].to_numpy() - [1.0, 1.1, 1.1]
    assert 0.002 < waits[0] < waits[1] == waits[2] < 0.024


def test_no_frame_arrives_before_the_servers_listen() -> None:
    """Every SYN of 0 s is lost; a bus whose rate changes is refused."""
    http = scenarios.Traffic(scenarios.HTTP, "poisson-onoff")
    scenario = scenarios.as_published(http, "codel", 1.2)
    watched = scenario.run(seed=1).flow_series
    assert (watched.groupby("flow")["lost"].max() == 1).all()
    assert (watched["received"] == 0).all()
    faster = [{"at": "1s", "rate": "1gbit"}]
    with pytest.raises(ScenarioError, match="the rate of a shared medium cannot"):
        scenario.replace({"topology.changes": faster})


def test_an_empty_queue_shows_the_packets_that_pass() -> None:
    """Half of an empty queue's changes have a length of 1; zeros of sojourn times are left out."""
    found = pd.DataFrame(
        {**dict.fromkeys(("fct", "delay", "plr", "throughput"), [1.0] * 4), "queue": [0, 0, 0, 9],
         "sojourn": [0, 0, 0, 9]}, dtype=float,
    )  # fmt: skip
    means = estimators.averages(found)
    assert means["queue"] == pytest.approx((3 * 0.5 + 9) / (3 * 0.5 + 1))
    assert means["sojourn"] == 9


def test_offered_loads_are_those_of_the_models() -> None:
    """A port at load 1 carries what twenty clients send on the mean, headers included."""
    port = scenarios.port_rate(scenarios.Traffic(scenarios.HTTP, "vbr"), 1.0)
    assert port == pytest.approx(20 * 1.5e6 * 0.4 * 1454 / 1400)
    http = scenarios.Traffic(scenarios.HTTP, "cbr")
    assert scenarios.port_rate(http, 2.0) * 2 == pytest.approx(
        scenarios.port_rate(http, 1.0), abs=2
    )


TERMS = {"as published": terms.PUBLISHED, "as meant": terms.MEANT}


def _all(t: terms.Terms) -> list[Claim]:
    return [*claims.made(t), *claims.uniform(t), *claims.tailored(t)]


def test_every_finding_has_a_claim_of_its_own() -> None:
    """Names are unique, withdrawn ones are gone, and readings share names."""
    main = [claim.id for claim in _all(terms.PUBLISHED)]
    assert len(main) == len(set(main)) > 90
    assert not set(main) & {withdrawn.id for withdrawn in claims.WITHDRAWN}
    meant = {claim.id for claim in _all(terms.MEANT)}
    assert meant < set(main)
    # Flow completion is not measured where clients never stop.
    assert not any("fct" in name for name in meant)


def test_claims_on_the_switch_are_about_cells_that_it_runs() -> None:
    for size in (parts.FULL, parts.QUICK):
        with unmade():
            listed = [*parts.as_meant(size), *parts.variants(size), parts.as_written(size)]
        for part in listed:
            assert part.claims, part.name
            run = {factors["flow"] for factors, _ in part.cells}
            for claim in part.claims:
                assert named(claim, "flow") <= run, (part.name, claim.id)
    with unmade():
        whole = {c.id for part in parts.as_meant(parts.FULL) for c in part.claims}
    judged = {c.id for c in (*claims.made(terms.MEANT), *claims.uniform(terms.MEANT))}
    assert whole == judged | {"load-fct-http", "load-fct-ftp"}


def _world(part: Part, value: Callable[[dict[str, Any], str], float]) -> pd.DataFrame:
    """The tables of a part in a made-up world, by figure as published."""
    rng = np.random.default_rng(1)
    names = [*published.METRICS, terms.FIRST_DROP, "clients.goodput", terms.SOJOURN, terms.QUEUE,
             terms.LOSS, terms.DELAY, "drops_forced", "arrivals", *terms.SPREAD]  # fmt: skip
    rows = []
    for factors, _ in part.cells:
        told = dict(factors)
        for seed in range(1, 5):
            noise = 1 + 1e-4 * rng.standard_normal(len(names))
            values = {m: value(told, m) * e for m, e in zip(names, noise, strict=True)}
            rows.append({**told, "seed": seed, **values})
    frame = pd.DataFrame(rows)
    if part.name == "published":
        return study.figured(frame)
    return frame if "load" not in frame else study.judged(study.derived(frame))


SHORTER = {"sojourn", "queue", terms.SOJOURN, terms.QUEUE}
LESS = {"plr", terms.LOSS}


def _good(cell: dict[str, Any], metric: str) -> float:
    """dAQM_c3 has the shortest queues, dAQM_c1 loses least, RED is worst; drop rates matter."""
    m, rate = str(cell["mechanism"]), float(cell.get("drop_rate", 0.0))
    if metric == terms.FIRST_DROP:
        return 28.0
    if metric in SHORTER:
        base = {C3: 1.0, RED: 500.0}.get(m, 4.0 if m.startswith("dAQM") else 30.0)
        return base * (1 - rate / 2) * (0.5 if cell.get("rates") == claims.UNIFORM else 1.0)
    if metric in LESS:
        return {C1: 0.001, RED: 0.3, PIE: 0.5, COBALT: 0.5}.get(m, 0.2) * (1 + rate)
    if metric in ("delay", terms.DELAY):
        return 10.0 * (1 - rate / 10)
    return 10.0


def _bad(cell: dict[str, Any], metric: str) -> float:
    """The other way round."""
    return 100.0 if metric == terms.FIRST_DROP else 1 / _good(cell, metric)


TOLD = {
    "http-shortest-all", "http-loss-c1", "http-throughput", "poisson-loss-c1", "poisson-red",
    "http-models-align", "http-busy-queue-c3", "streaming-queue-c3", "pareto-c3", "drop-rate-loss",
    "drop-rate-shorter", "load-loss-c1", "size-loss-c1", "size-queue-c3", "size-sojourn-red",
    "uniform-rate",
}  # fmt: skip
"""Claims that hold in the one world and not in the other, but for what all do alike."""
ALIKE = {"http-throughput", "http-models-align"}


@pytest.mark.parametrize("name", TERMS)
@pytest.mark.parametrize(("world", "word"), [(_good, "holds"), (_bad, "does not hold")])
def test_claims_hold_where_the_thesis_is_right_and_fail_where_not(
    name: str, world: Callable[[dict[str, Any], str], float], word: str
) -> None:
    """In both readings, of the same findings."""
    with unmade():
        if name == "as published":
            listed = [parts.as_published(TINY), *parts.rates(TINY)]
        else:
            listed = [part for part in parts.as_meant(TINY) if part.name != "completion"]
    verdicts = {
        j.claim.id: j.verdict
        for part in listed
        for j in judge([c for c in part.claims if c.id in TOLD], _world(part, world))
    }
    told = {claim: verdicts[claim] for claim in TOLD & set(verdicts)}
    assert TOLD - set(told) == ({"http-models-align"} if name == "as meant" else set())
    expected = {c: "holds" if c in ALIKE and world is _good else word for c in told}
    expected |= {
        c: told[c] for c in ALIKE & set(told) if world is _bad
    }  # what is alike is alike upside down
    assert told == expected


def test_noise_cannot_be_told() -> None:
    """Runs that differ by chance alone decide no claim that one is better than another."""
    with unmade():
        part = next(p for p in parts.as_meant(TINY) if p.name == "features")
    frame = _world(part, _good)
    rng = np.random.default_rng(2)
    for metric in (terms.SOJOURN, terms.QUEUE, terms.LOSS):
        frame[metric] = np.exp(rng.standard_normal(len(frame)))
    verdicts = {j.claim.id: j.verdict for j in judge(part.claims, frame)}
    assert verdicts["http-loss-c1"] == "cannot be told"
    assert verdicts["http-c3-shortest"] == "cannot be told"


def test_the_thesis_own_numbers_are_held_against_its_sentences() -> None:
    """Some of them fail them, and figures 8 and 9 are known."""
    own = study.own_numbers()
    found = {claim.id: support(claim, own) for claim in _all(terms.PUBLISHED)}
    assert found["http-shortest-all"].holds is True
    assert found["load-loss-c1-by"].holds is True
    assert found["tcp-udp"].holds is False  # dAQM shortens sojourn times more with UDP there
    assert found["http-c1-extremes"].holds is False
    assert found["streaming-queue-red"].holds is None
    known = published.by_figure()
    eight = known[(known["figure"] == 8) & known["sojourn"].notna()]
    assert set(eight["flow"]) == set(scenarios.FLOWS)
    nine = known[(known["figure"] == 9) & known["queue"].notna()]
    assert set(nine["model"]) == set(scenarios.MODELS)
    # A cell has one row in a figure.
    cell = ["figure", "flow", "model", "rate", "payload", "drop_rate", "mechanism"]
    assert not known.duplicated(cell).any()


def test_rivals_are_shown_at_every_drop_rate() -> None:
    frame = study.figured(
        pd.DataFrame([
            {"flow": "http", "model": "cbr", "rate": 1500, "payload": 1400, "drop_rate": rate,
             "mechanism": m, "seed": 1, "sojourn": 1.0}
            for m, rate in ((RED, 0.0), (C1, 0.0), (C1, 0.3), (C1, 0.9))
        ])
    )  # fmt: skip
    eleven = frame[frame["figure"] == 11]
    assert sorted(eleven.loc[eleven["mechanism"] == RED, "drop_rate"]) == [0.3, 0.9]
    assert sorted(eleven.loc[eleven["mechanism"] == C1, "drop_rate"]) == [0.3, 0.9]
    assert len(frame[frame["figure"] == 6]) == 2


def test_the_text_s_traffic_offers_the_clients_rates() -> None:
    """It has the names of the models that it replaces."""
    with unmade():
        written, coded = (
            {factors["model"]: scenario.text for factors, scenario in part.cells}  # type: ignore[attr-defined]
            for part in (parts.as_written(parts.FULL), parts.as_published(parts.FULL))
        )
    assert set(written) == set(scenarios.AS_WRITTEN)
    for model, name in scenarios.AS_WRITTEN.items():
        assert f" model {name} " in written[model]
        assert f" model {model} " in coded[model]
    http = scenarios.Traffic(scenarios.HTTP, "pareto-gaps")
    assert http.offered == scenarios.Traffic(scenarios.HTTP, "cbr").offered


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> parts.Results:
    """A study far too short to mean anything."""
    return PAPER.run(tmp_path_factory.mktemp("daqm"), size=TINY)


@pytest.mark.slow
def test_every_claim_has_a_verdict(outcome: parts.Results) -> None:
    """Nothing is left out, all readings are next to it, and all of it is JSON."""
    data = json.loads(json.dumps(outcome.as_dict(), allow_nan=False))
    assert [c["id"] for c in data["claims"]] == [c.id for c in _all(terms.PUBLISHED)]
    for claim in data["claims"]:
        assert claim["verdict"] in ("holds", "does not hold", "cannot be told")
    by_id = {claim["id"]: claim for claim in data["claims"]}
    assert set(by_id["poisson-loss-c1"]["readings"]) == {
        "main", "as meant", "traffic of the text", *parts.VARIANTS
    }  # fmt: skip
    assert by_id["tcp-udp"]["own_table"]["verdict"].startswith("not supported")
    assert len(data["withdrawn"]) == len(claims.WITHDRAWN)
    assert len(data["differences"]) >= 5
    assert {row["source"] for row in data["published"]} >= {"table 4", "HTTP CBR"}
    assert len(data["published"]) == len(published.frame())


@pytest.mark.slow
def test_as_described_nothing_is_congested(outcome: parts.Results) -> None:
    """Ports of 2 Gbit/s carry what 100 clients offer without a drop."""
    described = outcome.frame("described")
    assert described["drops"].sum() == 0
    assert described["utilisation"].max() < 0.25
    assert described[terms.SOJOURN].max() < 1e-3


@pytest.mark.slow
def test_measuring_discards_only_as_published(outcome: parts.Results) -> None:
    """The ledger shows the quirk only in runs where it is on."""
    discarded = outcome.frame("quirks", "estimates").groupby("quirks")["discarded"].max()
    assert discarded["none"] == 0
    assert discarded["all but discards"] == 0
    features = outcome.frame("features", "all")
    assert (features["drops_measurement"] == 0).all()
    assert set(outcome.frame("quirks", "estimates")["mechanism"]) == set(CONFIGURATIONS)
    assert set(features["mechanism"]) == set(SIXTEEN) > set(EIGHT)


@pytest.mark.slow
def test_readings_with_fewer_runs_include_the_other_runs(outcome: parts.Results) -> None:
    clock, same = outcome.frame("clock"), outcome.frame("published")
    assert set(clock.loc[clock["figure"] == 6, "mechanism"]) == set(SIXTEEN)
    rival = [frame[frame["mechanism"].isin(RIVALS)] for frame in (clock, same)]
    assert sorted(rival[0]["sojourn"]) == sorted(rival[1]["sojourn"])
    written = outcome.frame("written")
    assert set(written.loc[written["figure"] == 9, "model"]) == set(scenarios.MODELS)


@pytest.mark.slow
def test_the_report_is_written(outcome: parts.Results) -> None:
    """One page, and figures of all kinds in three formats."""
    written = show(outcome)
    page = Path(written[0]).read_text()
    assert "described, no port" in page
    assert "Withdrawn claims" in page
    names = {p.name for p in written}
    assert {f"published-{n}.png" for n in range(7, 17)} < names
    assert {"published-6a.png", "published-9.svg", "meant-7.pdf", "meant-16.png"} <= names
    assert all(p.stat().st_size > 1000 for p in written)


@pytest.mark.slow
def test_the_part_on_linux_judges_what_an_engine_gives(tmp_path: Path) -> None:
    """HTTP as meant: an engine that gives the simulator's results agrees with it."""
    size = parts.DaqmSize(short=0.6, warmup=0.6, seeds=5)
    outcome = PAPER.run(tmp_path, size=size, engine=pretend.Engine(frozenset()))
    found = {j.claim.finding: j.claim for j in outcome.judgements}
    assert {"http-busy-loss-c1", "http-models-sojourn-cobalt", "http-weibull-sojourn-c3"} < set(
        found
    )
    # Not in the row of the finding as published.
    assert all(claim.id == f"{name}-as-meant" for name, claim in found.items())
    assert (outcome.means()["real / simulated"].dropna() == 1).all()
    json.dumps(outcome.as_dict(), allow_nan=False)
    page = show(outcome)[0].read_text()
    assert "simulated and real runs" in page
    assert PAPER.real is not None
    assert PAPER.real.estimate(parts.REAL_FULL).startswith("160 real runs of 12 s")
