"""Runs of the study of queue-length balancing, their sizes, and the tables derived from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import pandas as pd

from sojourn.papers.bench import runs_of
from sojourn.papers.outcome import Outcome
from sojourn.papers.part import Cells, Frames, Part, Size, estimate
from sojourn.papers.queue_lb import analysis, claims, scenarios
from sojourn.papers.queue_lb.scenarios import (
    CLIENTS,
    NETWORKS,
    PAPER,
    POLICIES,
    READINGS,
    TRANSPORTS,
    Reading,
)
from sojourn.study import Table

FACTORS = ("network", "transport", "clients", "policy")
BETWEEN = 11.0
"""Seconds that a real run takes in addition to its length, to start and end hosts, switch and
controller."""


@dataclass(frozen=True, kw_only=True)
class BalancerSize(Size):
    """Size of the study; lengths are in seconds."""

    seconds: float
    """Length of an iperf."""
    networks: tuple[str, ...] = tuple(network.name for network in NETWORKS)
    transports: tuple[str, ...] = TRANSPORTS
    clients: tuple[int, ...] = CLIENTS
    policies: tuple[str, ...] = tuple(POLICIES)
    rounds: int | None = None
    """Rounds of a run; `None` for the paper's number.

    With another number, claims on the paper's ANOVA are not judged.
    """
    readings: tuple[str, ...] = ()
    """Names of the alternative readings to run."""
    reading_networks: tuple[str, ...] = ()
    """Names of the networks in which alternative readings are run."""
    reading_seconds: float = 0
    """Length of an iperf in alternative readings that do not state it."""
    reading_seeds: int = 0
    """Number of seeds in alternative readings."""
    reading_rounds: int = 1
    """Rounds of a run in alternative readings."""
    sweep: float = 0
    """Length of a run of the sweep over information age; 0 omits both sweeps."""
    sweep_seeds: int = 0
    """Number of seeds in both sweeps."""

    @property
    def cells(self) -> list[tuple[str, str, int]]:
        """Returns all combinations of network, transport and number of clients."""
        return [(n, t, c) for n in self.networks for t in self.transports for c in self.clients]

    @property
    def runs(self) -> int:
        """Returns the number of runs in the main reading."""
        return len(self.cells) * len(self.policies) * self.seeds

    @property
    def length(self) -> float:
        """Returns the approximate duration of all real runs in sequence, in seconds."""
        one = sum(
            scenarios.begin(
                (self.rounds or scenarios.ROUNDS[clients, transport]) + 1, 1, clients, self.seconds
            )
            + BETWEEN
            for _, transport, clients in self.cells
        )
        return float(one * len(self.policies) * self.seeds)


Results = Outcome[BalancerSize]
"""Results of this study."""

FULL = BalancerSize(
    seconds=60, seeds=10, readings=tuple(READINGS),
    reading_networks=tuple(network.name for network in NETWORKS), reading_seconds=20,
    reading_seeds=8, reading_rounds=2, sweep=120, sweep_seeds=10,
)  # fmt: skip
#: The quick size takes at most three minutes on two idle cores. In the main reading, starts
#: are at least 1.03 s apart, which is more than QTM's period of 1 s.
QUICK = BalancerSize(
    seconds=18, seeds=5, rounds=1, policies=tuple(PAPER), readings=tuple(READINGS),
    reading_networks=("unequal",), reading_seconds=18, reading_seeds=4,
    sweep=20, sweep_seeds=3,
)  # fmt: skip
#: A third of the paper's length of an iperf.
QUARTER = replace(FULL, seconds=20, seeds=6, reading_seeds=5, sweep=60, sweep_seeds=5)
REAL_FULL = BalancerSize(seconds=18, seeds=8, policies=tuple(PAPER), rounds=2)
#: The quick real runs take about a quarter of an hour together.
REAL_QUICK = BalancerSize(
    seconds=18, seeds=2, networks=("unequal",), clients=(4,), rounds=1, policies=tuple(PAPER)
)


def lasting(size: BalancerSize) -> str:
    """Describes the number of real runs and their estimated duration."""
    return estimate(f"{size.runs} real runs", size.length)


#: Metrics that are stored for each run. With all metrics of each client's link, a table would have
#: thousands of columns.
METRICS = (
    *("utilisation", "loss", "udp_loss", "goodput", "udp_goodput", "sojourn_*", "queue_mean"),
    *("backlog_mean", "lb.*", "transfers.fct_*", "transfers.finished", "transfers.unfinished"),
)
#: Metrics, in addition to throughput and fairness, in the table that judges the claims.
_MEASURED = (
    *("utilisation", "loss", "sojourn_mean", "sojourn_p99", "lb.misplaced", "lb.decision_mean"),
    *("lb.choices_repeated", "lb.excess_wait_mean", "lb.age_mean"),
)
#: Policies of the sweep over the time between two starts; `SPACINGS` has the times in seconds.
_SPACED = ("random", "RR", "LBW", "IQLB", "QTM")
SPACINGS = (0.1, 0.3, 1.0, 3.0)
_NETWORK = {network.name: network for network in NETWORKS}


def cells_of(size: BalancerSize) -> Cells:
    """Returns the cells of the main reading: every network, transport, clients and policy."""
    return _cells(size.cells, size.policies, size.seconds, scenarios.MAIN, size.rounds)


def reading_of(size: BalancerSize, name: str, network: str) -> tuple[float, Cells]:
    """Returns, for an alternative reading and a network, an iperf's seconds and the cells."""
    reading = READINGS[name]
    seconds = reading.seconds or size.reading_seconds
    listed = [(network, t, c) for t in reading.transports for c in size.clients]
    return seconds, _cells(listed, tuple(PAPER), seconds, reading, size.reading_rounds)


def _cells(
    listed: Sequence[tuple[str, str, int]], policies: tuple[str, ...], seconds: float,
    reading: Reading, rounds: int | None,
) -> Cells:  # fmt: skip
    return [
        (
            dict(zip(FACTORS, (network, transport, clients, name), strict=True)),
            scenarios.iperf(
                _NETWORK[network], transport, clients, POLICIES[name], seconds, reading, rounds
            ),
        )
        for network, transport, clients in listed
        for name in policies
    ]


def spacings_of() -> Cells:
    """Returns the cells of the sweep over the time between two starts.

    The cells have 10 UDP clients and unequal ports.
    """
    return [
        (
            {"apart": apart, "policy": name},
            scenarios.iperf(
                _NETWORK["unequal"], "UDP", 10, POLICIES[name], apart * scenarios.AT_ONCE, rounds=1
            ),
        )
        for apart in SPACINGS
        for name in _SPACED
    ]


def ages_of(size: BalancerSize) -> Cells:
    """Returns the cells of the sweep over information age."""
    return [
        ({"policy": name, "age": age}, scenarios.arrivals(words, size.sweep))
        for name, policy in scenarios.AGEING.items()
        for age in scenarios.AGES
        if (words := scenarios.aged(policy, age)) is not None
    ]


_GROUP = r"round(?P<round>\d+)-client(?P<number>\d+)"


def pooled_of(
    table: Table, seconds: float | None = None, reading: Reading = scenarios.MAIN
) -> pd.DataFrame:
    """Returns the throughput of each iperf in bit/s: a row for each run, round and client.

    `seconds` is an iperf's length; by default it follows from the time between two starts.
    """
    parts = []
    for levels, run in runs_of(table):
        flows = run.table("flows")
        flows = flows.join(flows["group"].str.extract(_GROUP).astype(float)).dropna(
            subset=["round"]
        )
        one = flows.groupby(["round", "number"], as_index=False).agg(
            client=("from", "first"), server=("to", "last"),
            start=("start", "min"), bytes=("bytes", "sum"),
        )  # fmt: skip
        length = seconds or float(levels["apart"]) * scenarios.AT_ONCE
        first = scenarios.begin(
            one["round"], one["number"], len(set(one["number"])), length, reading
        )
        labels = {name: one[name] for name in ("round", "client", "server")}
        throughput = one["bytes"] * 8 / (first + length - one["start"])
        parts.append(pd.DataFrame({**levels, "seed": run.seed, **labels, "throughput": throughput}))
    return pd.concat(parts, ignore_index=True)


def log_f(pooled: pd.DataFrame) -> pd.DataFrame:
    """Returns the logarithm of F over its critical value in the paper's ANOVA, by cell and seed."""
    keys = ["network", "transport", "clients", "seed"]
    rows = []
    for levels, part in pooled.groupby(keys, sort=False):
        labels = dict(zip(keys, levels, strict=True))
        for name, policies in analysis.SETS.items():
            if set(policies) <= set(part["policy"]):
                table, critical = analysis.anova(part, policies)
                rows.append({**labels, "experiment": name, "log_f": math.log(table.f / critical)})
    return pd.DataFrame(rows, columns=[*keys, "experiment", "log_f"])


def _iperf(seconds: float, reading: Reading = scenarios.MAIN) -> Callable[[Table], Frames]:
    """Returns the function that derives the tables of runs with iperfs of `seconds`.

    Table `""` has a row for each run, with the mean and the fairness of the throughputs, and
    metrics of the run. Table `pooled` has the throughputs of iperfs, `log_f` the paper's ANOVA.
    """

    def frames(table: Table) -> Frames:
        pooled, keys = pooled_of(table, seconds, reading), [*FACTORS, "seed"]
        means = pooled.groupby(keys, sort=False, as_index=False)["throughput"].mean()
        fairness = pooled.groupby([*keys, "round"], sort=False)["throughput"].agg(
            lambda x: float((x.sum() ** 2) / (len(x) * (x**2).sum())) if (x > 0).any() else 1.0
        )
        jain = fairness.groupby(keys, sort=False).mean().rename("fairness").reset_index()
        wanted = [column for column in _MEASURED if column in table.frame]
        whole = means.merge(jain, on=keys).merge(table.frame[[*keys, *wanted]], on=keys)
        return {"": whole, "pooled": pooled, "log_f": log_f(pooled)}

    return frames


def _spaced(table: Table) -> Frames:
    """Returns the mean throughput of the clients of each run."""
    groups = pooled_of(table).groupby([*table.factors, "seed"], sort=False)
    return {"": groups["throughput"].mean().reset_index()}


def parts(size: BalancerSize) -> Iterator[Part]:
    """Yields the main reading, the other readings, and the two sweeps."""
    part = partial(Part, metrics=METRICS)
    yield part(
        name="iperf", title="iperf through the balancer", cells=cells_of(size),
        frames=_iperf(size.seconds), tables=("flows",),
        claims=claims.made(size.networks, anova=size.rounds is None),
    )  # fmt: skip
    for name, network in product(size.readings, size.reading_networks):
        reading = READINGS[name]
        seconds, cells = reading_of(size, name, network)
        yield part(
            name=f"{name}-{network}", title=f"{name}, {network} ports", cells=cells,
            seeds=size.reading_seeds, frames=_iperf(seconds, reading), tables=("flows",),
            claims=claims.made((network,), reading.transports, anova=False),
            reading=f"{name}, {network}",
        )  # fmt: skip
    if size.sweep:
        swept = partial(part, seeds=size.sweep_seeds)
        yield swept(
            name="spacings", title="time between two starts", cells=spacings_of(), frames=_spaced,
            tables=("flows",),
        )  # fmt: skip
        yield swept(name="ages", title="age of information", cells=ages_of(size), tables=())
