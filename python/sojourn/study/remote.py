"""Functions for a cluster's workers: they make runs and return plain data.

The driver sends a text, `CALL`, that names these functions, and their arguments as bytes. A worker
can therefore decode every task. A worker without Sojourn, or with another version, fails when it
executes the task, with a clear error. A pickled function would fail during decoding and cost the
worker its connection.
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
    """Calls one of this module's functions with pickled arguments."""
    functions: dict[str, Callable[..., Any]] = {"identity": identity, "simulate": simulate}
    return functions[name](*pickle.loads(arguments))  # noqa: S301 - Dask's own trust


class Identity(NamedTuple):
    """Properties that all machines must share for equal results."""

    version: str
    """Version of the package."""
    engine: str
    """The engine's fingerprint."""


def identity(engine: Engine | None = None) -> Identity:
    """Returns this machine's version and engine."""
    own = engine or core()
    return Identity(own.version(), own.fingerprint())


@dataclass(frozen=True)
class End:
    """Attributes of a run in addition to its tables."""

    trace_hash: str
    events: int
    captures: Sequence[bytes]


@dataclass(frozen=True)
class Shipped:
    """Results of several runs as plain data, for transport."""

    ends: Sequence[End] = ()
    stacks: Mapping[str, Sequence[Stack]] = field(default_factory=dict)
    seconds: Sequence[float] = ()
    """Wall-clock time of each run on its worker, in seconds."""
    fault: BaseException | None = None
    """The error of the first run that failed; on a worker it is raised, not sent."""

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, number: int) -> One:
        return One(self, number)

    def tables(self, name: str) -> Sequence[Stack]:
        """Returns one of the tables."""
        return self.stacks[name]


class One:
    """One of the received runs."""

    complete = True

    def __init__(self, shipped: Shipped, number: int) -> None:
        self._shipped = shipped
        self._number = number
        end = shipped.ends[number]
        self.trace_hash, self.events, self.captures = end.trace_hash, end.events, end.captures

    def table(self, name: str) -> Sequence[Column]:
        """Returns one of its tables."""
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
    """Makes runs on a worker that matches `wanted`; any other worker returns its identity.

    The given tables are sent back. Progress is published under `topic` every few seconds. Runs that
    are no longer needed (stopped, or their driver has ended) are aborted. After a failed run no
    further ones are made; its error is raised if no run precedes it.
    """
    here = identity(engine)
    if here != wanted:
        return here
    told = time.monotonic()
    worker = _worker()

    def listen(fraction: float, events: int) -> bool:
        nonlocal told
        if (now := time.monotonic()) - told >= every:
            told = now
            worker.log_event(topic, (key, fraction, events))
        task = worker.state.tasks.get(key)
        return task is None or task.state != "cancelled"

    made = simulate_many(engine or core(), runs, listen)
    if made.fault is not None and not len(made):
        raise made.fault
    ends = [
        End(record.trace_hash, record.events, list(record.captures))
        for record in (made[number] for number in range(len(made)))
    ]
    stacks = {name: _interned(made.tables(name)) for name in tables}
    return Shipped(ends, stacks, list(made.seconds))


def _interned(stacks: Sequence[Stack]) -> list[Stack]:
    """Returns the same tables with one object for equal texts, so that each is sent once."""
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
