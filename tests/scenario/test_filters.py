"""Hosts by name in the filters of queues."""

from __future__ import annotations

import json

import pytest

from sojourn.scenario import Scenario, ScenarioError
from sojourn.scenario.filters import numbered, unknown_host
from tests.scenario.texts import HOME

QUEUE = 'queue = "codel limit 1000p target 5ms"\n'
TREE = "htb default 2; class 1:1 rate 1mbit; class 1:2 rate 8mbit; filter {} to 1:1"


def home(filter_: str) -> Scenario:
    return Scenario.from_toml(HOME.replace(QUEUE, f'queue = "{TREE.format(filter_)}"\n'))


def conditions(scenario: Scenario) -> object:
    return json.loads(scenario.plan_json)["links"][0]["params"]["queue"]["tree"]["filters"][0][
        "conditions"
    ]


@pytest.mark.parametrize("word", ["src", "dst", "host"])
def test_a_filter_names_a_host(word: str) -> None:
    plan = json.loads(home(f"{word} isp").plan_json)
    number = [node["name"] for node in plan["nodes"]].index("isp")
    assert conditions(home(f"{word} isp")) == [{word: number}]
    assert json.loads(home(f"{word} isp").plan_json) == json.loads(
        home(f"{word} {number}").plan_json
    )


def test_a_table_and_a_queue_by_name_may_do_so() -> None:
    table = """
[queues.tree]
discipline = "prio"
filters = ["dst isp to 1:1", { src = "home", to = "1:2" }]
"""
    text = HOME.replace(QUEUE, 'queue = "tree"\n')
    scenario = Scenario.from_toml(text + table)
    filters = json.loads(scenario.plan_json)["links"][0]["params"]["queue"]["tree"]["filters"]
    assert [one["conditions"] for one in filters] == [[{"dst": 1}], [{"src": 0}]]
    assert scenario.queue_name == "tree"


def test_numbers_follow_the_scenario() -> None:
    """A link before the others gives hosts other numbers."""
    more = '[links.first]\nfrom = "isp"\nto = "other"\nrate = "1gbit"\n\n[links.uplink]'
    text = HOME.replace(QUEUE, f'queue = "{TREE.format("dst isp")}"\n')
    scenario = Scenario.from_toml(text.replace("[links.uplink]", more))
    plan = json.loads(scenario.plan_json)
    queue = next(link for link in plan["links"] if link["name"] == "uplink")["params"]["queue"]
    assert queue["tree"]["filters"][0]["conditions"] == [{"dst": 0}]


def test_an_unknown_host_is_refused_with_the_nearest() -> None:
    with pytest.raises(ScenarioError) as caught:
        home("dst ipsp")
    (problem,) = caught.value.problems
    assert "host `ipsp`, but" in str(problem)
    assert "did you mean `isp`?" in str(problem)
    assert "links.uplink.queue" in str(problem)


def test_only_filters_have_hosts() -> None:
    text = "prio; class 1:1; filter dst 10.0.0.4 src a host bc to 1:1; qdisc parent 1:1 codel dst a"
    named = numbered(text, {"a": 7, "bc": 3})
    assert named == text.replace("src a", "src 7").replace("host bc", "host 03")
    assert unknown_host(named) is None
    assert unknown_host("prio; filter dst x to 1:1") == "x"
