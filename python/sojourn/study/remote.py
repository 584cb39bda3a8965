"""What a cluster's workers do: make runs and send them back as plain data.

The driver sends a text, `CALL`, that names these functions, and their arguments as bytes. So
reading a task asks nothing of a machine: one without Sojourn, or with another version, fails in
carrying it out, with an error that says so. A function sent as such would cost that machine its
connection.
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
"""To be evaluated where the work is done, with `name` and `arguments`."""


def call(name: str, arguments: bytes) -> Any:
    """Call one of this module's functions with pickled arguments."""
    functions: dict[str, Callable[..., Any]] = {"identity": identity, "simulate": simulate}
    return functions[name](*pickle.loads(arguments))  # noqa: S301 - Dask's own trust


class Identity(NamedTuple):
    """What must be the same on all machines for results to be the same."""

    version: str
    """Of the package."""
    engine: str
    """The engine's fingerprint."""


def identity(engine: Engine | None = None) -> Identity:
    """Return what this machine would make runs with."""
    own = engine or core()
    return Identity(own.version(), own.fingerprint())


@dataclass(frozen=True)
class End:
    """What there is to say of a run beside its tables."""

    trace_hash: str
    events: int
    captures: Sequence[bytes]


@dataclass(frozen=True)
class Shipped:
    """What several runs left behind as plain data, fit to travel."""

    ends: Sequence[End] = ()
    stacks: Mapping[str, Sequence[Stack]] = field(default_factory=dict)
    seconds: Sequence[float] = ()
    """How long each took where it was made."""
    fault: BaseException | None = None
    """The error of the run after them; on the way it is raised, not carried."""

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, number: int) -> One:
        return One(self, number)

    def tables(self, name: str) -> Sequence[Stack]:
        """Return one of the tables."""
        return self.stacks[name]


class One:
    """One of the runs that were shipped."""

    complete = True

    def __init__(self, shipped: Shipped, number: int) -> None:
        self._shipped = shipped
        self._number = number
        end = shipped.ends[number]
        self.trace_hash, self.events, self.captures = end.trace_hash, end.events, end.captures

    def table(self, name: str) -> Sequence[Column]:
        """Return one of its tables."""
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
    """Make runs on a worker that is as `wanted`; another one only says what it is.

    These of their tables are sent back. Every so many seconds the progress is told under `topic`.
    Runs that nobody waits for any more (stopped, or their driver is gone) are given up. After one
    that fails none is made; its error is raised if there is none before it.
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
    """Return the same with one object for equal texts: each is then carried once."""
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
