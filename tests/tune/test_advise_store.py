"""Advice on a store meets the requirements of the question and follows from the runs."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

import pytest

from sojourn.plan.queries import the_store
from sojourn.plan.replication import NetworkTopologyPlacement
from sojourn.scenario import Scenario
from sojourn.stats import Interval
from sojourn.stats.promises import Promise, unavailable
from sojourn.study import compare
from sojourn.study.durability import caution, promise_of
from sojourn.tune.advise_store import (
    Advice,
    AdviceError,
    Choice,
    advise,
    candidates,
    mixed,
    unreadable,
)  # fmt: skip
from sojourn.tune.settings import Asked, By

EDGE = """
duration = "600s"

[topology]
template = "mesh"
nodes = 3
rate = "1gbit"
netem = "delay 50ms loss 7.5%"

[topology.clients]
netem = "delay 10ms"

[store]
nodes = "nodes"
clients = "clients"
requests = 320
warmup = 20
write_timeout = "60s"
client_timeout = "120s"
"""


@pytest.mark.parametrize(("nodes", "rf", "count"), [(3, 1, 1), (4, 3, 2), (5, 3, 3), (5, 5, 3)])
def test_unavailability_is_what_counting_gives(nodes: int, rf: int, count: int) -> None:
    up, total = 0.9, 0.0
    for coordinator in range(nodes):
        for states in product((0, 1), repeat=rf):
            if coordinator < rf and not states[coordinator]:
                continue
            others = [s for i, s in enumerate(states) if i != coordinator]
            weight = up ** sum(others) * (1 - up) ** (len(others) - sum(others))
            total += weight * (sum(states) < count) / nodes
    assert unavailable(nodes, rf, count, up) == pytest.approx(total)


def levels(nodes: int, asked: Asked) -> list[tuple[int, str, str]]:
    found = candidates(nodes, asked)
    return [(one.promise.replicas, one.write_level, one.read_level) for one in found]


def test_the_question_decides_the_compared_levels() -> None:
    assert levels(3, Asked()) == [(3, "quorum", "quorum")]
    assert levels(3, Asked(survive=0, down=0)) == [
        (1, "quorum", "quorum"),
        (2, "one", "quorum"), (2, "quorum", "one"),
        (3, "one", "all"), (3, "quorum", "quorum"), (3, "all", "one"),
    ]  # fmt: skip
    assert levels(4, Asked()) == [
        (3, "quorum", "quorum"), (4, "two", "quorum"), (4, "quorum", "two")
    ]  # fmt: skip
    # Reads that may be stale need not overlap.
    assert (3, "quorum", "one") in levels(3, Asked(stale=0.5))
    assert (3, "one", "one") in levels(3, Asked(survive=0, stale=0.5))
    assert levels(5, Asked(unavailable=1e-5)) == [(5, "quorum", "quorum")]


def test_no_level_is_advised_without_a_level_for_its_reads() -> None:
    """The review's case: RF 5 at TWO needs reads of four replicas, and there is no level FOUR."""
    assert (5, "two") not in {(rf, level) for rf, level, _ in levels(5, Asked())}
    (why,) = unreadable(5, Asked())
    assert re.match("RF 5, writes at TWO: .* 4 replicas, .*needs ALL", why)
    assert "fails with 1 node down" in why
    # With no node down ALL is available.
    assert (5, "two", "all") in levels(5, Asked(down=0))
    assert unreadable(5, Asked(down=0)) == []


def test_the_advice_is_the_order_of_the_runs() -> None:
    scenario = Scenario.from_toml(EDGE)
    seen: list[tuple[int, int]] = []
    asked = Asked(down=0, seeds=4, by="mean", reads=0.0)
    found = advise(scenario, asked, report=lambda *at: seen.append(at)).choices
    assert [(c.replication, c.write_level) for c in found] == [
        (3, "quorum"), (2, "quorum"), (3, "all")
    ]  # fmt: skip
    assert [c.best for c in found] == [True, False, False]
    assert (found[0].copies, found[0].read_level, found[0].failed) == (2, "quorum", 0)
    assert seen[-1] == (12, 12)
    two = scenario.replace({"store.replication": 2})
    of_two = [two.run(seed=s).metrics["store.latency_mean"] for s in range(1, 5)]
    assert found[1].latency["mean"].estimate == pytest.approx(sum(of_two) / 4)
    assert all(c.p < 0.05 for c in found[1:])


def test_reads_weigh_by_their_share() -> None:
    scenario = Scenario.from_toml(EDGE)
    assert mixed(scenario, None)[1:] == (0.5, True)
    own = scenario.replace({"store.workload": "ycsb-b"})
    assert mixed(own, None) == (own, 0.95, False)
    changed, share, assumed = mixed(own, 0.25)
    assert (share, assumed) == (0.25, False)
    assert changed.model.store is not None
    assert changed.model.store.workload == {"read": 0.25, "update": 0.75}
    # Where reads wait for one replica and writes for all, their share decides.
    asked = Asked(survive=0, down=0, by="mean", seeds=3)
    few, many = (
        {
            (c.write_level, c.read_level): c.latency["mean"].estimate
            for c in advise(scenario, replace(asked, reads=share)).choices
            if c.replication == 3
        }
        for share in (0.05, 0.95)
    )
    assert few["one", "all"] < few["all", "one"]
    assert many["one", "all"] > many["all", "one"]


def test_of_those_as_fast_the_fewest_copies_are_taken() -> None:
    def choice(rf: int, best: bool) -> Choice:
        ms = Interval(0.1, 0.1, 0.1, 0.95, 3)
        latency: dict[By, Interval] = {"mean": ms, "p95": ms, "p99": ms}
        return Choice(rf, "quorum", "quorum", 2, 0.0, latency, {}, 0, 0.5, best)

    advice = Advice((choice(5, True), choice(4, True), choice(3, False)), 0.5, False, ())
    assert advice.take.replication == 4


def test_stale_reads_are_bounded_by_their_probability() -> None:
    scenario = Scenario.from_toml(EDGE)
    asked = Asked(survive=0, seeds=2, stale=1.0)
    by_levels = {
        (c.replication, c.write_level, c.read_level): c.stale
        for c in advise(scenario, asked).choices
    }
    # At once two of three replicas lack a write that one has acknowledged, or nearly so: others are
    # 100 ms away. A second later most have it.
    stale = by_levels[3, "one", "one"]
    assert 0.5 < stale["stale_0ms"] < 2 / 3 + 1e-9
    assert stale["stale_100ms"] < stale["stale_0ms"]
    assert by_levels[3, "quorum", "quorum"] == {"stale_0ms": 0.0, "stale_100ms": 0.0}
    strict = advise(scenario, replace(asked, stale=0.3)).choices
    assert {c.write_level for c in strict if c.replication == 3} == {"quorum"}


def test_a_question_without_an_answer_is_refused() -> None:
    scenario = Scenario.from_toml(EDGE)
    with pytest.raises(AdviceError, match="survive the loss of 3"):
        advise(scenario, Asked(survive=3))
    flows = EDGE.partition("[store]")[0] + (
        '[[flows]]\nfrom = "node1"\nto = "node2"\napp = "bulk"\n'
    )
    with pytest.raises(AdviceError, match="no \\[store\\]"):
        advise(Scenario.from_toml(flows), Asked())


def test_compare_and_advise_agree() -> None:
    """`compare` ranks ONE first; it says what ONE lacks, and takes what `advise` takes."""
    scenario = Scenario.from_toml(EDGE)
    key = "store.consistency"
    factors = {key: {level: {key: level} for level in ("one", "quorum", "all")}}
    found = compare(scenario, seeds=3, vary=factors)
    assert found.winners[0].choice == "one"
    said = caution(found, lambda levels: scenario.replace(factors[key][str(levels[key])]))
    assert "1 node for" in said
    assert "miss an acknowledged write" in said
    assert "Take quorum, the fastest" in said
    take = advise(scenario, Asked(seeds=3)).take
    assert (take.replication, take.write_level, take.read_level) == (3, "quorum", "quorum")


def test_a_sound_level_that_misses_the_condition_is_not_denied() -> None:
    """While a node is away QUORUM acknowledges less than ONE, and still keeps the promise."""
    fault = {"crash": "node2", "at": "1s", "until": "20s"}
    reads = {"store.workload": "ycsb-b", "store.every": "exp(20ms)", "store.write_timeout": "2s"}
    scenario = Scenario.from_toml(EDGE).replace(reads | {"store.faults": [fault]})
    key = "store.consistency"
    found = compare(scenario, seeds=3, vary={key: ["one", "quorum"]})
    assert [e.feasible for e in found.entries] == [True, False]
    assert "would lead" not in found.answer()
    said = caution(found, lambda levels: scenario.replace({key: levels[key]}))
    assert "quorum survives the loss" in said
    assert "store.acknowledged >= 99%" in said
    assert "None of the compared levels" not in said


def test_of_several_data_centres_advise_is_not_recommended() -> None:
    """It refuses them."""
    places = {f"d{n}": [f"node{n}"] for n in (1, 2, 3)}
    places["d1"].append("client1")
    scenario = Scenario.from_toml(EDGE).replace(
        {"store.data_centres": places, "store.replication": dict.fromkeys(places, 1)}
    )
    key = "store.consistency"
    found = compare(scenario, seeds=2, vary={key: ["local_quorum", "quorum"]})
    said = caution(found, lambda levels: scenario.replace({key: levels[key]}))
    assert "Take quorum" in said
    assert "advise store" not in said
    with pytest.raises(AdviceError, match="several data centres"):
        advise(scenario, Asked(seeds=2))


def test_a_sound_level_needs_no_caution() -> None:
    scenario = Scenario.from_toml(EDGE)
    key = "store.consistency"
    levels_of_key = {level: {key: level} for level in ("quorum", "all")}
    found = compare(scenario, seeds=3, vary={key: levels_of_key})
    assert found.winners[0].choice == "quorum"
    assert caution(found, lambda levels: scenario.replace({key: levels[key]})) == ""


def test_levels_of_data_centres_promise_within_their_own() -> None:
    store = replace(
        the_store(Scenario.from_toml(EDGE).plan),
        placement=NetworkTopologyPlacement(factors=(3, 0, 2)),
    )
    local = replace(store, write_level="local_quorum", read_level="local_one")
    assert promise_of(local) == Promise(2, 2, 1)
    whole = replace(store, write_level="quorum", read_level="one")
    assert promise_of(whole) == Promise(5, 3, 1)
