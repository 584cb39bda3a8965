"""Comparisons held against the cells that Linux ran too."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from sojourn import Scenario, study
from sojourn.study.calibration import Unlike, alike, calibration, description, recorded, shape
from tests.agreement.cells import Cell, grid

CELL = Cell(("cubic",), 8, 10**7, 0.04, "pfifo")


def scenario(**changes: Any) -> Scenario:
    found = Scenario.from_dict(CELL.scenario(1) | {"duration": "20s", "warmup": "5s"})
    return found.replace(changes) if changes else found


def test_numbers_are_alike_within_a_factor() -> None:
    assert alike({"a": [1, 2.0, "x", True]}, {"a": [2, 1, "x", True]})
    assert not alike(1, 2.1)
    assert not alike(0, 1)
    assert not alike(1, True)
    assert not alike({"a": 1}, {"b": 1})
    assert not alike([1], [1, 1])
    assert not alike("a", 1)


def test_the_record_is_of_todays_cells() -> None:
    cells = {cell.name: cell for cell in grid()[0]}
    there = recorded()
    assert len(there) >= 200
    for one in there:
        made = shape(Scenario.from_dict(cells[one.cell].scenario(0)).plan)
        assert json.dumps(vars(one.shape), sort_keys=True) == json.dumps(vars(made), sort_keys=True)
        assert min(one.runs.values()) >= 2


def test_a_comparison_in_the_grid() -> None:
    found = study.compare(
        scenario(), ["pfifo limit 34p", "codel noecn", "fq_codel noecn"], seeds=2, by="sojourn_mean"
    )
    known = calibration(found, scenario())
    # Drop-tail is far from both; the error is a fraction of its delay.
    assert "pfifo limit 34p" in known.beyond
    assert 0 < known.beyond["pfifo limit 34p"] < 0.010
    assert known.cells >= 2
    text = description(found, scenario())
    assert re.search(r"pfifo: larger than the error of [\d.]+ ms", text)


def test_equal_queues_are_not_decided() -> None:
    found = study.compare(scenario(), ["codel noecn", "codel noecn target 5.001ms"], seeds=2)
    text = description(found, scenario())
    assert "not larger than the" in text
    assert "Simulation cannot decide" in text


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"links.line.netem": "delay 20ms reorder 25%"}, "these impairments"),
        ({"links.line.rate": "3gbit"}, "this rate"),
        ({"links.line.cells": "atm"}, "ATM or PTM cells"),
        ({"links.line.netem": "delay 1s"}, "this round-trip time"),
        ({"flows.g0.count": 1000}, "this number of flows"),
        ({"flows.g0.app": "voip", "flows.g0.tcp": None}, "these applications"),
        ({"flows.g0.tcp": "dctcp"}, "these transports"),
    ],
)
def test_outside_the_grid_no_calibration_is_stated(changes: dict[str, Any], reason: str) -> None:
    other = scenario(**changes)
    found = study.compare(scenario(), ["codel noecn", "pfifo limit 34p"], seeds=2)
    with pytest.raises(Unlike, match=reason):
        calibration(found, other)
    assert description(found, other).startswith("Simulated; the error of simulation is not known")


def test_other_metrics_are_not_calibrated() -> None:
    found = study.compare(scenario(), ["codel noecn", "pfifo limit 34p"], seeds=2, by="loss")
    text = description(found, scenario())
    assert re.search("sojourn_mean and sojourn_p95 were checked against Linux .* was not", text)
