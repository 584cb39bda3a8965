"""Temporary files and folders that are also removed after a killed process.

A killed process leaves its temporary folders. Therefore all temporary folders of a user are in one
folder, and each is locked (`flock`) by its process. The next process removes the folders that are
not locked.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

if sys.platform != "win32":
    import fcntl


TRIES = 100
"""Number of attempts to create a folder, since other processes may remove its parent meanwhile."""


def cache() -> Path:
    """Returns the folder of files that this user keeps; it may not exist yet.

    Raises `RuntimeError` if the user has no home folder.
    """
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (named if named.is_absolute() else Path.home() / ".cache") / "sojourn"


def nameless() -> IO[bytes]:
    """Returns a new open file without a name, which the kernel removes when it is closed."""
    return cast("IO[bytes]", tempfile.TemporaryFile())


def place() -> Path:
    """Returns the parent of this user's temporary folders, which is removed with the last one."""
    who = "" if sys.platform == "win32" else f"-{os.geteuid()}"
    return Path(tempfile.gettempdir()) / f"sojourn{who}"


class Folder:
    """A new temporary folder; `close` removes it, or a later process if its process was killed."""

    def __init__(self) -> None:
        self._lock: int | None = None
        self._around: Path | None = None
        self.path = self._made()

    def _made(self) -> Path:
        if sys.platform == "win32":  # without flock, folders of killed processes remain
            return Path(tempfile.mkdtemp(prefix="sojourn-"))
        base = place()
        for _ in range(TRIES):
            with contextlib.suppress(FileExistsError):
                base.mkdir(mode=0o700)
            if base.is_symlink() or (base.exists() and not _ours(base)):
                break  # another user has created a folder with this name
            try:
                sweep()
                path = Path(tempfile.mkdtemp(dir=base))
                self._lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            except FileNotFoundError:
                continue  # another process has removed the folder before it was locked
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            if _is(self._lock, path):
                self._around = path
                # The caller may lock its folder for another purpose, so it gets a subfolder.
                inner = path / "kept"
                inner.mkdir()
                return inner
            self._release()
        return Path(tempfile.mkdtemp(prefix="sojourn-"))

    def close(self) -> None:
        """Removes the folder with its content; further calls have no effect."""
        shutil.rmtree(self._around or self.path, ignore_errors=True)
        self._release()
        with contextlib.suppress(OSError):  # not empty if other processes have folders
            place().rmdir()

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Gives the path of a temporary folder, which is removed at the end of the context."""
    made = Folder()
    try:
        yield made.path
    finally:
        made.close()


def sweep() -> int:
    """Removes the folders of processes that have ended; returns the number of folders."""
    base, count = place(), 0
    if sys.platform == "win32" or not _ours(base):
        return 0
    with contextlib.suppress(FileNotFoundError):
        for path in sorted(base.iterdir()):
            count += _removed(path)
    return count


def _removed(path: Path) -> bool:
    """Removes a folder unless a process has locked it; returns whether it was removed."""
    try:
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return not path.exists()


def _ours(path: Path) -> bool:
    """Returns whether a path is a folder, not a link, to which only this user can write."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return mine and not stat.S_IMODE(found.st_mode) & 0o022


def _is(lock: int, path: Path) -> bool:
    """Returns whether the open file `lock` is the file at the path."""
    try:
        return os.path.samestat(os.fstat(lock), path.lstat())
    except FileNotFoundError:
        return False
