"""Changes by dotted keys."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sojourn.scenario import Scenario, ScenarioError
from sojourn.scenario.change import setting
from tests.scenario.texts import HOME


def test_values_tables_and_lists() -> None:
    scenario = Scenario.from_toml(HOME).replace(
        {"flows.bulk.count": 8, "flows.1.dscp": 46, "observe.per_flow": True, "warmup": None}
    )
    plan = json.loads(scenario.plan_json)
    assert [group["count"] for group in plan["groups"]] == [8, 1]
    assert plan["groups"][1]["dscp"] == 46
    assert plan["observe"]["per_flow_histograms"] is True
    assert plan["warmup"] == 0
    assert Scenario.from_toml(HOME).replace(name="other").name == "other"


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("links.uplnk.rate", "`links` has no entry `uplnk`: did you mean `uplink`?"),
        ("flows.buld.count", "did you mean `bulk`?"),
        ("flows.7.count", "the list has 2 entries, numbered from 0"),
        ("links.uplink.rate.deep", "`links.uplink.rate` is a value, not a table"),
        ("links..rate", "the key has an empty part"),
        (
            "links.uplink.queue.classes.1:10.rate",
            "`links.uplink.queue` is a text: set it as a whole, or write it as a table in the file",
        ),
        ("durtion", "unknown key `durtion`: did you mean `duration`?"),
        ("links.uplink.queeu", "did you mean `queue`?"),
    ],
)
def test_keys_that_are_not_there(key: str, words: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_toml(HOME).replace({key: "10mbit"})
    assert words in str(caught.value)


def test_an_error_in_a_changed_value_has_no_line_of_the_file() -> None:
    scenario = Scenario.from_toml(HOME, file="home.toml")
    with pytest.raises(ScenarioError) as caught:
        scenario.replace({"links.uplink.queue": "codle"})
    (problem,) = caught.value.problems
    assert (problem.key, problem.line, problem.nearest) == ("links.uplink.queue", None, "codel")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("links.uplink.rate=10mbit", ("links.uplink.rate", "10mbit")),
        ("flows.0.count=8", ("flows.0.count", 8)),
        ("observe.per_flow = true", ("observe.per_flow", True)),
        ("flows.0.from=['a', 'b']", ("flows.0.from", ["a", "b"])),
        ("links.uplink.queue=codel limit 300p", ("links.uplink.queue", "codel limit 300p")),
        ('name="a = b"', ("name", "a = b")),
        ("name=a = b", ("name", "a = b")),
        ("name=", ("name", "")),
        ("flows.1=", ("flows.1", None)),
        ("flows.bulk =", ("flows.bulk", None)),
        ("flows.0.tcp=", ("flows.0.tcp", "")),
    ],
)
def test_settings(text: str, expected: tuple[str, Any]) -> None:
    assert setting(text) == expected


@pytest.mark.parametrize("text", ["", "=", "rate", "=10mbit"])
def test_settings_that_are_none(text: str) -> None:
    with pytest.raises(ScenarioError, match="key=value"):
        setting(text)
