"""The journal of settings changed for the whole machine: what they were, what we made them.

One JSON file in a private folder, written whole (temporary file, fsync, rename, fsync of the
folder) before the machine is touched, under a lock of the folder. It exists only while something is
changed; with its last entry it goes, and the folder with it.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sojourn.lab.errors import LabError, Unavailable

FILE = "settings.json"
ROOT_FOLDER = Path("/run/sojourn")
VERSION = 1
SIZE = 1 << 20
"""Bytes of a journal; a hundred settings of a hundred laboratories are a tenth of it."""


class NoJournal(Unavailable):
    """There is no place for a journal."""


@dataclass(frozen=True)
class Owner:
    """A use of a setting by a process: it ends when the process does, whatever becomes of us."""

    pid: int
    start: int
    """When the process started, in clock ticks after boot: numbers of processes are used again."""
    namespace: int
    """The PID namespace in which `pid` counts."""
    use: str
    """Tells the uses of one process apart."""

    def gone(self) -> bool:
        """Whether the process has ended; what cannot be known counts as no."""
        if self.namespace != pid_namespace():
            return False
        return started(self.pid) != self.start


@dataclass
class Entry:
    """A setting that we changed."""

    before: str
    ours: list[str]
    """What we have written, in order; the last is what holds, unless somebody else changed it."""
    owners: list[Owner] = field(default_factory=list)


def me(use: str) -> Owner:
    """The process that we are, using something."""
    pid = os.getpid()
    start = started(pid)
    assert start is not None
    return Owner(pid, start, pid_namespace(), use)


def started(pid: int) -> int | None:
    """When a process started, in clock ticks after boot; `None` if there is none, or it is dead."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name, in parentheses, may contain anything.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def pid_namespace() -> int:
    """Number of this process's PID namespace."""
    return Path("/proc/self/ns/pid").stat().st_ino


def boot() -> str:
    """Tells this boot of the machine from all others."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def default_folder() -> Path:
    """/run/sojourn for root; for anybody else `sojourn` in $XDG_RUNTIME_DIR."""
    if os.geteuid() == 0:
        return ROOT_FOLDER
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if not runtime.startswith("/"):
        raise NoJournal("there is no place for a journal: XDG_RUNTIME_DIR is not set", "use root")
    return Path(runtime) / "sojourn"


class Journal:
    """The journal in `folder`."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or default_folder()
        self.path = self.folder / FILE

    @contextmanager
    def locked(self, *, create: bool) -> Iterator[dict[str, Entry] | None]:
        """The entries by setting, with nobody else at them; `None` if there is no journal.

        `create` makes one. What the caller changes in the entries is written by `write`.
        """
        folder = self._lock(create)
        if folder is None:
            yield None
            return
        try:
            yield self._read(folder)
        finally:
            with suppress(OSError):
                # Only an empty folder goes, and whoever waits for its lock makes a new one.
                self.folder.rmdir()
            os.close(folder)

    def write(self, entries: dict[str, Entry]) -> None:
        """Makes the file say what `entries` do, or go if they are none, and be on disk."""
        if not entries:
            self.path.unlink(missing_ok=True)
            return
        content = {
            "version": VERSION,
            "boot": boot(),
            "settings": {name: asdict(entry) for name, entry in entries.items()},
        }
        data = json.dumps(content, indent=1).encode() + b"\n"
        if len(data) > SIZE:
            raise LabError(f"{self.path}: too many changes for one journal")
        new = self.path.with_suffix(".new")
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self.path)
        except BaseException:
            new.unlink(missing_ok=True)
            raise
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def left(self) -> list[str]:
        """Settings that killed laboratories left changed; it only reads, and waits for nobody."""
        try:
            content = json.loads(self.path.read_bytes()[:SIZE])
            if content["boot"] != boot():
                return []
            entries = {name: _entry(entry) for name, entry in content["settings"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return []
        return [name for name, e in entries.items() if all(owner.gone() for owner in e.owners)]

    def _lock(self, create: bool) -> int | None:
        """Locks the folder, and makes sure that it is ours alone."""
        while True:
            if create:
                try:
                    self.folder.mkdir(mode=0o700)
                except FileExistsError:
                    pass
                except OSError as error:
                    raise NoJournal(
                        f"the journal's folder {self.folder} cannot be made ({error.strerror})",
                    ) from error
            try:
                fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            except FileNotFoundError:
                if create:
                    continue
                return None
            except OSError as error:
                raise Unavailable(f"{self.folder}: {error.strerror}") from error
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                found = os.fstat(fd)
                with suppress(FileNotFoundError):
                    # Whoever had the lock before may have taken the folder away.
                    if os.path.samestat(found, self.folder.lstat()):
                        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o022:
                            raise Unavailable(
                                f"{self.folder} is not ours alone: it belongs to user "
                                f"{found.st_uid}, mode {stat.S_IMODE(found.st_mode):o}"
                            )
                        return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)

    def _read(self, folder: int) -> dict[str, Entry]:
        """What the file says; nothing if it is of an earlier boot, which undid every change."""
        self.path.with_suffix(".new").unlink(missing_ok=True)  # of a run that was killed
        try:
            fd = os.open(FILE, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
        except FileNotFoundError:
            return {}
        with os.fdopen(fd, "rb") as file:
            data = file.read(SIZE + 1)
        try:
            content = json.loads(data)
            if content["version"] != VERSION:
                raise ValueError(f"version {content['version']!r}")
            if content["boot"] != boot():
                self.write({})
                return {}
            return {name: _entry(entry) for name, entry in content["settings"].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise LabError(
                f"{self.path} is not a journal of this version ({type(error).__name__}: {error}); "
                "put the settings that it names back by hand, and remove it"
            ) from error


def _entry(content: dict[str, Any]) -> Entry:
    ours = [str(value) for value in content["ours"]]
    if not ours:
        raise ValueError("an entry without a value")
    return Entry(str(content["before"]), ours, [Owner(**owner) for owner in content["owners"]])
