"""What is run, at which sizes, and what the runs say of the paper's explanation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sojourn.papers.bench import Bench
from sojourn.papers.edge_store import claims, published, scenarios
from sojourn.papers.edge_store.scenarios import LOSSES, NODES, WARMUP, scenario
from sojourn.papers.outcome import Outcome
from sojourn.papers.paper import Cells, Frames, Part, estimate
from sojourn.stats import Claim
from sojourn.stats.quorum import QuorumModel, phi
from sojourn.study import Table

LATENCY = "store.latency_mean"
METRICS = ("store.*",)
KEYS = ("nodes", "rf", "loss", "delay")
"""What names a cell."""
Cell = tuple[int, int, str, int]
"""Nodes, replication factor, loss by its name, milliseconds of delay."""


@dataclass(frozen=True)
class Size:
    """Cells, writes of a run, and numbers of runs."""

    cells: tuple[Cell, ...]
    writes: int
    seeds: int
    claims: tuple[Claim, ...] = claims.GRID
    variants: bool = True
    """Whether the experiment that tells the explanations apart is made."""
    real_seeds: int | None = None


def grid(delays: tuple[int, ...]) -> tuple[Cell, ...]:
    """The paper's grid at these delays in milliseconds."""
    return tuple(
        (nodes, rf, loss, delay)
        for nodes in NODES
        for rf in range(1, nodes + 1)
        for loss in LOSSES
        for delay in delays
    )


#: The paper's grid and lengths; the paper has one run of each cell.
FULL = Size(grid(published.DELAYS), 1000, 30)
QUICK = Size(grid((0, 20, 50, 100)), 1000, 10)

EIGHT: tuple[Cell, ...] = (
    (3, 1, "low", 0),
    (3, 2, "medium", 20),
    (3, 3, "high", 50),
    (5, 1, "medium", 100),
    (5, 2, "high", 20),
    (5, 3, "low", 50),
    (5, 5, "high", 20),
    (5, 2, "low", 100),
)
"""Cells that were chosen before any real run was compared with its simulation."""
FACTORS: tuple[Cell, ...] = tuple((5, rf, "high", 20) for rf in (1, 2, 3, 5))
"""The cells that claims are judged on with real nodes."""
REAL_FULL = Size(tuple(dict.fromkeys(EIGHT + FACTORS)), 1000, 30, claims.REAL, False, 3)
REAL_QUICK = Size(FACTORS, 200, 10, claims.REAL, False, 2)
START = 45.0
"""Seconds that a real run takes before and after its writes, about."""

#: The delay and loss at which phi and order statistics are told apart.
WHERE = ("high", 50)
#: What is changed there, each against `as it was`: RF 2 to 5 at QUORUM, one write at a time.
VARIANTS: dict[str, dict[str, Any]] = {
    "as it was": {},
    "min_rto 20ms": {"tcp": "cubic min_rto 20ms"},
    "no RACK, no TLP": {"tcp": "cubic rack off"},
    "32 at a time": {"outstanding": 32},
    "one": {"consistency": "one"},
    "all": {"consistency": "all"},
}


def lasting(size: Size) -> str:
    """How long the real runs take."""
    seeds = size.real_seeds or size.seeds
    seconds = sum(
        seeds * (START + (size.writes + WARMUP) * (0.03 + 0.0025 * delay))
        for *_, delay in size.cells
    )
    runs = f"{len(size.cells) * seeds} clusters of real Cassandra, {size.writes} writes each"
    return estimate(runs, seconds)


def cells_of(size: Size) -> Cells:
    """The cells of the paper's grid that are run."""
    return [
        (dict(zip(KEYS, cell, strict=True)), scenario(*cell, size.writes)) for cell in size.cells
    ]


def variants_of(size: Size) -> Cells:
    """The experiment that tells the explanations apart."""
    loss, delay = WHERE
    return [
        ({"variant": name, "rf": rf}, scenario(5, rf, loss, delay, size.writes, **changes))
        for name, changes in VARIANTS.items()
        for rf in range(2, 6)
    ]


# Tables derived from a row a run, by the metric that claims name


def _excess(frame: pd.DataFrame) -> pd.DataFrame:
    """What two replicas cost above the mean of three to five."""
    by = [k for k in ("nodes", "loss", "delay", "variant", "seed") if k in frame]
    wide = frame.pivot_table(index=by, columns="rf", values="latency")
    many = wide[[rf for rf in claims.MANY if rf in wide]].mean(axis=1)
    excess = (wide.reindex(columns=[2])[2] - many).dropna()
    return excess.rename("excess").reset_index()


def _slope(frame: pd.DataFrame) -> pd.DataFrame:
    """Latency over the delay of a link, by least squares."""
    by = ("nodes", "rf", "loss", "seed")
    return pd.DataFrame(
        {
            **dict(zip(by, key, strict=True)),
            "slope": np.polyfit(part["delay"], part["latency"], 1)[0],
        }
        for key, part in frame.groupby(list(by))
    )


def _degradation(frame: pd.DataFrame) -> pd.DataFrame:
    """Latency at high loss less that at low."""
    by = frame.pivot_table(index=["nodes", "rf", "delay", "seed"], columns="loss", values="latency")
    return (by["high"] - by["low"]).rename("degradation").reset_index()


def _deviation(frame: pd.DataFrame) -> pd.DataFrame:
    """The standard deviation of the means of clusters of three, four and five nodes."""
    three = frame[frame["rf"] == 3].pivot_table(
        index=["loss", "delay", "seed"], columns="nodes", values="latency"
    )
    return three.std(axis=1, ddof=1).rename("deviation").reset_index()


DERIVED: Mapping[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "latency": lambda frame: frame,
    "excess": _excess,
    "slope": _slope,
    "degradation": _degradation,
    "deviation": _deviation,
}


def derived(frame: pd.DataFrame, listed: tuple[Claim, ...]) -> dict[str, pd.DataFrame]:
    """The tables that claims are about, by their metric, from a row a run with its latency."""
    return {metric: DERIVED[metric](frame) for metric in {"latency", *(c.metric for c in listed)}}


def _frames(listed: tuple[Claim, ...]) -> Callable[[Table], Frames]:
    def frames(table: Table) -> Frames:
        frame = table.frame
        pending = int(frame["store.pending"].sum())
        if pending:
            raise RuntimeError(f"{pending} writes were still pending at the end of their runs")
        frame = frame[[*table.factors, "seed"]].assign(latency=frame[LATENCY] * 1e3)
        return {"": frame, **derived(frame, listed)}

    return frames


def measure(bench: Bench) -> dict[str, Any]:
    """Runs the grid, and the experiment that tells the explanations apart."""
    size: Size = bench.size
    bench.make(
        Part(
            name="grid", title="writes", cells=cells_of(size), seeds=size.seeds,
            real_seeds=size.real_seeds, claims=size.claims, frames=_frames(size.claims),
            metrics=METRICS, tables=(),
        )
    )  # fmt: skip
    if not size.variants:
        return {}
    bench.make(
        Part(
            name="variants", title="what tells the explanations apart", cells=variants_of(size),
            seeds=size.seeds, claims=claims.MECHANISM, frames=_frames(claims.MECHANISM),
            metrics=METRICS, tables=(),
        )
    )  # fmt: skip
    theirs = derived(published.frame(), claims.EXCESS + claims.SLOPES + claims.DEGRADATION)
    listed = (*claims.GRID, *claims.MECHANISM)
    return {"on_paper": {claim.id: claims.on_paper(claim, theirs) for claim in listed}}


# What the runs say


def predicted(nodes: int, rf: int, loss: str, delay: int, level: str = "quorum") -> float:
    """The order-statistics model's mean of a cell, in milliseconds; 2 ms of work a write."""
    client = 2 * scenarios.CLIENT_MS / 1e3
    model = QuorumModel(nodes, rf, delay / 1e3, LOSSES[loss], level, client=client, work=0.002)
    return 1e3 * model.mean


def explanations(outcome: Outcome) -> pd.DataFrame:
    """phi, the order-statistics model and the simulation side by side, by level and RF."""
    levels = {"as it was": "quorum", "one": "one", "all": "all"}
    frame = outcome.frame("variants")
    means = frame.groupby(["variant", "rf"])["latency"].mean()
    return pd.DataFrame(
        {
            "level": level,
            "rf": rf,
            "phi": float(phi(5, rf, level)),
            "order statistics": predicted(5, rf, *WHERE, level=level),
            "simulated": float(means[variant, rf]),
        }
        for variant, level in levels.items()
        for rf in sorted(set(frame["rf"]))
    )


def departures(outcome: Outcome) -> pd.DataFrame:
    """The model beside the simulation over the paper's grid, in milliseconds."""
    means = outcome.frame("grid").groupby(list(KEYS))["latency"].mean()
    table = means.rename("simulated").reset_index()
    table["model"] = [
        predicted(row["nodes"], row["rf"], row["loss"], row["delay"])
        for row in table.to_dict("records")
    ]
    table["model / simulated"] = table["model"] / table["simulated"]
    return table


def answer(outcome: Outcome) -> list[str]:
    """What the experiment says of the two explanations."""
    table = explanations(outcome)
    means = outcome.frame("variants", "excess").groupby("variant")["excess"].mean()
    whole = means["as it was"]
    left = {name: 100 * means[name] / whole for name in ("min_rto 20ms", "32 at a time")}
    fit = table[["phi", "order statistics", "simulated"]].corr()["simulated"]
    error = 100 * (table["order statistics"] / table["simulated"] - 1).abs()
    worst = table.to_dict("records")[int(error.to_numpy().argmax())]
    return [
        (
            f"RF2's excess at high loss and {WHERE[1]} ms is {whole:.0f} ms; with a least "
            f"timeout of 20 ms {left['min_rto 20ms']:.0f} % of it is left, with 32 writes at a "
            f"time {left['32 at a time']:.0f} %. phi is the same in all three."
        ),
        (
            f"Over {len(table)} cells of consistency levels and replication factors, latency "
            f"correlates with phi by {fit['phi']:.2f}, with the order statistic of "
            f"retransmission timeouts by {fit['order statistics']:.2f}."
        ),
        (
            f"The order-statistics model is off by {error.median():.1f} % in the median and by "
            f"{error.max():.0f} % at most, at {worst['level'].upper()} RF{worst['rf']}: it "
            "doubles the timeout from the first retransmission on, where Linux sends a probe "
            "first, and it knows nothing of messages that wait behind a lost one."
        ),
    ]
