"""Files that a scenario names, relative to its folder and limited in size."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from pathlib import Path

Read = Callable[[str, int], bytes]
"""Function that returns a file's content, given its name and largest size in bytes.

Raises `OSError` or `ValueError` if the file cannot be read or is too large.
"""

FILE = r'("[^"]*"|\S+)'
"""Pattern of a file's name in a text; a name with spaces is quoted."""


def read(folder: Path, name: str, most: int) -> bytes:
    """Returns the content of a file of at most `most` bytes, without a byte order mark of UTF-8.

    Raises `OSError` or `ValueError`.
    """
    path = folder / name
    if path.exists() and not path.is_file():
        raise ValueError("not a regular file")
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"larger than {most // 1024**2} MiB")
    return data.removeprefix(codecs.BOM_UTF8)


def place(pattern: re.Pattern[str], text: str) -> tuple[int, int]:
    """Returns the start and end of a file's name in a text: group 2 of the pattern.

    Without a match, returns the range of the whole text.
    """
    match = pattern.search(text)
    return match.span(2) if match else (0, len(text))


def renamed(pattern: re.Pattern[str], text: str, rename: Callable[[str], str]) -> str:
    """Returns the text with its file renamed.

    Group 1 of the pattern is the text before the name, group 2 the name.
    """

    def other(match: re.Match[str]) -> str:
        name = rename(match[2].strip('"'))
        return match[1] + (f'"{name}"' if re.search(r"\s", name) else name)

    return pattern.sub(other, text, count=1)
