"""The record of a run with real parts: tables as of a simulated run, and how the run was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sojourn.data import Object
from sojourn.lab.findings import with_findings
from sojourn.lab.programs import Collected, command
from sojourn.lab.tables import Tables
from sojourn.lab.violation import Violation, violations_in, with_former_key
from sojourn.lab.wire.wiring import Outcome
from sojourn.plan import Plan
from sojourn.scenario.engine import Column


@dataclass(frozen=True)
class LabRecord:
    """Record of a real run: tables as of a simulated run, and a description of how it was made."""

    outcome: Outcome = field(repr=False)
    real: Object
    """Description, as JSON, of how the run was made, with its violations; saved with the run."""
    tables: Tables
    files: dict[str, bytes] = field(default_factory=dict, repr=False)
    """Content of files that are saved with the run, by name: the programs' output."""
    trace_hash: str = ""
    """Hash of the packets in virtual time; empty in real time, where no two runs are equal."""
    captures: Sequence[bytes] = ()

    @property
    def events(self) -> int:
        """Number of packet events on the links."""
        return self.outcome.events

    @property
    def complete(self) -> bool:
        """Whether the run reached its end."""
        return self.outcome.complete

    @property
    def reached(self) -> int:
        """Time that the run has reached, in nanoseconds since its start."""
        return self.outcome.reached

    def table(self, name: str) -> Sequence[Column]:
        """Returns the columns of a table by its name, such as `summary`."""
        return self.tables.table(name)

    @property
    def violations(self) -> list[str]:
        """Violations of the run, as texts; empty if the run is valid."""
        return [str(Violation(**violation)) for violation in violations_in(self.real)]


class Counted:
    """The number of an engine's runs, and their violations."""

    def __init__(self) -> None:
        self.made = 0
        """Number of runs so far."""
        self.violations: list[list[str]] = []
        """Violations of each invalid run so far."""

    def counted(self, record: LabRecord) -> LabRecord:
        """Counts a run and returns its record."""
        self.made += 1
        if record.violations:
            self.violations.append(record.violations)
        return record


@dataclass(frozen=True)
class Measured:
    """Measurements of a run's links."""

    outcome: Outcome
    violations: Sequence[Violation]
    """Violations of the run's validity."""
    about: Object
    """The links' entries in the description of the run."""
    captures: Sequence[bytes] = ()
    """Files of captured packets, in the order of the plan's `capture`."""


def record(
    engine: str,
    plan: Plan,
    collected: Collected,
    measured: Measured,
    about: Object,
    files: dict[str, bytes],
    trace_hash: str = "",
) -> LabRecord:
    """Returns the record of a run by an engine; `about` has more entries of the description."""
    outcome, against = measured.outcome, measured.violations
    real: Object = {
        "engine": engine,
        "valid": not against,
        **with_former_key({"violations": [violation.as_dict() for violation in against]}),
        "own_programs": command.records(collected.flows),
        "health": outcome.health,
        "agreements": outcome.agreements,
        "captures": outcome.captures,
        **measured.about,
        **about,
    }
    flows, groups = collected.flows, collected.groups
    tables = with_findings(outcome.tables, plan, flows, groups)
    return LabRecord(outcome, real, tables, files, trace_hash, measured.captures)
