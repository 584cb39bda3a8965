"""Findings of real clients, in the tables of simulated runs."""

from __future__ import annotations

import io
import json
import struct
import threading
import time
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from sojourn import _core
from sojourn.lab.cassandra.client import Check, _Run
from sojourn.lab.store.findings import Answers, Row, values, with_store
from sojourn.lab.tables import Tables
from tests.lab.test_store import scenario

MS = 1_000_000


def row(number: int, kind: str, begun: int, took: int, outcome: str = "acknowledged") -> Row:
    """A line of a client's log, in milliseconds."""
    return Row(
        number, kind, 7, begun * MS, begun * MS, (begun + took) * MS, outcome, "10.0.0.1", ""
    )


def test_latencies_have_the_names_and_bins_of_simulated_ones() -> None:
    wanted = scenario(requests=5, warmup=1)
    plan = wanted.plan
    record = _core.simulate(wanted.plan_json, 1)
    tables = Tables.of(record)
    rows = [
        row(1, "writes", 0, 900),  # of the warm-up
        row(2, "writes", 1000, 10),
        row(3, "writes", 1010, 30),
        row(4, "reads", 1040, 20),
        row(5, "writes", 1060, 5000, "timed_out"),
    ]
    checked = Check(keys=3, lost=0, violations=0, unconverged=2, unread=0)
    about = Answers({"n1": "10.0.0.1", "n2": "10.0.0.2"}, {"10.0.0.1": 5}, [checked])
    empty = Tables(distributions=[(*c[:3], type(c[3])()) for c in tables.distributions])
    made = with_store(empty, plan, rows, about)
    found = values(made.summary)
    assert found["store.requests"] == 4
    assert found["store.acknowledged"] == 3
    assert found["store.timed_out"] == 1
    assert found["store.unconverged"] == 2
    assert found["store.latency_mean"] == pytest.approx(0.020)
    assert found["store.writes.latency_max"] == pytest.approx(0.030)
    assert found["store.n1.coordinated"] == 5
    # From when the first was to be made to the last answer.
    assert found["store.elapsed"] == pytest.approx(5.06)
    simulated = {name for name, *_ in tables.summary}
    # Reads were asked for here only.
    assert {name for name in found if ".reads." not in name} <= simulated
    assert [c[:3] for c in made.distributions] == [c[:3] for c in tables.distributions]
    columns: dict[str, Any] = {name: data for name, _, _, data in made.distributions}
    assert columns["place"] == ["store.reads", "store.writes", "store.writes"]
    assert columns["metric"] == ["latency"] * 3
    lows, highs = (struct.unpack("<3d", columns[name]) for name in ("low", "high"))
    for low, high, value in zip(lows, highs, (0.020, 0.010, 0.030), strict=True):
        assert low <= value <= high
        assert high - low < 0.02 * value
    assert struct.unpack("<3q", columns["count"]) == (1, 1, 1)
    # A wire's own rows come first.
    joined = with_store(replace(tables, summary=[]), plan, rows, about).distributions
    assert joined[0][3][: len(tables.distributions[0][3])] == tables.distributions[0][3]
    assert len(joined[2][3]) == len(tables.distributions[2][3]) + 24


def test_an_open_loop_counts_from_the_intended_start() -> None:
    """A request that waits for an earlier one has this wait in its latency."""
    pytest.importorskip("cassandra")
    answer, gap = 30_000_000, 5_000_000

    def ask(_request: object) -> Any:
        def add_callbacks(done: Any, _failed: Any) -> None:
            threading.Timer(answer / 1e9, done, [()]).start()

        return SimpleNamespace(add_callbacks=add_callbacks)

    log, start = io.StringIO(), time.monotonic_ns()
    made: Any = SimpleNamespace(
        given=SimpleNamespace(outstanding=1, think=None), ask=ask, log=log,
        asks=[("insert", n, 0, gap) for n in range(5)], coordinated=Counter(), acknowledged=set(),
    )  # fmt: skip
    _Run(made, start, start + 10**12, warm=False, least_gap=0).play()
    rows = [json.loads(line) for line in log.getvalue().splitlines()]
    for n, row in enumerate(rows):
        intended, _, ended = row[3:6]
        assert intended == gap * (n + 1)
        assert ended - intended >= answer * (n + 1) - gap * n
    assert len(rows) == 5
