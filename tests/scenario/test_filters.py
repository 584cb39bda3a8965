"""Filters by port and mark: packets go to the classes that the keys of their flows say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sojourn import _core
from sojourn.scenario import Scenario, ScenarioError

HEAD = """
duration = "8s"
warmup = "2s"
[links.line]
from = "a"
to = "b"
rate = "10mbit"
reverse.rate = "10mbit"
netem = "delay 10ms"
"""
FLOW = """
[[flows]]
name = "{name}"
from = "{ends[0]}"
to = "{ends[1]}"
app = "{app}"
{keys}
"""
BEHIND = "prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"
"""Everything is in the second band, unless a filter says otherwise."""


def flow(name: str, ends: str = "ab", app: str = "bulk", keys: str = "") -> str:
    return FLOW.format(name=name, ends=ends, app=app, keys=keys)


def shares(
    filters: str, *flows: str, way: str = "forward", rate: str = "10mbit"
) -> dict[str, float]:
    """Goodputs by flow in Mbit/s, with these filters at a direction of the line."""
    at = f"links.line.{way}"
    scenario = Scenario.from_toml(HEAD + "".join(flows)).replace(
        {f"{at}.queue": f"{BEHIND}; {filters}", f"{at}.rate": rate}
    )
    metrics = scenario.run(1).metrics
    found = {name.rpartition("."): value for name, value in metrics.items()}
    return {name: value / 1e6 for (name, _, what), value in found.items() if what == "goodput"}


@pytest.mark.parametrize(
    ("condition", "keys"),
    [
        ("dport 22", "destination_port = 22"),
        ("dport 20-30 protocol tcp", "destination_port = 22"),
        ("port 443", "source_port = 443"),
        ("sport 443 src 0", "source_port = 443"),
        ("mark 0x80/0xf0", "mark = 0x8f"),
        # Its number is 1, that of the other one 0.
        ("dport 20001", ""),
    ],
)
def test_data_go_to_the_class_of_their_port_or_mark(condition: str, keys: str) -> None:
    found = shares(f"filter {condition} to 1:1", flow("other"), flow("first", keys=keys))
    assert found["first"] > 9
    assert found["other"] < 0.5
    wrong = (
        shares(f"filter {condition.replace('22', '23')} to 1:1", flow("other"), flow("first"))
        if keys
        else {"first": 5.0}
    )
    assert 2 < wrong["first"] < 8, "without the keys they share"


@pytest.mark.parametrize(
    ("condition", "keys"),
    [
        ("sport 22", "destination_port = 22"),
        ("dport 443", "source_port = 443"),
        ("mark 7", "mark = 7"),
        ("sport 20000", ""),
    ],
)
def test_answers_have_the_ports_the_other_way_round(condition: str, keys: str) -> None:
    """Acknowledgements squeeze past datagrams that fill the way back."""
    flows = flow("up", keys=keys), flow("flood", "ba", "cbr rate 500kbit")
    ahead = shares(f"filter {condition} to 1:1", *flows, way="reverse", rate="300kbit")
    turned = condition.translate(str.maketrans("sd", "ds"))
    if condition.startswith("mark"):
        turned = "mark 8"
    behind = shares(f"filter {turned} to 1:1", *flows, way="reverse", rate="300kbit")
    assert ahead["up"] > 8
    assert behind["up"] < ahead["up"] / 2


def test_servers_of_pages_are_at_from() -> None:
    """Requests go to their port, objects come from it."""
    pages = "web interpage exp(200ms) interobject exp(20ms) size uniform(10,40)"
    flows = flow("web", app=pages, keys="count = 8\nsource_port = 80"), flow("bulk")
    ahead = shares("filter sport 80 to 1:1", *flows)
    behind = shares("filter dport 80 to 1:1", *flows)
    assert ahead["web"] > 1.5 * behind["web"]


def test_the_plan_has_the_keys_of_a_flow() -> None:
    keys = "source_port = 5060\ndestination_port = 5061\nmark = 0xffffffff"
    plan = Scenario.from_toml(HEAD + flow("call", app="voip", keys=keys)).plan()
    (group,) = plan["groups"]
    assert (group["source_port"], group["destination_port"]) == (5060, 5061)
    assert group["mark"] == 0xFFFF_FFFF
    # Keys without a value are not in the plan.
    bare = Scenario.from_toml(HEAD + flow("call", app="voip")).plan()["groups"][0]
    assert not {"source_port", "destination_port", "mark"} & set(bare)
    zero = Scenario.from_toml(HEAD + flow("call", app="voip", keys="mark = 0"))
    assert zero.plan()["groups"][0] == bare


@pytest.mark.parametrize(
    ("keys", "key", "message"),
    [
        ("source_port = 0", "source_port", "needs a port from 1 to 65535; found 0"),
        ("destination_port = 65536", "destination_port", "needs a port from 1 to 65535"),
        ('destination_port = "ssh"', "destination_port", "needs a port from 1 to 65535"),
        ("mark = -1", "mark", "needs a mark from 0 to 4294967295; found -1"),
        ("mark = true", "mark", "needs a mark"),
        ("sourceport = 1", "sourceport", "source_port"),
        (
            "source_port = 1\ndestination_port = 2\ncount = 2",
            "destination_port",
            "connections with both ports given would be the same one: give one port",
        ),
    ],
)
def test_errors_name_the_key(keys: str, key: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_toml(HEAD + flow("bulk", keys=keys))
    (problem,) = caught.value.problems
    assert problem.key == f"flows.0.{key}"
    assert message in str(problem)


def test_programs_choose_their_ports() -> None:
    keys = 'client = "curl {to}"\nsource_port = 3'
    with pytest.raises(ScenarioError, match="choose their ports themselves"):
        Scenario.from_toml(HEAD + flow("own", app="command", keys=keys))


def test_what_filters_select() -> None:
    scenario = Scenario.from_toml(
        HEAD
        + flow("ssh", keys="destination_port = 22")
        + flow("down", "ba", keys="source_port = 443\nmark = 3")
        + flow("call", app="voip", keys="count = 2")
    )
    filters = " ; ".join(
        f"filter parent 1: {conditions} to 1:1"
        for conditions in ("dport 22", "port 443", "mark 3", "protocol tcp", "protocol udp", "all")
    )
    found: Any = _core.selected_flows(json.dumps(scenario.plan()), "line", filters)
    assert found == [[("ssh", False)], [("down", True)], [], [], [("call", False)], []]
    back: Any = _core.selected_flows(json.dumps(scenario.plan()), "line.reverse", filters)
    assert back == [[], [("down", False)], [], [("ssh", True)], [], []]
    with pytest.raises(_core.WordError, match="this is no filter"):
        _core.selected_flows(json.dumps(scenario.plan()), "line", "class 1:1")
