"""Programs in the sandbox: their start in a host, their output and their result."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from sojourn.lab import syscalls
from sojourn.lab.sandbox.messages import Message

WORK = "/dev/shm"  # noqa: S108 - the sandbox's own tmpfs is mounted there
"""Folder of the programs' working directories, which is private in the sandbox."""

_CHUNK = 65536
"""Bytes that are read at once."""
OPEN_FILES = resource.getrlimit(resource.RLIMIT_NOFILE)
"""Limits of open files for programs, read before init raises its own limit."""


class Stream:
    """One output stream of a program: the first `limit` bytes are stored, all are counted."""

    def __init__(self, name: str, limit: int) -> None:
        self.kept = os.memfd_create(name, os.MFD_CLOEXEC)
        self.pipe: int | None = None
        self.limit = limit
        self.size = 0
        """Number of bytes stored."""
        self.total = 0
        """Number of bytes that the program has written."""

    def take(self) -> bool:
        """Stores all available output; returns `False` if the stream has ended."""
        if self.pipe is None:
            return False
        while True:
            try:
                chunk = os.read(self.pipe, _CHUNK)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            self.total += len(chunk)
            chunk = chunk[: self.limit - self.size]
            if chunk:
                os.pwrite(self.kept, chunk, self.size)
                self.size += len(chunk)

    def close(self) -> None:
        """Closes init's descriptors of the stream; the process outside has its own."""
        if self.pipe is not None:
            os.close(self.pipe)
            os.close(self.kept)
            self.pipe = None


class Watch:
    """Searches the stored output of a stream for a text, without repeated examination."""

    def __init__(self, stream: Stream, text: bytes) -> None:
        if not text:
            raise ValueError("no text to wait for")
        self.stream = stream
        self.text = text
        self.seen = 0

    def look(self) -> int | None:
        """Returns the position after the text; `None` if it is missing or the stream is closed."""
        if self.stream.pipe is None:
            return None
        start = max(0, self.seen - len(self.text) + 1)
        found = os.pread(self.stream.kept, self.stream.size - start, start).find(self.text)
        self.seen = self.stream.size
        return None if found < 0 else start + found + len(self.text)


class Program:
    """A program that init has started."""

    def __init__(self, number: int, pid: int, directory: str, streams: list[Stream]) -> None:
        self.number = number
        self.pid = pid
        self.directory = directory
        self.streams = streams
        self.result: Message = {}
        """Exit status and resource usage; empty while the program runs."""

    def ended(self, status: int, usage: resource.struct_rusage) -> None:
        """Records the result of the program."""
        self.result = {
            "code": os.waitstatus_to_exitcode(status),
            "user": usage.ru_utime,
            "system": usage.ru_stime,
            "memory": usage.ru_maxrss * 1024,
            "voluntary": usage.ru_nvcsw,
            "involuntary": usage.ru_nivcsw,
            "written": [stream.total for stream in self.streams],
        }


def start(number: int, request: Message, fds: Sequence[int], netns: int) -> Program:
    """Starts the program of a request in the network namespace `netns`.

    `fds` become the program's descriptors from 3 on. If `stdin` of the request is true, the last
    descriptor becomes the standard input instead.
    """
    argv = [str(word) for word in request["argv"]]
    if not argv:
        raise ValueError("no program")
    directory = request.get("cwd") or f"{WORK}/{number}"
    if not request.get("cwd"):
        Path(directory).mkdir()
    environment = {"HOME": directory, "TMPDIR": directory, "PWD": directory, "LANG": "C.UTF-8"}
    environment |= request.get("env", {})
    passed = list(fds)
    stdin = passed.pop() if request.get("stdin") else None
    streams: list[Stream] = []
    outputs: list[int] = []
    failed, failing = os.pipe()
    try:
        for name in ("stdout", "stderr"):
            stream = Stream(f"{number}-{name}", request["limit"])
            stream.pipe, write_end = os.pipe()
            streams.append(stream)
            outputs.append(write_end)
            os.set_blocking(stream.pipe, False)
        pid = os.fork()
        if pid == 0:
            child = Child(request, argv, environment, directory, netns)
            child.become(failing, stdin, outputs, passed)
        os.close(failing)
        failing = -1
        trouble = os.read(failed, _CHUNK)
        if trouble:
            os.waitpid(pid, 0)
            errno, _, step = trouble.decode().partition(" ")
            raise OSError(int(errno), f"{step}: {os.strerror(int(errno))}")
    except BaseException:
        for stream in streams:
            stream.close()
        if not request.get("cwd"):
            with suppress(OSError):
                Path(directory).rmdir()
        raise
    finally:
        for fd in (failed, failing, *outputs):
            if fd >= 0:
                os.close(fd)
    return Program(number, pid, directory, streams)


class Child:
    """The child process between fork and exec."""

    def __init__(
        self,
        request: Message,
        argv: list[str],
        environment: dict[str, str],
        directory: str,
        netns: int,
    ) -> None:
        self.request = request
        self.argv = argv
        self.environment = environment
        self.directory = directory
        self.netns = netns
        self.doing = "fork"

    def become(
        self, failing: int, stdin: int | None, outputs: list[int], passed: list[int]
    ) -> NoReturn:
        """Executes the program. After an error, writes the step to `failing` and ends."""
        try:
            for what, action in self.steps():
                self.doing = what
                action()
            self.doing = "descriptors"
            if stdin is None:
                stdin = os.open(os.devnull, os.O_RDONLY)
            # All descriptors are first copied to high numbers, so that none is overwritten before
            # it has been copied.
            failing = lift(failing)
            sources = [lift(fd) for fd in (stdin, *outputs, *passed)]
            for target, source in enumerate(sources):
                os.dup2(source, target)
            self.doing = self.argv[0]
            os.execve(self.request["executable"], self.argv, self.environment)  # noqa: S606
        except OSError as error:
            os.write(failing, f"{error.errno} {self.doing}".encode()[:_CHUNK])
        except BaseException as error:  # noqa: BLE001 - the child must never return
            os.write(failing, f"22 {self.doing}: {error}".encode()[:_CHUNK])
        finally:
            os._exit(127)

    def steps(self) -> list[tuple[str, Callable[[], object]]]:
        """Returns the names (for error messages) and functions of the steps before exec."""
        request = self.request
        todo: list[tuple[str, Callable[[], object]]] = [
            ("session", os.setsid),
            ("network namespace", lambda: syscalls.setns(self.netns, syscalls.CLONE_NEWNET)),
            (f"working directory {self.directory}", lambda: os.chdir(self.directory)),
            ("signals", default_signals),
            ("limit nofile", lambda: resource.setrlimit(resource.RLIMIT_NOFILE, OPEN_FILES)),
        ]
        for name, value in request.get("rlimits", {}).items():
            kind = getattr(resource, f"RLIMIT_{name.upper()}")
            todo.append(
                (f"limit {name}", lambda k=kind, v=value: resource.setrlimit(k, (v, v)))  # type: ignore[misc]
            )
        if request.get("nice") is not None:
            todo.append(("priority", lambda: os.setpriority(os.PRIO_PROCESS, 0, request["nice"])))
        if request.get("cpus"):
            todo.append(("processors", lambda: os.sched_setaffinity(0, request["cpus"])))
        if request.get("fifo") is not None:
            parameters = os.sched_param(request["fifo"])
            todo.append(
                ("real-time priority", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, parameters))
            )
        return todo


def lift(fd: int) -> int:
    """Copies a descriptor to a number above 511, which exec closes; returns this number."""
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 512)


def default_signals() -> None:
    """Restores the default handling of signals that init and Python have changed."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
