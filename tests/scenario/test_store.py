"""Stores in scenarios: their plan, and their errors."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.lab.store.findings import speculative_retry
from sojourn.plan.queries import the_store
from sojourn.plan.replication import NetworkTopologyPlacement
from sojourn.plan.store import ClosedArrivals, Crash, Fault, OpenArrivals, Partition
from sojourn.scenario import Scenario, ScenarioError
from sojourn.scenario.words import Speculation, speculation

EDGE = """
duration = "600s"

[topology]
template = "mesh"
nodes = 4
rate = "1gbit"
netem = "delay 20ms loss 2.5%"

[topology.clients]
hosts = 2
netem = "delay 10ms"

[store]
nodes = "nodes"
clients = "clients"
requests = 200
warmup = 20
"""


def edge(**changes: Any) -> Scenario:
    return Scenario.from_toml(EDGE).replace({f"store.{k}": v for k, v in changes.items()})


def test_a_mesh_joins_all_and_clients_to_all() -> None:
    links = json.loads(edge().plan_json)["links"]
    names = [link["name"] for link in links if not link["name"].endswith(".reverse")]
    assert len(names) == 6 + 8
    assert names[:4] == ["node1-node2", "node1-node3", "node1-node4", "node2-node3"]
    by_name = {link["name"]: link["params"] for link in links}
    assert by_name["node2-node4.reverse"]["delay"] == 20_000_000
    assert by_name["client2-node1"]["delay"] == 10_000_000
    assert (
        by_name["client2-node1.reverse"]["impairments"]["loss"]
        != (by_name["node1-node2"]["impairments"]["loss"])
    )


def test_links_between_sites_are_others() -> None:
    sites = {
        "topology.sites": [["node1", "node2", "client1"], ["node3", "node4", "client2"]],
        "topology.between": {"netem": "delay 40ms", "reverse": {"netem": "delay 60ms"}},
    }
    scenario = Scenario.from_toml(EDGE).replace(sites)
    delay = {
        link["name"]: link["params"]["delay"] // 1_000_000
        for link in json.loads(scenario.plan_json)["links"]
    }
    assert (delay["node1-node2"], delay["node3-node4"]) == (20, 20)
    assert (delay["node1-node3"], delay["node1-node3.reverse"]) == (40, 60)
    assert (delay["client1-node2"], delay["client1-node3"], delay["client2-node3"]) == (10, 40, 10)
    for change, says in (
        ({"topology.between": None}, "require each other"),
        ({"topology.sites": None}, "require each other"),
        ({"topology.sites": [["node1"], ["nodes"]]}, "`node1` is listed twice in `sites`"),
        ({"topology.sites": [["node1"], ["node9"]]}, "unknown host `node9`: no link has this end"),
    ):
        with pytest.raises(ScenarioError, match=says):
            scenario.replace(change)


def test_it_runs_and_its_requests_add_up() -> None:
    run = edge(replication=3, workload="ycsb-a", records=100).run(seed=3)
    m = run.metrics
    assert m["store.requests"] == 180
    ended = ("acknowledged", "unavailable", "errors", "timed_out", "pending")
    assert sum(m[f"store.{name}"] for name in ended) == 180
    assert m["store.reads.requests"] + m["store.writes.requests"] == 180
    assert sum(m[f"store.node{i}.coordinated"] for i in range(1, 5)) == 200
    assert run.units["store.latency_p99"] == "s"
    places = set(run.distributions["place"])
    assert {"store.reads", "store.writes"} <= places
    assert "acknowledged 180" in run.summary()
    assert edge(replication=3).run(seed=3).trace_hash == edge(replication=3).run(seed=3).trace_hash


def test_an_open_loop_has_no_limit_by_default() -> None:
    load = the_store(edge(every="exp(10ms)").plan).load
    assert isinstance(load.arrivals, OpenArrivals)
    assert load.outstanding == 0
    closed = the_store(edge().plan).load
    assert closed.arrivals == ClosedArrivals(think=0)
    assert closed.outstanding == 1


def test_data_centres_racks_and_faults() -> None:
    plan = edge(
        data_centres={"a": ["node1", "node2", "clients"], "b": ["node3", "node4"]},
        racks={"r": ["node2", "node4"]},
        replication={"a": 2, "b": 1},
        consistency="LOCAL_QUORUM",
        read_consistency="one",
        faults=[
            {"crash": "node3", "at": "10s", "until": "20s"},
            {"partition": ["node1", "client2"], "at": "30s"},
        ],
    ).plan
    store = the_store(plan)
    assert [h.data_centre for h in store.nodes] == [0, 0, 1, 1]
    assert [h.rack for h in store.nodes] == [0, 1, 0, 1]
    assert store.placement == NetworkTopologyPlacement(factors=(2, 1))
    assert (store.write_level, store.read_level) == ("local_quorum", "one")
    partition = Partition(nodes=(0,), clients=(1,))
    assert store.faults == (
        Fault(at=10**10, until=2 * 10**10, what=Crash(node=2)),
        Fault(at=3 * 10**10, until=None, what=partition),
    )


@pytest.mark.parametrize(
    ("changes", "key", "message"),
    [
        ({"consistency": "quorom"}, "store.consistency", "did you mean `quorum`"),
        ({"coordinator": "random"}, "store.coordinator", "unknown coordinator policy"),
        ({"workload": "ycsb-g"}, "store.workload", "unknown workload"),
        ({"workload": {"read": 0.5}}, "store.workload", "add up to 1"),
        ({"workload": {"raed": 1}}, "store.workload", "did you mean `read`"),
        ({"replication": 5}, "store.replication", "above the 4 nodes"),
        ({"replication": 0}, "store.replication", "number of replicas"),
        ({"replication": {"dc9": 1}}, "store.replication.dc9", "unknown data centre"),
        ({"replication": 2, "consistency": "three"}, "store.consistency", "needs 3 replicas"),
        ({"nodes": ["node1", "node9"]}, "store.nodes.1", "unknown host `node9`"),
        ({"clients": ["node1"]}, "store", "listed twice"),
        ({"every": "exp(10)"}, "store.every", "10"),
        ({"every": "1ms", "think": "1ms"}, "store.think", "no effect together with `every`"),
        ({"warmup": 200}, "store.warmup", "must be below the number of requests"),
        ({"faults": [{"at": "1s"}]}, "store.faults.0", "either `crash` or `partition`"),
        ({"faults": [{"at": "2s", "until": "1s", "crash": "node1"}]}, "store.faults.0.until",
         "the end must be after the begin"),
        ({"faults": [{"at": "2s", "crash": "client1"}]}, "store.faults.0.crash", "not a node"),
        ({"name": "node1-node2"}, "store.name", "already the name of a link"),
        ({"data_centres": {"a": ["node1"]}}, "store.data_centres", "in no data centre"),
        ({"racks": {"r": ["client1"]}}, "store.racks.r", "store's `nodes`: add it"),
        ({"service": {"write": "1"}}, "store.service.write", "unit"),
    ],
)  # fmt: skip
def test_an_error_is_reported_with_its_place(
    changes: dict[str, Any], key: str, message: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        edge(**changes)
    told = str(caught.value)
    assert message in told, told
    assert any(problem.key.startswith(key) for problem in caught.value.problems), told


def test_a_scenario_without_flows_and_store_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"flows as \[\[flows\]\]"):
        Scenario.from_toml(EDGE.partition("[store]")[0])


MS = 10**6


@pytest.mark.parametrize(
    ("text", "found", "cql"),
    [
        ("none", Speculation(), "NONE"),
        ("NEVER", Speculation(), "NONE"),
        ("always", Speculation(0), "0ms"),
        ("50ms", Speculation(50 * MS), "50ms"),
        ("99percentile", Speculation(share=0.99), "99PERCENTILE"),
        ("99.9PERCENTILE", Speculation(share=0.999), "99.9PERCENTILE"),
        ("95p", Speculation(share=0.95), "95PERCENTILE"),
        ("p99", Speculation(share=0.99), "99PERCENTILE"),
        ("MIN(99p, 50ms)", Speculation(share=0.99, most=50 * MS), "MIN(99PERCENTILE,50ms)"),
        ("max(10ms,90p)", Speculation(share=0.9, least=10 * MS), "MAX(90PERCENTILE,10ms)"),
    ],
)
def test_speculative_retries_are_written_as_in_cassandra(
    text: str, found: Speculation, cql: str
) -> None:
    assert speculation(text) == found
    patience = the_store(edge(speculative=text).plan).patience
    assert speculative_retry(patience) == cql


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("99percent", "a percentile of recent read latencies such as 99p"),
        ("101p", "above 0 and at most 100"),
        ("0percentile", "above 0 and at most 100"),
        ("min(99p,98p)", "a percentile and a time"),
        ("max(5ms,50ms)", "a percentile and a time"),
        ("mean(5ms,99p)", "both as in min(99p,50ms)"),
        ("50 parsecs", "unknown unit"),
        ("", "a time such as 50ms"),
    ],
)
def test_other_speculative_retries_are_refused_with_the_forms(text: str, says: str) -> None:
    with pytest.raises(ScenarioError) as error:
        edge(speculative=text)
    assert says in str(error.value)
    assert "store.speculative" in str(error.value)


@given(st.integers(1, 1000), st.integers(0, 10**6), st.sampled_from(["min", "max", ""]))
def test_the_option_for_cassandra_has_the_same_meaning(tenths: int, micros: int, kind: str) -> None:
    text = f"{tenths / 10}p"
    text = f"{kind}({text},{micros}us)" if kind else text
    patience = the_store(edge(speculative=text).plan).patience
    assert speculation(speculative_retry(patience)) == speculation(text)


def test_a_percentile_sends_few_reads_again() -> None:
    """R28: of reads that take longer than 99 % of the recent ones, not of all."""
    changes = {"workload": "ycsb-c", "read_timeout": "5s", "requests": 2000, "warmup": 0}
    never = edge(**changes).run(seed=1).metrics
    rare = edge(**changes, speculative="99percentile").run(seed=1).metrics
    often = edge(**changes, speculative="always").run(seed=1).metrics
    assert never["store.speculations"] == 0
    assert 5 <= rare["store.speculations"] <= 80
    assert often["store.speculations"] > 1500
    soon = edge(**changes, speculative="90p").run(seed=1).metrics
    assert soon["store.latency_p99"] < 0.9 * never["store.latency_p99"]
