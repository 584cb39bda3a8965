"""Files from elsewhere: kept in the user's cache, each pinned by its SHA-256."""

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

from sojourn.lab.errors import LabError, Unavailable

SECONDS = 60.0
"""What a server may be silent."""
TRIES = 5
"""Times in a row that a transfer may break off without a byte."""
HALF = ".half"
"""How files end that are not whole yet."""
SCHEMES = ("https://", "http://", "file://")
_CHUNK = 1 << 18

Progress = Callable[[int, int], None]
"""Is told how many bytes of how many are there."""


def cache() -> Path:
    """Return the folder of what is kept for this user, whether it exists or not."""
    told = os.environ.get("XDG_CACHE_HOME", "")
    try:
        root = Path(told) if Path(told).is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        raise Unavailable("this user has no home folder", "set XDG_CACHE_HOME") from None
    return root / "sojourn"


def matches(path: Path, sha256: str) -> bool:
    """Whether a file is there, and is the pinned one."""
    try:
        return digest(path) == sha256
    except OSError:
        return False


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One process at a time in a folder."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def half_of(path: Path) -> Path:
    """Return where a file stands until it is whole."""
    return path.with_name(f".{path.name}{HALF}")


def fetch(
    addresses: Sequence[str], path: Path, sha256: str, progress: Progress | None = None
) -> None:
    """Fetch a file from the first of these addresses that has it.

    It appears under its name only when its hash is right. What was fetched before a transfer broke
    off, or before the process was killed, is not fetched again. Raises `LabError` with all
    addresses and reasons if it cannot be had, and `OSError` if there is no room for it.
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
        error.filename = error.filename or str(path.parent)  # as a full disk says it
        raise
    raise LabError("; ".join(reasons))


def _transfer(address: str, half: Path, sha256: str, progress: Progress | None) -> None:
    """Fetch into `half`, from where it ends; what is not the pinned file is removed."""
    silent, ours = 0, not half.exists()
    while True:
        before = half.stat().st_size if half.exists() else 0
        try:
            whole = _read(address, half, before, progress)
            broken: object = "the transfer broke off"
        except _Broken as error:
            whole, broken = False, error
        if whole:
            found = digest(half)
            if found == sha256:
                return
            half.unlink()
            if ours:
                raise LabError(f"{address} is not the pinned file: SHA-256 {found}, not {sha256}")
            ours = True  # its beginning was from elsewhere
            continue
        after = half.stat().st_size if half.exists() else 0
        silent = 0 if after > before else silent + 1
        if silent >= TRIES or (silent and isinstance(broken, _Refused)):
            raise LabError(f"{address} cannot be fetched: {broken}")


class _Broken(Exception):
    """A transfer that ended too early."""


class _Refused(_Broken):
    """A transfer that did not begin."""


def _read(address: str, half: Path, begin: int, progress: Progress | None) -> bool:
    """Append to `half` what comes; return whether that was all."""
    request = urllib.request.Request(address)  # noqa: S310 - our own addresses, or checked
    if begin:
        request.add_header("Range", f"bytes={begin}-")
    try:
        answer = urllib.request.urlopen(request, timeout=SECONDS)  # noqa: S310 - as above
    except urllib.error.HTTPError as error:
        with error:
            if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                return True  # nothing follows
            raise _Refused(str(error)) from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise _Refused(str(error) or type(error).__name__) from error
    with answer:
        goes_on = answer.status == http.HTTPStatus.PARTIAL_CONTENT
        done = begin if goes_on else 0
        told = answer.headers.get("Content-Length")
        total = done + int(told) if told else None
        with half.open("ab" if goes_on else "wb") as file:
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
