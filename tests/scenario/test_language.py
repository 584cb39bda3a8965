"""The meaning of a scenario's keys in the plan."""

from __future__ import annotations

import copy
import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

from sojourn.arguments import ArgumentError
from sojourn.scenario import Scenario, ScenarioError
from tests.scenario.texts import DUMBBELL, HOME, LAN, SWITCH

MS = 1_000_000


def links(scenario: Scenario) -> dict[str, Any]:
    return {link["name"]: link for link in json.loads(scenario.plan_json)["links"]}


def test_every_table_of_links_has_their_keys() -> None:
    """Rings and overheads of access links, and of links between a mesh's sites."""
    side = {"topology.left": {"hosts": 2, "ring": 3, "forward": {"overhead": 4}}}
    found = {
        link["name"]: link
        for link in json.loads(Scenario.from_toml(DUMBBELL).replace(side).plan_json)["links"]
    }
    assert [found[name]["ring"] for name in ("left1", "left1.reverse", "right1")] == [3, 3, 0]
    overheads = [found[name]["params"]["overhead"] for name in ("left2", "left2.reverse")]
    assert overheads == [4, 0]
    mesh = {
        "template": "mesh",
        "nodes": 2,
        "rate": "1gbit",
        "sites": [["node1"], ["node2"]],
        "between": {"ring": 5, "changes": [{"at": "1s", "rate": "1mbit"}]},
    }
    flow = {"from": "node1", "to": "node2", "app": "bulk"}
    links = json.loads(Scenario(duration="10s", topology=mesh, flows=[flow]).plan_json)["links"]
    assert [(link["ring"], len(link["changes"])) for link in links] == [(5, 1)] * 2


def test_examples_resolve(examples: list[Path]) -> None:
    for path in examples:
        scenario = Scenario.load(path)
        assert scenario.name != path.stem, "an example has a name of its own"
        assert json.loads(scenario.plan_json)["groups"] or scenario.model.store


def test_a_link_is_two_directions() -> None:
    plan = json.loads(Scenario.from_toml(HOME).plan_json)
    assert plan["duration"] == 60_000 * MS
    assert plan["warmup"] == 10_000 * MS
    assert [node["name"] for node in plan["nodes"]] == ["home", "isp"]
    forward, back = plan["links"]
    assert (forward["name"], forward["from"], forward["to"]) == ("uplink", 0, 1)
    assert (back["name"], back["from"], back["to"]) == ("uplink.reverse", 1, 0)
    assert forward["params"]["rate"] == back["params"]["rate"] == 20_000_000
    assert forward["params"]["delay"] == back["params"]["delay"] == 15 * MS
    assert forward["params"]["queue"]["name"] == "codel"
    # A queue sits on one interface: the way back has the default.
    assert back["params"]["queue"]["unit"] == "packets"
    assert back["params"]["queue"]["limit"] == 1000
    assert plan["observe"]["bottleneck"] == {"name": "uplink", "links": [0]}


def test_ten_thousand_hosts_a_side() -> None:
    sides = {"topology.left": {"hosts": 10_000}, "topology.right": {"hosts": 10_000}}
    plan = json.loads(Scenario.from_toml(DUMBBELL).replace(sides).plan_json)
    assert len(plan["links"]) == 2 * (2 * 10_000 + 1)


def test_directions_override() -> None:
    changes = {
        "links.uplink.forward.rate": "5mbit",
        "links.uplink.reverse.queue": "pie",
        "links.uplink.reverse.netem": "delay 1ms loss 1%",
        "links.uplink.reverse.overhead": 18,
        "links.uplink.overhead": 4,
    }
    both = links(Scenario.from_toml(HOME).replace(changes))
    forward, back = both["uplink"]["params"], both["uplink.reverse"]["params"]
    assert forward["rate"] == 5_000_000
    assert back["rate"] == 20_000_000
    assert forward["delay"] == 15 * MS
    assert back["delay"] == MS
    assert back["impairments"]["loss"] == {
        "model": "random",
        "probability": 0.01,
        "correlation": 0.0,
    }
    assert back["queue"]["name"] == "pie"
    assert (forward["overhead"], back["overhead"]) == (4, 18)


def test_flows() -> None:
    bulk, call = json.loads(Scenario.from_toml(HOME).plan_json)["groups"]
    assert bulk["name"] == "bulk"
    assert bulk["pairs"] == [[0, 1]]
    assert bulk["count"] == 4
    assert (bulk["start"], bulk["start_spread"], bulk["stop"]) == (0, 1000 * MS, None)
    assert bulk["transport"]["protocol"] == "tcp"
    assert bulk["transport"]["congestion"]["name"] == "cubic"
    assert call["transport"] == {"protocol": "udp"}
    assert call["app"]["name"] == "voip"


def test_one_moment_and_names() -> None:
    scenario = Scenario.from_toml(HOME).replace(
        {"flows.1.app": "bulk", "flows.1.start": "2s", "flows.1.stop": "3s", "flows.1.dscp": "ef"}
    )
    first, second = json.loads(scenario.plan_json)["groups"]
    assert (first["name"], second["name"]) == ("bulk", "bulk-2")
    assert (second["start"], second["start_spread"], second["stop"]) == (2000 * MS, 0, 3000 * MS)
    assert second["dscp"] == 46
    # An application that says nothing of its transport gets Linux's default.
    assert second["transport"]["congestion"]["name"] == "cubic"


def test_one_after_the_other() -> None:
    scenario = Scenario.from_toml(HOME).replace({"flows.bulk.start": "every 1s"})
    bulk = json.loads(scenario.plan_json)["groups"][0]
    assert (bulk["start"], bulk["start_spread"], bulk["start_every"]) == (0, 0, 1000 * MS)
    assert scenario.warnings() == []
    late = scenario.replace({"flows.bulk.start": "every 500ms from 59s", "flows.bulk.stop": "60s"})
    bulk = json.loads(late.plan_json)["groups"][0]
    assert (bulk["start"], bulk["start_every"]) == (59_000 * MS, 500 * MS)
    (warning,) = late.warnings()
    assert re.match("flows.0.start: 2 of 4 flows never start: .*after the run's end", warning)


@pytest.mark.parametrize(
    ("app", "keys", "carrier"),
    [
        ("voip", {}, "udp"),
        ("voip", {"tcp": "reno"}, "tcp"),
        ("voip", {"udp": False}, "tcp"),
        ("cbr rate 1mbit", {"tcp": "cubic", "udp": False}, "tcp"),
        ("client preset ftp", {}, "tcp"),
        ("client preset ftp model poisson-onoff", {"udp": True}, "udp"),
        ("client preset gaming", {}, "udp"),
        ("client preset gaming", {"tcp": "reno"}, "tcp"),
        ("bulk", {"udp": False}, "tcp"),
    ],
)
def test_each_application_has_its_transport(app: str, keys: dict[str, Any], carrier: str) -> None:
    flow = {"from": "home", "to": "isp", "app": app, **keys}
    scenario = Scenario.from_toml(HOME).replace({"flows": [flow]})
    (group,) = json.loads(scenario.plan_json)["groups"]
    assert group["transport"]["protocol"] == carrier


def test_lists_are_dealt_out() -> None:
    scenario = Scenario.from_toml(DUMBBELL)
    plan, by_name = json.loads(scenario.plan_json), links(Scenario.from_toml(DUMBBELL))
    names = [node["name"] for node in plan["nodes"]]
    assert names[:3] == ["router1", "router2", "left1"]
    assert sum(name.startswith("left") for name in names) == 4
    delays = [by_name[f"left{i}"]["params"]["delay"] // MS for i in range(1, 5)]
    assert delays == [20, 40, 60, 20]
    assert by_name["left1.reverse"]["params"]["delay"] == 0
    assert by_name["bottleneck"]["params"]["delay"] == 100 * MS
    assert by_name["bottleneck.reverse"]["params"]["delay"] == 0
    assert by_name["right2"]["params"]["rate"] == 1_000_000_000
    assert scenario.bottleneck == "bottleneck"
    pairs = plan["groups"][0]["pairs"]
    assert [[names[a], names[b]] for a, b in pairs] == [
        ["left1", "right1"],
        ["left2", "right2"],
        ["left3", "right1"],
        ["left4", "right2"],
    ]


@pytest.mark.parametrize(
    ("template", "bottleneck", "sender", "receiver"),
    [
        ('template = "pairs"\npairs = 3\nrate = "1mbit"', "pair1", "a2", "b2"),
        (
            'template = "star"\nhosts = 3\nrate = "1mbit"\nqueue = "codel"',
            "port1",
            "host2",
            "host1",
        ),
    ],
)
def test_templates(template: str, bottleneck: str, sender: str, receiver: str) -> None:
    text = (
        f'duration = "1s"\n[topology]\n{template}\n[[flows]]\n'
        f'from = "{sender}"\nto = "{receiver}"\napp = "bulk"\n'
    )
    scenario = Scenario.from_toml(text)
    assert scenario.bottleneck == bottleneck
    assert len(json.loads(scenario.plan_json)["links"]) == 6


def test_a_lan_has_one_link_a_host() -> None:
    scenario = Scenario.from_toml(LAN)
    plan = json.loads(scenario.plan_json)
    hosts = [f"client{i}" for i in range(1, 11)] + ["server1", "server2"]
    assert [node["name"] for node in plan["nodes"]] == hosts
    assert [link["name"] for link in plan["links"]] == hosts
    assert plan["media"] == [
        {
            "name": "lan",
            "access": {"slot": 1000, "max_slots": 1000, "ceiling": 10, "retries": 1000, "gap": 12},
        }
    ]
    for i, link in enumerate(plan["links"]):
        assert (link["from"], link["to"], link["medium"], link["ring"]) == (i, None, 0, 0)
        assert (link["params"]["rate"], link["params"]["delay"]) == (2_000_000_000, MS)
        assert link["params"]["queue"]["name"] == "codel"
    pairs = plan["groups"][0]["pairs"]
    assert [[hosts[a], hosts[b]] for a, b in pairs[:3]] == [
        ["client1", "server1"],
        ["client2", "server2"],
        ["client3", "server1"],
    ]
    # All stations together are the subject, and one key is their queue's.
    assert plan["observe"]["bottleneck"] == {"name": "lan", "links": list(range(12))}
    assert scenario.bottlenecks == hosts
    assert scenario.queue_keys == ("topology.queue",)
    pie = json.loads(scenario.with_queue("pie").plan_json)
    assert {link["params"]["queue"]["name"] for link in pie["links"]} == {"pie"}
    assert "12 links" in repr(scenario)


def test_a_lan_is_set_in_words() -> None:
    changes = {"topology.access": "csma slot 51200ns retries 16", "topology.ring": 100}
    plan = json.loads(Scenario.from_toml(LAN).replace(changes).plan_json)
    assert plan["media"][0]["access"]["slot"] == 51_200
    assert plan["media"][0]["access"]["retries"] == 16
    assert {link["ring"] for link in plan["links"]} == {100}


def test_sides_of_a_star() -> None:
    scenario = Scenario.from_toml(SWITCH)
    by_name = links(scenario)
    assert len(by_name) == 24
    assert by_name["client3"]["params"]["rate"] == 2_000_000_000
    assert by_name["client3"]["params"]["queue"]["name"] == "fifo"
    for i, rate in ((1, 4_000_000), (2, 6_000_000)):
        port, back = by_name[f"server{i}"]["params"], by_name[f"server{i}.reverse"]["params"]
        assert port["rate"] == back["rate"] == rate
        assert port["delay"] == back["delay"] == MS
        assert (port["queue"]["name"], back["queue"]["name"]) == ("codel", "fifo")
    # The ports of the side whose queue it is, together.
    assert scenario.bottleneck == "servers"
    assert scenario.bottlenecks == ["server1", "server2"]
    assert scenario.queue_keys == ("topology.servers.queue",)
    back = scenario.replace(
        {"topology.servers.queue": None, "topology.clients.reverse.queue": "pie"}
    )
    assert back.bottleneck == "clients.reverse"
    assert back.bottlenecks[:2] == ["client1.reverse", "client2.reverse"]
    assert back.queue_keys == ("topology.clients.reverse.queue",)


def test_keys_of_a_side_take_precedence_over_those_of_the_star() -> None:
    changes = {
        "topology.reverse.rate": "1gbit",
        "topology.forward.overhead": 4,
        "topology.servers.forward.netem": "delay 3ms",
        "topology.servers.reverse.ring": 7,
        "topology.clients.overhead": 24,
        "topology.hosts": 1,
    }
    by_name = links(Scenario.from_toml(SWITCH).replace(changes))
    assert by_name["client1.reverse"]["params"]["rate"] == 1_000_000_000
    assert by_name["server1.reverse"]["params"]["rate"] == 4_000_000
    assert by_name["server1"]["params"]["delay"] == 3 * MS
    assert by_name["server1.reverse"]["params"]["delay"] == MS
    assert (by_name["server1"]["ring"], by_name["server1.reverse"]["ring"]) == (0, 7)
    assert [by_name[name]["params"]["overhead"] for name in ("client1", "server1", "port1")] == [
        24,
        4,
        4,
    ]
    assert by_name["client1.reverse"]["params"]["overhead"] == 24


@pytest.mark.parametrize(
    ("text", "named", "called", "members"),
    [
        (SWITCH, "servers", "servers", ["server1", "server2"]),
        (SWITCH, "servers.reverse", "servers.reverse", ["server1.reverse", "server2.reverse"]),
        (SWITCH, "server2", "server2", ["server2"]),
        (SWITCH, ["server2", "server1"], "bottlenecks", ["server2", "server1"]),
        (LAN, "servers", "servers", ["server1", "server2"]),
        (LAN, "client2", "client2", ["client2"]),
        (DUMBBELL, "right", "right", ["right1", "right2"]),
    ],
)
def test_a_bottleneck_may_be_several_links(
    text: str, named: object, called: str, members: list[str]
) -> None:
    scenario = Scenario.from_toml(text).replace({"bottleneck": named})
    assert scenario.bottleneck == called
    assert scenario.bottlenecks == members
    assert Scenario.from_dict(scenario.as_dict()).plan_json == scenario.plan_json


def test_a_queue_is_changed_wherever_the_bottleneck_has_it() -> None:
    second = '[links.second]\nfrom = "isp"\nto = "net"\nrate = "1mbit"\n'
    text = 'bottleneck = ["uplink", "second.reverse"]\n' + HOME + second
    text += 'reverse.queue = "codel limit 1000p target 5ms"\n'
    scenario = Scenario.from_toml(text).with_queue("pie")
    assert scenario.queue_keys == ("links.uplink.queue", "links.second.reverse.queue")
    assert {links(scenario)[name]["params"]["queue"]["name"] for name in scenario.bottlenecks} == {
        "pie"
    }


def test_templates_and_links_go_together() -> None:
    text = DUMBBELL + '[links.extra]\nfrom = "router2"\nto = "server"\nrate = "1gbit"\n'
    scenario = Scenario.from_toml(text).replace({"flows.0.to": "server"})
    assert "extra.reverse" in links(scenario)
    assert scenario.bottleneck == "bottleneck"


def test_the_bottleneck_is_the_first_link_with_a_queue() -> None:
    text = HOME.replace('queue = "codel limit 1000p target 5ms"\n', "")
    assert Scenario.from_toml(text).bottleneck == "uplink"
    second = '[links.second]\nfrom = "isp"\nto = "net"\nrate = "1mbit"\n'
    assert Scenario.from_toml(text + second).bottleneck == "uplink"
    assert Scenario.from_toml(text + second + 'queue = "pie"\n').bottleneck == "second"
    back = Scenario.from_toml(text + second + 'reverse.queue = "pie"\n')
    assert back.bottleneck == "second.reverse"
    assert back.queue_keys == ("links.second.reverse.queue",)
    assert back.with_queue("codel").queue == "codel"
    named = Scenario.from_toml('bottleneck = "second.reverse"\n' + text + second)
    assert named.bottleneck == "second.reverse"


def test_queues_know_their_links_rate() -> None:
    text = HOME.replace(
        "codel limit 1000p target 5ms", "red limit 400kb min 30kb max 90kb avpkt 1000"
    )
    slow = Scenario.from_toml(text)
    fast = slow.replace({"links.uplink.rate": "100mbit", "name": "home"})
    assert json.loads(slow.plan_json)["links"][0]["params"]["queue"] is not None
    assert json.loads(fast.plan_json)["links"][0]["params"]["rate"] == 100_000_000


@pytest.mark.parametrize(
    ("duration", "asked", "interval"),
    [("60s", None, 100), ("100s", None, 100), ("500s", None, 500), ("5000s", None, 5000)],
)
def test_series_have_at_most_a_thousand_samples(
    duration: str, asked: str | None, interval: int
) -> None:
    scenario = Scenario.from_toml(HOME).replace({"duration": duration, "observe.series": asked})
    assert json.loads(scenario.plan_json)["observe"]["series_interval"] == interval * MS


def test_series_as_asked() -> None:
    scenario = Scenario.from_toml(HOME)
    for text, interval in (("0s", 0), ("1s", 1000 * MS), ("10ms", 10 * MS)):
        plan = json.loads(scenario.replace({"observe.series": text}).plan_json)
        assert plan["observe"]["series_interval"] == interval


def test_captures() -> None:
    scenario = Scenario.from_toml(HOME).replace(
        {"observe.capture": ["uplink", "uplink.reverse"], "observe.snaplen": "1500"}
    )
    assert json.loads(scenario.plan_json)["observe"]["capture"] == [0, 1]
    assert json.loads(scenario.plan_json)["observe"]["snaplen"] == 1500


def test_python_says_the_same_as_toml() -> None:
    scenario = Scenario(
        name="home",
        duration="60s",
        warmup="10s",
        links={
            "uplink": {
                "from": "home",
                "to": "isp",
                "rate": "20mbit",
                "netem": "delay 15ms",
                "queue": "codel limit 1000p target 5ms",
            }
        },
        flows=[
            {
                "from": "home",
                "to": ["isp"],
                "app": "bulk",
                "tcp": "cubic",
                "count": 4,
                "start": "uniform 0s 1s",
            },
            {"from": "home", "to": "isp", "app": "voip"},
        ],
    )
    assert scenario.plan_json == Scenario.from_toml(HOME).plan_json
    assert scenario.digest() == Scenario.from_toml(HOME).digest()
    assert Scenario.from_dict(scenario.as_dict()) == scenario


def test_it_never_changes() -> None:
    scenario = Scenario.from_toml(HOME)
    before = scenario.plan_json
    with pytest.raises(AttributeError):
        scenario.name = "other"  # type: ignore[misc]
    json.loads(scenario.plan_json)["links"].clear()
    data: Any = scenario.as_dict()
    data["links"].clear()
    scenario.replace({"links.uplink.rate": "1mbit"})
    assert scenario.plan_json == before
    again = pickle.loads(pickle.dumps(scenario))
    assert again == scenario
    assert again.plan_json == before
    assert hash(copy.deepcopy(scenario)) == hash(scenario)


def test_the_plan_does_not_contain_the_scenario_s_name() -> None:
    plan = json.loads(Scenario.from_toml(HOME).plan_json)
    assert "home" not in plan


def test_a_seed_is_a_whole_number() -> None:
    scenario = Scenario.from_toml(HOME)
    for seed in (-1, 2**64, True, "1", 1.5):
        with pytest.raises((ScenarioError, ArgumentError), match="seed"):
            scenario.run(seed)  # type: ignore[arg-type]


def test_assumptions_of_the_engine_are_warnings() -> None:
    scenario = Scenario.from_toml(HOME)
    assert scenario.warnings() == []
    (warning,) = scenario.with_queue("red limit 400kb").warnings()
    assert re.fullmatch("links.uplink.queue: .*bandwidth.* not given: 10mbit is assumed", warning)


def test_a_rate_in_bytes_causes_a_warning() -> None:
    """A user who writes 20mbps means 20mbit, and gets eight times as much, as from `tc`."""
    scenario = Scenario.from_toml(
        HOME.replace('"20mbit"', '"20Mbps"').replace('"bulk"', '"cbr rate 1.5mbps"')
    )
    rate, app = (text for text in scenario.warnings() if "bps" in text)
    words = "links.uplink.rate: `20Mbps` is 160mbit, .*bytes per second.*for bits write `20Mbit`"
    assert re.fullmatch(words, rate)
    assert app.startswith("flows.0.app: `1.5mbps` is 12mbit")
