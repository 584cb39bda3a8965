"""Recommends a replication factor and consistency levels for a store, by simulation.

Candidates are all replication factors and pairs of levels that meet the requirements. Of the read
levels with which a read certainly sees a write, only the lowest is a candidate. All candidates are
simulated with the same seeds. A candidate counts as fast if its latency is not significantly higher
than the least one, or if the interval of the difference is below the smallest difference of
interest. Of the fast candidates, the one with the fewest replicas is recommended. The probability
that too few replicas are up is computed: nodes are up independently with the same probability.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import isnan
from typing import TypeAlias

from sojourn.data import Object
from sojourn.metrics import registry
from sojourn.plan.queries import store_in, the_store
from sojourn.scenario import Scenario
from sojourn.stats import Interval, holm, mean_of_runs, paired_difference
from sojourn.stats.promises import Promise, levels_of, plural, promises, unavailable
from sojourn.stats.quorum import phi
from sojourn.study.machine import cores
from sojourn.tune.settings import Asked, By

MEASURES: tuple[By, ...] = ("mean", "p95", "p99")
Figures: TypeAlias = Mapping[str, float | str]
"""Metrics of a run of a store, by name without the store's name."""
ALPHA = 0.05
"""Significance level of the comparisons with the fastest candidate, with Holm's correction."""
READS = 0.5
"""Share of reads (as in YCSB's workload A) if a scenario's workload has no reads."""
ACKNOWLEDGED = 0.99
"""Minimum number of acknowledged requests, as a share of the largest number of any candidate.

Candidates with fewer acknowledged requests are excluded.
"""
STALE_AT_ONCE = "stale_0ms"
STALE_LATER = "stale_100ms"


class AdviceError(ValueError):
    """No recommendation is possible: the scenario is unsuitable, or no candidate is left."""


@dataclass(frozen=True)
class Candidate:
    """A replication factor with a write level and a read level."""

    promise: Promise
    """Number of replicas, and numbers of answers that the levels require."""
    write_level: str
    """Consistency level of writes."""
    read_level: str
    """Consistency level of reads."""

    @property
    def changes(self) -> Object:
        """Returns the changes of a scenario that give its store these settings."""
        return {
            "store.replication": self.promise.replicas,
            "store.write_consistency": self.write_level,
            "store.read_consistency": self.read_level,
        }


@dataclass(frozen=True)
class Choice:
    """A candidate with the results of its simulation."""

    replication: int
    """Number of replicas of a record."""
    write_level: str
    """Consistency level of writes."""
    read_level: str
    """Consistency level of reads."""
    copies: int
    """Number of replicas that certainly have an acknowledged write."""
    unavailable: float
    """Probability that too few replicas are up for a request."""
    latency: dict[By, Interval]
    """Latency of all requests in seconds, by measure; 95 % intervals over seeds."""
    stale: dict[str, float]
    """Probability that a read misses an acknowledged write, by metric."""
    failed: int
    """Number of requests that were not acknowledged, in all runs."""
    phi: float
    """Share of a coordinator's messages whose answers the coordinator needs for a write."""
    best: bool = False
    """Whether the candidate counts as fast."""
    p: float = 1.0
    """P value of the comparison with the fastest candidate, with Holm's correction."""

    def to_dict(self) -> Object:
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
    """The recommendation with all candidates that meet the requirements."""

    choices: tuple[Choice, ...]
    """Candidates by latency, the fastest first."""
    reads: float
    """Simulated share of reads."""
    assumed: bool
    """Whether `reads` is the default `READS`, because the scenario has no reads."""
    left_out: tuple[str, ...]
    """Descriptions of write levels for which no read level meets the requirements."""

    @property
    def take(self) -> Choice:
        """Returns the recommended candidate: of the fast ones, that with the fewest replicas."""
        fast = [choice for choice in self.choices if choice.best]
        least = min(choice.replication for choice in fast)
        return next(choice for choice in fast if choice.replication == least)


def candidates(nodes: int, asked: Asked) -> list[Candidate]:
    """Returns the candidates that meet all requirements except the simulated `stale`.

    A candidate whose reads see all acknowledged writes has the lowest such read level.
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
            # Higher read levels are slower without seeing more writes; the first level is the
            # lowest.
            if (promise.replicas, promise.writes) in found:
                continue
            found[promise.replicas, promise.writes] = one
        kept.append(one)
    return kept


def unreadable(nodes: int, asked: Asked) -> list[str]:
    """Returns descriptions of write levels that are excluded only because no read level fits."""
    reasons = []
    for replicas in range(1, nodes + 1):
        named = levels_of(replicas)
        for writes, level in named.items():
            sides = [Promise(replicas, writes, reads) for reads in named]
            lacks = [side.lacks(asked.survive, asked.down) for side in sides if side.overlap]
            if lacks and all(set(lack) == {"read-down"} for lack in lacks):
                least = sides[0].reads_needed
                asks = next(count for count in named if count >= least)
                reasons.append(
                    f"RF {replicas}, writes at {level.upper()}: a read must ask {least} "
                    f"replicas, so it needs {named[asks].upper()}, which fails with "
                    f"{plural(asked.down, 'node')} down"
                )
    return reasons


def mixed(scenario: Scenario, reads: float | None) -> tuple[Scenario, float, bool]:
    """Returns the scenario with the share `reads` of reads, the share, and whether it is assumed.

    If `reads` is `None`, the share is that of the scenario, or `READS` if it has no reads.
    """
    store = store_in(scenario.plan)
    if store is None:
        raise AdviceError("the scenario has no [store]: describe one, see `sojourn explain store`")
    work = store.workload
    own = work.read + work.scan + work.modify
    if reads is None and own > 0:
        return scenario, own, False
    share = READS if reads is None else reads
    writes = "update" if work.update > work.insert else "insert"
    workload = {"read": share, writes: 1 - share}
    kept = {kind: part for kind, part in workload.items() if part > 0}
    return scenario.replace({"store.workload": kept}), share, reads is None


def advise(
    scenario: Scenario,
    asked: Asked,
    workers: int | None = None,
    report: Callable[[int, int], None] = lambda _done, _all: None,
) -> Advice:
    """Simulates the candidates that meet the requirements, and ranks them by latency.

    `report` receives the number of completed runs and the number of all runs. Raises `AdviceError`
    if the scenario is unsuitable or no candidate meets the requirements.
    """
    scenario, reads, assumed = mixed(scenario, asked.reads)
    store = the_store(scenario.plan)
    if len(store.data_centres) > 1:
        raise AdviceError(
            "the store has several data centres: `sojourn compare FILE` ranks its consistency "
            "levels; add `--vary 'store.replication={a=3,b=3},{a=2,b=2}'` to compare numbers of "
            "replicas"
        )
    nodes, name = len(store.nodes), store.name
    listed = candidates(nodes, asked)
    if not listed:
        raise AdviceError(
            f"no choice on {plural(nodes, 'node')} meets all requirements: survive the loss of "
            f"{plural(asked.survive, 'node')}, work with {asked.down} down, be unavailable with a "
            f"probability of at most {asked.unavailable:g}, --stale {asked.stale:g}"
        )
    made = [scenario.replace(one.changes) for one in listed]
    tasks = [(i, seed) for seed in range(1, asked.seeds + 1) for i in range(len(made))]
    metrics: list[list[Figures]] = [[] for _ in made]

    def one(task: tuple[int, int]) -> Figures:
        found = made[task[0]].run(seed=task[1]).metrics
        return {key.removeprefix(f"{name}."): found[key] for key in found if key.startswith(name)}

    with ThreadPoolExecutor(workers or cores()) as pool:
        for done, (task, found) in enumerate(zip(tasks, pool.map(one, tasks), strict=True), 1):
            metrics[task[0]].append(found)
            report(done, len(tasks))
    kept = _kept(asked, metrics)
    if not kept:
        raise AdviceError(
            "at every level that meets the other requirements, the probability that a read misses "
            f"a write just acknowledged is above {asked.stale:g}"
        )
    choices = _ranked(nodes, asked, [listed[i] for i in kept], [metrics[i] for i in kept])
    return Advice(tuple(choices), reads, assumed, tuple(unreadable(nodes, asked)))


def _kept(asked: Asked, metrics: Sequence[Sequence[Figures]]) -> list[int]:
    """Returns the indices of candidates that are not too stale and acknowledge enough requests."""
    fresh = [
        i
        for i, runs in enumerate(metrics)
        if not _mean(runs, STALE_AT_ONCE) > max(asked.stale, 1e-12)
    ]
    done = {i: sum(int(run["acknowledged"]) for run in metrics[i]) for i in fresh}
    return [i for i in fresh if done[i] >= ACKNOWLEDGED * max(done.values())]


def _mean(runs: Sequence[Figures], metric: str) -> float:
    """Returns the mean of a metric over the runs that have a value; NaN without values."""
    values = [float(run[metric]) for run in runs if not isnan(float(run[metric]))]
    return sum(values) / len(values) if values else float("nan")


def _ranked(
    nodes: int,
    asked: Asked,
    listed: Sequence[Candidate],
    metrics: Sequence[Sequence[Figures]],
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
                latency={m: mean_of_runs(values(i, m)) for m in MEASURES},
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
