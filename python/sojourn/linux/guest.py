"""A kernel in virtual time as a confined process, from its start to its outputs."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
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
"""Name of the guest's first process, a file next to this one."""
FOLDERS = ("dev", "out", "proc", "programs", "run", "sys", "tmp", "var")
"""Folders in the guest's root."""
MEMORY = 256
"""Memory of a guest in MiB."""
LOOK = 0.05
"""Seconds between checks of a running guest."""
WATCH = 0.5
"""Seconds between checks of its processor time."""
STILL = 4.0
"""Processor seconds after which a guest counts as hung if its clock has moved less than 0.1 s."""
SAID = 4000
"""Characters of a kernel's last messages in an error."""
COMMAND_LINE = (
    "root=/dev/root", "rootfstype=hostfs", "rootflags=/proc/self/cwd", "rw", "init=/init",
    "con=null", "con0=null,fd:1", "con1=null", "time-travel=inf-cpu", "time-travel-start=0",
    "seccomp=on", "quiet",
)  # fmt: skip
"""Equal for all runs of a kernel, because the kernel mixes it into its random numbers."""
CONSOLE = tuple("con0=fd:0" if word.startswith("con0=") else word for word in COMMAND_LINE)
"""The same with a console at a socket, which is standard input."""
SHOWN = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc")
"""Folders of this machine that its programs see, read-only."""
READ = ("/proc", "/usr", "/lib", "/lib64")
"""Folders that the kernel's process reads: its libraries, and itself."""


def init() -> Path:
    """Returns the file of the guest's first process."""
    path = Path(str(resources.files(__package__) / INIT))
    if not path.is_file():
        raise Unavailable(f"this installation lacks {path}", "make setup")
    return path


def last_words(said: str) -> str:
    """Returns the end of a kernel's messages."""
    return said[-SAID:].strip() or "nothing"


@dataclass(frozen=True)
class Output:
    """Outputs of a guest."""

    files: Mapping[str, bytes]
    said: str
    """The kernel's own messages."""
    seconds: float
    """Processor time of the kernel's process and its children."""


class Guest:
    """One guest; as a context manager it removes process and folder at the end."""

    def __init__(self, kernel: Kernel, seed: int, memory: int = MEMORY) -> None:
        self.kernel = kernel
        self.seed = seed
        self.memory = memory
        self._temporary = temporary.Folder()
        self.folder = self._temporary.path
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Returns the kernel's process id, once it has been started."""
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
        console: socket.socket | None = None,
    ) -> None:
        """Starts the guest with these files in its root; `read` lists further readable folders.

        A `console` is a stream socket for the guest's first terminal. A terminal is unsuitable: the
        kernel sometimes loses its input.
        """
        for name in FOLDERS:
            (self.folder / name).mkdir()
        (self.folder / "var" / "run").symlink_to("/run")  # where `ip` looks for namespaces
        for folder in map(Path, read):
            if folder.is_symlink():  # such as /lib to /usr/lib
                (self.folder / folder.relative_to("/")).symlink_to(folder.readlink())
        for name, content in files.items():
            (self.folder / name).write_bytes(content)
        shutil.copy(init(), self.folder / "init")
        for name in ("ip", "tc"):
            shutil.copy(self.kernel.program(name), self.folder / "programs" / name)
        folders = [str(self.kernel.folder), *READ, *read]
        there = [folder for folder in folders if Path(folder).exists()]
        allowed = [word for folder in there for word in ("--read", folder)]
        # Not the copy: another starting guest may still have it open for writing.
        command = [
            str(init()), "confine", "--cpu", str(_processor()),
            "--write", str(self.folder), "--write", "/dev/null", *allowed,
            "--", str(self.kernel.program("linux")), f"mem={self.memory}M",
            *((*CONSOLE, "loglevel=1") if console else COMMAND_LINE),
        ]  # fmt: skip
        own = str(self.folder / "tmp")
        with (self.folder / "said").open("wb") as said:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                command,
                cwd=self.folder,
                env={"HOME": own, "TMPDIR": own, "SOJOURN_SEED": str(self.seed)},
                stdin=subprocess.DEVNULL if console is None else console.fileno(),
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def wait(self, tick: Callable[[int], bool] | None = None) -> Output:
        """Waits for the guest's end.

        `tick` is called from time to time with the guest's time in nanoseconds since the run's
        start, and ends it by returning `False`, which raises `Stopped`. Raises `LabError` if the
        guest fails or its time does not advance.
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
            raise LabError(f"the kernel was ended by {name}; its last messages: {last_words(said)}")
        if not found:
            raise LabError(f"the guest wrote no results; its last messages: {last_words(said)}")
        return Output(found, said, watched.seconds)

    def end(self) -> bytes:
        """Waits for the guest's end without a limit; returns the output of its first process."""
        assert self._process is not None, "not started"
        self._process.wait()
        try:
            return (self.folder / "out" / "done.json").read_bytes()
        except FileNotFoundError:
            said = (self.folder / "said").read_text("utf-8", errors="replace")
            raise LabError(f"the guest failed; its last messages: {last_words(said)}") from None

    def _now(self) -> int:
        try:
            return int((self.folder / "out" / "now").read_text("ascii") or 0)
        except FileNotFoundError:
            return 0

    def _spinning(self, watched: _Watched) -> str:
        """Returns which process keeps time from advancing, as far as visible from outside.

        The kernel has a process here for each of the guest's, created when that starts.
        """
        try:
            names = (self.folder / "out" / "running").read_text("utf-8").splitlines()
        except FileNotFoundError:
            return "a program in the guest"
        before = watched.spent()
        time.sleep(WATCH)
        spent = {pid: s - before.get(pid, 0.0) for pid, s in watched.spent().items()}
        if spent:
            # The user's programs start last, and have their names.
            which = max(spent, key=lambda pid: spent[pid])
            if name := _own_name(which):
                return name
            number = list(spent).index(which)
            if number < len(names):
                return names[number]
        return f"a program in the guest ({', '.join(names)})"

    def kill(self) -> None:
        """Ends the guest and all of its processes now."""
        if self._process is None or self._process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class _Watched:
    """A guest's processor time, and whether its own clock advances."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._now = -1
        self._since = 0.0
        self._next = 0.0
        self.seconds = 0.0
        """Processor time of its processes so far."""

    def stands_still(self, now: int) -> bool:
        """Returns whether much processor time was used while the guest's clock stayed at `now`."""
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + WATCH
        self.seconds = max(self.seconds, sum(s for _, s in _session(self._pid).values()))
        if now != self._now:
            self._now, self._since = now, self.seconds
        return self.seconds - self._since > STILL

    def spent(self) -> dict[int, float]:
        """Returns the processor seconds of the guest's processes, in the order of their starts."""
        there = _session(self._pid)
        there.pop(self._pid, None)
        return {pid: there[pid][1] for pid in sorted(there, key=lambda pid: (there[pid][0], pid))}


OWN_NAME = b"SOJOURN_PROGRAM="
"""As in `crates/guest/src/programs.rs`: a variable in a program's environment."""
STACK = 1 << 20
"""Highest bytes of a program's memory, which are searched for its environment."""


def _own_name(pid: int) -> str:
    """Returns the name of the user's program in this process; empty if it is another process.

    The process's memory is the program's.
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
    """Returns a processor for a guest, in turn."""
    there = sorted(os.sched_getaffinity(0))
    return there[next(_turn) % len(there)]


def _session(session: int) -> dict[int, tuple[int, float]]:
    """Returns each of a session's processes with its start and its processor seconds.

    The seconds include those of ended child processes.
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
