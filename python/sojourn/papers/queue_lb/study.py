"""What is run, at which sizes, and the tables that follow from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from sojourn.papers.bench import Bench, runs_of
from sojourn.papers.paper import Cells, Frames, Part, estimate
from sojourn.papers.queue_lb import scenarios
from sojourn.papers.queue_lb.claims import CLAIMS
from sojourn.papers.queue_lb.scenarios import CLIENTS, NETWORKS, PAPER, POLICIES, TRANSPORTS
from sojourn.study import Table

FACTORS = ("network", "transport", "clients", "policy")
BETWEEN = 11.0
"""Seconds that a real run takes beyond its own length: hosts, switch and controller come and go."""


@dataclass(frozen=True, kw_only=True)
class Size:
    """What is run, for how many seconds, and how often."""

    seconds: float
    """Of a round, in which each client runs one iperf."""
    seeds: int
    networks: tuple[str, ...] = tuple(network.name for network in NETWORKS)
    transports: tuple[str, ...] = TRANSPORTS
    clients: tuple[int, ...] = CLIENTS
    policies: tuple[str, ...] = tuple(POLICIES)
    rounds: int | None = None
    """Of a run; `None`: the paper's."""
    sweep: float = 0
    """Length of a run of the sweep over information age; none if it is 0."""
    sweep_seeds: int = 0

    @property
    def cells(self) -> list[tuple[str, str, int]]:
        """Networks, transports and numbers of clients."""
        return [(n, t, c) for n in self.networks for t in self.transports for c in self.clients]

    @property
    def runs(self) -> int:
        """Number of runs through the balancer."""
        return len(self.cells) * len(self.policies) * self.seeds

    @property
    def length(self) -> float:
        """About how long they take for real, one after the other, in seconds."""
        one = sum(
            (self.rounds or scenarios.ROUNDS[clients, transport]) * (self.seconds + scenarios.GAP)
            + BETWEEN
            for _, transport, clients in self.cells
        )
        return float(one * len(self.policies) * self.seeds)


FULL = Size(seconds=10, seeds=30, sweep=120, sweep_seeds=10)
#: Some minutes on two cores.
QUICK = Size(seconds=6, seeds=8, sweep=30, sweep_seeds=3)
REAL_FULL = Size(seconds=10, seeds=8, policies=tuple(PAPER))
#: Some minutes.
REAL_QUICK = Size(
    seconds=4, seeds=2, networks=("unequal",), clients=(4,), rounds=2, policies=tuple(PAPER)
)


def lasting(size: Size) -> str:
    """How long the real runs take."""
    return estimate(f"{size.runs} real runs", size.length)


#: Kept of each run: with a column for each metric of each client's link, a summary would have
#: thousands.
METRICS = (
    *("utilisation", "loss", "udp_loss", "goodput", "udp_goodput", "sojourn_*", "queue_mean"),
    *("backlog_mean", "lb.*", "transfers.fct_*", "transfers.finished", "transfers.unfinished"),
)
#: Besides throughput and fairness in the table of what was measured.
_MEASURED = (
    *("utilisation", "loss", "sojourn_mean", "sojourn_p99", "lb.misplaced", "lb.decision_mean"),
    *("lb.choices_repeated", "lb.excess_wait_mean", "lb.age_mean"),
)
#: Policies for which the start times are varied.
_SPREAD = ("random", "RR", "LBW", "IQLB", "QTM", "queue delay")
_NETWORK = {network.name: network for network in NETWORKS}


def cells_of(size: Size) -> Cells:
    """Each network, transport and number of clients with each policy."""
    return [
        (
            dict(zip(FACTORS, (network, transport, clients, name), strict=True)),
            scenarios.iperf(
                _NETWORK[network], transport, clients, POLICIES[name], size.seconds,
                rounds=size.rounds,
            ),
        )
        for network, transport, clients in size.cells
        for name in size.policies
    ]  # fmt: skip


def starts_of(size: Size) -> Cells:
    """Clients that start closer together or further apart: 10 clients, unequal ports."""
    unequal = _NETWORK["unequal"]
    return [
        (
            {"transport": transport, "spread": spread, "policy": name},
            scenarios.iperf(unequal, transport, 10, POLICIES[name], size.seconds, spread),
        )
        for transport in TRANSPORTS
        for spread in scenarios.SPREADS
        for name in _SPREAD
    ]


def ages_of(size: Size) -> Cells:
    """The sweep over information age."""
    return [
        ({"policy": name, "age": age}, scenarios.arrivals(words, size.sweep))
        for name, policy in scenarios.AGEING.items()
        for age in scenarios.AGES
        if (words := scenarios.aged(policy, age)) is not None
    ]


def pooled_of(table: Table, seconds: float) -> pd.DataFrame:
    """The throughput that each client's iperf reports in each round of each run, in bit/s."""
    parts = []
    for levels, run in runs_of(table):
        flows = run.table("flows")
        flows = flows[flows["group"].str.startswith("round")]
        begin = (flows["group"].str.removeprefix("round").astype(int) - 1) * (
            seconds + scenarios.GAP
        )
        lasted = begin + seconds - flows["start"]
        told = {"round": flows["group"], "client": flows["from"], "server": flows["to"]}
        throughput = flows["bytes"] * 8 / lasted
        parts.append(pd.DataFrame({**levels, "seed": run.seed, **told, "throughput": throughput}))
    return pd.concat(parts, ignore_index=True)


def _iperf(seconds: float) -> Callable[[Table], Frames]:
    """A row a run: the mean and the fairness of its clients' throughputs, and its own metrics."""

    def frames(table: Table) -> Frames:
        pooled, keys = pooled_of(table, seconds), [*FACTORS, "seed"]
        means = pooled.groupby(keys, sort=False, as_index=False)["throughput"].mean()
        fairness = pooled.groupby([*keys, "round"], sort=False)["throughput"].agg(
            lambda x: float((x.sum() ** 2) / (len(x) * (x**2).sum())) if (x > 0).any() else 1.0
        )
        jain = fairness.groupby(keys, sort=False).mean().rename("fairness").reset_index()
        wanted = [column for column in _MEASURED if column in table.frame]
        whole = means.merge(jain, on=keys).merge(table.frame[[*keys, *wanted]], on=keys)
        return {"": whole, "pooled": pooled}

    return frames


def _starts(seconds: float) -> Callable[[Table], Frames]:
    """A row a run: the mean of its clients' throughputs."""

    def frames(table: Table) -> Frames:
        groups = pooled_of(table, seconds).groupby([*table.factors, "seed"], sort=False)
        return {"": groups["throughput"].mean().reset_index()}

    return frames


def measure(bench: Bench) -> dict[str, Any]:
    """Runs iperf through the balancer, the sweep over information age, and other starts."""
    size: Size = bench.size
    bench.make(
        Part(
            name="iperf", title="iperf through the balancer", cells=cells_of(size),
            seeds=size.seeds, claims=CLAIMS, frames=_iperf(size.seconds),
            metrics=METRICS, tables=("flows",),
        )
    )  # fmt: skip
    if size.sweep:
        bench.make(
            Part(
                name="ages", title="age of information", cells=ages_of(size),
                seeds=size.sweep_seeds, metrics=METRICS, tables=(),
            )
        )  # fmt: skip
        bench.make(
            Part(
                name="starts", title="other starts", cells=starts_of(size),
                seeds=size.sweep_seeds, frames=_starts(size.seconds),
                metrics=METRICS, tables=("flows",),
            )
        )  # fmt: skip
    return {}
