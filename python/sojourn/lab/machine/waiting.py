"""Times for which programs were ready but waited for a processor, from the kernel's statistics.

The file `/proc/PID/task/TID/schedstat` has the waiting time of a thread
(Documentation/scheduler/sched-stats.rst).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

LEAST = 1.0
"""Minimum observed time of a program that `shares` includes, in seconds."""


def waited(pid: int, thread: int, processes: Path = Path("/proc")) -> float | None:
    """Returns how long a thread has waited for a processor, in seconds; `None` if it has ended."""
    with suppress(OSError, ValueError, IndexError):
        path = processes / str(pid) / "task" / str(thread) / "schedstat"
        return int(path.read_text(encoding="ascii").split()[1]) / 1e9
    return None


class Waits:
    """Waiting times of programs with their threads and children, from repeated readings."""

    def __init__(self, processes: Path = Path("/proc")) -> None:
        self._processes = processes
        self._spans: dict[str, tuple[float, float]] = {}
        self._threads: dict[str, dict[tuple[int, int], tuple[float, float]]] = {}

    def look(self, pids: Mapping[str, int], now: float) -> None:
        """Records the waiting times of running programs; `pids` has process numbers by name.

        `now` is in seconds; all calls use the same clock. The waiting time of a thread counts
        from the first reading of the program, or from the thread's start if that is later.
        """
        for name, pid in pids.items():
            first, _ = self._spans.setdefault(name, (now, now))
            self._spans[name] = (first, now)
            seen = self._threads.setdefault(name, {})
            for thread in self._tree(pid):
                total = waited(*thread, self._processes)
                if total is not None:
                    begun, _ = seen.get(thread, (total if first == now else 0.0, 0.0))
                    seen[thread] = (begun, total)

    def shares(self) -> dict[str, float]:
        """Returns the waiting time of all threads as a share of the observed time, by program.

        The waiting times of several threads are added, so a share may exceed 1.
        """
        return {
            name: sum(total - begun for begun, total in self._threads[name].values())
            / (last - first)
            for name, (first, last) in self._spans.items()
            if last - first >= LEAST
        }

    def _tree(self, pid: int) -> list[tuple[int, int]]:
        """Returns process and thread number of all threads of a process and its descendants."""
        found, processes = [], [pid]
        while processes:
            one = processes.pop()
            with suppress(OSError, ValueError):
                for task in (self._processes / str(one) / "task").iterdir():
                    found.append((one, int(task.name)))
                    children = (task / "children").read_text(encoding="ascii").split()
                    processes += map(int, children)
        return found
