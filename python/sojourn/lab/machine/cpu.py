"""Control groups whose quota limits the processor time of their threads.

Control groups of version 1 (`cpu.cfs_quota_us`) and of version 2 (`cpu.max`, a threaded group) are
supported. The name of a group contains the number of this process. Groups of killed processes are
removed when the next group is created, and by `sojourn lab clean`.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from sojourn.lab.errors import Unavailable
from sojourn.lab.machine.journal import started

PERIOD = 100_000
"""Default period of the quota in microseconds, as in the kernel."""
_NAME = re.compile(r"sojourn-(\d+)-(\d+)-\d+")
"""Names of groups: the number and start time of the process, and the number of the group."""
_WEIGHT = {1: 262_144, 2: 10_000}
"""Highest weight of a group by version of control groups, since the quota limits the group. By
default the kernel gives a group only the weight of one thread.
"""
_EMPTYING = 2.0
"""Time limit for the kernel to release threads that have ended, in seconds."""


@dataclass(frozen=True)
class Hierarchy:
    """The part of the control groups in which this process may create groups."""

    version: Literal[1, 2]
    """Version of control groups."""
    parent: Path
    """Folder in which groups are created."""


@dataclass(frozen=True)
class Throttled:
    """Effect of a quota."""

    periods: int
    """Number of periods in which a thread of the group was ready to run."""
    throttled: int
    """Number of periods in which the group used its quota and had to wait."""
    seconds: float
    """Total time for which threads of the group waited because of the quota, in seconds."""


def find(
    mounts: Path = Path("/proc/self/mounts"), own: Path = Path("/proc/self/cgroup")
) -> Hierarchy:
    """Returns the hierarchy for processor quotas; raises `Unavailable` without one.

    `mounts` and `own` are the files of the kernel with the mounts and this process's groups.
    """
    paths = {}
    for line in own.read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        paths.update(dict.fromkeys(controllers.split(","), path))
    for line in mounts.read_text(encoding="utf-8").splitlines():
        _, where, kind, options, *_ = line.split(" ")
        root = Path(where)
        if kind == "cgroup" and "cpu" in options.split(","):
            return Hierarchy(1, root / paths.get("cpu", "/").lstrip("/"))
        if kind == "cgroup2":
            parent = root / paths.get("", "/").lstrip("/")
            with suppress(OSError):
                if "cpu" in (parent / "cgroup.subtree_control").read_text().split():
                    return Hierarchy(2, parent)
    raise Unavailable("this machine has no control group for processors")


class CpuGroup:
    """A control group whose threads together get at most `share` of a processor.

    `period` is in microseconds. Raises `Unavailable` if the group cannot be created.
    """

    _made = 0

    def __init__(
        self, share: float, hierarchy: Hierarchy | None = None, period: int = PERIOD
    ) -> None:
        self.share = share
        self.hierarchy = hierarchy or find()
        self.period = period
        CpuGroup._made += 1
        name = f"sojourn-{os.getpid()}-{started(os.getpid())}-{CpuGroup._made}"
        self.path = self.hierarchy.parent / name

    def __enter__(self) -> Self:
        quota = round(self.share * self.period)
        sweep(self.hierarchy)
        try:
            self.path.mkdir()
            try:
                if self.hierarchy.version == 2:
                    self._write("cgroup.type", "threaded")
                    self._write("cpu.max", f"{quota} {self.period}")
                    self._write("cpu.weight", str(_WEIGHT[2]))
                else:
                    self._write("cpu.cfs_period_us", str(self.period))
                    self._write("cpu.cfs_quota_us", str(quota))
                    self._write("cpu.shares", str(_WEIGHT[1]))
            except BaseException:
                self.path.rmdir()
                raise
        except OSError as error:
            raise Unavailable(
                f"a control group cannot be created in {self.hierarchy.parent} ({error.strerror})",
                "use root" if os.geteuid() != 0 else "",
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        # Threads that still run are moved back to the parent group.
        files = {1: "tasks", 2: "cgroup.threads"}
        with suppress(OSError):
            for thread in (self.path / files[self.hierarchy.version]).read_text().split():
                with suppress(OSError):
                    (self.hierarchy.parent / files[self.hierarchy.version]).write_text(thread)
        until = time.monotonic() + _EMPTYING
        while True:
            try:
                return self.path.rmdir()
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)

    def _write(self, file: str, text: str) -> None:
        (self.path / file).write_text(text, encoding="ascii")

    def add(self, thread: int) -> None:
        """Moves a thread into the group; raises `Unavailable` if the kernel refuses."""
        try:
            self._write({1: "tasks", 2: "cgroup.threads"}[self.hierarchy.version], str(thread))
        except OSError as error:
            raise Unavailable(
                f"a thread cannot be moved into {self.path} ({error.strerror})"
            ) from error

    def throttled(self) -> Throttled:
        """Returns the effect of the quota since the creation of the group."""
        counts = {}
        for line in (self.path / "cpu.stat").read_text(encoding="ascii").splitlines():
            name, value = line.split()
            counts[name] = int(value)
        seconds = counts.get("throttled_time", 0) / 1e9 + counts.get("throttled_usec", 0) / 1e6
        return Throttled(counts["nr_periods"], counts["nr_throttled"], seconds)


def sweep(hierarchy: Hierarchy) -> list[str]:
    """Removes the groups of killed processes; returns the names of the removed groups."""
    gone = []
    with suppress(OSError):
        for path in hierarchy.parent.iterdir():
            found = _NAME.fullmatch(path.name)
            if found and started(int(found[1])) != int(found[2]):
                with suppress(OSError):
                    path.rmdir()
                    gone.append(path.name)
    return gone


def thread(pid: int, name: str, timeout: float = 5.0) -> int:
    """Returns the number of the thread `name` of a process; waits until the thread exists.

    Raises `Unavailable` if the thread does not exist after `timeout` seconds.
    """
    until = time.monotonic() + timeout
    while True:
        with suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                with suppress(OSError):
                    if (task / "comm").read_text(encoding="utf-8").strip() == name:
                        return int(task.name)
        if time.monotonic() > until:
            raise Unavailable(f"process {pid} has no thread `{name}`")
        time.sleep(0.005)
