"""Runs the grid: `python -m tests.agreement FOLDER [--trees] [--cells PATTERN] [--seeds N]
[--minutes M] [--kernel NAME]`.

Runs are kept in FOLDER, a line of JSON each, so that the same command goes on where it stopped.
The verdicts of all cells that were run are printed, and written to FOLDER/verdicts.json. With
`--record` they also become what `compare` is calibrated by, and those of `--trees` the table of
docs/guides/three-clocks.md (`python -c "from tests.agreement import trees; print(trees.table())"`).
"""

from __future__ import annotations

import argparse
import json
import math
import re
import struct
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from sojourn.linux import kernels
from sojourn.linux.engine import LinuxEngine
from sojourn.linux.kernels import Kernel
from sojourn.plan import Plan
from sojourn.scenario import Scenario
from sojourn.scenario.engine import Engine, Record, core
from sojourn.study import calibration
from sojourn.study.calibration import SHARED, shape
from sojourn.study.machine import cores
from tests.agreement import trees
from tests.agreement.cells import Cell, grid
from tests.agreement.judge import Judged, counted, judge, margins

AnyCell = Cell | trees.TreeCell
"""A cell of the grid, or one with a tree."""
Known = dict[tuple[str, str], dict[int, dict[str, float]]]
"""Metrics of runs by cell, engine and seed."""
Told = dict[str, dict[str, Any]]
"""The verdict of each quantity of each cell."""
RECORD = Path(calibration.__file__).parent / "agreement.json"
FEWEST_RUNS = 2
KEPT = ("goodput", "sojourn_mean", "sojourn_p95", "drops", "marks", "departures", "queue_mean")
CALIBRATED = ("goodput", "sojourn_mean", "sojourn_p95")
"""Metrics whose means are recorded for `compare`."""
FIRST = {"sim": 1, "linux": 1000}
"""The first seed of each engine: runs of the two are independent."""
LEAST, MOST, STEP = 10, 60, 10
"""Seeds of a cell at first, at most, and how many are added while it is undecided."""


def metrics(record: Record, cell: AnyCell) -> dict[str, float]:
    """The metrics that are compared."""
    told = {
        name: float(struct.unpack("<d" if dtype == "f8" else "<q", data)[0])
        for name, _, dtype, data in record.table("summary")
        if not isinstance(data, list)
    }
    found = {name: told[name] for name in KEPT if name in told}
    if fct := [value for name, value in told.items() if name.endswith(".fct_mean")]:
        found["fct_mean"] = fmean(fct)
    for group in cell.groups:
        found[f"{group}.goodput"] = told[f"{group}.goodput"] + told[f"{group}.udp_goodput"]
    for group in cell.timed:
        found[f"{group}.queueing"] = told[f"{group}.delay_mean"] - cell.rtt / 2
    return found


def run(engine: Engine, cell: AnyCell, seed: int, kernel: Kernel) -> dict[str, float]:
    """One run, whose timers tick as those of the kernel that is compared."""
    plan = json.loads(Scenario.from_dict(cell.scenario(seed)).plan_json)
    for group in plan["groups"]:
        group["transport"]["hz"] = kernel.hz
    for link in plan["links"]:
        tick(link["params"]["queue"], kernel.hz)
    return metrics(engine.simulate(Plan.of(json.dumps(plan)), seed), cell)


def tick(queue: dict[str, Any], hz: int) -> None:
    """Give a queue, and those in its classes, as many ticks a second."""
    if "hz" in queue:
        queue["hz"] = hz
    inner = [one["child"] for one in queue.get("tree", {}).get("classes", ())]
    for child in [queue.get("child"), *inner]:
        if child is not None:
            tick(child, hz)


def verdicts(
    cell: AnyCell, ours: list[dict[str, float]], theirs: list[dict[str, float]]
) -> dict[str, Judged]:
    """The judgements of a cell, by quantity."""
    found = {}
    for name, margin in margins(cell).items():
        a, b = [r[name] for r in ours], [r[name] for r in theirs]
        room = margin
        if name in ("drops", "marks"):
            room = counted(margin, b, fmean(r["departures"] for r in theirs))
        found[name] = judge(a, b, room)
    return found


def decided(cell: AnyCell, known: Known) -> bool:
    """Whether no quantity of a cell is undecided."""
    ours, theirs = (known[cell.name, name].values() for name in FIRST)
    if min(len(ours), len(theirs)) < FEWEST_RUNS:
        return False
    return all(j.verdict != "undecided" for j in verdicts(cell, [*ours], [*theirs]).values())


def main() -> None:
    """Runs the selected cells and prints the results."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cells", default="", help="regular expression of their names")
    parser.add_argument("--trees", action="store_true", help="trees, not the grid")
    parser.add_argument("--every", type=int, default=1, help="each so many of them only")
    parser.add_argument("--seeds", type=int, default=LEAST, help="of each engine at first")
    parser.add_argument("--most", type=int, default=MOST, help="of each engine at most")
    parser.add_argument("--minutes", type=float, default=600.0)
    parser.add_argument("--kernel", help="its name; its runs need a folder of their own")
    parser.add_argument("--record", action="store_true", help="for `compare`")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    log = asked.folder / "runs.jsonl"
    known: Known = defaultdict(dict)
    if log.exists():
        for line in log.read_text("utf-8").splitlines():
            one = json.loads(line)
            known[one["cell"], one["engine"]][one["seed"]] = one["metrics"]
    kernel = kernels.find(asked.kernel)
    engines: dict[str, Engine] = {"sim": core(), "linux": LinuxEngine(kernel)}
    plain, left_out = grid()
    every: Sequence[AnyCell] = trees.grid() if asked.trees else plain
    cells = [cell for cell in every if re.search(asked.cells, cell.name)][:: asked.every]
    cells.sort(key=lambda cell: cell.cost)  # time that runs out leaves few cells without runs
    end = time.monotonic() + 60 * asked.minutes
    with log.open("a", encoding="utf-8") as file, ThreadPoolExecutor(cores()) as pool:

        def make(one: tuple[Cell, str, int]) -> None:
            cell, name, seed = one
            if time.monotonic() > end:
                return
            found = run(engines[name], cell, seed, kernel)
            known[cell.name, name][seed] = found
            about = {"cell": cell.name, "engine": name, "seed": seed, "metrics": found}
            file.write(json.dumps(about) + "\n")
            file.flush()

        # All cells with few seeds first, then more for those that are undecided.
        for count in range(asked.seeds, asked.most + STEP, STEP):
            wanted = [
                (cell, name, seed)
                for cell in cells
                if count == asked.seeds or not decided(cell, known)
                for name, first in FIRST.items()
                for seed in range(first, first + min(count, asked.most))
                if seed not in known[cell.name, name]
            ]
            list(pool.map(make, wanted))
    told = report(cells, 0 if asked.trees else len(left_out), known, asked.folder)
    if asked.record and asked.trees:
        trees.record(kernel.name, told)
    elif asked.record:
        record([cell for cell in cells if isinstance(cell, Cell)], known, told, kernel)


def against_itself(cells: Sequence[AnyCell], known: Known) -> tuple[int, int]:
    """Cells in which all estimates of one half of Linux's runs are inside the other's, and all."""
    inside = count = 0
    for cell in cells:
        runs = [*known[cell.name, "linux"].values()]
        if len(runs) < 2 * FEWEST_RUNS:
            continue
        count += 1
        inside += all(j.inside for j in verdicts(cell, runs[::2], runs[1::2]).values())
    return inside, count


def report(cells: Sequence[AnyCell], left_out: int, known: Known, folder: Path) -> Told:
    """Print the verdicts of all cells that were run, and write them down."""
    told: Told = {}
    for cell in cells:
        ours, theirs = known[cell.name, "sim"], known[cell.name, "linux"]
        if min(len(ours), len(theirs)) < FEWEST_RUNS:
            continue
        judged = verdicts(cell, [*ours.values()], [*theirs.values()])
        told[cell.name] = {
            name: {"verdict": j.verdict, "ratio": j.ratio, "low": j.low, "high": j.high,
                   "inside": j.inside}
            for name, j in judged.items()
        }  # fmt: skip
        words = "  ".join(f"{n} {j.ratio:.3f} {j.verdict}" for n, j in judged.items())
        print(f"{cell.name:40} {len(ours)}/{len(theirs)}  {words}")
    itself = against_itself(cells, known)
    different = sum(any(q["verdict"] == "different" for q in c.values()) for c in told.values())
    undecided = sum(any(q["verdict"] == "undecided" for q in c.values()) for c in told.values())
    inside = sum(all(q["inside"] for q in c.values()) for c in told.values())
    print(
        f"{len(told)} cells: {different} different, {undecided} undecided, {inside} with all"
        f" estimates inside; {left_out} left out for their cost"
    )
    print(f"Linux against itself: {itself[0]} of {itself[1]} cells with all estimates inside")
    (folder / "verdicts.json").write_text(json.dumps(told, indent=1), "utf-8")
    return told


def described(cell: Cell, shared: dict[str, Any]) -> dict[str, Any]:
    """The shape of a cell; its large parts are once in `shared`."""
    found = dict(vars(shape(Scenario.from_dict(cell.scenario(0)).plan)))
    for key in SHARED:
        text = json.dumps(found[key], sort_keys=True)
        number = next((n for n, v in shared.items() if json.dumps(v, sort_keys=True) == text), None)
        if number is None:
            number = str(len(shared))
            shared[number] = found[key]
        found[key] = number
    return found


def record(cells: list[Cell], known: Known, told: Told, kernel: Kernel) -> None:
    """Write what was found of each cell to where `compare` looks."""
    shared: dict[str, Any] = {}
    found = []
    for cell in cells:
        if cell.name not in told:
            continue
        runs = {name: [*known[cell.name, name].values()] for name in FIRST}
        found.append({
            "cell": cell.name,
            "scene": replace(cell, queue="", ecn=False).name + (" ecn" if cell.ecn else ""),
            "shape": described(cell, shared),
            "runs": {name: len(r) for name, r in runs.items()},
            "means": {
                name: {m: float(f"{fmean(one[m] for one in r):.6g}") for m in CALIBRATED}
                for name, r in runs.items()
            },
            "verdicts": {m: one["verdict"] for m, one in told[cell.name].items()},
            "ratios": {m: _rounded(one["ratio"]) for m, one in told[cell.name].items()},
            "inside": all(one["inside"] for one in told[cell.name].values()),
        })  # fmt: skip
    itself, _ = against_itself(cells, known)
    whole = {"kernel": kernel.name, "itself": itself, "shared": shared, "cells": found}
    lines = ",\n".join(json.dumps(cell) for cell in found)
    head = json.dumps(whole | {"cells": []})[: -len("[]}")]
    RECORD.write_text(f"{head}[\n{lines}\n]}}\n", encoding="utf-8")


def _rounded(ratio: float) -> float | None:
    return round(ratio, 4) if math.isfinite(ratio) else None


if __name__ == "__main__":
    main()
