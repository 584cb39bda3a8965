"""Functions that write files and folders completely or not at all, even if the process is killed.

A file or folder is written under another name, flushed to the device, and renamed atomically. Locks
are `flock` locks on the folders themselves, which the kernel releases when a process ends.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Self

# Windows has no flock, so folders are not locked there.
if sys.platform != "win32":
    import fcntl


def sync_folder(folder: Path) -> None:
    """Flushes new and renamed entries of a folder to the device; does nothing on Windows."""
    if sys.platform == "win32":  # Windows cannot open a folder as a file
        return
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_file(path: Path, data: bytes) -> None:
    """Writes a file and flushes it to the device."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def make_folder(path: Path) -> None:
    """Creates a folder and its missing parents, and flushes the entry of each to the device."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        sync_folder(folder.parent)


Ready = Callable[[Mapping[Path, Path]], None]
"""Function that is called with finished new files by the paths that they will have."""


def replace_file(path: Path, data: bytes, ready: Ready | None = None) -> None:
    """Replaces the content of a file; readers see either the old or the new content.

    `ready` is called as in `Replacements`.
    """
    with Replacements(ready) as new:
        new.begin(path).write(data)


class Replacements:
    """A context in which new files are written, which replace others together at the end.

    The file that was begun first is replaced last. If an exception occurs before the first
    replacement, no file is changed. `ready` is called before the first replacement.
    """

    def __init__(self, ready: Ready | None = None) -> None:
        self._ready = ready
        self._files: dict[Path, IO[bytes]] = {}

    def begin(self, path: Path) -> IO[bytes]:
        """Returns a new file that will replace the file `path`."""
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
        self._files[path] = temporary.open("wb")
        return self._files[path]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        new = {path: Path(file.name) for path, file in self._files.items()}
        at = next(iter(new), None)
        try:
            if error is None:
                for path, file in self._files.items():
                    at = path
                    file.flush()
                    os.fsync(file.fileno())
                    file.close()
                if self._ready is not None:
                    self._ready(new)
                for path in reversed(new):
                    at = path
                    new[path].replace(path)
        except BaseException as failure:
            error = failure
            raise
        finally:
            if error is not None:
                for file in self._files.values():
                    with contextlib.suppress(OSError):
                        file.close()
                for temporary in new.values():
                    with contextlib.suppress(FileNotFoundError):
                        temporary.unlink()
                if isinstance(error, OSError) and error.filename is None:  # such as a full disk
                    error.filename = str(at)
        for folder in {path.parent for path in new}:
            sync_folder(folder)


_TEMPORARY, _FORMER = ".tmp", ".former"


def replace_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """Writes a folder with files, given by name, and removes a folder that had this name.

    If the process is killed, the former folder is at `path` after the next call, or after
    `settle_folders`.
    """
    temporary, former = (path.with_name(path.name + end) for end in (_TEMPORARY, _FORMER))
    make_folder(path.parent)
    _settle(path)
    temporary.mkdir()
    for name, data in files.items():
        write_file(temporary / name, data)
    sync_folder(temporary)
    if path.exists():
        path.rename(former)
    temporary.rename(path)
    sync_folder(path.parent)
    shutil.rmtree(former, ignore_errors=True)


def _settle(path: Path) -> None:
    """Completes a replacement of the folder `path` that was interrupted."""
    former = path.with_name(path.name + _FORMER)
    if former.exists() and not path.exists():
        former.rename(path)
        sync_folder(path.parent)
    for leftover in (former, path.with_name(path.name + _TEMPORARY)):
        shutil.rmtree(leftover, ignore_errors=True)


def settle_folders(parent: Path) -> None:
    """Completes interrupted replacements in a folder; no other process may replace folders."""
    for end in (_FORMER, _TEMPORARY):
        for leftover in parent.glob(f"*{end}"):
            _settle(leftover.with_name(leftover.name.removesuffix(end)))


def write_all(fd: int, data: bytes) -> None:
    """Writes all bytes to a file descriptor and flushes them to the device."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
    os.fsync(fd)


def remove_leftover_files(folder: Path) -> None:
    """Removes temporary files of killed processes; the caller must have locked the folder."""
    for path in folder.glob(".*.tmp"):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Locks a folder against other processes and threads, waiting if necessary; not on Windows."""
    if sys.platform == "win32":
        yield
        return
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
