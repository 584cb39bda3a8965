"""The study of receive buffers: claims that can go every way, a small run, what is kept."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from sojourn import _core
from sojourn.papers.bench import Making
from sojourn.papers.records import WORDS
from sojourn.papers.report import show
from sojourn.papers.rrda import claims, figures, scenarios, study
from sojourn.papers.rrda.paper import PAPER
from sojourn.stats import judge

if TYPE_CHECKING:
    from pathlib import Path

TINY = study.ServerSize(
    seconds=0.4, seeds=2, scenario_seeds=1, grid=0.6, grid_seeds=1, memory=0.6, reading_seeds=2,
    readings=("windows", "stored bytes"), lengths=(0.2, 0.4), timeouts=(100, 200),
    timeout_seconds=0.4,
)  # fmt: skip


def test_readings_are_described_and_withdrawn_claims_are_gone() -> None:
    described = {*claims.DECLARED.readings, scenarios.MAIN} - {"high spikes"}
    assert described == set(scenarios.READINGS)
    old = {withdrawn.id for withdrawn in claims.WITHDRAWN}
    assert len(old) == len(claims.WITHDRAWN)
    assert not old & {claim.id for claim in claims.CLAIMS}
    assert len({claim.id for claim in claims.CLAIMS}) == len(claims.CLAIMS)


@pytest.mark.parametrize("reading", scenarios.READINGS)
def test_no_two_claims_contradict_each_other_in_a_cell(reading: str) -> None:
    """RRDA is to be equal with all the CPU, and better with more than 15 clients."""
    how = scenarios.READINGS[reading]
    cells = {
        (factors["study"], factors["clients"], factors["cpu"]): server.plan_json
        for factors, server in study.experiments(study.FULL, how)
        if factors["policy"] == "rrda"
    }
    most = scenarios.CLIENTS[-1]
    equal = cells["cpu", most, 1.0]
    many = {n: plan for (part, n, _), plan in cells.items() if part == "clients"}
    assert equal not in many.values()
    # The two figures have one cell in common, of which they agree.
    assert many[most] == cells["cpu", most, how.clients_cpu]


def server(reading: str, policy: str, clients: int, cpu: float, seconds: float) -> Any:
    """The input of the simulator as the data that it reads."""
    how = scenarios.READINGS[reading]
    return json.loads(json.dumps(scenarios.server(how, policy, clients, cpu, seconds)))


def test_the_main_reading_has_the_published_cpu_time_and_a_scale_changes_no_time() -> None:
    told = server("gigabit", scenarios.STATIC, 35, 1.0, 2)
    found = json.loads(_core.simulate_server(json.dumps(told), 1))
    assert found["utilisation"] / (found["throughput"] * 8e-9) == pytest.approx(0.642, rel=1e-3)
    size = replace(study.REAL_QUICK, seconds=2, clients=(10, 20))
    whole, tenth = (study.experiments(replace(size, scale=scale)) for scale in (1, 10))
    for (_, large), (_, small) in list(zip(whole, tenth, strict=True))[:1]:
        found, scaled = (json.loads(_core.simulate_server(c.plan_json, 1)) for c in (large, small))
        assert scaled["arrived"] == pytest.approx(found["arrived"], rel=0.01)
        assert scaled["throughput"] * 10 == pytest.approx(found["throughput"], rel=0.01)
    policies = {json.loads(cell.plan_json)["policy"] for _, cell in tenth}
    assert policies == {
        "static size 104857",
        "rrda initial 104857 floor 6553 ceiling 107374182",
    }


def _agreeing(how: scenarios.Reading) -> int:
    """The number of statements on figures 2 and 3 with which a reading agrees, with seed 11."""
    size = replace(study.FULL, seconds=10, policies=(), sizes=scenarios.JUDGED_SIZES)
    rows = [
        {**factors, "seed": 11, **json.loads(_core.simulate_server(cell.plan_json, 11))}
        for factors, cell in study.experiments(size, how)
    ]
    frame = pd.DataFrame(rows)
    judged = [c for c in claims.made() if c.finding.startswith(("figure-2", "figure-3"))]
    found = [part for claim in judged for part in claim.components(frame)]
    assert len(found) == 6
    return sum(part.region.low <= part.point() <= part.region.high for part in found)


@pytest.mark.slow
def test_the_numbers_of_calibrated_readings_are_those_that_fit_figures_2_and_3() -> None:
    ticks = scenarios.READINGS["three ticks"]
    agree = {n: _agreeing(replace(ticks, period=n * scenarios.TICK)) for n in (1, 2, 3, 4)}
    assert min(agree, key=lambda n: (-agree[n], n)) == 3
    windows = scenarios.READINGS["windows"]
    fits = {ms: _agreeing(replace(windows, timeout=ms)) for ms in scenarios.TIMEOUTS}
    best = [ms for ms, number in fits.items() if number == max(fits.values())]
    assert windows.timeout == best[len(best) // 2], fits


def test_the_server_is_the_paper_s() -> None:
    told = server("processed", "rrda", 35, 0.75, 10)
    assert told["port"] == 1_000_000_000
    assert told["load"]["link"] == 100_000_000
    assert told["handler"]["pauses"] == [
        {"every": 100_000_000, "length": 25_000_000, "jitter": 0.0}
    ]
    rates = [cpu * 4.26 for cpu in scenarios.CPUS]
    assert rates == pytest.approx([2.13, 3.2, 4.26], abs=0.01)
    assert server("processed", "rrda", 1, 1.0, 1)["handler"]["pauses"] == []


def test_the_reading_datagram_has_clients_of_10_mbit_and_a_quota_of_20_ms() -> None:
    quota = {"every": 20_000_000, "length": 10_000_000, "jitter": 0.0}
    told = server("datagram", "rrda", 35, 0.5, 10)
    assert told["handler"] == {"rate": 46_000_000, "pauses": [quota]}
    alone = server("datagram", scenarios.STATIC, 1, 1.0, 10)
    found = json.loads(_core.simulate_server(json.dumps(alone), 1))
    client = found["throughput"]
    assert client * 8 == pytest.approx(10e6, rel=0.01)
    assert 15 * client < told["handler"]["rate"] / 2 < 20 * client
    assert 35 * client < alone["handler"]["rate"]


def _runs(seed: int, published: bool) -> list[dict[str, Any]]:
    """Runs with a seed in which all findings hold, or none."""
    rows: list[dict[str, Any]] = []
    sizes = list(scenarios.SIZES)

    def row(part: str, clients: int, cpu: float, throughput: float, **more: Any) -> None:
        wobble = 1 + seed / 1e4
        rows.append(
            {
                "study": part,
                "clients": clients,
                "cpu": cpu,
                "seed": seed,
                "throughput": 1e8 * throughput * wobble,
                "exhaustion": more.pop("lost", 0.0) * wobble,
                "headroom": 1.5 if published else 3.0,
                **more,
            }
        )

    for policy in ("static", "rrda"):
        ours = policy == "rrda"
        for n in scenarios.CLIENTS:
            lost = max(n - 15, 0.001) / 400 if published else 0.1
            lost *= 0.1 if ours and published else 1.0
            gain = 1.3 if ours and (n > 15) == published else 1.0
            row("clients", n, 0.5, gain, policy=policy, lost=lost)
        for cpu in scenarios.CPUS:
            gain = 1.3 if ours and (cpu < 1) == published else 1.0
            row("cpu", 35, cpu, gain, policy=policy)
    for name in sizes:
        place = sizes.index(name)
        for cpu in scenarios.CPUS:
            need = {1.0: 2, 0.75: 3, 0.5: 5}[cpu] if published else 3
            row("sizes", 35, cpu, 1.0 if place >= need else 0.8, buffer=name)
        for n in (10, 20, 35):
            enough = place > 0 or (n == 10) == published
            row("sizes of clients", n, 0.5, 1.0 if enough else 0.8, buffer=name)
    return rows


def _frame(published: bool) -> pd.DataFrame:
    """Runs in which all findings hold, or none."""
    return pd.DataFrame([row for seed in range(1, 6) for row in _runs(seed, published)])


BOTH_WAYS = pytest.mark.parametrize(
    ("published", "verdict"), [(True, "holds"), (False, "does not hold")]
)


@BOTH_WAYS
def test_claims_go_both_ways(published: bool, verdict: str) -> None:
    verdicts = {j.claim.id: j.verdict for j in judge(claims.made(), _frame(published))}
    assert set(verdicts.values()) == {verdict}, verdicts


def test_far_more_than_a_factor_of_10_is_none() -> None:
    frame = _frame(True)
    ours = frame["policy"] == "rrda"
    frame.loc[ours, "exhaustion"] *= 0.1
    verdicts = {j.claim.id: j.verdict for j in judge(claims.made(), frame)}
    assert verdicts["figure-6-factor"] == "does not hold"


@BOTH_WAYS
def test_claims_on_memory_go_both_ways(published: bool, verdict: str) -> None:
    rows = [
        {"used": used, "seed": seed, "kept": 0.5 if published else 1.0}
        for used in scenarios.USES
        for seed in range(1, 6)
    ]
    found = judge(claims.memory(), pd.DataFrame(rows))
    assert {j.verdict for j in found} == {verdict}


@BOTH_WAYS
def test_claims_on_the_average_go_both_ways(published: bool, verdict: str) -> None:
    shares = {"constant 10 Mbit/s": (0.05, 0.0), "10 to 100 Mbit/s": (1.0, 0.0)}
    shares = shares if published else dict.fromkeys(shares, (0.5, 0.0))
    rows = []
    for scenario in scenarios.RATES:
        for values in ("differences", "averages"):
            turned = 1.0 if values == "averages" and published else 0.5
            up, down = shares.get(scenario, (0.0, turned))
            told = {"scenario": scenario, "values": values, "undecided": 1 - up - down}
            rows += [
                {**told, "increases": up, "decreases": down, "seed": seed} for seed in range(1, 6)
            ]
    found = judge(claims.average(), pd.DataFrame(rows))
    assert {j.verdict for j in found} == {verdict}


def _check_average(samples: pd.DataFrame, decided: pd.DataFrame) -> None:
    """Equation 1 by hand, equation 2 where the difference has one sign, and a spike that passes."""
    run = samples[samples["scenario"] == "spikes"]
    average = 0.0
    for difference, found in zip(run["difference"], run["average"], strict=True):
        average = 0.5 * difference + 0.5 * average
        assert found == pytest.approx(average, abs=1e-9)
    spikes = run[run["epoch"].isin([scenarios.WINDOW[0], scenarios.WINDOW[0] + 7])]
    assert (spikes["difference"] > 0).all()
    shares = decided.set_index(["scenario", "values"])["increases"]
    assert shares["10 to 100 Mbit/s", "differences"] == 1


def _check_figures(drawn: Any) -> None:
    """Figures 2 and 3 have the buffer on the axis, figures 4 and 5 their three scenarios."""
    labels = {
        "static-cpu": ["2.13 GHz", "3.2 GHz", "4.26 GHz"],
        "static-clients": ["10 clients", "20 clients", "35 clients"],
    }
    for name, lines in labels.items():
        panels = drawn[name][0].axes
        assert [axes.get_title(loc="left") for axes in panels] == [scenarios.MAIN, "windows"]
        assert sorted(line.get_label() for line in panels[0].lines) == lines
        assert list(panels[0].lines[0].get_xdata()) == sorted(scenarios.SIZES.values())
    titles = [axes.get_title(loc="left") for axes in drawn["scenarios"][0].axes]
    assert titles[:3] == ["4a: Scenario 1", "4b: Scenario 2", "4c: Scenario 3"]
    assert titles[3:] == [f"5{panel}: average of 4{panel}" for panel in "abc"]


@pytest.mark.usefixtures("one_format")
def test_a_small_run_is_reported_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = PAPER.run(tmp_path, size=TINY)
    studies = set(outcome.frame("experiments")["study"])
    assert studies == {
        "clients",
        "cpu",
        "sizes",
        "sizes of clients",
    }
    assert set(outcome.frame("grid")["policy"]) == set(scenarios.COMPARED)
    assert set(outcome.tables["experiments"].seeds) == {claims.FIRST_SEED, claims.FIRST_SEED + 1}
    _check_average(outcome.frame("scenarios", "samples"), outcome.frame("scenarios"))
    assert outcome.frame("memory-gigabit")["kept"].between(0, 1).all()
    assert set(outcome.column.readings) == {"windows", "stored bytes", "high spikes"}
    assert {name: list(values) for name, values in outcome.column.sweeps.items()} == {
        "run length": ["0.2 s", "0.4 s"],
        "retransmission time": ["100 ms", "200 ms"],
        "retransmission time under windows": ["100 ms", "200 ms"],
    }
    factor = next(j.claim for j in outcome.judgements if j.claim.id == "figure-6-factor")
    assert len(outcome.readings(factor)) == 3
    assert "of 2 values" in outcome.asides(factor)[-1]
    near = {r: m["figure-6-factor"][0].ratio for r, m in outcome.column.conditions.items() if m}
    assert near[""] == pytest.approx(1, rel=0.01)
    assert near["windows"] == pytest.approx(4.23, rel=0.01)
    _check_figures(figures.simulated(outcome))
    in_readings = json.loads(json.dumps(outcome.as_dict()))["by_reading"]
    assert {row["windows"] for row in in_readings} <= {*WORDS, ""}
    (figure_2,) = (row for row in in_readings if row["finding"] == "figure-2-all")
    assert not figure_2["windows"], "figures 2 and 3 chose the retransmission time"
    assert len(outcome.judgements) == len(claims.CLAIMS)
    assert (
        json.loads(json.dumps(outcome.as_dict(), allow_nan=False, default=str))["paper"] == "rrda"
    )
    written = show(outcome)
    assert all(path.stat().st_size > 0 for path in written)
    page = written[0].read_text(encoding="utf-8")
    for words in ("Comparison of policies", "elastic", "reconstruction", "Withdrawn claims"):
        assert words in page

    def never(told: str, seed: int) -> str:
        raise AssertionError("simulated again")

    monkeypatch.setattr(_core, "simulate_server", never)
    again = PAPER.run(tmp_path, size=TINY)
    pd.testing.assert_frame_equal(again.frame("experiments"), outcome.frame("experiments"))
    with pytest.raises(ValueError, match="cluster"):
        PAPER.run(tmp_path, making=Making(on="tcp://x"), size=TINY)
