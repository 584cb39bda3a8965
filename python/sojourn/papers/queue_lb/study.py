"""Runs of the study of queue-length balancing, their sizes, and the tables derived from them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pandas as pd

from sojourn.papers.bench import Bench, runs_of
from sojourn.papers.outcome import Outcome
from sojourn.papers.part import Cells, Frames, Part, Size, estimate
from sojourn.papers.queue_lb import analysis, claims, scenarios
from sojourn.papers.queue_lb.scenarios import (
    CLIENTS,
    MAIN,
    NETWORKS,
    OTHERS,
    PAPER,
    POLICIES,
    READINGS,
    SWEEPS,
    SWEPT,
    TRANSPORTS,
    VIEWS,
    Reading,
)
from sojourn.stats.claims import Claim
from sojourn.study import Table

FACTORS = ("transport", "clients", "policy")
BETWEEN = 11.0
"""Seconds that a real run takes in addition to its length, to start and end hosts, switch and
controller."""


@dataclass(frozen=True, kw_only=True)
class BalancerSize(Size):
    """Size of the study; lengths are in seconds."""

    seconds: float
    """Length of an iperf."""
    transports: tuple[str, ...] = TRANSPORTS
    clients: tuple[int, ...] = CLIENTS
    policies: tuple[str, ...] = (*PAPER, *OTHERS)
    rounds: int | None = None
    """Rounds of a run; `None` for the paper's number.

    With another number, claims on the paper's ANOVA are not judged.
    """
    networks: tuple[str, ...] = ()
    """Names of the readings of the ports in which all policies are run, in one round."""
    readings: tuple[str, ...] = ()
    """Names of the other alternative readings to run, in one round."""
    swept: bool = False
    """Whether the values of `SWEEPS` are run, in one round."""
    sweep: float = 0
    """Length of a run of the sweep over information age; 0 omits this sweep, and the sweep over the
    time between two starts.
    """

    @property
    def cells(self) -> list[tuple[str, int]]:
        """Returns all combinations of transport and number of clients."""
        return [(t, c) for t in self.transports for c in self.clients]

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
            for transport, clients in self.cells
        )
        return float(one * len(self.policies) * self.seeds)


Results = Outcome[BalancerSize]
"""Results of this study."""

_OTHER = tuple(n for n, one in READINGS.items() if n not in NETWORKS and one not in VIEWS.values())
FULL = BalancerSize(
    seconds=60, seeds=10, networks=tuple(NETWORKS), readings=_OTHER, swept=True, sweep=120
)
#: The paper states no length of an iperf; iperf's default is 10 s. With iperfs of 15 s, starts are
#: 1.07 s apart, which is more than QTM's period of 1 s.
QUARTER = replace(FULL, seconds=15, seeds=5)
QUICK = BalancerSize(
    seconds=15, seeds=5, rounds=1, policies=tuple(PAPER), networks=("unequal ports",), sweep=20
)
REAL_FULL = BalancerSize(seconds=15, seeds=8, policies=tuple(PAPER), rounds=2)
#: The quick real runs take about a quarter of an hour together.
REAL_QUICK = BalancerSize(seconds=15, seeds=2, clients=(4,), rounds=1, policies=tuple(PAPER))


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
SPACED = ("random", "RR", "LBW", "IQLB", "QTM")
SPACINGS = (0.1, 0.3, 1.0, 3.0)


def cells_of(
    size: BalancerSize,
    policies: Sequence[str],
    reading: Reading = MAIN,
    rounds: int | None = 1,
) -> Cells:
    """Returns the cells of a reading: every transport, number of clients and policy."""
    seconds = reading.seconds(size.seconds)
    return [
        (
            dict(zip(FACTORS, (transport, clients, name), strict=True)),
            scenarios.iperf(transport, clients, name, seconds, reading, rounds),
        )
        for transport, clients in size.cells
        if transport in reading.transports
        for name in policies
    ]


def spacings_of() -> Cells:
    """Returns the cells of the sweep over the time between two starts.

    The cells have 10 UDP clients and ports of 25 and 125 Mbit/s.
    """
    return [
        (
            {"apart": apart, "policy": name},
            scenarios.iperf(
                "UDP", 10, name, apart * MAIN.flows_at_once, NETWORKS["unequal ports"], rounds=1
            ),
        )
        for apart in SPACINGS
        for name in SPACED
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


def pooled_of(table: Table, seconds: float | None = None, reading: Reading = MAIN) -> pd.DataFrame:
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
        length = seconds or float(levels["apart"]) * MAIN.flows_at_once
        first = scenarios.begin(
            one["round"], one["number"], len(set(one["number"])), length, reading
        )
        labels = {name: one[name] for name in ("round", "client", "server")}
        throughput = one["bytes"] * 8 / (first + length - one["start"])
        parts.append(pd.DataFrame({**levels, "seed": run.seed, **labels, "throughput": throughput}))
    return pd.concat(parts, ignore_index=True)


LEAST_F = 1e-3
"""Smallest F of an ANOVA over its critical value whose logarithm is judged."""


def tests(pooled: pd.DataFrame) -> pd.DataFrame:
    """Returns the paper's tests of each run, by cell and seed.

    `log_f` is the logarithm of F over its critical value in the ANOVA, at least that of `LEAST_F`,
    because F is 0 if all policies have the same mean. `lsd` is the smallest
    difference of the means of the proposed policy and another one, over the LSD.
    """
    keys = ["transport", "clients", "seed"]
    rows = []
    for levels, part in pooled.groupby(keys, sort=False):
        labels = dict(zip(keys, levels, strict=True))
        for name, policies in analysis.SETS.items():
            if set(policies) <= set(part["policy"]):
                table, critical = analysis.anova(part, policies)
                found, means = analysis.least_difference(part, policies)
                lead = means[name] - max(means[other] for other in policies[1:])
                rows.append(
                    {
                        **labels,
                        "experiment": name,
                        "log_f": math.log(max(table.f / critical, LEAST_F)),
                        "lsd": lead / found,
                    }
                )
    return pd.DataFrame(rows, columns=[*keys, "experiment", "log_f", "lsd"])


def _iperf(seconds: float, reading: Reading = MAIN) -> Callable[[Table], Frames]:
    """Returns the function that derives the tables of runs with iperfs of `seconds`.

    Table `""` has a row for each run, with the mean, the fairness and the standard deviation
    (`scatter`) of the throughputs, and metrics of the run. Table `pooled` has the throughputs of
    iperfs, `log_f` and `lsd` the paper's tests.
    """

    def frames(table: Table) -> Frames:
        pooled, keys = pooled_of(table, seconds, reading), [*FACTORS, "seed"]
        means = pooled.groupby(keys, sort=False, as_index=False).agg(
            throughput=("throughput", "mean"), scatter=("throughput", "std")
        )
        fairness = pooled.groupby([*keys, "round"], sort=False)["throughput"].agg(
            lambda x: float((x.sum() ** 2) / (len(x) * (x**2).sum())) if (x > 0).any() else 1.0
        )
        jain = fairness.groupby(keys, sort=False).mean().rename("fairness").reset_index()
        wanted = [column for column in _MEASURED if column in table.frame]
        whole = means.merge(jain, on=keys).merge(table.frame[[*keys, *wanted]], on=keys)
        tested = tests(pooled)
        return {"": whole, "pooled": pooled, "log_f": tested, "lsd": tested}

    return frames


def _spaced(table: Table) -> Frames:
    """Returns the mean throughput of the clients of each run."""
    groups = pooled_of(table).groupby([*table.factors, "seed"], sort=False)
    return {"": groups["throughput"].mean().reset_index()}


def name_of(*words: str) -> str:
    """Returns the name of the part that runs a reading, or a value of a swept parameter."""
    return "reading-" + re.sub(r"\W+", "-", " ".join(words) or "main").strip("-")


def parts(size: BalancerSize) -> Iterator[Part]:
    """Yields the main reading, the other readings, and the sweeps."""
    part = partial(Part, metrics=METRICS, tables=("flows",))
    yield part(
        name="iperf", title="iperf through the balancer", frames=_iperf(size.seconds),
        cells=cells_of(size, size.policies, rounds=size.rounds),
        claims=claims.made(anova=size.rounds is None),
    )  # fmt: skip
    for network in size.networks:
        named = name_of(network)
        yield part(
            name=named, title=f"all policies, {network or 'main reading'}", reading=network,
            cells=cells_of(size, tuple(POLICIES), NETWORKS[network]),
            frames=_iperf(size.seconds, NETWORKS[network]),
            claims=claims.made() if network else claims.VALUES,
        )  # fmt: skip
    others = [("", name, READINGS[name]) for name in size.readings]
    others += [
        (n, v, one) for n, values in SWEEPS.items() for v, one in values.items()
    ] * size.swept
    for sweep, name, reading in others:
        yield part(
            name=name_of(sweep, name), title=f"{sweep} {name}".strip(), reading=name, sweep=sweep,
            cells=cells_of(size, tuple(PAPER), reading),
            frames=_iperf(reading.seconds(size.seconds), reading),
            claims=claims.made(reading.transports),
        )  # fmt: skip
    if size.sweep:
        yield part(
            name="spacings", title="time between two starts", cells=spacings_of(), frames=_spaced
        )
        yield part(
            name="ages", title="age of information", cells=ages_of(size), tables=(),
            claims=claims.BURSTS,
        )  # fmt: skip


def views(part: Part) -> Iterator[tuple[Part, Sequence[Claim]]]:
    """Yields further readings that the runs of a part show, with the claims that are judged.

    The readings differ in the policies only, and the part has all policies.
    """
    if part.sweep or part.reading not in NETWORKS or part.name != name_of(part.reading):
        return
    for name, reading in VIEWS.items():
        if name:
            named = ", ".join(filter(None, (part.reading, name)))
            yield replace(part, reading=named), claims.made(policies=reading.policies)
    if not part.reading:
        for sweep, values in SWEPT.items():
            for value, policies in values.items():
                judged = claims.made(policies=MAIN.policies | policies)
                yield replace(part, reading=value, sweep=sweep), judged


def measure(bench: Bench[BalancerSize]) -> None:
    """Makes all parts of the study, and judges the further readings of their runs."""
    for part in parts(bench.size):
        bench.make(part)
        for further, judged in views(part):
            bench.judge(further, judged)
