"""Queues with classes that are written as tables, converted to text in `tc`'s words.

The engine parses the text. Each part of the text has the path of the key that it comes from, so
that the engine's problems are reported at this key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from sojourn import _core
from sojourn.data import Json
from sojourn.scenario.locate import Path

CLASSES = 4096
"""Largest number of classes of a queue."""

TREE = ("discipline", "handle", "classes", "filters")
CLASS = ("parent", "queue", "classes")
CONDITIONS = tuple(_core.names("filter"))
FILTER = (*CONDITIONS, "divisor", "to")

STATEMENTS = ";"
"""The word that the engine reports if an error concerns the whole tree and no single statement."""

_MINOR = r"[0-9a-fA-F]{1,4}"
_HANDLE = re.compile(rf"({_MINOR}):?")
_NAME = re.compile(rf"({_MINOR}):{_MINOR}")
_WORD = re.compile(r"\w+")

IMPLICIT = ("prio", "ets", "mq")
"""Disciplines whose classes exist without a statement of their own."""

_CLASSES = {
    "type": "object",
    "description": "Classes by their names, such as 1:10.",
    "additionalProperties": {
        "type": "object",
        "description": "A class: parameters of its discipline, and the keys `parent`, `queue` "
        "and `classes`.",
        "properties": {
            "parent": {"type": "string", "description": "Name of the parent class."},
            "queue": {
                "type": ["string", "object"],
                "description": "Queue of the class, a text or a table.",
            },
            "classes": {"type": "object", "description": "Child classes by their names."},
        },
        "additionalProperties": {"type": ["string", "integer"]},
    },
}
SCHEMA = {
    "type": "object",
    "description": "A queue discipline with classes and filters.",
    "properties": {
        "discipline": {
            "type": "string",
            "description": "The discipline's own words in tc syntax.",
            "examples": ["htb default 20"],
        },
        "handle": {
            "type": "string",
            "description": "Handle of the discipline, which is the "
            "first part of the names of its classes.",
        },
        "classes": _CLASSES,
        "filters": {
            "type": "array",
            "description": "Filters, in the order of evaluation.",
            "items": {
                "anyOf": [
                    {"type": "string", "examples": ["dscp EF to 1:10"]},
                    {
                        "type": "object",
                        "properties": {key: {"type": ["string", "integer"]} for key in FILTER},
                        "required": ["to"],
                        "additionalProperties": False,
                    },
                ]
            },
        },
    },
    "required": ["discipline"],
    "additionalProperties": False,
}
"""JSON Schema of a queue as a table, for editors."""


class TreeProblem(ValueError):
    """A mistake in a queue's table, at the path of a key."""

    def __init__(self, path: Path, message: str, nearest: str | None = None) -> None:
        super().__init__(message)
        self.path, self.message, self.nearest = path, message, nearest


@dataclass(frozen=True)
class Part:
    """A range of the text, and the path of the key that it comes from."""

    start: int
    end: int
    path: Path
    is_whole: bool
    """Whether the range is the complete value of the key."""


@dataclass
class Written:
    """The text of a queue with classes, with the origin of its parts."""

    text: str = ""
    parts: list[Part] = field(default_factory=list)
    classes: int = 0

    def add(self, text: str, path: Path, *, is_whole: bool = False) -> None:
        """Appends words after a space; they come from the key at `path`."""
        if self.text and not self.text.endswith(" "):
            self.text += " "
        start = len(self.text)
        self.text += text
        self.parts.append(Part(start, len(self.text), path, is_whole))

    def begin(self, text: str, path: Path) -> None:
        """Begins a new statement with these words."""
        self.text += ";"
        self.add(text, path)

    def place(self, start: int, end: int) -> tuple[Path, int | None, int | None]:
        """Returns the path of the key from which a part of the text comes.

        Also returns the part's range in the key's value; None if the text does not copy this value.
        """
        for part in self.parts:
            if part.start <= start < part.end or start == part.end == len(self.text):
                if part.is_whole:
                    return part.path, start - part.start, min(end, part.end) - part.start
                return part.path, None, None
        return (), None, None


def written(table: Mapping[str, Json]) -> Written:
    """Returns the text that is equivalent to a table; raises `TreeProblem`."""
    text = Written()
    _tree(text, table, (), None)
    return text


def _tree(text: Written, table: Mapping[str, Json], at: Path, parent: str | None) -> None:
    """Writes a discipline inside the class `parent`, which is None for the root discipline."""
    _known(table, TREE, at)
    name = _text(table, "discipline", at, 'the discipline\'s own words, such as "htb default 20"')
    classes = _table(table, "classes", at)
    own = name.split()[0]
    if own in disciplines() and not disciplines()[own]:
        for key in ("classes", "filters"):
            if key in table:
                having = ", ".join(sorted(one for one, has in disciplines().items() if has))
                raise TreeProblem((*at, key), f"`{own}` has no {key}; these have: {having}")
    handle = _handle(table, classes, at, None if parent else "1")
    if parent is not None:
        text.begin(f"qdisc parent {parent}", at)
        if handle is not None:
            text.add(f"handle {handle}:", (*at, "handle"))
    text.add(name, (*at, "discipline"), is_whole=True)
    if parent is None and handle != "1":
        text.add(f"handle {handle}:", (*at, "handle"))
    is_implicit = own in IMPLICIT
    queues: list[tuple[str, Json, Path]] = []
    _classes(text, classes, (*at, "classes"), f"{handle}:", is_implicit, queues)
    for class_, queue, path in queues:
        if isinstance(queue, Mapping):
            _tree(text, queue, path, class_)
        else:
            text.begin(f"qdisc parent {class_}", path)
            text.add(_single(queue, path), path, is_whole=True)
    filters = table.get("filters", [])
    if not isinstance(filters, list):
        raise TreeProblem((*at, "filters"), "must be a list of filters, such as `dscp EF to 1:10`")
    for n, filter_ in enumerate(filters):
        _filter(text, filter_, (*at, "filters", n), f"{handle}:")


def _classes(
    text: Written,
    classes: Mapping[str, Json],
    at: Path,
    parent: str,
    is_implicit: bool,
    queues: list[tuple[str, Json, Path]],
) -> None:
    """Writes classes and their child classes; adds the classes' queues to `queues`."""
    for name, class_ in classes.items():
        path: Path = (*at, name)
        _major(name, path)
        if not isinstance(class_, Mapping):
            raise TreeProblem(path, "must be a table of parameters of the class, such as `rate`")
        text.classes += 1
        if text.classes > CLASSES:
            raise TreeProblem(path, f"the queue has more than {CLASSES} classes")
        words = {key: value for key, value in class_.items() if key not in CLASS}
        if words or not is_implicit:
            text.begin(f"class {name}", path)
            if "parent" in class_:
                above = _text(class_, "parent", path, "the name of a class, such as 1:1")
                text.add(f"parent {above}", (*path, "parent"))
            else:
                text.add(f"parent {parent}", path)
            for key, value in words.items():
                if not _WORD.fullmatch(key):
                    raise TreeProblem(
                        (*path, key), "must be a parameter of the class, such as `rate`"
                    )
                text.add(key, (*path, key))
                text.add(_value(value, (*path, key)), (*path, key), is_whole=True)
        if "queue" in class_:
            queues.append((name, class_["queue"], (*path, "queue")))
        within = _table(class_, "classes", path)
        _classes(text, within, (*path, "classes"), name, is_implicit, queues)


def _filter(text: Written, filter_: Json, at: Path, parent: str) -> None:
    text.begin(f"filter parent {parent}", at)
    if isinstance(filter_, str):
        text.add(_single(filter_, at), at, is_whole=True)
        return
    if not isinstance(filter_, Mapping):
        raise TreeProblem(
            at, 'needs a filter, such as "dscp EF to 1:10" or { dscp = "EF", to = "1:10" }'
        )
    _known(filter_, FILTER, at)
    if "to" not in filter_:
        raise TreeProblem(
            at, '`to` is missing: the class that receives the packets, such as "1:10"'
        )
    conditions = [key for key in CONDITIONS if key in filter_]
    for key in conditions:
        text.add(key, (*at, key))
        text.add(_value(filter_[key], (*at, key)), (*at, key), is_whole=True)
    if "divisor" in filter_:
        text.add("flow divisor", (*at, "divisor"))
        text.add(_value(filter_["divisor"], (*at, "divisor")), (*at, "divisor"), is_whole=True)
    elif not conditions:
        text.add("all", at)
    text.add("to", (*at, "to"))
    text.add(_value(filter_["to"], (*at, "to")), (*at, "to"), is_whole=True)


def _handle(
    table: Mapping[str, Json], classes: Mapping[str, Json], at: Path, default: str | None
) -> str | None:
    """Returns the handle of a discipline: from the table, or from the name of its first class.

    Without both, returns `default`.
    """
    if "handle" in table:
        given = _text(table, "handle", at, what := "the handle of the discipline, such as 1:")
        if found := _HANDLE.fullmatch(given.strip()):
            return found[1]
        raise TreeProblem((*at, "handle"), f"needs {what}")
    return next((_major(name, (*at, "classes", name)) for name in classes), default)


def _major(name: str, at: Path) -> str:
    """Returns the handle at the beginning of a class's name; raises `TreeProblem`."""
    if found := _NAME.fullmatch(name):
        return found[1]
    raise TreeProblem(at, "the key must be the name of a class, such as 1:10")


@cache
def disciplines() -> dict[str, bool]:
    """Returns whether each discipline has classes, by name."""
    tables = json.loads(_core.describe())["queue"]
    return {
        table["name"]: any(word["name"] == "handle" for word in table["words"]) for table in tables
    }


def _known(table: Mapping[str, Json], keys: tuple[str, ...], at: Path) -> None:
    for key in table:
        if key not in keys:
            nearest = _core.nearest(key, list(keys))
            allowed = "" if nearest else f"; allowed here: {', '.join(keys)}"
            raise TreeProblem((*at, key), f"unknown key `{key}`{allowed}", nearest)


def _table(table: Mapping[str, Json], key: str, at: Path) -> Mapping[str, Json]:
    value = table.get(key, {})
    if not isinstance(value, Mapping):
        raise TreeProblem((*at, key), "needs a table of classes, by their names, such as 1:10")
    return value


def _text(table: Mapping[str, Json], key: str, at: Path, what: str) -> str:
    if key not in table:
        raise TreeProblem(at, f"`{key}` is missing: {what}")
    value = table[key]
    if not isinstance(value, str) or not value.strip():
        raise TreeProblem((*at, key), f"needs {what}")
    return _single(value, (*at, key))


def _single(value: Json, at: Path) -> str:
    """Returns a text that is a single statement; raises `TreeProblem`."""
    if not isinstance(value, str) or not value.strip():
        raise TreeProblem(at, "needs a text, or a table with `discipline` and `classes`")
    if ";" in value or "\n" in value:
        raise TreeProblem(at, "contains several statements: use tables in place of the text")
    return value


def _value(value: Json, at: Path) -> str:
    """Returns the value of a parameter as text; raises `TreeProblem`."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise TreeProblem(at, "needs a text or a whole number")
    return _single(str(value), at)
