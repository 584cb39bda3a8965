"""REDopt on-line: its decisions one by one, and what it does to a link with many flows."""

from __future__ import annotations

import json
import random
from types import SimpleNamespace
from typing import Any

import pytest
from examples.papers.redopt_online import PLACE
from examples.policies import redopt_online as policy
from examples.policies.redopt_online import STEP, RedoptOnline

import sojourn
from sojourn import _core
from sojourn.own.text import own, queue_params
from sojourn.papers.taildrop import scenarios
from sojourn.tune.redopt import Link, drop_probability, redopt

LINK: dict[str, Any] = {"rate": 10e6, "rtts": (0.15,), "unresponsive": 1e6}


class Draws:
    """Uniform draws of a seed."""

    def __init__(self) -> None:
        self.random = random.Random(5)

    def uniform(self) -> float:
        return self.random.random()


class Queue:
    """As many packets as the test says."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def pop(self) -> SimpleNamespace | None:
        return SimpleNamespace(bytes=1514) if self.length else None


def made(**changes: Any) -> Any:
    """The queue with its default parameters, in base units, or others."""
    told = {
        "rate": 10e6, "rtt": 150e6, "unresponsive": 0.1, "packet": 1514, "memory": 10e9,
        "flows": 16, "limit": 5000,
    }  # fmt: skip
    return RedoptOnline(SimpleNamespace(**(told | changes)), Draws())


def share(queue: Any, average: float, packets: int = 20_000) -> float:
    """The share dropped of packets that meet this average."""
    dropped = 0
    for _ in range(packets):
        queue.average = average
        dropped += queue.enqueue(1, None, Queue(round(average))) is sojourn.DROP
    return dropped / packets


def test_the_ramp_s_probability_is_the_share_that_is_dropped() -> None:
    """None below the lower threshold, all from the upper one on."""
    red = made(flows=64).red
    assert share(made(flows=64), red.minimum - 2) == 0
    assert share(made(flows=64), red.maximum + 2) == 1
    middle = (red.minimum + red.maximum) / 2
    assert share(made(flows=64), middle) == pytest.approx(red.max_p / 2, rel=0.05)


def test_no_packet_goes_beyond_the_setting_s_buffer() -> None:
    queue = made()
    assert queue.enqueue(1, None, Queue(queue.red.limit - 1)) is sojourn.ACCEPT
    assert queue.enqueue(1, None, Queue(queue.red.limit)) is sojourn.DROP


def test_an_idle_queue_forgets_its_average() -> None:
    queue = made()
    queue.average = 10.0
    assert queue.dequeue(1_000_000_000, Queue(0)) is None
    assert queue.dequeue(5_000_000_000, Queue(0)) is None
    queue.enqueue(61_000_000_000, None, Queue(0))
    assert queue.average < 1e-6


@pytest.mark.parametrize("flows", [4, 40, 400])
@pytest.mark.parametrize("period", [0.1, 1, 5])
def test_the_number_of_flows_follows_from_the_losses(
    flows: int, period: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full link that loses what so many flows lose, the setting becomes theirs.

    The period of the estimates does not change it.
    """
    monkeypatch.setattr(policy, "PERIOD", period)
    queue, begun = made(flows=16), made(flows=16).red
    loss = drop_probability(Link(flows=flows, **LINK), 100)
    packets = period * 10e6 / 8 / 1514
    for step in range(1, round(60 / period)):
        queue.arrivals += packets
        queue.drops += packets * loss
        queue.carried += packets * 1514
        queue.seen += packets * 100
        queue.on_timer(round(step * period * 1e9), Queue(100))
    assert queue.red != begun
    assert STEP**queue.step == pytest.approx(flows, rel=0.1)
    assert queue.red == redopt(Link(flows=STEP**queue.step, **LINK))
    assert queue.state()["max_p"] == round(1e6 * queue.red.max_p)


def test_nothing_is_estimated_without_traffic() -> None:
    queue = made()
    begun = queue.red
    for now in range(1, 10):
        queue.on_timer(now * 10**9, Queue(0))
    assert queue.red is begun


@pytest.mark.parametrize("flows", [16, 64])
def test_the_queue_settles_in_the_middle_of_redopt_s_ramp(flows: int) -> None:
    """It begins with the parameters for another number."""
    told = scenarios.bulk(flows, 120, 60)
    run = told.with_queue(f"{PLACE} unresponsive 10% flows 30").run(seed=7)
    link = Link(flows=flows, rate=10e6, rtts=scenarios.ROUND_TRIPS, unresponsive=1e6)
    assert run.metrics["queue_mean"] == pytest.approx(redopt(link).equilibrium, rel=0.25)
    assert run.metrics["goodput"] > 0.95 * 8.55e6


def test_the_key_of_a_run_does_not_depend_on_the_folder_of_the_queue() -> None:
    found = own("queue", PLACE)
    assert set(found.sources.as_dict()) == {"redopt_online.py"}
    assert queue_params(found)["period"] == 1_000_000_000
    plan = scenarios.bulk(2, 4, 1, starts=1).with_queue(PLACE).plan_json
    assert "redopt_online.py:RedoptOnline" in plan
    assert "policies/redopt_online" not in json.dumps(json.loads(plan)["links"])
    assert _core.simulate(plan, 1).trace_hash == _core.simulate(plan, 1).trace_hash
