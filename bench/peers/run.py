#!/usr/bin/env python3
"""Compares the speed of Sojourn with ns-3 and htsim on the same dumbbells.

    python bench/peers/run.py                        Sojourn and the installed ns-3
    NS3=FOLDER:FOLDER HTSIM=PROGRAM python bench/peers/run.py
    python bench/peers/run.py --write                also record the results

`NS3` contains folders with further builds of ns-3, each with `include` and `lib`. `HTSIM` is the
program that was compiled from `bench/htsim/dumbbell.cc` with htsim.

All programs deliver the same payload within 2 %: each runs for the time in which it does. They run
alternately in short rounds. The ratio of a round is a program's processor time for a byte of
payload over Sojourn's in the same round, with the same rule of acknowledgements. The table has the
median of these ratios with an interval of 95 % that assumes no distribution, and the ratio of the
least times. Each run starts with an empty network and has no warm-up.

The record has the results of each processor on which it was made; the documentation shows them.
"""

from __future__ import annotations

import argparse
import datetime as dt
import functools
import json
import os
import statistics
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tests" / "crosscheck")]

import ns3  # noqa: E402
import programs  # noqa: E402
from grid import Cell, Paths  # noqa: E402
from interleave import Measured, Missing, Program, interleave, processor  # noqa: E402

RECORDED = HERE / "recorded.json"
ROUNDS = 31
"""Rounds per work, at least 30 for a record."""
WIDE = Paths(start_spread_s=0.2)
RACK = Paths(
    rtt_min_ms=1.0,
    rtt_max_ms=1.0,
    bottleneck_ms=0.25,
    receiver_ms=0.05,
    access_rate=100_000_000_000,
    start_spread_s=0.01,
)
WORKS = {
    "100 flows, 1 Gbit/s": Cell("pfifo", 100, 1_000_000_000, 1.2, 0.0, WIDE),
    "64 flows, 10 Mbit/s": Cell("pfifo", 64, 10_000_000, 40.0, 0.0, WIDE),
    "10 flows, 10 Gbit/s": Cell("pfifo", 10, 10_000_000_000, 0.15, 0.0, RACK),
}
"""Dumbbells with a drop-tail queue and three hops in each direction, by name."""


@dataclass(frozen=True)
class Column:
    """Results of one program on one work."""

    build: str
    single: bool
    """Whether the receivers acknowledge each segment, instead of every second one."""
    payload: float
    """Delivered payload in bytes."""
    packets: int
    drops: int
    hops_per_cpu_s: float | None
    """Packet-hops (links that packets crossed) per second of processor time, median."""
    ratio: float | None
    """Median over the rounds of this program's cost per byte over Sojourn's; `None` for Sojourn."""
    low: float | None
    high: float | None
    least_ratio: float | None
    """This program's least cost over Sojourn's."""
    rounds: int
    """Number of rounds; fewer than 30 in an older record, of unequal payloads."""
    date: str
    load: str
    """Load averages before the runs, of one and five minutes."""

    @classmethod
    def of(cls, found: Measured, ours: Measured, program: Program, load: str) -> Column:
        """Returns the results `found` of a program; `ours` are Sojourn's in the same rounds."""
        ratios = None if found is ours else found.ratios(ours)
        return cls(
            build=program.build,
            single=program.single,
            payload=round(found.payload),
            packets=found.first.packets,
            drops=found.first.drops,
            hops_per_cpu_s=round(found.hops / statistics.median(found.cpu_s)),
            ratio=ratios and round(ratios.estimate, 2),
            low=ratios and round(ratios.low, 2),
            high=ratios and round(ratios.high, 2),
            least_ratio=ratios and round(found.least_ratio(ours), 2),
            rounds=len(found.cpu_s),
            date=dt.datetime.now(dt.UTC).date().isoformat(),
            load=load,
        )


Columns = dict[str, dict[str, Column]]
"""Results by the name of the work and the name of the program."""


def recorded() -> dict[str, Columns]:
    """Returns the recorded results by the processor."""
    if not RECORDED.exists():
        return {}
    return {
        where: {w: {p: Column(**c) for p, c in found.items()} for w, found in works.items()}
        for where, works in json.loads(RECORDED.read_text()).items()
    }


def record(columns: Columns) -> None:
    """Records the results of this processor; those of other programs and works stay."""
    kept = recorded()
    here = kept.setdefault(processor(), {})
    for work, found in columns.items():
        here[work] = here.get(work, {}) | found
    made = {
        where: {w: {p: asdict(c) for p, c in found.items()} for w, found in works.items()}
        for where, works in kept.items()
    }
    RECORDED.write_text(json.dumps(made, indent=1) + "\n")


def present(builds: list[Path], htsim: Path | None, build: str) -> list[Program]:
    """Returns the installed programs; prints why the others are not measured."""
    makers = [functools.partial(programs.ns3_of, ns3.installed)]
    makers += [
        functools.partial(programs.ns3_of, functools.partial(ns3.in_folder, p)) for p in builds
    ]
    if htsim is not None:
        makers.append(functools.partial(programs.htsim, htsim))
    others = []
    for make in makers:
        try:
            others.append(make())
        except Missing as why:
            print(f"not measured: {why}", file=sys.stderr)
    rules = sorted({False} | {program.single for program in others})
    return [*(programs.sojourn(single, build) for single in rules), *others]


def compared(here: list[Program], work: Cell, rounds: int) -> dict[str, Column]:
    """Runs all programs on a work, and returns their results by name."""
    load = "{:.1f}, {:.1f}".format(*os.getloadavg())
    found = interleave(here, work, rounds)
    return {
        p.name: Column.of(found[p.name], found[programs.own_name(p.single)], p, load) for p in here
    }


def lines(columns: Columns) -> Iterable[str]:
    """Returns the lines of a table of the results."""
    head = f"{'work':20} {'program':35} {'MB':>6} {'packets':>8} {'drops':>6} {'hops/CPU s':>11}"
    yield f"{head}  ratio"
    for work, found in columns.items():
        for name, c in found.items():
            ratio = f"{c.ratio} ({c.low} to {c.high}), least {c.least_ratio}"
            yield (
                f"{work:20} {name:35} {c.payload / 1e6:6.1f} {c.packets:8,} {c.drops:6,} "
                f"{c.hops_per_cpu_s or 0:11,.0f}  {ratio if c.ratio else ''}"
            ).rstrip()


def main() -> int:
    """Runs the programs, and prints the table or JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"by default {ROUNDS}")
    parser.add_argument(
        "--only", choices=WORKS, action="append", help="run only this work; may be repeated"
    )
    parser.add_argument("--build", default="release", help="how the engine was built, as a text")
    parser.add_argument("--write", action="store_true", help="record the results")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.write and args.rounds < 30:
        parser.error(f"a record needs at least 30 rounds, not {args.rounds}")

    builds = [Path(p) for p in os.environ.get("NS3", "").split(":") if p]
    htsim = os.environ.get("HTSIM")
    here = present(builds, Path(htsim) if htsim else None, args.build)
    print(processor(), file=sys.stderr)
    columns = {work: compared(here, WORKS[work], args.rounds) for work in args.only or WORKS}
    if args.write:
        record(columns)
    if args.json:
        print(json.dumps({w: {p: asdict(c) for p, c in f.items()} for w, f in columns.items()}))
        return 0
    print("\n".join(lines(columns)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
