"""Compares the simulator with Linux in cells drawn at random, and records the result.

`python -m tests.agreement FOLDER [--drawings SEED...] [--cells N] [--most SECONDS] [--minutes M]
[--record] [--trees] [--hosts] [--wire HZ]`

The cells are the first N of each drawing of `population` that cost Linux at most so many processor
seconds a run and whose kernel exists on this machine. Runs are kept in FOLDER, a line of JSON each,
so the same command continues where it stopped, also with larger numbers. All cells are judged with
six seeds first, then the undecided ones with more (`judge.LOOKS`). Every fourth network is also run
by Linux with other seeds, which shows what the judgement says of equal engines. With `--record` the
results become those of `compare` and `run`, and of the page docs/background/truth.md; those of
`--trees` become the table of docs/guides/three-clocks.md, and those of `--hosts` that of truth.md
(`python -c "from tests.agreement import hosts; print(hosts.table())"`). `--wire HZ` compares real
time with virtual time instead: the TCP of this machine, which has HZ ticks a second, over the
project's wire, against that of a guest over the same wire, in the cells whose kernel has as many
ticks.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

from sojourn.lab.engine import WireEngine
from sojourn.linux import kernels
from sojourn.linux.engine import LinuxEngine
from sojourn.linux.kernels import Kernel
from sojourn.plan import Plan
from sojourn.scenario import Scenario
from sojourn.scenario.engine import Engine, Record, core
from sojourn.study.machine import cores
from tests.agreement import hosts, results, trees
from tests.agreement.judge import LOOKS, judged
from tests.agreement.population import Cell, drawing
from tests.docs import quoted

AnyCell = Cell | trees.TreeCell
"""A cell of a drawing, or one with a tree."""
Known = dict[tuple[str, str], dict[int, dict[str, float]]]
"""Metrics of runs by cell, engine and seed."""
KEPT = ("goodput", "sojourn_mean", "sojourn_p95", "drops", "marks", "departures")
COUNTS = ("timeouts", "recoveries", "retransmissions")
"""Events of the senders, of which Linux reports only a part."""
FIRST = {"sim": 1, "linux": 1000, "again": 2000, "wire": 3000, "linux-wire": 4000}
"""The first seed of each engine; `again` is Linux with other seeds. All runs are independent."""
ALLOWED = 0.03
"""Largest share of different cells with which the command succeeds."""
AGAIN = 4
"""Every network with this number is also compared with itself."""


def metrics(record: Record, cell: AnyCell) -> dict[str, float]:
    """The metrics that are compared."""
    told = {
        name: float(struct.unpack("<d" if dtype == "f8" else "<q", data)[0])
        for name, _, dtype, data in record.table("summary")
        if not isinstance(data, list)
    }
    found = {name: told[name] for name in (*KEPT, *COUNTS) if told.get(name, -1) >= 0}
    if cell.transfer:
        found["fct_mean"] = told["short.fct_mean"]
    for group in cell.groups:
        found[f"{group}.goodput"] = told[f"{group}.goodput"] + told[f"{group}.udp_goodput"]
    for group in cell.timed:
        found[f"{group}.queueing"] = told[f"{group}.delay_mean"] - cell.rtt / 2
    return found


def engine(name: str, linux: LinuxEngine) -> Engine:
    """The engine of this name, with the kernel of `linux` if it has one."""
    match name:
        case "sim":
            return core()
        case "wire":
            return WireEngine()
        case "linux-wire":
            return LinuxEngine(linux.kernel, wire=True)
        case _:
            return linux


def run(engine: Engine, cell: AnyCell, seed: int, linux: LinuxEngine) -> dict[str, float]:
    """One run with the cell's ticks, and frames as `linux` has them; empty if it is not valid."""
    scenario = Scenario.from_dict(cell.scenario(seed))
    words = {**linux.tcp_words(scenario.plan), "hz": str(cell.hz)}
    plan = json.loads(scenario.with_stack(words).plan_json)
    for link in plan["links"]:
        tick(link["params"]["queue"], cell.hz)
    record = engine.simulate(Plan.of(json.dumps(plan)), seed)
    return {} if getattr(record, "violations", ()) else metrics(record, cell)


def tick(queue: dict[str, Any], hz: int) -> None:
    """Give a queue, and those in its classes, as many ticks a second."""
    if "hz" in queue:
        queue["hz"] = hz
    inner = [one["child"] for one in queue.get("tree", {}).get("classes", ())]
    for child in [queue.get("child"), *inner]:
        if child is not None:
            tick(child, hz)


def opponents(cell: AnyCell, wire: bool) -> Iterator[tuple[str, str]]:
    """The pairs of engines that a cell compares."""
    if wire:
        yield "wire", "linux-wire"
        return
    yield "sim", "linux"
    if type(cell) is Cell and cell.number // 2 % AGAIN == 0:
        yield "again", "linux"


def runs_of(known: Known, cell: AnyCell, name: str) -> list[dict[str, float]]:
    """The runs of a cell by an engine, in the order of their seeds."""
    return [found for _, found in sorted(known[cell.name, name].items())]


def undecided(cell: AnyCell, known: Known, wire: bool) -> Iterator[str]:
    """Yields the engines whose runs have not decided one of their pairs."""
    for pair in opponents(cell, wire):
        ours, theirs = (runs_of(known, cell, name) for name in pair)
        if judged(cell, ours, theirs)[0] == "undecided":
            yield from pair


def main() -> None:
    """Runs the selected cells and prints the results."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--drawings", type=int, nargs="+", default=[1], help="their seeds")
    parser.add_argument("--cells", type=int, default=400, help="how many of their first cells")
    parser.add_argument("--most", type=float, default=60.0, help="processor seconds of a run")
    parser.add_argument("--seeds", type=int, default=48, choices=LOOKS, help="the last look")
    parser.add_argument("--minutes", type=float, default=600.0)
    parser.add_argument("--workers", type=int, default=cores())
    parser.add_argument("--trees", action="store_true", help="trees, not a drawing")
    parser.add_argument("--hosts", action="store_true", help="hosts' own queues, not a drawing")
    parser.add_argument("--wire", type=int, default=0, metavar="HZ", help="real against virtual")
    parser.add_argument("--record", action="store_true", help="write the record of the package")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    log = asked.folder / "runs.jsonl"
    known: Known = defaultdict(dict)
    if log.exists():
        for line in log.read_text("utf-8").splitlines():
            one = json.loads(line)
            known[one["cell"], one["engine"]][one["seed"]] = one["metrics"]
    by_hz: dict[int, Kernel] = {}
    for kernel in kernels.kernels():
        by_hz.setdefault(kernel.hz, kernel)
    linux = {hz: LinuxEngine(kernel) for hz, kernel in by_hz.items()}
    drawn = [cell for seed in asked.drawings for cell in islice(drawing(seed), asked.cells)]
    every: Sequence[AnyCell] = drawn
    if asked.trees or asked.hosts:
        every = trees.grid() if asked.trees else hosts.grid()
    ticks = {asked.wire} if asked.wire else set(linux)
    cells = [cell for cell in every if cell.hz in ticks and cell.cost <= asked.most]
    end = time.monotonic() + 60 * asked.minutes
    with log.open("a", encoding="utf-8") as file, ThreadPoolExecutor(asked.workers) as pool:

        def make(one: tuple[AnyCell, str, int]) -> None:
            cell, name, seed = one
            if time.monotonic() > end:
                return
            own = linux[cell.hz]
            if not (found := run(engine(name, own), cell, seed, own)):
                return
            known[cell.name, name][seed] = found
            about = {"cell": cell.name, "engine": name, "seed": seed, "metrics": found}
            file.write(json.dumps(about) + "\n")
            file.flush()

        for seeds in LOOKS:
            wanted = [
                (cell, name, seed)
                for cell in cells
                for name in dict.fromkeys(undecided(cell, known, bool(asked.wire)))
                for seed in range(FIRST[name], FIRST[name] + min(seeds, asked.seeds))
                if seed not in known[cell.name, name]
            ]
            list(pool.map(make, wanted))
    told = {
        cell.name: found
        for cell in cells
        for pair in islice(opponents(cell, bool(asked.wire)), 1)
        if (found := judged(cell, *(runs_of(known, cell, name) for name in pair)))[1]
    }
    for name, (verdict, quantities) in told.items():
        words = "  ".join(f"{n} {j.ratio.estimate:.3f}" for n, j in quantities.items())
        print(f"{verdict:9} {name}  {words}")
    if (asked.trees or asked.hosts) and asked.record:
        found_by_name = {name: one for name, (_, one) in told.items()}
        path = trees.RECORD if asked.trees else hosts.RECORD
        trees.record(linux[trees.HZ].kernel.name, found_by_name, path)
    runs = {
        cell: {name: runs_of(known, cell, name) for name in FIRST}
        for cell in cells
        if type(cell) is Cell and cell.name in told
    }
    if runs and not asked.wire:
        print("", results.unseen(runs), sep="\n")
    if runs and asked.record:
        release = next(iter(linux.values())).kernel.release
        results.write(release, asked.most, asked.cells, runs)
        report = results.Report.read()
        report.refresh()
        quoted.main()
        print("", *report.parts().values(), sep="\n\n")
    different = sum(verdict == "different" for verdict, _ in told.values())
    sys.exit(different > ALLOWED * len(told))


if __name__ == "__main__":
    main()
