#!/usr/bin/env python3
"""Prints anew what the documentation shows of programs' output.

    python tests/docs/refresh.py [PAGE ...]

Runs each page's blocks as they are shown, at full length, and replaces every block that stands
under a line `% test: output [WIDTH] [LINES]`: WIDTH is where long lines end (tables are cut there,
sentences go on below), LINES how many are shown. A line `% figure: FOLDER NAME TARGET` makes the
figures of a results folder (`sojourn report`), and puts NAME.png at TARGET, seen from the page.
Takes minutes. Look at the difference before you commit it.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sojourn.show import publish, style
from sojourn.study.results import Results
from tests.docs.test_docs import DOCS, MAIN, Block, blocks, pages

WIDTH = 100
DOTS = 200
"""Per inch, of figures; a wide one has fewer."""
WIDEST = 900
"""Dots across."""

# A slow machine says how far it is.
_PROGRESS = re.compile(r"^.*: \d+/\d+ runs, .*\n", re.MULTILINE)
_FIGURE = re.compile(r"^% figure: (\S+) (\S+) (\S+)$", re.MULTILINE)


def run(block: Block, folder: Path) -> str:
    """What the block's commands print, on both channels."""
    shown = ""
    for words in block.commands():
        done = subprocess.run(
            [sys.executable, "-c", MAIN, *words[1:]],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            check=False,
            env={**os.environ, "NO_COLOR": "1", "COLUMNS": "160"},
        )
        shown += _PROGRESS.sub("", done.stdout)
    return shown


def fitted(text: str, width: int, most: int | None) -> str:
    """The text within `width` columns and `most` lines."""
    lines: list[str] = []
    for line in map(str.rstrip, text.splitlines()):
        if len(line) <= width:
            lines.append(line)
        elif re.search(r"─|\s{3}", line.strip()):
            # A table: what columns fit.
            whole = re.match(r"(.*\S)\s{2,}", line[: width - 1])
            lines.append(f"{whole[1] if whole else line[: width - 2]} …")
        else:
            lines += textwrap.wrap(line, width, break_on_hyphens=False)
    while lines and not lines[0]:
        lines.pop(0)
    while lines and not lines[-1]:
        lines.pop()
    if most is not None and len(lines) > most:
        lines = [*lines[:most], "…"]
    return "\n".join(lines)


def draw(page: Path, folder: Path) -> None:
    """Puts the figures that the page asks for in their places."""
    for results, name, target in _FIGURE.findall(page.read_text(encoding="utf-8")):
        made = publish.figures_of(Results.open(folder / results))
        if name not in made:
            raise SystemExit(f"{page}: no figure {name} in {results}: there are {', '.join(made)}")
        with style.styled():
            width = made[name].get_size_inches()[0]
            drawn = io.BytesIO()
            made[name].savefig(drawn, format="png", dpi=min(DOTS, WIDEST / width))
        # Few colours, which makes it small.
        Image.open(drawn).convert("RGB").quantize(64).save(page.parent / target, optimize=True)


def refresh(page: Path) -> bool:
    """Whether the page has changed."""
    found = list(blocks(page))
    if not any(block.kind == "output" for block in found):
        return False
    text = page.read_text(encoding="utf-8")
    lines = text.splitlines()
    names: dict[str, Any] = {"__name__": "__docs__"}
    replaced: list[tuple[Block, str]] = []
    shown = ""
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        folder = Path(name)
        for link in ("crates", "examples"):
            (folder / link).symlink_to(DOCS.parent / link)
        for block in found:
            match block.kind:
                case "file":
                    target = folder / block.argument.split("; ")[0]
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_text(block.text, encoding="utf-8")
                case "run":
                    shown = run(block, folder)
                case "exec":
                    out = io.StringIO()
                    with contextlib.redirect_stdout(out):
                        exec(compile(block.text, block.where, "exec"), names)
                    shown = out.getvalue()
                case "output":
                    numbers = [int(n) for n in block.argument.split()]
                    width = numbers[0] if numbers else WIDTH
                    most = numbers[1] if len(numbers) > 1 else None
                    replaced.append((block, fitted(shown, width, most)))
        draw(page, folder)
    for block, output in reversed(replaced):
        first = block.line  # the line after the fence, counted from 0
        last = first + (len(block.text.splitlines()) if block.text.strip() else 0)
        lines[first:last] = output.splitlines()
    new = "\n".join(lines) + "\n"
    if new != text:
        page.write_text(new, encoding="utf-8")
    return new != text


if __name__ == "__main__":
    for page in [Path(p).resolve() for p in sys.argv[1:]] or pages():
        if refresh(page):
            print(f"refreshed {page.relative_to(DOCS.parent)}")
