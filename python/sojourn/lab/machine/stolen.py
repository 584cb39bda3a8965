"""Processor time that the host of a virtual machine gave to others.

A machine whose host is busy is late for no reason of its own: nothing that runs in it shows why.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

STAT = Path("/proc/stat")


@dataclass(frozen=True)
class ProcessorTime:
    """All processors' time since the machine's start, in ticks (`proc_stat(5)`)."""

    total: int
    stolen: int

    @classmethod
    def now(cls, stat: Path = STAT) -> Self:
        """Read it; all is zero where the kernel does not tell."""
        try:
            words = stat.read_text("ascii").split("\n", 1)[0].split()
            ticks = [int(word) for word in words[1:9]]
        except (OSError, ValueError):
            return cls(0, 0)
        # A guest's time, behind these, is within `user` and `nice`.
        return cls(sum(ticks), ticks[7] if len(ticks) == 8 else 0)

    def stolen_since(self, before: ProcessorTime) -> float:
        """The share of the processors' time that was stolen from an earlier look on."""
        total = self.total - before.total
        return (self.stolen - before.stolen) / total if total > 0 else 0.0
