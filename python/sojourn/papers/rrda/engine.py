"""Engines that run a UDP server with its clients: simulated, or real in the laboratory.

A plan is the input of `simulate_server` as JSON. A run has the tables `summary` (totals) and
`series` (samples).
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from sojourn import _core, encode, metrics
from sojourn.data import Json, Object
from sojourn.lab.receivers import Inputs as RealInputs
from sojourn.lab.receivers import Pause, Receivers, Wanted
from sojourn.lab.run import busy
from sojourn.lab.typed import of_json, typed
from sojourn.lab.violation import with_former_key
from sojourn.papers.outcome import About
from sojourn.papers.rrda.scenarios import CPUS, Inputs, quota
from sojourn.plan import Plan
from sojourn.scenario.engine import Column, RunProgress
from sojourn.study.key import short


@dataclass(frozen=True)
class Server:
    """A cell of the study: a server with its buffer and its clients."""

    inputs: Inputs
    name: str = "server"

    @property
    def plan_json(self) -> str:
        """Returns the input of `simulate_server` as JSON."""
        return json.dumps(self.inputs)

    def as_dict(self) -> dict[str, Json]:
        """Returns the input of `simulate_server` as plain data."""
        return encode.fields(self.inputs)


def _column(name: str, unit: str, values: Sequence[float | int]) -> Column:
    whole = all(isinstance(value, int) for value in values)
    data = array("q" if whole else "d", values).tobytes()
    return name, unit, "i8" if whole else "f8", data


@dataclass(frozen=True)
class Record:
    """The results of a run in the form that studies read."""

    outcome: Mapping[str, Any]
    real: About | None = None
    """Environment of a real run and reasons why it is invalid; `None` for simulated runs."""
    trace_hash: str = ""
    """Hash of all results of a simulated run; empty for real runs."""
    complete: bool = True
    captures: Sequence[bytes] = ()

    @property
    def events(self) -> int:
        """Returns the number of messages that arrived, as the number of events."""
        return int(self.outcome["arrived"])

    def table(self, name: str) -> Sequence[Column]:
        """Returns the columns of table `summary` or `series`; no columns for other names."""
        if name == "summary":
            totals = {k: v for k, v in self.outcome.items() if isinstance(v, int | float)}
            totals["throughput"] *= 8
            return [_column(k, metrics.unit(k), [v]) for k, v in totals.items()]
        samples = self.outcome["samples"]
        if name != "series" or not samples:
            return []
        return [_column(k, "", [sample[k] for sample in samples]) for k in samples[0]]


class Simulated:
    """Engine that simulates UDP servers."""

    def fingerprint(self) -> str:
        """Returns the hash of the simulator; equal hashes, plans and seeds give equal results."""
        return _core.fingerprint()

    def version(self) -> str:
        """Returns the version of the simulator as text."""
        return _core.version()

    def simulate(self, plan: Plan, seed: int, progress: RunProgress | None = None) -> Record:
        """Simulates a server with a seed; the only report of progress is at the end."""
        return self._record(json.loads(_core.simulate_server(plan.text, seed)), progress)

    def _record(
        self, found: Object, progress: RunProgress | None, real: About | None = None
    ) -> Record:
        record = Record(found, real, "" if real else short(found))
        if progress is not None:
            progress(1.0, record.events)
        return record


class Real(Simulated):
    """Runs the project's UDP transport between two network namespaces, one run at a time."""

    slots = 1

    def __init__(self, lab: Receivers) -> None:
        self._lab = lab

    def fingerprint(self) -> str:
        """Returns the hash of the engine, the kernel and the kind of CPU limit."""
        parts = (_core.fingerprint(), self._lab.about["kernel"], self._lab.about["quota"], "real")
        return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:32]

    def simulate(self, plan: Plan, seed: int, progress: RunProgress | None = None) -> Record:
        """Runs a real server with a seed.

        Pauses of the plan that model a quota of CPU are replaced by a real quota.
        """
        inputs = typed(RealInputs, plan.text)
        pauses, cpu = list(inputs.handler.pauses), 1.0
        for share in CPUS:
            limit = of_json(Pause, quota(share))
            if share < 1 and limit in pauses:
                pauses.remove(limit)
                cpu = share
        handler = replace(inputs.handler, pauses=tuple(pauses))
        found = self._lab.run(replace(inputs, handler=handler), Wanted(cpu=cpu), seed)
        violations = [{"what": violation} for violation in found.violations]
        about = {**self._lab.about, **with_former_key({"violations": violations}), "load": busy()}
        return self._record({**found.figures, "samples": found.samples}, progress, about)


@contextmanager
def engine(asked: Any) -> Iterator[Any]:
    """Yields the simulator if `asked` is `None`; otherwise an engine of real runs.

    The laboratory of real runs uses the privilege of `asked`.
    """
    if asked is None:
        yield Simulated()
        return
    with Receivers(asked.privilege) as lab:
        yield Real(lab)
