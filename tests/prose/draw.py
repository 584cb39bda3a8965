"""Draws passages at random for a test by restating.

A reader who has only a passage and its page restates the passage in one sentence. The restatement
is compared with the code. `python -m tests.prose.draw --seed 1` prints the passages of one draw;
the same seed draws the same passages of the same sources. Each kind of text has the same share.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from tests.prose.passages import KINDS, Passage, passages

ROOT = Path(__file__).resolve().parents[2]


def draw(found: list[Passage], seed: int, count: int) -> list[Passage]:
    """Returns `count` passages, divided equally over the kinds, in the order of their places."""
    generator = random.Random(seed)
    drawn: list[Passage] = []
    for number, kind in enumerate(KINDS):
        share = (count - len(drawn)) // (len(KINDS) - number)
        drawn += generator.sample([passage for passage in found if passage.kind == kind], share)
    return sorted(
        drawn, key=lambda passage: (KINDS.index(passage.kind), passage.path, passage.line)
    )


def main() -> None:
    """Prints one draw, a passage a line, as kind, place and text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True, help="Seed of the draw.")
    parser.add_argument("--count", type=int, default=60, help="Number of passages.")
    parser.add_argument("--root", type=Path, default=ROOT, help="Checkout to draw from.")
    options = parser.parse_args()
    found = [p for p in passages(options.root) if not p.path.startswith("tests/")]
    for passage in draw(found, options.seed, options.count):
        print(f"[{passage.kind}] {passage.place}\n    {passage.text}")


if __name__ == "__main__":
    main()
