"""Findings: what a command says about runs that say too little."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.signal import lfilter

from sojourn.scenario import Scenario
from sojourn.scenario.findings import Seen, findings
from sojourn.stats import mean_of_runs
from sojourn.stats.settling import begins_late, common_cut, ends_early
from sojourn.study import Study, StudyError, compare

LINK = """
duration = "{duration}"
warmup = "{warmup}"
[links.up]
from = "a"
to = "b"
rate = "10mbit"
netem = "delay 20ms"
queue = "pfifo limit 1000p"
[[flows]]
name = "x"
from = "a"
to = "b"
app = "{app}"
start = "{start}"
count = {count}
"""


def link(duration: str, warmup: str, app: str, start: str, count: int = 1) -> Scenario:
    return Scenario.from_toml(
        LINK.format(duration=duration, warmup=warmup, app=app, start=start, count=count)
    )


TOO_LITTLE = {
    "warm-up": link("2s", "0s", "bulk", "uniform 0s 1s", 4),
    "empty": link("60s", "50s", "transfer size 100kb", "uniform 0s 1s"),
    "short": link("60s", "5s", "bulk", "uniform 58s 59s"),
}


@pytest.mark.parametrize("kind", TOO_LITTLE)
def test_a_run_and_a_comparison_say_that_they_say_too_little(kind: str) -> None:
    run = TOO_LITTLE[kind].run(1)
    assert [one.kind for one in run.findings] == [kind]
    assert " ".join(run.findings[0].text.split()) in " ".join(run.summary().split())
    assert run.as_dict()["findings"] == [run.findings[0].as_dict()]
    found = compare(TOO_LITTLE[kind], ["codel", "pfifo"], seeds=5, workers=1)
    assert kind in [one.kind for one in found.findings]
    assert found.findings[0].text in found.answer()
    assert found.meaningless


STORE = """
duration = "20s"
[topology]
template = "mesh"
nodes = 3
rate = "1mbit"
netem = "delay 50ms loss {loss}%"
clients = {{ hosts = 1 }}
[store]
nodes = "nodes"
clients = "clients"
consistency = "quorum"
every = "exp(20ms)"
write_timeout = "300ms"
"""


def test_requests_without_an_answer_are_named_with_the_latencies(tmp_path: Path) -> None:
    """A choice that acknowledges fewer requests has the latencies of the others only."""
    lossy = Scenario.from_toml(STORE.format(loss=12))
    run = lossy.run(1)
    [finding] = run.findings
    lost = 1 - run.metrics["store.acknowledged"] / run.metrics["store.requests"]
    assert finding.kind == "unfinished"
    assert finding.size == pytest.approx(lost, rel=0.2)  # some are under way
    assert " % of the requests to store were not acknowledged; latencies" in finding.text
    for out in (None, tmp_path):
        found = compare(lossy, vary={"store.write_timeout": ["300ms", "400ms"]}, seeds=2, out=out)
        assert "requests to store were not acknowledged" in found.answer()
        assert "(With 300ms; with the others less.)" in found.answer()
        assert not found.meaningless
    calm = Scenario.from_toml(STORE.format(loss=0)).replace({"store.write_timeout": "2s"})
    assert calm.run(1).findings == []


@pytest.mark.parametrize("ages", [True, False])
def test_unfinished_transfers_are_named_where_their_ages_are_unknown(ages: bool) -> None:
    """The simulator counts them with their age; with other engines the answer names them."""
    plan = link("20s", "0s", "transfer size 100kb", "uniform 0s 1s", 4).plan
    metrics = {"x.flows": 4.0, "x.finished": 3.0, "x.unfinished": 1.3, "x.fct_mean": 2.0}
    found = findings(plan, [Seen(metrics | ({"x.fct_mean_all": 3.0} if ages else {}), {})])
    text = "25 % of the transfers of x had not ended; completion times are of the others only."
    assert [one.text for one in found] == ([] if ages else [text])
    usual = metrics | {"x.finished": 40.0, "x.unfinished": 4.0}  # two a second, of 2 s each
    assert findings(plan, [Seen(usual, {})]) == []


@pytest.mark.parametrize(("lost", "text"), [(20, "2 %"), (994, "99.4 %"), (997, "99.7 %")])
def test_the_share_without_an_answer_is_a_plain_number(lost: int, text: str) -> None:
    plan = link("20s", "0s", "transfer size 100kb", "uniform 0s 1s", 4).plan
    metrics = {"x.flows": 4.0, "x.finished": 1000.0 - lost, "x.unfinished": float(lost)}
    assert findings(plan, [Seen(metrics, {})])[0].text.startswith(f"{text} of the transfers")


def test_an_ordinary_scenario_has_no_findings() -> None:
    home = Scenario.load(Path(__file__).parents[2] / "examples/home.toml")
    assert home.run(1).findings == []
    found = compare(home, ["codel", "pfifo"], seeds=5, workers=2)
    assert found.findings == []
    assert not found.meaningless


def test_a_comparison_in_a_folder_has_the_findings_of_one_in_memory(tmp_path: Path) -> None:
    scenario = TOO_LITTLE["warm-up"]
    made = [compare(scenario, ["codel"], seeds=6, out=out).findings for out in (None, tmp_path)]
    assert made[0] == made[1] != []


def test_pilot_runs_find_one_warm_up_for_all_queues_and_seeds() -> None:
    scenario = link("90s", "0s", "bulk", "uniform 0s 1s", 4)
    study = Study(scenario).vary(queue=["codel", "pfifo limit 100p"]).seeds(3)
    found = study.warm_up(1)
    assert 1 <= found <= 15
    assert found == study.seeds(9).warm_up(1)  # judged runs have no effect
    settled = scenario.replace(warmup=f"{found}s")
    assert compare(settled, ["codel"], seeds=5, workers=1).findings == []


def test_a_busy_line_settles_despite_small_dips() -> None:
    rng = np.random.default_rng(3)
    start = np.concatenate([np.linspace(0, 20e6, 10), np.full(190, 20e6)])
    runs = [(start - 4e4 * (rng.random(200) < 0.1)).tolist() for _ in range(5)]
    cut = common_cut(runs)
    assert cut is not None
    assert 5 <= cut <= 20


def test_without_a_steady_state_no_warm_up_is_found() -> None:
    slow = link("4s", "0s", "bulk", "0s", 1).replace({"links.up.rate": "1mbit"})
    with pytest.raises(StudyError, match=r"does not settle in 4 s; lengthen `duration`"):
        Study(slow).warm_up(1)
    with pytest.raises(StudyError, match="its flows change during the run"):
        Study(TOO_LITTLE["short"]).warm_up(1)
    with pytest.raises(StudyError, match="determine the warm-up"):
        Study(slow).vary(warmup=["1s", "2s"]).warm_up(1)


def waiting(customers: int, rng: np.random.Generator) -> np.ndarray:
    """Returns the waiting times of an M/M/1 queue at load 0.5 that is empty at first."""
    steps = rng.exponential(1.0, customers) - rng.exponential(2.0, customers)
    sums = np.concatenate(([0.0], np.cumsum(steps)[:-1]))
    return np.asarray(sums - np.minimum.accumulate(sums))


def correlated(n: int, rng: np.random.Generator) -> np.ndarray:
    """Returns a stationary autoregressive series with mean 10."""
    begin = rng.normal(0, 1 / np.sqrt(1 - 0.9**2))
    errors = np.concatenate(([begin], rng.normal(0, 1, n - 1)))
    return np.asarray(10 + lfilter([1], [1, -0.9], errors))


def sawtooth(n: int, rng: np.random.Generator) -> np.ndarray:
    """Returns teeth of 40 values between 5 and 15, with a random phase."""
    return np.asarray(5 + 10 * ((np.arange(n) + rng.integers(40)) % 40) / 39)


def noisy(n: int, rng: np.random.Generator) -> np.ndarray:
    """Returns the teeth of `sawtooth` with an error of each value and of the run."""
    return np.asarray(sawtooth(n, rng) + rng.normal(0, 3, n) + rng.normal(0, 1))


def started(n: int, rng: np.random.Generator) -> np.ndarray:
    """Returns a correlated series that begins far below its mean."""
    return np.asarray(correlated(n, rng) - 8 * np.exp(-np.arange(n) / 20))


@pytest.mark.parametrize(
    ("series", "mean"), [(waiting, 1), (correlated, 10), (started, 10), (noisy, 10)]
)
def test_after_the_cut_of_pilot_runs_intervals_cover_the_mean(series: object, mean: float) -> None:
    """The cut is fixed before the judged runs, whose interval covers 94 to 96 %."""
    assert callable(series)
    rng = np.random.default_rng(8)
    covered = []
    for _ in range(800):
        cut = common_cut([series(600, rng).tolist() for _ in range(5)])
        if cut is not None:
            runs = [series(600, rng)[cut:].mean() for _ in range(10)]
            covered.append(mean in mean_of_runs(runs))
    assert len(covered) > 700
    # Two standard deviations of the share itself are 1.5 %.
    assert 0.925 <= sum(covered) / len(covered) <= 0.975


@pytest.mark.parametrize("series", [waiting, correlated, sawtooth])
def test_stationary_series_are_seldom_found_to_change(series: object) -> None:
    assert callable(series)
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(100):
        runs = [series(1000, rng)[100:].tolist() for _ in range(10)]
        found += bool(begins_late(runs)) + bool(ends_early(runs))
    assert found <= 2


def test_a_trend_never_settles_and_a_start_is_cut() -> None:
    rng = np.random.default_rng(6)
    trend = [(np.linspace(1, 20, 400) + rng.normal(0, 1, 400)).tolist() for _ in range(8)]
    assert common_cut(trend) is None
    assert ends_early(trend) > 0.1
    start = np.concatenate([np.linspace(0, 10, 100), np.full(300, 10.0)])
    cut = common_cut([(start + rng.normal(0, 1, 400)).tolist() for _ in range(8)])
    assert cut is not None
    assert 60 <= cut <= 120
