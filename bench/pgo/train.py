#!/usr/bin/env python3
"""Runs the scenarios whose profile `make pgo` uses to optimise the engine.

The scenarios are five dumbbells of the cross-check, with four queue disciplines, and two of the
examples. Other topologies also become faster; docs/guides/benchmarks.md has some measurements.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "crosscheck"))

import ours  # noqa: E402
from grid import Cell  # noqa: E402

DUMBBELLS = (
    Cell("pfifo", 100, 1_000_000_000, 5.0, 0.0),
    Cell("pfifo", 64, 10_000_000, 100.0, 0.0),
    Cell("fq_codel", 20, 100_000_000, 30.0, 0.0),
    Cell("codel", 20, 100_000_000, 30.0, 0.0),
    Cell("red", 20, 100_000_000, 30.0, 0.0),
)
EXAMPLES = ("home", "taildrop")


def main() -> int:
    """Runs all scenarios once."""
    import sojourn

    for cell in DUMBBELLS:
        ours.run(cell, 1)
    for name in EXAMPLES:
        sojourn.Scenario.load(ROOT / "examples" / f"{name}.toml").run(seed=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
