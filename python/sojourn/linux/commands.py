"""Long commands of a build: their output is logged, and they end with this process."""

from __future__ import annotations

import errno
import os
import subprocess
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from sojourn.lab.errors import LabError

_GUARD = 'exec 3<&0 </dev/null; (read _ <&3; kill -KILL 0) >/dev/null 2>&1 & exec 3<&-; "$@"'
"""Runs a command in its own session, which is killed when our end of its input closes."""
_SHOWN = 12
"""Number of the last output lines in an error."""
_FULL = os.strerror(errno.ENOSPC)


class Failed(LabError):
    """A command that ended with a status other than 0."""


def environment(folder: Path) -> dict[str, str]:
    """Returns the environment of all commands: equal everywhere, with paths in `folder`."""
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
    """Runs a command in a folder; `line` receives each line of its output, which goes to `log`.

    All its processes end with this process, even if that is killed. Raises `Failed` with the last
    lines, and `OSError` if the disk is full.
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
            for told in process.stdout:
                kept.write(told)
                last.append(told.rstrip())
                full |= _FULL in told
                if line is not None:
                    line(told)
            process.wait()
        finally:
            process.stdin.close()
    if process.returncode == 0:
        return
    if full:
        raise OSError(errno.ENOSPC, _FULL, str(folder))
    end = "\n  ".join(last) or f"status {process.returncode}"
    raise Failed(f"{words[0]} failed; its output is in {log} and ends with:\n  {end}")
