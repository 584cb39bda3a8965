"""Outputs of programs in the form in which pages show them."""

from __future__ import annotations

import re
import textwrap

WIDTH = 100
TERMINAL = 160
"""Columns of the terminal in which the programs run."""
ENVIRONMENT = {"NO_COLOR": "1", "COLUMNS": str(TERMINAL)}

# A slow machine says how far it is.
_PROGRESS = re.compile(
    r"^(working for \d+ s"
    r"|[^:\n]*: (begun|\d+/\d+ \w+.*|\d+ runs are made; .*|setting \d+ of .*))\n",
    re.MULTILINE,
)
_TABLE = re.compile(r"─|\S\s{3}")
# Between columns, not within a number with its interval.
_GAP = re.compile(r"(?<=[^\s±])\s{2,}(?![\s±])")
_TIMES = re.compile(r"\b[\d.]+ (s|min|h)\b")


def lasting(text: str) -> str:
    """The text without what a slow machine says of its progress."""
    return _PROGRESS.sub("", text)


def paragraphs(text: str) -> list[str]:
    """The lines of a text, in which the lines that the terminal wrapped are one line again."""
    lines: list[str] = []
    last = ""
    for line in map(str.rstrip, text.splitlines()):
        word = line.split(" ", 1)[0]
        # Warnings are not wrapped, since they do not go to the terminal.
        wrapped = len(last) <= TERMINAL < len(last) + 1 + len(word)
        if last and word and wrapped and not _TABLE.search(last):
            lines[-1] += f" {line}"
        else:
            lines.append(line)
        last = line
    return lines


def fitted(text: str, size: str) -> str:
    """The text within the columns and lines that `size` asks for.

    `[WIDTH] [LINES] [from TEXT]`: lines of at most WIDTH characters, at most LINES of them, from
    the first line that contains TEXT. A line `…` replaces the lines left out before or behind.
    """
    words, _, first = size.partition("from ")
    numbers = [int(n) for n in words.split()]
    width = numbers[0] if numbers else WIDTH
    most = numbers[1] if len(numbers) > 1 else None
    lines: list[str] = []
    for line in paragraphs(text):
        if len(line) <= width:
            lines.append(line)
        elif _TABLE.search(line):
            # A table: what columns fit.
            ends = [gap.start() for gap in _GAP.finditer(line) if gap.start() < width - 2]
            lines.append(f"{line[: ends[-1] if ends else width - 2]} …")
        else:
            lines += textwrap.wrap(line, width, break_on_hyphens=False)
    while lines and not lines[0]:
        lines.pop(0)
    while lines and not lines[-1]:
        lines.pop()
    if first:
        start = next((n for n, line in enumerate(lines) if first in line), 0)
        lines = [*(["…"] if start else []), *lines[start:]]
    if most is not None and len(lines) > most:
        lines = [*lines[:most], "…"]
    return "\n".join(lines)


def differences(documented: str, real: str, size: str, whole: bool) -> list[str]:
    """Documented lines that are not what is printed, where `real` is from the same commands.

    If they were made shorter (not `whole`) numbers differ, and ranks: only lines without numbers,
    the heads of tables among them, must be there.
    """
    if whole:
        shown, found = (_plain(t) for t in (documented, fitted(real, size)))
        return [] if shown == found else [line for line in shown if line not in found] or found
    printed = {" ".join(line.split()) for line in real.splitlines()}
    return [line for line in _plain(documented) if _stands(line) and not _among(line, printed)]


def _plain(text: str) -> list[str]:
    """Returns lines with single spaces and without durations, which differ from run to run."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return [_TIMES.sub("0 s", line) for line in lines if line]


def _stands(line: str) -> bool:
    """Whether a line does not depend on what came out."""
    return not re.search(r"\d|─|\.$", line) and line != "…"


def _among(line: str, printed: set[str]) -> bool:
    start = line.removesuffix(" …")
    return any(other == line or (start != line and other.startswith(start)) for other in printed)
