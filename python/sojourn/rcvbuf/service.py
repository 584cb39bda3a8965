"""The systemd unit of the tuner, and the files for the monitoring of its metrics."""

from __future__ import annotations

import pwd
import shutil
import sys
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

import sojourn

UNIT, ALERTS, DASHBOARD = "sojourn-rcvbuf@.service", "alerts.yml", "dashboard.json"
"""Names of the files in this package."""

_HIDDEN = ("/tmp", "/var/tmp")  # noqa: S108 - nothing is written there
"""Folders that a unit with `PrivateTmp` does not see."""


def text(name: str) -> str:
    """Returns the content of one of the package's files."""
    return files("sojourn.rcvbuf").joinpath(name).read_text(encoding="utf-8")


def installed() -> tuple[Path, list[Path]]:
    """Returns the program of this installation, and the other files and folders that it needs."""
    python = Path(sys.executable)
    needed = [python, python.resolve(), Path(sys.prefix), Path(sys.base_prefix)]
    beside = python.parent / "sojourn"
    program = beside if beside.exists() else Path(shutil.which("sojourn") or beside)
    return program, [*needed, Path(sojourn.__file__)]


def unit(program: Path, needed: Iterable[Path]) -> str:
    """Returns the unit that runs a program, which needs other files and folders.

    If other users cannot read one of them, as in a virtual environment in a home folder, the unit
    runs as the program's owner instead of a user of its own.
    """
    paths = [program, *needed]
    lines = text(UNIT).replace("@SOJOURN@", str(program))
    there = [path for path in paths if path.exists()]
    closed = next((path for path in there if not _is_readable(path)), None)
    if closed is not None:
        user = pwd.getpwuid(closed.stat().st_uid).pw_name
        lines = lines.replace("DynamicUser=yes", f"User={user}")
    if any(path.is_relative_to(folder) for path in paths for folder in _HIDDEN):
        lines = lines.replace("PrivateTmp=yes", "PrivateTmp=no")
    return lines


def _is_readable(path: Path) -> bool:
    """Returns whether every user can read a file or list a folder."""
    within = all(parent.stat().st_mode & 0o001 for parent in path.parents)
    return within and path.stat().st_mode & 0o004 != 0
