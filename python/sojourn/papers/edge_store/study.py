"""The study from cells to verdicts: what is run, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sojourn.papers.edge_store import published, scenarios
from sojourn.papers.edge_store.scenarios import LOSSES, NODES, scenario
from sojourn.papers.runs import Row, Runs
from sojourn.papers.stage import Stage
from sojourn.stats.quorum import QuorumModel, phi, phi_table

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from sojourn.papers.edge_store.claims import OnPaper
    from sojourn.scenario import Scenario
    from sojourn.stats import Claim, Judgement
    from sojourn.study.cluster import Place

NAME = "edge-store"
TITLE = "Replicated stores at the edge: replication factors under delay and loss"
PAPER = (
    "P. Loganathan, D. Rauthan, A. Trivedi, V. Naik: Performance Measurement of Distributed "
    "Storage on Edge Devices"
)

Cells = list[tuple[Mapping[str, str | int], "Scenario"]]

LATENCY = "store.latency_mean"


@dataclass(frozen=True)
class Size:
    """Delays in milliseconds, writes of a run, and numbers of runs."""

    delays: tuple[int, ...]
    writes: int
    seeds: int


#: The paper's grid and lengths; the paper has one run of each cell.
FULL = Size(published.DELAYS, 1000, 30)
QUICK = Size((0, 20, 50, 100), 1000, 10)

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


@dataclass(frozen=True)
class Outcome:
    """What the study found."""

    size: Size
    quick: bool
    folder: Path
    latency: pd.DataFrame
    """A row a run of the paper's grid, `latency` in milliseconds."""
    mechanism: pd.DataFrame
    """A row a run of the experiment that tells the explanations apart."""
    judgements: tuple[Judgement, ...]
    on_paper: Mapping[str, OnPaper]
    """Each claim on the paper's own points, by its name."""

    @property
    def units(self) -> Mapping[str, str]:
        """Units of the metrics that claims speak about: all are told in milliseconds."""
        return {}

    @property
    def notes(self) -> list[str]:
        """The claims on the paper's own points, and which explanation the experiment leaves."""
        listed = [
            f"{name}: on the paper's own points {found.text}"
            for name, found in self.on_paper.items()
            if found.holds is not None
        ]
        return [*listed, *self.answer()]

    def answer(self) -> list[str]:
        """What the experiment says of the two explanations."""
        table = self.explanations()
        means = self.mechanism.groupby("variant")["excess"].mean()
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

    def explanations(self) -> pd.DataFrame:
        """phi, the order-statistics model and the simulation side by side, by level and RF."""
        import pandas as pd

        levels = {"as it was": "quorum", "one": "one", "all": "all"}
        means = self.mechanism.groupby(["variant", "rf"])["latency"].mean()
        return pd.DataFrame(
            {
                "level": level,
                "rf": rf,
                "phi": float(phi(5, rf, level)),
                "order statistics": predicted(5, rf, *WHERE, level=level),
                "simulated": float(means[variant, rf]),
            }
            for variant, level in levels.items()
            for rf in sorted(set(self.mechanism["rf"]))
        )

    def departures(self) -> pd.DataFrame:
        """The model beside the simulation over the paper's grid, in milliseconds."""
        means = self.latency.groupby(["nodes", "rf", "loss", "delay"])["latency"].mean()
        table = means.rename("simulated").reset_index()
        table["model"] = [
            predicted(row["nodes"], row["rf"], row["loss"], row["delay"])
            for row in table.to_dict("records")
        ]
        table["model / simulated"] = table["model"] / table["simulated"]
        return table

    def as_dict(self) -> dict[str, Any]:
        """Every claim with its verdict and figures, and what they rest on."""
        from sojourn import _core

        return {
            "paper": NAME,
            "title": TITLE,
            "reference": PAPER,
            "quick": self.quick,
            "engine": _core.fingerprint(),
            "folder": str(self.folder),
            "seeds": self.size.seeds,
            "writes": self.size.writes,
            "phi": {
                str(rf): {str(n): str(value) for n, value in row.items()}
                for rf, row in phi_table().items()
            },
            "explanations": self.explanations().to_dict("records"),
            "departures": self.departures().to_dict("records"),
            "answer": self.answer(),
            "claims": [
                {
                    **j.to_dict(),
                    "on_paper": self.on_paper[j.claim.id].holds,
                    "on_paper_text": self.on_paper[j.claim.id].text,
                }
                for j in self.judgements
            ],
        }


def predicted(nodes: int, rf: int, loss: str, delay: int, level: str = "quorum") -> float:
    """The order-statistics model's mean of a cell, in milliseconds; 2 ms of work a write."""
    model = QuorumModel(
        nodes,
        rf,
        delay / 1e3,
        LOSSES[loss],
        level,
        client=2 * scenarios.CLIENT_MS / 1e3,
        work=0.002,
    )
    return 1e3 * model.mean


def _grid(size: Size) -> Cells:
    return [
        (
            {"nodes": nodes, "rf": rf, "loss": loss, "delay": delay},
            scenario(nodes, rf, loss, delay, size.writes),
        )
        for nodes in NODES
        for rf in range(1, nodes + 1)
        for loss in LOSSES
        for delay in size.delays
    ]


def _variants(size: Size) -> Cells:
    loss, delay = WHERE
    return [
        (
            {"variant": name, "rf": rf},
            scenario(5, rf, loss, delay, size.writes, **changes),
        )
        for name, changes in VARIANTS.items()
        for rf in range(2, 6)
    ]


def derived(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The tables that claims are about, by their metric, from a row a run with its latency."""
    import numpy as np
    import pandas as pd

    tables = {"latency": frame}
    keys = ["nodes", "loss", "delay", "seed"]
    wide = frame.pivot_table(index=keys, columns="rf", values="latency")
    excess = wide[2] - wide[[rf for rf in (3, 4, 5) if rf in wide]].mean(axis=1)
    tables["excess"] = excess.rename("excess").reset_index()

    rows = []
    for key, part in frame.groupby(["nodes", "rf", "loss", "seed"]):
        slope = np.polyfit(part["delay"], part["latency"], 1)[0]
        rows.append(
            {**dict(zip(("nodes", "rf", "loss", "seed"), key, strict=True)), "slope": slope}
        )
    tables["slope"] = pd.DataFrame(rows)

    by_loss = frame.pivot_table(
        index=["nodes", "rf", "delay", "seed"], columns="loss", values="latency"
    )
    rise = by_loss["high"] - by_loss["low"]
    tables["degradation"] = rise.rename("degradation").reset_index()

    three = frame[frame["rf"] == 3].pivot_table(
        index=["loss", "delay", "seed"], columns="nodes", values="latency"
    )
    if len(three.columns) > 1:
        deviation = three.std(axis=1, ddof=1)
        tables["deviation"] = deviation.rename("deviation").reset_index()
    return tables


def mechanism_tables(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Latency, and what two replicas cost above the mean of three to five, by variant."""
    wide = frame.pivot_table(index=["variant", "seed"], columns="rf", values="latency")
    excess = (wide[2] - wide[[3, 4, 5]].mean(axis=1)).rename("excess").reset_index()
    return {"latency": frame, "excess": excess}


def _simulate(told: Any, seed: int) -> dict[str, Any]:
    """What is kept of a run: the store's metrics."""
    from sojourn import _core
    from sojourn.scenario.run import plain

    columns = _core.simulate(told, seed).table("summary")
    return {
        name: plain(memoryview(data).cast("d" if dtype == "f8" else "q")[0])
        for name, _, dtype, data in columns
        if name.startswith("store.") and isinstance(data, bytes)
    }


def _frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    frame = pd.DataFrame(rows)
    pending = int(frame["store.pending"].sum())
    if pending:
        raise RuntimeError(f"{pending} writes were still pending at the end of their runs")
    frame["latency"] = frame[LATENCY] * 1e3
    return frame


def _rows(cells: Cells, seeds: int) -> list[Row]:
    return [
        (dict(factors), made.plan_json, seed)
        for factors, made in cells
        for seed in range(1, seeds + 1)
    ]


def run(
    out: Path,
    quick: bool = False,
    workers: int | None = None,
    stage: Stage = lambda _: None,
    size: Size | None = None,
    on: Place | None = None,
) -> Outcome:
    """Runs the study and judges the paper's findings; what is in `out` already is not run again.

    `size` sets lengths and seeds other than the two that `quick` chooses between.
    """
    from sojourn.papers.edge_store import claims
    from sojourn.stats import judge_components

    if on is not None:
        raise ValueError("`paper edge-store` takes minutes on one machine: not on a cluster")
    size = size or (QUICK if quick else FULL)
    kept = Runs(out, _simulate)
    grid_rows, variants = _rows(_grid(size), size.seeds), _rows(_variants(size), size.seeds)
    latency = _frame(kept.run(grid_rows, workers, stage("the paper's grid")))
    mechanism = _frame(kept.run(variants, workers, stage("what tells the explanations apart")))
    ours, apart = derived(latency), mechanism_tables(mechanism)
    mechanism = mechanism.merge(apart["excess"], on=["variant", "seed"])
    grid: tuple[Claim, ...] = (
        *claims.LATENCY,
        *claims.EXCESS,
        *claims.SLOPES,
        *claims.DEGRADATION,
        *claims.DEVIATION,
    )
    measured = [(claim, claim.components(ours[claim.metric])) for claim in grid]
    measured += [(claim, claim.components(apart[claim.metric])) for claim in claims.MECHANISM]
    theirs = derived(published.frame())
    return Outcome(
        size=size,
        quick=quick,
        folder=out,
        latency=latency,
        mechanism=mechanism,
        judgements=tuple(judge_components(measured)),
        on_paper={claim.id: claims.on_paper(claim, theirs) for claim, _ in measured},
    )
