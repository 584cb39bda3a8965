"""The study from cells to verdicts: three readings of one paper, and what changes between them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn.papers.daqm import claims, estimators, parts, published
from sojourn.papers.daqm.mechanisms import RED
from sojourn.papers.daqm.parts import FULL, QUICK, Part, Size
from sojourn.papers.stage import Stage
from sojourn.study.machine import cores

if TYPE_CHECKING:
    import pandas as pd

    from sojourn.scenario import Scenario
    from sojourn.stats import Judgement
    from sojourn.study import Table
    from sojourn.study.cluster import Place
    from sojourn.study.progress import Report

NAME = "daqm"
TITLE = "Derivative-based queue management against five rivals"
PAPER = (
    "Adaptive In-Network Queue Management based on the Stochasticity of Network Flows, "
    "bachelor's thesis, University of Groningen, 2023"
)


@dataclass(frozen=True)
class Outcome:
    """What the study found."""

    size: Size
    quick: bool
    folder: Path
    tables: Mapping[str, Table]
    """By the names of the parts."""
    estimates: pd.DataFrame
    """The published metrics of the runs as published, and their books, a row a run."""
    quirks: pd.DataFrame
    """The same of the runs that have dAQM's quirks one by one."""
    judgements: tuple[Judgement, ...]

    @property
    def beside(self) -> pd.DataFrame:
        """Every published value with ours, and the ratio."""
        return beside(self.estimates)

    @property
    def described(self) -> pd.DataFrame:
        """The runs as described, a row a run."""
        return self.tables["described"].frame

    @property
    def units(self) -> Mapping[str, str]:
        """Units of the metrics that claims speak about."""
        known: dict[str, str] = {
            claims.DELIVERED: "bit/s",
            claims.AGAINST_RED: "1",
            claims.COMPLETION: "s",
        }
        for table in self.tables.values():
            known |= table.units
        return known

    @property
    def notes(self) -> list[str]:
        """What changes between the readings, a line each."""
        from sojourn.papers.daqm.differences import messages

        return messages(self)

    def as_dict(self) -> dict[str, Any]:
        """Every claim with its verdict and figures, and what they rest on."""
        from sojourn import _core
        from sojourn.scenario.run import plain

        return {
            "paper": NAME,
            "title": TITLE,
            "reference": PAPER,
            "quick": self.quick,
            "engine": _core.fingerprint(),
            "folder": str(self.folder),
            "seeds": {name: len(table.seeds) for name, table in self.tables.items()},
            "differences": self.notes,
            "published": [
                {str(k): plain(v) for k, v in row.items()} for row in self.beside.to_dict("records")
            ],
            "claims": [j.to_dict() for j in self.judgements],
        }


def beside(estimates: pd.DataFrame) -> pd.DataFrame:
    """Every published value with the mean of our runs of its cell, and the ratio."""
    known = published.frame()
    metrics = list(published.METRICS)
    ours = estimates.groupby(list(parts.KEY))[metrics].mean()
    rows = []
    for record in known.to_dict("records"):
        row = {str(name): value for name, value in record.items()}
        key = parts.key_of(row)
        if key not in ours.index:
            continue
        here = float(ours.loc[key, row["metric"]])
        there = float(row["published"])
        ratio = here / there if there else (1.0 if here == there else float("nan"))
        rows.append({**row, "here": here, "ratio": ratio})
    import pandas as pd

    return pd.DataFrame(rows)


def derived(frame: pd.DataFrame) -> pd.DataFrame:
    """A part's runs with what the claims speak about beyond the runs' own metrics."""
    frame = frame.copy()
    by_transport = frame.filter(["clients.goodput", "clients.udp_goodput"])
    frame[claims.DELIVERED] = by_transport.sum(axis=1, min_count=1)
    if "clients.unfinished" in frame:
        ended = frame["clients.finished"]
        waiting = frame["clients.unfinished"]
        spent = frame["clients.fct_mean"].fillna(0.0) * ended + frame["measured"] * waiting
        frame[claims.COMPLETION] = spent / (ended + waiting)
    cell = [name for name in ("flow", "model", "load", "payload", "seed") if name in frame]
    red = frame[frame["mechanism"] == RED].set_index(cell)[claims.SOJOURN]
    if red.index.is_unique and not red.empty:
        base = red.reindex(frame.set_index(cell).index).to_numpy()
        frame[claims.AGAINST_RED] = frame[claims.SOJOURN] / base
    return frame


def judged(frame: pd.DataFrame) -> pd.DataFrame:
    """The runs that a part's claims are about: those above the ports' capacity."""
    return frame[frame["load"] > 1] if "load" in frame else frame


def _run(
    part: Part, folder: Path, workers: int | None, report: Report | None, on: Place | None
) -> Table:
    from sojourn.study import Study

    study = Study.of_cells(f"dAQM {part.title}", part.cells, kind="paper", question={"paper": NAME})
    study = study.seeds(part.seeds)
    return study.run(out=folder / part.name, workers=workers, progress=report, on=on)


def estimates(table: Table, workers: int | None = None) -> pd.DataFrame:
    """The published metrics of each run of a part that was watched as published."""
    import pandas as pd

    from sojourn.study.results import StoredRun

    if table.results is None:
        raise ValueError("the published metrics are in the results folder, which this table lacks")

    rows = table.frame[[*table.factors, "seed", "key"]].to_dict("records")
    store = table.results.store

    # By the table's rows: cells whose words come to the same plan share a run.
    def one(row: Mapping[Any, Any]) -> dict[str, Any]:
        run = StoredRun(store, str(row["key"]))
        watched = run.table("flow_series")
        found = estimators.samples(watched, run.table("series"))
        return {
            **{str(name): value for name, value in row.items()},
            **estimators.averages(found),
            **{f"{k}_with_zeros": v for k, v in estimators.with_zeros(found).items()},
            **estimators.books(watched),
        }

    with ThreadPoolExecutor(workers or cores()) as pool:
        return pd.DataFrame(list(pool.map(one, rows)))


def planned(size: Size) -> list[Part]:
    """Everything that is run, in order."""
    return [
        parts.as_published(size),
        parts.quirks(size),
        parts.as_described(size),
        *parts.as_meant(size),
    ]


def estimate(listed: list[Part], workers: int) -> str:
    """How many runs there are and about how long they take, measured on short ones.

    One cell of each part, flow and model is begun.
    """
    measured: dict[tuple[str, Any, Any], float] = {}
    total = 0.0
    for part in listed:
        for factors, scenario in part.cells:
            kind = (part.name, factors["flow"], factors.get("model"))
            if kind not in measured:
                measured[kind] = _seconds(scenario)
            total += measured[kind] * part.seeds
    cells = sum(len(part.cells) for part in listed)
    runs = sum(len(part.cells) * part.seeds for part in listed)
    minutes = max(1, round(total / workers / 60))
    return (
        f"{runs} runs of {cells} cells; about {_counted(minutes, 'minute')} on "
        f"{_counted(workers, 'core')}, measured on the beginning of {len(measured)}"
    )


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


_LOOK = 0.7
"""Seconds of a run from which its whole length is told."""


def _seconds(scenario: Scenario) -> float:
    """Seconds that a run of this scenario takes, from its beginning."""
    from sojourn import _core

    begin, reached = time.perf_counter(), 0.0

    def watch(fraction: float, _events: int) -> bool:
        nonlocal reached
        reached = fraction
        return time.perf_counter() - begin < _LOOK

    whole = _core.simulate(scenario.plan_json, 1, watch).complete
    spent = time.perf_counter() - begin
    return spent if whole else spent / max(reached, 1e-6)


def run(
    out: Path,
    quick: bool = False,
    workers: int | None = None,
    stage: Stage = lambda _: None,
    size: Size | None = None,
    on: Place | None = None,
) -> Outcome:
    """Runs the study and judges the thesis' findings; what is in `out` already is not run again.

    `size` sets lengths and seeds other than the two that `quick` chooses between. The full study
    says first how long it will take here. `on` is a Dask cluster that makes the runs.
    """
    from sojourn.stats import judge_components

    size = size or (QUICK if quick else FULL)
    listed = planned(size)
    if size.whole:
        stage(estimate(listed, workers or cores()))
    tables = {part.name: _run(part, out, workers, stage(part.title), on) for part in listed}
    measured = []
    for part in listed:
        if part.claims:
            table = tables[part.name]
            table.frame = derived(table.frame)
            frame = judged(table.frame)
            measured += [(claim, claim.components(frame)) for claim in part.claims]
    stage("published metrics")
    return Outcome(
        size=size,
        quick=quick,
        folder=out,
        tables=tables,
        estimates=estimates(tables["published"], workers),
        quirks=estimates(tables["quirks"], workers),
        judgements=tuple(judge_components(measured)),
    )
