"""How long programs were ready to run and waited for a processor, by the kernel's own account.

`/proc/PID/task/TID/schedstat` has it for each thread (Documentation/scheduler/sched-stats.rst).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

LEAST = 1.0
"""Seconds for which a program must have been watched: a shorter share says nothing."""


def waited(pid: int, thread: int, processes: Path = Path("/proc")) -> float | None:
    """Return the seconds for which a thread has waited for a processor; None if it has ended."""
    with suppress(OSError, ValueError, IndexError):
        path = processes / str(pid) / "task" / str(thread) / "schedstat"
        return int(path.read_text(encoding="ascii").split()[1]) / 1e9
    return None


class Waits:
    """The waits of programs, with their threads and children, from looks at them."""

    def __init__(self, processes: Path = Path("/proc")) -> None:
        self._processes = processes
        self._spans: dict[str, tuple[float, float]] = {}
        self._threads: dict[str, dict[tuple[int, int], tuple[float, float]]] = {}

    def look(self, pids: Mapping[str, int], now: float) -> None:
        """Take note of the programs that run, by name; `now` are seconds of any one clock.

        A thread that is there at the first look at its program counts from then on; one that is
        new later counts from its own start.
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
        """Return the share of its time for which each program's threads waited, by name.

        Threads that wait at the same time each count.
        """
        return {
            name: sum(total - begun for begun, total in self._threads[name].values())
            / (last - first)
            for name, (first, last) in self._spans.items()
            if last - first >= LEAST
        }

    def _tree(self, pid: int) -> list[tuple[int, int]]:
        """Return the threads of a process and of its children."""
        found, processes = [], [pid]
        while processes:
            one = processes.pop()
            with suppress(OSError, ValueError):
                for task in (self._processes / str(one) / "task").iterdir():
                    found.append((one, int(task.name)))
                    children = (task / "children").read_text(encoding="ascii").split()
                    processes += map(int, children)
        return found
