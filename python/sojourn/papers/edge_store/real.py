"""The study on real Cassandra, beside the same scenarios simulated and the paper's own points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sojourn.papers.doubts import doubts_of, told
from sojourn.papers.edge_store import claims, published
from sojourn.papers.edge_store.scenarios import WARMUP, scenario
from sojourn.papers.edge_store.study import LATENCY, NAME, PAPER
from sojourn.papers.stage import Stage
from sojourn.stats import Claim, Least

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from matplotlib.figure import Figure

    from sojourn.scenario import Scenario
    from sojourn.stats import Judgement
    from sojourn.study import Table
    from sojourn.study.engine import Engine


TITLE = "Replicated stores at the edge, on real Cassandra"
COLUMNS = ["nodes", "rf", "loss", "delay", "paper", "simulated", "real", "real / simulated"]
KEYS = ("nodes", "rf", "loss", "delay")
"""What names a cell."""
ROOM = 0.15
"""Real and simulated means of a cell should be this close."""
START = 45.0
"""Seconds that a real run takes before and after its writes, about."""

Cell = tuple[int, int, str, int]
"""Nodes, replication factor, loss by its name, milliseconds of delay."""

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
"""The cells that the claims here are about."""

CLAIMS: tuple[Claim, ...] = (
    Least(
        id="rf2-worst-high",
        text="RF2 has the greatest latency at high loss, five nodes",
        metric="latency",
        published="RF2 gives the worst performance (5.1)",
        among="rf",
        who=2,
        extreme="largest",
        cell={"nodes": 5, "loss": "high", "delay": 20},
    ),
    Least(
        id="rf5-best-high",
        text="RF5 has the least latency at high loss, five nodes",
        metric="latency",
        published="RF5 gives the best performance (5.2)",
        among="rf",
        who=5,
        cell={"nodes": 5, "loss": "high", "delay": 20},
    ),
    next(claim for claim in claims.EXCESS if claim.id == "rf2-excess-high"),
)


@dataclass(frozen=True)
class Size:
    """Cells, writes of a run, and numbers of runs."""

    cells: tuple[Cell, ...]
    writes: int
    seeds: int
    simulated: int

    @property
    def seconds(self) -> float:
        """About how long the real runs take, one after the other."""
        return sum(
            self.seeds * (START + (self.writes + WARMUP) * (0.03 + 0.0025 * delay))
            for _, _, _, delay in self.cells
        )


FULL = Size(tuple(dict.fromkeys(EIGHT + FACTORS)), 1000, 3, 30)
QUICK = Size(FACTORS, 200, 2, 10)


def size_of(quick: bool) -> Size:
    """The size that is meant."""
    return QUICK if quick else FULL


def estimate(size: Size) -> str:
    """How long the real runs will take, for people."""
    runs = len(size.cells) * size.seeds
    return (
        f"{runs} clusters of real Cassandra, one after the other, {size.writes} writes each: "
        f"about {size.seconds / 60:.0f} minutes"
    )


@dataclass(frozen=True)
class Outcome:
    """What was found in both worlds."""

    size: Size
    quick: bool
    folder: Path
    real: Table
    simulated: Table
    judgements: tuple[Judgement, ...]
    """On the real runs."""
    in_simulation: tuple[Judgement, ...]
    doubts: Mapping[str, tuple[str, ...]]
    """Real runs that are not valid, and why."""

    @property
    def units(self) -> Mapping[str, str]:
        """Claims are told in milliseconds."""
        return {}

    @property
    def beside(self) -> pd.DataFrame:
        """Each cell's mean in milliseconds: the paper's, simulated, real."""
        import pandas as pd

        keys = list(KEYS)
        theirs = published.frame().set_index(keys)["latency"].to_dict()
        here = latency(self.simulated).groupby(keys, sort=False)["latency"].mean()
        there = latency(self.real).groupby(keys, sort=False)["latency"].mean()
        return pd.DataFrame(
            {
                **dict(zip(keys, cell, strict=True)),
                "paper": theirs.get(cell, float("nan")),
                "simulated": float(here[cell]),
                "real": float(there[cell]),
                "real / simulated": float(there[cell] / here[cell]),
            }
            for cell in self.size.cells
        )

    @property
    def outside(self) -> list[str]:
        """Cells whose means are not as close as they should be."""
        return [
            f"{row['nodes']} nodes, RF{row['rf']}, {row['loss']} loss, {row['delay']} ms: "
            f"{row['real / simulated']:.2f}"
            for row in self.beside.to_dict("records")
            if abs(row["real / simulated"] - 1) > ROOM
        ]

    @property
    def notes(self) -> list[str]:
        """What a reader has to know of the verdicts."""
        lines = [
            f"{mine.claim.id}: {mine.verdict} for real, {other.verdict} simulated"
            for mine, other in zip(self.judgements, self.in_simulation, strict=True)
            if mine.verdict != other.verdict
        ]
        if not self.judgements:
            lines.append("no claim is judged, for want of the cells that they are about")
        cells = len(self.size.cells)
        good = cells - len(self.outside)
        lines.append(
            f"real and simulated means are within {100 * ROOM:.0f} % in {good} of {cells} cells"
            + (f"; not in: {'; '.join(self.outside)}" if self.outside else "")
        )
        return [*lines, *told(self.doubts, len(self.real))]

    def as_dict(self) -> dict[str, Any]:
        """Every claim with its verdicts and figures, and what they rest on."""
        from sojourn.scenario.run import plain

        return {
            "paper": NAME,
            "part": "real Cassandra",
            "title": TITLE,
            "reference": PAPER,
            "quick": self.quick,
            "folder": str(self.folder),
            "real": {key: self.about[key] for key in ("engine", "kernel", "programs")},
            "seeds": self.size.seeds,
            "writes": self.size.writes,
            "claims": [
                {**mine.to_dict(), "simulated": other.to_dict()}
                for mine, other in zip(self.judgements, self.in_simulation, strict=True)
            ],
            "beside": [
                {str(k): plain(v) for k, v in row.items()} for row in self.beside.to_dict("records")
            ],
            "outside": self.outside,
            "doubts": {run: list(why) for run, why in self.doubts.items()},
        }

    @property
    def about(self) -> Mapping[str, Any]:
        """How the first real run came about."""
        assert self.real.results is not None
        about: Mapping[str, Any] = self.real.results.runs()[0].about["real"]
        return about


def latency(table: Table) -> pd.DataFrame:
    """A row a run, its mean in milliseconds."""
    frame = table.frame.copy()
    frame["latency"] = frame[LATENCY] * 1e3
    return frame


def tables(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The tables that claims are about, by their metric."""
    keys = ["nodes", "loss", "delay", "seed"]
    rows = frame[(frame["nodes"] == 5) & (frame["loss"] == "high")]
    wide = rows.pivot_table(index=keys, columns="rf", values="latency")
    excess = (wide[2] - wide[[rf for rf in claims.MANY if rf in wide]].mean(axis=1)).dropna()
    return {"latency": frame, "excess": excess.rename("excess").reset_index()}


def rows(outcome: Outcome) -> list[dict[str, str]]:
    """The means of both worlds and the paper, for people."""

    def shown(value: Any) -> str:
        return f"{value:.1f} ms" if value == value else "–"

    return [
        {
            **{key: str(row[key]) for key in KEYS},
            **{key: shown(row[key]) for key in ("paper", "simulated", "real")},
            "real / simulated": f"{row['real / simulated']:.2f}",
        }
        for row in outcome.beside.to_dict("records")
    ]


def run(
    out: Path,
    engine: Engine,
    size: Size = QUICK,
    quick: bool = True,
    workers: int | None = None,
    stage: Stage = lambda _: None,
) -> Outcome:
    """Runs the cells on real nodes and simulated, and judges the findings that are about them.

    What is in `out` already is not run again.
    """
    from sojourn.lab.store.run import require
    from sojourn.stats import judge_components
    from sojourn.study import Study

    cells: list[tuple[Mapping[str, str | int], Scenario]] = [
        (
            {"nodes": nodes, "rf": rf, "loss": loss, "delay": delay},
            scenario(nodes, rf, loss, delay, size.writes),
        )
        for nodes, rf, loss, delay in size.cells
    ]
    require(cells[0][1].plan(), "wire")  # what is missing is said before anything is simulated

    def study(name: str, seeds: int) -> Study:
        made = Study.of_cells(name, cells, kind="paper", question={"paper": NAME})
        return made.seeds(seeds)

    simulated = study("edge store", size.simulated).run(
        out=out / "simulated", workers=workers, progress=stage("writes, simulated")
    )
    real = study("edge store, for real", size.seeds).run(
        out=out / "real", progress=stage("writes, for real"), engine=engine
    )

    def judged(table: Table) -> tuple[Judgement, ...]:
        if not set(FACTORS) <= set(size.cells):
            return ()
        found = tables(latency(table))
        return tuple(
            judge_components([(claim, claim.components(found[claim.metric])) for claim in CLAIMS])
        )

    return Outcome(
        size=size,
        quick=quick,
        folder=out,
        real=real,
        simulated=simulated,
        judgements=judged(real),
        in_simulation=judged(simulated),
        doubts=doubts_of(real, KEYS),
    )


def figure(outcome: Outcome) -> Figure:
    """Every cell: the paper's point, the simulated and the real mean with 95 % intervals."""
    from sojourn.show import style
    from sojourn.stats import mean_interval

    worlds = {"simulated": latency(outcome.simulated), "real": latency(outcome.real)}
    with style.styled():
        made = style.figure(2 * style.COLUMN, 3.0)
        axes = made.subplots()
        names = [f"{n} nodes\nRF{rf}, {loss}\n{d} ms" for n, rf, loss, d in outcome.size.cells]
        places = range(len(names))
        for i, (world, frame) in enumerate(worlds.items()):
            spans = [
                mean_interval(
                    frame[
                        (frame["nodes"] == n) & (frame["rf"] == rf)
                        & (frame["loss"] == loss) & (frame["delay"] == d)
                    ]["latency"].to_numpy()
                )
                for n, rf, loss, d in outcome.size.cells
            ]  # fmt: skip
            axes.errorbar(
                [place + 0.16 * (i - 0.5) for place in places],
                [s.estimate for s in spans],
                yerr=[[s.estimate - s.low for s in spans], [s.high - s.estimate for s in spans]],
                linestyle="none",
                marker=style.marker(i),
                color=style.colour(i),
                label=world,
            )
        axes.plot(
            list(places), outcome.beside["paper"], linestyle="none", marker="_", markersize=14,
            color="black", label="paper",
        )  # fmt: skip
        axes.set_xticks(list(places), names)
        axes.set_ylabel("Mean latency of a write (ms)")
        axes.set_ylim(bottom=0)
        style.legend_above(made, axes, 3)
    return made


def remarks(outcome: Outcome) -> list[str]:
    """What a reader has to know before the verdicts."""
    programs = ", ".join(f"{name} {version}" for name, version in outcome.about["programs"].items())
    size = outcome.size
    return [
        (
            f"Real nodes ({programs}) on Linux {outcome.about['kernel']}, each in a network "
            f"namespace, links by the wire: {size.seeds} clusters a cell, {size.writes} writes "
            f"after a warm-up; simulated {size.simulated} times. The same tokens, keys and order "
            "of coordinators in both worlds. Verdicts are on the real runs."
        ),
        *outcome.notes,
    ]


def show(outcome: Outcome) -> list[Path]:
    """Writes the figure and the report; gives their paths, the report first."""
    import pandas as pd

    from sojourn.show import paper_page, paper_report

    drawn = figure(outcome)
    page = paper_page(
        title=TITLE,
        reference=PAPER,
        judgements=outcome.judgements,
        results={},
        figures=[(drawn, "Writes", "Means with 95 % intervals over runs; the paper has one run.")],
        tables=[("Means in both worlds", pd.DataFrame(rows(outcome), columns=COLUMNS))],
        remarks=remarks(outcome),
        commands=[f"sojourn paper {NAME} --real{' --quick' if outcome.quick else ''}"],
        units=outcome.units,
    )
    return paper_report(outcome.folder, page, {"cells": drawn})
