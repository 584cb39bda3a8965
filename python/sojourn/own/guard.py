"""Watches the calls of policies: a call that does not return ends with an error at its line.

The engine writes each call to a shared memory (`crates/py/src/own/watch.rs`). A thread reads it,
and raises `Stuck` in the thread of a call that takes too long. A command also has a parent process
that reads the same memory (`sojourn.cli.apart`), for code that no exception can stop.
"""

from __future__ import annotations

import mmap
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

from sojourn import _core

SECONDS = 5.0
"""Longest duration of a call of a policy in seconds."""
LOADING = 12
"""Factor of this duration for the import of libraries."""
PERIOD = 0.25
"""Interval between readings in seconds. A call counts its readings, so a stopped process does not
exceed the duration."""
WORDS, SLOTS = 16, 256
"""Numbers of a thread's slot, and the number of slots. Slot 0 is for the loading of files."""

memory = memoryview(mmap.mmap(-1, 8 * WORDS * SLOTS)).cast("Q")
"""The calls in progress, shared with a parent process."""
enter: Callable[[], None] | None = None
"""Function that is called before a policy is loaded; a command sets it."""
leave: Callable[[object], NoReturn] | None = None
"""Function that ends a process in which a command runs policies, with an exit status."""
_thread: threading.Thread | None = None


class Stuck(BaseException):
    """A call of a policy does not return."""

    def __str__(self) -> str:
        return f"does not return: more than {SECONDS:g} s in one call"


@dataclass(frozen=True)
class Call:
    """A call of a policy in progress."""

    count: int
    """Number that differs between the calls of a slot."""
    thread: int
    """Identifier of the calling thread."""
    now: float
    """Simulated time in seconds."""
    number: int | None
    """Number of the packet, acknowledgement or flow."""
    method: str
    policy: str

    def __str__(self) -> str:
        about = "" if self.number is None else f" of packet or event {self.number}"
        return f"{self.policy} at {self.now:g} s in {self.method}{about}"


def calls() -> Iterator[tuple[int, Call]]:
    """Yields slot and call of all calls in progress."""
    for slot in range(SLOTS):
        words = memory[slot * WORDS : (slot + 1) * WORDS]
        if words[0] % 2:
            text = words.tobytes()
            method, policy = (
                part.rstrip(b"\0").decode(errors="replace") for part in (text[32:48], text[48:])
            )
            number = words[3] - 1 if words[3] else None
            yield slot, Call(words[0], words[1], words[2] / 1e9, number, method, policy)


class Readings:
    """Counts for how many consecutive readings each call has been in progress."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, int]] = {}

    def long(self, seconds: float) -> list[tuple[float, Call]]:
        """Reads all calls; returns those that exceed a duration, each with its duration."""
        known, self._known = self._known, {}
        found = []
        for slot, call in calls():
            count, times = known.get(slot, (call.count, -1))
            times = times + 1 if count == call.count else 0
            self._known[slot] = call.count, times
            if times * PERIOD >= seconds:
                found.append((times * PERIOD, call))
        return found


@contextmanager
def loading(policy: str) -> Iterator[None]:
    """Makes the execution of a policy's files visible as a call of `import`."""
    start()
    text = b"import".ljust(16, b"\0") + policy.encode()[:80].ljust(80, b"\0")
    memory[1], memory[2], memory[3] = threading.get_ident(), 0, 0
    memory[4:WORDS] = memoryview(text).cast("Q")
    memory[0] += 1
    try:
        yield
    finally:
        memory[0] += 1


def start() -> None:
    """Begins to watch, unless a thread of this process already does."""
    global _thread
    if _thread is None or not _thread.is_alive():
        _core.watch_policies(memory)
        _thread = threading.Thread(target=_watch, name="sojourn-policies", daemon=True)
        _thread.start()


def _watch() -> None:
    readings = Readings()
    while True:
        time.sleep(PERIOD)
        for seconds, call in readings.long(SECONDS):
            kind = _occupied(call.thread)
            if kind == "debugger" or (kind == "import" and seconds < LOADING * SECONDS):
                continue
            import ctypes  # noqa: PLC0415 - only a stuck call needs it

            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(call.thread), ctypes.py_object(Stuck)
            )


def _occupied(thread: int) -> str:
    """Returns `debugger` or `import` if a thread's innermost frames are of these; else empty."""
    frame = sys._current_frames().get(thread)
    while frame is not None and "__sojourn_file__" not in frame.f_globals:
        name = frame.f_code.co_filename
        if frame.f_globals.get("__name__") in ("bdb", "pdb", "IPython.core.debugger"):
            return "debugger"
        if name.startswith("<frozen importlib"):
            return "import"
        frame = frame.f_back
    return ""
