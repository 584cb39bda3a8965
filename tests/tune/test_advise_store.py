"""Advice on a store meets the requirements of the question and follows from the runs."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

from sojourn.cli.advise import of_sites, on_tail, show
from sojourn.metrics import percent
from sojourn.plan.queries import the_store
from sojourn.plan.replication import NetworkTopologyPlacement
from sojourn.scenario import Scenario
from sojourn.stats import Interval
from sojourn.stats.promises import Promise, unavailable
from sojourn.stats.sites import Sites
from sojourn.study import compare
from sojourn.study.durability import caution, sites_of
from sojourn.tune import advise_store
from sojourn.tune.advise_store import (
    Advice,
    AdviceError,
    Candidate,
    Choice,
    Figures,
    advise,
    candidates,
    candidates_of_sites,
    mixed,
    ranked,
    unreadable,
)
from sojourn.tune.settings import Asked, By
from sojourn.tune.tail import remedies

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
    up, total, failing = 0.9, 0.0, 0.0
    for states in product((0, 1), repeat=nodes):
        if any(states):  # the client finds a coordinator
            weight = up ** sum(states) * (1 - up) ** (nodes - sum(states))
            total += weight
            failing += weight * (sum(states[:rf]) < count)
    assert unavailable(nodes, rf, count, up) == pytest.approx(failing / total)


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
        return Choice(rf, "quorum", "quorum", 2, 0.0, latency, {}, 0, 1, 0.5, best)

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


def places(scenario: Scenario) -> Scenario:
    """The scenario with each node in a data centre, and the client at the first."""
    sites = {f"d{n}": [f"node{n}"] for n in (1, 2, 3)}
    sites["d1"].append("client1")
    return scenario.replace(
        {"store.data_centres": sites, "store.replication": dict.fromkeys(sites, 1)}
    )


def test_several_data_centres_get_advice() -> None:
    """With a node in each, a local quorum is one node; the advice is the one of `compare`."""
    scenario = places(Scenario.from_toml(EDGE))
    key = "store.consistency"
    found = compare(scenario, seeds=2, vary={key: ["local_quorum", "quorum"]})
    said = caution(found, lambda levels: scenario.replace({key: levels[key]}))
    assert "Take quorum" in said
    assert "`sojourn advise store` also" in said
    advice = advise(scenario, Asked(seeds=2))
    assert (advice.take.write_level, advice.take.read_level) == ("quorum", "quorum")
    assert [c.replication for c in advice.choices] == [3]  # two replicas fail with one down
    assert advice.take.factors == {"d1": 1, "d2": 1, "d3": 1}
    assert str(advice.take) == "RF 1 in each data centre, writes at QUORUM, reads at QUORUM"
    assert advice.coordinator == "dc-aware"
    assert advice.clients == {"d1": ["client1"], "d2": [], "d3": []}
    assert advice.stronger() == []
    json.dumps(advice.take.to_dict(), allow_nan=False)


SITES = """
duration = "20s"
[topology]
template = "mesh"
nodes = 6
rate = "1gbit"
netem = "delay 250us"
sites = [["node1", "node2", "node3", "client1"], ["node4", "node5", "node6", "client2"]]
between = { rate = "1gbit", netem = "delay 25ms" }
clients = { hosts = 2 }
[store]
nodes = "nodes"
clients = "clients"
replication = { a = 3, b = 3 }
coordinator = "token-aware"
tokens = 16
workload = "ycsb-a"
every = "exp(20ms)"
[store.data_centres]
a = ["node1", "node2", "node3", "client1"]
b = ["node4", "node5", "node6", "client2"]
"""


def test_the_loss_of_a_data_centre_is_stated() -> None:
    """Local quorums are fast; the levels that lose nothing with a data centre are named."""
    scenario = Scenario.from_toml(SITES)
    advice = advise(scenario, Asked(seeds=3))
    take = advice.take
    assert (take.write_level, take.read_level) == ("local_quorum", "local_quorum")
    assert (take.factor, advice.coordinator) == ("3 in each data centre", "token-dc-aware")
    assert take.latency["p99"].estimate < 0.02
    [(purposes, stronger)] = advice.stronger()
    assert "lose no acknowledged write" in purposes
    assert "see the writes of all" in purposes
    assert (stronger.write_level, stronger.read_level) == ("each_quorum", "local_quorum")
    said = " ".join(of_sites(advice))
    assert "lost together with a data" in said
    assert "writes fail everywhere" in said
    assert "client2 in b" in said
    # A read in the other data centre misses the write for its way there; in its own never.
    assert take.stale["stale_0ms"] == pytest.approx(0.5, abs=0.05)
    assert take.stale["stale_100ms"] == 0.0
    assert take.to_dict()["sites"] == {
        "writes_kept": False,
        "writes_served": True,
        "reads_served": True,
        "reads_see_own_site": True,
        "reads_see_all_sites": False,
    }
    assert stronger.to_dict()["factors"] == {"a": 3, "b": 3}
    kept = advise(scenario, Asked(seeds=2, sites=1)).take
    assert (kept.write_level, kept.read_level) == ("each_quorum", "local_quorum")
    with pytest.raises(AdviceError, match="of 2 data centres"):
        advise(scenario, Asked(seeds=2, sites=2))
    with pytest.raises(AdviceError, match="several data centres"):
        advise(Scenario.from_toml(EDGE), Asked(sites=1))
    nowhere = {
        "store.data_centres.b": ["node4", "node5", "node6"],
        "store.data_centres.c": ["client2"],
        "store.replication": {"a": 3, "b": 3},
    }
    with pytest.raises(AdviceError, match="c has clients but"):
        advise(scenario.replace(nowhere), Asked())


def test_of_five_single_nodes_three_may_hold_a_record() -> None:
    text = EDGE.replace("nodes = 3", "nodes = 5").replace("loss 7.5%", "loss 1%")
    scenario = Scenario.from_toml(text)
    sites = {f"d{n}": [f"node{n}"] for n in range(1, 6)}
    sites["d1"].append("client1")
    scenario = scenario.replace(
        {"store.data_centres": sites, "store.replication": dict.fromkeys(sites, 1)}
    )
    listed = candidates_of_sites(the_store(scenario.plan), Asked())
    found = {(c.promise.replicas, c.write_level, c.read_level) for c in listed}
    assert {(3, "quorum", "quorum"), (5, "quorum", "quorum")} <= found
    strict = candidates_of_sites(the_store(scenario.plan), Asked(sites=2))
    assert min(c.promise.writes for c in strict) == 3
    advice = advise(scenario, Asked(seeds=2))
    json.dumps([c.to_dict() for c in advice.choices], allow_nan=False)
    assert advice.take.copies >= 2
    assert advice.stronger() == []


def answers(sites: Sites, level: str, client: int) -> list[frozenset[tuple[int, int]]]:
    """All sets of replicas whose answers let a request succeed, by trying."""
    replicas = [(s, i) for s, n in enumerate(sites.replicas) for i in range(n)]
    here = [r for r in replicas if r[0] == client]

    def quorum(n: int) -> int:
        return n // 2 + 1

    def enough(found: set[tuple[int, int]]) -> bool:
        own = len(found & set(here))
        match level:
            case "local_one":
                return own >= 1
            case "local_quorum":
                return own >= quorum(len(here))
            case "each_quorum":
                return all(
                    sum(r[0] == s for r in found) >= quorum(n)
                    for s, n in enumerate(sites.replicas)
                    if n
                )
            case "one":
                return bool(found)
            case "quorum":
                return len(found) >= quorum(len(replicas))
        return len(found) == len(replicas)

    every = (
        {r for r, chosen in zip(replicas, mask, strict=True) if chosen}
        for mask in product((0, 1), repeat=len(replicas))
    )
    return [frozenset(found) for found in every if enough(found)]


LEVELS = ("one", "local_one", "local_quorum", "each_quorum", "quorum", "all")


@pytest.mark.parametrize("replicas", [(1, 1, 1), (3,), (2, 3), (3, 3), (2, 1, 2), (3, 0, 2)])
def test_guarantees_of_data_centres_are_what_trying_gives(replicas: tuple[int, ...]) -> None:
    clients = tuple(s for s, n in enumerate(replicas) if n)
    for writes, reads in product(LEVELS, LEVELS):
        sites = Sites(replicas, writes, reads, clients)
        wrote = {c: answers(sites, writes, c) for c in clients}
        read = {c: answers(sites, reads, c) for c in clients}
        everything = [(s, i) for s in clients for i in range(replicas[s])]
        assert sites.copies == min(len(w) for c in clients for w in wrote[c])
        for a, b in product(clients, clients):
            meets = all(w & r for w in wrote[a] for r in read[b])
            assert sites.sees(a, b) == meets, (writes, reads, a, b)
        for down in (1, 2):
            works = all(
                any(not w & set(gone) for w in wrote[c])
                for c in clients
                for gone in combinations(everything, min(down, len(everything)))
            )
            assert sites.works(writes, down) == works, (writes, down)
        lost = [{r for r in everything if r[0] == s} for s in clients]
        assert sites.keeps(1) == all(w - gone for c in clients for w in wrote[c] for gone in lost)
        served = all(
            any(not w & gone for w in wrote[c])
            for s, gone in zip(clients, lost, strict=True)
            for c in clients
            if c != s
        )
        assert sites.serves(writes, 1) == served
        up = 0.9
        p = {
            c: sum(
                up ** len(alive) * (1 - up) ** (len(everything) - len(alive))
                for k in range(len(everything) + 1)
                for alive in combinations(everything, k)
                if not any(w <= set(alive) for w in wrote[c])
            )
            for c in clients[:1]
        }
        alone = Sites(replicas, writes, reads, clients[:1])
        assert alone.unavailable(writes, up) == pytest.approx(p[clients[0]], abs=1e-12)


def test_noise_is_not_rewarded() -> None:
    """W06: with one copy a p99 between 10 and 400 ms by chance: five seeds decide nothing."""
    text = EDGE.replace("delay 50ms loss 7.5%", "delay 20ms loss 0.5%").replace("1gbit", "50mbit")
    scenario = Scenario.from_toml(text).replace(
        {"store.workload": "ycsb-a", "store.requests": 500, "store.warmup": 50}
    )
    advice = advise(scenario, Asked(survive=0, down=0, stale=1.0, seeds=5))
    take = advice.take
    for choice in advice.choices:
        assert choice.best == (choice.ratio is None or choice.ratio.high <= 1.1)
    fastest = advice.choices[0].latency["p99"].estimate
    assert take.latency["p99"].estimate <= 1.1 * fastest
    assert not any(c.best for c in advice.choices if c.replication == 1)


LATENCIES = ("latency_mean", "latency_p95", "latency_p99")


@pytest.mark.parametrize(("near", "seeds"), [(1.0, 2), (1.02, 3), (1.25, 3), (1.5, 2)])
def test_fewer_copies_are_not_denied_for_lack_of_seeds(
    near: float, seeds: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three copies take `near` times as long as four: more seeds decide, or the limit is named."""
    medians = {3: near, 4: 1.0, 5: 2.0}
    made: list[range] = []

    def runs_of(scenarios: list[Scenario], more: range, *_: object) -> list[list[Figures]]:
        made.append(more)
        draw = np.random.default_rng(len(made))
        copies = [int(str(s.model.store.replication)) for s in scenarios if s.model.store]
        return [
            [
                dict.fromkeys(LATENCIES, medians[one] * draw.lognormal(0, 0.1))
                | {"requests": 9, "acknowledged": 9, "stale_0ms": 0.0, "stale_100ms": 0.0}
                for _ in more
            ]
            for one in copies
        ]

    monkeypatch.setattr(advise_store, "runs_of", runs_of)
    scenario = Scenario.from_toml(EDGE.replace("nodes = 3", "nodes = 5"))
    advice = advise(scenario, Asked(seeds=seeds))
    assert not advice.undecided
    assert advice.take.replication == (3 if near < 1.1 else 4)
    assert [n for more in made for n in more] == list(range(1, made[-1][-1] + 1))
    assert len(made) > 1
    made.clear()  # the same draws again
    asked = Asked(seeds=seeds, max_seeds=seeds)
    few = advise(scenario, asked)
    assert few.undecided
    show(few, asked, "")
    said = capsys.readouterr().out
    limit = "the limit (--max-seeds), whether within 10 %"
    assert f"Inconclusive with {seeds} seeds, {limit}: RF 3" in said
    assert "; it stores fewer copies." in said
    with pytest.raises(AdviceError, match="must be at least 6, the number of seeds; found 3"):
        advise(scenario, Asked(seeds=6, max_seeds=3))


def test_all_choices_are_compared_in_the_same_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five copies are set aside after two seeds, then lead: they get the seeds that they lack."""
    later = {3: (0.9, 1.3), 4: (1.2, 1.21), 5: (1.05, 1.06)}
    ran: dict[tuple[object, ...], list[int]] = {}

    def runs_of(scenarios: list[Scenario], more: range, *_: object) -> list[list[Figures]]:
        found: list[list[Figures]] = []
        for store in (s.model.store for s in scenarios if s.model.store):
            levels = store.replication, store.write_consistency, store.read_consistency
            ran.setdefault(levels, []).extend(more)
            copies = int(str(store.replication))
            found.append([])
            for seed in more:
                first = copies == 4 and seed <= 2
                latency = (1.0, 1.01)[seed % 2] if first else later[copies][seed % 2]
                answered = 0 if copies == 3 and seed > 8 else 9
                found[-1].append(
                    dict.fromkeys(LATENCIES, latency if answered else math.nan)
                    | {"requests": 9, "acknowledged": answered}
                    | {"stale_0ms": 0.0, "stale_100ms": 0.0}
                )
        return found

    monkeypatch.setattr(advise_store, "runs_of", runs_of)
    scenario = Scenario.from_toml(EDGE.replace("nodes = 3", "nodes = 5"))
    advice = advise(scenario, Asked(seeds=2))
    for seeds in ran.values():
        assert seeds == list(range(1, len(seeds) + 1))
    assert max(len(seeds) for levels, seeds in ran.items() if levels[0] == 5) > 2
    # In a later run three copies acknowledged nothing, so they are no choice.
    assert advice.take.replication > 3
    assert not any(math.isnan(c.latency["p99"].estimate) for c in advice.choices)


@pytest.mark.parametrize("spread", [0.0, 0.01, 0.3, 1.0])
def test_a_choice_counts_as_fast_only_for_certain(spread: float) -> None:
    """For random latencies: the ratio's whole interval is below 1.1."""
    for seed in range(10):
        draw = np.random.default_rng(seed)
        metrics = [
            [
                {
                    **dict.fromkeys(LATENCIES, float(m * draw.lognormal(0, spread))),
                    "requests": 10,
                    "acknowledged": 10,
                    "stale_0ms": 0.0,
                    "stale_100ms": 0.0,
                }
                for _ in range(5)
            ]
            for m in (0.1, 0.105, 0.5)
        ]
        listed = [Candidate(Promise(n, n, n), "all", "all") for n in (3, 2, 1)]
        found = [choice for _, choice in ranked(3, Asked(), listed, metrics)]
        assert found[0].ratio is None
        for choice in found[1:]:
            assert choice.ratio is not None
            assert choice.best == (choice.ratio.high <= 1.1)
            assert choice.decided == (choice.best or choice.ratio.low > 1.1)
        if spread <= 0.01:
            assert [c.best for c in found] == [True, True, False]
            assert Advice(tuple(found), 0.5, False, ()).take.replication == 2


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0 %"), (0.0123, "1.2 %"), (0.996, "99.6 %"), (1.0, "100 %"), (math.nan, "–")],
)
def test_probabilities_are_plain_numbers(share: float, text: str) -> None:
    assert percent(share) == text


def test_a_tail_of_timeouts_gets_its_remedies() -> None:
    scenario = Scenario.from_toml(EDGE.replace("delay 50ms loss 7.5%", "delay 1ms loss 2%"))
    asked = Asked(seeds=4)
    advice = advise(scenario, asked)
    assert advice.take.latency["p99"].estimate > 0.2
    found = {remedy.key: remedy for remedy in remedies(advice, asked)}
    assert set(found) == {"store.tcp", "store.speculative"}
    assert found["store.tcp"].helps
    assert found["store.tcp"].p99.estimate < 0.15
    assert "rto_min 50ms" in " ".join(on_tail(advice, list(found.values())))
    # Without loss there is no timeout to avoid.
    calm = Scenario.from_toml(EDGE.replace(" loss 7.5%", ""))
    assert remedies(advise(calm, asked), asked) == []
    assert on_tail(advice, []) == []


def test_durability_is_named_with_any_factors() -> None:
    """W06: with two factors the fastest choice kept an order on one node, without a word."""
    scenario = Scenario.from_toml(EDGE)
    factors = {"store.replication": [1, 3], "store.consistency": ["one", "quorum"]}
    found = compare(scenario, seeds=2, vary=factors)
    said = caution(found, lambda levels: scenario.replace(dict(levels)))
    assert "is on 1 node for" in said
    assert "Take" in said
    assert "the fastest choice that" in said
    timeouts = compare(
        scenario.replace({"store.consistency": "one"}),
        seeds=2,
        vary={"store.write_timeout": ["30s", "60s"]},
    )
    one = scenario.replace({"store.consistency": "one"})
    said = caution(timeouts, lambda levels: one.replace(dict(levels)))
    assert "on 1 node for certain" in said
    assert "compared choices" in said


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
    assert (sites_of(local).copies, sites_of(local).own) == (2, False)
    assert not sites_of(local).works("local_quorum", 1)  # of the two replicas at the third
    whole = replace(store, write_level="quorum", read_level="one")
    assert (sites_of(whole).copies, sites_of(whole).works("quorum", 2)) == (3, True)
