"""A program as it is to be started, and as it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from signal import Signals


class Ready(Enum):
    """When a program that others rely on may be relied upon."""

    AT_ONCE = "at once"
    LISTENING = "listening"
    """When its `port` is listened on."""
    BOUND = "bound"
    """When its `port` is listened on over TCP, or bound over UDP."""
    SAYS_SO = "says so"
    """When it has written `READY` to its standard output."""


READY = "ready\n"


@dataclass(frozen=True)
class Program:
    """One process.

    Those without `start_at` are started before the run and waited for; the others at that time.
    """

    name: str
    """Unique in a run, and fit for a file: `iperf3-client-bulk.0`."""
    node: int
    """The host that it runs on."""
    argv: tuple[str, ...]
    start_at: int | None = None
    """Nanoseconds after the run's start."""
    stop_at: int | None = None
    """When it gets `stop_signal`; at the run's end if `None`."""
    stop_signal: Signals = Signals.SIGTERM
    ends: bool = False
    """Whether it ends by itself, with its client or at the run's end, and is given time to."""
    one_of: str = ""
    """The name of a set of programs, exactly one of which ends by itself: the server that the
    balancer chose. All of the set are given time until that one has ended."""
    ready: Ready = Ready.AT_ONCE
    port: int = 0
    inputs: tuple[bytes | int, ...] = ()
    """What it reads at its descriptors from 3 on: contents, or the length of a file of zeros."""
    log: bool = False
    """Whether it writes a log, at the descriptor after the `inputs`."""
    waits: bool = False
    """Whether it reads the run's start, a line of `CLOCK_MONOTONIC` nanoseconds, on its standard
    input."""
    environment: dict[str, str] = field(default_factory=dict)
    folder: str | None = None
    """Its working folder; an empty one of its own if `None`."""
    group: bool = False
    """Whether what it started gets its signals too."""
    written: int | None = None
    """Last bytes of each of its standard streams that are written down; all if `None`."""
    kept: int = 64 << 20
    """Bytes of each of its standard streams that are kept."""


@dataclass(frozen=True)
class Ended:
    """A program after its end."""

    program: Program
    status: int | None
    """Exit status, minus a signal's number; `None` if it never started."""
    stdout: bytes = b""
    stderr: bytes = b""
    log: Path | None = None
    """The file with its log."""
    started: int | None = None
    """When it was started, in nanoseconds after the run's start (before it, if negative)."""
    signalled: int | None = None
    """When it was told to stop."""
    ended: int | None = None
    """When it ended."""

    @property
    def trouble(self) -> str:
        """What it complained of, in a line."""
        lines = self.stderr.decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:500] if lines else f"exit status {self.status}"
