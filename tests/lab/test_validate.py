"""Simulated and real runs, side by side."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from sojourn.lab import Unavailable
from sojourn.lab.engine import WireEngine
from sojourn.lab.validate import EXTENTS, FULL, Case, Extent, Result, compare, validate
from sojourn.plan import Plan
from sojourn.scenario import Scenario
from tests.cli.outputs import agreeing
from tests.lab.conftest import described, possible

pytestmark = pytest.mark.alone

CASE = Case("cubic", 1, 10, 20, "pfifo")


def runs(*delays: float, goodput: float = 9.5e6) -> list[dict[str, float]]:
    return [{"goodput": goodput, "sojourn_mean": d, "sojourn_p95": d} for d in delays]


def verdicts(real: list[dict[str, float]], simulated: list[dict[str, float]]) -> list[str]:
    return [measured.verdict for measured in compare(CASE, real, simulated)]


def test_agreement_needs_near_values_and_a_difference_needs_narrow_intervals() -> None:
    simulated = runs(0.0100, 0.0101, 0.0099)
    assert verdicts(runs(0.0110, 0.0109), simulated) == ["agrees"] * 3
    assert verdicts(runs(0.0140, 0.0141), simulated) == ["agrees", "differs", "differs"]
    # The mean is too far, but its interval is wide.
    assert verdicts(runs(0.0110, 0.0190), simulated) == ["agrees", "unsure", "unsure"]
    assert verdicts(runs(0.010, goodput=9e6), simulated) == ["differs", "agrees", "agrees"]
    # One packet lasts 1.2 ms: a delay of 2 ms cannot be held to 0.3 ms.
    assert verdicts(runs(0.003), runs(0.002, 0.002))[1] == "agrees"
    assert verdicts(runs(0.004), runs(0.002, 0.002))[1] == "differs"


def test_intervals_are_those_of_the_ratio() -> None:
    mean = compare(CASE, runs(0.012, 0.013), runs(0.010, 0.010, 0.010))[1]
    assert mean.ratio == pytest.approx(1.25)
    assert mean.low < mean.ratio < mean.high
    assert (mean.low + mean.high) / 2 == pytest.approx(mean.ratio)
    assert math.isnan(compare(CASE, runs(0.012), runs(0.010, 0.010))[1].low)
    with pytest.raises(ValueError, match="the simulated goodput is 0"):
        compare(CASE, runs(0.01), runs(0.01, goodput=0.0))


def test_a_replay_that_differs_and_a_violation_count() -> None:
    measured = compare(CASE, runs(0.01), runs(0.01))
    assert Result(CASE, measured, 0.0).verdict == "agrees"
    assert Result(CASE, measured, 0.0, agreements=[True, False]).verdict == "differs"
    assert Result(CASE, measured, 0.0, violations=["late"]).verdict == "not valid"
    [printed] = agreeing(
        "lab validate", json.loads(json.dumps([Result(CASE, measured, 0.0).as_dict()]))
    )
    assert printed["measured"][0]["low"] is None


@pytest.mark.parametrize("case", FULL, ids=lambda case: case.name)
def test_reference_scenarios_are_sound(case: Case) -> None:
    scenario = case.scenario(10, 2)
    assert scenario.bottleneck == "bottleneck"
    assert scenario.model.flows[0].count == case.flows
    WireEngine().check(scenario.plan, 1)


def made(plan: str, seed: int = 1) -> Any:
    """A real run with a journal; skipped where this machine or user cannot have a sandbox."""
    try:
        return WireEngine(journals=True).simulate(Plan.of(plan), seed)
    except Unavailable as error:
        if possible("auto"):
            raise
        pytest.skip(f"not installed: the permission ({error})")


@pytest.mark.needs("iperf3")
@pytest.mark.parametrize("queue", ["fq_codel ecn", "pie ecn", "cobalt"])
def test_impairments_and_marks_are_replayed_too(queue: str) -> None:
    text = f"""
    duration = "3s"
    [links.w]
    from = "a"
    to = "b"
    rate = "10mbit"
    netem = "delay 10ms 2ms loss 0.5%"
    queue = "{queue}"
    [[flows]]
    from = "a"
    to = "b"
    app = "bulk"
    tcp = "reno ecn classic"
    count = 4
    """
    record = made(Scenario.from_toml(text).plan_json)
    (found,) = described(record)["agreements"]
    assert found["agrees"], found["difference"]
    arrivals, drops, marks, entries = found["counts"]
    assert arrivals > 500
    assert drops + marks > 0
    assert entries > 2 * arrivals - drops - 200


@pytest.mark.needs("iperf3")
def test_a_scenario_is_made_both_ways() -> None:
    case = Case("cubic", 4, 10, 20, "pfifo")
    made(case.scenario(2, 0).plan_json)
    steps: list[tuple[int, int]] = []
    done = lambda number, count: steps.append((number, count))  # noqa: E731
    extent = Extent([case], 6.0, 2.0, 1)
    (result,) = validate(extent, WireEngine(journals=True), done=done)
    assert steps == [(1, 1)]
    assert result.agreements == [True]
    goodput, mean, p95 = result.measured
    # A machine that runs other tests may be late, so the bounds are wide.
    assert 0.9 < goodput.ratio < 1.1
    assert 0.6 < mean.ratio < 1.6
    assert 0.6 < p95.ratio < 1.6


def test_the_quick_form_is_quick() -> None:
    quick = EXTENTS["quick"]
    assert len(quick.cases) * quick.seeds * quick.duration < 60
