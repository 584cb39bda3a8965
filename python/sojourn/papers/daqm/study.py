"""The runs from parts to tables, and how long they take."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pandas as pd

from sojourn import _core
from sojourn.papers.bench import Bench, runs_of
from sojourn.papers.daqm import claims, estimators, parts, published
from sojourn.papers.daqm.mechanisms import RED
from sojourn.papers.daqm.parts import Size
from sojourn.papers.paper import Frames, Part
from sojourn.study import Table
from sojourn.study.cells import Runnable
from sojourn.study.machine import cores
from sojourn.study.results import StoredRun


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


def estimates(table: Table) -> pd.DataFrame:
    """The published metrics and the books of runs that were watched as published, a row a run."""

    def one(item: tuple[Mapping[str, Any], StoredRun]) -> dict[str, Any]:
        levels, run = item
        watched = run.table("flow_series")
        found = estimators.samples(watched, run.table("series"))
        return {
            **levels,
            "seed": run.seed,
            **estimators.averages(found),
            **{f"{k}_with_zeros": v for k, v in estimators.with_zeros(found).items()},
            **estimators.books(watched),
        }

    with ThreadPoolExecutor(cores()) as pool:
        return pd.DataFrame(list(pool.map(one, runs_of(table))))


def watched(table: Table) -> Frames:
    """The runs, and the published metrics of each."""
    return {"": table.frame, "estimates": estimates(table)}


def overloaded(table: Table) -> Frames:
    """All runs with what claims speak about, and those above the ports' capacity."""
    frame = derived(table.frame)
    return {"": judged(frame), "all": frame}


def planned(size: Size) -> list[Part]:
    """Everything that is run, in order."""
    return [
        replace(parts.as_published(size), frames=watched),
        replace(parts.quirks(size), frames=watched),
        parts.as_described(size),
        *(replace(part, frames=overloaded) for part in parts.as_meant(size)),
    ]


def estimate(listed: Sequence[Part], workers: int) -> str:
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


def _seconds(scenario: Runnable) -> float:
    """Seconds that a run of this scenario takes, from its beginning."""
    begin, reached = time.perf_counter(), 0.0

    def watch(fraction: float, _events: int) -> bool:
        nonlocal reached
        reached = fraction
        return time.perf_counter() - begin < _LOOK

    whole = _core.simulate(scenario.plan_json, 1, watch).complete
    spent = time.perf_counter() - begin
    return spent if whole else spent / max(reached, 1e-6)


def measure(bench: Bench) -> dict[str, Any]:
    """Makes all parts; the full study says first how long it will take here."""
    listed = planned(bench.size)
    if bench.size.whole:
        bench.stage(estimate(listed, bench.workers or cores()))
    for part in listed:
        bench.make(part)
    return {}
