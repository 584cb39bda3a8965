"""Our changes to a kernel's source, as unified diffs that apply exactly or not at all.

They change only the part of User-Mode Linux (arch/um), not the network code.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import resources

SEEDED = "seeded-random-numbers"
"""The patch that makes runs repeatable."""
HZ = "choice-of-hz"
"""The patch that makes HZ configurable."""
NAMES = (SEEDED, HZ)

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@.*\n")


class DoesNotApply(Exception):
    """The file is missing, or differs from the patch's original."""


def text(name: str) -> str:
    """Returns a patch."""
    return (resources.files(__package__) / "data" / f"{name}.patch").read_text("utf-8")


def apply(patch: str, read: Callable[[str], str]) -> dict[str, str]:
    """Returns the changed files by path; `read` returns the text of a file of the source.

    Existing changes are not repeated. Raises `DoesNotApply` unless the source has all lines around
    each change, possibly at other line numbers.
    """
    changed = {}
    for part in re.split(r"^--- a/", patch, flags=re.MULTILINE)[1:]:
        path, _, rest = part.partition("\n")
        _, _, hunks = rest.partition("\n")
        try:
            lines = read(path).splitlines(keepends=True)
        except (OSError, UnicodeDecodeError) as error:
            raise DoesNotApply(f"{path} cannot be read: {error}") from None
        moved = 0
        for line, before, after in _hunks(hunks):
            place = _find(lines, before, line - 1 + moved)
            if place is None and _find(lines, after, line - 1 + moved) is not None:
                continue  # the source has the change already
            if place is None:
                raise DoesNotApply(f"{path} differs from the patch's original near line {line}")
            lines[place : place + len(before)] = after
            moved = place - (line - 1) + len(after) - len(before)
        changed[path] = "".join(lines)
    return changed


def _hunks(text: str) -> list[tuple[int, list[str], list[str]]]:
    """Returns the first line of each change, its old lines and its new ones."""
    found = []
    for match, body in zip(_HUNK.finditer(text), _HUNK.split(text)[2::2], strict=True):
        lines = body.splitlines(keepends=True)
        old = [line[1:] for line in lines if line[0] in " -"]
        new = [line[1:] for line in lines if line[0] in " +"]
        found.append((int(match[1]), old, new))
    return found


def _find(lines: list[str], wanted: list[str], near: int) -> int | None:
    """Returns the index of the lines, as near as possible to the expected one."""
    last = len(lines) - len(wanted)
    for place in sorted(range(last + 1), key=lambda at: abs(at - near)):
        if lines[place : place + len(wanted)] == wanted:
            return place
    return None
