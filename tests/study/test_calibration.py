"""Expected errors against Linux, from the cells that Linux ran too."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sojourn import Scenario, study
from sojourn.study.calibration import calibration, description
from sojourn.study.expected import (
    FEWEST,
    Unlike,
    alike,
    error_bars,
    expected,
    place,
    recorded,
)
from tests.cli.test_commands import sojourn

QUEUES = ["codel noecn", "pfifo limit 34p"]
CALL = {"from": "a", "to": "b", "app": "voip"}


def scenario(*also: dict[str, Any], **changes: Any) -> Scenario:
    """Eight CUBIC flows, as many recorded cells have them, and other flows."""
    link = {
        "from": "a", "to": "b", "rate": "10mbit", "netem": "delay 20ms", "queue": "pfifo limit 34p"
    }  # fmt: skip
    flow = {"name": "g0", "from": "a", "to": "b", "app": "bulk", "count": 8, "tcp": "cubic ecn off"}
    found = Scenario(duration="12s", warmup="3s", links={"line": link}, flows=[flow, *also])
    return found.replace(changes) if changes else found


def test_numbers_are_alike_within_a_factor() -> None:
    assert alike({"a": [1, 2.0, "x", True]}, {"a": [2, 1, "x", True]})
    assert not alike(1, 2.1)
    assert not alike(0, 1)
    assert not alike(1, True)
    assert not alike({"a": 1}, {"b": 1})
    assert not alike([1], [1, 1])
    assert not alike("a", 1)


def test_a_cell_is_near_itself_and_farther_from_others() -> None:
    cells = recorded().cells
    for cell in cells:
        assert cell.place.distance(cell.place) == 0
        others = [cell.place.distance(one.place) for one in cells if one.network != cell.network]
        assert min(others) > 0
        assert others == [
            one.place.distance(cell.place) for one in cells if one.network != cell.network
        ]


def test_an_error_is_expected_from_similar_cells() -> None:
    known = expected(scenario().plan)
    assert known.cells >= FEWEST
    for metric in ("goodput", "sojourn_mean", "sojourn_p95"):
        assert 0 < known.shares[metric] < 2
    assert known.error("goodput", 1e7) == pytest.approx(known.shares["goodput"] * 1e7)
    # A delay of zero has the error of a packet's time.
    frame = 1514 * 8 / 1e7
    assert known.error("sojourn_p95", 0.0) == pytest.approx(known.shares["sojourn_p95"] * frame)
    assert math.isnan(known.error("g0.mos", 4.0))


def test_a_metric_without_a_factor_has_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    few = replace(recorded(), factors={"goodput": 1.0})
    monkeypatch.setattr("sojourn.study.expected.recorded", lambda: few)
    assert set(expected(scenario().plan).shares) == {"goodput"}


def test_ticks_and_memory_of_the_machine_do_not_matter() -> None:
    other = scenario(**{"flows.0.tcp": "cubic ecn off hz 100 frame_memory 4352b"})
    assert place(other.plan) == place(scenario().plan)


def test_a_comparison_states_which_differences_exceed_the_error() -> None:
    found = study.compare(
        scenario(), ["pfifo limit 34p", "codel noecn", "codel noecn target 5.001ms"], seeds=2,
        by="sojourn_mean",
    )  # fmt: skip
    known = calibration(found, scenario())
    assert "pfifo limit 34p" in known.beyond
    assert len(known.within) == 1
    text = description(found, scenario())
    assert re.search(r"pfifo: larger than [\d.]+ [mµ]s", text)
    assert "goodput ± " in text
    assert "Simulation cannot decide" in text


@pytest.mark.parametrize(("name", "words"), [("voip", ""), ("cbr", " rate 400kbit size 200b")])
def test_a_call_in_addition_does_not_matter(name: str, words: str) -> None:
    other = scenario({**CALL, "app": name + words})
    assert place(other.plan) == place(scenario().plan)
    with pytest.raises(Unlike, match=f"the application {name}"):
        place(scenario({**CALL, "app": name + words, "count": 10}).plan)


def test_the_headers_of_datagrams_count() -> None:
    place(scenario({**CALL, "app": "cbr rate 400kbit payload 1000b"}).plan)
    with pytest.raises(Unlike, match="the application cbr"):
        place(scenario({**CALL, "app": "cbr rate 400kbit payload 64b"}).plan)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"links.line.netem": "delay 20ms reorder 25%"}, "these impairments"),
        ({"links.line.netem": "delay 20ms loss 1% 20%"}, "this model of losses"),
        ({"links.line.rate": "40gbit"}, "no similar cell was checked"),
        ({"links.line.cells": "atm"}, "ATM or PTM cells"),
        ({"links.line.netem": "delay 10s"}, "no similar cell was checked"),
        ({"flows.0.count": 50_000}, "no similar cell was checked"),
        ({"flows.0.app": "voip", "flows.0.tcp": None}, "the application voip"),
        ({"flows.0.tcp": "dctcp"}, "these transports"),
        ({"links.line.queue": "blue limit 100p"}, "the queue blue"),
    ],
)
def test_far_from_all_cells_no_error_is_stated(changes: dict[str, Any], reason: str) -> None:
    other = scenario(**changes)
    with pytest.raises(Unlike, match=reason):
        expected(other.plan)
    assert reason in error_bars(other.plan, {}, {})


def test_other_metrics_have_no_error() -> None:
    found = study.compare(scenario(), QUEUES, seeds=2, by="jain")
    assert re.search("jain was not", description(found, scenario()))


def test_run_states_the_expected_errors(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text(
        """
        duration = "12s"
        warmup = "3s"
        [links.line]
        from = "a"
        to = "b"
        rate = "10mbit"
        netem = "delay 20ms"
        queue = "codel"
        [[flows]]
        from = "a"
        to = "b"
        app = "bulk"
        count = 8
        tcp = "cubic ecn off"
        """
    )
    shown = " ".join(sojourn("run", file).out.split())
    assert re.search(r"ran\): goodput ± [\d.]+ [kM]bit/s, ", shown)
    data = sojourn("run", file, "--json").json()
    assert " ".join(data["calibration"].split()) in shown
    far = " ".join(sojourn("run", file, "--set", "links.line.netem=delay 10s").out.split())
    assert "no similar cell" in far
