"""Interleaved runs of the same work by several programs, and a table of their medians.

Each round runs every program once, so that a change of the machine's load meets all of them.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class Missing(Exception):
    """A program is not on this machine."""


@dataclass(frozen=True)
class Run:
    """One program's run of one work."""

    packets: int
    """Packets through the bottleneck."""
    drops: int
    goodput_bps: float
    cpu_s: float
    """User and system time of the run, in seconds, without start-up."""


@dataclass(frozen=True)
class Program:
    """A program that can do the work."""

    name: str
    run: Callable[[Any], Run]
    times: int = 1
    """Runs in one round: more than one where a run is short."""


@dataclass(frozen=True)
class Measured:
    """Figures of one program's runs of one work."""

    packets: int
    drops: int
    goodput_bps: float
    cpu_s: list[float]

    @property
    def speed(self) -> float:
        """Packets through the bottleneck in one second of processor time."""
        return self.packets / statistics.median(self.cpu_s)


def interleave(programs: Sequence[Program], work: Any, rounds: int) -> dict[str, Measured]:
    """Runs each program in each round; returns the measurements by the program's name."""
    runs: dict[str, list[Run]] = {program.name: [] for program in programs}
    for number in range(rounds):
        for program in programs:
            if sys.stderr.isatty():
                print(f"\r\033[Kround {number + 1}: {program.name}", end="", file=sys.stderr)
            runs[program.name] += [program.run(work) for _ in range(program.times)]
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return {name: _measured(name, found) for name, found in runs.items()}


def _measured(name: str, runs: list[Run]) -> Measured:
    """Puts the runs of one program together: they are of one seed, and differ in time only."""
    first = runs[0]
    if any((r.packets, r.drops) != (first.packets, first.drops) for r in runs):
        raise RuntimeError(f"{name} did different work in two runs with one seed")
    return Measured(first.packets, first.drops, first.goodput_bps, [r.cpu_s for r in runs])


def processor() -> str:
    """The machine's processor, for the record."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return f"{line.split(':', 1)[1].strip()}, {os.cpu_count()} processors"
    except OSError:
        pass
    return "unknown processor"


def load() -> str:
    """The load averages of the last minute and the last five."""
    one, five, _ = os.getloadavg()
    return f"{one:.1f} (1 min), {five:.1f} (5 min)"


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """The lines as text, columns aligned; the first two to the left."""
    all_lines = [tuple(head), *map(tuple, lines)]
    widths = [max(len(line[i]) for line in all_lines) for i in range(len(head))]
    all_lines.insert(1, tuple("-" * w for w in widths))
    return "\n".join(
        "  ".join(
            text.ljust(w) if i < 2 else text.rjust(w)
            for i, (text, w) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in all_lines
    )
