"""Stolen time: processor time that the host of a virtual machine gave to other machines.

If the host is busy, packets are late although the programs in the virtual machine need little time.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

STAT = Path("/proc/stat")


@dataclass(frozen=True)
class ProcessorTime:
    """Times of all processors together since the machine's start, in ticks (`proc_stat(5)`)."""

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
        # The fields after `steal` are guest times, which are included in `user` and `nice`.
        return cls(sum(ticks), ticks[7] if len(ticks) == 8 else 0)

    def stolen_since(self, before: ProcessorTime) -> float:
        """Returns the stolen share of the processors' time since an earlier reading, 0 to 1."""
        total = self.total - before.total
        return (self.stolen - before.stolen) / total if total > 0 else 0.0
