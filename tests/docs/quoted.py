"""Numbers that pages quote, from the records.

    python -m tests.docs.quoted

Writes README's three numbers anew.
"""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

from tests.agreement import results

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"


def vectors() -> tuple[int, int]:
    """How many schedules of Linux's decisions are recorded, and of how many disciplines."""
    headers = []
    for path in (ROOT / "crates" / "vectors" / "data").glob("*.jsonl.gz"):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            headers += [json.loads(line) for line in lines if line.startswith('{"format"')]
    return len(headers), len({header["discipline"] for header in headers})


def speed() -> float:
    """How many times as fast as the fastest build of ns-3 the engine is."""
    path = ROOT / "bench" / "peers" / "recorded.json"
    processors = json.loads(path.read_text(encoding="utf-8")).values()
    found = [work for works in processors for work in works["100 flows, 1 Gbit/s"].items()]
    return min(float(column["ratio"]) for name, column in found if name.startswith("ns-3"))


def proofs() -> str:
    """README's three numbers, a table of Markdown."""
    recorded, disciplines = vectors()
    inside, whole = results.Report.read().inside()
    heads = f"{recorded} of {recorded}", f"{100 * inside / whole:.0f} %", f"{speed():.0f} ×"
    where = f"in {disciplines} queue disciplines (`sojourn judge --level linux`)"
    texts = (
        f"recordings of Linux's own decisions agree packet for packet, {where}",
        f"of {whole} scenarios have goodput within 3 % and delays within 15 % of Linux's own",
        "the speed of the fastest build of ns-3, for 100 flows",
    )
    return "\n".join((f"| {' | '.join(heads)} |", "|---|---|---|", f"| {' | '.join(texts)} |"))


def main() -> None:
    text = README.read_text(encoding="utf-8")
    table = re.compile(r"(?<=<!-- numbers: records -->\n).*?(?=\n\n)", re.DOTALL)
    README.write_text(table.sub(lambda _: proofs(), text), encoding="utf-8")


if __name__ == "__main__":
    main()
