"""Files and folders that are complete or absent, even if the process is killed.

A file or folder is written under another name, flushed to the device, and renamed atomically. Locks
are the kernel's (`flock`) on the folders themselves, so a killed process leaves none.
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

# Windows has no flock; there, only renames keep folders complete.
if sys.platform != "win32":
    import fcntl


def sync_folder(folder: Path) -> None:
    """Flushes a folder's entries (new names, renames) to the device."""
    if sys.platform == "win32":  # folders cannot be opened there
        return
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_file(path: Path, data: bytes) -> None:
    """Writes a new file and flushes it."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, data: bytes) -> None:
    """Writes a file so that readers see either the old or the new version."""
    with replacing(path) as file:
        file.write(data)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Yields a new file to write, which replaces `path` at the end."""
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
        if isinstance(error, OSError) and error.filename is None:  # as for a full disk
            error.filename = str(path)
        raise
    sync_folder(path.parent)


def replace_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """Writes a folder of files; removes an older one of that name first."""
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
    """Writes all bytes to a descriptor and flush them to the device."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
    os.fsync(fd)


def remove_leftover_files(folder: Path) -> None:
    """Removes temporary files of killed processes; call it under the folder's lock."""
    for path in folder.glob(".*.tmp"):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds a folder for one process (and thread) at a time; waits for others."""
    if sys.platform == "win32":
        yield
        return
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
