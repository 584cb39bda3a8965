"""Files and folders that are removed with the process that made them.

A folder has a name, so a killed process leaves it. Therefore all folders of a user are in one
place, each locked (`flock`) by the process that uses it, and the next process removes those without
a lock.
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
"""Other processes may remove the parent concurrently."""


def nameless() -> IO[bytes]:
    """Returns a new file without a name, which disappears when it is closed."""
    return cast("IO[bytes]", tempfile.TemporaryFile())


def place() -> Path:
    """Returns the parent of this user's folders; it exists while it has any."""
    who = "" if sys.platform == "win32" else f"-{os.geteuid()}"
    return Path(tempfile.gettempdir()) / f"sojourn{who}"


class Folder:
    """A new folder of this process, until it is closed or the process has ended."""

    def __init__(self) -> None:
        self._lock: int | None = None
        self._around: Path | None = None
        self.path = self._made()

    def _made(self) -> Path:
        if sys.platform == "win32":  # no flock there: remains of a killed process stay
            return Path(tempfile.mkdtemp(prefix="sojourn-"))
        base = place()
        for _ in range(TRIES):
            with contextlib.suppress(FileExistsError):
                base.mkdir(mode=0o700)
            if base.is_symlink() or (base.exists() and not _ours(base)):
                break  # another process was first: do not touch its folder
            try:
                sweep()
                path = Path(tempfile.mkdtemp(dir=base))
                self._lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            except FileNotFoundError:
                continue  # another process has removed it between two steps
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            if _is(self._lock, path):
                self._around = path
                # Not the locked folder itself, which the user may lock for other purposes.
                inner = path / "kept"
                inner.mkdir()
                return inner
            self._release()
        return Path(tempfile.mkdtemp(prefix="sojourn-"))

    def close(self) -> None:
        """Removes it with its content; harmless when repeated."""
        shutil.rmtree(self._around or self.path, ignore_errors=True)
        self._release()
        with contextlib.suppress(OSError):  # other processes may have folders in it
            place().rmdir()

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Yields a folder that is removed at the end, or by the next process after a kill."""
    made = Folder()
    try:
        yield made.path
    finally:
        made.close()


def sweep() -> int:
    """Removes folders whose process has ended; returns their number."""
    base, count = place(), 0
    if sys.platform == "win32" or not _ours(base):
        return 0
    with contextlib.suppress(FileNotFoundError):
        for path in sorted(base.iterdir()):
            count += _removed(path)
    return count


def _removed(path: Path) -> bool:
    """Removes a folder that no process holds."""
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
    """Returns whether the path is a folder, not a link, that only this user can write to."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return mine and not stat.S_IMODE(found.st_mode) & 0o022


def _is(lock: int, path: Path) -> bool:
    """Returns whether the locked file is the one at the path."""
    try:
        return os.path.samestat(os.fstat(lock), path.lstat())
    except FileNotFoundError:
        return False
