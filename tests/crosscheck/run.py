#!/usr/bin/env python3
"""Cross-check: the same dumbbells in ns-3 and here, side by side.

    python tests/crosscheck/run.py              the grid, reduced length, 3 seeds
    python tests/crosscheck/run.py --full       ten seeds, longer runs
    python tests/crosscheck/run.py --only codel --seeds 5
    python tests/crosscheck/run.py --recorded   against ns-3's figures kept in recorded.json

Exit status: 0 no cell differs but for a known reason, 1 some cell does, 2 ns-3 is missing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import known  # noqa: E402
import ns3  # noqa: E402
import ours  # noqa: E402
from grid import FLOWS, QUEUES, RATES, Cell, cells  # noqa: E402

ROOT = HERE.parent.parent
RECORDED = HERE / "recorded.json"


@dataclass(frozen=True)
class Metric:
    """A figure that both programs give, and how far apart it may lie."""

    name: str
    key: str
    margin: float
    scale: float
    unit: str
    digits: int


METRICS = (
    Metric("goodput", "goodput_bps", 0.02, 1e-6, "Mbit/s", 3),
    Metric("delay", "delay_mean_ms", 0.15, 1.0, "ms", 2),
    Metric("loss", "loss", 0.20, 100.0, "%", 3),
)
# Below this a loss fraction is a handful of packets and its ratio says nothing.
SMALLEST_LOSS = 2e-5
# Worst first; a row's is the worst of its figures'.
VERDICTS = ("differs", "open", "known", "agrees")
MARKS = {"agrees": " ", "known": "~", "open": "?", "differs": "!"}


def t_quantile(freedom: float) -> float:
    """Student's 97.5 % quantile, to 1 % (Cornish-Fisher), for the intervals shown."""
    if freedom < 1.5:
        return 12.7
    z = 1.959964
    g1 = (z**3 + z) / 4
    g2 = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    g3 = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + g1 / freedom + g2 / freedom**2 + g3 / freedom**3


def mean_error(values: list[float]) -> tuple[float, float]:
    """Mean and its standard error."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, math.nan
    return mean, statistics.stdev(values) / math.sqrt(len(values))


def ratio(ours_: list[float], theirs: list[float]) -> tuple[float, float]:
    """Ratio of means, ours to ns-3's, and half the width of its 95 % interval (delta method)."""
    a, ea = mean_error(ours_)
    b, eb = mean_error(theirs)
    if a == 0 or b == 0:
        return (1.0 if a == b else math.inf), math.nan
    error = math.hypot(ea / a, eb / b)
    freedom = len(ours_) + len(theirs) - 2
    return a / b, t_quantile(freedom) * error * a / b


def judge(
    cell: Cell, metric: Metric, quotient: float, half: float, a: float, b: float
) -> tuple[str, str]:
    """`agrees`, `known`, `open` or `differs`, and the reason of a known difference."""
    if metric.name == "loss" and max(a, b) < SMALLEST_LOSS:
        return "agrees", ""
    if abs(quotient - 1) <= metric.margin:
        return "agrees", ""
    entry = known.lookup(cell.key, metric.name)
    if entry is not None and entry.low <= quotient <= entry.high:
        return "known", entry.reason
    if not math.isnan(half) and abs(quotient - 1) - half <= metric.margin:
        return "open", ""
    return "differs", ""


def compare(cell: Cell, here: list[dict[str, Any]], there: list[dict[str, Any]]) -> dict[str, Any]:
    """One row of the table."""
    row: dict[str, Any] = {
        "cell": cell.key,
        "queue": cell.queue,
        "flows": cell.flows,
        "rate_bps": cell.rate,
        "duration_s": cell.duration_s,
        "warmup_s": cell.warmup_s,
        "seeds": len(here),
        "metrics": {},
    }
    for metric in METRICS:
        a = [r[metric.key] for r in here]
        b = [r[metric.key] for r in there]
        quotient, half = ratio(a, b)
        verdict, reason = judge(
            cell, metric, quotient, half, statistics.fmean(a), statistics.fmean(b)
        )
        row["metrics"][metric.name] = {
            "ours": statistics.fmean(a),
            "ns3": statistics.fmean(b),
            "ratio": quotient,
            "half_width": None if math.isnan(half) else half,
            "margin": metric.margin,
            "verdict": verdict,
            "reason": reason,
        }
    for side, runs in (("ours", here), ("ns3", there)):
        row[side] = {
            key: statistics.fmean(r[key] for r in runs)
            for key in (
                "delay_p50_ms",
                "delay_p95_ms",
                "delay_p99_ms",
                "delay_sd_ms",
                "utilisation",
                "jain",
                "packets",
                "cpu_s",
            )
            if all(r.get(key) is not None for r in runs)
        }
    verdicts = [m["verdict"] for m in row["metrics"].values()]
    row["verdict"] = next((v for v in VERDICTS if v in verdicts), "agrees")
    return row


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as text, columns aligned."""
    head = ["queue", "flows", "rate"]
    for metric in METRICS:
        head += [f"{metric.name} {metric.unit}", "ours", "ratio"]
    head.append("verdict")
    body = []
    for row in rows:
        line = [row["queue"], str(row["flows"]), f"{row['rate_bps'] // 1_000_000} Mbit/s"]
        for metric in METRICS:
            m = row["metrics"][metric.name]
            mark = MARKS[m["verdict"]]
            half = "" if m["half_width"] is None else f" ±{m['half_width']:.3f}"
            line += [
                f"{m['ns3'] * metric.scale:.{metric.digits}f}",
                f"{m['ours'] * metric.scale:.{metric.digits}f}",
                f"{m['ratio']:.3f}{half}{mark}",
            ]
        line.append(row["verdict"])
        body.append(line)
    widths = [max(len(r[i]) for r in [head, *body]) for i in range(len(head))]
    lines = []
    for number, line in enumerate([head, *body]):
        texts = [
            text.ljust(width) if i in (0, len(head) - 1) else text.rjust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        lines.append("  ".join(texts).rstrip())
        if number == 0:
            lines.append("  ".join("-" * width for width in widths))
    return "\n".join(lines)


def notes(rows: list[dict[str, Any]]) -> str:
    """The reasons of what is known, and what is not."""
    lines = []
    for row in rows:
        for name, m in row["metrics"].items():
            if m["verdict"] == "known":
                lines.append(f"~ {row['cell']} {name}: {m['reason']}")
            elif m["verdict"] != "agrees":
                text = (
                    f"{MARKS[m['verdict']]} {row['cell']} {name}: ratio {m['ratio']:.3f}, "
                    f"margin ±{m['margin'] * 100:g} %"
                )
                if m["verdict"] == "open":
                    text += ", but its interval reaches the margin: more seeds would decide"
                lines.append(text)
    return "\n".join(lines)


def _theirs(
    program: str, cell: Cell, seed: int, cache: str, flight: bool
) -> tuple[str, Cell, int, Any]:
    arguments = ns3.arguments(cell, seed)
    if flight:
        arguments["congestion"] = "FlightNewReno"
    return "ns3", cell, seed, ns3.run(Path(program), arguments, Path(cache))


def _ours(cell: Cell, seed: int) -> tuple[str, Cell, int, Any]:
    return "ours", cell, seed, ours.run(cell, seed)


def gather(
    wanted: list[Cell],
    seeds: int,
    program: Path | None,
    cache: Path,
    jobs: int,
    only_ns3: bool,
    flight: bool,
) -> dict[tuple[str, Cell, int], dict[str, Any]]:
    """Every run of the grid, several at once, with a line of progress."""
    found: dict[tuple[str, Cell, int], dict[str, Any]] = {}
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        waiting = []
        for seed in range(1, seeds + 1):
            for cell in wanted:
                if program is not None:
                    waiting.append(
                        pool.submit(_theirs, str(program), cell, seed, str(cache), flight)
                    )
                if not only_ns3:
                    waiting.append(pool.submit(_ours, cell, seed))
        try:
            for number, done in enumerate(as_completed(waiting), 1):
                side, cell, seed, result = done.result()
                found[side, cell, seed] = result
                if sys.stderr.isatty():
                    print(f"\r{number}/{len(waiting)} runs", end="", file=sys.stderr)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return found


# The results of a run of ns-3 in recorded.json.
KEPT = (
    "goodput_bps",
    "jain",
    "delay_mean_ms",
    "delay_sd_ms",
    "delay_p50_ms",
    "delay_p95_ms",
    "delay_p99_ms",
    "loss",
    "arrivals",
    "drops",
    "packets",
    "utilisation",
    "events",
    "cpu_s",
)


def recorded(cell: Cell, seed: int) -> dict[str, Any] | None:
    """The results of ns-3 in recorded.json."""
    runs: dict[str, dict[str, Any]] = json.loads(RECORDED.read_text())["runs"]
    return runs.get(_name(cell, seed))


def _name(cell: Cell, seed: int) -> str:
    return f"{cell.key}/{cell.duration_s:g}s/{cell.warmup_s:g}s/{seed}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="longer runs, ten seeds")
    parser.add_argument("--seeds", type=int, help="seeds a cell (3, or 10 with --full)")
    parser.add_argument("--only", action="append", help="queue, flow count or rate (10M); repeat")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at once")
    parser.add_argument("--recorded", action="store_true", help="ns-3's figures from recorded.json")
    parser.add_argument(
        "--flight",
        action="store_true",
        help="let ns-3 halve FlightSize after a loss, as RFC 5681 (FINDINGS.md, 2)",
    )
    parser.add_argument("--record", action="store_true", help="run ns-3 alone, write recorded.json")
    parser.add_argument(
        "--build",
        type=Path,
        default=ROOT / "target" / "crosscheck",
        help="where the C++ program and ns-3's results are kept",
    )
    args = parser.parse_args()
    seeds = args.seeds or (10 if args.full else 3)
    if args.flight and (args.recorded or args.record):
        parser.error("--flight needs ns-3 itself, and is not recorded")

    wanted = cells(args.full)
    for word in args.only or []:
        known_words = {*QUEUES, *map(str, FLOWS), *(f"{r // 1_000_000}M" for r in RATES)}
        if word not in known_words:
            parser.error(f"--only {word}: one of {', '.join(sorted(known_words))}")
    chosen = set(args.only or [])
    if chosen:
        wanted = [
            c
            for c in wanted
            if all(
                not (chosen & group) or part in chosen
                for part, group in zip(
                    c.key.split("/"),
                    (set(QUEUES), set(map(str, FLOWS)), {f"{r // 1_000_000}M" for r in RATES}),
                    strict=True,
                )
            )
        ]

    program = None
    against = ""
    if args.recorded:
        against = json.loads(RECORDED.read_text())["against"] + ", recorded"
    else:
        try:
            library = ns3.installed()
            against = library.name
            program = ns3.compile_dumbbell(args.build, library)
        except ns3.Missing as why:
            print(f"{ns3.MISSING}\n  ({why})", file=sys.stderr)
            return 2

    found = gather(wanted, seeds, program, args.build / "runs", args.jobs, args.record, args.flight)
    if args.record:
        lines = sorted(
            f" {json.dumps(_name(cell, seed))}: {json.dumps({k: run[k] for k in KEPT})}"
            for (_, cell, seed), run in found.items()
        )
        RECORDED.write_text(
            f'{{"against": {json.dumps(against)}, "runs": {{\n' + ",\n".join(lines) + "\n}}\n"
        )
        runs = lines
        print(f"{len(runs)} runs of {against} written to {RECORDED}")
        return 0

    rows = []
    for cell in wanted:
        numbers = range(1, seeds + 1)
        if args.recorded:
            there = [r for s in numbers if (r := recorded(cell, s)) is not None]
        else:
            there = [found["ns3", cell, s] for s in numbers]
        if not there:
            print(f"no recorded figures of {cell.key}", file=sys.stderr)
            return 2
        rows.append(compare(cell, [found["ours", cell, s] for s in numbers], there))

    counts = {v: sum(r["verdict"] == v for r in rows) for v in reversed(VERDICTS)}
    if args.json:
        print(json.dumps({"against": against, "counts": counts, "cells": rows}, indent=1))
    else:
        print(f"Sojourn against {against}")
        print(f"{seeds} seeds a cell; ± is half a 95 % interval of the ratio ours / ns-3\n")
        print(table(rows))
        text = notes(rows)
        if text:
            print("\n" + text)
        print(
            f"\n{len(rows)} cells: {counts['agrees']} agree, {counts['known']} differ for a known "
            f"reason (FINDINGS.md), {counts['open']} cannot be told, {counts['differs']} differ"
        )
    return 1 if counts["differs"] else 0


if __name__ == "__main__":
    sys.exit(main())
