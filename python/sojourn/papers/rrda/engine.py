"""A UDP server with its clients as an engine of studies: simulated, or real in the laboratory.

A plan is the input of `simulate_server`. The tables of a run are `summary`, its totals, and
`series`, its samples.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sojourn import _core, metrics
from sojourn.lab.receivers import Receivers, Wanted
from sojourn.lab.run import busy
from sojourn.lab.violation import with_former_key
from sojourn.papers.rrda.scenarios import CPUS, quota
from sojourn.scenario.engine import Column, RunProgress


@dataclass(frozen=True)
class Server:
    """A server, its buffer and its clients, as a cell of the study."""

    told: Mapping[str, Any]
    name: str = "server"

    @property
    def plan_json(self) -> str:
        """Returns the input of `simulate_server`."""
        return json.dumps(self.told)

    def as_dict(self) -> dict[str, Any]:
        """Returns the input as plain data."""
        return dict(self.told)


def _column(name: str, unit: str, values: Sequence[float | int]) -> Column:
    whole = all(isinstance(value, int) for value in values)
    data = array("q" if whole else "d", values).tobytes()
    return name, unit, "i8" if whole else "f8", data


@dataclass(frozen=True)
class Record:
    """Result of a run."""

    outcome: Mapping[str, Any]
    real: Mapping[str, Any] | None = None
    """Circumstances of a real run, and reasons against its validity."""
    trace_hash: str = ""
    complete: bool = True
    captures: Sequence[bytes] = ()

    @property
    def events(self) -> int:
        """Returns the number of messages that arrived."""
        return int(self.outcome["arrived"])

    def table(self, name: str) -> Sequence[Column]:
        """Returns the totals or the samples; a server has no other tables."""
        if name == "summary":
            totals = {k: v for k, v in self.outcome.items() if isinstance(v, int | float)}
            totals["throughput"] *= 8
            return [_column(k, metrics.unit(k), [v]) for k, v in totals.items()]
        samples = self.outcome["samples"]
        if name != "series" or not samples:
            return []
        return [_column(k, "", [sample[k] for sample in samples]) for k in samples[0]]


class Simulated:
    """Runs servers in virtual time."""

    def fingerprint(self) -> str:
        """Returns the hash of everything that determines results."""
        return _core.fingerprint()

    def version(self) -> str:
        """Returns the version as readable text."""
        return _core.version()

    def simulate(self, plan_json: str, seed: int, progress: RunProgress | None = None) -> Record:
        """Runs a server with a seed."""
        return self._record(json.loads(_core.simulate_server(plan_json, seed)), progress)

    def _record(
        self, found: dict[str, Any], progress: RunProgress | None, real: Any = None
    ) -> Record:
        record = Record(found, real)
        if progress is not None:
            progress(1.0, record.events)
        return record


class Real(Simulated):
    """Runs our transport between two hosts, one run at a time."""

    slots = 1

    def __init__(self, lab: Receivers) -> None:
        self._lab = lab

    def fingerprint(self) -> str:
        """Returns the hash of what determines results: engine, kernel, and the limit of CPU."""
        parts = (_core.fingerprint(), self._lab.about["kernel"], self._lab.about["quota"], "real")
        return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:32]

    def simulate(self, plan_json: str, seed: int, progress: RunProgress | None = None) -> Record:
        """Runs a server with a seed: pauses that represent a quota of CPU become one."""
        told = json.loads(plan_json)
        pauses, cpu = list(told["handler"]["pauses"]), 1.0
        for share in CPUS:
            if share < 1 and quota(share) in pauses:
                pauses.remove(quota(share))
                cpu = share
        handler = {**told["handler"], "pauses": pauses}
        found = self._lab.run({**told, "handler": handler}, Wanted(cpu=cpu), seed)
        violations = [{"what": violation} for violation in found.pop("violations")]
        about = {**self._lab.about, **with_former_key({"violations": violations}), "load": busy()}
        return self._record(found, progress, about)


@contextmanager
def engine(asked: Any) -> Iterator[Any]:
    """Yields the simulator, or for a real engine a laboratory with its privilege."""
    if asked is None:
        yield Simulated()
        return
    with Receivers(asked.privilege) as lab:
        yield Real(lab)
