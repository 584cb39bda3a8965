"""Files and folders that are whole or not there, whatever happens to the process.

A folder is written under another name, flushed to the device file by file, and renamed: the one
step that either has happened or has not. Locks are the kernel's own (`flock`), held on the folders
themselves, so that a killed process leaves none behind.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import uuid
from typing import TYPE_CHECKING

# Windows has no flock; there, renames alone keep folders whole.
if sys.platform != "win32":
    import fcntl
    import resource

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries (new names, renames) to the device."""
    if sys.platform == "win32":  # folders cannot be opened there
        return
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_file(path: Path, data: bytes) -> None:
    """Write a new file and flush it."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, data: bytes) -> None:
    """Write a file so that readers see the old or the new one, never a part."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        write_file(temporary, data)
        temporary.replace(path)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        if isinstance(error, OSError) and error.filename is None:  # as a full disk says it
            error.filename = str(path)
        raise
    sync_folder(path.parent)


def remove_leftover_files(folder: Path) -> None:
    """Remove what killed processes left of `replace_file`; call it under the folder's lock."""
    for path in folder.glob(".*.tmp"):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder for one process (and thread) at a time; waits for others."""
    if sys.platform == "win32":
        yield
        return
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


class Claimed:
    """A temporary folder that this process alone may fill, then give its final name."""

    def __init__(self, path: Path, fd: int | None) -> None:
        self.path = path
        self._fd = fd

    def publish(self, target: Path) -> bool:
        """Flush everything and rename to `target`; false if somebody else was there before."""
        for file in sorted(self.path.iterdir()):
            if file.is_file():
                with file.open("rb") as f:
                    os.fsync(f.fileno())
        sync_folder(self.path)
        try:
            self.path.rename(target)
        except OSError:
            # A folder with content is never overwritten; ours is then not needed.
            if not target.is_dir():
                raise
            self.drop()
            return False
        sync_folder(target.parent)
        with contextlib.suppress(FileNotFoundError):  # another process may have tidied up
            sync_folder(self.path.parent)
        self.release()
        return True

    def drop(self) -> None:
        """Give it up, with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.release()

    def release(self) -> None:
        """Let go of the lock."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def claim(path: Path) -> Claimed | None:
    """Make the temporary folder `path` and lock it; None if another process has it.

    What a killed process left there is removed first.
    """
    if sys.platform == "win32":
        path = path.with_name(f"{path.name}.{os.getpid()}.{uuid.uuid4().hex}")
        path.mkdir(parents=True)
        return Claimed(path, None)
    while True:
        try:
            path.mkdir(parents=True, exist_ok=True)
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:  # removed under our hands by another process tidying up
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        if _same(fd, path):
            for rest in path.iterdir():
                shutil.rmtree(rest) if rest.is_dir() else rest.unlink()
            return Claimed(path, fd)
        # It was renamed or removed between opening and locking: what we locked is another's.
        os.close(fd)


def most_claims() -> int:
    """Return how many folders to claim at once at most: each is an open file."""
    if sys.platform == "win32":
        return 500
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 500_000 if soft == resource.RLIM_INFINITY else max(1, soft // 2)


def _same(fd: int, path: Path) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    mine = os.fstat(fd)
    return (mine.st_ino, mine.st_dev) == (there.st_ino, there.st_dev)


def remove_leftover_folders(folder: Path) -> int:
    """Remove temporary folders whose process is gone; returns how many."""
    count = 0
    if folder.is_dir() and sys.platform != "win32":
        for path in sorted(folder.iterdir()):
            if path.is_dir() and (held := claim(path)) is not None:
                held.drop()
                count += 1
    return count
