"""A program in a sandbox, as this process sees it."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.lab.errors import DeadlinePassed, LabError, SandboxDied
from sojourn.lab.sandbox.messages import Message

if TYPE_CHECKING:
    from sojourn.lab.sandbox.sandbox import Sandbox

DEFAULT_LIMIT = 16 << 20
"""Bytes of each of a program's two streams that are kept; the rest is counted only."""
GRACE = 5.0
"""Seconds that a program has to end after SIGTERM."""
SLACK = 30.0
"""Seconds that init's answer may be late on a busy machine."""


@dataclass(frozen=True)
class Usage:
    """What a program, with the children it waited for, took of the machine."""

    user: float
    """CPU seconds in user mode."""
    system: float
    """CPU seconds in the kernel."""
    memory: int
    """Largest resident set, bytes."""
    voluntary: int
    """Times that it waited."""
    involuntary: int
    """Times that it was preempted."""

    @property
    def cpu(self) -> float:
        """CPU seconds."""
        return self.user + self.system


class Process:
    """A program that was started by `Host.spawn`.

    Its output is kept where this process can read it at any time, even after the sandbox's end.
    """

    def __init__(
        self, sandbox: Sandbox, argv: tuple[str, ...], answer: Message, fds: list[int]
    ) -> None:
        self.sandbox = sandbox
        self.argv = argv
        self.number: int = answer["program"]
        self.inner_pid: int = answer["pid"]
        """Process id inside the sandbox."""
        self.directory: str = answer["directory"]
        """Working directory, inside the sandbox."""
        self._stdout, self._stderr, handle = fds
        self._done = threading.Event()
        self._result: Message | None = None
        self._lost: str | None = None
        self.ended_at: int | None = None
        """When its end was told: `CLOCK_MONOTONIC` in nanoseconds."""
        self.pid = _pid_of(handle)
        """Process id as seen from here; 0 if it ended at once."""
        os.close(handle)

    def __repr__(self) -> str:
        return f"<{' '.join(self.argv)}: {self.code if self._result else 'running'}>"

    def __del__(self) -> None:
        for name in ("_stdout", "_stderr"):
            with suppress(OSError, AttributeError):
                os.close(getattr(self, name))

    def end(self, message: Message) -> None:
        """Notes how it ended (the keeper calls this)."""
        self._result = message
        self.ended_at = time.monotonic_ns()
        self._done.set()

    def lost(self, why: str) -> None:
        """Notes that the sandbox ended first (the keeper calls this)."""
        if self._result is None:
            self._lost = why
            self._done.set()

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return not self._done.is_set()

    @property
    def code(self) -> int | None:
        """Exit status, or minus the number of the signal that ended it; `None` while it runs."""
        if self._lost is not None:
            raise SandboxDied(self._lost)
        return None if self._result is None else int(self._result["code"])

    @property
    def usage(self) -> Usage:
        """What it took, once it has ended."""
        if self._result is None:
            raise LabError(f"{self.argv[0]} has not ended")
        names = ("user", "system", "memory", "voluntary", "involuntary")
        return Usage(**{name: self._result[name] for name in names})

    def cpu(self) -> float:
        """CPU seconds so far, all of its threads."""
        if self._result is not None:
            return self.usage.cpu
        try:
            # The clock of another process, as clock_getcpuclockid(3) makes it.
            return time.clock_gettime((~self.pid << 3) | 2)
        except OSError:
            self.wait(SLACK)
            return self.usage.cpu

    def wait(self, timeout: float) -> int:
        """Waits for the end, at most `timeout` seconds; the exit status as `code` gives it."""
        if not self._done.wait(timeout):
            raise DeadlinePassed(f"{self.argv[0]} has not ended in {timeout:g} s")
        code = self.code
        assert code is not None
        return code

    def signal(self, number: int, *, group: bool = True) -> bool:
        """Signals the program and what it started (or it alone); `False` if it had ended."""
        answer, _ = self.sandbox.request(
            "signal", program=self.number, signal=int(number), group=group
        )
        return bool(answer["sent"])

    def stop(self, grace: float = GRACE) -> int:
        """Ends it: SIGTERM, and SIGKILL after `grace` seconds; the exit status."""
        if self.running and self.signal(signal.SIGTERM):
            with suppress(DeadlinePassed):
                return self.wait(grace)
            self.signal(signal.SIGKILL)
        return self.wait(SLACK)

    def schedule(self, *, nice: int | None = None, fifo: int | None = None) -> None:
        """Changes its priority: `nice` from -20 to 19, `fifo` from 1 to 99 for SCHED_FIFO."""
        self.sandbox.request("schedule", program=self.number, nice=nice, fifo=fifo)

    def prefer(self, nice: int) -> None:
        """Lets it run before others, where we may: it itself, in its user namespace, may not."""
        # Number 0, of a program that ended at once, would be ourselves.
        if self.pid:
            with suppress(PermissionError, ProcessLookupError):
                os.setpriority(os.PRIO_PROCESS, self.pid, nice)
            _prefer_session(self.pid, nice)

    def output(self, start: int = 0) -> bytes:
        """What it has written on standard output, from byte `start` on."""
        return _read(self._stdout, start)

    def errors(self, start: int = 0) -> bytes:
        """What it has written on standard error, from byte `start` on."""
        return _read(self._stderr, start)

    @property
    def truncated(self) -> bool:
        """Whether it wrote more than was kept, known once it has ended."""
        if self._result is None:
            return False
        kept = (os.fstat(self._stdout).st_size, os.fstat(self._stderr).st_size)
        return any(total > size for total, size in zip(self._result["written"], kept, strict=True))

    def wait_output(self, text: str, timeout: float, *, stream: int = 0) -> int:
        """Waits until it has written `text` on standard output (or error, 1); where the text ends.

        Raises `LabError` with what it said if it ends first, and nobody whom it left behind can
        write there.
        """
        answer, _ = self.sandbox.request(
            "await_output",
            seconds=timeout + SLACK,
            program=self.number,
            text=text,
            timeout=timeout,
            stream=stream,
        )
        if answer["found"]:
            return int(answer["end"])
        # Init forgets what a program wrote when nobody can write there any more.
        words = text.encode()
        found = (self.errors() if stream else self.output()).find(words)
        if found < 0:
            raise LabError(f"{self.argv[0]} ended without saying {text!r}{self.complaint()}")
        return found + len(words)

    def complaint(self) -> str:
        """How it ended and its last words, to be put behind a message."""
        self._done.wait(SLACK)
        words = (self.errors() or self.output())[-2000:].decode(errors="replace").strip()
        return f" (status {self.code})" + (f": {words}" if words else "")


def _prefer_session(pid: int, nice: int, processes: Path = Path("/proc")) -> None:
    """Lets a program's session run before others, where the kernel weighs sessions as groups.

    With `kernel.sched_autogroup_enabled`, as in most distributions, `nice` counts within a session
    only (`sched(7)`); each of our programs has one of its own. The session of a machine's first
    process is no group: there the file is empty.
    """
    with suppress(OSError):
        files = [processes / str(whose) / "autogroup" for whose in (pid, "self")]
        theirs, ours = (file.read_text("ascii").split()[:1] for file in files)
        if theirs and theirs != ours:
            files[0].write_text(str(nice))


def _read(fd: int, start: int) -> bytes:
    parts = []
    while chunk := os.pread(fd, 1 << 20, start):
        parts.append(chunk)
        start += len(chunk)
    return b"".join(parts)


def _pid_of(pidfd: int) -> int:
    """The process id, in our own PID namespace, of the process that `pidfd` stands for."""
    for line in Path(f"/proc/self/fdinfo/{pidfd}").read_text(encoding="ascii").splitlines():
        if line.startswith("Pid:"):
            return max(0, int(line.split()[1]))
    return 0
