"""The simulated runs of a record, with their trace hashes, and the repetition of a sample of them.

`recorded/runs/NAME.json.xz` has each run's plan, seed, key and trace hash. A sample is drawn at
random, with equally many runs of each mechanism. An engine that gives the recorded hashes
reproduces the record.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path

from sojourn.papers import load
from sojourn.papers.bench import runs_of
from sojourn.papers.outcome import Outcome
from sojourn.papers.part import Size
from sojourn.papers.side_by_side import SIMULATED
from sojourn.papers.steady import FOLDER
from sojourn.plan import Plan
from sojourn.scenario.engine import single
from sojourn.study.key import short
from sojourn.study.machine import cores


@dataclass(frozen=True)
class Run:
    """A run of a record."""

    part: str
    mechanism: str
    """Level of the study's factor `mechanism`; empty in a part without this factor."""
    seconds: float
    """Simulated length in seconds."""
    plan: str
    """The plan as canonical JSON."""
    seed: int
    events: int
    """Number of events, to which the run's CPU time is roughly proportional."""
    key: str
    trace_hash: str

    def __str__(self) -> str:
        return f"{self.part}, {self.mechanism or 'all mechanisms'}, seed {self.seed}"


def path(name: str) -> Path:
    """Returns the file with the runs of a study's record."""
    return FOLDER / "runs" / f"{name}.json.xz"


def keep(outcome: Outcome[Size]) -> int:
    """Writes the simulated runs of a study to its file; returns their number."""
    cells: dict[tuple[str, str, float, str], int] = {}
    runs: dict[str, tuple[int, int, int, str, str]] = {}
    for part, table in outcome.columns[SIMULATED].tables.items():
        for levels, run in runs_of(table):
            if run.key in runs:
                continue
            mechanism = str(levels.get(outcome.paper.mechanism, ""))
            seconds = json.loads(run.plan_json)["duration"] / 1e9
            cell = cells.setdefault((part, mechanism, seconds, run.plan_json), len(cells))
            about = run.about
            runs[run.key] = cell, run.seed, about.events, run.key, about.trace_hash
    text = json.dumps({"cells": list(cells), "runs": list(runs.values())}, separators=(",", ":"))
    file = path(outcome.paper.name)
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(lzma.compress(text.encode(), preset=9))
    return len(runs)


def runs(name: str) -> list[Run]:
    """Returns the runs of a study's record; none if they were not stored."""
    if not path(name).exists():
        return []
    found = json.loads(lzma.decompress(path(name).read_bytes()))
    return [Run(*found["cells"][cell], *rest) for cell, *rest in found["runs"]]


def drawn(runs: Sequence[Run], draw: str) -> Iterator[Run]:
    """Yields the runs in a random order that `draw` determines, the mechanisms taking turns."""
    strata: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: short([draw, run.key])):
        strata.setdefault(run.mechanism, []).append(run)
    return (run for run in chain.from_iterable(zip_longest(*strata.values())) if run is not None)


def within(runs: Iterable[Run], events: float) -> list[Run]:
    """Returns the first runs with at most `events` events together, omitting longer ones."""
    found, left = [], events
    for run in runs:
        if run.events <= left:
            found.append(run)
            left -= run.events
    return found


def repeated(name: str, runs: Sequence[Run], workers: int | None = None) -> list[str]:
    """Repeats runs of a study; returns a line for each whose trace hash is not the recorded one."""
    with load(name).engine(None) as made, ThreadPoolExecutor(workers or cores()) as pool:
        engine = single(made)

        def once(run: Run) -> str:
            return engine.simulate(Plan.of(run.plan), run.seed, None).trace_hash

        return [
            f"{name}: {run}: trace {found}, recorded {run.trace_hash}"
            for run, found in zip(runs, pool.map(once, runs), strict=True)
            if found != run.trace_hash
        ]
