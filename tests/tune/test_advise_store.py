"""Advice on a store: what is asked is kept, and what is told follows from the runs."""

from __future__ import annotations

from itertools import product

import pytest

from sojourn.scenario import Scenario
from sojourn.tune.advise_store import AdviceError, Asked, advise, candidates, unavailable

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


def test_what_is_asked_decides_who_is_compared() -> None:
    assert candidates(3, Asked(survive=0)) == [
        (1, "quorum"), (2, "one"), (2, "quorum"), (3, "one"), (3, "quorum"), (3, "all")
    ]  # fmt: skip
    assert candidates(3, Asked(survive=1)) == [(2, "quorum"), (3, "quorum"), (3, "all")]
    assert candidates(3, Asked(survive=1, unavailable=0.001)) == [(3, "quorum")]


def test_the_advice_is_the_order_of_the_runs() -> None:
    scenario = Scenario.from_toml(EDGE)
    seen: list[tuple[int, int]] = []
    found = advise(scenario, Asked(seeds=4), report=lambda *at: seen.append(at))
    assert [(c.replication, c.level) for c in found] == [(3, "quorum"), (2, "quorum"), (3, "all")]
    assert [c.best for c in found] == [True, False, False]
    assert (found[0].copies, found[0].reads, found[0].failed) == (2, 2, 0)
    assert seen[-1] == (12, 12)
    run = scenario.replace({"store.replication": 2}).run(seed=2)
    of_two = [
        scenario.replace({"store.replication": 2}).run(seed=s).metrics["store.latency_mean"]
        for s in range(1, 5)
    ]
    assert run.metrics["store.latency_mean"] in of_two
    assert found[1].latency["mean"].estimate == pytest.approx(sum(of_two) / 4)
    assert all(c.p < 0.05 for c in found[1:])


def test_what_cannot_be_answered_is_told() -> None:
    scenario = Scenario.from_toml(EDGE)
    with pytest.raises(AdviceError, match="survives the loss of 3"):
        advise(scenario, Asked(survive=3))
    flows = EDGE.partition("[store]")[0] + (
        '[[flows]]\nfrom = "node1"\nto = "node2"\napp = "bulk"\n'
    )
    with pytest.raises(AdviceError, match="no \\[store\\]"):
        advise(Scenario.from_toml(flows), Asked())
