"""Quick verdicts of the published studies, as they were recorded, and how new ones differ.

`python -m tests.papers.verdicts DIR [NAME ...]` runs `sojourn paper NAME --quick` with its results
in DIR/NAME and compares claim by claim: verdicts, and the figures that they rest on. `--record`
records what it finds instead. The studies take minutes each, so this is not one of the tests.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from sojourn.papers import NAMES
from tests.papers.cells import digest

FILE = Path(__file__).parent / "verdicts-quick.json"


def kept(told: dict[str, Any]) -> dict[str, list[str]]:
    """Returns the record of each claim in a study's JSON form: verdict, digest of its figures."""
    return {
        claim["id"]: [claim["verdict"], digest([claim["findings"], claim["p_holm"]])]
        for claim in told["claims"]
    }


def differences(known: dict[str, list[str]], found: dict[str, list[str]]) -> list[str]:
    """Claims whose verdict or figures are not those recorded, a line each."""
    listed = []
    for name in {**known, **found}:
        (old, figures), (new, others) = (
            each.get(name, ["not judged", ""]) for each in (known, found)
        )
        if old != new:
            listed.append(f"{name}: {new}, recorded {old}")
        elif figures != others:
            listed.append(f"{name}: {new} as recorded, with other figures")
    return listed


def measure(name: str, folder: Path) -> dict[str, list[str]]:
    """Runs a study; returns its verdicts."""
    start = "import sys; from sojourn.cli import main; sys.exit(main())"
    asked = ["paper", name, "--quick", "--json", "--out", str(folder / name)]
    made = subprocess.run([sys.executable, "-c", start, *asked], check=True, stdout=subprocess.PIPE)
    return kept(json.loads(made.stdout))


def main() -> None:
    """Compares or records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], default=list(NAMES))
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args()
    known = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    problems = 0
    for name in asked.names:
        found = measure(name, asked.folder)
        if asked.record:
            known[name] = found
            continue
        lines = differences(known[name], found)
        problems += len(lines)
        print(f"{name}: {len(found)} claims, {len(lines)} differ", *lines, sep="\n  ")
    if asked.record:
        FILE.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
