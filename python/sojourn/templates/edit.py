"""Changes to texts of scenarios in place, which keep comments."""

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
"""Keys with bytes that follow a rate."""
_FRAME = 1514
"""The least of these bytes: a full frame."""


@dataclass(frozen=True)
class Proportion:
    """Values of queues that keep their proportion to a rate: rates, bursts and quanta."""

    of: str
    """The dotted key of that rate, or of a text that has it first."""
    keys: tuple[str, ...]
    """Patterns of the dotted keys that change."""
    kept: tuple[str, ...] = ()
    """Patterns of those among them that stay."""

    def covers(self, path: Path) -> bool:
        """Return whether the value at a path changes."""
        key = ".".join(map(str, path))
        return any(fnmatchcase(key, pattern) for pattern in self.keys) and not any(
            fnmatchcase(key, pattern) for pattern in self.kept
        )


def apply(text: str, keys: tuple[str, ...], option: Option, value: str) -> str:
    """Returns `text` with an option's value at its keys.

    A rate replaces the existing one; a rate for one direction without its own key is added below
    the link's. In `netem` only the delay changes, to half the round trip.
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
    """Return `text` with its values in the same proportion to `rate` as to the rate that it has."""
    before = _RATE.search(_value(text, _path(proportion.of)))
    assert before is not None
    ratio = Fraction(_rate(rate), _rate(before[0]))
    for path, place in locate(text).items():
        if not proportion.covers(path):
            continue
        if place.text_line is not None:
            text = _replaced(text, path, _scaled_words(_value(text, path), str(path[-1]), ratio))
        elif path[-1] in _SIZES:
            # An earlier value may have moved it.
            text = _scaled_number(text, locate(text)[path], ratio)
    return text


def _rate(text: str) -> int:
    return _core.parse_quantity("rate", text)


def _scaled_words(words: str, key: str, ratio: Fraction) -> str:
    """Return the words of a value with its rates scaled; of a size, the size."""
    if key in _SIZES:
        return _core.format_quantity("size", _bytes(_core.parse_quantity("size", words), ratio))
    return _RATE.sub(
        lambda found: _core.format_quantity("rate", round(_rate(found[0]) * ratio)), words
    )


def _scaled_number(text: str, place: Place, ratio: Fraction) -> str:
    """Returns `text` with the number on a key's line scaled."""
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
    """Returns the `sojourn` commands in the comment at a text's top, one a line."""
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
    """Returns `text` with another file name in the comment at the top."""
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
    """Returns the range of the value at `path`."""
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
    # The rest of the line keeps its position if possible.
    gap = re.match(r'"( +)#', rest)
    if gap:
        width = max(1, len(gap[1]) - (len(value) - (end - start)))
        rest = '"' + " " * width + rest[gap.end() - 1 :]
    return text[:start] + value + rest


def _inserted(text: str, path: Path, value: str) -> str:
    """Returns the text with a line for `path`, such as `links.l.reverse.rate`, below `rate`."""
    link = (*path[:-2], "rate")
    line = locate(text)[link].line
    lines = text.split("\n")
    lines.insert(line, f'{path[-2]}.{path[-1]} = "{value}"')
    return "\n".join(lines)
