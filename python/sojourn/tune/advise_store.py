"""Recommends replication factors and consistency levels for a store, by simulation.

Candidates are all replication factors and pairs of levels that meet the requirements. Of the read
levels with which a read certainly sees a write, only the lowest is a candidate. With several data
centres, replicas are equally many in each, and a read must see the writes of its own data centre;
levels with which it sees all writes are candidates too. If each has a single node, so are fewer
replicas, of which a record's place on the ring decides. All candidates are simulated with the same
seeds. A candidate counts as fast if the interval of its latency's ratio to the least one is wholly
below 1.1, so noise makes no candidate fast. Of the fast candidates, the one with the fewest
replicas is recommended. Undecided candidates with fewer replicas are first run with more seeds: the
number doubles, and the error probability of the intervals is halved at each look, so that all looks
together keep it. The probability that too few replicas are up is computed: nodes are up
independently with the same probability.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from math import exp, isnan, log
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from sojourn import encode
from sojourn.data import Object
from sojourn.plan.queries import store_in, the_store
from sojourn.plan.store import Store
from sojourn.scenario import Scenario
from sojourn.stats import Gap, Interval, gaps, holm, mean_of_runs, paired_difference
from sojourn.stats.promises import Promise, levels_of, plural, promises, unavailable
from sojourn.stats.quorum import phi
from sojourn.stats.sites import Sites
from sojourn.study.errors import StudyError
from sojourn.study.machine import cores
from sojourn.tune.settings import Asked, By

MEASURES: tuple[By, ...] = ("mean", "p95", "p99")
Floats = npt.NDArray[np.float64]
Figures: TypeAlias = Mapping[str, float | str]
"""Metrics of a run of a store, by name without the store's name."""
ALPHA = 0.05
"""Probability that any interval of a ratio to the fastest candidate misses it, at any look."""
MOST_SEEDS = 160
"""Largest number of seeds of a choice, unless the user states another."""
EQUIVALENT = 1.1
"""Ratio to the latency of the fastest candidate below which a candidate counts as fast."""
MOST_EACH = 5
"""Largest replication factor of a data centre, if there are several."""
READS = 0.5
"""Share of reads (as in YCSB's workload A) if a scenario's workload has no reads."""
ACKNOWLEDGED = 0.99
"""Minimum number of acknowledged requests, as a share of the largest number of any candidate.

Candidates with fewer acknowledged requests are excluded.
"""
STALE_AT_ONCE = "stale_0ms"
STALE_LATER = "stale_100ms"


class AdviceError(StudyError):
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
    sites: Sites | None = None
    """Guarantees with several data centres; `None` with one."""
    names: tuple[str, ...] = ()
    """Names of the data centres, if each has its own number of replicas."""

    @property
    def factors(self) -> dict[str, int]:
        """Returns the number of replicas by data centre; empty with one data centre."""
        if self.sites is None or not self.names:
            return {}
        return dict(zip(self.names, self.sites.replicas, strict=True))

    def unavailable(self, nodes: int, up: float) -> float:
        """Returns the probability that too few replicas are up for a request."""
        if self.sites is not None:
            return max(self.sites.unavailable(x, up) for x in (self.write_level, self.read_level))
        p = self.promise
        return max(unavailable(nodes, p.replicas, count, up) for count in (p.writes, p.reads))

    @property
    def changes(self) -> Object:
        """Returns the changes of a scenario that give its store these settings."""
        return {
            "store.replication": {**self.factors} or self.promise.replicas,
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
    requests: int
    """Number of requests in all runs."""
    phi: float
    """Share of a coordinator's messages whose answers the coordinator needs for a write."""
    best: bool = False
    """Whether the candidate counts as fast."""
    p: float = 1.0
    """P value of the comparison with the fastest candidate, with Holm's correction."""
    ratio: Interval | None = None
    """Latency divided by that of the fastest candidate; the intervals of all are simultaneous.

    `None` for the fastest candidate.
    """
    seeds: int | None = None
    """Approximate number of seeds that would decide whether the candidate is fast.

    `None` if this is decided or the number is unknown.
    """
    decided: bool = True
    """Whether it is decided if the candidate is fast."""
    factors: Mapping[str, int] = field(default_factory=dict)
    """Number of replicas by data centre, if there are several."""
    sites: Sites | None = None
    """Guarantees with several data centres; `None` with one."""

    def to_dict(self) -> Object:
        """Returns the fields as data for JSON."""
        sites = None if self.sites is None else self.sites.guarantees()
        return encode.fields({**self.__dict__, "sites": sites})

    @property
    def factor(self) -> str:
        """Returns the replication factor in words, with several data centres of each."""
        counts = set(self.factors.values())
        if not counts:
            return str(self.replication)
        if len(counts) == 1:
            return f"{counts.pop()} in each data centre"
        return ", ".join(f"{n} in {name}" for name, n in self.factors.items())

    def __str__(self) -> str:
        levels = f"writes at {self.write_level.upper()}, reads at {self.read_level.upper()}"
        return f"RF {self.factor}, {levels}"


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
    scenario: Scenario | None = None
    """The scenario as simulated, with the recommended candidate."""
    coordinator: str = ""
    """Simulated policy for coordinators, if it is not the scenario's own."""
    clients: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Names of the clients in each data centre, if there are several."""

    @property
    def take(self) -> Choice:
        """Returns the recommended candidate: of the fast ones, that with the fewest replicas."""
        fast = [choice for choice in self.choices if choice.best]
        least = min(choice.replication for choice in fast)
        return next(choice for choice in fast if choice.replication == least)

    @property
    def undecided(self) -> list[Choice]:
        """Returns the candidates with fewer replicas than `take` that may be fast."""
        least = self.take.replication
        return [c for c in self.choices if not c.decided and c.replication < least]

    def stronger(self) -> list[tuple[str, Choice]]:
        """Returns the guarantees that `take` lacks, with the fastest candidate that has them."""
        found: dict[int, list[str]] = {}
        for purpose, has in _STRONGER.items():
            having = [i for i, c in enumerate(self.choices) if c.sites is not None and has(c.sites)]
            if having and self.choices.index(self.take) not in having:
                found.setdefault(having[0], []).append(purpose)
        return [(" and ".join(purposes), self.choices[i]) for i, purposes in found.items()]


_STRONGER: dict[str, Callable[[Sites], bool]] = {
    "to lose no acknowledged write with a data centre": lambda sites: sites.keeps(1),
    "for reads that see the writes of all data centres": lambda sites: sites.everywhere,
}
"""Guarantees with several data centres beyond the requirements."""


def candidates(nodes: int, asked: Asked) -> list[Candidate]:
    """Returns the candidates that meet all requirements except the simulated `stale`.

    A candidate whose reads see all acknowledged writes has the lowest such read level.
    """
    found: dict[tuple[int, int], Candidate] = {}
    kept = []
    for promise, write_level, read_level in promises(nodes):
        if promise.lacks(asked.survive, asked.down, overlap=asked.stale == 0):
            continue
        one = Candidate(promise, write_level, read_level)
        if one.unavailable(nodes, asked.node_up) > asked.unavailable:
            continue
        if promise.overlap:
            # Higher read levels are slower without seeing more writes; the first level is the
            # lowest.
            if (promise.replicas, promise.writes) in found:
                continue
            found[promise.replicas, promise.writes] = one
        kept.append(one)
    return kept


_WRITES = ("local_quorum", "local_one", "quorum", "each_quorum", "all")
"""Write levels with several data centres; of equal ones the first is used."""
_READS = ("local_one", "local_quorum", "quorum", "all")
"""Read levels with several data centres, the lowest first."""


def candidates_of_sites(store: Store, asked: Asked) -> list[Candidate]:
    """Returns the candidates of a store with several data centres, as `candidates`."""
    names = store.data_centres
    sizes = [sum(n.data_centre == site for n in store.nodes) for site in range(len(names))]
    clients = tuple(sorted({c.data_centre for c in store.clients}))
    for client in clients:
        if not sizes[client]:
            raise AdviceError(
                f"the data centre {names[client]} has clients but no node: put its clients into "
                "the data centre whose nodes they use"
            )
    found: dict[tuple[object, ...], Candidate] = {}
    for each in range(1, min(max(sizes), MOST_EACH) + 1):
        replicas = tuple(min(each, size) for size in sizes)
        for write_level in _WRITES:
            seen: set[str] = set()
            for read_level in _READS:
                sites = Sites(replicas, write_level, read_level, clients)
                if sites.lacks(asked.survive, asked.down, overlap=asked.stale == 0):
                    continue
                if not sites.keeps(asked.sites):
                    continue
                sees = "everywhere" if sites.everywhere else "own" if sites.own else read_level
                # Higher read levels are slower without seeing more writes.
                if sees in seen or (sees == "own" and "everywhere" in seen):
                    continue
                seen.add(sees)
                writes, reads = (
                    [sites.need(level, client) for client in clients]
                    for level in (write_level, read_level)
                )
                promise = Promise(sum(replicas), sites.copies, min(n.total for n in reads))
                one = Candidate(promise, write_level, read_level, sites, names)
                if one.unavailable(len(store.nodes), asked.node_up) <= asked.unavailable:
                    found.setdefault((replicas, *writes, *reads), one)
    if max(sizes) > 1:
        return list(found.values())
    # Of single nodes, some may hold a record, as in one data centre.
    alone = candidates(len(store.nodes), replace(asked, survive=max(asked.survive, asked.sites)))
    for one in alone:
        if (held := one.promise.replicas) < len(store.nodes):
            sites = Sites((1,) * held, one.write_level, one.read_level, (0,))
            found[one.write_level, one.read_level, held] = replace(one, sites=sites)
    return list(found.values())


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
    nodes, near = len(store.nodes), ""
    several = len({node.data_centre for node in store.nodes}) > 1
    if asked.sites and not several:
        raise AdviceError("--survive-sites requires a store with nodes in several data centres")
    listed = candidates_of_sites(store, asked) if several else candidates(nodes, asked)
    if not listed:
        lost = f", of {plural(asked.sites, 'data centre')}" if asked.sites else ""
        raise AdviceError(
            f"no choice on {plural(nodes, 'node')} meets all requirements: survive the loss of "
            f"{plural(asked.survive, 'node')}{lost}, work with {asked.down} down, be unavailable "
            f"with a probability of at most {asked.unavailable:g}, --stale {asked.stale:g}"
        )
    if several and not store.coordinator.endswith("dc-aware"):
        near = {"token-aware": "token-dc-aware"}.get(store.coordinator, "dc-aware")
        scenario = scenario.replace({"store.coordinator": near})
    made = [scenario.replace(one.changes) for one in listed]
    if asked.max_seeds is not None and asked.max_seeds < asked.seeds:
        raise AdviceError(
            f"the largest number of seeds (--max-seeds) must be at least {asked.seeds}, the number "
            f"of seeds; found {asked.max_seeds}"
        )
    metrics = runs_of(made, range(1, asked.seeds + 1), workers, report)
    seeds, alpha = asked.seeds, ALPHA / 2
    while True:
        kept = _kept(asked, metrics, several=several)
        if not kept:
            raise AdviceError(
                "at every level that meets the other requirements, the probability that a read "
                f"misses a write just acknowledged is above {asked.stale:g}"
            )
        order = ranked(nodes, asked, [listed[i] for i in kept], [metrics[i] for i in kept], alpha)
        advice = Advice(
            tuple(choice for _, choice in order),
            reads,
            assumed,
            () if several else tuple(unreadable(nodes, asked)),
            coordinator=near,
            clients=_clients(scenario, store) if several else {},
        )
        most = min(2 * seeds, asked.max_seeds or MOST_SEEDS)
        if not advice.undecided or most <= seeds:
            break
        again = [kept[i] for i, choice in order if choice.best or choice in advice.undecided]
        # A choice that was set aside at an earlier look has fewer runs.
        for done in sorted({len(metrics[i]) for i in again}):
            few = [i for i in again if len(metrics[i]) == done]
            added = runs_of([made[i] for i in few], range(done + 1, most + 1), workers, report)
            for i, runs in zip(few, added, strict=True):
                metrics[i] += runs
        seeds, alpha = most, alpha / 2
    taken = next(kept[i] for i, choice in order if choice is advice.take)
    return replace(advice, scenario=made[taken])


def _clients(scenario: Scenario, store: Store) -> dict[str, list[str]]:
    """Returns the names of the clients in each data centre."""
    found: dict[str, list[str]] = {name: [] for name in store.data_centres}
    for client in store.clients:
        name = scenario.plan.nodes[client.node].name
        found[store.data_centres[client.data_centre]].append(name)
    return found


def runs_of(
    made: Sequence[Scenario],
    seeds: range,
    workers: int | None,
    report: Callable[[int, int], None],
) -> list[list[Figures]]:
    """Returns the store's metrics in the runs of each scenario, in the order of seeds."""
    tasks = [(i, seed) for seed in seeds for i in range(len(made))]
    metrics: list[list[Figures]] = [[] for _ in made]
    name = the_store(made[0].plan).name

    def one(task: tuple[int, int]) -> Figures:
        found = made[task[0]].run(seed=task[1]).metrics
        return {key.removeprefix(f"{name}."): found[key] for key in found if key.startswith(name)}

    with ThreadPoolExecutor(workers or cores()) as pool:
        for done, (task, found) in enumerate(zip(tasks, pool.map(one, tasks), strict=True), 1):
            metrics[task[0]].append(found)
            report(done, len(tasks))
    return metrics


def _kept(asked: Asked, metrics: Sequence[Sequence[Figures]], *, several: bool) -> list[int]:
    """Returns the indices of candidates that are not too stale and acknowledge enough requests.

    With several data centres and without allowed staleness, the levels ensure that reads see the
    writes of their own data centre. Acknowledged requests are those of the seeds that all have.
    """
    counted = several and asked.stale == 0
    fresh = [
        i
        for i, runs in enumerate(metrics)
        if counted or not _mean(runs, STALE_AT_ONCE) > max(asked.stale, 1e-12)
    ]
    done = {i: sum(int(run["acknowledged"]) for run in metrics[i][: asked.seeds]) for i in fresh}
    return [
        i
        for i in fresh
        if done[i] >= ACKNOWLEDGED * max(done.values())
        and not any(isnan(float(run["latency_mean"])) for run in metrics[i])
    ]


def _mean(runs: Sequence[Figures], metric: str) -> float:
    """Returns the mean of a metric over the runs that have a value; NaN without values."""
    values = [float(run[metric]) for run in runs if not isnan(float(run[metric]))]
    return sum(values) / len(values) if values else float("nan")


def values(runs: Sequence[Figures], measure: By) -> list[float]:
    """Returns a measure of latency in seconds, by run."""
    return [float(run[f"latency_{measure}"]) for run in runs]


def logs(runs: Sequence[Figures], measure: By) -> Floats:
    """Returns the logarithms of a measure of latency, by run."""
    return np.asarray(np.log(values(runs, measure)), dtype=np.float64)


def ratio(gap: Gap) -> Interval:
    """Returns the ratio of two latencies, from the difference of their logarithms."""
    i = gap.interval
    return Interval(exp(i.estimate), exp(i.low), exp(i.high), i.level, i.n)


def ranked(
    nodes: int,
    asked: Asked,
    listed: Sequence[Candidate],
    metrics: Sequence[Sequence[Figures]],
    alpha: float = ALPHA,
) -> list[tuple[int, Choice]]:
    """Returns the candidates' numbers and results, the fastest first.

    Candidates are compared in the first runs that both have; `alpha` is the error probability.
    """
    found_logs = [logs(runs, asked.by) for runs in metrics]
    order = sorted(range(len(listed)), key=lambda i: float(found_logs[i].mean()))
    best, *rest = order
    most = {i: min(found_logs[i].size, found_logs[best].size) for i in rest}
    pairs = [(found_logs[i][:n], found_logs[best][:n]) for i, n in most.items()]
    found = dict(zip(rest, gaps(pairs, lambda _: log(EQUIVALENT), alpha), strict=True))
    tests = [paired_difference(x, y).p for x, y in pairs]
    p = dict(zip(rest, map(float, holm(tests)), strict=True)) if rest else {}
    choices = []
    for i in order:
        one, gap = listed[i], found.get(i)
        promise = one.promise
        requests = sum(int(run["requests"]) for run in metrics[i])
        choice = Choice(
            replication=promise.replicas,
            write_level=one.write_level,
            read_level=one.read_level,
            copies=promise.writes,
            unavailable=one.unavailable(nodes, asked.node_up),
            latency={m: mean_of_runs(values(metrics[i], m)) for m in MEASURES},
            stale={metric: _mean(metrics[i], metric) for metric in (STALE_AT_ONCE, STALE_LATER)},
            failed=requests - sum(int(run["acknowledged"]) for run in metrics[i]),
            requests=requests,
            phi=float(phi(nodes, promise.replicas, promise.writes)),
            best=gap is None or gap.where in ("within", "below"),
            p=p.get(i, 1.0),
            ratio=None if gap is None else ratio(gap),
            seeds=None if gap is None else gap.seeds,
            decided=gap is None or gap.where != "open",
            factors=one.factors,
            sites=one.sites,
        )
        choices.append((i, choice))
    return choices
