"""Changes of values in the text of a scenario, without changes of comments and layout."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Literal

from sojourn import _core
from sojourn.scenario.locate import Path, Place, locate

Option = Literal["rate", "up", "down", "rtt"]

_DELAY = re.compile(r"(?<!\S)delay\s+\S+")
_QUOTED = re.compile(r'"([^"\\\n]*)"')
_NUMBER = re.compile(r"\s*=\s*(\d+)")
_RATE = re.compile(r"(?<![\w.])\d+(?:\.\d+)?[kmg]?bit\b")
_SIZES = ("burst", "cburst", "quantum")
"""Keys with sizes in bytes that are scaled with a rate."""
_FRAME = 1514
"""Smallest scaled size in bytes: a full Ethernet frame."""


@dataclass(frozen=True)
class Proportion:
    """Values of queues that are scaled with a rate: rates, bursts and quanta."""

    of: str
    """Dotted key of the rate, or of a text in which the rate is the first rate."""
    keys: tuple[str, ...]
    """Patterns of the dotted keys whose values are scaled."""
    kept: tuple[str, ...] = ()
    """Patterns of dotted keys that are excepted from `keys`."""

    def covers(self, path: Path) -> bool:
        """Returns whether the value at a path is scaled."""
        key = ".".join(map(str, path))
        return any(fnmatchcase(key, pattern) for pattern in self.keys) and not any(
            fnmatchcase(key, pattern) for pattern in self.kept
        )


def apply(text: str, keys: tuple[str, ...], option: Option, value: str) -> str:
    """Returns `text` with the value of an option at its keys.

    A rate replaces the existing rate. If the rate of a direction has no key, a line is added below
    the link's rate. For `rtt`, the delay in `netem` becomes half of the value.
    """
    if option == "rtt":
        half = _core.format_quantity("time", _core.parse_quantity("time", value) // 2)
        for key in keys:
            before = _value(text, _path(key))
            text = _replaced(text, _path(key), _DELAY.sub(f"delay {half}", before, count=1))
        return text
    for key in keys:
        path = _path(key)
        if path in locate(text):
            text = _replaced(text, path, value)
        elif option != "rate":
            text = _inserted(text, path, value)
    return text


def scaled(text: str, proportion: Proportion, rate: str) -> str:
    """Returns `text` with values that are scaled as the rate changes to `rate`."""
    before = _RATE.search(_value(text, _path(proportion.of)))
    assert before is not None
    ratio = Fraction(_rate(rate), _rate(before[0]))
    for path, place in locate(text).items():
        if not proportion.covers(path):
            continue
        if place.text_line is not None:
            text = _replaced(text, path, _scaled_words(_value(text, path), str(path[-1]), ratio))
        elif path[-1] in _SIZES:
            # The position is determined again, because earlier changes may have moved the value.
            text = _scaled_number(text, locate(text)[path], ratio)
    return text


def _rate(text: str) -> int:
    return _core.parse_quantity("rate", text)


def _scaled_words(words: str, key: str, ratio: Fraction) -> str:
    """Returns the text of a value with scaled rates; for a key in `_SIZES`, the scaled size."""
    if key in _SIZES:
        return _core.format_quantity("size", _bytes(_core.parse_quantity("size", words), ratio))
    return _RATE.sub(
        lambda found: _core.format_quantity("rate", round(_rate(found[0]) * ratio)), words
    )


def _scaled_number(text: str, place: Place, ratio: Fraction) -> str:
    """Returns `text` with the number of a key scaled."""
    lines = text.split("\n")
    line = lines[place.line - 1]
    found = _NUMBER.match(line, place.end_column - 1)
    assert found is not None
    start, end = found.span(1)
    lines[place.line - 1] = f"{line[:start]}{_bytes(int(found[1]), ratio)}{line[end:]}"
    return "\n".join(lines)


def _bytes(size: int, ratio: Fraction) -> int:
    return max(_FRAME, round(size * ratio))


def commands(text: str) -> list[str]:
    """Returns the `sojourn` commands in the comment at the top of a text."""
    found: list[str] = []
    open_ = False
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        words = line[1:].strip()
        said = words.removesuffix("\\").strip()
        if open_:
            found[-1] += f" {said}"
        elif words.startswith("sojourn "):
            found.append(said)
        open_ = words != said
    return found


def renamed(text: str, before: str, after: str) -> str:
    """Returns `text` with another file name in the commands in the comment at the top."""
    quoted = shlex.quote(after)
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if not line.startswith("#"):
            break
        if line.removeprefix("#").strip().startswith("sojourn "):
            lines[number] = re.sub(rf"(?<!\S){re.escape(before)}(?!\S)", lambda _: quoted, line)
    return "\n".join(lines)


def _path(key: str) -> Path:
    return tuple(key.split("."))


def _span(text: str, path: Path) -> tuple[int, int]:
    """Returns the indices of the first character of a text value and after the last."""
    place = locate(text)[path]
    assert place.text_line is not None
    assert place.text_column is not None
    start = sum(len(line) + 1 for line in text.split("\n")[: place.text_line - 1])
    start += place.text_column - 1
    match = _QUOTED.match(text, start - 1)
    assert match is not None
    return match.span(1)


def _value(text: str, path: Path) -> str:
    start, end = _span(text, path)
    return text[start:end]


def _replaced(text: str, path: Path, value: str) -> str:
    start, end = _span(text, path)
    rest = text[end:]
    # A comment after the value stays in its column if possible.
    gap = re.match(r'"( +)#', rest)
    if gap:
        width = max(1, len(gap[1]) - (len(value) - (end - start)))
        rest = '"' + " " * width + rest[gap.end() - 1 :]
    return text[:start] + value + rest


def _inserted(text: str, path: Path, value: str) -> str:
    """Returns the text with a line for `path` below the line with the link's rate."""
    link = (*path[:-2], "rate")
    line = locate(text)[link].line
    lines = text.split("\n")
    lines.insert(line, f'{path[-2]}.{path[-1]} = "{value}"')
    return "\n".join(lines)
