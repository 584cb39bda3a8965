"""Queues by names: the plan of their descriptions, and errors where they are described."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sojourn.plan.queue.htb import Htb
from sojourn.scenario import Scenario, ScenarioError
from sojourn.study import compare
from tests.own.test_queue import FIFO

TREE: dict[str, Any] = {
    "discipline": "htb default 20",
    "filters": ["dscp EF to 1:10"],
    "classes": {"1:10": {"rate": "5mbit"}, "1:20": {"rate": "5mbit", "queue": "codel"}},
}
TEXT = (
    "htb default 20; class 1:10 rate 5mbit; class 1:20 rate 5mbit; qdisc parent 1:20 codel; "
    "filter dscp EF to 1:10"
)


def scenario(**keys: Any) -> Scenario:
    link = {"from": "a", "to": "b", "rate": "10mbit", "netem": "delay 5ms", "queue": "tiers"}
    return Scenario(
        **{
            "duration": "1s",
            "queues": {"tiers": TREE, "short": "pfifo limit 20p"},
            "links": {"up": link},
            "flows": [{"from": "a", "to": "b", "app": "bulk", "count": 2}],
            **keys,
        }
    )


def refused(**keys: Any) -> str:
    with pytest.raises(ScenarioError) as caught:
        scenario(**keys)
    return str(caught.value)


def test_a_name_is_its_description() -> None:
    named = scenario()
    assert json.loads(named.plan_json) == json.loads(named.with_queue(TEXT).plan_json)
    assert json.loads(named.with_queue("short").plan_json) == json.loads(
        named.with_queue("pfifo limit 20p").plan_json
    )
    assert (named.queue_name, named.with_queue("short").queue) == ("tiers", "pfifo limit 20p")
    assert named.with_queue("codel").queue_name == "codel"
    assert Scenario.from_dict(named.as_dict()) == named


def test_templates_take_names_too() -> None:
    star = {"template": "star", "rate": "10mbit", "servers": {"hosts": 2, "queue": "short"}}
    flows = [{"from": "client1", "to": "servers", "app": "bulk"}]
    made = scenario(topology=star | {"clients": {"hosts": 1}}, links={}, flows=flows)
    assert made.queue_name == "short"
    assert made.queue_keys == ("topology.servers.queue",)


def test_keys_of_a_named_queue_can_be_set() -> None:
    faster = scenario().replace({"queues.tiers.classes.1:20.rate": "8mbit"})
    queue = faster.bottleneck_link.params.queue
    assert isinstance(queue, Htb)
    first, second = queue.tree.classes
    assert second.rate > first.rate
    for key, message in {
        "queues.tiers.classes.1:30.rate": "`queues.tiers.classes` has no entry `1:30`",
        "links.up.queue.classes.1:10.rate": "is the queue `tiers`: set queues.tiers.classes.1:10",
        "queues.tirs.discipline": "did you mean `tiers`?",
        "queues.short.limit": "`queues.short` is a text",
    }.items():
        with pytest.raises(ScenarioError) as caught:
            scenario().replace({key: "8mbit"})
        assert message in str(caught.value), key


def test_errors_are_reported_where_the_queue_is_described() -> None:
    assert "queues.tiers.filters.0: a filter sends packets to `1:40`" in refused(
        queues={"tiers": TREE | {"filters": ["dscp EF to 1:40"]}}
    )
    assert "queues.codel: `codel` is a discipline" in refused(
        queues={"tiers": TREE, "codel": "pie"}
    )
    assert "links.up.queue: unknown queue `tiers`: did you mean `tier`?" in refused(
        queues={"tier": TREE}
    )
    assert "question.queues.0: unknown queue `shart`: did you mean `short`?" in refused(
        question={"queues": ["shart"]}
    )
    assert "queues.other: unknown queue" in refused(queues={"tiers": TREE, "other": "tiers"})


def test_a_policy_of_ones_own_may_have_a_name(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FIFO)
    file = tmp_path / "s.toml"
    text = (
        'duration = "1s"\n[queues]\nmine = "mine.py:Fifo"\n[links.up]\nfrom = "a"\nto = "b"\n'
        'rate = "10mbit"\nqueue = "mine"\n[[flows]]\nfrom = "a"\nto = "b"\napp = "bulk"\n'
    )
    made = Scenario.from_toml(text, file=str(file))
    assert made.queue_name == "mine"
    written: Any = made.as_dict()
    assert str(tmp_path / "mine.py") in written["queues"]["mine"]
    with pytest.raises(ScenarioError, match=r"queues\.mine: .*no class Fif;"):
        Scenario.from_toml(text.replace("Fifo", "Fif"), file=str(file))


def test_the_own_queue_with_classes_is_compared_too() -> None:
    asked = {"question": {"by": "sojourn_p95", "queues": ["short", "codel"]}}
    assert scenario(**asked).asked_queues == ["tiers", "short", "codel"]
    assert scenario(**asked).with_queue("pie").asked_queues == ["short", "codel"]
    assert scenario(question={"queues": ["codel", TEXT]}).asked_queues == ["codel", TEXT]
    assert scenario().asked_queues == []
    found = compare(scenario(**asked), seeds=2, subject_to="")
    assert found.choices == ["tiers", "short", "codel"]
    assert found.answer().startswith("short has the lowest")
