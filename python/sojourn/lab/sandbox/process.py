"""A program in a sandbox, as this process sees and controls it."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sojourn.lab.errors import DeadlinePassed, LabError, SandboxDied
from sojourn.lab.sandbox.messages import Message, Request

DEFAULT_LIMIT = 16 << 20
"""Default number of bytes of each output stream that are stored. Further bytes are only counted."""
GRACE = 5.0
"""Time limit for a program to end after SIGTERM, in seconds."""
SLACK = 30.0
"""Additional time limit for init's reply on a busy machine, in seconds."""


@dataclass(frozen=True)
class Usage:
    """Resource usage of a program and of the child processes that it waited for."""

    user: float
    """CPU time in user mode, in seconds."""
    system: float
    """CPU time in the kernel, in seconds."""
    memory: int
    """Largest resident memory, in bytes."""
    voluntary: int
    """Number of voluntary context switches."""
    involuntary: int
    """Number of involuntary context switches."""

    @property
    def cpu(self) -> float:
        """CPU time in user mode and in the kernel, in seconds."""
        return self.user + self.system


class Process:
    """A program in a sandbox.

    The output of the program can be read at any time, even after the end of the sandbox.
    """

    def __init__(
        self, request: Request, argv: tuple[str, ...], answer: Message, fds: list[int]
    ) -> None:
        self._request = request
        self.argv = argv
        self.number: int = answer["program"]
        """Number of the program in the sandbox, by which requests name it."""
        self.inner_pid: int = answer["pid"]
        """Process number in the sandbox's PID namespace."""
        self.directory: str = answer["directory"]
        """Path of the working directory inside the sandbox."""
        self._stdout, self._stderr, handle = fds
        self._done = threading.Event()
        self._result: Message | None = None
        self._lost: str | None = None
        self.ended_at: int | None = None
        """Time at which init reported the end: `CLOCK_MONOTONIC` in nanoseconds."""
        self.pid = _pid_of(handle)
        """Process number in this process's PID namespace; 0 if the program had ended already."""
        os.close(handle)

    def __repr__(self) -> str:
        return f"<{' '.join(self.argv)}: {self.code if self._result else 'running'}>"

    def __del__(self) -> None:
        for name in ("_stdout", "_stderr"):
            with suppress(OSError, AttributeError):
                os.close(getattr(self, name))

    def end(self, message: Message) -> None:
        """Records the end of the program; called by the keeper."""
        self._result = message
        self.ended_at = time.monotonic_ns()
        self._done.set()

    def lost(self, why: str) -> None:
        """Records that the sandbox ended before the program; called by the keeper."""
        if self._result is None:
            self._lost = why
            self._done.set()

    @property
    def running(self) -> bool:
        """Whether the program has not ended."""
        return not self._done.is_set()

    @property
    def code(self) -> int | None:
        """Exit status, or minus the number of the final signal; `None` while the program runs.

        Raises `SandboxDied` if the sandbox ended before the program.
        """
        if self._lost is not None:
            raise SandboxDied(self._lost)
        return None if self._result is None else int(self._result["code"])

    @property
    def usage(self) -> Usage:
        """Resource usage of an ended program; raises `LabError` while the program runs."""
        if self._result is None:
            raise LabError(f"{self.argv[0]} has not ended")
        names = ("user", "system", "memory", "voluntary", "involuntary")
        return Usage(**{name: self._result[name] for name in names})

    def cpu(self) -> float:
        """Returns the CPU time of all threads of the program until now, in seconds."""
        if self._result is not None:
            return self.usage.cpu
        try:
            # The number of another process's CPU clock, as clock_getcpuclockid(3) computes it.
            return time.clock_gettime((~self.pid << 3) | 2)
        except OSError:
            self.wait(SLACK)
            return self.usage.cpu

    def wait(self, timeout: float) -> int:
        """Waits for the end of the program and returns `code`.

        Raises `DeadlinePassed` if the program has not ended after `timeout` seconds.
        """
        if not self._done.wait(timeout):
            raise DeadlinePassed(f"{self.argv[0]} has not ended in {timeout:g} s")
        code = self.code
        assert code is not None
        return code

    def signal(self, number: int, *, group: bool = True) -> bool:
        """Sends a signal to the program, with `group` also to its process group.

        Returns `False` if the program had ended already.
        """
        answer, _ = self._request("signal", program=self.number, signal=int(number), group=group)
        return bool(answer["sent"])

    def stop(self, grace: float = GRACE) -> int:
        """Ends the program by SIGTERM, after `grace` seconds by SIGKILL; returns `code`."""
        if self.running and self.signal(signal.SIGTERM):
            with suppress(DeadlinePassed):
                return self.wait(grace)
            self.signal(signal.SIGKILL)
        return self.wait(SLACK)

    def schedule(self, *, nice: int | None = None, fifo: int | None = None) -> None:
        """Sets the priority: `nice` from -20 to 19, or `fifo` from 1 to 99 for SCHED_FIFO."""
        self._request("schedule", program=self.number, nice=nice, fifo=fifo)

    def prefer(self, nice: int) -> None:
        """Sets the program's nice value from outside the sandbox, if this process may do so.

        Inside a user namespace a negative nice value is not permitted.
        """
        # For the kernel, number 0 is the calling process.
        if self.pid:
            with suppress(PermissionError, ProcessLookupError):
                os.setpriority(os.PRIO_PROCESS, self.pid, nice)
            _prefer_session(self.pid, nice)

    def run_first(self) -> bool:
        """Gives the program real-time priority; returns `False` if the kernel refuses.

        This process may have the permission although a process in a user namespace has not.
        """
        if not self.pid:  # the program has ended
            return False
        try:
            # The program's threads do not inherit the priority.
            policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
            os.sched_setscheduler(self.pid, policy, os.sched_param(1))
        except (PermissionError, ProcessLookupError):
            return False
        return True

    def output(self, start: int = 0) -> bytes:
        """Returns the stored standard output from byte `start` on."""
        return _read(self._stdout, start)

    def errors(self, start: int = 0) -> bytes:
        """Returns the stored standard error from byte `start` on."""
        return _read(self._stderr, start)

    @property
    def truncated(self) -> bool:
        """Whether the ended program wrote more than was stored; `False` while it runs."""
        if self._result is None:
            return False
        kept = (os.fstat(self._stdout).st_size, os.fstat(self._stderr).st_size)
        return any(total > size for total, size in zip(self._result["written"], kept, strict=True))

    def wait_output(self, text: str, timeout: float, *, stream: int = 0) -> int:
        """Waits for `text` on a stream: 0 is the standard output, 1 the standard error.

        Returns the position of the byte after the text. Raises `DeadlinePassed` after `timeout`
        seconds. Raises `LabError` with the output if the text can no longer appear, because the
        program has ended and no other process can write to the stream.
        """
        answer, _ = self._request(
            "await_output",
            seconds=timeout + SLACK,
            program=self.number,
            text=text,
            timeout=timeout,
            stream=stream,
        )
        if answer["found"]:
            return int(answer["end"])
        # Init does not search a stream to which no process can write any more.
        words = text.encode()
        found = (self.errors() if stream else self.output()).find(words)
        if found < 0:
            raise LabError(f"{self.argv[0]} ended without the output {text!r}{self.complaint()}")
        return found + len(words)

    def complaint(self) -> str:
        """Returns the exit status and the end of the output, as a suffix of an error message."""
        self._done.wait(SLACK)
        words = (self.errors() or self.output())[-2000:].decode(errors="replace").strip()
        return f" (status {self.code})" + (f": {words}" if words else "")


def _prefer_session(pid: int, nice: int, processes: Path = Path("/proc")) -> None:
    """Sets the nice value of a program's session, if the kernel schedules sessions as groups.

    With `kernel.sched_autogroup_enabled`, as in most distributions, the nice value of a process
    applies only within its session (`sched(7)`), and each program in a sandbox has a session. The
    file `autogroup` is empty for a process without such a group.
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
    """Returns the process number of a `pidfd` in this process's PID namespace, or 0."""
    for line in Path(f"/proc/self/fdinfo/{pidfd}").read_text(encoding="ascii").splitlines():
        if line.startswith("Pid:"):
            return max(0, int(line.split()[1]))
    return 0
