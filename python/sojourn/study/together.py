"""Functions that make several runs in one call of an engine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from sojourn.plan.plan import Plan
from sojourn.scenario.engine import Engine, Record, Records, RunProgress, Stack, Stopped, rows_of
from sojourn.study.about import About

SECONDS = 0.2
"""Intended duration of a call in seconds, unless the engine states another (`call_seconds`)."""

LEAST = 0.2
"""Minimum duration of a call as a share of the intended duration, if enough runs wait."""

MOST = 1024
"""Maximum number of runs in one call."""

Wanted = Sequence[tuple[Plan, int]]
"""Runs to make: plans, each with a seed."""


@dataclass(frozen=True)
class Made:
    """Data of a run to store, in addition to its tables."""

    key: str
    """Key of the run."""
    about: About
    plan_json: str
    """Plan of the run in canonical form."""


@dataclass
class Listed:
    """Results of runs that were made one after the other."""

    records: list[Record] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    fault: BaseException | None = None

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, number: int) -> Record:
        return self.records[number]

    def tables(self, name: str) -> list[Stack]:
        """Returns the table with this name of each run."""
        found = [(number, record.table(name)) for number, record in enumerate(self.records)]
        return [([number], [rows_of(table)], table) for number, table in found]


def simulate_many(engine: Engine, runs: Wanted, progress: RunProgress | None = None) -> Records:
    """Makes runs one after the other, in a single call if the engine supports it.

    The result has the records of all runs before the first that failed or was stopped.
    """
    many = getattr(engine, "simulate_many", None)
    if many is None:
        return one_by_one(engine, runs, progress)
    found: Records = many(runs, progress)
    return found


def one_by_one(engine: Engine, runs: Wanted, progress: RunProgress | None = None) -> Listed:
    """Makes runs as `simulate_many`, with a call of the engine for each run."""
    made = Listed()
    events = 0

    def listen(fraction: float, now: int) -> bool | None:
        done = (len(made) + fraction) / len(runs)
        return None if progress is None else progress(done, events + now)

    for plan, seed in runs:
        begin = time.perf_counter()
        try:
            record = engine.simulate(plan, seed, listen)
        except Stopped:
            break
        except BaseException as error:  # noqa: BLE001 - returned as the fault of the result
            made.fault = error
            break
        if not record.complete:
            break
        events += record.events
        made.records.append(record)
        made.seconds.append(time.perf_counter() - begin)
    return made


class Pace:
    """Computes the number of runs for one call from the durations of earlier runs."""

    def __init__(self, engine: Engine) -> None:
        self._call: float = getattr(engine, "call_seconds", SECONDS)
        self._most = MOST if hasattr(engine, "simulate_many") else 1
        self._run: float | None = None

    def size(self, waiting: int, callers: int) -> int:
        """Returns the number of runs for the next call.

        `waiting` is the number of runs to make, and `callers` the number of concurrent calls. The
        last calls have fewer runs, so that all calls end at about the same time.
        """
        if self._run is None:
            return 1
        most = min(self._of(self._call), self._most)
        share = max(waiting // (2 * max(callers, 1)), self._of(LEAST * self._call))
        return max(1, min(most, share, waiting))

    def _of(self, seconds: float) -> int:
        """Returns the number of runs that take `seconds` together."""
        return int(seconds / max(self._run or 0.0, 1e-6))

    def learn(self, seconds: Sequence[float]) -> None:
        """Records the durations of the runs of a call, in seconds."""
        if seconds:
            mean = sum(seconds) / len(seconds)
            self._run = mean if self._run is None else (self._run + mean) / 2
