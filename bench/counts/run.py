#!/usr/bin/env python3
"""Counts the instructions of seven runs, and compares them with the recorded counts.

The comparison shows whether a change of the code makes the engine execute more instructions.

    python bench/counts/run.py             count and compare
    python bench/counts/run.py --write     count and record
    python bench/counts/run.py --all       count the other plans too, which takes minutes
    python bench/counts/run.py --json      print the counts as JSON

Callgrind counts the instructions of `crates/sim/examples/counts.rs`, compiled like a release. The
load of the machine does not change the counts. `counts.json` contains the recorded counts and
trace hashes, with the version of the compiler, since each version generates different code.

The exit status is 1 if a count differs by more than the tolerance or a trace hash differs. It is 2
if valgrind is missing, or if the counts were recorded with another version of the compiler.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TABLE = HERE / "counts.json"
TOLERANCE = 0.03
"""Allowed relative difference from the recorded count."""
GATE = ["hundred", "slow", "many", "fq_codel", "datagrams", "leaf-spine-128", "path"]
"""Plans whose counts are recorded and compared."""
BUILD = [
    "cargo",
    "build",
    "--release",
    "--locked",
    "--quiet",
    "-p",
    "sojourn-sim",
    "--example",
    "counts",
]


@dataclass(frozen=True)
class Run:
    """Counts of one run of a plan."""

    packets: int
    """Number of packets that left the bottleneck."""
    events: int
    loss: float
    """Packets that the bottleneck's queue dropped, divided by those that it dropped or sent."""
    instructions: int
    trace: str


class Missing(Exception):
    """A program that the counts need is not installed."""


def output(command: list[str]) -> str:
    """Returns the output of a command: standard output, then standard error."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-2000:]}")
    return done.stdout + done.stderr


def compiler() -> str:
    """Returns the version of the Rust compiler, as `rustc` prints it."""
    return output(["rustc", "--version"]).strip()


def count(*, every: bool = False) -> dict[str, Run]:
    """Counts the instructions of the plans in `GATE`, or of all plans if `every` is true."""
    if shutil.which("valgrind") is None:
        raise Missing("valgrind is not installed (apt-get install valgrind)")
    output(BUILD)
    program = str(ROOT / "target" / "release" / "examples" / "counts")
    plans = output([program]).split() if every else GATE
    return {plan: _run(program, plan) for plan in plans}


def _run(program: str, plan: str) -> Run:
    callgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    text = output([*callgrind, program, plan])
    done = re.search(r"(\d+) packets, (\d+) events, loss ([\d.]+), trace ([0-9a-f]{32})", text)
    collected = re.search(r"Collected : (\d+)", text)
    if done is None or collected is None:
        raise RuntimeError(f"{plan}: {text[-2000:]}")
    return Run(int(done[1]), int(done[2]), float(done[3]), int(collected[1]), done[4])


def recorded() -> tuple[str, dict[str, Run]]:
    """Returns the version of the compiler and the runs in `counts.json`."""
    table = json.loads(TABLE.read_text())
    return table["compiler"], {plan: Run(**run) for plan, run in table["runs"].items()}


def record(runs: dict[str, Run]) -> None:
    """Writes the compared runs to `counts.json`."""
    table = {"compiler": compiler(), "runs": {plan: asdict(runs[plan]) for plan in GATE}}
    TABLE.write_text(json.dumps(table, indent=1) + "\n")


def differences(now: dict[str, Run], before: dict[str, Run]) -> list[str]:
    """Returns a sentence for each changed trace hash and each count changed beyond `TOLERANCE`."""
    found = []
    for plan, old in before.items():
        run = now[plan]
        change = run.instructions / old.instructions - 1
        if run.trace != old.trace:
            found.append(f"{plan}: the trace hash is {run.trace}, recorded is {old.trace}")
        if abs(change) > TOLERANCE:
            found.append(
                f"{plan}: {run.instructions / run.packets:.0f} instructions per packet, "
                f"recorded are {old.instructions / old.packets:.0f} ({change:+.1%}; "
                f"at most {TOLERANCE:.0%} is allowed)"
            )
    return found


def main() -> int:
    """Counts the instructions, and prints or records them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="record the counts")
    parser.add_argument("--all", action="store_true", help="count all plans")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    try:
        runs = count(every=args.all)
    except Missing as why:
        print(why, file=sys.stderr)
        return 2
    if args.write:
        record(runs)
    with_compiler, before = recorded()
    if args.json:
        print(json.dumps({plan: asdict(run) for plan, run in runs.items()}, indent=1))
    else:
        head = ("packets", "events", "instructions", "per packet", "change")
        print(f"{'plan':>15}" + "".join(f"{title:>13}" for title in head))
        for plan, run in runs.items():
            change = run.instructions / before.get(plan, run).instructions - 1
            print(
                f"{plan:>15}{run.packets:13}{run.events:13}{run.instructions:13}"
                f"{run.instructions / run.packets:13.0f}{change:+13.1%}"
            )
    if with_compiler != compiler():
        print(f"cannot compare: the counts were recorded with {with_compiler}", file=sys.stderr)
        return 2
    changed = differences(runs, before)
    for line in changed:
        print(line, file=sys.stderr)
    if changed:
        print(
            "if the change is intended, run python bench/counts/run.py --write, and give the "
            "reason in the commit",
            file=sys.stderr,
        )
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
