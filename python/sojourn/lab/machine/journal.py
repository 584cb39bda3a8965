"""The journal of changed settings of the machine: original values, written values, users.

The journal is a JSON file in a private folder. Before a setting is changed, the file is rewritten
atomically (temporary file, fsync, rename, fsync of the folder) under a lock of the folder. The file
and the folder are removed with the last entry.
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

from sojourn.data import Json
from sojourn.lab.errors import LabError, Unavailable
from sojourn.lab.typed import of_json

FILE = "settings.json"
"""Name of the file."""
ROOT_FOLDER = Path("/run/sojourn")
"""Folder of root's journal."""
VERSION = 1
"""Version of the file's format."""
SIZE = 1 << 20
"""Maximum size of a journal in bytes, ten times as much as a hundred laboratories with a hundred
settings need.
"""


class NoJournal(Unavailable):
    """The folder of the journal does not exist and cannot be created."""


@dataclass(frozen=True)
class Owner:
    """The use of a setting by a process, until the process ends or is killed."""

    pid: int
    start: int
    """Start time of the process in clock ticks after boot; it distinguishes processes whose number
    was reused.
    """
    namespace: int
    """Inode number of the PID namespace in which `pid` is valid."""
    use: str
    """Identifier that distinguishes several uses by one process."""

    def gone(self) -> bool:
        """Returns whether the process has ended; `False` for another PID namespace."""
        if self.namespace != pid_namespace():
            return False
        return started(self.pid) != self.start


@dataclass
class Entry:
    """A changed setting."""

    before: str
    """Value before the first change."""
    ours: list[str]
    """Values that laboratories have written, in order. The last value is the current one, unless
    another program has changed the setting.
    """
    owners: list[Owner] = field(default_factory=list)
    """Uses by laboratories."""


def me(use: str) -> Owner:
    """Returns this process as an owner with a use."""
    pid = os.getpid()
    start = started(pid)
    assert start is not None
    return Owner(pid, start, pid_namespace(), use)


def started(pid: int) -> int | None:
    """Returns the start of a process in clock ticks after boot; `None` if it does not run."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The second field is the name in parentheses, which may contain spaces and parentheses.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def pid_namespace() -> int:
    """Returns the inode number of this process's PID namespace."""
    return Path("/proc/self/ns/pid").stat().st_ino


def boot() -> str:
    """Returns the identifier of this boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def default_folder() -> Path:
    """Returns /run/sojourn for root, and $XDG_RUNTIME_DIR/sojourn for other users.

    Raises `NoJournal` if XDG_RUNTIME_DIR is not set.
    """
    if os.geteuid() == 0:
        return ROOT_FOLDER
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if not runtime.startswith("/"):
        raise NoJournal("the journal has no folder: XDG_RUNTIME_DIR is not set", "use root")
    return Path(runtime) / "sojourn"


class Journal:
    """The journal in a folder, by default `default_folder()`."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or default_folder()
        self.path = self.folder / FILE

    @contextmanager
    def locked(self, *, create: bool) -> Iterator[dict[str, Entry] | None]:
        """Locks the journal during the context; gives its entries by the name of the setting.

        The caller may change the entries and save them by `write`. If there is no journal, `create`
        creates one; without `create`, `None` is given.
        """
        folder = self._lock(create)
        if folder is None:
            yield None
            return
        try:
            yield self._read(folder)
        finally:
            with suppress(OSError):
                # `rmdir` removes only an empty folder. A process that waits for the lock of a
                # removed folder tries again.
                self.folder.rmdir()
            os.close(folder)

    def write(self, entries: dict[str, Entry]) -> None:
        """Saves the entries durably; removes the file if `entries` is empty."""
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
            raise LabError(f"{self.path}: the journal would exceed {SIZE} bytes")
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
        """Returns the settings that killed laboratories have not restored.

        Only reads the file, without a lock.
        """
        try:
            content = json.loads(self.path.read_bytes()[:SIZE])
            if content["boot"] != boot():
                return []
            entries = {name: _entry(entry) for name, entry in content["settings"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return []
        return [name for name, e in entries.items() if all(owner.gone() for owner in e.owners)]

    def _lock(self, create: bool) -> int | None:
        """Locks the folder and returns its descriptor; `None` if it does not exist.

        Raises `Unavailable` unless only this user may write to the folder.
        """
        while True:
            if create:
                try:
                    self.folder.mkdir(mode=0o700)
                except FileExistsError:
                    pass
                except OSError as error:
                    raise NoJournal(
                        f"the journal's folder {self.folder} cannot be created ({error.strerror})",
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
                    # The process that held the lock before may have removed the folder.
                    if os.path.samestat(found, self.folder.lstat()):
                        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o022:
                            raise Unavailable(
                                f"{self.folder} is not private to this user: it belongs to user "
                                f"{found.st_uid}, mode {stat.S_IMODE(found.st_mode):o}"
                            )
                        return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)

    def _read(self, folder: int) -> dict[str, Entry]:
        """Returns the entries; none after a reboot, which resets all settings."""
        self.path.with_suffix(".new").unlink(missing_ok=True)  # a killed run may have left it
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
                "restore the settings in it by hand, and remove the file"
            ) from error


def _entry(content: Json) -> Entry:
    entry = of_json(Entry, content)
    if not entry.ours:
        raise ValueError("an entry lists no value that a laboratory set")
    return entry
