"""Description of the machine and of package versions, for a study's manifest."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from sojourn.data import Json


def cores() -> int:
    """Returns the number of processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # for example on macOS and Windows
        return os.cpu_count() or 1


def free_memory() -> int:
    """Returns the available memory in MiB; 1,048,576 if the system does not report it."""
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return 1 << 20
    found = [line for line in text.splitlines() if line.startswith("MemAvailable:")]
    return int(found[0].split()[1]) // 1024 if found else 1 << 20


@cache
def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    for line in lines:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _package(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "?"


def machine() -> dict[str, Json]:
    """Returns system, release, architecture, processor and number of cores of this machine."""
    return {
        "system": platform.system(),
        "release": platform.release(),
        "architecture": platform.machine(),
        "processor": _processor(),
        "cores": cores(),
    }


def versions() -> dict[str, str]:
    """Returns the versions of Python and of the packages that compute results."""
    names = ("numpy", "pandas", "pyarrow", "scipy")
    return {"python": platform.python_version(), **{n: _package(n) for n in names}}
