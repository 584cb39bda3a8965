#!/usr/bin/env python3
"""Measures the cost that a study adds to the simulation of a run: processor time, bytes on disk.

The study varies the delay of a home link; each run simulates 10 s, with several seeds per level.
Then the engine alone repeats the same runs, and their processor time is subtracted. The time to
load the table of results is also measured.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import pandas as pd  # noqa: F401 - imported here so that the import is not measured

from sojourn import Scenario, Study, _core
from sojourn.study import Results, store  # noqa: F401

HOME = Path(__file__).parents[2] / "examples" / "home.toml"
SHORT = {"duration": "10s", "warmup": "2s"}
CHUNK = 1000
"""Maximum number of runs in one call of the engine, since their records are in memory."""


def processor() -> float:
    """Return the processor time of this process in seconds."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def alone(study: Study, seeds: int) -> float:
    """Return the engine's processor time for all runs of the study, in seconds."""
    wanted = [(cell.plan_json, seed + 1) for seed in range(seeds) for cell in study.cells]
    begin = processor()
    for first in range(0, len(wanted), CHUNK):
        records = _core.simulate_many(wanted[first : first + CHUNK])
        assert records.fault is None
    return processor() - begin


def main() -> None:
    """Run the study, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--levels", type=int, default=200, help="number of levels of the delay, by default 200"
    )
    parser.add_argument(
        "--seeds", type=int, default=10, help="number of seeds per level, by default 10"
    )
    parser.add_argument("--rate", default="20mbit", help="rate of the link, by default 20mbit")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    runs = given.levels * given.seeds
    home = Scenario.load(HOME).replace({**SHORT, "links.uplink.rate": given.rate})
    delays = [f"delay {5000 + 100 * level}us" for level in range(given.levels)]
    study = Study(home).vary({"links.uplink.netem": delays}).seeds(given.seeds)
    with tempfile.TemporaryDirectory(prefix="sojourn-bench-") as place:
        folder = Path(place) / "out"
        begin, clock = processor(), time.perf_counter()
        study.run(folder, workers=given.workers)
        whole, clock = processor() - begin, time.perf_counter() - clock
        sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
        begin, load = processor(), time.perf_counter()
        table = Results.open(folder).table()
        loaded, load = processor() - begin, time.perf_counter() - load
        assert len(table) == runs
    simulated = alone(study, given.seeds)
    print(f"{runs} runs on {given.workers} threads: {clock:.1f} s by the clock")
    print(f"  simulation    {1e3 * simulated / runs:8.2f} ms a run, processor time")
    print(f"  all else      {1e3 * (whole - simulated) / runs:8.2f} ms a run, processor time")
    print(f"  on disk       {sum(sizes.values()) / runs / 1e3:8.2f} kB a run")
    for name, size in sorted(sizes.items(), key=lambda one: -one[1]):
        print(f"    {name:22}{size / runs:8.0f} B")
    print(f"  table loaded  {load:8.2f} s by the clock, {loaded:.2f} s processor time")


if __name__ == "__main__":
    main()
