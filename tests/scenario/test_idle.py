"""A key that has no effect causes a notice, and no other key does."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.scenario import Scenario, ScenarioError
from sojourn.scenario.models import WORKLOADS

Data = dict[str, Any]
Path = tuple[str | int, ...]

VALUES: dict[str, list[Any]] = {
    "rate": ["3mbit", "5mbit", "7mbit", "9mbit"],
    "netem": ["delay 1ms", "delay 2ms", "delay 3ms", "delay 4ms"],
    "queue": ["codel", "pie", "fq", "blue"],
    "overhead": [4, 5, 6, 7],
    "cells": ["atm", "ptm", "none"],
    "ring": [3, 5, 7, 9],
    "host": ["grain 1ms", "grain 2ms", "grain 3ms"],
    "host_queue": [True, False],
}
"""Values of each key of links."""
LISTS = ("rate", "netem")
FLOW = {"from": "a", "to": "b", "app": "bulk"}


TABLES: dict[str, tuple[Data, list[Path], list[Path]]] = {
    # by template: what is required, the tables of links, and those of them that take lists
    "link": (
        {"links": {"l": {"from": "a", "to": "b", "rate": "1mbit"}}, "flows": [FLOW]},
        [("links", "l", *way) for way in ((), ("forward",), ("reverse",))],
        [],
    ),
    "dumbbell": (
        {"topology": {"template": "dumbbell", "rate": "1mbit"}},
        [
            ("topology", *side, *way)
            for side in ((), ("left",), ("right",))
            for way in ((), ("forward",), ("reverse",))
        ],
        [("topology", "left"), ("topology", "right", "reverse")],
    ),
    "star": (
        {
            "topology": {
                "template": "star",
                "rate": "1mbit",
                "clients": {"hosts": 2},
                "servers": {"hosts": 3},
            }
        },
        [
            ("topology", *side, *way)
            for side in ((), ("clients",), ("servers",))
            for way in ((), ("forward",), ("reverse",))
        ],
        [("topology", "clients"), ("topology", "servers")],
    ),
    "mesh": (
        {
            "topology": {
                "template": "mesh",
                "rate": "1mbit",
                "nodes": 3,
                "clients": {},
                "sites": [["node1"], ["node2"]],
                "between": {},
            }
        },
        [
            ("topology", *side, *way)
            for side in ((), ("clients",), ("between",))
            for way in ((), ("forward",), ("reverse",))
        ],
        [],
    ),
}
HOSTS = {"link": ("a", "b"), "dumbbell": ("left", "right"), "star": ("clients", "servers")}


def put(data: Data, path: Path, value: object) -> Data:
    """A copy of the data with a value at a path."""
    data = copy.deepcopy(data)
    table: Any = data
    for key in path[:-1]:
        table = table[key] if isinstance(key, int) else table.setdefault(key, {})
    table[path[-1]] = value
    return data


@st.composite
def described(draw: st.DrawFn) -> tuple[Data, list[tuple[Path, str]]]:
    """A network with random keys of links, and the paths of their values with the key of each."""
    kind = draw(st.sampled_from(sorted(TABLES)))
    base, tables, listed = TABLES[kind]
    sender, receiver = HOSTS.get(kind, ("nodes", "client1"))
    data: Data = {"duration": "1s", "flows": [{"from": sender, "to": receiver, "app": "bulk"}]}
    data |= copy.deepcopy(base)
    wanted = st.lists(
        st.tuples(st.sampled_from(tables), st.sampled_from(sorted(VALUES))),
        min_size=1,
        max_size=9,
        unique=True,
    )
    paths: list[tuple[Path, str]] = []
    for table, key in draw(wanted):
        path = (*table, key)
        if key == "rate" and table in (("topology",), ("links", "l")):
            continue  # this key is required
        value = draw(st.sampled_from(VALUES[key][:2]))
        if key in LISTS and table in listed:
            value = draw(st.lists(st.sampled_from(VALUES[key][:2]), min_size=2, max_size=4))
            paths += [((*path, i), key) for i in range(len(value))]
        else:
            paths.append((path, key))
        data = put(data, path, value)
    return data, paths


@settings(max_examples=150, deadline=None)
@given(described())
def test_a_key_of_links_is_announced_exactly_if_the_plan_does_not_depend_on_it(
    found: tuple[Data, list[tuple[Path, str]]],
) -> None:
    """Another value of an announced key gives the same plan, that of any other key another one."""
    data, paths = found
    data["bottleneck"] = "l" if "links" in data else None
    try:
        scenario = Scenario(**{k: v for k, v in data.items() if v is not None})
    except ScenarioError:  # links that are studied together have different queues
        return
    idle = {text.partition(":")[0] for text in scenario.warnings() if "has no effect" in text}
    for path, key in paths:
        said = {".".join(map(str, path)), ".".join(map(str, path[:-1]))} & idle
        plans = set()
        for value in VALUES[key]:
            changed = put(data, path, value)
            try:
                plans.add(Scenario(**{k: v for k, v in changed.items() if v is not None}).plan_json)
            except ScenarioError:
                plans.add(str(value))
        # One value may be the default, which absence has too.
        assert (len(plans) == 1) == bool(said), (path, plans, idle)


STORE: Data = {
    "duration": "3s",
    "topology": {
        "template": "mesh",
        "nodes": 3,
        "rate": "10mbit",
        "netem": "delay 1ms",
        "clients": {},
    },
    "store": {"nodes": "nodes", "clients": "clients", "requests": 200},
}
OTHER: Data = {
    "consistency": "all",
    "write_consistency": "all",
    "read_consistency": "all",
    "keys": "latest",
    "scan": 3,
    "write_timeout": "1ms",
    "read_timeout": "1ms",
    "speculative": "1ms",
    "read_repair": False,
    "hints": False,
    "detect": "1s",
    "recover": "2s",
}
"""Values of the store's keys that act only with others, each different from its default."""


@pytest.mark.parametrize("workload", sorted(WORKLOADS))
@pytest.mark.parametrize("key", sorted(OTHER))
def test_a_store_without_such_requests_announces_their_keys(workload: str, key: str) -> None:
    """An announced key changes no packet of a run."""
    own = {**STORE["store"], "workload": workload}
    plain = Scenario(**{**STORE, "store": own})
    changed = Scenario(**{**STORE, "store": own | {key: OTHER[key]}})
    assert not [text for text in plain.warnings() if "no effect" in text]
    said = [text for text in changed.warnings() if text.startswith(f"store.{key}: has no effect")]
    if said:
        assert changed.run().trace_hash == plain.run().trace_hash
    kinds = WORKLOADS[workload][0]
    reads, writes = (
        any(kinds[kind] > 0 for kind in of)
        for of in (("read", "scan", "modify"), ("update", "insert", "modify"))
    )
    silent = {
        **dict.fromkeys(("read_consistency", "read_timeout", "speculative", "read_repair"), reads),
        **dict.fromkeys(("write_consistency", "write_timeout", "hints"), writes),
        **dict.fromkeys(("detect", "recover"), False),
        "scan": kinds["scan"] > 0,
        "keys": kinds["insert"] < 1,
        "consistency": True,
    }
    assert bool(said) != silent[key]


def test_both_levels_override_the_common_one() -> None:
    mixed = next(name for name, (kinds, _) in WORKLOADS.items() if kinds["read"] * kinds["update"])
    levels = {"consistency": "all", "write_consistency": "one", "read_consistency": "one"}
    store = {**STORE["store"], "workload": mixed, **levels}
    (said,) = [t for t in Scenario(**{**STORE, "store": store}).warnings() if "no effect" in t]
    assert said.startswith("store.consistency: ")


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"balancers.lb.weights": [1, 2], "balancers.lb.policy": "iqlb"}, "balancers.lb.weights"),
        ({"balancers.lb.weights": [1, 2], "balancers.lb.policy": "random"}, ""),
        ({"balancers.lb.health_every": "2s"}, "balancers.lb.health_every"),
        ({"balancers.lb.misses": 5}, "balancers.lb.misses"),
        (
            {"balancers.lb.misses": 5, "balancers.lb.faults": [{"server": "server1", "at": "1s"}]},
            "",
        ),
        ({"observe.snaplen": "64b"}, "observe.snaplen"),
        ({"observe.snaplen": "64b", "observe.capture": "server1"}, ""),
    ],
)
def test_keys_of_balancers_and_records_act_only_with_others(changes: Data, key: str) -> None:
    servers = {"hosts": 2, "rate": "2mbit"}
    topology = {"template": "star", "rate": "9mbit", "clients": {}, "servers": servers}
    scenario = Scenario(
        duration="2s",
        topology=topology,
        balancers={"lb": {"servers": "servers", "policy": "random"}},
        flows=[{"from": "clients", "to": "lb", "app": "transfer size 9000 forever"}],
    ).replace(changes)
    assert [t.partition(":")[0] for t in scenario.warnings()] == [key][: bool(key)]


@pytest.mark.parametrize("app", ["voip", "cbr rate 100kbit size 200", "client preset gaming"])
def test_tcp_that_moves_packets_from_udp_is_announced(app: str) -> None:
    links = {"l": {"from": "a", "to": "b", "rate": "5mbit"}}
    flow = {"from": "a", "to": "b", "app": app, "tcp": "bbr"}
    (said,) = Scenario(duration="1s", links=links, flows=[flow]).warnings()
    assert said.startswith("flows.0.tcp: ")
    assert {"`" + app.partition(" ")[0] + "`", "TCP", "UDP"} <= set(
        re.findall(r"`\w+`|[A-Z]+", said)
    )
    assert not Scenario(duration="1s", links=links, flows=[flow | {"udp": False}]).warnings()
