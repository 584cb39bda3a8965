"""Several runs in one call of an engine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sojourn.scenario.engine import Engine, Record, Records, RunProgress, Stack, Stopped, rows_of

SECONDS = 0.2
"""How long a call is to take, unless the engine says otherwise (`call_seconds`)."""

LEAST = 0.2
"""Share of that time that a call takes at least, if there are enough runs."""

MOST = 1024
"""Runs in one call."""

Wanted = Sequence[tuple[str, int]]
"""Plans, as JSON, each with a seed."""


@dataclass(frozen=True)
class Made:
    """A run that is to be kept, beside its tables."""

    key: str
    about: dict[str, Any]
    """What is recorded of it: seed, factors, trace hash, ..."""
    plan_json: str
    """Its plan in the fixed form."""


@dataclass
class Listed:
    """What runs made one by one left behind."""

    records: list[Record] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    fault: BaseException | None = None

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, number: int) -> Record:
        return self.records[number]

    def tables(self, name: str) -> list[Stack]:
        """Return a table of each run."""
        found = [(number, record.table(name)) for number, record in enumerate(self.records)]
        return [([number], [rows_of(table)], table) for number, table in found]


def simulate_many(engine: Engine, runs: Wanted, progress: RunProgress | None = None) -> Records:
    """Make runs one after the other; an engine that can do so is asked once for all of them.

    The records are those of the runs before one that failed or was stopped.
    """
    many = getattr(engine, "simulate_many", None)
    if many is None:
        return one_by_one(engine, runs, progress)
    found: Records = many(runs, progress)
    return found


def one_by_one(engine: Engine, runs: Wanted, progress: RunProgress | None = None) -> Listed:
    """Make runs as `simulate_many` does, each by a call of its own."""
    made = Listed()
    events = 0

    def listen(fraction: float, now: int) -> bool | None:
        done = (len(made) + fraction) / len(runs)
        return None if progress is None else progress(done, events + now)

    for plan_json, seed in runs:
        begin = time.perf_counter()
        try:
            record = engine.simulate(plan_json, seed, listen)
        except Stopped:
            break
        except BaseException as error:  # noqa: BLE001 - told with the runs that were made
            made.fault = error
            break
        if not record.complete:
            break
        events += record.events
        made.records.append(record)
        made.seconds.append(time.perf_counter() - begin)
    return made


class Pace:
    """How many runs to ask an engine for in one call: by the time that runs have taken."""

    def __init__(self, engine: Engine) -> None:
        self._call: float = getattr(engine, "call_seconds", SECONDS)
        self._most = MOST if hasattr(engine, "simulate_many") else 1
        self._run: float | None = None

    def size(self, waiting: int, callers: int) -> int:
        """Return how many of the runs that wait; the last calls are small, to end together."""
        if self._run is None:
            return 1
        most = min(self._of(self._call), self._most)
        share = max(waiting // (2 * max(callers, 1)), self._of(LEAST * self._call))
        return max(1, min(most, share, waiting))

    def _of(self, seconds: float) -> int:
        """Return the number of runs of so many seconds."""
        return int(seconds / max(self._run or 0.0, 1e-6))

    def learn(self, seconds: Sequence[float]) -> None:
        """Take note of how long each run of a call has taken."""
        if seconds:
            mean = sum(seconds) / len(seconds)
            self._run = mean if self._run is None else (self._run + mean) / 2
