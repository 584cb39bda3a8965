#!/usr/bin/env python3
"""Instructions of six runs, beside those on record: the gate for changes of the engine's speed.

    python bench/counts/run.py             counts, and compares
    python bench/counts/run.py --write     counts, and records
    python bench/counts/run.py --all       counts the plans that are no gate, too: minutes
    python bench/counts/run.py --json

Callgrind counts the instructions of `crates/sim/examples/counts.rs`, built as a release is; a busy
machine does not disturb that. Counts and trace hashes are in `counts.json`, with the compiler that
they are of: another one makes other code. Exit status 1 if a count differs by more than the
tolerance, or a hash at all; 2 if valgrind is missing, or what is on record is another compiler's.
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
"""Share by which a count may differ from the one on record."""
GATE = ["hundred", "slow", "many", "fq_codel", "datagrams", "leaf-spine-128"]
"""Plans whose counts are on record."""
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
    """What one plan cost."""

    packets: int
    """Through the bottleneck."""
    events: int
    loss: float
    """Share of its arrivals that the bottleneck dropped."""
    instructions: int
    trace: str


class Missing(Exception):
    """Something that counting needs is not there."""


def output(command: list[str]) -> str:
    """What a command prints, on either stream."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-2000:]}")
    return done.stdout + done.stderr


def compiler() -> str:
    """The compiler's version, as it names itself."""
    return output(["rustc", "--version"]).strip()


def count(*, every: bool = False) -> dict[str, Run]:
    """Builds the program and counts its plans: those of the gate, or all."""
    if shutil.which("valgrind") is None:
        raise Missing("needs valgrind (apt-get install valgrind)")
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
    """The compiler and the runs on record."""
    table = json.loads(TABLE.read_text())
    return table["compiler"], {plan: Run(**run) for plan, run in table["runs"].items()}


def record(runs: dict[str, Run]) -> None:
    """Writes the table."""
    table = {"compiler": compiler(), "runs": {plan: asdict(runs[plan]) for plan in GATE}}
    TABLE.write_text(json.dumps(table, indent=1) + "\n")


def differences(now: dict[str, Run], before: dict[str, Run]) -> list[str]:
    """What has changed beyond the tolerance, a sentence each."""
    found = []
    for plan, old in before.items():
        run = now[plan]
        change = run.instructions / old.instructions - 1
        if run.trace != old.trace:
            found.append(f"{plan}: the trace hash is {run.trace}, and was {old.trace}")
        if abs(change) > TOLERANCE:
            found.append(
                f"{plan}: {run.instructions / run.packets:.0f} instructions a packet, and "
                f"{old.instructions / old.packets:.0f} on record ({change:+.1%}; "
                f"{TOLERANCE:.0%} is allowed)"
            )
    return found


def main() -> int:
    """Counts, and prints a table."""
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
        head = ("packets", "events", "instructions", "a packet", "change")
        print(f"{'plan':>15}" + "".join(f"{title:>13}" for title in head))
        for plan, run in runs.items():
            change = run.instructions / before.get(plan, run).instructions - 1
            print(
                f"{plan:>15}{run.packets:13}{run.events:13}{run.instructions:13}"
                f"{run.instructions / run.packets:13.0f}{change:+13.1%}"
            )
    if with_compiler != compiler():
        print(f"no comparison: the counts on record are of {with_compiler}", file=sys.stderr)
        return 2
    changed = differences(runs, before)
    for line in changed:
        print(line, file=sys.stderr)
    if changed:
        print(
            "if that is meant: python bench/counts/run.py --write, and say why in the commit",
            file=sys.stderr,
        )
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
