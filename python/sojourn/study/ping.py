"""The time of a ping across the bottleneck under a scenario's load, before and after a change."""

from __future__ import annotations

import math

from sojourn.metrics import find
from sojourn.plan.queries import bottlenecks
from sojourn.scenario import Scenario, ScenarioError
from sojourn.study import quantities

APP = "cbr rate 4kbit size 98"
"""A packet of `ping` with its Ethernet header, about five a second."""
OUT, BACK = "ping-out", "ping-back"
"""Groups of the requests and of the answers."""
LONGEST = 20_000_000_000
"""Longest measured time of a run, in nanoseconds."""
BITS = 4_000_000_000
"""Largest number of bits that the line carries in the measured time."""


def before_after(scenario: Scenario, queue: str) -> tuple[float, float] | None:
    """Returns the mean round-trip times of pings with the present queue and with another one.

    Times are in seconds, from one run each. The pings cross the bottleneck's link between its ends.
    The other queue is the same as in a comparison. `None` if several links are the bottleneck, or
    if pings cannot return.
    """
    own = round_trip(scenario)
    if queue == scenario.queue_name or own is None:
        return None if own is None else (own, own)
    [installed] = scenario.behind_modem([scenario.with_queue(queue)])
    after = round_trip(installed)
    return None if after is None else (own, after)


def round_trip(scenario: Scenario) -> float | None:
    """Returns the mean round-trip time of pings across the bottleneck in seconds; None without."""
    [link, *others] = bottlenecks(scenario.plan)
    if others or link.to is None or link.from_ is None:
        return None
    ends = [scenario.plan.nodes[node].name for node in (link.from_, link.to)]
    pings = [
        {"name": name, "from": a, "to": b, "app": APP}
        for name, a, b in ((OUT, *ends), (BACK, *ends[::-1]))
    ]
    flows = scenario.as_dict().get("flows")
    plan = scenario.plan
    span = min(plan.duration - plan.warmup, LONGEST, BITS * 10**9 // scenario.bottleneck_rate)
    duration = f"{plan.warmup + max(span, 10**9)}ns"
    try:
        own = flows if isinstance(flows, list) else []
        asked = scenario.replace({"flows": [*own, *pings], "duration": duration})
        metrics = asked.run(1).metrics
    except ScenarioError:  # no route leads back, or a program cannot be simulated
        return None
    time = sum(metrics.get(f"{name}.delay_mean", math.nan) for name in (OUT, BACK))
    return time if math.isfinite(time) else None


def sentence(scenario: Scenario, queue: str, times: tuple[float, float]) -> str:
    """Returns what a person who repeats the pings should see."""
    entry = find("delay_mean")
    unit = "s" if entry is None else entry.unit
    before, after = (quantities.value(time, unit, "delay_mean") for time in times)
    text = f"Ping across `{scenario.bottleneck}` under this load, on average: {before} now"
    return f"{text}, {after} with {queue}." if queue != scenario.queue_name else f"{text}."
