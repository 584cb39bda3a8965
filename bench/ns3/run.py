#!/usr/bin/env python3
"""Speed: the same 1 Gbit/s dumbbells in ns-3 and here, bottleneck packets per CPU-second.

    python bench/ns3/run.py             10 and 100 NewReno flows, 10 simulated seconds
    python bench/ns3/run.py --json

Both programs run the dumbbell of tests/crosscheck/dumbbell.cc (see README.md there) with equal
parameters, from an empty network, nothing cut. CPU seconds are user + system time of the run
itself, without start-up. The ratio is against the ns-3 build that is named, and holds for that
build only. Exit status 2 if ns-3 is missing.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crosscheck"))

import ns3  # noqa: E402
import ours  # noqa: E402
from grid import Cell  # noqa: E402

AIM = 50.0
RATE = 1_000_000_000
FLOWS = (10, 100)


def processor() -> str:
    """The machine's processor, for the record."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return "unknown processor"


def speed(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Median over repetitions of one program's run."""
    middle = sorted(runs, key=lambda r: r["cpu_s"])[len(runs) // 2]
    packets = middle["packets_whole_run"]
    return {
        "packets": packets,
        "cpu_s": middle["cpu_s"],
        "packets_per_cpu_s": packets / middle["cpu_s"],
        "events_per_packet": middle["events"] / packets,
        "events_per_cpu_s": middle["events"] / middle["cpu_s"],
        "goodput_bps": middle["goodput_bps"],
        "repetitions": len(runs),
        "cpu_s_all": [r["cpu_s"] for r in runs],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--flows", type=int, action="append", help="repeat for several (10, 100)")
    parser.add_argument("--queue", default="pfifo", help="a queue of the cross-check's grid")
    parser.add_argument("--seconds", type=float, default=10.0, help="simulated (10)")
    parser.add_argument("--repeat", type=int, default=5, help="repetitions of ours (5)")
    parser.add_argument("--repeat-ns3", type=int, default=1, help="repetitions of ns-3 (1)")
    parser.add_argument("--build", type=Path, default=ROOT / "target" / "crosscheck")
    args = parser.parse_args()

    try:
        against = ns3.build_name()
        program = ns3.compile_dumbbell(args.build)
    except ns3.Missing as why:
        print(f"{ns3.MISSING}\n  ({why})", file=sys.stderr)
        return 2

    rows = []
    for flows in args.flows or FLOWS:
        cell = Cell(args.queue, flows, RATE, args.seconds, 0.0)
        theirs = speed([ns3.run(program, ns3.arguments(cell, 1)) for _ in range(args.repeat_ns3)])
        here = speed([ours.run(cell, 1) for _ in range(args.repeat)])
        rows.append(
            {
                "flows": flows,
                "queue": cell.queue,
                "rate_bps": RATE,
                "seconds": args.seconds,
                "ns3": theirs,
                "ours": here,
                "ratio": here["packets_per_cpu_s"] / theirs["packets_per_cpu_s"],
            }
        )

    if args.json:
        print(
            json.dumps(
                {"against": against, "processor": processor(), "aim": AIM, "rows": rows}, indent=1
            )
        )
        return 0
    print(f"1 Gbit/s dumbbell, {args.queue}, {args.seconds:g} simulated seconds, {processor()}")
    print(f"against {against}\n")
    head = (
        "flows",
        "program",
        "packets",
        "CPU s",
        "packets/CPU s",
        "events/packet",
        "events/CPU s",
        "Mbit/s",
        "ratio",
    )
    lines = [head]
    for row in rows:
        for name in ("ns3", "ours"):
            s = row[name]
            lines.append(
                (
                    str(row["flows"]),
                    "ns-3" if name == "ns3" else "Sojourn",
                    f"{s['packets']:,}",
                    f"{s['cpu_s']:.3f}",
                    f"{s['packets_per_cpu_s']:,.0f}",
                    f"{s['events_per_packet']:.1f}",
                    f"{s['events_per_cpu_s']:,.0f}",
                    f"{s['goodput_bps'] / 1e6:.1f}",
                    f"{row['ratio']:.1f}" if name == "ours" else "",
                )
            )
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    for number, line in enumerate(lines):
        print("  ".join(t.rjust(w) for t, w in zip(line, widths, strict=True)).rstrip())
        if number == 0:
            print("  ".join("-" * w for w in widths))
    least = min(row["ratio"] for row in rows)
    print(f"\nsmallest ratio {least:.1f} (aim {AIM:g})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
