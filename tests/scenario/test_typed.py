"""Typed and pasted texts: lines of `tc`, bare numbers, disciplines that are not modelled."""

from __future__ import annotations

import json

import pytest

from sojourn import _core
from sojourn.cli.compare import chosen_queues
from sojourn.plan.link import Params
from sojourn.scenario import Scenario, ScenarioError
from sojourn.study import StudyError
from tests.scenario.texts import HOME

SHOWN = """qdisc noqueue 0: dev lo root refcnt 2
 Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
qdisc cake 8009: dev eth0 root refcnt 2 bandwidth 18Mbit diffserv3 triple-isolate nat nowash \
no-ack-filter split-gso rtt 100ms raw overhead 0
 Sent 74893 bytes 642 pkt (dropped 3, overlimits 95 requeues 0)
 backlog 0b 0p requeues 0
 memory used: 4352b of 4Mb
 capacity estimate: 18Mbit
                   Bulk  Best Effort        Voice
  thresh       1125Kbit       18Mbit     4500Kbit
  target         16.2ms          5ms          5ms
"""


def with_queue(queue: str) -> Scenario:
    text = HOME.replace('"codel limit 1000p target 5ms"', json.dumps(queue))
    return Scenario.from_toml(text)


def params(scenario: Scenario) -> Params:
    return scenario.bottleneck_link.params


@pytest.mark.parametrize(
    ("line", "description"),
    [
        (
            "tc qdisc add dev eth0 root cake bandwidth 20mbit nat",
            "cake bandwidth 20mbit nat",
        ),
        ("sudo tc qdisc replace dev eth0 root fq_codel limit 99", "fq_codel limit 99"),
        (
            SHOWN,
            "cake bandwidth 18Mbit diffserv3 triple-isolate nat nowash no-ack-filter split-gso "  # noqa: ISC004
            "rtt 100ms raw overhead 0",
        ),
    ],
)
def test_a_line_of_tc_is_a_queue(line: str, description: str) -> None:
    scenario = with_queue(line)
    assert scenario.queue == description
    assert params(scenario).queue == params(with_queue(description)).queue
    assert scenario.with_queue(line).queue == description


def test_words_without_effect_are_warned_of() -> None:
    warnings = with_queue("cake bandwidth 20mbit nat fwmark 0xf via-ethernet").warnings()
    for word in ("nat", "fwmark", "via-ethernet"):
        assert any(f"`{word}` has no effect" in warning for warning in warnings), word
    assert not with_queue("cake bandwidth 20mbit nonat").warnings()


def test_a_number_without_a_unit_causes_a_warning() -> None:
    (warning,) = with_queue("codel target 2000").warnings()
    assert "is read as 2ms" in warning
    assert "microseconds" in warning


def test_a_queue_of_a_class_needs_the_class() -> None:
    with pytest.raises(ScenarioError, match="`eth0` has no discipline `1:` here"):
        with_queue("tc qdisc add dev eth0 parent 1:1 fq_codel limit 99")


@pytest.mark.parametrize("name", ["qfq", "noqueue", "gred"])
def test_other_disciplines_are_not_modelled(name: str) -> None:
    with pytest.raises(ScenarioError) as error:
        with_queue(f"tc qdisc add dev eth0 root {name}")
    (problem,) = error.value.problems
    assert problem.message.startswith(f"`{name}` is not modelled")
    assert problem.nearest is None
    assert _core.not_modelled(name) is not None


def test_a_line_of_netem_is_impairments() -> None:
    line = "tc qdisc add dev eth0 root netem delay 20ms 5ms rate 10mbit limit 50 slot 1ms 2ms"
    scenario = Scenario.from_toml(HOME.replace('"delay 15ms"', json.dumps(line)))
    found = params(scenario)
    assert scenario.model.links["uplink"].netem == line.removeprefix(
        "tc qdisc add dev eth0 root netem "
    )
    assert found.delay == 20_000_000
    assert found.impairments.rate is not None
    assert found.impairments.rate.rate == 10_000_000
    assert found.impairments.limit == 50
    assert any("the link's `rate`" in warning for warning in scenario.warnings())
    run = scenario.replace(duration="3s", warmup="1s").run(seed=1)
    assert run.metrics["line_losses"] > 0
    # The wire is slower than the link: it is what carries the traffic.
    assert run.metrics["goodput"] < 10e6


def test_plans_of_old_scenarios_stay_as_they_were() -> None:
    (first, *_) = json.loads(Scenario.from_toml(HOME).plan_json)["links"]
    impairments = first["params"]["impairments"]
    assert set(impairments) == {"jitter", "loss", "duplicate", "corrupt", "reorder", "keep_order"}


@pytest.mark.parametrize(
    ("given", "word", "meant"),
    [
        (["codel", "target", "5ms"], "target", "codel target 5ms"),
        (["pie", "codel", "limit", "300p", "ecn", "cake"], "limit", "codel limit 300p ecn"),
        (["cake", "besteffort"], "besteffort", "cake besteffort"),
        (["codel target 5ms", "noecn"], "noecn", "codel target 5ms noecn"),
    ],
)
def test_queues_without_quotes_get_a_hint(given: list[str], word: str, meant: str) -> None:
    with pytest.raises(StudyError) as error:
        chosen_queues(given)
    assert f"`{word}` is a word of" in str(error.value)
    assert f'--queues "{meant}"' in str(error.value)


def test_queues_in_quotes_are_taken_as_they_are() -> None:
    given = ["codel target 5ms", "pfifo limit 300p", "tc qdisc add dev eth0 root cake nat"]
    assert chosen_queues(given) == [*given[:2], "cake nat"]
    assert chosen_queues(["codle", "mine.py:Mine limit 9p"]) == ["codle", "mine.py:Mine limit 9p"]
