"""Links that change during a run: syntax, meaning and errors."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import jsonschema
import pytest

from sojourn import _core
from sojourn.scenario import Problem, Scenario, ScenarioError
from tests.scenario.texts import DUMBBELL, HOME, LAN, SWITCH

MS = 1_000_000
S = 1000 * MS

CHANGING = (
    HOME
    + """
[[links.uplink.changes]]
at = "every 40s from 20s"
rate = "2mbit"
reverse.rate = "3mbit"

[[links.uplink.changes]]
at = "30s"
netem = "delay 50ms loss 1%"

[[links.uplink.changes]]
at = "every 40s from 40s"
forward = { rate = "20mbit" }
"""
)


def changes(scenario: Scenario) -> dict[str, list[dict[str, Any]]]:
    return {link["name"]: link["changes"] for link in json.loads(scenario.plan_json)["links"]}


def problems(text: str) -> tuple[Problem, ...]:
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_toml(text, file="a.toml")
    return caught.value.problems


def test_each_direction_has_its_own() -> None:
    found = changes(Scenario.from_toml(CHANGING))
    first, netem, second = found["uplink"]
    assert first == {"at": 20 * S, "every": 40 * S, "rate": 2_000_000, "wire": None}
    assert second == {"at": 40 * S, "every": 40 * S, "rate": 20_000_000, "wire": None}
    assert (netem["at"], netem["every"], netem["rate"]) == (30 * S, 0, None)
    assert netem["wire"]["delay"] == 50 * MS
    assert netem["wire"]["impairments"]["loss"]["probability"] == 0.01
    back = found["uplink.reverse"]
    assert [change["rate"] for change in back] == [3_000_000, None]
    assert back[1] == netem


def test_a_link_without_changes_has_none() -> None:
    assert changes(Scenario.from_toml(HOME)) == {"uplink": [], "uplink.reverse": []}


@pytest.mark.parametrize(
    ("text", "moments"),
    [
        ("20s", (20 * S, 0)),
        ("0s", (0, 0)),
        ("every 200ms", (0, 200 * MS)),
        ("every 40s from 20s", (20 * S, 40 * S)),
    ],
)
def test_moments(text: str, moments: tuple[int, int]) -> None:
    assert _core.parse_moments(text) == moments


def test_templates_change_too() -> None:
    change = {"at": "5s", "rate": "1mbit"}
    dumbbell = Scenario.from_toml(DUMBBELL)
    found = changes(
        dumbbell.replace({"topology.changes": [change], "topology.left.changes": [change]})
    )
    assert {name for name, list_ in found.items() if list_} == {
        *("bottleneck", "bottleneck.reverse"),
        *(name for name in found if name.startswith("left")),
    }
    star = {
        "topology.changes": [change],
        "topology.servers.changes": [{"at": "1s", "forward": {"rate": "2mbit"}}],
    }
    found = changes(Scenario.from_toml(SWITCH).replace(star))
    assert [c["at"] for c in found["client3"]] == [5 * S]
    assert [c["at"] for c in found["client3.reverse"]] == [5 * S]
    # Keys of the servers replace those of the whole star.
    assert [c["at"] for c in found["server2"]] == [1 * S]
    assert found["server2.reverse"] == []
    pairs = {"template": "pairs", "pairs": 2, "rate": "10mbit", "changes": [change]}
    flow = {"from": "a", "to": "b", "app": "bulk"}
    found = changes(Scenario(duration="10s", topology=pairs, flows=[flow]))
    assert all(len(list_) == 1 for list_ in found.values())


CASES = [
    ('at = "30s"', 'at = "30"', "links.uplink.changes.1.at", "30"),
    ('at = "30s"', "at = 30", "links.uplink.changes.1.at", "30"),
    ('at = "30s"', 'at = "every 0s"', "links.uplink.changes.1.at", "every 0s"),
    ('at = "30s"', 'at = "evry 30s"', "links.uplink.changes.1.at", "evry 30s"),
    ('at = "30s"', 'at = "every 30s form 2s"', "links.uplink.changes.1.at", "every 30s form 2s"),
    ('at = "30s"\n', "", "links.uplink.changes.1.at", None),
    (
        'forward = { rate = "20mbit" }',
        'forward = { rat = "20mbit" }',
        "links.uplink.changes.2.forward.rat",
        "rat",
    ),
    ("loss 1%", "losss 1%", "links.uplink.changes.1.netem", "losss"),
    ('rate = "2mbit"', 'rate = "2"', "links.uplink.changes.0.rate", "2"),
    ('rate = "2mbit"', 'rat = "2mbit"', "links.uplink.changes.0.rat", "rat"),
    ("reverse.rate", "reverse.rat", "links.uplink.changes.0.reverse.rat", "rat"),
    ("reverse.rate", "reverse.queue", "links.uplink.changes.0.reverse.queue", "queue"),
    ('netem = "delay 50ms loss 1%"', "", "links.uplink.changes.1", None),
    ('forward = { rate = "20mbit" }', "forward = {}", "links.uplink.changes.2", None),
    ('at = "30s"', 'at = "every 1ns"', "links.uplink.changes", None),
]


@pytest.mark.parametrize(("old", "new", "key", "found"), CASES)
def test_one_mistake(old: str, new: str, key: str, found: str | None) -> None:
    assert old in CHANGING
    (problem,) = problems(CHANGING.replace(old, new, 1))
    assert problem.key == key
    assert problem.line is not None
    if found is not None:
        assert found in (problem.found or "")


def test_the_engine_bounds_how_often() -> None:
    (problem,) = problems(CHANGING.replace('"30s"', '"every 1ns"'))
    assert "at most 50000000" in problem.message


def test_the_rate_of_a_shared_medium_does_not_change() -> None:
    change = '[[topology.changes]]\nat = "1s"\n{}\n[[flows]]'
    (problem,) = problems(LAN.replace("[[flows]]", change.format('rate = "1mbit"'), 1))
    assert problem.key == "topology.changes.0"
    assert "shared medium" in problem.message
    changing = LAN.replace("[[flows]]", change.format('netem = "loss 1%"'), 1)
    assert not Scenario.from_toml(changing).warnings()


def test_a_table_is_no_list() -> None:
    (problem,) = problems(HOME + '[links.uplink.changes]\nat = "1s"\nrate = "1mbit"\n')
    assert "[[links.uplink.changes]]" in problem.message


def test_they_are_keys_like_others() -> None:
    scenario = Scenario.from_toml(CHANGING)
    other = scenario.replace({"links.uplink.changes.0.rate": "4mbit"})
    assert changes(other)["uplink"][0]["rate"] == 4_000_000
    assert changes(scenario.replace({"links.uplink.changes": None}))["uplink"] == []
    assert Scenario.from_dict(scenario.as_dict()) == scenario


def test_the_schema_knows_them() -> None:
    validator = jsonschema.Draft202012Validator(Scenario.json_schema())
    validator.validate(tomllib.loads(CHANGING))
    single = tomllib.loads(CHANGING)
    single["links"]["uplink"]["changes"] = single["links"]["uplink"]["changes"][0]
    assert not validator.is_valid(single)


def test_utilisation_is_of_the_capacity() -> None:
    text = """\
duration = "8s"

[links.line]
from = "a"
to = "b"
rate = "10mbit"
queue = "pfifo limit 100p"
changes = [
    { at = "every 2s from 1s", rate = "100mbit" },
    { at = "every 2s", rate = "10mbit" },
]

[[flows]]
from = "a"
to = "b"
app = "cbr rate 5mbit"
"""
    run = Scenario.from_toml(text).run(1)
    assert run.metrics["utilisation"] == pytest.approx(5 / 55, rel=1e-2)
    assert "10mbit to 100mbit, changing" in run.summary()
    series = run.table("series")["line.utilisation"][1:]
    assert 0.04 < series.min() < 0.06 < 0.45 < series.max()


def test_a_shaper_is_for_the_lowest_rate() -> None:
    deployment = Scenario.from_toml(CHANGING).to_tc("wan0")
    assert "rate 1900kbit" in deployment.commands[1]
    assert any(note.startswith("The line rate varies") for note in deployment.notes)
    # Changes after the end have no effect.
    short = Scenario.from_toml(CHANGING).replace({"duration": "15s"}).to_tc("wan0")
    assert "rate 19000kbit" in short.commands[1]
