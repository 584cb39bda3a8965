"""The text of a scenario, and the places of its problems."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, time
from functools import cached_property
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Unpack

from sojourn.data import Object
from sojourn.own import defined
from sojourn.own.errors import OwnError
from sojourn.scenario import files, limits
from sojourn.scenario.errors import Details, Problem, ScenarioError
from sojourn.scenario.locate import Path, Place, locate

if TYPE_CHECKING:
    from sojourn.scenario.installed import Installed

# `tomllib` takes time quadratic in the number of parts of a dotted key.
_PART = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*"""
_LONG_KEY = re.compile(rf"(?<![\w-])(?:{_PART}){{{limits.KEY_PARTS}}}")


def dotted(path: Path) -> str:
    """Returns a path as a user writes it, `links.uplink.rate`; list elements count from 0."""
    return ".".join(str(part) for part in path)


@dataclass(frozen=True)
class Source:
    """Origin of a scenario's data; without a text, problems name only the key."""

    file: str | None = None
    text: str | None = None
    changed: tuple[Path, ...] = field(default=())
    """Paths that `replace` has set: their values are not those of the text."""
    handed: Mapping[str, bytes] | None = None
    """The only files that the scenario may use, by name; None allows files of this machine."""
    installed: Mapping[str, Installed] = field(default_factory=dict)
    """Devices in files of `tc` whose queues the links have, by the link's name."""
    has_study: bool = False
    """Whether the text has a table `[study]`, which is not part of the scenario."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Real IPv4 addresses of nodes, by name."""

    @property
    def folder(self) -> FilePath:
        """Folder to which file names in the scenario are relative."""
        return FilePath(self.file).parent if self.file else FilePath()

    def read(self, name: str, most: int) -> bytes:
        """Returns the content of a file of at most `most` bytes that the scenario names.

        Raises `OSError` or `ValueError` if the file cannot be read, is too large or is not allowed.
        """
        if self.handed is None:
            return files.read(self.folder, name, most)
        if name not in self.handed:
            exceptions = f" except {', '.join(self.handed)}" if self.handed else ""
            raise ValueError(
                "a scenario from an address or from plain data may use no files"
                f"{exceptions}: use the scenario's own file instead"
            )
        return self.handed[name]

    @cached_property
    def _places(self) -> dict[Path, Place]:
        return {} if self.text is None else locate(self.text)

    @cached_property
    def _lines(self) -> list[str]:
        return [] if self.text is None else self.text.replace("\r\n", "\n").split("\n")

    def problem(
        self,
        path: Path,
        message: str,
        *,
        start: int | None = None,
        end: int | None = None,
        **details: Unpack[Details],
    ) -> Problem:
        """Returns a problem of the value at `path`; `start` and `end` are positions in its text."""
        if any(path[: len(c)] == c for c in self.changed):
            return Problem(message, dotted(path), None, **details)
        known, place = path, self._places.get(path)
        while place is None and known:
            known = known[:-1]
            place = self._places.get(known)
        if place is None:
            return Problem(message, dotted(path), self.file, **details)
        if len(known) == len(path) - 1 and isinstance(path[-1], int):
            path = known  # the text has a single value in place of a list
        line, column, end_column = place.line, place.column, place.end_column
        if start is not None and place.text_line is not None and place.text_column is not None:
            line = place.text_line
            column = place.text_column + start
            end_column = place.text_column + max(start + 1, end or 0)
        return Problem(
            message,
            dotted(path),
            self.file,
            line,
            column,
            end_column,
            self._lines[line - 1] if line <= len(self._lines) else None,
            **details,
        )


def read_file(path: str | FilePath) -> tuple[str, str]:
    """Returns the file's name in messages, and its text; raises `ScenarioError`."""
    name = str(path)

    def refuse(message: str) -> ScenarioError:
        return ScenarioError([Problem(message, file=name)])

    try:
        with FilePath(path).open("rb") as file:
            raw = file.read(limits.FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise refuse(f"cannot be read: {reason}") from None
    if len(raw) > limits.FILE_BYTES:
        raise refuse(f"is larger than {limits.FILE_BYTES // 1024} KiB, so it is not a scenario")
    try:
        return name, raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ScenarioError([Problem("not UTF-8 text", file=name, line=line)]) from None


def parse(text: str, file: str | None) -> tuple[Object, Source]:
    """Returns the data in a TOML text, and their source; raises `ScenarioError`."""

    def refuse(message: str, line: int | None = None, column: int | None = None) -> ScenarioError:
        lines = text.split("\n")
        source = lines[line - 1].rstrip("\r") if line and line <= len(lines) else None
        return ScenarioError([Problem(message, file=file, line=line, column=column, source=source)])

    if len(text) > limits.FILE_BYTES:
        raise refuse(f"is larger than {limits.FILE_BYTES // 1024} KiB, so it is not a scenario")
    for number, content in enumerate(text.split("\n"), 1):
        if len(content) > limits.LINE_CHARACTERS:
            raise refuse(f"line {number} is longer than {limits.LINE_CHARACTERS} characters")
    if _LONG_KEY.search(text):
        raise refuse(f"a dotted key has {limits.KEY_PARTS} or more parts: use tables instead")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, line, column = _toml_error(str(error), text)
        raise refuse(f"not valid TOML: {message}", line, column) from None
    except RecursionError:
        raise refuse("tables or lists are nested too deeply") from None
    except ValueError as error:  # a number or date is outside Python's range
        raise refuse(f"not valid TOML: {error}") from None
    source = Source(file, text)
    return plain(data, source), source


def _toml_error(message: str, text: str) -> tuple[str, int | None, int | None]:
    """Splits a message of `tomllib` such as "X (at line 3, column 8)" into text, line and column.

    Line and column are None if the message has no place.
    """
    head, _, tail = message.rpartition(" (at ")
    if not head:
        return message, None, None
    if tail.startswith("line "):
        line, column = (int(part.split()[-1]) for part in tail.rstrip(")").split(","))
        before = text.split("\n")[line - 1][: column - 1]
        quote = before.rfind('"' if '"' in before else "'") + 1
        if head == r"Illegal character '\n'" and quote:
            return f"the text that begins at column {quote} has no closing quote", line, quote
        return head, line, column
    if head.startswith(("Unterminated string", "Expected '")):
        head = f"{head[0].lower()}{head[1:]}, perhaps of a text without a closing quote"
    return f"{head} at the end of the text", text.count("\n") + 1, None


def plain(data: object, source: Source) -> Object:
    """Returns a copy of `data` of dictionaries, lists, texts, numbers and booleans.

    Raises `ScenarioError` for other types and for data above the limits.
    """
    if not isinstance(data, Mapping):
        raise ScenarioError([source.problem((), "a scenario must be a table of keys and values")])
    if _depth_exceeds(data, limits.DEPTH):
        message = f"tables or lists are nested more than {limits.DEPTH} levels deep"
        raise ScenarioError([source.problem((), message)])
    copier = _Copier(source)
    result: Object = copier.copy(data, ())
    if copier.budget < 0:
        copier.problems.append(
            source.problem((), f"the scenario has more than {limits.VALUES} values")
        )
    if copier.problems:
        raise ScenarioError(copier.problems)
    return result


class _Copier:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.problems: list[Problem] = []
        self.budget = limits.VALUES

    def complain(self, path: Path, message: str) -> None:
        self.problems.append(self.source.problem(path, message))

    def copy(self, value: object, path: Path) -> Any:
        self.budget -= 1
        if self.budget < 0:
            return None
        match value:
            case None | bool():
                return value
            case str():
                return self.text(value, path)
            case int() | float():
                return self.number(value, path)
            case Mapping():
                return {
                    self.text(str(k), path): self.copy(v, (*path, str(k)))
                    for k, v in value.items()
                    if v is not None
                }
            case list() | tuple():
                return [self.copy(v, (*path, i)) for i, v in enumerate(value)]
            case type():
                try:
                    return defined.text_of(value)
                except OwnError as error:
                    self.complain(path, str(error))
                    return None
            case date() | time():
                message = (
                    'dates and times of day are not allowed: write a length of time, such as "5s"'
                )
                self.complain(path, message)
                return None
            case _:
                message = (
                    f"a value of type {type(value).__name__} is not allowed: write a text, a "
                    "number, true or false, a list or a table"
                )
                self.complain(path, message)
                return None

    def number(self, value: float, path: Path) -> int | float | None:
        if isinstance(value, int) and abs(value) < 2**63:
            return int(value)
        if isinstance(value, int):
            self.complain(path, "the number must be below 2^63 in magnitude")
        elif math.isfinite(value):
            return float(value)
        else:
            self.complain(path, f"{value} is not a finite number")
        return None

    def text(self, value: str, path: Path) -> str:
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            self.complain(path, "the text contains a surrogate, which is half of a character")
            return ""
        return str(value)


def _depth_exceeds(data: object, most: int) -> bool:
    level: list[object] = [data]
    for _ in range(most + 1):
        below: list[object] = []
        for value in level:
            if isinstance(value, Mapping):
                below.extend(value.values())
            elif isinstance(value, list | tuple):
                below.extend(value)
        if not below:
            return False
        level = below
    return True
