"""Runs several programs alternately on the same work, and computes their median speeds.

Each round runs all programs, so that a change of the machine's load affects all of them equally.
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
    """A program that is to be measured is not installed on this machine."""


@dataclass(frozen=True)
class Run:
    """Result of one run of a program on one work."""

    packets: int
    """Number of packets that left the bottleneck."""
    drops: int
    goodput_bps: float
    cpu_s: float
    """User and system time of the run in seconds, without the start of the program."""


@dataclass(frozen=True)
class Program:
    """A program that is measured."""

    name: str
    run: Callable[[Any], Run]
    times: int = 1
    """Number of runs per round; above 1 for programs whose runs are short."""


@dataclass(frozen=True)
class Measured:
    """Results of all runs of one program on one work."""

    packets: int
    drops: int
    goodput_bps: float
    cpu_s: list[float]

    @property
    def speed(self) -> float:
        """Packets that left the bottleneck per second of processor time (median over the runs)."""
        return self.packets / statistics.median(self.cpu_s)


def interleave(programs: Sequence[Program], work: Any, rounds: int) -> dict[str, Measured]:
    """Runs all programs in each round; returns the results by the name of the program."""
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
    """Combines the runs of one program, which have the same seed and differ only in time."""
    first = runs[0]
    if any((r.packets, r.drops) != (first.packets, first.drops) for r in runs):
        raise RuntimeError(f"{name}: two runs with the same seed must have equal packets and drops")
    return Measured(first.packets, first.drops, first.goodput_bps, [r.cpu_s for r in runs])


def processor() -> str:
    """Returns the model and number of the machine's processors."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return f"{line.split(':', 1)[1].strip()}, {os.cpu_count()} processors"
    except OSError:
        pass
    return "unknown processor"


def load() -> str:
    """Returns the load averages of the last minute and of the last five minutes."""
    one, five, _ = os.getloadavg()
    return f"{one:.1f} (1 min), {five:.1f} (5 min)"


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Returns a table as text; the first two columns are left-aligned, the others right-aligned."""
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
