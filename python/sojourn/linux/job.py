"""The job of a guest, which its first process reads (`crates/guest/src/job.rs`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from sojourn.lab.programs.stack import HostSettings
from sojourn.plan import Plan
from sojourn.plan.decoding import data_of


@dataclass(frozen=True)
class Host:
    """A network namespace."""

    node: int | None
    """Number of the plan's node; `None` for a link's namespace."""
    plays: bool
    """Whether an endpoint runs in the namespace."""
    sysctls: Sequence[tuple[str, str]]
    """Paths below /proc/sys, and values."""
    devices: Sequence[str]
    """Names of the devices whose offloads are disabled."""
    splits: Sequence[str] = ()
    """Those of them that send the frames of super-packets from their queue."""


@dataclass(frozen=True)
class Command:
    """A command that is executed before the run: `ip` or `tc`, which reads its standard input."""

    host: int | None
    """Number of the namespace; `None` is the guest's first namespace."""
    words: Sequence[str]
    input: str
    early: bool = False
    """Whether the command runs before all others."""


@dataclass(frozen=True)
class Wire:
    """Settings of the wire, if it emulates the links."""

    mtu: int
    captures: Sequence[int]
    """Numbers of the captured links."""
    journals: Sequence[int] = ()


@dataclass(frozen=True)
class Queue:
    """A queue discipline that is sampled."""

    host: int
    device: str
    handle: int
    arrivals: str | None
    """Device at which arrivals are observed; `None` for a host's own queue."""
    capture: int | None
    """Number of the link if its packets are captured."""


@dataclass(frozen=True)
class Program:
    """A program of the user."""

    name: str
    host: int
    words: Sequence[str]
    folder: str
    environment: Sequence[tuple[str, str]]
    start: int | None
    """Start time in nanoseconds after the start of the run; `None`: before it."""
    stop: int
    port: int | None
    """Port on which the program listens before the run begins; `None` without a port."""


@dataclass(frozen=True)
class Shell:
    """A shell at the console instead of a run."""

    host: int
    rows: int
    columns: int


@dataclass(frozen=True)
class Job:
    """The job of a guest: one run, or one shell."""

    seed: int
    plan: Plan
    """The plan, with the groups of the probes."""
    hosts: Sequence[Host]
    commands: Sequence[Command]
    interval: int
    """Time between two samples of the queues, in nanoseconds."""
    queues: Sequence[Queue] = ()
    taps: Sequence[int] = ()
    """Numbers of the namespaces whose packets are recorded."""
    folders: Sequence[str] = ()
    """Folders of this machine that the guest reads, at the same paths."""
    wire: Wire | None = None
    programs: Sequence[Program] = ()
    shell: Shell | None = None

    def files(self) -> dict[str, bytes]:
        """Returns the file of the job by its name."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "plan"}
        plan = data_of(self.plan.text)
        return {"job.json": json.dumps({**fields, "plan": plan}, default=asdict).encode()}


def sysctl(name: str) -> str:
    """Returns the path of a sysctl below /proc/sys."""
    return name.replace(".", "/")


def sysctls(quiet: Mapping[str, int], settings: HostSettings | None) -> list[tuple[str, str]]:
    """Returns paths and values of a host's sysctls: those of all hosts, and the host's own."""
    wanted = {name: str(value) for name, value in quiet.items()}
    if settings is not None:
        wanted |= settings.sysctls
    return [(sysctl(name), value) for name, value in wanted.items()]


def batch(host: int | None, program: str, lines: Sequence[str], *, early: bool = False) -> Command:
    """Returns a command of `ip` or `tc` with these lines as its commands."""
    text = "".join(f"{line}\n" for line in lines)
    return Command(host, (f"/programs/{program}", "-batch", "-"), text, early)
