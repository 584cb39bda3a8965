"""A scenario's run: its tables, its replay, its end."""

from __future__ import annotations

import json
import math
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sojourn import _core
from sojourn.scenario import Run, Scenario
from sojourn.suites.disciplines import every
from tests.scenario.texts import DUMBBELL, HOME, LAN, SWITCH

SHORT = {"duration": "6s", "warmup": "2s"}


@pytest.fixture(scope="module")
def run() -> Run:
    return Scenario.from_toml(HOME).replace(SHORT).run(seed=3)


def test_identity(run: Run) -> None:
    assert run.complete
    assert run.seed == 3
    assert len(run.trace_hash) == 32
    assert int(run.trace_hash, 16)
    assert run.events > 1000
    assert run.record.reached == 6_000_000_000


def test_equal_plans_and_seeds_replay(run: Run) -> None:
    again = run.scenario.run(seed=3)
    assert again.trace_hash == run.trace_hash
    assert again.events == run.events
    assert again.metrics.keys() == run.metrics.keys()
    for name, value in run.metrics.items():
        np.testing.assert_equal(again.metrics[name], value)
    assert run.scenario.run(seed=4).trace_hash != run.trace_hash


def test_several_at_once_are_the_same(run: Run) -> None:
    hashes: list[str] = []
    threads = [
        threading.Thread(target=lambda: hashes.append(run.scenario.run(3).trace_hash))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert hashes == [run.trace_hash] * 4


def test_the_plan_decides_not_its_words() -> None:
    text = HOME.replace("codel limit 1000p target 5ms", "codel   limit 1000 target 5000us")
    one = Scenario.from_toml(HOME).replace(SHORT).run(1)
    other = Scenario.from_toml(text).replace(SHORT).run(1)
    assert one.trace_hash == other.trace_hash


def test_tables(run: Run) -> None:
    assert len(run.flows) == 5
    assert list(run.flows["group"]) == ["bulk"] * 4 + ["voip"]
    assert list(run.queues["link"]) == ["uplink", "uplink.reverse"]
    assert run.flows.attrs["units"]["goodput"] == "bit/s"
    assert run.series["time"].is_monotonic_increasing
    assert {"uplink.queue", "time"} <= set(run.series.columns)
    assert (run.distributions["count"] >= 0).all()
    assert len(run.table("summary")) == 1
    with pytest.raises(KeyError, match="did you mean `flows`"):
        run.table("flow")


def test_metrics_are_known_and_hang_together(run: Run) -> None:
    import json

    registry = {m["name"]: m["unit"] for m in json.loads(_core.describe())["metrics"]}
    for name in run.metrics:
        assert registry[name.rpartition(".")[2]] == run.units[name], name
    metrics = run.metrics
    assert metrics["arrivals"] >= metrics["departures"] > 0
    # A frame counts when its transmission begins: one more may, at either end.
    assert 0 < metrics["utilisation"] < 1.001
    assert metrics["sojourn_p50"] <= metrics["sojourn_p95"] <= metrics["sojourn_max"]
    assert metrics["goodput"] == pytest.approx(run.flows["goodput"].sum())
    assert metrics["goodput"] == metrics["bulk.goodput"]
    assert 1 <= metrics["voip.mos"] <= 4.5


def test_a_run_has_a_summary_and_json_data(run: Run) -> None:
    text = run.summary()
    assert text.startswith("home: seed 3, 6 s\n")
    assert "uplink: codel limit 1000p target 5ms, 20mbit" in text
    assert run.trace_hash in text
    assert all(len(line) <= 100 for line in text.splitlines())
    data: Any = run.as_dict()
    assert data["metrics"]["bulk.mos"] is None
    assert not any(isinstance(v, float) and math.isnan(v) for v in data["metrics"].values())


def test_progress_and_stopping() -> None:
    scenario = Scenario.from_toml(HOME).replace({"duration": "600s"})
    seen: list[tuple[float, int]] = []

    def watch(fraction: float, events: int) -> bool:
        seen.append((fraction, events))
        return len(seen) < 5

    stopped = scenario.run(1, watch)
    assert not stopped.complete
    assert stopped.record.reached < 600_000_000_000
    assert [f for f, _ in seen] == sorted(f for f, _ in seen)
    assert "stopped early" in stopped.summary()


def test_an_exception_of_the_callback_is_raised() -> None:
    class Odd(Exception):
        pass

    def watch(fraction: float, events: int) -> bool:
        raise Odd

    with pytest.raises(Odd):
        Scenario.from_toml(HOME).run(1, watch)


def test_a_run_of_nothing_but_warmup_is_refused_and_a_short_one_runs() -> None:
    scenario = Scenario.from_toml(HOME).replace({"duration": "2s", "warmup": "1999ms"})
    assert scenario.run(1).complete


def test_captures(run: Run, tmp_path: Path) -> None:
    scenario = run.scenario.replace({"observe.capture": ["uplink"]})
    captured = scenario.run(seed=3)
    assert captured.trace_hash == run.trace_hash, "watching changes nothing"
    (content,) = captured.captures.values()
    assert content[:4] in (b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d")


@pytest.mark.needs("tshark")
def test_captures_are_read_by_tshark(run: Run, tmp_path: Path) -> None:
    import subprocess

    scenario = run.scenario.replace({"observe.capture": ["uplink"], "observe.snaplen": "200"})
    path = tmp_path / "uplink.pcap"
    path.write_bytes(scenario.run(seed=3).captures["uplink"])
    fields = ["-e", "ip.proto", "-e", "frame.len", "-e", "_ws.malformed"]
    done = subprocess.run(
        ["tshark", "-r", str(path), "-T", "fields", *fields],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert {row[0] for row in rows} == {"6", "17"}
    assert max(int(row[1]) for row in rows) == 1514
    assert not any(row[2] for row in rows if len(row) > 2)


@pytest.mark.parametrize(
    "queue",
    [
        # Presets 2 and 3 of dAQM drop most of what they get.
        *(q for name, q in every(20_000_000, 300).items() if name not in ("daqm_c2", "daqm_c3")),
        "pfifo limit 50p",
        "bfifo limit 60kb",
        "red limit 400kb min 15kb max 45kb avpkt 1000 probability 0.1",
        "red limit 300p min 15p max 45p avpkt 1000 unit packets gentle",
        "daqm as-published",
        "cake bandwidth 18mbit besteffort ack-filter",
    ],
)
def test_every_queue_runs(queue: str) -> None:
    run = Scenario.from_toml(HOME).replace(SHORT).with_queue(queue).run()
    metrics = run.metrics
    assert metrics["utilisation"] > 0.5
    assert run.scenario.queue == queue
    reasons = ("early", "forced", "overflow", "ack_filter", "measurement")
    assert metrics["drops"] == sum(metrics[f"drops_{reason}"] for reason in reasons)


PAIRS = """
duration = "2s"
[topology]
template = "pairs"
pairs = 3
rate = "2mbit"
[[flows]]
from = "a"
to = "b"
app = "cbr rate 1mbit size 500"
count = 3
"""
STAR = """
duration = "2s"
[topology]
template = "star"
hosts = 4
rate = "10mbit"
queue = "codel"
[[flows]]
from = ["host2", "host3", "host4"]
to = "host1"
app = "transfer size 20kb forever"
count = 6
"""


@pytest.mark.parametrize("text", [DUMBBELL.replace("count = 64", "count = 6"), PAIRS, STAR])
def test_templates_run(text: str) -> None:
    run = Scenario.from_toml(text).run()
    assert run.complete
    assert (run.flows["bytes"] > 0).any()


def test_a_lan_in_words_and_tables() -> None:
    run = Scenario.from_toml(LAN).run()
    # Ten clients offer 897 frames a second between them; the bus carries a little more.
    assert run.metrics["up.received"] == pytest.approx(2 * 10e6 / (8 * 1400), rel=0.02)
    assert 0.85 < run.metrics["lan.occupancy"] < 1
    assert run.metrics["utilisation"] == pytest.approx(run.metrics["lan.occupancy"])
    assert run.units["lan.attempts"] == "1"
    assert "lan: codel, 2gbit, 12 stations of one medium" in run.summary()
    assert {"lan.queue", "lan.last_sojourn", "client1.queue"} <= set(run.series.columns)
    assert "lan" in set(run.distributions["place"])
    assert list(run.queues["link"]) == run.scenario.bottlenecks


def test_ports_together_in_words_and_tables() -> None:
    run = Scenario.from_toml(SWITCH).run()
    assert "servers: codel, 4mbit and 6mbit, 2 links together" in run.summary()
    for name in ("arrivals", "departures", "drops", "throughput", "queue_mean"):
        both = [run.metrics[f"server{i}.{name}"] for i in (1, 2)]
        assert run.metrics[name] == pytest.approx(sum(both)), name
        assert run.metrics[name] > 0
    assert run.metrics["server1.sojourn_mean"] > run.metrics["sojourn_mean"]
    assert run.metrics["sojourn_mean"] > run.metrics["server2.sojourn_mean"]
    series = run.series
    assert (series["servers.queue"] == series["server1.queue"] + series["server2.queue"]).all()


def test_examples_run(examples: list[Path]) -> None:
    for path in examples:
        scenario = Scenario.load(path)
        plan = json.loads(scenario.plan_json)
        short = min(plan["duration"], plan["warmup"] + 10**9) // 10**6
        run = scenario.replace({"duration": f"{short}ms"}).run()
        assert run.complete, path
        assert run.metrics["throughput"] > 0, path


def test_scenarios_go_to_other_processes(run: Run) -> None:
    again: Any = pickle.loads(pickle.dumps(run.scenario))
    assert again.run(3).trace_hash == run.trace_hash
