"""Processor time that the host of a virtual machine gave to other machines.

A machine with a busy host is late for a reason outside itself, which no program inside it shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

STAT = Path("/proc/stat")


@dataclass(frozen=True)
class ProcessorTime:
    """Time of all processors since the machine's start, in ticks (`proc_stat(5)`)."""

    total: int
    stolen: int

    @classmethod
    def now(cls, stat: Path = STAT) -> Self:
        """Reads the times; all are zero if the kernel does not report them."""
        try:
            words = stat.read_text("ascii").split("\n", 1)[0].split()
            ticks = [int(word) for word in words[1:9]]
        except (OSError, ValueError):
            return cls(0, 0)
        # Guest time, in the following fields, is included in `user` and `nice`.
        return cls(sum(ticks), ticks[7] if len(ticks) == 8 else 0)

    def stolen_since(self, before: ProcessorTime) -> float:
        """Returns the share of the processors' time that was stolen since an earlier reading."""
        total = self.total - before.total
        return (self.stolen - before.stolen) / total if total > 0 else 0.0
