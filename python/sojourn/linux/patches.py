"""Sojourn's patches for the source of a kernel, as unified diffs.

The patches change only User-Mode Linux (arch/um), not the network code. A patch applies only if all
lines around its changes are unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import resources

SEEDED = "seeded-random-numbers"
"""Name of the patch that makes the kernel's random numbers depend on the seed, so that runs repeat.
"""
HZ = "choice-of-hz"
"""Name of the patch that makes HZ configurable."""
NAMES = (SEEDED, HZ)
"""Names of all patches, in the order in which they are applied."""

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@.*\n")


class DoesNotApply(Exception):
    """A file that the patch changes is missing, or its lines around a change differ."""


def text(name: str) -> str:
    """Returns the text of a patch by its name."""
    return (resources.files(__package__) / "data" / f"{name}.patch").read_text("utf-8")


def apply(patch: str, read: Callable[[str], str]) -> dict[str, str]:
    """Returns the texts of the changed files by path.

    `read` returns the text of a file of the source by its path. Changes that the source already has
    are skipped. Raises `DoesNotApply` if the source lacks the lines around a change. The lines may
    have other numbers than in the patch.
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
                continue  # the source already has the change
            if place is None:
                raise DoesNotApply(f"{path} differs from the patch's original near line {line}")
            lines[place : place + len(before)] = after
            moved = place - (line - 1) + len(after) - len(before)
        changed[path] = "".join(lines)
    return changed


def _hunks(text: str) -> list[tuple[int, list[str], list[str]]]:
    """Returns the line number, the old lines and the new lines of each change."""
    found = []
    for match, body in zip(_HUNK.finditer(text), _HUNK.split(text)[2::2], strict=True):
        lines = body.splitlines(keepends=True)
        old = [line[1:] for line in lines if line[0] in " -"]
        new = [line[1:] for line in lines if line[0] in " +"]
        found.append((int(match[1]), old, new))
    return found


def _find(lines: list[str], wanted: list[str], near: int) -> int | None:
    """Returns the index nearest to `near` at which the lines `wanted` begin; `None` if nowhere."""
    last = len(lines) - len(wanted)
    for place in sorted(range(last + 1), key=lambda at: abs(at - near)):
        if lines[place : place + len(wanted)] == wanted:
            return place
    return None
