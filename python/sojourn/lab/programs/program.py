"""A program before its start and after its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from signal import Signals


class Ready(Enum):
    """The condition under which a program counts as ready."""

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

    Programs without `start_at` are started before the run, which waits for them; the others start
    at that time.
    """

    name: str
    """Name, unique in a run and valid as a file name: `iperf3-client-bulk.0`."""
    node: int
    """Number of the host that runs it."""
    argv: tuple[str, ...]
    start_at: int | None = None
    """Start in nanoseconds after the run's start."""
    stop_at: int | None = None
    """Time of `stop_signal` in nanoseconds after the run's start; at the run's end if `None`."""
    stop_signal: Signals = Signals.SIGTERM
    ends: bool = False
    """Whether it ends by itself, with its client or at the run's end, and has time to do so."""
    one_of: str = ""
    """Name of a set of programs of which exactly one ends by itself: the server that the balancer
    chose. The others are stopped only after it has ended.
    """
    ready: Ready = Ready.AT_ONCE
    port: int = 0
    inputs: tuple[bytes | int, ...] = ()
    """Files at its descriptors from 3 on: the contents, or the length of a file of zeros."""
    log: bool = False
    """Whether it writes a log, at the descriptor after the `inputs`."""
    waits: bool = False
    """Whether it reads the run's start, a line of `CLOCK_MONOTONIC` nanoseconds, from its standard
    input.
    """
    environment: dict[str, str] = field(default_factory=dict)
    folder: str | None = None
    """Working folder; an empty folder of its own if `None`."""
    group: bool = False
    """Whether processes that it started receive its signals too."""
    written: int | None = None
    """Bytes of each standard stream that are saved, from its end; all if `None`."""
    kept: int = 64 << 20
    """Bytes of each of its standard streams that are kept."""


@dataclass(frozen=True)
class Ended:
    """A program after its end."""

    program: Program
    status: int | None
    """Exit status, or minus the number of a signal; `None` if it never started."""
    stdout: bytes = b""
    stderr: bytes = b""
    log: Path | None = None
    """File with its log."""
    started: int | None = None
    """Start time in nanoseconds after the run's start; negative before it."""
    signalled: int | None = None
    """Time of the stop signal, in nanoseconds after the run's start."""
    ended: int | None = None
    """End time in nanoseconds after the run's start."""

    @property
    def trouble(self) -> str:
        """Its error message in one line."""
        lines = self.stderr.decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:500] if lines else f"exit status {self.status}"
