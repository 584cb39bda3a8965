#!/usr/bin/env python3
"""Speed in comparison with ns-3 and htsim: the same dumbbells, bottleneck packets per CPU-second.

    python bench/peers/run.py                        Sojourn and the system's ns-3
    NS3=FOLDER:FOLDER HTSIM=PROGRAM python bench/peers/run.py
    python bench/peers/run.py --write                records the columns of the documentation

`NS3` names folders with further builds of ns-3 (each has `include` and `lib`). `HTSIM` is the
program that you made from `bench/htsim/dumbbell.cc` and your htsim. A program that is not here is
shown as it was recorded in `recorded.json`, with the date; its ratio is that of its own run.

Programs run in turn, from an empty network, nothing cut; times are medians over the rounds. Compare
drops and goodput before ratios: they show how far the work is equal. Takes five minutes when idle,
with three builds of ns-3.
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
"""Drop-tail dumbbells of three hops each way."""
COMPARED = "packets/CPU s"


@dataclass(frozen=True)
class Column:
    """One program's figures on one work, and what Sojourn's speed was in the same run."""

    packets: int
    drops: int
    goodput_bps: float
    packets_per_cpu_s: float
    ratio: float
    """Sojourn's packets per CPU-second over this program's, interleaved with it."""
    date: str
    load: str
    """Load averages before the run."""
    processor: str

    @classmethod
    def of(cls, found: Measured, ours: Measured, before: str) -> Column:
        """The figures of runs that were interleaved with ours."""
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
"""Work, program: its figures."""


def recorded() -> Columns:
    """The figures on record."""
    if not RECORDED.exists():
        return {}
    found: dict[str, dict[str, dict[str, Any]]] = json.loads(RECORDED.read_text())
    return {w: {p: Column(**c) for p, c in columns.items()} for w, columns in found.items()}


def record(columns: Columns) -> None:
    """Writes the figures; those of programs that were not run stay."""
    kept = recorded()
    for work, found in columns.items():
        rest = {p: c for p, c in kept.get(work, {}).items() if p not in found}
        kept[work] = found | rest
    made = {w: {p: asdict(c) for p, c in found.items()} for w, found in kept.items()}
    RECORDED.write_text(json.dumps(made, indent=1) + "\n")


def present(builds: list[Path], htsim: Path | None) -> list[Program]:
    """The programs that are here. Says what is missing, and how to add it."""
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
            print(f"left out: {why}", file=sys.stderr)
    return here


def lines(columns: Columns, old: Columns) -> list[tuple[str, ...]]:
    """The table: what was measured, then what is on record of programs that were not run."""
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
    """Runs the programs and prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each work (3)")
    parser.add_argument("--only", choices=WORKS, action="append", help="a work; repeat for several")
    parser.add_argument("--write", action="store_true", help="record the figures")
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
    print(f"load afterwards {load()}; ratio: Sojourn's {COMPARED} over this program's")
    return 0


if __name__ == "__main__":
    sys.exit(main())
