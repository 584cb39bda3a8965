"""Standard streams that may be closed, lack a reader, or have a small character set."""

from __future__ import annotations

import contextlib
import io
import os
import select
import sys
import traceback
from pathlib import Path


def prepare() -> object:
    """Makes the standard streams usable for any text; returns the identity of standard output.

    A closed stream is replaced by /dev/null, because the next opened file would otherwise get the
    stream's descriptor and its output. Characters that the terminal lacks, and undecodable bytes in
    file names, are printed as backslash escapes.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            # `open` takes the lowest free descriptor, which is that of the missing stream.
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper) and mode == "w":
            stream.reconfigure(errors="backslashreplace")
    return identity()


def identity() -> object:
    """Returns a value that identifies the file of standard output; `silence` changes this value."""
    try:
        found = os.fstat(sys.stdout.fileno())
    except (AttributeError, OSError, ValueError):
        return sys.stdout
    return type(sys.stdout), found.st_dev, found.st_ino


def unread() -> bool:
    """Returns whether the reader of standard output has closed the pipe."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), select.POLLOUT)
        return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
    except (
        AttributeError,
        OSError,
        ValueError,
    ):  # the system has no `poll`, or standard output has no descriptor
        return False


def silence() -> None:
    """Discards all further output on standard output, including pending output."""
    with contextlib.suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)


def printing(error: OSError) -> bool:
    """Returns whether an error arose while standard output was printed.

    In this case the innermost frame of the traceback is in a library that prints, and the error
    names no file.
    """
    names = [f.f_globals.get("__name__", "") for f, _ in traceback.walk_tb(error.__traceback__)]
    name = str(names[-1]) if names else ""
    return error.filename is None and name.split(".")[0] in ("rich", "typer", "click")


def unicode_output() -> bool:
    """Returns whether the encoding of standard output has all Unicode characters."""
    return (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
