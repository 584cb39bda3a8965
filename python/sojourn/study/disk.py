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
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

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


def replace_file(path: Path, data: bytes) -> None:
    """Replaces the content of a file; readers see either the old or the new content."""
    with replacing(path) as file:
        file.write(data)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Yields a new file to write, which replaces the file `path` at the end.

    If an exception occurs, the file `path` is not changed.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        if isinstance(error, OSError) and error.filename is None:  # for example, a full disk
            error.filename = str(path)
        raise
    sync_folder(path.parent)


def replace_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """Writes a folder with files, given by name; an existing folder of that name is removed."""
    temporary = path.with_name(f"{path.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    for name, data in files.items():
        write_file(temporary / name, data)
    sync_folder(temporary)
    shutil.rmtree(path, ignore_errors=True)
    temporary.rename(path)
    sync_folder(path.parent)


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
