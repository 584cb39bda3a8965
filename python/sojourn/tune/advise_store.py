"""Recommends a replication factor and consistency levels for a store, by simulation.

Every replication factor is combined with every pair of levels for writes and reads that meets the
requirements. All candidates are simulated with the same seeds and the scenario's mix of reads and
writes. The fastest candidate is marked, and so are those whose latency is not significantly higher,
or higher by less than the smallest difference of interest. Of these the candidate with the fewest
copies is recommended. The probability that too few replicas are up for a request is computed, not
simulated: nodes are up independently with the same probability.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import isnan
from typing import Any, Literal

from sojourn.metrics import registry
from sojourn.plans import store_in
from sojourn.scenario import Scenario
from sojourn.stats import Interval, holm, mean_interval, paired_difference
from sojourn.stats.promises import Promise, levels_of, plural, promises, unavailable
from sojourn.stats.quorum import phi
from sojourn.study.machine import cores

By = Literal["mean", "p95", "p99"]
MEASURES: tuple[By, ...] = ("mean", "p95", "p99")
ALPHA = 0.05
READS = 0.5
"""Share of reads if a scenario's workload has none, as in YCSB's workload A."""
ACKNOWLEDGED = 0.99
"""Lowest share of acknowledged requests, relative to the candidate with the most; candidates below
are excluded.
"""
STALE_AT_ONCE = "stale_0ms"
STALE_LATER = "stale_100ms"


class AdviceError(ValueError):
    """A question that cannot be answered."""


@dataclass(frozen=True)
class Asked:
    """Requirements on a store."""

    survive: int = 1
    """Number of nodes whose loss an acknowledged write must survive."""
    down: int = 1
    """Number of a record's replicas that may be down while writes and reads succeed."""
    stale: float = 0.0
    """Highest probability that a read misses a write just acknowledged; 0: never."""
    reads: float | None = None
    """Share of reads; `None`: the scenario's, or `READS` if it has none."""
    node_up: float = 0.99
    """Probability that a node is up."""
    unavailable: float = 1.0
    """Highest probability that too few replicas are up for a request."""
    by: By = "p99"
    seeds: int = 10


@dataclass(frozen=True)
class Candidate:
    """A replication factor with the levels of writes and reads."""

    promise: Promise
    write_level: str
    read_level: str

    @property
    def changes(self) -> dict[str, Any]:
        """Changes that apply this candidate to a scenario's store."""
        return {
            "store.replication": self.promise.replicas,
            "store.write_consistency": self.write_level,
            "store.read_consistency": self.read_level,
        }


@dataclass(frozen=True)
class Choice:
    """A candidate with its expected properties."""

    replication: int
    write_level: str
    read_level: str
    copies: int
    """Replicas that certainly have an acknowledged write: as many as the write level waits for."""
    unavailable: float
    latency: dict[By, Interval]
    """Latency of reads and writes in their mix, in seconds; 95 % intervals over seeds."""
    stale: dict[str, float]
    """Probability that a read misses a write, by the metric's name."""
    failed: int
    """Requests of all runs that were not acknowledged."""
    phi: float
    best: bool = False
    """Whether it counts as fast as the fastest candidate."""
    p: float = 1.0
    """Holm-adjusted p value of the comparison with the fastest candidate."""

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields as data for JSON."""
        found = {
            name: {"estimate": i.estimate, "low": i.low, "high": i.high}
            for name, i in self.latency.items()
        }
        return {**self.__dict__, "latency": found}

    def __str__(self) -> str:
        levels = f"writes at {self.write_level.upper()}, reads at {self.read_level.upper()}"
        return f"RF {self.replication}, {levels}"


@dataclass(frozen=True)
class Advice:
    """The candidates that meet the requirements, fastest first, and the excluded levels."""

    choices: tuple[Choice, ...]
    reads: float
    """Simulated share of reads."""
    assumed: bool
    """Whether this share is the default because the scenario has no reads."""
    left_out: tuple[str, ...]
    """Write levels without a possible read level, with the reason."""

    @property
    def take(self) -> Choice:
        """The choice with the fewest copies among those that count as fast as the fastest."""
        fast = [choice for choice in self.choices if choice.best]
        least = min(choice.replication for choice in fast)
        return next(choice for choice in fast if choice.replication == least)


def candidates(nodes: int, asked: Asked) -> list[Candidate]:
    """Returns the candidates that meet the requirements that can be counted.

    If reads must see every acknowledged write, they use the lowest level that ensures this.
    """
    found: dict[tuple[int, int], Candidate] = {}
    kept = []
    for promise, write_level, read_level in promises(nodes):
        if promise.lacks(asked.survive, asked.down, overlap=asked.stale == 0):
            continue
        worst = max(
            unavailable(nodes, promise.replicas, count, asked.node_up)
            for count in (promise.writes, promise.reads)
        )
        if worst > asked.unavailable:
            continue
        one = Candidate(promise, write_level, read_level)
        if promise.overlap:
            # Higher read levels are slower and see no more; the first one is the lowest.
            if (promise.replicas, promise.writes) in found:
                continue
            found[promise.replicas, promise.writes] = one
        kept.append(one)
    return kept


def unreadable(nodes: int, asked: Asked) -> list[str]:
    """Returns the write levels that are excluded only because of their reads, with the reason."""
    told = []
    for replicas in range(1, nodes + 1):
        named = levels_of(replicas)
        for writes, level in named.items():
            sides = [Promise(replicas, writes, reads) for reads in named]
            lacks = [side.lacks(asked.survive, asked.down) for side in sides if side.overlap]
            if lacks and all(set(lack) == {"read-down"} for lack in lacks):
                least = sides[0].reads_needed
                asks = next(count for count in named if count >= least)
                told.append(
                    f"RF {replicas}, writes at {level.upper()}: a read must ask {least} "
                    f"replicas, so it needs {named[asks].upper()}, which fails with "
                    f"{plural(asked.down, 'node')} down"
                )
    return told


def mixed(scenario: Scenario, reads: float | None) -> tuple[Scenario, float, bool]:
    """Returns the scenario with its share of reads, this share, and whether it is assumed."""
    store = store_in(scenario.plan())
    if store is None:
        raise AdviceError("the scenario has no [store]: describe one, see `sojourn explain store`")
    work = store["workload"]
    own = sum(work[kind] for kind in ("read", "scan", "modify"))
    if reads is None and own > 0:
        return scenario, own, False
    share = READS if reads is None else reads
    writes = "update" if work["update"] > work["insert"] else "insert"
    workload = {"read": share, writes: 1 - share}
    kept = {kind: part for kind, part in workload.items() if part > 0}
    return scenario.replace({"store.workload": kept}), share, reads is None


def advise(
    scenario: Scenario,
    asked: Asked,
    workers: int | None = None,
    report: Callable[[int, int], None] = lambda _done, _all: None,
) -> Advice:
    """Simulates the candidates that meet the requirements, and ranks them.

    `report` receives the number of completed runs and of all runs.
    """
    scenario, reads, assumed = mixed(scenario, asked.reads)
    store = store_in(scenario.plan())
    assert store is not None
    if len(store["data_centres"]) > 1:
        raise AdviceError(
            "the store has several data centres: `sojourn compare FILE` ranks its consistency "
            "levels, and `--vary 'store.replication={a=3,b=3},{a=2,b=2}'` other numbers of "
            "replicas"
        )
    nodes, name = len(store["nodes"]), store["name"]
    listed = candidates(nodes, asked)
    if not listed:
        raise AdviceError(
            f"no choice on {plural(nodes, 'node')} meets all requirements: survive the loss of "
            f"{asked.survive}, work with {asked.down} down, be unavailable with a probability of "
            f"at most {asked.unavailable:g}"
        )
    made = [scenario.replace(one.changes) for one in listed]
    tasks = [(i, seed) for seed in range(1, asked.seeds + 1) for i in range(len(made))]
    metrics: list[list[dict[str, Any]]] = [[] for _ in made]

    def one(task: tuple[int, int]) -> dict[str, Any]:
        found = made[task[0]].run(seed=task[1]).metrics
        return {key.removeprefix(f"{name}."): found[key] for key in found if key.startswith(name)}

    with ThreadPoolExecutor(workers or cores()) as pool:
        for done, (task, found) in enumerate(zip(tasks, pool.map(one, tasks), strict=True), 1):
            metrics[task[0]].append(found)
            report(done, len(tasks))
    kept = _kept(asked, metrics)
    if not kept:
        raise AdviceError(
            "all levels that meet the other requirements have reads that miss a write just "
            f"acknowledged with a probability above {asked.stale:g}"
        )
    choices = _ranked(nodes, asked, [listed[i] for i in kept], [metrics[i] for i in kept])
    return Advice(tuple(choices), reads, assumed, tuple(unreadable(nodes, asked)))


def _kept(asked: Asked, metrics: Sequence[Sequence[dict[str, Any]]]) -> list[int]:
    """Returns the candidates that are fresh enough and acknowledge nearly all possible requests."""
    fresh = [
        i
        for i, runs in enumerate(metrics)
        if not _mean(runs, STALE_AT_ONCE) > max(asked.stale, 1e-12)
    ]
    done = {i: sum(int(run["acknowledged"]) for run in metrics[i]) for i in fresh}
    return [i for i in fresh if done[i] >= ACKNOWLEDGED * max(done.values())]


def _mean(runs: Sequence[dict[str, Any]], metric: str) -> float:
    """Returns a metric's mean over the runs that have it; NaN if none has."""
    values = [float(run[metric]) for run in runs if not isnan(float(run[metric]))]
    return sum(values) / len(values) if values else float("nan")


def _ranked(
    nodes: int,
    asked: Asked,
    listed: Sequence[Candidate],
    metrics: Sequence[Sequence[dict[str, Any]]],
) -> list[Choice]:
    def values(i: int, measure: By) -> list[float]:
        return [float(run[f"latency_{measure}"]) for run in metrics[i]]

    order = sorted(range(len(listed)), key=lambda i: sum(values(i, asked.by)) / len(metrics[i]))
    best, *rest = order
    least = sum(values(best, asked.by)) / len(metrics[best])
    smallest = registry()[f"latency_{asked.by}"].interest.at(least)
    tests = {i: paired_difference(values(i, asked.by), values(best, asked.by)) for i in rest}
    corrected = [float(x) for x in holm([tests[i].p for i in rest])] if rest else []
    p = dict(zip(rest, corrected, strict=True))
    choices = []
    for i in order:
        one = listed[i]
        promise = one.promise
        ended = sum(int(run["requests"]) - int(run["acknowledged"]) for run in metrics[i])
        fast = i == best or p[i] > ALPHA or tests[i].interval.high <= smallest
        choices.append(
            Choice(
                replication=promise.replicas,
                write_level=one.write_level,
                read_level=one.read_level,
                copies=promise.writes,
                unavailable=max(
                    unavailable(nodes, promise.replicas, count, asked.node_up)
                    for count in (promise.writes, promise.reads)
                ),
                latency={m: mean_interval(values(i, m)) for m in MEASURES},
                stale={
                    metric: _mean(metrics[i], metric) for metric in (STALE_AT_ONCE, STALE_LATER)
                },
                failed=ended,
                phi=float(phi(nodes, promise.replicas, promise.writes)),
                best=fast,
                p=p.get(i, 1.0),
            )
        )
    return choices
