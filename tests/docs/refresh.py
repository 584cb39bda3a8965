#!/usr/bin/env python3
"""Prints anew what the documentation shows of programs' output.

    python tests/docs/refresh.py [PAGE ...]

Runs each page's blocks as they are shown, at full length, and replaces every block below a line
`<!-- test: output [WIDTH] [LINES] [from TEXT] -->`: WIDTH is where long lines end (tables are cut
there, sentences go on below), LINES how many are shown, TEXT is in the first line shown. A line
`<!-- figure: FOLDER NAME TARGET -->` makes the figures of a results folder (`sojourn report`), and
puts NAME.png at TARGET, seen from the page. Both lines may also begin with `%`.
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
from pathlib import Path
from typing import Any

from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "_figures"))

import small

from sojourn.show import publish, style
from sojourn.study.results import Results
from tests.docs import output
from tests.docs.test_docs import DOCS, MAIN, Block, blocks, pages

DOTS = 200
"""Per inch, of figures; a wide one has fewer."""
WIDEST = 900
"""Dots across."""

_FIGURE = re.compile(r"^<!-- figure: (\S+) (\S+) (\S+?) -->$", re.MULTILINE)


def run(block: Block, folder: Path) -> str:
    """Returns the output of the block's commands, on both channels."""
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
            env={**os.environ, **output.ENVIRONMENT},
        )
        shown += output.lasting(done.stdout)
    return shown


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
        small.save(Image.open(drawn), page.parent / target)


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
                case "run" | "fails":
                    shown = run(block, folder)
                case "exec":
                    out = io.StringIO()
                    with contextlib.redirect_stdout(out):
                        exec(compile(block.text, block.where, "exec"), names)
                    shown = out.getvalue()
                case "output":
                    replaced.append((block, output.fitted(shown, block.argument)))
        draw(page, folder)
    for block, new_text in reversed(replaced):
        first = block.line  # the line after the fence, counted from 0
        last = first + (len(block.text.splitlines()) if block.text.strip() else 0)
        lines[first:last] = new_text.splitlines()
    new = "\n".join(lines) + "\n"
    if new != text:
        page.write_text(new, encoding="utf-8")
    return new != text


if __name__ == "__main__":
    for page in [Path(p).resolve() for p in sys.argv[1:]] or pages():
        if refresh(page):
            print(f"refreshed {page.relative_to(DOCS.parent)}")
