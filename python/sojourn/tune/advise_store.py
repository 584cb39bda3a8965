"""Which replication factor and consistency level a store should take, by simulation.

Every replication factor and consistency level that keeps what is asked for is simulated on the same
seeds. The best has the least latency; others that cannot be told from it, after Holm's correction,
share its place. How probable it is that a write finds too few replicas up is computed, not
simulated: each node is up with the same probability, by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import comb
from typing import Any, Literal

from sojourn.plans import store_in
from sojourn.scenario import Scenario
from sojourn.stats import Interval, holm, mean_interval, paired_difference
from sojourn.stats.quorum import needed, phi
from sojourn.study.machine import cores

By = Literal["mean", "p95", "p99"]
MEASURES: tuple[By, ...] = ("mean", "p95", "p99")
LEVELS = ("quorum", "one", "all", "two", "three")
ALPHA = 0.05


class AdviceError(ValueError):
    """What is asked cannot be answered."""


@dataclass(frozen=True)
class Asked:
    """What a store must keep."""

    survive: int = 1
    """An acknowledged write is still somewhere after the loss of so many nodes."""
    node_up: float = 0.99
    """The probability that a node is up."""
    unavailable: float = 1.0
    """The greatest probability that a write finds too few replicas up."""
    by: By = "mean"
    seeds: int = 10


@dataclass(frozen=True)
class Choice:
    """A replication factor and a consistency level, and what is to be expected of them."""

    replication: int
    level: str
    copies: int
    """Replicas that have an acknowledged write for certain: what the level waits for."""
    reads: int
    """Replicas that a read must ask to see every acknowledged write."""
    unavailable: float
    latency: dict[By, Interval]
    """In seconds, 95 % intervals over seeds."""
    failed: int
    """Requests of all runs that were not acknowledged."""
    phi: float
    best: bool = False
    p: float = 1.0
    """How surely it is slower than the best, by Holm: the p value."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        found = {
            name: {"estimate": i.estimate, "low": i.low, "high": i.high}
            for name, i in self.latency.items()
        }
        return {**self.__dict__, "latency": found}


def unavailable(nodes: int, replicas: int, count: int, up: float) -> float:
    """The probability that fewer than `count` of a key's replicas are up, its coordinator being up.

    The coordinator is one of them with probability replicas / nodes.
    """

    def too_few(n: int, wanted: int) -> float:
        return sum(comb(n, i) * up**i * (1 - up) ** (n - i) for i in range(max(wanted, 0)))

    inside = replicas / nodes
    return (1 - inside) * too_few(replicas, count) + inside * too_few(replicas - 1, count - 1)


def candidates(nodes: int, asked: Asked) -> list[tuple[int, str]]:
    """Replication factors and levels that keep what is asked; a count has one name."""
    found = []
    for rf in range(1, nodes + 1):
        counts: dict[int, str] = {}
        for level in LEVELS:
            if {"two": 2, "three": 3}.get(level, 1) <= rf:
                counts.setdefault(needed(level, rf), level)
        for count, level in sorted(counts.items()):
            if (
                count > asked.survive
                and unavailable(nodes, rf, count, asked.node_up) <= asked.unavailable
            ):
                found.append((rf, level))
    return found


def advise(
    scenario: Scenario,
    asked: Asked,
    workers: int | None = None,
    report: Callable[[int, int], None] = lambda _done, _all: None,
) -> list[Choice]:
    """The choices that keep what is asked, the best first.

    `report` is told how many runs are made of how many.
    """
    store = store_in(scenario.plan())
    if store is None:
        raise AdviceError("the scenario has no [store]: describe one, see `sojourn explain store`")
    if len(store["data_centres"]) > 1:
        raise AdviceError(
            "a store of several data centres: `sojourn compare FILE` ranks its consistency levels, "
            "and `--vary 'store.replication={a=3,b=3},{a=2,b=2}'` other numbers of replicas"
        )
    nodes, name = len(store["nodes"]), store["name"]
    listed = candidates(nodes, asked)
    if not listed:
        raise AdviceError(
            f"nothing on {nodes} nodes survives the loss of {asked.survive} and is unavailable "
            f"with a probability of at most {asked.unavailable:g}"
        )
    made = [
        scenario.replace(
            {
                "store.replication": rf,
                "store.consistency": level,
                "store.write_consistency": None,
                "store.read_consistency": None,
            }
        )
        for rf, level in listed
    ]
    tasks = [(i, seed) for seed in range(1, asked.seeds + 1) for i in range(len(made))]
    metrics: list[list[dict[str, Any]]] = [[] for _ in made]

    def one(task: tuple[int, int]) -> dict[str, Any]:
        found = made[task[0]].run(seed=task[1]).metrics
        return {key.removeprefix(f"{name}."): found[key] for key in found if key.startswith(name)}

    with ThreadPoolExecutor(workers or cores()) as pool:
        for done, (task, found) in enumerate(zip(tasks, pool.map(one, tasks), strict=True), 1):
            metrics[task[0]].append(found)
            report(done, len(tasks))
    return _ranked(nodes, asked, listed, metrics)


def _ranked(
    nodes: int,
    asked: Asked,
    listed: list[tuple[int, str]],
    metrics: list[list[dict[str, Any]]],
) -> list[Choice]:
    def values(i: int, measure: By) -> list[float]:
        return [float(run[f"latency_{measure}"]) for run in metrics[i]]

    order = sorted(range(len(listed)), key=lambda i: sum(values(i, asked.by)) / len(metrics[i]))
    best, *rest = order
    raw = [paired_difference(values(i, asked.by), values(best, asked.by)).p for i in rest]
    p = dict(zip(rest, (float(x) for x in holm(raw)), strict=True)) if rest else {}
    choices = []
    for i in order:
        rf, level = listed[i]
        count = needed(level, rf)
        ended = sum(int(run["requests"]) - int(run["acknowledged"]) for run in metrics[i])
        choices.append(
            Choice(
                replication=rf,
                level=level,
                copies=count,
                reads=rf - count + 1,
                unavailable=unavailable(nodes, rf, count, asked.node_up),
                latency={m: mean_interval(values(i, m)) for m in MEASURES},
                failed=ended,
                phi=float(phi(nodes, rf, level)),
                best=i == best or p[i] > ALPHA,
                p=p.get(i, 1.0),
            )
        )
    return choices
