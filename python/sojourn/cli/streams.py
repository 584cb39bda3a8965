"""Standard streams in any state: closed, without a reader, or with a small character set."""

from __future__ import annotations

import contextlib
import io
import os
import select
import sys
import traceback
from pathlib import Path


def prepare() -> object:
    """Ensures three standard streams that take any text; returns the identity of standard output.

    A closed stream is replaced by /dev/null, because the next opened file would otherwise get its
    number and be written to. Characters that the terminal lacks, and half characters in file names
    that are not UTF-8, are shown by number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            # The lowest free number is the missing one.
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper) and mode == "w":
            stream.reconfigure(errors="backslashreplace")
    return identity()


def identity() -> object:
    """Returns the identity of standard output, which changes when its reader is gone."""
    try:
        found = os.fstat(sys.stdout.fileno())
    except (AttributeError, OSError, ValueError):
        return sys.stdout
    return type(sys.stdout), found.st_dev, found.st_ino


def unread() -> bool:
    """Returns whether the reader of standard output is gone."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), select.POLLOUT)
        return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
    except (AttributeError, OSError, ValueError):  # no such call here, or not a real stream
        return False


def silence() -> None:
    """Discards all further output on standard output, including pending output."""
    with contextlib.suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)


def printing(error: OSError) -> bool:
    """Returns whether standard output failed: only its errors come from printing code."""
    names = [f.f_globals.get("__name__", "") for f, _ in traceback.walk_tb(error.__traceback__)]
    name = str(names[-1]) if names else ""
    return error.filename is None and name.split(".")[0] in ("rich", "typer", "click")


def unicode_output() -> bool:
    """Returns whether standard output takes all characters."""
    return (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
