"""Claims: locks that prevent two processes from making the same run.

A claim is a lock of one byte in the file `claims`, at an offset derived from the run's key. The
kernel releases the locks of a process that ends. Windows has no such locks: two processes may make
the same run there, and one of the two results is kept.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
from pathlib import Path

if sys.platform != "win32":
    import fcntl


#: Number of bits of a lock's offset; file offsets have 63 bits.
_OFFSET_BITS = 62


class Claims:
    """The claims of one session on the runs of a folder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None

    def take(self, key: str) -> bool:
        """Claims the run with this key; returns `False` if another session has claimed it."""
        while True:
            if self._fd is None:
                self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            if not _lock(self._fd, _offset(key)):
                return False
            if self._current():
                return True
            self.close()  # another session has removed the file since it was opened

    def release(self, key: str) -> None:
        """Releases the claim on the run with this key."""
        if self._fd is not None:
            _unlock(self._fd, _offset(key))

    def close(self) -> None:
        """Releases all claims."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _current(self) -> bool:
        with contextlib.suppress(FileNotFoundError):
            there, mine = self._path.stat(), os.fstat(self._fd or 0)
            return (there.st_ino, there.st_dev) == (mine.st_ino, mine.st_dev)
        return False


def _offset(key: str) -> int:
    return int(key[:16], 16) >> (64 - _OFFSET_BITS)


if sys.platform == "win32":

    def _lock(_fd: int, _at: int) -> bool:
        return True

    def _unlock(_fd: int, _at: int) -> None:
        pass

elif hasattr(fcntl, "F_OFD_SETLK"):
    # These locks belong to the open file, so they also exclude other sessions of this process.

    def _set(fd: int, kind: int, at: int) -> None:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack("hhqqi", kind, os.SEEK_SET, at, 1, 0))

    def _lock(fd: int, at: int) -> bool:
        try:
            _set(fd, fcntl.F_WRLCK, at)
        except BlockingIOError:
            return False
        return True

    def _unlock(fd: int, at: int) -> None:
        _set(fd, fcntl.F_UNLCK, at)

else:

    def _lock(fd: int, at: int) -> bool:
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, at)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def _unlock(fd: int, at: int) -> None:
        fcntl.lockf(fd, fcntl.LOCK_UN, 1, at)
