"""Files that a scenario names in its texts: found beside it, and read within bounds."""

from __future__ import annotations

import re
from pathlib import Path

FILE = r'("[^"]*"|\S+)'
"""A file's name in a text, in quotes if it has spaces; what is before it is the text's own."""


def read(folder: Path | None, name: str, most: int) -> bytes:
    """All of a file of at most `most` bytes; raises `OSError`, or `ValueError` with the reason."""
    if folder is None:
        raise ValueError("a scenario that is handed on in an address may name no files")
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


def anchored(pattern: re.Pattern[str], text: str, folder: Path) -> str:
    """The text with a file's name that holds from anywhere; the pattern's groups are all of it."""

    def absolute(match: re.Match[str]) -> str:
        path = str((folder / match[2].strip('"')).absolute())
        return match[1] + (f'"{path}"' if re.search(r"\s", path) else path)

    return pattern.sub(absolute, text, count=1)
