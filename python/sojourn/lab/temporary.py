"""Files and folders that leave nothing behind."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, cast

PREFIX = "sojourn-run-"
YOUNG = 60.0
"""Seconds in which a folder without a lock may be one that is being made."""


def nameless() -> IO[bytes]:
    """A new file without a name, which goes when it is closed."""
    return cast("IO[bytes]", tempfile.TemporaryFile())


@contextmanager
def folder() -> Iterator[Path]:
    """A new folder, which goes at the end, or if we are killed, when the next one is made."""
    sweep()
    path = Path(tempfile.mkdtemp(prefix=PREFIX))
    held = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(held)


def sweep() -> None:
    """Takes away our user's folders whose makers were killed: nobody holds their locks."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            held = os.open(path, flags)
            try:
                about = os.fstat(held)
                if about.st_uid == os.geteuid() and time.time() - about.st_ctime > YOUNG:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path)
            finally:
                os.close(held)
