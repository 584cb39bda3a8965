#!/usr/bin/env python3
"""Measures the time to import the package, and to print the help of commands.

Each command is started twenty times. The table contains the least and the median wall time and the
least processor time. Its first row is an interpreter that does nothing. A first start of each
command, which writes bytecode, is not measured.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

TIMES = 20
MAIN = "import sys; from sojourn.cli import main; sys.exit(main())"
STARTS = {
    "nothing": ([sys.executable, "-c", "pass"], None),
    "import sojourn": ([sys.executable, "-c", "import sojourn"], 0.2),
    "import sojourn; sojourn.Scenario": (
        [sys.executable, "-c", "import sojourn; sojourn.Scenario"],
        None,
    ),
    "sojourn --help": ([sys.executable, "-c", MAIN, "--help"], 0.3),
    "sojourn compare --help": ([sys.executable, "-c", MAIN, "compare", "--help"], None),
}


def once(command: list[str]) -> tuple[float, float]:
    """Returns the wall time and the processor time of a command in seconds."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command}: exit status {process.returncode}")
    return took, usage.ru_utime + usage.ru_stime


def main() -> None:
    print("| start | wall, least | wall, median | processor, least | aim |")
    print("|---|---|---|---|---|")
    for name, (command, aim) in STARTS.items():
        once(command)
        runs = [once(command) for _ in range(TIMES)]
        wall = [run[0] for run in runs]
        least = min(run[1] for run in runs)
        print(
            f"| `{name}` | {min(wall):.3f} s | {statistics.median(wall):.3f} s | {least:.3f} s |"
            f" {'' if aim is None else f'{aim} s'} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
