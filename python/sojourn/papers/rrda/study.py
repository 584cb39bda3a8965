"""Runs of the study of receive buffers, their sizes, and the tables derived from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import pandas as pd

from sojourn.papers.bench import runs_of
from sojourn.papers.outcome import Outcome
from sojourn.papers.part import Cells, Frames, Part, Size, estimate
from sojourn.papers.rrda import claims, scenarios
from sojourn.papers.rrda.engine import Server
from sojourn.papers.rrda.scenarios import (
    BEFORE_LOAD_FALLS,
    CLIENTS,
    CLIENTS_CPU,
    CPUS,
    EPOCH,
    POLICIES,
    READINGS,
    STATICS,
    TIMEOUT,
    TIMEOUTS,
    USES,
    WINDOW,
)
from sojourn.stats.claims import Claim
from sojourn.study import Table
from sojourn.study.cells import Level, Runnable

FACTORS = ("study", "reading", "policy", "buffer", "clients", "cpu")
BETWEEN = 0.5
"""Seconds that a real run takes in addition to its length, to start and end two programs."""
SCENARIO = 4.0
"""Length of a run for the paper's figures 4 and 5, in seconds."""


@dataclass(frozen=True, kw_only=True)
class ServerSize(Size):
    """Size of the study; lengths are in seconds."""

    seconds: float
    """Length of a run of the paper's experiments."""
    scenario_seeds: int
    """Number of seeds of each scenario of figures 4 and 5."""
    warmup: float = 0
    grid: float = 0
    """Length of a run of the comparison of policies; a twelfth is warm-up. 0 omits the comparison.
    """
    grid_seeds: int = 0
    """Number of seeds of the comparison of policies."""
    clients: tuple[int, ...] = CLIENTS
    cpus: tuple[float, ...] = CPUS
    timeouts: tuple[int, ...] = ()
    """Retransmission times in ms of the sweep in reading `datagram`; empty omits the sweep."""
    timeout_seconds: float = 0
    """Length of a run of the sweep."""
    timeout_seeds: int = 0
    """Number of seeds of the sweep."""
    memory: float = 0
    """Length of a run in which the load falls; 0 omits these runs."""
    readings: tuple[str, ...] = tuple(READINGS)
    policies: tuple[str, ...] = tuple(POLICIES)
    sizes: bool = True
    """Whether to run static buffers of many sizes, for figures 2 and 3."""

    @property
    def claims(self) -> tuple[Claim, ...]:
        """Returns the claims that these runs can judge."""
        return claims.made(self.readings, self.clients, self.cpus, self.sizes)

    @property
    def runs(self) -> int:
        """Returns the number of runs of the paper's experiments.

        Cells with the same plan in several figures share a run.
        """
        return len({server.plan_json for _, server in experiments(self)}) * self.seeds

    @property
    def seconds_in_all(self) -> float:
        """Returns the approximate duration of all real runs in sequence, in seconds."""
        plots = len(scenarios.RATES) * self.scenario_seeds
        return self.runs * (self.seconds + BETWEEN) + plots * (SCENARIO + BETWEEN)


Results = Outcome[ServerSize]
"""Results of this study."""

#: The paper measures for 260 s and plots 40 runs of each scenario. It mentions no warm-up, and a
#: warm-up would omit the messages that RRDA discards in its first epochs, so no warm-up is used.
FULL = ServerSize(
    seconds=260, seeds=10, scenario_seeds=40, grid=60, grid_seeds=5,
    timeouts=TIMEOUTS, timeout_seconds=65, timeout_seeds=3, memory=60,
)  # fmt: skip
QUICK = ServerSize(
    seconds=20, seeds=5, scenario_seeds=40, grid=60, grid_seeds=2, policies=("static", "rrda"),
    timeouts=TIMEOUTS, timeout_seconds=10, timeout_seeds=3, memory=60,
)  # fmt: skip
#: A quarter of the length of the paper's figure 9.
QUARTER = replace(FULL, seconds=65, grid_seeds=2)
#: Real runs omit the readings `datagram` and `steady`, which require a round-trip time of 1 ms. The
#: two network namespaces of a real run have a shorter round-trip time.
REAL_FULL = ServerSize(
    seconds=20, seeds=5, scenario_seeds=40, policies=("static", "rrda"),
    readings=("processed", "enqueued"),
)  # fmt: skip
#: The quick real runs take less than four minutes together, and omit figures 2 and 3.
REAL_QUICK = replace(
    REAL_FULL, seconds=1.8, seeds=4, scenario_seeds=1, clients=(10, 20, 35), sizes=False
)


def lasting(size: ServerSize) -> str:
    """Describes the number of real runs and their estimated duration."""
    return estimate(f"{size.runs} real runs of {size.seconds:g} s", size.seconds_in_all)


#: CPU time of a simulated second of the experiments and of the sweep, relative to the CPU time of a
#: second with few large messages. The two ratios were measured once and differ between machines.
_DENSE, _DENSEST = 7.0, 20.0


def work(size: ServerSize) -> float:
    """Returns the simulated seconds of a size without the scenarios, weighted by CPU time."""
    swept = sum(len(sweep(size, timeout)) for timeout in size.timeouts)
    return (
        _DENSE * size.runs * size.seconds
        + _DENSEST * swept * size.timeout_seeds * size.timeout_seconds
        + len(memory(size)) * size.seeds * size.memory
        + (len(grid(size)) * size.grid_seeds * size.grid if size.grid else 0)
    )


def experiments(size: ServerSize, timeout: int = TIMEOUT) -> Cells:
    """Returns the cells of the paper's figures 2, 3, 6, 7 and 8; `timeout` is in ms."""
    most = CLIENTS[-1]

    def levels() -> Iterator[tuple[str, str, str, int, float]]:
        for name in size.policies:
            yield from (("clients", name, "", clients, CLIENTS_CPU) for clients in size.clients)
            yield from (("cpu", name, "", most, cpu) for cpu in size.cpus)
        for name in STATICS if size.sizes else ():
            yield from (("sizes", "static", name, most, cpu) for cpu in size.cpus)
            yield from (
                ("sizes of clients", "static", name, n, CLIENTS_CPU) for n in (10, 20, most)
            )

    cells: list[tuple[dict[str, Level], Runnable]] = []
    for reading in size.readings:
        for study, policy, buffer, clients, cpu in levels():
            words = STATICS[buffer] if buffer else POLICIES[policy]
            inputs = scenarios.server(
                reading, words, clients, cpu, size.seconds, size.warmup, timeout
            )
            named = (study, reading, policy, buffer, clients, cpu)
            cells.append((dict(zip(FACTORS, named, strict=True)), Server(inputs)))
    return cells


def sweep(size: ServerSize, timeout: int) -> Cells:
    """Returns the cells of the sweep for one retransmission time in ms, in reading `datagram`."""
    needed = replace(
        size, seconds=size.timeout_seconds, sizes=False, policies=("static", "rrda"),
        readings=("datagram",), clients=tuple(n for n in CLIENTS if n >= scenarios.KNEE),
        cpus=tuple(cpu for cpu in CPUS if cpu < 1),
    )  # fmt: skip
    return experiments(needed, timeout)


def memory(size: ServerSize) -> Cells:
    """Returns the cells in which the load falls, by reading and memory in use."""
    return [
        ({"reading": name, "used": used}, Server(scenarios.falling(name, used, size.memory)))
        for name in BEFORE_LOAD_FALLS
        for used in USES
    ]


def grid(size: ServerSize) -> Cells:
    """Returns the cells of the comparison of policies: every open load with every policy."""
    return [
        ({"point": point, "policy": name}, Server({**inputs, "policy": policy}))
        for point, inputs in scenarios.grid(size.grid).items()
        for name, policy in scenarios.COMPARED.items()
    ]


def plots() -> Cells:
    """Returns the cells of figures 4 and 5: one for each scenario."""
    return [
        ({"scenario": name}, Server(scenarios.scenario(rates)))
        for name, rates in scenarios.RATES.items()
    ]


_IN_A_ROW = 3
"""Number of consecutive epochs with the same sign after which equation 2 decides: the paper's k."""


def _decided(values: pd.Series[float]) -> dict[str, float]:
    """Returns the shares of epochs of `WINDOW` in which equation 2 decides, by direction."""
    found = {}
    for name, signs in (("increases", values > 0), ("decreases", values < 0)):
        row = signs.rolling(_IN_A_ROW).sum() == _IN_A_ROW
        found[name] = float(row.iloc[slice(*WINDOW)].mean())
    return {**found, "decides": sum(found.values())}


def _samples(table: Table, omega: float = 0.5) -> Frames:
    """Returns the decisions of equation 2 in each run, and a table `samples` of epochs.

    The samples have the rate difference and the moving average of equation 1, in Mbit/s.
    """
    found, decided = [], []
    for levels, run in runs_of(table):
        series = run.table("series")
        held = series["arrived"] - series["processed"]
        difference = held.diff().fillna(held.iloc[0]) * 8 / (EPOCH / 1e9) / 1e6
        average = pd.concat([pd.Series([0.0]), difference]).ewm(alpha=omega, adjust=False).mean()
        both = {"difference": difference, "average": average.iloc[1:].reset_index(drop=True)}
        labels = {**levels, "seed": run.seed}
        found.append(pd.DataFrame({**labels, "epoch": series.index, **both}))
        decided += [{**labels, "values": f"{k}s", **_decided(v)} for k, v in both.items()]
    return {"": pd.DataFrame(decided), "samples": pd.concat(found, ignore_index=True)}


def _kept(table: Table) -> Frames:
    """Returns each run's last buffer size as a share of its largest, and a table `sizes`.

    The sizes have the buffer's size over time.
    """
    sizes, kept = [], []
    for levels, run in runs_of(table):
        series = run.table("series")[["at", "size"]]
        labels = {**levels, "seed": run.seed}
        sizes.append(series.assign(**labels))
        largest = float(series["size"].max())
        kept.append({**labels, "kept": float(series["size"].iloc[-1]) / largest})
    return {"": pd.DataFrame(kept), "sizes": pd.concat(sizes, ignore_index=True)}


def _experiments(table: Table) -> Frames:
    """Returns the runs with `headroom`: the buffer's mean size divided by its largest content."""
    frame = table.frame
    return {"": frame.assign(headroom=frame["mean_size"] / frame["peak_occupied"])}


def cost(table: Table, step: int = 5) -> pd.DataFrame:
    """Returns the CPU per Gbit/s over time in real runs, as in the paper's figure 9.

    A value is the mean over `step` samples. The runs are those with all the CPU and the first seed.
    """
    found = []
    for levels, run in runs_of(table):
        if (levels["study"], levels["cpu"], run.seed) != ("cpu", 1.0, claims.FIRST_SEED):
            continue
        for a, b in pairwise(run.table("series").iloc[::step].to_dict("records")):
            gbit = (b["processed"] - a["processed"]) * 8 / 1e9
            cpu = (b["cpu"] - a["cpu"]) / gbit if gbit else float("nan")
            labels = {"reading": levels["reading"], "policy": levels["policy"]}
            found.append({**labels, "at": b["at"] / 1e9, "cpu": cpu})
    return pd.DataFrame(found)


def _grid(table: Table) -> Frames:
    return {"": table.frame.rename(columns={"exhaustion": "discards"})}


def parts(size: ServerSize) -> Iterator[Part]:
    """Yields experiments, sweep, falling load, comparison of policies, and scenarios."""
    yield Part(
        name="experiments", title="the paper's experiments", cells=experiments(size),
        claims=size.claims, frames=_experiments, tables=(),
        real_claims=claims.overhead(size.readings),
    )  # fmt: skip
    for timeout in size.timeouts:
        yield Part(
            name=f"timeout-{timeout}", title=f"retransmission after {timeout} ms",
            cells=sweep(size, timeout), seeds=size.timeout_seeds, claims=claims.swept(),
            reading=f"{timeout} ms", sweep="retransmission time under `datagram`", tables=(),
        )  # fmt: skip
    if size.memory:
        yield Part(
            name="memory", title="memory given back", cells=memory(size), claims=claims.memory(),
            frames=_kept, tables=("series",),
        )  # fmt: skip
    if size.grid:
        yield Part(
            name="grid", title="policies compared", cells=grid(size), frames=_grid, tables=(),
            seeds=range(1, size.grid_seeds + 1),
        )  # fmt: skip
    yield Part(
        name="scenarios", title="the three scenarios", cells=plots(), seeds=size.scenario_seeds,
        claims=claims.average(), frames=_samples, tables=("series",),
    )  # fmt: skip


def beaten(outcome: Results) -> dict[str, list[str]]:
    """Returns the policies that are better than `elastic`, by point of the grid.

    Such a policy is better in at least one of discards, peak memory and p99 waiting time, and worse
    in none. Both mean by more than 5 % plus 0.01 % of messages, 64 KiB or 1 ms.
    """
    measures = ("discards", "peak_size", "sojourn_p99")
    frame = outcome.frame("grid")
    means = frame.groupby(["point", "policy"], sort=False)[list(measures)].mean()
    floor = {"discards": 1e-4, "peak_size": 65536, "sojourn_p99": 1e-3}

    def better(a: pd.Series[float], b: pd.Series[float], measure: str) -> bool:
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
