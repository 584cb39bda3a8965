"""Files and folders that go with the process that made them.

A folder has a name, and whoever is killed leaves it behind. So all folders of a user stand in one
place, each locked (`flock`) by the process that uses it, and whoever makes one first removes those
that nobody holds any more.
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
"""Others may tidy up under our hands, though not always."""


def nameless() -> IO[bytes]:
    """A new file without a name, which goes when it is closed."""
    return cast("IO[bytes]", tempfile.TemporaryFile())


def place() -> Path:
    """Where the folders of this user stand while there are any."""
    who = "" if sys.platform == "win32" else f"-{os.geteuid()}"
    return Path(tempfile.gettempdir()) / f"sojourn{who}"


class Folder:
    """A new folder of this process's own, until it is closed or the process has ended."""

    def __init__(self) -> None:
        self._lock: int | None = None
        self._around: Path | None = None
        self.path = self._made()

    def _made(self) -> Path:
        if sys.platform == "win32":  # no flock there: what a killed process leaves stays
            return Path(tempfile.mkdtemp(prefix="sojourn-"))
        base = place()
        for _ in range(TRIES):
            with contextlib.suppress(FileExistsError):
                base.mkdir(mode=0o700)
            if base.is_symlink() or (base.exists() and not _ours(base)):
                break  # somebody else was there first: what stands there is not for us to touch
            try:
                sweep()
                path = Path(tempfile.mkdtemp(dir=base))
                self._lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            except FileNotFoundError:
                continue  # another process has tidied up between two steps
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            if _is(self._lock, path):
                self._around = path
                # Not the locked one itself: who uses it may lock it for reasons of his own.
                inner = path / "kept"
                inner.mkdir()
                return inner
            self._release()
        return Path(tempfile.mkdtemp(prefix="sojourn-"))

    def close(self) -> None:
        """Remove it with all that is in it; harmless if that has been done."""
        shutil.rmtree(self._around or self.path, ignore_errors=True)
        self._release()
        with contextlib.suppress(OSError):  # others may have theirs in it
            place().rmdir()

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A folder that goes at the end of the block, or, after a killed process, with the next one."""
    made = Folder()
    try:
        yield made.path
    finally:
        made.close()


def sweep() -> int:
    """Remove folders whose process is gone; returns how many."""
    base, count = place(), 0
    if sys.platform == "win32" or not _ours(base):
        return 0
    with contextlib.suppress(FileNotFoundError):
        for path in sorted(base.iterdir()):
            count += _removed(path)
    return count


def _removed(path: Path) -> bool:
    """Remove a folder that nobody holds."""
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
    """Whether it is a folder that nobody but this user can write to, and no link to one."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return mine and not stat.S_IMODE(found.st_mode) & 0o022


def _is(lock: int, path: Path) -> bool:
    """Whether what is locked is what stands there."""
    try:
        return os.path.samestat(os.fstat(lock), path.lstat())
    except FileNotFoundError:
        return False
