"""Functions that run on a cluster's workers: they make runs and return plain data.

The driver sends the text `CALL`, which calls one of these functions, and the arguments as bytes. So
every worker can decode a task, and a worker without Sojourn or with another version fails with a
clear error when it executes the task. A pickled function would fail when it is decoded, and the
worker would lose its connection.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sojourn.scenario.engine import Column, Engine, Stack, core, of_runs
from sojourn.study.together import Wanted, simulate_many

CALL = "__import__('sojourn.study.remote', fromlist=['call']).call(name, arguments)"
"""Expression that a worker evaluates, with `name` and `arguments`."""


def call(name: str, arguments: bytes) -> Any:
    """Calls the function `identity` or `simulate` with pickled arguments."""
    functions: dict[str, Callable[..., Any]] = {"identity": identity, "simulate": simulate}
    return functions[name](*pickle.loads(arguments))  # noqa: S301 - Dask unpickles tasks too


class Identity(NamedTuple):
    """Properties that must be equal on all machines, so that results are equal."""

    version: str
    """Version of the engine."""
    engine: str
    """Fingerprint of the engine."""


def identity(engine: Engine | None = None) -> Identity:
    """Returns the identity of an engine on this machine; by default, of the simulator."""
    own = engine or core()
    return Identity(own.version(), own.fingerprint())


@dataclass(frozen=True)
class End:
    """Results of a run in addition to its tables."""

    trace_hash: str
    events: int
    captures: Sequence[bytes]
    files: Mapping[str, bytes]


@dataclass(frozen=True)
class Shipped:
    """Results of several runs as plain data, which a worker sends to the driver."""

    ends: Sequence[End] = ()
    """Results of each run in addition to its tables."""
    stacks: Mapping[str, Sequence[Stack]] = field(default_factory=dict)
    """Tables of all runs, by the table's name."""
    seconds: Sequence[float] = ()
    """Wall-clock time of each run on its worker, in seconds."""
    fault: BaseException | None = None
    """Error of the first run that failed. The driver sets it; a worker raises the error."""

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, number: int) -> One:
        return One(self, number)

    def tables(self, name: str) -> Sequence[Stack]:
        """Returns the table with this name, for all runs."""
        return self.stacks[name]


class One:
    """The record of one of the received runs."""

    complete = True

    def __init__(self, shipped: Shipped, number: int) -> None:
        self._shipped = shipped
        self._number = number
        end = shipped.ends[number]
        self.trace_hash, self.events, self.captures = end.trace_hash, end.events, end.captures
        self.files = end.files

    def table(self, name: str) -> Sequence[Column]:
        """Returns the columns of the run's table with this name."""
        return of_runs(self._shipped.tables(name)).get(self._number, [])


def simulate(
    engine: Engine | None,
    wanted: Identity,
    runs: Wanted,
    tables: Sequence[str],
    topic: str,
    key: str,
    every: float,
) -> Shipped | Identity:
    """Makes runs on a worker and returns them with the tables `tables`.

    A worker whose identity is not `wanted` returns its own identity instead. Progress is published
    under `topic`, with the task's `key`, every `every` seconds. The runs are aborted if the task is
    cancelled. After a failed run no further runs are made; if it was the first run, its error is
    raised.
    """
    here = identity(engine)
    if here != wanted:
        return here
    published = time.monotonic()
    worker = _worker()

    def listen(fraction: float, events: int) -> bool:
        nonlocal published
        if (now := time.monotonic()) - published >= every:
            published = now
            worker.log_event(topic, (key, fraction, events))
        task = worker.state.tasks.get(key)
        return task is None or task.state != "cancelled"

    made = simulate_many(engine or core(), runs, listen)
    if made.fault is not None and not len(made):
        raise made.fault
    ends = [
        End(record.trace_hash, record.events, list(record.captures), getattr(record, "files", {}))
        for record in (made[number] for number in range(len(made)))
    ]
    stacks = {name: _interned(made.tables(name)) for name in tables}
    return Shipped(ends, stacks, list(made.seconds))


def _interned(stacks: Sequence[Stack]) -> list[Stack]:
    """Returns the tables with one object for equal texts, so that pickle sends each text once."""
    texts: dict[str, str] = {}
    return [
        (
            numbers,
            rows,
            [
                (n, unit, dtype, [texts.setdefault(t, t) for t in v] if isinstance(v, list) else v)
                for n, unit, dtype, v in table
            ],
        )
        for numbers, rows, table in stacks
    ]


def _worker() -> Any:
    from distributed import get_worker

    return get_worker()
