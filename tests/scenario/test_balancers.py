"""Balancers in scenarios: resolved, run, and refused with a place where they do not fit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sojourn.scenario import Scenario, ScenarioError
from sojourn.scenario.serve import chosen_by, serve_command

TEXT = """
duration = "3s"
bottleneck = "servers"

[topology]
template = "star"
rate = "100mbit"
clients = {hosts = 4}
servers = {hosts = 3, queue = "pfifo limit 50p"}

[balancers.lb]
servers = "servers"
policy = "iqlb threshold 70%"
weights = [1, 2]
delay = "2ms"
decision = "1ms"
service = ["1ms", "exp(2ms)"]

[[flows]]
name = "uploads"
from = "clients"
to = "lb"
app = "transfer size 20kb forever think exp(50ms)"
count = 8
"""


def test_a_balancer_is_resolved() -> None:
    plan = json.loads(Scenario.from_toml(TEXT).plan_json)
    (lb,) = plan["balancers"]
    assert lb["policy"] == {
        "name": "iqlb",
        "threshold": 0.7,
        "full": "shortest",
        "period": 0,
    }
    assert (lb["delay"], lb["decision"]) == (2_000_000, 1_000_000)
    names = [plan["nodes"][server["node"]]["name"] for server in lb["servers"]]
    ports = [plan["links"][server["port"]]["name"] for server in lb["servers"]]
    assert names == ports == ["server1", "server2", "server3"]
    assert [server["weight"] for server in lb["servers"]] == [1, 2, 1]
    assert lb["servers"][0]["service"] == lb["servers"][2]["service"]
    (group,) = plan["groups"]
    assert group["balancer"] == 0
    assert {to for _, to in group["pairs"]} == {lb["servers"][0]["node"]}
    plain = json.loads(Scenario.from_toml(TEXT).replace(**{"flows.0.to": "servers"}).plan_json)
    assert "balancer" not in plain["groups"][0]


def test_a_scenario_without_balancers_has_the_plan_that_it_had() -> None:
    scenario = Scenario.from_toml(TEXT)
    plan = json.loads(scenario.replace(balancers=None, **{"flows.0.to": "servers"}).plan_json)
    assert "balancers" not in plan
    assert "balancer" not in plan["groups"][0]


def test_a_run_has_the_metrics_of_the_balancer() -> None:
    run = Scenario.from_toml(TEXT).run(seed=2)
    assert run.metrics["lb.choices"] > 100
    # 4 x 2 ms and the decision.
    assert run.metrics["lb.decision_p50"] == pytest.approx(0.009, rel=0.02)
    assert run.metrics["uploads.fct_p50"] > 0.009
    assert set(run.flows["to"]) <= {"server1", "server2", "server3"}
    assert run.units["lb.age_mean"] == "s"
    assert "lb: iqlb threshold 70%" in run.summary()
    again = Scenario.from_dict(Scenario.from_toml(TEXT).as_dict()).run(seed=2)
    assert again.trace_hash == run.trace_hash


WEB = {
    "flows.0.from": "lb",
    "flows.0.to": "clients",
    "flows.0.app": "web pages 20 interpage exp(100ms) objects 2 size 4",
}


def test_web_pages_come_from_a_balancer() -> None:
    scenario = Scenario.from_toml(TEXT).replace(WEB)
    plan = json.loads(scenario.plan_json)
    first = plan["balancers"][0]["servers"][0]["node"]
    assert {a for a, _ in plan["groups"][0]["pairs"]} == {first}
    assert len({b for _, b in plan["groups"][0]["pairs"]}) == 4
    run = scenario.run(seed=2)
    assert run.metrics["uploads.objects"] > 50
    assert run.metrics["lb.choices"] >= run.metrics["uploads.objects"]
    assert set(run.flows["from"]) <= {"server1", "server2", "server3"}
    assert set(run.flows["to"]) <= {f"client{n}" for n in range(1, 5)}


def test_a_fault_is_a_link_that_loses_all_and_probes_that_find_it() -> None:
    faults = [
        {"server": "server2", "at": "1s", "until": "2s"},
        {"server": "server2", "at": "2500ms"},
    ]
    scenario = Scenario.from_toml(TEXT).replace(
        {"balancers.lb.faults": faults, "balancers.lb.health_every": "100ms"}
    )
    plan = json.loads(scenario.plan_json)
    (lb,) = plan["balancers"]
    assert lb["probes"] == {"every": 100_000_000, "misses": 3}
    assert lb["faults"] == [
        {"server": 1, "at": 1_000_000_000, "until": 2_000_000_000},
        {"server": 1, "at": 2_500_000_000, "until": None},
    ]
    for link in plan["links"]:
        losses = [c["wire"]["impairments"]["loss"] for c in link["changes"]]
        there = [loss.get("probability", 0.0) for loss in losses]
        assert there == ([1.0, 0.0, 1.0] if link["name"].startswith("server2") else []), link
    run = scenario.run(seed=3)
    assert 0 < run.metrics["lb.choices_unreachable"] < 0.2
    whole = Scenario.from_toml(TEXT)
    assert "faults" not in json.loads(whole.plan_json)["balancers"][0]
    assert whole.run(seed=3).metrics["lb.choices_unreachable"] == 0


def test_a_dead_server_has_the_shortest_queue() -> None:
    """Packets sent there leave its port, so a policy of queues prefers it until it is informed."""
    text = TEXT.replace('queue = "pfifo limit 50p"', 'queue = "pfifo limit 50p", rate = "4mbit"')
    scenario = Scenario.from_toml(text).replace(
        {
            "duration": "20s",
            "flows.0.app": "transfer size 100kb",
            "flows.0.count": 600,
            "flows.0.start": "uniform 0s 19s",
            "balancers.lb.service": None,
            "balancers.lb.weights": None,
            "balancers.lb.health_every": "2s",
            "balancers.lb.faults": [{"server": "server2", "at": "5s", "until": "12s"}],
        }
    )

    def share(policy: str) -> float:
        run = scenario.replace({"balancers.lb.policy": policy}).run(seed=1)
        return float(run.metrics["lb.choices_unreachable"])

    turns, shortest, fewest = share("round-robin"), share("jsq"), share("least-connections")
    assert shortest > 1.5 * turns > 0
    assert fewest < turns


@pytest.mark.parametrize(
    ("change", "at", "says"),
    [
        ({"flows.0.to": "bl"}, "flows.0.to.0", "did you mean `lb`"),
        ({"flows.0.to": ["lb", "server1"]}, "flows.0.to", "remove the other receivers"),
        ({"flows.0.from": "server2"}, "flows.0.to", "must not be a server behind"),
        ({"flows.0.app": "web"}, "flows.0.to", "put `lb` into `from`"),
        ({"flows.0.from": "lb", "flows.0.to": "clients"}, "flows.0.from", "put it into `to`"),
        (
            {"flows.0.app": "web", "flows.0.from": ["lb", "server1"], "flows.0.to": "clients"},
            "flows.0.from",
            "remove the other senders",
        ),
        (
            {"balancers.lb.faults": [{"server": "client1", "at": "1s"}]},
            "balancers.lb.faults.0.server",
            "not a server of this balancer",
        ),
        (
            {"balancers.lb.faults": [{"server": "server1", "at": "1s", "until": "1s"}]},
            "balancers.lb.faults.0.until",
            "the end must be after the begin",
        ),
        (
            {"balancers.lb.faults": [{"server": "server1", "at": "1s"}] * 2},
            "balancers.lb.faults",
            "the faults of a server must not overlap",
        ),
        (
            {
                "balancers.lb.faults": [{"server": "server2", "at": "1s"}],
                "topology.servers.changes": [{"at": "1s", "netem": "delay 1ms"}],
            },
            "balancers.lb.faults.0",
            "also changes its `netem`",
        ),
        ({"balancers.lb.misses": 0}, "balancers.lb.misses", "from 1 to 100"),
        (
            {
                "balancers.lb.faults": [{"server": "server1", "at": "1s"}],
                "balancers.lb.health_every": "0s",
            },
            "balancers.lb.health_every",
            "interval of probes must be 1ms to 60s",
        ),
        ({"flows.0.name": "lb"}, "flows.0.name", "already the name of a balancer"),
        ({"balancers.lb.policy": "iqbl"}, "balancers.lb.policy", "did you mean `iqlb`"),
        ({"balancers.lb.servers": "switch"}, "balancers.lb.servers", "exactly one incoming link"),
        (
            {"balancers.lb.servers": ["server1", "server1"]},
            "balancers.lb.servers",
            "`server1` must not be listed twice",
        ),
        ({"balancers.lb.weights": 0}, "balancers.lb.weights", "from 1 to"),
        ({"balancers.lb.service": "exp(2)"}, "balancers.lb.service", "needs a time with its unit"),
        ({"balancers.lb.delay": "61s"}, "balancers.lb.delay", "at most 60s"),
        ({"balancers.lb.polcy": "jsq"}, "balancers.lb.polcy", "did you mean `policy`"),
        ({"balancers.bl.policy": "jsq"}, "balancers.bl.policy", "`balancers` has no entry `bl`"),
    ],
)
def test_an_error_is_reported_with_its_place(change: dict[str, Any], at: str, says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_toml(TEXT).replace(change)
    told = str(caught.value)
    assert at in told
    assert says in told, told


def test_a_name_is_taken_once() -> None:
    with pytest.raises(ScenarioError, match="`server1` is already"):
        Scenario.from_toml(TEXT.replace("balancers.lb", "balancers.server1"))


UNEVEN = TEXT.replace("weights = [1, 2]\n", "").replace(
    "servers = {hosts = 3,", 'servers = {hosts = 3, rate = ["100mbit", "100mbit", "33mbit"],'
)


def test_compared_policies_have_the_rates_of_links_as_weights() -> None:
    """Else `weighted-round-robin` is `round-robin` under another name: a straw man."""
    scenario = Scenario.from_toml(UNEVEN)
    weighted = {
        "balancers.lb.policy": "weighted-round-robin",
        "balancers.lb.weights": [100, 100, 33],
    }
    assert chosen_by(scenario, "lb", "weighted-round-robin") == weighted
    assert chosen_by(scenario, "lb", "least-connections")["balancers.lb.weights"] == [100, 100, 33]
    # A policy that heeds none gets none.
    assert chosen_by(scenario, "lb", "iqlb") == {"balancers.lb.policy": "iqlb"}
    served = serve_command(scenario.replace(weighted), "lb")
    assert "server3=ADDRESS3@PORT3,weight=33" in served


def test_the_scenarios_own_weights_stay() -> None:
    own = Scenario.from_toml(UNEVEN).replace({"balancers.lb.weights": [3, 2, 1]})
    policy = {"balancers.lb.policy": "maglev"}
    assert chosen_by(own, "lb", "maglev") == policy
    even = Scenario.from_toml(UNEVEN.replace('"33mbit"', '"100mbit"'))
    assert chosen_by(even, "lb", "maglev") == policy


def test_weights_by_rates_stay_within_their_bounds() -> None:
    rates = 'rate = ["10gbit", "9999999999bit", "1kbit"]'
    far = Scenario.from_toml(UNEVEN.replace('rate = ["100mbit", "100mbit", "33mbit"]', rates))
    weights = chosen_by(far, "lb", "random")["balancers.lb.weights"]
    assert weights == [1_000_000, 1_000_000, 1]
    assert json.loads(far.replace(chosen_by(far, "lb", "random")).plan_json)
