"""SIGNAL PROGRAM SECONDS COMMAND...: ends a command in its midst, and prints what remains.

The command is ended SECONDS after one of its processes has run PROGRAM. This process is the
parent of all processes that the command leaves (PR_SET_CHILD_SUBREAPER).
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

SUBREAPER = 36
PATIENCE = 60.0


def descendants() -> list[tuple[int, str]]:
    """Returns number and command line of the living descendants of this process."""
    parents: dict[int, tuple[int, str]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            status = (folder / "stat").read_text().rpartition(")")[2].split()
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if status[0] != "Z":
                parents[int(folder.name)] = int(status[1]), words
    found, below = [], {os.getpid()}
    while more := [n for n, (parent, _) in parents.items() if parent in below and n not in below]:
        below.update(more)
        found += [(n, parents[n][1]) for n in more]
    return found


def main(signal: int, program: str, seconds: float, command: list[str]) -> None:
    """Runs the command."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            seen = _ended(process, signal, program, seconds)
            left = _remaining()
        finally:
            for number, _ in descendants():
                with suppress(ProcessLookupError):
                    os.kill(number, 9)
    print(json.dumps({"seen": seen, "left": left}))


def _ended(process: subprocess.Popen[str], signal: int, program: str, seconds: float) -> int:
    """Sends the signal at its time; returns the number of processes before it."""
    end = time.monotonic() + 10 * PATIENCE
    while not any(program in words for _, words in descendants()):
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            assert process.stderr
            sys.exit(f"{program} was not seen: {process.stderr.read()}")
        time.sleep(0.02)
    time.sleep(seconds)
    seen = len(descendants())
    assert process.poll() is None, "ended before the signal"
    process.send_signal(signal)
    return seen


def _remaining() -> list[tuple[int, str]]:
    """Returns the processes that have not ended by themselves in time."""
    end = time.monotonic() + PATIENCE
    while (left := descendants()) and time.monotonic() < end:
        with suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        time.sleep(0.05)
    return left


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), sys.argv[4:])
