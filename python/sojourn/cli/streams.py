"""Standard streams as they may be found: closed, read by nobody any more, of few characters."""

from __future__ import annotations

import contextlib
import io
import os
import select
import sys
import traceback
from pathlib import Path


def prepare() -> object:
    """Have three standard streams that take any text; return what standard output is.

    One that is closed is as /dev/null: the next file that is opened would take its number, and be
    written to. A character that the terminal does not know, or half of one as in names of files
    that are no UTF-8, is shown by its number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            # The lowest number that is free is the one that is missing.
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper) and mode == "w":
            stream.reconfigure(errors="backslashreplace")
    return identity()


def identity() -> object:
    """What standard output is: it becomes another when nobody reads it any more."""
    try:
        found = os.fstat(sys.stdout.fileno())
    except (AttributeError, OSError, ValueError):
        return sys.stdout
    return type(sys.stdout), found.st_dev, found.st_ino


def unread() -> bool:
    """Whether whoever read standard output has gone."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), select.POLLOUT)
        return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
    except (AttributeError, OSError, ValueError):  # no such call here, or no real stream
        return False


def silence() -> None:
    """Have nothing more written to standard output, what waits to be written included."""
    with contextlib.suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)


def printing(error: OSError) -> bool:
    """Whether it was standard output that failed: nothing else does so in code that prints."""
    names = [f.f_globals.get("__name__", "") for f, _ in traceback.walk_tb(error.__traceback__)]
    name = str(names[-1]) if names else ""
    return error.filename is None and name.split(".")[0] in ("rich", "typer", "click")


def unicode_output() -> bool:
    """Whether standard output takes all characters."""
    return (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
