"""Runs of the study of receive buffers, their sizes, and the tables derived from them."""

from __future__ import annotations

import json
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
    CPUS,
    EPOCH,
    JUDGED_SIZES,
    MAIN,
    POLICIES,
    READINGS,
    SECOND,
    SIZES,
    TIMEOUTS,
    USES,
    WINDOW,
    Reading,
)
from sojourn.stats.claims import Claim
from sojourn.study import Table
from sojourn.study.cells import Level, Runnable

FACTORS = ("study", "policy", "buffer", "clients", "cpu")
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
    readings: tuple[str, ...] = ()
    """Alternative readings that are run."""
    reading_seeds: int = 5
    """Number of seeds of alternative readings and of sweeps."""
    lengths: tuple[float, ...] = ()
    """Lengths of a run that are compared."""
    timeouts: tuple[int, ...] = ()
    """Retransmission times in ms of the sweeps in the readings `SWEPT`; empty omits the sweeps."""
    timeout_seconds: float = 0
    """Length of a run of the sweeps."""
    memory: float = 0
    """Length of a run in which the load falls; 0 omits these runs."""
    policies: tuple[str, ...] = tuple(POLICIES)
    sizes: tuple[str, ...] = tuple(SIZES)
    """Static buffers for figures 2 and 3, by name; empty omits these figures."""
    scale: int = 1
    """Divisor of all sizes and rates."""
    main: str = MAIN
    """Reading that gives the verdicts."""

    @property
    def claims(self) -> tuple[Claim, ...]:
        """Returns the claims that these runs can judge."""
        return claims.made(self.clients, self.cpus, bool(self.sizes))

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

#: Readings in which the retransmission time is varied.
SWEPT = (MAIN, "windows")
#: Only for figure 9 does the paper state a length, 260 s; it plots 40 runs of each scenario. It
#: mentions no warm-up, and a warm-up would omit the messages that RRDA discards in its first
#: epochs, so no warm-up is used.
FULL = ServerSize(
    seconds=260, seeds=10, scenario_seeds=40, grid=60, grid_seeds=5,
    readings=tuple(READINGS)[1:], lengths=(20, 65, 260), timeouts=TIMEOUTS, timeout_seconds=20,
    memory=60,
)  # fmt: skip
#: A quarter of the paper's length.
QUARTER = replace(FULL, seconds=65, timeout_seconds=10)
QUICK = ServerSize(
    seconds=65, seeds=5, scenario_seeds=40, grid=60, grid_seeds=2, policies=("static", "rrda"),
    sizes=JUDGED_SIZES, readings=("quota of 100 ms", "three ticks", "alpha 0.05"),
    memory=60,
)  # fmt: skip
#: Real runs have a tenth of all rates and sizes, which two processors can carry, and slow links,
#: because the network between two namespaces has no round-trip time. They omit figures 2 and 3.
REAL_FULL = ServerSize(
    seconds=20, seeds=6, scenario_seeds=40, policies=("static", "rrda"), clients=(10, 20, 35),
    sizes=(), scale=10, main="slow links",
)  # fmt: skip
#: The quick real runs take less than four minutes together.
REAL_QUICK = replace(REAL_FULL, seconds=3.5, seeds=5, scenario_seeds=1)


def lasting(size: ServerSize) -> str:
    """Describes the number of real runs and their estimated duration."""
    return estimate(f"{size.runs} real runs of {size.seconds:g} s", size.seconds_in_all)


def budget(size: ServerSize) -> pd.DataFrame:
    """Returns the parts of a study with runs, seeds, and messages that the clients would send.

    The CPU time is about proportional to the messages. The values of a sweep are one row.
    """
    rows = []
    for part in parts(size):
        seeds = part.seeds or size.seeds
        number = seeds if isinstance(seeds, int) else len(seeds)
        how = READINGS.get(part.sweep.partition(" under ")[2] or part.reading, READINGS[MAIN])
        runs = {server.plan_json: levels.get("clients") for levels, server in part.cells}
        for plan, clients in runs.items():
            seconds = json.loads(plan)["duration"] / SECOND
            rate = scenarios.messages(how, int(clients)) if clients else _OPEN
            rows.append((part.sweep or part.title, number, number, number * seconds * rate / 1e6))
    frame = pd.DataFrame(rows, columns=["part", "seeds", "runs", "million messages"])
    parted = frame.groupby("part", sort=False, as_index=False)
    return parted.agg({"seeds": "first", "runs": "sum", "million messages": "sum"}).round(1)


def work(size: ServerSize) -> float:
    """Returns about how many million messages the clients of all runs would send."""
    return float(budget(size)["million messages"].sum())


#: Messages in a second of most of the other runs.
_OPEN = 2500


def experiments(size: ServerSize, how: Reading = READINGS[MAIN]) -> Cells:
    """Returns the cells of the paper's figures 2, 3, 6, 7 and 8 in a reading."""
    most, half = CLIENTS[-1], how.clients_cpu

    def levels() -> Iterator[tuple[str, str, str, int, float]]:
        for name in size.policies:
            yield from (("clients", name, "", clients, half) for clients in size.clients)
            yield from (("cpu", name, "", most, cpu) for cpu in size.cpus)
        for name in size.sizes:
            yield from (("sizes", "static", name, most, cpu) for cpu in size.cpus)
            yield from (("sizes of clients", "static", name, n, half) for n in (10, 20, most))

    named = dict(POLICIES, rrda=how.rrda, static=f"static size {SIZES['1 MB'] // size.scale}")
    if size.scale > 1:
        defaults = {"initial": 1 << 20, "floor": 64 << 10, "ceiling": 1 << 30}
        bounds = (f"{name} {value // size.scale}" for name, value in defaults.items())
        named["rrda"] = " ".join((how.rrda, *bounds))
    cells: list[tuple[dict[str, Level], Runnable]] = []
    for study, policy, buffer, clients, cpu in levels():
        words = f"static size {SIZES[buffer] // size.scale}" if buffer else named[policy]
        inputs = scenarios.server(how, words, clients, cpu, size.seconds, size.warmup, size.scale)
        of = (study, policy, buffer, clients, cpu)
        cells.append((dict(zip(FACTORS, of, strict=True)), Server(inputs)))
    return cells


def memory(size: ServerSize, reading: str = MAIN) -> Cells:
    """Returns the cells in which the load falls, by memory in use."""
    return [
        ({"used": used}, Server(scenarios.falling(reading, used, size.memory))) for used in USES
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
    return [({"scenario": name}, Server(inputs)) for name, inputs in scenarios.plots().items()]


_IN_A_ROW = 3
"""Number of consecutive epochs with the same sign after which equation 2 decides: the paper's k."""


def _decided(values: pd.Series[float]) -> dict[str, float]:
    """Returns the shares of epochs of `WINDOW` in which equation 2 decides, by direction."""
    found = {}
    for name, signs in (("increases", values > 0), ("decreases", values < 0)):
        row = signs.rolling(_IN_A_ROW).sum() == _IN_A_ROW
        found[name] = float(row.iloc[slice(*WINDOW)].mean())
    return {**found, "undecided": 1 - sum(found.values())}


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
    """Returns the runs with two further metrics.

    `headroom` is the buffer's mean size divided by its largest content, `cpu_per_gbit` the share
    of the CPU that 1 Gbit/s needs. Real runs have measured the latter.
    """
    frame = table.frame
    cost = (
        {}
        if "cpu_per_gbit" in frame
        else {"cpu_per_gbit": frame["utilisation"] / frame["throughput"] * 1e9}
    )
    return {"": frame.assign(headroom=frame["mean_size"] / frame["peak_occupied"], **cost)}


def cost(table: Table, step: int = 5) -> pd.DataFrame:
    """Returns the CPU per Gbit/s over time in real runs, as in the paper's figure 9.

    A value is the mean over `step` samples. The runs are those with all the CPU and the first seed.
    """
    found = []
    first = min(table.seeds)
    for levels, run in runs_of(table):
        if (levels["study"], levels["cpu"], run.seed) != ("cpu", 1.0, first):
            continue
        for a, b in pairwise(run.table("series").iloc[::step].to_dict("records")):
            gbit = (b["processed"] - a["processed"]) * 8 / 1e9
            cpu = (b["cpu"] - a["cpu"]) / gbit if gbit else float("nan")
            found.append({"policy": levels["policy"], "at": b["at"] / 1e9, "cpu": cpu})
    return pd.DataFrame(found)


def _grid(table: Table) -> Frames:
    return {"": table.frame.rename(columns={"exhaustion": "discards"})}


def parts(size: ServerSize) -> Iterator[Part]:
    """Yields experiments, readings, sweeps, falling load, comparison of policies, and scenarios."""
    yield Part(
        name="experiments", title="the paper's experiments",
        cells=experiments(size, READINGS[size.main]), claims=size.claims, frames=_experiments,
        tables=(), real_claims=claims.overhead(),
    )  # fmt: skip
    both = replace(size, policies=("static", "rrda"), seeds=size.reading_seeds)

    def other(name: str, of: ServerSize, how: Reading, sweep: str = "") -> Part:
        return Part(
            name=f"{sweep or 'reading'} {name}".replace(" ", "-"), title=f"{sweep} {name}".strip(),
            cells=experiments(of, how), seeds=of.seeds, claims=of.claims, frames=_experiments,
            reading=name, sweep=sweep, tables=(),
        )  # fmt: skip

    for name in size.readings:
        how = READINGS[name]
        # The paper's policy does not change the results of static buffers.
        sizes = JUDGED_SIZES if how.rrda == "rrda" else ()
        yield other(name, replace(both, sizes=sizes), how)
    for seconds in size.lengths:
        of = replace(both, seconds=seconds, sizes=())
        yield other(f"{seconds:g} s", of, READINGS[MAIN], "run length")
    for name in SWEPT:
        sizes = JUDGED_SIZES if name == MAIN else ()
        of = replace(both, seconds=size.timeout_seconds, sizes=sizes)
        parameter = "retransmission time" + f" under {name}" * (name != MAIN)
        for ms in size.timeouts:
            yield other(f"{ms} ms", of, replace(READINGS[name], timeout=ms), parameter)
    for name in BEFORE_LOAD_FALLS:
        if size.memory and name in (MAIN, *size.readings):
            yield Part(
                name=f"memory-{name}", title=f"memory given back, {name}",
                cells=memory(size, name), seeds=size.reading_seeds, claims=claims.memory(),
                frames=_kept, reading="" if name == MAIN else name, tables=("series",),
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
    spikes = Server(scenarios.scenario(scenarios.HIGH_SPIKES))
    yield Part(
        name="high-spikes", title="high spikes", cells=[({"scenario": "spikes"}, spikes)],
        seeds=size.scenario_seeds, claims=claims.spikes(), frames=_samples, reading="high spikes",
        tables=("series",),
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
