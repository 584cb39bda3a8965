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

    @property
    def trouble(self) -> str:
        """What it complained of, in a line."""
        lines = self.stderr.decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:500] if lines else f"exit status {self.status}"
