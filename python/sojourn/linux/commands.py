"""Execution of the long commands of a build, which are logged and end with this process."""

from __future__ import annotations

import errno
import os
import subprocess
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from sojourn.lab.errors import LabError

_GUARD = 'exec 3<&0 </dev/null; (read _ <&3; kill -KILL 0) >/dev/null 2>&1 & exec 3<&-; "$@"'
"""Shell script that runs a command and kills its session when its standard input ends."""
_SHOWN = 12
"""Number of output lines in an error."""
_FULL = os.strerror(errno.ENOSPC)
"""Text in the output of a command for which the disk is full."""


class Failed(LabError):
    """A command ended with a status other than 0."""


def environment(folder: Path) -> dict[str, str]:
    """Returns the environment of all commands; it fixes time, user and host in a kernel.

    Temporary files are written to `folder`.
    """
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LC_ALL": "C",
        "KBUILD_BUILD_TIMESTAMP": "1970-01-01",
        "KBUILD_BUILD_USER": "sojourn",
        "KBUILD_BUILD_HOST": "sojourn",
        "KBUILD_BUILD_VERSION": "1",
    }


def run(
    words: Sequence[str],
    folder: Path,
    log: Path,
    environment: dict[str, str],
    line: Callable[[str], object] | None = None,
) -> None:
    """Runs a command in a folder and appends its output to `log`.

    `line` is called with each line of the output. If this process is killed, the command is killed
    as well. Raises `Failed` with the last lines, and `OSError` if the disk is full.
    """
    last: deque[str] = deque(maxlen=_SHOWN)
    full = False
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("a", encoding="utf-8") as kept,
        subprocess.Popen(  # noqa: S603 - our own words
            ["sh", "-c", _GUARD, "sh", *words],  # noqa: S607
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            for text in process.stdout:
                kept.write(text)
                last.append(text.rstrip())
                full |= _FULL in text
                if line is not None:
                    line(text)
            process.wait()
        finally:
            process.stdin.close()
    if process.returncode == 0:
        return
    if full:
        raise OSError(errno.ENOSPC, _FULL, str(folder))
    end = "\n  ".join(last) or f"status {process.returncode}"
    raise Failed(f"{words[0]} failed; the output is in {log} and ends with:\n  {end}")
