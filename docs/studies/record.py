#!/usr/bin/env python3
"""Writes a study's verdicts and figures into the documentation.

    python docs/studies/record.py NAME --results DIR [--full] [--real FILE]

Runs `sojourn paper NAME` (`--quick` unless `--full`) into DIR, where nothing is made that is there
already, and writes `docs/studies/NAME.json` and `docs/images/studies/NAME-*.png`. `--real FILE`
adds the verdicts of real runs from what `sojourn paper NAME --real --json` printed.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_figures"))

import small

DOCS = Path(__file__).resolve().parents[1]

# The figures that the page shows, of those that the study draws.
FIGURES = {
    "taildrop": ("bulk", "web"),
    "daqm": ("meant-6a", "meant-13"),
    "queue-lb": ("gains", "ages"),
    "rrda": ("exhaustion", "throughput-clients"),
    "edge-store": ("figure-2", "explanations"),
}


def how(name: str, outcome: Any) -> str:
    """What was run, in a sentence."""
    size = outcome.size
    match name:
        case "taildrop":
            return (
                f"Simulated: bulk traffic {size.bulk:g} s and {size.bulk_seeds} seeds, Web traffic "
                f"{size.web:g} s and {size.web_seeds} seeds."
            )
        case "daqm":
            seeds = max(len(table.seeds) for table in outcome.tables.values())
            lengths = "short runs" if outcome.quick else "the thesis' lengths"
            return f"Simulated as meant: {lengths}, {seeds} seeds."
        case "queue-lb":
            return f"Simulated: rounds of {size.seconds:g} s, {size.seeds} seeds."
        case "rrda":
            return f"Simulated: runs of {size.seconds:g} s, {size.seeds} seeds."
        case _:
            return (
                f"Simulated: {size.writes} writes a run, {size.seeds} seeds a cell, "
                f"{len({delay for *_, delay in size.cells})} delays."
            )


def image(source: Path, target: Path, width: int = 1400) -> None:
    """A figure as the pages show it: fewer dots and colours."""
    from PIL import Image

    drawn = Image.open(source).convert("RGB")
    if drawn.width > width:
        drawn = drawn.resize((width, round(drawn.height * width / drawn.width)), Image.LANCZOS)
    small.save(drawn, target)


def real_verdicts(printed: str) -> dict[str, str]:
    """The verdicts on real runs by claim, of what `sojourn paper NAME --real --json` printed."""
    return {claim["id"]: claim["verdict"] for claim in json.loads(printed)["claims"]}


def main() -> None:
    from sojourn import _core
    from sojourn.cli.bars import stages
    from sojourn.papers import load
    from sojourn.papers.report import show
    from sojourn.show.terminal import here

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=FIGURES)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--real", type=Path)
    asked = parser.parse_args()
    with stages() as stage:
        outcome = load(asked.name).run(asked.results, not asked.full, None, stage)
    written = {path.stem: path for path in show(outcome) if path.suffix == ".png"}
    real = real_verdicts(asked.real.read_text(encoding="utf-8")) if asked.real else {}
    record = {
        "study": asked.name,
        "command": f"sojourn paper {asked.name}{'' if asked.full else ' --quick'}",
        "how": how(asked.name, outcome),
        "engine": _core.fingerprint(),
        "claims": [
            {
                "id": j.claim.id,
                "finding": j.claim.text,
                "paper": j.claim.published,
                "here": here(j, outcome.units),
                "verdict": j.verdict,
                **({"real": real[j.claim.id]} if j.claim.id in real else {}),
            }
            for j in outcome.judgements
        ],
    }
    text = json.dumps(record, indent=1, ensure_ascii=False)
    (DOCS / "studies" / f"{asked.name}.json").write_text(text + "\n", encoding="utf-8")
    for figure in FIGURES[asked.name]:
        if figure not in written:
            sys.exit(f"no figure {figure}; there are {', '.join(sorted(written))}")
        image(written[figure], DOCS / "images" / "studies" / f"{asked.name}-{figure}.png")
    print(f"{asked.name}: {len(record['claims'])} findings recorded")


if __name__ == "__main__":
    main()
