#!/usr/bin/env python3
"""Puts a coexistence matrix into its page: the picture, light and dark, and the tables.

    python docs/studies/matrix.py [FOLDER]

`FOLDER` is the folder that `sojourn study coexistence` wrote, by default
results/coexistence. The tables are between the page's marks `BEGIN` and `END`.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_figures"))

import small
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from sojourn.show import style
from sojourn.show.coexistence import THEMES, drawing
from sojourn.study.coexistence import Coexistence, Encounter

DOCS = Path(__file__).resolve().parents[1]
PAGE = DOCS / "studies" / "coexistence.md"
BEGIN, END = "<!-- tables: begin -->\n", "<!-- tables: end -->\n"
WIDTHS = (2000, 1700, 1400)
WORDS = "Description"
"""Key of the figure's words in a picture, by which tests find a picture older than its code."""
SHADES = 96
"""Number of colours in a picture's palette; bars need more than other figures."""


def picture(matrix: Coexistence, theme: str) -> None:
    """Writes the picture, as wide as its size allows."""
    drawn = io.BytesIO()
    with style.styled():
        figure = drawing(matrix, theme=theme)
        figure.savefig(drawn, format="png", dpi=240)
    words = PngInfo()
    words.add_itxt(WORDS, "\n".join(text.get_text() for text in figure.texts))
    whole = Image.open(drawn).convert("RGB")
    target = DOCS / "images" / "studies" / f"coexistence-{theme}.png"
    for width in WIDTHS:
        size = (width, round(whole.height * width / whole.width))
        few = whole.resize(size, Image.Resampling.LANCZOS).quantize(
            SHADES, dither=Image.Dither.NONE
        )
        few.save(target, optimize=True, pnginfo=words)
        if target.stat().st_size <= small.LARGEST:
            return
    sys.exit(f"{target}: more than {small.LARGEST} B at a width of {WIDTHS[-1]}")


def table(matrix: Coexistence, title: str, told: Callable[[Encounter], str]) -> str:
    """A row for each rival, a column for each queue; cells have the range over round-trip times."""
    mine = matrix.incumbents[0]
    lines = [f"| {title} | {' | '.join(matrix.queues)} |", "|---" * (len(matrix.queues) + 1) + "|"]
    for rival in matrix.rivals(mine):
        row = [
            told_of([e for rtt in matrix.rtts if (e := matrix.of(mine, rival, queue, rtt))], told)
            for queue in matrix.queues
        ]
        lines.append(f"| `{rival}` | {' | '.join(row)} |")
    return "\n".join(lines)


def told_of(met: list[Encounter], told: Callable[[Encounter], str]) -> str:
    """The smallest and the largest value over the round-trip times; one value if they are equal."""
    values = [told(e) for e in met]
    numbers = sorted((float(v), v) for v in values)
    low, high = numbers[0][1], numbers[-1][1]
    return low if low == high else f"{low} to {high}"


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("results/coexistence")
    matrix = Coexistence.open(folder)
    for theme in THEMES:
        picture(matrix, theme)
    harming = {(e.rival, e.queue): 0 for e in matrix.encounters.values()}
    for e in matrix.encounters.values():
        harming[e.rival, e.queue] += e.verdict == "harms more"
    parts = [
        table(matrix, "share of the rival, %", lambda e: f"{100 * e.values['share'].estimate:.0f}"),
        table(
            matrix, "harm beyond CUBIC's own, percentage points",
            lambda e: f"{round(100 * e.excess.interval.estimate)}",
        ),
        table(
            matrix, "settings (of 5) in which the rival harms more",
            lambda e: str(harming[e.rival, e.queue]),
        ),
        table(
            matrix, "delay of the rival, ms",
            lambda e: f"{1e3 * e.values['rival_delay'].estimate:.1f}",
        ),
        table(
            matrix, "delay of CUBIC, ms",
            lambda e: f"{1e3 * e.values['incumbent_delay'].estimate:.1f}",
        ),
        table(matrix, "marked, %", lambda e: f"{100 * e.values['marks'].estimate:.1f}"),
        table(
            matrix, "CUBIC's losses, %",
            lambda e: f"{100 * e.values['incumbent_loss'].estimate:.2f}",
        ),
    ]  # fmt: skip
    text = PAGE.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    PAGE.write_text(head + BEGIN + "\n\n".join(parts) + "\n\n" + END + tail, encoding="utf-8")


if __name__ == "__main__":
    main()
