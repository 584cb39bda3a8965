"""Requirements of a build of a kernel on this machine."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from sojourn.lab.errors import LabError, Unavailable
from sojourn.lab.machine import needs, packages

PROGRAMS = ("gcc", "make", "flex", "bison", "bc", "strip")
"""Programs that a build needs."""
STATIC = "libc.a"
"""The static C library, because a guest has no shared libraries."""
ROOM = 1_500_000_000
"""Disk space for a whole build, in bytes. At the end, only the kernel remains."""
ROOM_LEFT = 500_000_000
"""Disk space for the object files, in bytes, if the source has already been unpacked."""


def lacking() -> list[str]:
    """Returns the names of missing programs and of the C library if it is missing."""
    found = []
    for name in PROGRAMS:
        try:
            needs.find_program(name)
        except Unavailable:
            found.append(name)
    if "gcc" not in found and not _links():
        found.append(STATIC)
    return found


def _links() -> bool:
    """Returns whether gcc can link a static program."""
    with tempfile.TemporaryDirectory(prefix="sojourn-") as folder:
        done = subprocess.run(
            ["gcc", "-static", "-x", "c", "-", "-o", "program"],  # noqa: S607 - the first in PATH
            cwd=folder,
            input=b"int main(void) { return 0; }\n",
            capture_output=True,
            check=False,
        )
        return done.returncode == 0


def require(place: Path, *, begun: bool) -> None:
    """Raises `Unavailable` or `LabError` unless a kernel can be built in the folder `place`.

    `begun` states whether the source has already been unpacked.
    """
    system = f"{platform.system()} on {platform.machine()}"
    if system != "Linux on x86_64":
        raise Unavailable(f"this is {system}", "User-Mode Linux needs Linux on x86_64")
    if missing := lacking():
        of = packages.family() or packages.DEBIAN
        raise Unavailable(
            f"a kernel cannot be built here; not installed: {', '.join(missing)}",
            f"on {of.called}: {packages.install(missing, of)}",
        )
    if re.search(r"[\s:]", str(place)):
        raise LabError(
            f"{place}: the path of the folder must not contain a space or colon; "
            "set XDG_CACHE_HOME to another folder"
        )
    free = shutil.disk_usage(place).free
    wanted = ROOM_LEFT if begun else ROOM
    if free < wanted:
        raise Unavailable(
            f"{place} has {free / 1e9:.1f} GB free; a build needs {wanted / 1e9:.1f} GB, most of "
            "it temporarily",
            "free some space, or set XDG_CACHE_HOME to another folder",
        )


def compiler() -> str:
    """Returns the name and version of the compiler; `none` without a compiler."""
    try:
        done = subprocess.run(
            ["gcc", "--version"],  # noqa: S607 - as above
            capture_output=True,
            check=True,
            text=True,
            env=os.environ | {"LC_ALL": "C"},
        )
    except OSError:
        return "none"
    return done.stdout.partition("\n")[0]


def c_library() -> str:
    """Returns the name and version of the C library; `unknown` if they cannot be determined."""
    wanted = "-f", "${source:Package} ${source:Version}", "libc6-dev"
    for command in (["dpkg-query", "-W", *wanted], ["ldd", "--version"]):
        try:
            done = subprocess.run(command, capture_output=True, check=True, text=True)  # noqa: S603
        except (OSError, subprocess.CalledProcessError):
            continue
        return done.stdout.partition("\n")[0]
    return "unknown"


def confined_by_ptrace(source: Path) -> bool:
    """Returns whether User-Mode Linux of a source has only the ptrace mode, not seccomp."""
    folder = source / "arch" / "um"
    return not any(
        "seccomp=" in path.read_text("utf-8", errors="replace") for path in folder.rglob("*.c")
    )


def traceable(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Returns whether the ptrace mode works on this processor, which must not have AMX."""
    try:
        return re.search(r"\bamx_tile\b", cpuinfo.read_text("ascii", errors="replace")) is None
    except OSError:
        return True
