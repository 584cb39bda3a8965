"""The journal of settings changed for the whole machine: original values and written values.

The journal is one JSON file in a private folder. It is rewritten atomically (temporary file, fsync,
rename, fsync of the folder) before the machine is changed, under a lock of the folder. The file
exists only while a setting is changed; file and folder are removed with the last entry.
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
"""Largest size of a journal in bytes; a hundred settings of a hundred laboratories take a tenth of
it.
"""


class NoJournal(Unavailable):
    """There is no folder for a journal."""


@dataclass(frozen=True)
class Owner:
    """The use of a setting by a process; it ends with the process, however that ends."""

    pid: int
    start: int
    """Start time of the process, in clock ticks after boot, since process numbers are reused."""
    namespace: int
    """The PID namespace of `pid`."""
    use: str
    """Name that distinguishes several uses by one process."""

    def gone(self) -> bool:
        """Returns whether the process is known to have ended."""
        if self.namespace != pid_namespace():
            return False
        return started(self.pid) != self.start


@dataclass
class Entry:
    """A changed setting."""

    before: str
    ours: list[str]
    """Values written by laboratories, in order; the last one is current unless another program
    changed it.
    """
    owners: list[Owner] = field(default_factory=list)


def me(use: str) -> Owner:
    """Returns this process as an owner, for a use."""
    pid = os.getpid()
    start = started(pid)
    assert start is not None
    return Owner(pid, start, pid_namespace(), use)


def started(pid: int) -> int | None:
    """Returns a process's start in clock ticks after boot; `None` if it is missing or dead."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name, in parentheses, may contain any characters.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def pid_namespace() -> int:
    """Returns the number of this process's PID namespace."""
    return Path("/proc/self/ns/pid").stat().st_ino


def boot() -> str:
    """Returns the identifier of this boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def default_folder() -> Path:
    """Returns /run/sojourn for root, `sojourn` in $XDG_RUNTIME_DIR for other users."""
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
        """Locks the journal and gives its entries by setting; `None` without a journal.

        `create` creates a journal. `write` saves the caller's changes of the entries.
        """
        folder = self._lock(create)
        if folder is None:
            yield None
            return
        try:
            yield self._read(folder)
        finally:
            with suppress(OSError):
                # Only an empty folder is removed; a process that waits for its lock creates a new
                # one.
                self.folder.rmdir()
            os.close(folder)

    def write(self, entries: dict[str, Entry]) -> None:
        """Writes `entries` durably to the file; removes the file if there are no entries."""
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
        """Returns settings that killed laboratories left changed; only reads, and takes no lock."""
        try:
            content = json.loads(self.path.read_bytes()[:SIZE])
            if content["boot"] != boot():
                return []
            entries = {name: _entry(entry) for name, entry in content["settings"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return []
        return [name for name, e in entries.items() if all(owner.gone() for owner in e.owners)]

    def _lock(self, create: bool) -> int | None:
        """Locks the folder and checks that it is private to this user."""
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
                    # The previous holder of the lock may have removed the folder.
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
        """Returns the entries; empty after a restart of the machine, which undoes every change."""
        self.path.with_suffix(".new").unlink(missing_ok=True)  # left by a run that was killed
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
