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
"""Name of the guest's first process, beside this file."""
FOLDERS = ("dev", "out", "proc", "programs", "run", "sys", "tmp", "var")
"""What the guest's root has besides files."""
MEMORY = 256
"""Mebibytes of a guest."""
LOOK = 0.05
"""Seconds between looks at a guest that runs."""
WATCH = 0.5
"""Seconds between looks at its processor time."""
STILL = 4.0
"""Processor seconds after which a guest hangs whose clock has not gone on by 0.1 s."""
SAID = 4000
"""Characters of a kernel's last words that an error shows."""
COMMAND_LINE = (
    "root=/dev/root", "rootfstype=hostfs", "rootflags=/proc/self/cwd", "rw", "init=/init",
    "con=null", "con0=null,fd:1", "con1=null", "time-travel=inf-cpu", "time-travel-start=0",
    "seccomp=on", "quiet",
)  # fmt: skip
"""The same for all runs of a kernel: the kernel mixes it into its random numbers."""
CONSOLE = tuple("con0=fd:0" if word.startswith("con0=") else word for word in COMMAND_LINE)
"""The same with a console at a socket, which is standard input."""
SHOWN = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc")
"""What of this machine its programs see, read-only."""
READ = ("/proc", "/usr", "/lib", "/lib64")
"""Folders that the kernel's process reads: its libraries, and itself."""


def init() -> Path:
    """Return the file of the guest's first process."""
    path = Path(str(resources.files(__package__) / INIT))
    if not path.is_file():
        raise Unavailable(f"this installation has no {path}", "make setup")
    return path


def last_words(said: str) -> str:
    """Return the end of a kernel's messages."""
    return said[-SAID:].strip() or "nothing"


@dataclass(frozen=True)
class Output:
    """What a guest left behind."""

    files: Mapping[str, bytes]
    said: str
    """The kernel's own messages."""
    seconds: float
    """Processor time of the kernel's process and its children."""


class Guest:
    """One guest; as a context manager it ends with the block, and so does its folder."""

    def __init__(self, kernel: Kernel, seed: int, memory: int = MEMORY) -> None:
        self.kernel = kernel
        self.seed = seed
        self.memory = memory
        self._temporary = temporary.Folder()
        self.folder = self._temporary.path
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The kernel's process, once it was started."""
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
        """Start it with these files in its root; it may read these folders of this machine too.

        A `console` is a stream socket that the guest's first terminal reads and writes. A terminal
        does not serve: the kernel sometimes misses what is typed at one.
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
        # Not the copy: who starts another guest just now may hold it open for writing.
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
        """Wait for its end.

        `tick` is called now and then with the guest's time in nanoseconds since the run's start,
        and ends it by returning `False`. Raises `Stopped` then, and `LabError` if the guest fails
        or its time stands still.
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
                raise LabError(f"the guest's time stands still at {now / 1e9:g} s: {who} spins")
            time.sleep(LOOK)
        said = (self.folder / "said").read_text("utf-8", errors="replace")
        found = {path.name: path.read_bytes() for path in (self.folder / "out").iterdir()}
        for name in ("now", "running"):
            found.pop(name, None)
        ended = process.returncode
        if ended < 0:
            name = signal.Signals(-ended).name
            raise LabError(f"the kernel was ended by {name}; it said: {last_words(said)}")
        if not found:
            raise LabError(f"the guest wrote nothing; it said: {last_words(said)}")
        return Output(found, said, watched.seconds)

    def end(self) -> bytes:
        """Wait for its end, however long that takes; return what its first process left."""
        assert self._process is not None, "not started"
        self._process.wait()
        try:
            return (self.folder / "out" / "done.json").read_bytes()
        except FileNotFoundError:
            said = (self.folder / "said").read_text("utf-8", errors="replace")
            raise LabError(f"the guest failed; it said: {last_words(said)}") from None

    def _now(self) -> int:
        try:
            return int((self.folder / "out" / "now").read_text("ascii") or 0)
        except FileNotFoundError:
            return 0

    def _spinning(self, watched: _Watched) -> str:
        """Say who keeps time from going on, as far as that is seen from outside.

        The kernel has a process here for each of the guest's, made when that is started.
        """
        try:
            names = (self.folder / "out" / "running").read_text("utf-8").splitlines()
        except FileNotFoundError:
            return "a program in it"
        before = watched.spent()
        time.sleep(WATCH)
        spent = {pid: s - before.get(pid, 0.0) for pid, s in watched.spent().items()}
        if spent:
            # Those of the user's own begin last, and carry their names.
            which = max(spent, key=lambda pid: spent[pid])
            if name := _own_name(which):
                return name
            number = list(spent).index(which)
            if number < len(names):
                return names[number]
        return f"a program in it ({', '.join(names)})"

    def kill(self) -> None:
        """End it now, with all of its processes."""
        if self._process is None or self._process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class _Watched:
    """A guest's processor time, and whether its own clock goes on."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._now = -1
        self._since = 0.0
        self._next = 0.0
        self.seconds = 0.0
        """Processor time of its processes so far."""

    def stands_still(self, now: int) -> bool:
        """Say whether much processor time was spent and the guest's clock is still at `now`."""
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + WATCH
        self.seconds = max(self.seconds, sum(s for _, s in _session(self._pid).values()))
        if now != self._now:
            self._now, self._since = now, self.seconds
        return self.seconds - self._since > STILL

    def spent(self) -> dict[int, float]:
        """Return the processor seconds of the guest's processes, in the order of their starts."""
        there = _session(self._pid)
        there.pop(self._pid, None)
        return {pid: there[pid][1] for pid in sorted(there, key=lambda pid: (there[pid][0], pid))}


OWN_NAME = b"SOJOURN_PROGRAM="
"""As in `crates/guest/src/programs.rs`: a variable in a program's environment."""
STACK = 1 << 20
"""Bytes of a program's memory, its highest, in which its environment is looked for."""


def _own_name(pid: int) -> str:
    """Return what the program of the user's own in this process is called; empty if it is none.

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
    """Return a processor for a guest: each has its turn."""
    there = sorted(os.sched_getaffinity(0))
    return there[next(_turn) % len(there)]


def _session(session: int) -> dict[int, tuple[int, float]]:
    """Return when each of a session's processes began, and its processor seconds.

    Those of its own children that ended are included.
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
