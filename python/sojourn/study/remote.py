"""What a cluster's workers do: make one run and send it back as plain data.

The driver sends a text, `CALL`, that names these functions, and their arguments as bytes. So
reading a task asks nothing of a machine: one without Sojourn, or with another version, fails in
carrying it out, with an error that says so. A function sent as such would cost that machine its
connection.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sojourn.scenario.engine import ASKED, TABLES, Column, Engine, core

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
class Shipped:
    """A run's record as plain data, fit to travel."""

    trace_hash: str
    events: int
    complete: bool
    captures: Sequence[bytes]
    tables: dict[str, Sequence[Column]]
    seconds: float
    """How long it took where it was made."""

    def table(self, name: str) -> Sequence[Column]:
        """Return one of the tables."""
        return self.tables[name]


STOPPED = Shipped("", 0, False, (), {}, 0.0)
"""What is left of a run that was stopped."""


def simulate(
    engine: Engine | None,
    wanted: Identity,
    plan_json: str,
    seed: int,
    topic: str,
    key: str,
    every: float,
) -> Shipped | Identity:
    """Make a run on a worker that is as `wanted`; another one only says what it is.

    Every so many seconds the progress is told under `topic`. A run that nobody waits for any more
    (stopped, or its driver is gone) is given up.
    """
    here = identity(engine)
    if here != wanted:
        return here
    begin = told = time.monotonic()
    worker = _worker()

    def listen(fraction: float, events: int) -> bool:
        nonlocal told
        if (now := time.monotonic()) - told >= every:
            told = now
            worker.log_event(topic, (key, fraction, events))
        task = worker.state.tasks.get(key)
        return task is None or task.state != "cancelled"

    record = (engine or core()).simulate(plan_json, seed, listen)
    seconds = time.monotonic() - begin
    if not record.complete:
        return STOPPED
    tables = {name: record.table(name) for name in (*TABLES, *ASKED)}
    return Shipped(record.trace_hash, record.events, True, list(record.captures), tables, seconds)


def _worker() -> Any:
    from distributed import get_worker

    return get_worker()
