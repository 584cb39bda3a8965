"""Downloads of files into the user's cache; each file's SHA-256 is known in advance."""

from __future__ import annotations

import fcntl
import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sojourn import temporary
from sojourn.lab.errors import LabError, Unavailable

SECONDS = 60.0
"""Time without data until a transfer fails, in seconds."""
TRIES = 5
"""Number of consecutive transfers without data until a download fails."""
HALF = ".half"
"""Suffix of incomplete files."""
SCHEMES = ("https://", "http://", "file://")
"""Beginnings of the addresses from which files can be downloaded."""
_CHUNK = 1 << 18
"""Bytes that are read at once."""

Progress = Callable[[int, int], None]
"""Callback with the number of bytes received so far and the size of the file in bytes."""


def cache() -> Path:
    """Returns the folder of this user's downloads, which may not exist yet."""
    try:
        return temporary.cache()
    except RuntimeError:
        raise Unavailable("this user has no home folder", "set XDG_CACHE_HOME") from None


def matches(path: Path, sha256: str) -> bool:
    """Returns whether the file exists and has this hash."""
    try:
        return digest(path) == sha256
    except OSError:
        return False


def digest(path: Path) -> str:
    """Returns the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Locks a folder against other processes; waits until it is unlocked."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def half_of(path: Path) -> Path:
    """Returns the path of a file while it is incomplete."""
    return path.with_name(f".{path.name}{HALF}")


def fetch(
    addresses: Sequence[str], path: Path, sha256: str, progress: Progress | None = None
) -> None:
    """Downloads a file from the first address that provides it.

    The file gets its final name only after its hash has been checked. A download continues after
    the last byte of an interrupted transfer, also of an earlier process. `progress` is called after
    each received part. Raises `LabError` with all addresses and reasons if no address provides the
    file, and `OSError` if the disk is full.
    """
    half, reasons = half_of(path), []
    try:
        for address in addresses:
            try:
                _transfer(address, half, sha256, progress)
            except LabError as error:
                reasons.append(str(error))
                continue
            half.replace(path)
            return
    except OSError as error:
        error.filename = error.filename or str(path.parent)  # a full disk's error names no file
        raise
    raise LabError("; ".join(reasons))


def _transfer(address: str, half: Path, sha256: str, progress: Progress | None) -> None:
    """Appends to the incomplete file `half`; removes it if it is complete but has a wrong hash."""
    silent, ours = 0, not half.exists()
    while True:
        before = half.stat().st_size if half.exists() else 0
        try:
            whole = _read(address, half, before, progress)
            broken: object = "the transfer ended too early"
        except _Broken as error:
            whole, broken = False, error
        if whole:
            found = digest(half)
            if found == sha256:
                return
            half.unlink()
            if ours:
                raise LabError(f"{address} is not the pinned file: SHA-256 {found}, not {sha256}")
            ours = True  # the removed file began with data of an earlier download
            continue
        after = half.stat().st_size if half.exists() else 0
        silent = 0 if after > before else silent + 1
        if silent >= TRIES or (silent and isinstance(broken, _Refused)):
            raise LabError(f"{address} cannot be fetched: {broken}")


class _Broken(Exception):
    """A transfer ended too early."""


class _Refused(_Broken):
    """A server could not be reached or refused the request."""


def _read(address: str, half: Path, begin: int, progress: Progress | None) -> bool:
    """Downloads into `half`, from byte `begin` on if possible; returns whether it is complete."""
    request = urllib.request.Request(address)  # noqa: S310 - our own addresses, or checked
    if begin:
        request.add_header("Range", f"bytes={begin}-")
    try:
        answer = urllib.request.urlopen(request, timeout=SECONDS)  # noqa: S310 - as above
    except urllib.error.HTTPError as error:
        with error:
            if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                return True  # the file ends at `begin`
            raise _Refused(str(error)) from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise _Refused(str(error) or type(error).__name__) from error
    with answer:
        is_rest = answer.status == http.HTTPStatus.PARTIAL_CONTENT
        done = begin if is_rest else 0
        length = answer.headers.get("Content-Length")
        total = done + int(length) if length else None
        with half.open("ab" if is_rest else "wb") as file:
            while chunk := _chunk(answer):
                file.write(chunk)
                done += len(chunk)
                if progress is not None:
                    progress(done, max(total or 0, done))
            file.flush()
            os.fsync(file.fileno())
    return total is None or done >= total


def _chunk(answer: Any) -> bytes:
    try:
        data: bytes = answer.read(_CHUNK)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise _Broken(str(error) or type(error).__name__) from error
    return data
