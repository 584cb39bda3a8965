"""A page's runs are the scenario's, and end at their bounds."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from sojourn.play import shape
from sojourn.play.answer import answer
from sojourn.play.controls import Changes, apply
from sojourn.play.simulation import Bounds, Cancelled, Meter, resident, rounded
from sojourn.play.state import State

HOME = State.home()
BOUNDS = Bounds()


def meter(bounds: Bounds = BOUNDS, **parts: Any) -> Meter:
    return Meter(bounds, **parts)


def test_what_a_page_shows_is_what_run_measures() -> None:
    found = answer(HOME, meter())
    compared = HOME.compared
    assert compared is not None
    for scenario, told in zip((HOME.scenario, compared), found["runs"], strict=True):
        run = scenario.run(HOME.seed)
        rows = {(row["place"], row["name"]): row["value"] for row in told["rows"]}
        assert rows["uplink", "queueing delay, 95 %"] == run.metrics["sojourn_p95"]
        assert rows["upload", "goodput"] == run.metrics["upload.goodput"]
        assert rows["call", "MOS"] == run.metrics["call.mos"]
    series = found["runs"][1]["series"]
    assert {len(values) for values in series.values()} == {401}
    # Drops a second over the whole run are at least those that were measured after the warm-up.
    step = found["duration"] / 400
    drops = sum(series["drops"]) * step
    assert drops >= compared.run(1).metrics["drops"] > 0
    assert round(drops) == pytest.approx(drops, abs=1e-3)
    assert found["runs"][0]["rows"] != found["runs"][1]["rows"]


def test_without_a_pinned_queue_there_is_one_run() -> None:
    assert len(answer(HOME.replace(pinned=None), meter())["runs"]) == 1


def test_far_too_much_is_refused_before_it_begins() -> None:
    state = apply(HOME, Changes(rate="100gbit", counts={"0": 10_000}))

    def never() -> float:
        return 0.0

    found = answer(state, meter(clock=never))
    assert found["error"].startswith("100 Gbit/s for 10 s are up to 82.6 million packets")
    assert "runs" not in found
    assert found["controls"]["sliders"][0]["value"] == 100_000_000_000


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"flows": 4}, "5 flows are more than the 4 of a page"),
        ({"groups": 1}, "2 groups of flows"),
        ({"links": 1}, "2 links"),
        ({"packets": 1000}, "lower the rate"),
        ({"events": 1000}, "more than 0 million events after"),
    ],
)
def test_each_bound_is_told(bounds: dict[str, int], message: str) -> None:
    assert message in answer(HOME, meter(replace(BOUNDS, **bounds)))["error"]


def ticking(step: float) -> Iterator[float]:
    now = 0.0
    while True:
        yield now
        now += step


def test_time_and_memory_are_bounds_too() -> None:
    clock = ticking(1.0)
    found = answer(HOME, meter(clock=lambda: next(clock)))
    assert "stopped: more than 10 s of computing after" in found["error"]
    growth = ticking(float(1 << 29))
    found = answer(HOME, meter(memory=lambda: int(next(growth))))
    assert "stopped: more than 1024 MiB of memory after" in found["error"]


def test_events_of_both_runs_count_together() -> None:
    one = answer(HOME.replace(pinned=None), meter())["runs"][0]["events"]
    bounds = replace(BOUNDS, events=one + 5)
    assert "runs" in answer(HOME.replace(pinned=None), meter(bounds))
    assert "events" in answer(HOME, meter(bounds))["error"]


def test_a_cancelled_request_ends() -> None:
    over = threading.Event()
    over.set()
    with pytest.raises(Cancelled):
        answer(HOME, meter(cancelled=over))


def test_memory_is_told() -> None:
    assert resident() > 10 << 20


def test_numbers_are_json() -> None:
    assert rounded([1 / 3, math.nan, math.inf]) == [0.333333, None, None]


def placed(toml: dict[str, Any]) -> dict[str, Any]:
    from sojourn import Scenario

    return shape.shape(Scenario.from_dict(toml))


FLOW = {"app": "bulk"}


@pytest.mark.parametrize(
    ("topology", "flow", "names", "columns"),
    [
        (
            {"template": "dumbbell", "rate": "1mbit", "left": {"hosts": 9}, "right": {"hosts": 2}},
            {"from": "left", "to": "right"},
            {"router1", "router2", "left1 to left9", "right1", "right2"},
            4,
        ),
        (
            {"template": "star", "rate": "1gbit", "hosts": 6},
            {"from": "host1", "to": "host2"},
            {"switch", "host1", "host2 to host6"},
            3,
        ),
        (
            {"template": "lan", "rate": "10mbit", "clients": 5, "servers": 1},
            {"from": "clients", "to": "servers"},
            {"lan", "client1 to client5", "server1"},
            None,
        ),
        (
            {"template": "mesh", "rate": "10mbit", "nodes": 5},
            {"from": "node1", "to": "node2"},
            {"node1", "node2", "node3", "node4", "node5"},
            None,
        ),
    ],
)
def test_shapes(
    topology: dict[str, Any], flow: dict[str, str], names: set[str], columns: int | None
) -> None:
    found = placed({"duration": "1s", "topology": topology, "flows": [{**FLOW, **flow}]})
    assert {place["name"] for place in found["places"]} == names
    spots = [(place["x"], place["y"]) for place in found["places"]]
    assert len(set(spots)) == len(spots)
    if columns is not None:
        assert len({x for x, _ in spots}) == columns
    subjects = [line for line in found["lines"] if line["queue"] is not None]
    assert subjects
    for line in found["lines"]:
        assert line["queue"] in (None, line["from"], line["to"])


def test_what_cannot_be_drawn_is_not() -> None:
    topology = {"template": "mesh", "rate": "10mbit", "nodes": 50}
    flow = {**FLOW, "from": "node1", "to": "node2"}
    assert placed({"duration": "1s", "topology": topology, "flows": [flow]})["note"] == "50 nodes"
