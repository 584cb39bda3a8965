"""Files that a scenario names: found relative to it, and read with a size limit."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

Read = Callable[[str, int], bytes]
"""Reads a file by name, up to a number of bytes; raises `OSError` or `ValueError`."""

FILE = r'("[^"]*"|\S+)'
"""A file's name in a text, quoted if it contains spaces."""


def read(folder: Path, name: str, most: int) -> bytes:
    """Returns the content of a file of at most `most` bytes; raises `OSError` or `ValueError`."""
    path = folder / name
    if path.exists() and not path.is_file():
        raise ValueError("not a regular file")
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"larger than {most // 1024**2} MiB")
    return data


def place(pattern: re.Pattern[str], text: str) -> tuple[int, int]:
    """Returns the range of the file's name in a text: the pattern's second group."""
    match = pattern.search(text)
    return match.span(2) if match else (0, len(text))


def renamed(pattern: re.Pattern[str], text: str, rename: Callable[[str], str]) -> str:
    """Returns the text with its file renamed; the pattern's groups cover the whole match."""

    def other(match: re.Match[str]) -> str:
        name = rename(match[2].strip('"'))
        return match[1] + (f'"{name}"' if re.search(r"\s", name) else name)

    return pattern.sub(other, text, count=1)
