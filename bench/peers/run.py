#!/usr/bin/env python3
"""Compares the speed of Sojourn with ns-3 and htsim on the same dumbbells.

The speed is the number of packets that leave the bottleneck per second of processor time.

    python bench/peers/run.py                        Sojourn and the installed ns-3
    NS3=FOLDER:FOLDER HTSIM=PROGRAM python bench/peers/run.py
    python bench/peers/run.py --write                also record the results

`NS3` contains folders with further builds of ns-3, each with `include` and `lib`. `HTSIM` is the
program that was compiled from `bench/htsim/dumbbell.cc` with htsim. For a program that is not
installed, the table shows the results in `recorded.json` with their date; the ratio then refers to
Sojourn's speed in the recorded run.

The programs run alternately. Each run starts with an empty network and has no warm-up. Times are
medians over the rounds. Compare drops and goodput first, since they show whether the programs do
equal work. With three builds of ns-3 the comparison takes five minutes on an idle machine. The
documentation shows the recorded results.
"""

from __future__ import annotations

import argparse
import datetime as dt
import functools
import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import programs
from interleave import Measured, Missing, Program, interleave, load, processor, table

sys.path.insert(0, str(programs.ROOT / "tests" / "crosscheck"))

import ns3
from grid import Cell, Paths

RECORDED = Path(__file__).resolve().parent / "recorded.json"
RACK = Paths(
    rtt_min_ms=1.0,
    rtt_max_ms=1.0,
    bottleneck_ms=0.25,
    receiver_ms=0.05,
    access_rate=100_000_000_000,
    start_spread_s=0.01,
)
WORKS = {
    "100 flows, 1 Gbit/s": Cell("pfifo", 100, 1_000_000_000, 5.0, 0.0),
    "64 flows, 10 Mbit/s": Cell("pfifo", 64, 10_000_000, 100.0, 0.0),
    "10 flows, 10 Gbit/s": Cell("pfifo", 10, 10_000_000_000, 0.25, 0.0, RACK),
}
"""Dumbbells with a drop-tail queue and three hops in each direction, by name."""
COMPARED = "packets/CPU s"


@dataclass(frozen=True)
class Column:
    """Results of one program on one work, with the ratio of Sojourn's speed to the program's."""

    packets: int
    drops: int
    goodput_bps: float
    packets_per_cpu_s: float
    ratio: float
    """Sojourn's packets per second of processor time, divided by this program's.

    Both programs ran alternately.
    """
    date: str
    load: str
    """Load averages of the machine before the runs."""
    processor: str

    @classmethod
    def of(cls, found: Measured, ours: Measured, before: str) -> Column:
        """Returns the results `found` of a program; `ours` are Sojourn's in the same rounds."""
        return cls(
            found.packets,
            found.drops,
            found.goodput_bps,
            round(found.speed),
            round(ours.speed / found.speed, 2),
            dt.datetime.now(dt.UTC).date().isoformat(),
            before,
            processor(),
        )


Columns = dict[str, dict[str, Column]]
"""Results by the name of the work and the name of the program."""


def recorded() -> Columns:
    """Returns the recorded results; empty without a record."""
    if not RECORDED.exists():
        return {}
    found: dict[str, dict[str, dict[str, Any]]] = json.loads(RECORDED.read_text())
    return {w: {p: Column(**c) for p, c in columns.items()} for w, columns in found.items()}


def record(columns: Columns) -> None:
    """Records the results; the recorded results of other programs and works stay."""
    kept = recorded()
    for work, found in columns.items():
        rest = {p: c for p, c in kept.get(work, {}).items() if p not in found}
        kept[work] = found | rest
    made = {w: {p: asdict(c) for p, c in found.items()} for w, found in kept.items()}
    RECORDED.write_text(json.dumps(made, indent=1) + "\n")


def present(builds: list[Path], htsim: Path | None) -> list[Program]:
    """Returns the installed programs; prints why the others are not measured."""
    makers = [programs.sojourn, functools.partial(programs.ns3_of, ns3.installed)]
    makers += [
        functools.partial(programs.ns3_of, functools.partial(ns3.in_folder, p)) for p in builds
    ]
    if htsim is not None:
        makers.append(functools.partial(programs.htsim, htsim))
    here = []
    for make in makers:
        try:
            here.append(make())
        except Missing as why:
            print(f"not measured: {why}", file=sys.stderr)
    return here


def lines(columns: Columns, old: Columns) -> list[tuple[str, ...]]:
    """Returns the lines: for each work the new results, then recorded ones of other programs."""
    made = []
    for work, found in columns.items():
        rest = {p: c for p, c in old.get(work, {}).items() if p not in found}
        for name, column in (found | rest).items():
            made.append(
                (
                    work,
                    name,
                    f"{column.packets:,}",
                    f"{column.drops:,}",
                    f"{column.goodput_bps / 1e6:.1f}",
                    f"{column.packets_per_cpu_s:,.0f}",
                    "" if name == programs.OURS else f"{column.ratio:.2f}",
                    f"recorded {column.date}" if name in rest else "",
                )
            )
    return made


def main() -> int:
    """Runs the programs, and prints the table or JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="rounds per work, by default 3")
    parser.add_argument(
        "--only",
        choices=WORKS,
        action="append",
        help="run only this work; repeat the option for several works",
    )
    parser.add_argument("--write", action="store_true", help="record the results")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()

    builds = [Path(p) for p in os.environ.get("NS3", "").split(":") if p]
    htsim = os.environ.get("HTSIM")
    here = present(builds, Path(htsim) if htsim else None)
    print(f"{processor()}; load {load()}", file=sys.stderr)
    columns: Columns = {}
    for work in args.only or WORKS:
        before = load()
        found = interleave(here, WORKS[work], args.rounds)
        ours = found[programs.OURS]
        columns[work] = {name: Column.of(m, ours, before) for name, m in found.items()}
    old = recorded()
    if args.write:
        record(columns)
    if args.json:
        print(json.dumps({w: {p: asdict(c) for p, c in f.items()} for w, f in columns.items()}))
        return 0
    head = ("work", "program", "packets", "drops", "Mbit/s", COMPARED, "ratio", "")
    print(table(head, lines(columns, old)))
    print(f"load afterwards {load()}; ratio: Sojourn's {COMPARED} divided by the program's")
    return 0


if __name__ == "__main__":
    sys.exit(main())
