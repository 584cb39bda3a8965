"""Descriptions of a program: how it is started, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from signal import Signals


class Ready(Enum):
    """The condition on which a program counts as ready."""

    AT_ONCE = "at once"
    """The program has been started."""
    LISTENING = "listening"
    """A TCP socket listens on the program's `port`."""
    BOUND = "bound"
    """A TCP socket listens on the program's `port`, or a UDP socket is bound to it."""
    SAYS_SO = "says so"
    """The program has written `READY` to its standard output."""


READY = "ready\n"
"""Line by which a program reports that it is ready."""


@dataclass(frozen=True)
class Program:
    """A program that is started as one process.

    A program without `start_at` is started before the run, and the run begins when the program is
    ready. Other programs are started at `start_at`.
    """

    name: str
    """Name, unique in a run and valid as a file name, such as `iperf3-client-bulk.0`."""
    node: int
    """Number of the host that runs the program."""
    argv: tuple[str, ...]
    start_at: int | None = None
    """Start time in nanoseconds after the start of the run; `None`: before the run."""
    stop_at: int | None = None
    """Time of `stop_signal` in nanoseconds after the start of the run; `None`: at the end of the
    run.
    """
    stop_signal: Signals = Signals.SIGTERM
    ends: bool = False
    """Whether the program ends by itself, with its client or at the end of the run."""
    one_of: str = ""
    """Name of a set of programs of which exactly one ends by itself, namely the server that the
    balancer selected. The other programs of the set are stopped after that. Empty: no such set.
    """
    ready: Ready = Ready.AT_ONCE
    port: int = 0
    """Port for `ready`; 0 if no port is needed."""
    inputs: tuple[bytes | int, ...] = ()
    """Files at the program's descriptors from 3 on: bytes, or the length of a file of zeros."""
    log: bool = False
    """Whether the program writes a log, at the descriptor after the `inputs`."""
    waits: bool = False
    """Whether the program reads the time of the run's start from its standard input: one line with
    nanoseconds of `CLOCK_MONOTONIC`.
    """
    environment: dict[str, str] = field(default_factory=dict)
    """Additional environment variables."""
    folder: str | None = None
    """Working folder; `None`: a new empty folder."""
    group: bool = False
    """Whether signals to the program also go to the processes that it started."""
    written: int | None = None
    """Number of bytes at the end of each standard stream that are saved; `None`: all."""
    kept: int = 64 << 20
    """Maximum number of bytes of each standard stream that are held in memory."""


@dataclass(frozen=True)
class Ended:
    """A program after its end, with its output."""

    program: Program
    status: int | None
    """Exit status, or minus the number of the signal that ended the program; `None` if it did not
    start or did not end.
    """
    stdout: bytes = b""
    stderr: bytes = b""
    log: Path | None = None
    """Path of the program's log; `None` if it writes none."""
    started: int | None = None
    """Start time in nanoseconds after the start of the run; negative before it."""
    signalled: int | None = None
    """Time of the stop signal in nanoseconds after the start of the run; `None` without a signal.
    """
    ended: int | None = None
    """End time in nanoseconds after the start of the run."""

    @property
    def trouble(self) -> str:
        """Last line of the standard error stream, or else the exit status."""
        lines = self.stderr.decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:500] if lines else f"exit status {self.status}"
