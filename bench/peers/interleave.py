"""Runs several programs alternately on the same work, and compares their costs.

Each round runs each program once, so that a change of the machine's speed affects all of them. The
costs of a round are compared with each other only: on a shared machine a processor's speed may
change by a factor of two within seconds.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grid import Cell

from sojourn.stats.interval import Interval, median_interval

TOLERANCE = 0.02
"""Allowed relative difference of a program's payload from that of the work."""
ATTEMPTS = 10
"""Runs in which a program may find the duration of its work."""


class Missing(Exception):
    """A program that is to be measured is not installed on this machine."""


class Unequal(Exception):
    """A program cannot do the same work as the others."""


@dataclass(frozen=True)
class Run:
    """Result of one run of a program on one work."""

    packets: int
    """Number of packets that left the bottleneck."""
    back: int
    """Number of packets that left the link opposite to the bottleneck: acknowledgements."""
    drops: int
    goodput_bps: float
    cpu_s: float
    """User and system time of the run in seconds, without the start of the program."""


@dataclass(frozen=True)
class Program:
    """A program that is measured."""

    name: str
    run: Callable[[Cell], Run]
    single: bool
    """Whether the receivers acknowledge each segment, instead of every second one."""
    build: str
    """Profile or flags of the program's build; empty if the name has them."""


@dataclass(frozen=True)
class Measured:
    """Results of the runs of one program on one work."""

    work: Cell
    """The work, with the duration in which the program delivers the same payload as the others."""
    first: Run
    cpu_s: tuple[float, ...]
    """Processor time in each round."""

    @property
    def payload(self) -> float:
        """Delivered payload in bytes."""
        return payload(self.work, self.first)

    @property
    def hops(self) -> int:
        """Links that packets crossed: three in each direction, one for a dropped packet."""
        return 3 * (self.first.packets + self.first.back) + self.first.drops

    @property
    def costs(self) -> list[float]:
        """Processor time in each round, in seconds per byte of payload."""
        return [spent / self.payload for spent in self.cpu_s]

    def ratios(self, ours: Measured) -> Interval:
        """Returns the median of the cost of this program in a round over that of `ours`.

        The interval assumes no distribution (`median_interval`).
        """
        pairs = zip(self.costs, ours.costs, strict=True)
        return median_interval([theirs / own for theirs, own in pairs])

    def least_ratio(self, ours: Measured) -> float:
        """Returns the least cost of this program over the least cost of `ours`."""
        return min(self.costs) / min(ours.costs)


def payload(work: Cell, run: Run) -> float:
    """Returns the payload in bytes that a run of a work delivered."""
    return run.goodput_bps * work.duration_s / 8


def sized(program: Program, work: Cell, wanted: float) -> Cell:
    """Returns the work with a duration in which the program delivers `wanted` bytes of payload."""
    for _ in range(ATTEMPTS):
        missing = wanted - payload(work, program.run(work))
        if abs(missing) <= wanted * TOLERANCE / 2:
            return work
        # No program delivers faster than the bottleneck sends.
        work = replace(work, duration_s=round(work.duration_s + 8 * missing / work.rate, 4))
    raise Unequal(f"{program.name} does not deliver {wanted / 1e6:.1f} MB within {TOLERANCE:.0%}")


def interleave(programs: Sequence[Program], work: Cell, rounds: int) -> dict[str, Measured]:
    """Runs all programs in each round; returns the results by the name of the program.

    The first program determines the payload.
    """
    wanted = payload(work, programs[0].run(work))
    works = {program.name: sized(program, work, wanted) for program in programs}
    runs: dict[str, list[Run]] = {program.name: [] for program in programs}
    for number in range(rounds):
        for program in programs:
            if sys.stderr.isatty():
                print(f"\r\033[Kround {number + 1}: {program.name}", end="", file=sys.stderr)
            runs[program.name].append(program.run(works[program.name]))
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return {name: _measured(name, works[name], found) for name, found in runs.items()}


def _measured(name: str, work: Cell, runs: list[Run]) -> Measured:
    """Combines the runs of one program, which have the same seed and differ only in time."""
    if len({(r.packets, r.back, r.drops, r.goodput_bps) for r in runs}) > 1:
        raise RuntimeError(f"{name}: two runs with the same seed must have equal results")
    return Measured(work, runs[0], tuple(r.cpu_s for r in runs))


def processor() -> str:
    """Returns the model and number of the machine's processors."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return f"{line.split(':', 1)[1].strip()}, {os.cpu_count()} processors"
    except OSError:
        pass
    return "unknown processor"
