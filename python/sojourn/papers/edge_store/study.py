"""Runs of the study and their sizes, derived metrics, and a test of the paper's explanation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from sojourn.papers.edge_store import claims, published, scenarios
from sojourn.papers.edge_store.scenarios import LOSSES, NODES, WARMUP, scenario
from sojourn.papers.outcome import Outcome
from sojourn.papers.part import Cells, Frames, Part, Size, estimate
from sojourn.scenario import Scenario
from sojourn.stats import Claim
from sojourn.stats.quorum import QuorumModel, phi
from sojourn.study import Table

LATENCY = "store.latency_mean"
METRICS = ("store.*",)
KEYS = ("nodes", "rf", "loss", "delay")
"""Factors that identify a cell."""
Cell = tuple[int, int, str, int]
"""Levels of `KEYS`: number of nodes, replication factor, name of the loss, delay in ms."""


@dataclass(frozen=True, kw_only=True)
class EdgeSize(Size):
    """Size of the study."""

    cells: tuple[Cell, ...]
    writes: int = 1000
    """Number of measured writes of a run."""
    claims: tuple[Claim, ...] = claims.GRID
    variants: bool = True
    """Whether to make the runs of more nodes, and those that distinguish the two explanations."""
    real_seeds: int | None = None
    """Number of seeds of real runs; `None` if the size is not for real runs."""


Results = Outcome[EdgeSize]
"""Results of this study."""


def grid(delays: tuple[int, ...]) -> tuple[Cell, ...]:
    """Returns the paper's grid at these delays in milliseconds."""
    return tuple(
        (nodes, rf, loss, delay)
        for nodes in NODES
        for rf in range(1, nodes + 1)
        for loss in LOSSES
        for delay in delays
    )


#: The paper's grid and number of writes. The paper has one run of each combination instead of 40.
FULL = EdgeSize(cells=grid(published.DELAYS), seeds=40)
QUICK = EdgeSize(cells=grid((0, 20, 50, 100)), seeds=10)

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
"""Eight cells of real runs, chosen before the first comparison with simulated runs."""
AT = grid((claims.REAL_DELAY,))
"""Cells at the delay at which claims are judged on real nodes."""
FACTORS = (
    *((5, rf, loss, claims.REAL_DELAY) for loss in ("high", "low") for rf in range(1, 6)),
    (5, 1, "high", 0),
    (5, 2, "high", 0),
)
"""Cells of real runs with `--quick`: five nodes at low and high loss, and two without delay, where
the paper's points and the simulation differ most."""
REAL_FULL = EdgeSize(
    cells=tuple(dict.fromkeys(EIGHT + AT)),
    seeds=30,
    claims=claims.REAL,
    variants=False,
    real_seeds=5,
)
REAL_QUICK = replace(REAL_FULL, cells=FACTORS, writes=200, claims=claims.REAL_FIVE)
START = 30.0
"""Approximate duration of a real run without its writes, in seconds."""

#: Loss and delay in ms of the runs that distinguish phi from order statistics.
WHERE = ("high", 50)
#: Changes of the scenario at `WHERE`. Each is compared with `as it was`, which has RF 2 to 5,
#: QUORUM and one write at a time.
VARIANTS: dict[str, Callable[[int, int, str, int, int], Scenario]] = {
    "as it was": scenario,
    "min_rto 20ms": partial(scenario, tcp="cubic min_rto 20ms"),
    "no RACK, no TLP": partial(scenario, tcp="cubic rack off"),
    "32 at a time": partial(scenario, outstanding=32),
    "one": partial(scenario, consistency="one"),
    "all": partial(scenario, consistency="all"),
}
SIZES: tuple[Cell, ...] = tuple(
    (nodes, rf, loss, 50) for nodes in (3, 5, 7, 9, 12, 15) for rf in (2, 3, 5) for loss in LOSSES
    if rf <= nodes
)  # fmt: skip
"""Cells with up to three times as many nodes as the paper's."""


def lasting(size: EdgeSize) -> str:
    """Describes the number of real runs and their estimated duration."""
    number = size.real_seeds or size.seeds
    seconds = sum(
        number * (START + (size.writes + WARMUP) * (0.03 + 0.0025 * delay))
        for *_, delay in size.cells
    )
    runs = f"{len(size.cells) * number} clusters of real Cassandra, {size.writes} writes each"
    return estimate(runs, seconds)


def cells_of(size: EdgeSize, cells: Sequence[Cell] = ()) -> Cells:
    """Returns cells with this size's number of writes; by default, the size's own cells."""
    return [
        (dict(zip(KEYS, cell, strict=True)), scenario(*cell, size.writes))
        for cell in cells or size.cells
    ]


def variants_of(size: EdgeSize) -> Cells:
    """Returns the cells of the runs that distinguish the two explanations: `VARIANTS` by RF."""
    loss, delay = WHERE
    return [
        ({"variant": name, "rf": rf}, changed(5, rf, loss, delay, size.writes))
        for name, changed in VARIANTS.items()
        for rf in range(2, 6)
    ]


# Metrics of claims, in addition to each run's latency


def _excess(frame: pd.DataFrame) -> pd.Series[float]:
    """Returns the latency of RF2 minus the mean latency of RF3 to RF5."""
    by = [k for k in ("nodes", "loss", "delay", "variant", "seed") if k in frame]
    wide = frame.pivot_table(index=by, columns="rf", values="latency")
    wide = wide.reindex(columns=[2, *claims.MANY])
    return wide[2] - wide[[*claims.MANY]].mean(axis=1)


def _slope(frame: pd.DataFrame) -> pd.Series[float]:
    """Returns the slope of latency over the delay of a link, by least squares.

    The slope is NaN if there is only one delay.
    """
    by = ["nodes", "rf", "loss", "seed"]
    delay = frame["delay"] - frame.groupby(by)["delay"].transform("mean")
    sums = pd.DataFrame({**frame[by], "xy": delay * frame["latency"], "xx": delay**2}).groupby(by)
    return sums["xy"].agg(lambda x: x.sum(skipna=False)) / sums["xx"].sum().replace(0, np.nan)


def _by_loss(frame: pd.DataFrame) -> pd.DataFrame:
    wide = frame.pivot_table(
        index=["nodes", "rf", "delay", "seed"], columns="loss", values="latency"
    )
    return wide.reindex(columns=list(LOSSES))


def _degradation(frame: pd.DataFrame) -> pd.Series[float]:
    """Returns the latency at high loss minus the latency at low loss."""
    by = _by_loss(frame)
    return by["high"] - by["low"]


def _per(frame: pd.DataFrame, divisor: Callable[[int, int], float]) -> pd.Series[float]:
    """Returns the degradation divided by a number of the nodes and the replication factor."""
    found = _degradation(frame)
    known = {cell: divisor(*cell) for cell in {(n, rf) for n, rf, *_ in found.index}}
    return found / [known[n, rf] for n, rf, *_ in found.index]


def _phi(nodes: int, rf: int) -> float:
    return float(phi(nodes, rf))


def _rise(nodes: int, rf: int) -> float:
    """Returns how much the share of writes that wait for a timeout is greater at high loss."""
    low, high = (QuorumModel(nodes, rf, 0, LOSSES[loss]).late for loss in ("low", "high"))
    return high - low


def _by_factor(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the latencies by factor, without combinations that lack a factor."""
    wide = frame.pivot_table(index=["nodes", "loss", "delay", "seed"], columns="rf",
                             values="latency")  # fmt: skip
    return wide[wide.notna().sum(axis=1) == wide.index.get_level_values("nodes")]


def _best(frame: pd.DataFrame) -> pd.Series[float]:
    """Returns the replication factor with the least latency."""
    return _by_factor(frame).idxmin(axis=1).astype(float)


def _regret(frame: pd.DataFrame, least: int = 1) -> pd.Series[float]:
    """Returns the greatest excess over the best factor of at least `least`, of all losses."""
    wide = _by_factor(frame)
    wide = wide.drop(columns=range(1, least), errors="ignore")
    lost = wide.sub(wide.min(axis=1), axis=0).melt(ignore_index=False, value_name="latency")
    by = _by_loss(lost.reset_index())
    return by.max(axis=1).where(by[["low", "high"]].notna().all(axis=1))


def _of_model(frame: pd.DataFrame) -> pd.Series[float]:
    """Returns the latency divided by that of the order-statistics model."""
    found = frame.groupby([*KEYS, "seed"])["latency"].mean()
    return found / [predicted(*cell) for *cell, _ in found.index]


def _median(frame: pd.DataFrame) -> pd.Series[float]:
    """Returns the median of the latencies at the three losses."""
    return _by_loss(frame).median(axis=1, skipna=False)


def _many(frame: pd.DataFrame) -> pd.Series[float]:
    """Returns the mean latency of RF3 to RF5."""
    many = frame[frame["rf"].isin(claims.MANY)]
    return many.groupby(["nodes", "loss", "delay", "seed"])["latency"].mean()


def _deviation(frame: pd.DataFrame, *by: str) -> pd.Series[float]:
    """Returns the standard deviation of RF3's latencies in clusters of 3, 4 and 5 nodes."""
    three = frame[frame["rf"] == 3].pivot_table(
        index=[*by, "delay", "seed"], columns="nodes", values="latency"
    )
    return three.reindex(columns=list(NODES)).std(axis=1, ddof=1, skipna=False)


def _deviations(frame: pd.DataFrame) -> pd.Series[float]:
    """Returns `_deviation` for each loss separately."""
    return _deviation(frame, "loss")


def _averaged_deviation(frame: pd.DataFrame) -> pd.Series[float]:
    """Returns `_deviation` of the latencies that are averaged over the three losses.

    The value is NaN if one of the losses was not run.
    """
    whole = _by_loss(frame).mean(axis=1, skipna=False).rename("latency").reset_index()
    return _deviation(whole)


ON_GRID: Mapping[str, Callable[[pd.DataFrame], pd.Series[float]]] = {
    "excess": _excess,
    "slope": _slope,
    "degradation": _degradation,
    "per_phi": partial(_per, divisor=_phi),
    "per_late": partial(_per, divisor=_rise),
    "median": _median,
    "many": _many,
    "deviation": _deviations,
    "averaged_deviation": _averaged_deviation,
    "best": _best,
    "regret": _regret,
    "replicated_regret": partial(_regret, least=2),
}
"""Functions that derive a metric, by the metric's name."""


def derived(frame: pd.DataFrame, metrics: Collection[str] = tuple(ON_GRID)) -> pd.DataFrame:
    """Returns the runs with the derived metrics of their cells, computed for each seed."""
    for metric in metrics:
        found = {**ON_GRID, "of_model": _of_model}[metric](frame).rename(metric)
        if found.empty:  # its keys have no types to merge on
            frame = frame.assign(**{metric: np.nan})
            continue
        frame = frame.merge(found.reset_index(), how="left", on=list(found.index.names))
    return frame


def _frames(metrics: Collection[str]) -> Callable[[Table], Frames]:
    def frames(table: Table) -> Frames:
        frame = table.frame
        pending = int(frame["store.pending"].sum())
        if pending:
            raise RuntimeError(
                f"{pending} writes did not complete before the end of their runs, so their "
                "latency is unknown; make the scenario longer"
            )
        frame = frame[[*table.factors, "seed"]].assign(latency=frame[LATENCY] * 1e3)
        return {"": derived(frame, metrics)}

    return frames


def parts(size: EdgeSize) -> Iterator[Part]:
    """Yields the grid, more nodes, and the runs that distinguish the two explanations."""
    grid, sizes = cells_of(size), cells_of(size, SIZES)
    for name, title, cells, judged, metrics in (
        ("grid", "writes", grid, size.claims, tuple(ON_GRID)),
        ("sizes", "more nodes", sizes, claims.SIZES, ("of_model",)),
        ("variants", "variants of each explanation", variants_of(size), claims.MECHANISM,
         ("excess",)),
    )[: None if size.variants else 1]:  # fmt: skip
        yield Part(
            name=name, title=title, cells=cells, claims=judged, frames=_frames(metrics),
            metrics=METRICS, tables=(), real_seeds=size.real_seeds,
        )  # fmt: skip


def work(size: EdgeSize) -> float:
    """Returns the number of runs, which take about equally long."""
    return size.seeds * (len(size.cells) + size.variants * (len(SIZES) + len(variants_of(size))))


def published_tables() -> Frames:
    """Returns the paper's own points with the derived metrics.

    The paper has no points for clusters of three and four nodes, and at medium loss only the mean
    of RF3 to RF5.
    """
    frame = derived(published.frame())
    figure = {
        (loss, delay): value
        for loss, values in published.FIGURE_4.items()
        for delay, value in zip(published.DELAYS, values, strict=True)
    }
    keys = zip(frame["loss"], frame["delay"], strict=True)
    return {"": frame.assign(many=[figure[key] for key in keys])}


# Results of the runs, compared with phi and with the order-statistics model.


def predicted(nodes: int, rf: int, loss: str, delay: int, level: str = "quorum") -> float:
    """Returns the mean latency of a cell by the order-statistics model, in milliseconds.

    The model's service time of a write is 2 ms.
    """
    client = 2 * scenarios.CLIENT_MS / 1e3
    model = QuorumModel(nodes, rf, delay / 1e3, LOSSES[loss], level, client=client, work=0.002)
    return 1e3 * model.mean


def explanations(outcome: Results) -> pd.DataFrame:
    """Returns the simulated latency, the order-statistics model's prediction of it, and phi.

    Rows are consistency levels and replication factors.
    """
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


def departures(outcome: Results, part: str = "grid") -> pd.DataFrame:
    """Returns the simulated latency and the model's prediction in each cell of a part, in ms."""
    means = outcome.frame(part).groupby(list(KEYS))["latency"].mean()
    table = means.rename("simulated").reset_index()
    table["model"] = [
        predicted(row["nodes"], row["rf"], row["loss"], row["delay"])
        for row in table.to_dict("records")
    ]
    table["model / simulated"] = table["model"] / table["simulated"]
    return table


def answer(outcome: Results) -> list[str]:
    """Returns sentences on how well each of the two explanations predicts the simulated latency."""
    table = explanations(outcome)
    means = outcome.frame("variants").groupby("variant")["excess"].mean()
    whole = means["as it was"]
    left = {name: 100 * means[name] / whole for name in ("min_rto 20ms", "32 at a time")}
    fit = table[["phi", "order statistics", "simulated"]].corr()["simulated"]
    error = 100 * (table["order statistics"] / table["simulated"] - 1).abs()
    worst = table.to_dict("records")[int(error.to_numpy().argmax())]
    return [
        (
            f"At high loss and a delay of {WHERE[1]} ms, RF2's simulated latency exceeds the mean "
            f"of RF3 to RF5 by {whole:.0f} ms. With a minimum timeout of 20 ms, "
            f"{left['min_rto 20ms']:.0f} % of this excess remain; with 32 writes at a time, "
            f"{left['32 at a time']:.0f} %. phi is the same in all three cases."
        ),
        (
            f"Over {len(table)} pairs of consistency level and replication factor, the "
            f"correlation of simulated latency is {fit['phi']:.2f} with phi, and "
            f"{fit['order statistics']:.2f} with the order statistic of retransmission timeouts."
        ),
        (
            f"The median error of the order-statistics model is {error.median():.1f} %, its "
            f"greatest error {error.max():.0f} %, at {worst['level'].upper()} RF{worst['rf']}. The "
            "model doubles the timeout from the first retransmission on, whereas Linux sends a "
            "probe first. It also ignores messages that wait behind a lost message."
        ),
    ]
