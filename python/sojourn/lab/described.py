"""The description of how a real run was made, as its readers need it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sojourn.data import Object
from sojourn.lab.cassandra.client import Check
from sojourn.lab.programs.results import ProgramEnd
from sojourn.lab.typed import of_json
from sojourn.lab.wire.health import Health


@dataclass(frozen=True)
class FlowProgram(ProgramEnd):
    """Start and end of one of the user's own programs, with its flow."""

    flow: str


@dataclass(frozen=True)
class RunHealth(Health):
    """Timeliness of the links; without values for the kernel's own links in real time."""

    processor_seconds: float = 0.0
    """Processor time of a run in virtual time."""


@dataclass(frozen=True)
class Agreement:
    """Result of a replay of a link's arrivals through a fresh queue."""

    link: str
    agrees: bool
    counts: tuple[int, int, int, int] | None = None
    """Numbers of arrivals, drops, marks and entries."""
    difference: str | None = None


@dataclass(frozen=True)
class StoreChecks:
    """Checks of a store's acknowledged writes."""

    checked: Sequence[Check]


@dataclass(frozen=True)
class Guest:
    """The kernel of a run in virtual time."""

    hz: int
    """Ticks a second."""


@dataclass(frozen=True)
class Described:
    """Description of how a run was made."""

    engine: str
    health: RunHealth
    agreements: Sequence[Agreement]
    kernel: str
    """Release of the kernel."""
    privilege: str
    programs: Mapping[str, str]
    """Versions of the programs, by name."""
    own_programs: Sequence[FlowProgram] = ()
    links: str | Mapping[str, Sequence[str]] = ""
    """Kind of the links of a run in virtual time, or the commands of each of the kernel's."""
    links_why: Sequence[str] = ()
    """Reasons why the kernel's links were not used."""
    commands: Sequence[str] = ()
    linux: Guest | None = None
    store: StoreChecks | None = None


def described(real: Object) -> Described:
    """Returns the description of how a run was made, as `LabRecord.real` contains it."""
    return of_json(Described, real)
