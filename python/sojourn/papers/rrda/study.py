"""What is run, at which sizes, and what the comparison of policies says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pandas as pd

from sojourn.papers.bench import Bench, runs_of
from sojourn.papers.outcome import Outcome
from sojourn.papers.paper import Cells, Frames, Part, estimate
from sojourn.papers.rrda import claims, scenarios
from sojourn.papers.rrda.engine import Server
from sojourn.papers.rrda.scenarios import CLIENTS, CPUS, POLICIES, READINGS, STATICS
from sojourn.stats.claims import Claim
from sojourn.study import Table
from sojourn.study.cells import Level, Runnable

FACTORS = ("study", "reading", "policy", "buffer", "clients", "cpu")
BETWEEN = 0.5
"""Seconds that a real run takes beyond its own length: two programs start and end."""
SCENARIO = 4.0
"""Seconds of a run of the paper's figures 4 and 5."""


@dataclass(frozen=True, kw_only=True)
class Size:
    """Lengths in seconds and numbers of runs."""

    seconds: float
    seeds: int
    scenario_seeds: int
    """Runs of each of the scenarios of figures 4 and 5."""
    warmup: float = 0
    grid: float = 0
    """Length of a run of the comparison of policies, a twelfth of it warm-up; none if it is 0."""
    grid_seeds: int = 0
    clients: tuple[int, ...] = CLIENTS
    cpus: tuple[float, ...] = CPUS
    policies: tuple[str, ...] = tuple(POLICIES)
    sizes: bool = True
    """Whether buffers of many sizes are run: figures 2 and 3."""

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims that these runs can judge."""
        return claims.made(clients=self.clients, cpus=self.cpus, sizes=self.sizes)

    @property
    def runs(self) -> int:
        """Number of runs of the paper's experiments; some serve several figures."""
        return len({server.plan_json for _, server in experiments(self)}) * self.seeds

    @property
    def seconds_in_all(self) -> float:
        """About how long all real runs take, one after the other."""
        plots = len(scenarios.RATES) * self.scenario_seeds
        return self.runs * (self.seconds + BETWEEN) + plots * (SCENARIO + BETWEEN)


#: The paper measures for 260 s and plots 40 runs of each scenario. It speaks of no warm-up, and
#: RRDA discards in its first epochs: nothing is cut.
FULL = Size(seconds=260, seeds=10, scenario_seeds=40, grid=60, grid_seeds=5)
QUICK = Size(seconds=60, seeds=5, scenario_seeds=40, grid=60, grid_seeds=2)
REAL_FULL = Size(seconds=20, seeds=5, scenario_seeds=40, policies=("static", "rrda"))
#: Under four minutes: without figures 2 and 3.
REAL_QUICK = Size(
    seconds=1.8, seeds=4, scenario_seeds=1, clients=(10, 20, 35), policies=("static", "rrda"),
    sizes=False,
)  # fmt: skip


def lasting(size: Size) -> str:
    """How long the real runs take."""
    return estimate(f"{size.runs} real runs of {size.seconds:g} s", size.seconds_in_all)


def experiments(size: Size) -> Cells:
    """The paper's figures 2, 3, 6, 7 and 8."""
    most = CLIENTS[-1]

    def levels() -> Iterator[tuple[str, str, str, int, float]]:
        for name in size.policies:
            yield from (("clients", name, "", clients, 1.0) for clients in size.clients)
            yield from (("cpu", name, "", most, cpu) for cpu in size.cpus)
        for name in STATICS if size.sizes else ():
            yield from (("sizes", "static", name, most, cpu) for cpu in size.cpus)
            yield from (("sizes of clients", "static", name, n, 1.0) for n in (10, 20, most))

    cells: list[tuple[dict[str, Level], Runnable]] = []
    for reading in READINGS:
        for study, policy, buffer, clients, cpu in levels():
            words = STATICS[buffer] if buffer else POLICIES[policy]
            told = scenarios.server(reading, words, clients, cpu, size.seconds, size.warmup)
            named = (study, reading, policy, buffer, clients, cpu)
            cells.append((dict(zip(FACTORS, named, strict=True)), Server(told)))
    return cells


def grid(size: Size) -> Cells:
    """Open loads on which all policies are compared."""
    return [
        ({"point": point, "policy": name}, Server({**told, "policy": policy}))
        for point, told in scenarios.grid(size.grid).items()
        for name, policy in scenarios.COMPARED.items()
    ]


def plots() -> Cells:
    """The scenarios of figures 4 and 5."""
    return [
        ({"scenario": name}, Server(scenarios.scenario(rates)))
        for name, rates in scenarios.RATES.items()
    ]


def _samples(table: Table, omega: float = 0.5) -> Frames:
    """The rate difference of each epoch, and equation 1's average of it, in Mbit/s."""
    found = []
    for levels, run in runs_of(table):
        series = run.table("series")
        before, average = 0, 0.0
        for epoch, held in enumerate((series["arrived"] - series["processed"]).tolist()):
            difference = (held - before) * 8 / 0.1 / 1e6
            before = held
            average = omega * difference + (1 - omega) * average
            told = {"epoch": epoch, "difference": difference, "average": average}
            found.append({**levels, "seed": run.seed, **told})
    return {"": pd.DataFrame(found)}


def cost(table: Table, step: int = 5) -> pd.DataFrame:
    """CPU per Gbit/s, as the paper's figure 9 has it, over every `step` samples of real runs."""
    found = []
    for levels, run in runs_of(table):
        if (levels["study"], levels["cpu"], run.seed) != ("cpu", 1.0, 1):
            continue
        for a, b in pairwise(run.table("series").iloc[::step].to_dict("records")):
            gbit = (b["processed"] - a["processed"]) * 8 / 1e9
            cpu = (b["cpu"] - a["cpu"]) / gbit if gbit else float("nan")
            told = {"reading": levels["reading"], "policy": levels["policy"]}
            found.append({**told, "at": b["at"] / 1e9, "cpu": cpu})
    return pd.DataFrame(found)


def measure(bench: Bench) -> dict[str, Any]:
    """Runs the paper's experiments, the comparison of policies and the three scenarios."""
    size: Size = bench.size
    bench.make(
        Part(
            name="experiments", title="the paper's experiments", cells=experiments(size),
            seeds=size.seeds, claims=size.claims, real_claims=claims.overhead(), tables=(),
        )
    )  # fmt: skip
    if size.grid:
        bench.make(
            Part(
                name="grid", title="policies compared", cells=grid(size), seeds=size.grid_seeds,
                frames=lambda table: {"": table.frame.rename(columns={"exhaustion": "discards"})},
                tables=(),
            )
        )  # fmt: skip
    bench.make(
        Part(
            name="scenarios", title="the three scenarios", cells=plots(),
            seeds=size.scenario_seeds, frames=_samples, tables=("series",),
        )
    )  # fmt: skip
    return {}


def beaten(outcome: Outcome) -> dict[str, list[str]]:
    """By point of the grid, the policies that are better than `elastic` taken together.

    A policy is better if it is better in one of discards, peak memory and p99 waiting (by 5 %
    and a hundredth of a percent of discards) and not worse in any.
    """
    measures = ("discards", "peak_size", "sojourn_p99")
    frame = outcome.frame("grid")
    means = frame.groupby(["point", "policy"], sort=False)[list(measures)].mean()
    floor = {"discards": 1e-4, "peak_size": 65536, "sojourn_p99": 1e-3}

    def better(a: Any, b: Any, measure: str) -> bool:
        return bool(a[measure] < b[measure] * 0.95 - floor[measure])

    found: dict[str, list[str]] = {}
    for point in dict.fromkeys(frame["point"]):
        of = means.loc[point]
        ours = of.loc["elastic"]
        found[str(point)] = [
            str(policy)
            for policy, other in of.iterrows()
            if any(better(other, ours, m) for m in measures)
            and not any(better(ours, other, m) for m in measures)
        ]
    return found
