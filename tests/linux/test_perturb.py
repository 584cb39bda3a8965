"""`perturb` of `sfq` sorts flows anew, on Linux as in the simulator."""

import itertools

import pytest

from sojourn import _core
from sojourn.linux.engine import LinuxEngine
from sojourn.linux.kernels import Kernel
from sojourn.plan import Plan
from sojourn.scenario import Scenario
from sojourn.scenario.engine import Record
from tests.linux.test_records import values

STEP, WHOLE = 0.1, 30
"""Seconds of a sample, and of a run."""
FLOWS = 3


def scenario(perturb: int, duration: int = WHOLE) -> Scenario:
    """Three equal flows that do not respond, in two buckets, before a line of half their rate."""
    common = {"from": "a", "to": "b"}
    queue = f"sfq divisor 2 limit 60p perturb {perturb}"
    return Scenario.from_dict(
        {
            "duration": f"{duration}s",
            "warmup": "1s",
            "links": {"line": {**common, "rate": "6mbit", "netem": "delay 5ms", "queue": queue}},
            "flows": [
                {"name": f"f{n}", **common, "app": "packets interval exp(1ms) size 500"}
                for n in range(FLOWS)
            ],
            "observe": {"series": f"{STEP}s"},
        }
    )


def sortings(record: Record) -> list[tuple[int | None, float]]:
    """The flow that has a bucket alone, if any, and since when, each time that this changes."""
    series = values(record, "series")
    found: list[tuple[int | None, float]] = []
    rates = zip(*(series[f"f{n}.udp_goodput"] for n in range(FLOWS)), strict=True)
    alone = [next((n for n in range(FLOWS) if one[n] > 0.44 * sum(one)), None) for one in rates]
    at = 0
    for one, samples in itertools.groupby(alone):
        count = len(list(samples))
        # A bucket that shrinks or grows takes a moment, and some samples deceive.
        if count > 3 and (not found or found[-1][0] != one):
            found.append((one, at * STEP))
        at += count
    return found


@pytest.mark.parametrize("engine", ["linux", "simulator"])
def test_flows_are_sorted_anew_in_each_period(engine: str, request: pytest.FixtureRequest) -> None:
    plan = scenario(1).plan
    if engine == "linux":
        kernel: Kernel = request.getfixturevalue("kernel")
        found = sortings(LinuxEngine(kernel).simulate(plan, 1))[1:]
    else:
        found = sortings(_core.simulate(plan.text, 1))[1:]
    assert {one for one, _ in found} == {None, 0, 1, 2}
    # Three of four sortings are other ones, as each flow draws one of two buckets.
    assert 0.5 * WHOLE < len(found) < 0.9 * WHOLE, found
    # They change at the ends of periods only, which a tick of the kernel's clock is added to.
    spans = [(after - before) / 1.01 for (_, before), (_, after) in itertools.pairwise(found)]
    whole = [span for span in spans if abs(span - round(span)) < 0.25]
    assert len(whole) >= 0.9 * len(spans), spans


def test_without_it_they_stay(kernel: Kernel) -> None:
    plan = scenario(0, 10).plan_json
    for record in (LinuxEngine(kernel).simulate(Plan.of(plan), 1), _core.simulate(plan, 1)):
        assert len(sortings(record)) == 1
