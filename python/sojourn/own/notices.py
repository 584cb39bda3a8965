"""Notices about acts of a policy other than its decisions: files, sockets, threads, programs."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from sojourn.own.loading import FILE

WRITING = os.O_WRONLY | os.O_RDWR
ACTS = {
    "socket.connect": "connects a socket",
    "socket.bind": "binds a socket",
    "socket.sendto": "sends through a socket",
    "_thread.start_new_thread": "starts a thread",
    "_thread.start_joinable_thread": "starts a thread",
    "subprocess.Popen": "starts a program",
    "os.system": "starts a program",
    "os.posix_spawn": "starts a program",
    "os.exec": "replaces the process by a program",
    "os.fork": "starts a process",
    "os.kill": "sends a signal to a process",
    "os.remove": "removes a file",
    "os.rename": "renames a file",
}
"""Notices by the name of an audit event."""


def begin(notice: Callable[[str], None]) -> None:
    """Passes a notice to `notice` for the first act of each kind at each line of a policy.

    An audit hook cannot be removed, so this function is for the process of a command.
    """
    known: set[tuple[str, int, str]] = set()

    def note(act: str) -> None:
        place = _place()
        if place is not None and (*place, act) not in known:
            known.add((*place, act))
            notice(
                f"{place[0]}, line {place[1]} {act}: a policy should only decide, because its runs "
                "are repeated, and several run at a time"
            )

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        act = ACTS.get(event)
        if event == "open":
            path, mode, flags = arguments
            writing = (isinstance(flags, int) and flags & WRITING) or set(mode or "") & set("wax+")
            act = f"opens {path!r} for writing" if writing else None
        if act is not None:
            note(act)

    sys.addaudithook(hook)
    start = threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        note(ACTS["_thread.start_new_thread"])  # Python 3.11 has no audit event
        start(thread)

    setattr(threading.Thread, "start", noted)  # noqa: B010 - a method is no variable


def _place() -> tuple[str, int] | None:
    """Returns file and line of the policy that acts; `None` for the import of a library."""
    frame: FrameType | None = sys._getframe(3)
    while frame is not None:
        if FILE in frame.f_globals:
            return str(frame.f_globals[FILE]), frame.f_lineno
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return None
        frame = frame.f_back
    return None
