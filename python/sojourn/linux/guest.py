"""Guests: runs of a kernel in virtual time, each as a confined process of this machine."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Self

from sojourn import temporary
from sojourn.lab.errors import LabError, Unavailable
from sojourn.linux.kernels import Kernel
from sojourn.scenario.engine import Stopped

INIT = "init"
"""Name of the program of the guest's first process, a file in this package."""
FOLDERS = ("dev", "out", "proc", "programs", "run", "sys", "tmp", "var")
"""Folders that are created in the root of a guest."""
MEMORY = 2048
"""Memory of a guest in MiB, of which sockets may take a quarter. A page takes memory of the host
machine only once the guest has written to it."""
LOOK = 0.05
"""Interval between checks of a running guest, in seconds."""
WATCH = 0.5
"""Interval between checks of the processor time of a guest, in seconds."""
STILL = 4.0
"""Processor time in seconds after which a guest whose clock has not advanced is stopped."""
SAID = 4000
"""Maximum number of characters of a kernel's messages in an error."""
COMMAND_LINE = (
    "root=/dev/root", "rootfstype=hostfs", "rootflags=/proc/self/cwd", "rw", "init=/init",
    "con=null", "con0=null,fd:1", "con1=null", "time-travel=inf-cpu", "time-travel-start=0",
    "seccomp=on", "quiet",
)  # fmt: skip
"""Command line of the kernel. It is equal in all runs, because the kernel's random numbers depend
on it.
"""
SHOWN = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc")
"""Folders of this machine that the user's programs in a guest can read."""
READ = ("/proc", "/usr", "/lib", "/lib64")
"""Folders of this machine that the kernel's process reads: libraries, and its own /proc."""


def init() -> Path:
    """Returns the path of the guest's first program; raises `Unavailable` if it is missing."""
    path = Path(str(resources.files(__package__) / INIT))
    if not path.is_file():
        raise Unavailable(f"this installation lacks {path}", "use make setup")
    return path


def last_words(said: str) -> str:
    """Returns the end of a kernel's messages, or `nothing`."""
    return said[-SAID:].strip() or "nothing"


@dataclass(frozen=True)
class Console:
    """A guest's first terminal as two file descriptors.

    A real terminal is not used, because the kernel sometimes loses input from a terminal.
    """

    input: int
    """Read end of the terminal's input."""
    output: int
    """Write end of a pipe for the terminal's output.

    The kernel writes single bytes. If it cannot write at the end of the guest, it drops its last
    output. A pipe takes more writes of one byte than a socket.
    """

    def words(self) -> tuple[str, ...]:
        """Returns the kernel's command line."""
        own = f"con0=fd:0,fd:{self.output}"
        words = (own if word.startswith("con0=") else word for word in COMMAND_LINE)
        return (*words, "loglevel=1")


@dataclass(frozen=True)
class Output:
    """Output of an ended guest."""

    files: Mapping[str, bytes]
    """Files that the guest wrote, by name."""
    said: str
    """Messages of the kernel."""
    seconds: float
    """Processor time of the kernel's process and its children, in seconds."""


class Guest:
    """A guest; the end of its context ends its processes and removes its folder.

    `memory` is in MiB.
    """

    def __init__(self, kernel: Kernel, seed: int, memory: int = MEMORY) -> None:
        self.kernel = kernel
        self.seed = seed
        self.memory = memory
        self._temporary = temporary.Folder()
        self.folder = self._temporary.path
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Returns the number of the kernel's process; `None` before the start."""
        return None if self._process is None else self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._temporary.close()

    def start(
        self,
        files: Mapping[str, bytes],
        read: tuple[str, ...] = (),
        console: Console | None = None,
    ) -> None:
        """Starts the guest with these files in its root.

        `read` lists further folders of this machine that the guest can read. `console` is the
        guest's first terminal.
        """
        for name in FOLDERS:
            (self.folder / name).mkdir()
        (self.folder / "var" / "run").symlink_to("/run")  # `ip` looks for namespaces in /var/run
        for folder in map(Path, read):
            if folder.is_symlink():  # on many distributions /lib is a link to /usr/lib
                (self.folder / folder.relative_to("/")).symlink_to(folder.readlink())
        for name, content in files.items():
            (self.folder / name).write_bytes(content)
        shutil.copy(init(), self.folder / "init")
        for name in ("ip", "tc"):
            shutil.copy(self.kernel.program(name), self.folder / "programs" / name)
        folders = [str(self.kernel.folder), *READ, *read]
        there = [folder for folder in folders if Path(folder).exists()]
        allowed = [word for folder in there for word in ("--read", folder)]
        # The original `init` is executed, because a process that was forked for another guest may
        # have the copy open for writing.
        command = [
            str(init()), "confine", "--cpu", str(_processor()),
            "--write", str(self.folder), "--write", "/dev/null", *allowed,
            "--", str(self.kernel.program("linux")), f"mem={self.memory}M",
            *(console.words() if console else COMMAND_LINE),
        ]  # fmt: skip
        own = str(self.folder / "tmp")
        with (self.folder / "said").open("wb") as said:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                command,
                cwd=self.folder,
                env={"HOME": own, "TMPDIR": own, "SOJOURN_SEED": str(self.seed)},
                stdin=subprocess.DEVNULL if console is None else console.input,
                pass_fds=() if console is None else (console.output,),
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def wait(self, tick: Callable[[int], bool] | None = None) -> Output:
        """Waits for the end of the guest and returns its output.

        `tick` is called every `LOOK` seconds with the guest's time, in nanoseconds since the start
        of the run. If it returns `False`, the guest is killed and `Stopped` is raised. Raises
        `LabError` if the guest fails or its time does not advance.
        """
        process = self._process
        assert process is not None, "not started"
        watched = _Watched(process.pid)
        while process.poll() is None:
            now = self._now()
            if tick is not None and not tick(now):
                self.kill()
                raise Stopped("the guest was stopped")
            if watched.stands_still(now):
                who = self._spinning(watched)
                self.kill()
                raise LabError(
                    f"the guest's time does not advance from {now / 1e9:g} s: {who} "
                    "is in an endless loop"
                )
            time.sleep(LOOK)
        said = (self.folder / "said").read_text("utf-8", errors="replace")
        found = {path.name: path.read_bytes() for path in (self.folder / "out").iterdir()}
        for name in ("now", "running"):
            found.pop(name, None)
        ended = process.returncode
        if ended < 0:
            name = signal.Signals(-ended).name
            raise LabError(f"the kernel was ended by {name}; last messages: {last_words(said)}")
        if not found:
            raise LabError(f"the guest wrote no results; last messages: {last_words(said)}")
        return Output(found, said, watched.seconds)

    def end(self) -> bytes:
        """Waits for the end of the guest; returns the output of its first process as JSON.

        Raises `LabError` if the guest fails.
        """
        assert self._process is not None, "not started"
        self._process.wait()
        try:
            return (self.folder / "out" / "done.json").read_bytes()
        except FileNotFoundError:
            said = (self.folder / "said").read_text("utf-8", errors="replace")
            raise LabError(f"the guest failed; last messages: {last_words(said)}") from None

    def _now(self) -> int:
        try:
            return int((self.folder / "out" / "now").read_text("ascii") or 0)
        except FileNotFoundError:
            return 0

    def _spinning(self, watched: _Watched) -> str:
        """Returns the name of the guest's process that uses the processor; if unknown, all names.

        For each process of the guest, the kernel has a process on this machine, created at the same
        time.
        """
        try:
            names = (self.folder / "out" / "running").read_text("utf-8").splitlines()
        except FileNotFoundError:
            return "a program in the guest"
        before = watched.spent()
        time.sleep(WATCH)
        spent = {pid: s - before.get(pid, 0.0) for pid, s in watched.spent().items()}
        if spent:
            # A program of the user has its name in its environment. Other processes are in the
            # order of `names`.
            which = max(spent, key=lambda pid: spent[pid])
            if name := _own_name(which):
                return name
            number = list(spent).index(which)
            if number < len(names):
                return names[number]
        return f"a program in the guest ({', '.join(names)})"

    def kill(self) -> None:
        """Kills the guest with all of its processes; has no effect if the guest has ended."""
        if self._process is None or self._process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class _Watched:
    """Observes the processor time of a guest, and whether the guest's clock advances."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._now = -1
        self._since = 0.0
        self._next = 0.0
        self.seconds = 0.0
        """Processor time of the guest's processes at the last check, in seconds."""

    def stands_still(self, now: int) -> bool:
        """Returns whether the guest used `STILL` processor seconds while its clock showed `now`."""
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + WATCH
        self.seconds = max(self.seconds, sum(s for _, s in _session(self._pid).values()))
        if now != self._now:
            self._now, self._since = now, self.seconds
        return self.seconds - self._since > STILL

    def spent(self) -> dict[int, float]:
        """Returns the processor seconds of the guest's processes by number, in order of start."""
        there = _session(self._pid)
        there.pop(self._pid, None)
        return {pid: there[pid][1] for pid in sorted(there, key=lambda pid: (there[pid][0], pid))}


OWN_NAME = b"SOJOURN_PROGRAM="
"""Environment variable with the name of a user's program, as in `crates/guest/src/programs.rs`."""
STACK = 1 << 20
"""Number of bytes at the end of a memory area that are searched for the environment."""


def _own_name(pid: int) -> str:
    """Returns the name of the user's program that a process executes; empty for other processes.

    The name is found in the memory of the process, which contains the program's environment.
    """
    try:
        places = (Path("/proc") / str(pid) / "maps").read_text("ascii", "replace").splitlines()
        with (Path("/proc") / str(pid) / "mem").open("rb", buffering=0) as memory:
            for place in reversed(places):
                span, rights = place.split()[:2]
                if not rights.startswith("rw"):
                    continue
                low, high = (int(end, 16) for end in span.split("-"))
                low = max(low, high - STACK)
                try:
                    memory.seek(low)
                    found = memory.read(high - low).rpartition(OWN_NAME)
                except (OSError, ValueError, OverflowError):
                    continue
                if found[1]:
                    return found[2].partition(b"\0")[0].decode("utf-8", "replace")
    except OSError:
        return ""
    return ""


_TICKS = os.sysconf("SC_CLK_TCK")
_turn = itertools.count()


def _processor() -> int:
    """Returns the number of a processor for the next guest, by round robin."""
    there = sorted(os.sched_getaffinity(0))
    return there[next(_turn) % len(there)]


def _session(session: int) -> dict[int, tuple[int, float]]:
    """Returns the start time and processor time of each process of a session, by number.

    Start times are in ticks after boot. Processor times are in seconds and include ended children.
    """
    found = {}
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            fields = (process / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == session:
            seconds = sum(int(field) for field in fields[11:15]) / _TICKS
            found[int(process.name)] = (int(fields[19]), seconds)
    return found
