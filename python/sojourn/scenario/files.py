"""Files that a scenario names in its texts: found beside it, and read within bounds."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

Read = Callable[[str, int], bytes]
"""Gives all of a file by name, of at most so many bytes; raises `OSError` or `ValueError`."""

FILE = r'("[^"]*"|\S+)'
"""A file's name in a text, in quotes if it has spaces; what is before it is the text's own."""


def read(folder: Path, name: str, most: int) -> bytes:
    """All of a file of at most `most` bytes; raises `OSError`, or `ValueError` with the reason."""
    path = folder / name
    if path.exists() and not path.is_file():
        raise ValueError("no plain file")
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"larger than {most // 1024**2} MiB")
    return data


def place(pattern: re.Pattern[str], text: str) -> tuple[int, int]:
    """Where in a text the file's name stands, the pattern's second group."""
    match = pattern.search(text)
    return match.span(2) if match else (0, len(text))


def renamed(pattern: re.Pattern[str], text: str, rename: Callable[[str], str]) -> str:
    """The text with another name for its file; the pattern's groups are all of it."""

    def other(match: re.Match[str]) -> str:
        name = rename(match[2].strip('"'))
        return match[1] + (f'"{name}"' if re.search(r"\s", name) else name)

    return pattern.sub(other, text, count=1)
