"""Repeats a run with a user's policy in a fresh process with another hash seed.

A run whose repetition gives another trace is no measurement: the policy reads a clock, draws
elsewhere than from `draws`, or keeps state outside its instances.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Protocol

from sojourn import _core

CAUSES = (
    "a policy may use only its arguments, `draws` and its instance: no clock, no other random "
    "numbers, no hash() or id(), no order of a set, no variables of modules or classes that change"
)
EARLY = 5 * 10**9
"""Simulated time in nanoseconds to which a repetition may be limited."""


class _Plan(Protocol):
    @property
    def text(self) -> str: ...
    @property
    def duration(self) -> int: ...
    @property
    def sources(self) -> Mapping[str, Mapping[str, str]]: ...


class _Record(Protocol):
    @property
    def trace_hash(self) -> str: ...


def elsewhere(module: str, *request: object) -> object:
    """Returns the answer of a module that calls `serve`, from a process with another hash seed."""
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    found = subprocess.run(  # noqa: S603 - this interpreter
        [sys.executable, "-m", module],
        input=json.dumps(request),
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode:
        lines = found.stderr.strip().splitlines()
        raise _core.PolicyError(
            f"the repetition in a process of its own failed: {lines[-1] if lines else 'no output'}"
        )
    return json.loads(found.stdout)


def prove(plan: _Plan, seed: int, record: _Record, *, whole: bool) -> None:
    """Raises `PolicyError` unless a repetition of a run gives the same trace.

    Unless `whole`, only the first five simulated seconds are repeated.
    """
    early = getattr(record, "early_hash", None)
    whole = whole or plan.duration <= EARLY or early is None
    expected = record.trace_hash if whole else early
    found = elsewhere("sojourn.own.repeat", plan.text, seed, whole)
    if found != expected:
        names = ", ".join(sorted({name for files in plan.sources.values() for name in files}))
        part = "run" if whole else "run's first five simulated seconds"
        raise _core.PolicyError(
            f"{names}: the {part} gave another trace when repeated in a process of its own, with "
            f"seed {seed} again: {CAUSES}"
        )


def serve(answer: Callable[..., object]) -> None:
    """Passes the request on standard input to `answer`, and prints the result."""
    given = json.load(sys.stdin)
    output, sys.stdout = sys.stdout, sys.stderr  # what a policy prints is no answer
    json.dump(answer(*given), output)
    output.flush()
    os._exit(0)  # a policy's thread may never end


if __name__ == "__main__":
    serve(_core.repeat)
