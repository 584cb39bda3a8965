"""Places of the keys in a TOML text.

`tomllib` checks and reads a text but does not report places. This scanner reads a text that
`tomllib` has accepted and records the place of every key and value.
"""

from __future__ import annotations

import re
import tomllib
from contextlib import suppress
from dataclasses import dataclass

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Place of a key or array element in a text; lines and columns count from 1."""

    line: int
    column: int
    end_column: int
    text_line: int | None = None
    """Line of the first character of a string value.

    None if the value is no string, has several lines or has escape sequences.
    """
    text_column: int | None = None


_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SPACE = re.compile(r"[ \t]*")
_FILLER = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_SCALAR = re.compile(r"[^,\]\}\n#]*")
_BASIC = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_LITERAL = re.compile(r"'([^'\n]*)'")
_MULTI_BASIC = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}', re.DOTALL)
_MULTI_LITERAL = re.compile(r"'''.*?'{3,5}", re.DOTALL)


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.places: dict[Path, Place] = {}
        self.arrays: dict[Path, int] = {}
        self.starts = [0] + [m.end() for m in re.finditer("\n", text)]
        self.row = 0

    def line_column(self, at: int) -> tuple[int, int]:
        # Positions mostly grow during a scan, so the search begins at the line found last.
        while self.row + 1 < len(self.starts) and self.starts[self.row + 1] <= at:
            self.row += 1
        while self.row > 0 and self.starts[self.row] > at:
            self.row -= 1
        return self.row + 1, at - self.starts[self.row] + 1

    def skip(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()
        return match

    def here(self, character: str) -> bool:
        return self.text.startswith(character, self.at)

    def key(self) -> tuple[list[str], int, int]:
        """Returns the parts of a dotted key, and its start and end in the text."""
        start = self.at
        parts: list[str] = []
        while True:
            self.skip(_SPACE)
            if match := self.skip(_BASIC):
                parts.append(_unescape(match.group(1)))
            elif match := self.skip(_LITERAL):
                parts.append(match.group(1))
            elif match := self.skip(_BARE):
                parts.append(match.group())
            else:
                raise _Lost
            end = self.at
            self.skip(_SPACE)
            if not self.here("."):
                return parts, start, end
            self.at += 1

    def header(self) -> Path:
        double = self.here("[[")
        self.at += 2 if double else 1
        self.skip(_SPACE)
        parts, start, end = self.key()
        self.at += 2 if double else 1
        path: Path = ()
        for i, part in enumerate(parts):
            path = (*path, part)
            if double and i == len(parts) - 1:
                self.arrays[path] = self.arrays.get(path, -1) + 1
            self.note(path, start, end)
            if path in self.arrays:
                path = (*path, self.arrays[path])
        self.note(path, start, end)
        return path

    def note(self, path: Path, start: int, end: int) -> None:
        if path not in self.places:
            line, column = self.line_column(start)
            self.places[path] = Place(line, column, column + end - start)

    def pair(self, base: Path) -> None:
        parts, start, end = self.key()
        self.at += 1  # skips the equals sign
        self.skip(_SPACE)
        for i in range(1, len(parts) + 1):
            self.note((*base, *parts[:i]), start, end)
        self.value((*base, *parts))

    def value(self, path: Path) -> None:
        if self.skip(_MULTI_BASIC) or self.skip(_MULTI_LITERAL):
            return
        start = self.at
        if match := self.skip(_BASIC) or self.skip(_LITERAL):
            if "\\" not in match.group(1):
                self.text_at(path, start + 1)
        elif self.here("["):
            self.array(path)
        elif self.here("{"):
            self.inline(path)
        else:
            self.skip(_SCALAR)

    def text_at(self, path: Path, at: int) -> None:
        place = self.places.get(path)
        if place is not None:
            line, column = self.line_column(at)
            self.places[path] = Place(place.line, place.column, place.end_column, line, column)

    def array(self, path: Path) -> None:
        self.at += 1
        index = 0
        while True:
            self.skip(_FILLER)
            if self.here("]"):
                self.at += 1
                return
            self.note((*path, index), self.at, self.at + 1)
            self.value((*path, index))
            index += 1
            self.skip(_FILLER)
            if self.here(","):
                self.at += 1
            elif not self.here("]"):
                raise _Lost

    def inline(self, path: Path) -> None:
        self.at += 1
        while True:
            self.skip(_FILLER)
            if self.here("}"):
                self.at += 1
                return
            self.pair(path)
            self.skip(_FILLER)
            if self.here(","):
                self.at += 1
            elif not self.here("}"):
                raise _Lost

    def scan(self) -> None:
        base: Path = ()
        while True:
            self.skip(_FILLER)
            if self.at >= len(self.text):
                return
            if self.here("["):
                base = self.header()
            else:
                self.pair(base)


class _Lost(Exception):
    """Raised at a text that the scanner does not understand; recorded places remain valid."""


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    return str(tomllib.loads(f'x = "{text}"')["x"])


def locate(text: str) -> dict[Path, Place]:
    """Returns the places of all keys and array elements of `text`, a valid TOML text."""
    scanner = _Scanner(text.replace("\r\n", "\n"))
    with suppress(_Lost, RecursionError):
        scanner.scan()
    return scanner.places
