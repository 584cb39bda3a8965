"""Declaration of a tool's settings, each once.

The settings of a tool are the fields of a class with `settings`, a frozen dataclass. The options of
its command, the call from Python and the argument of the engine follow from them: name, type,
default, and as help the field's docstring. An `Option` in the field's `Annotated` type adds unit,
range and placeholder. A field may itself be such a class.
"""

from __future__ import annotations

import ast
import linecache
import re
import sys
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, replace
from itertools import pairwise
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

T = TypeVar("T")

Complete = Callable[[str], list[str] | list[tuple[str, str]]]
"""Returns the words that begin with a prefix, each alone or with its meaning."""


UNITS = {"rate": " bit/s", "size": " bytes", "time": " s"}
"""Units of quantities in messages."""


class SettingError(ValueError):
    """A setting has an invalid value."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"`{name}` {why}")
        self.name, self.why = name, why


@dataclass(frozen=True)
class Option:
    """Properties of a setting in addition to its name, type, default and docstring."""

    metavar: str | None = None
    """Placeholder of the value in the help of the command."""
    flag: str | None = None
    """Spelling of the command's option; by default `--` and the setting's name."""
    help: str | None = None
    """Help, instead of the docstring."""
    unit: Literal["rate", "size", "time"] | None = None
    """Quantity that the command reads from a text such as `10ms`: a rate in bit/s, a size in bytes,
    a time in seconds. The option of a tuple of quantities is repeated.
    """
    min: float | None = None
    max: float | None = None
    complete: Complete | Literal["engines", "metrics", "policies", "queues"] | None = None
    """Words for the completion by the shell, or their kind."""
    existing: bool = False
    """Whether the command refuses a path that is not a file."""
    readable: bool = True
    """Whether the command refuses a file that it cannot read."""
    dash: bool = False
    """Whether `-` is a valid path, for standard input."""
    command: bool = True
    """Whether the command has an option for the setting."""
    positional: bool = False
    """Whether the setting is an argument of the command, not an option."""

    def __or__(self, other: Option) -> Option:
        """Returns the properties of both; those of `other` have precedence."""
        plain = Option()
        new = {k: v for k, v in vars(other).items() if v != getattr(plain, k)}
        return replace(self, **new)


Seconds = Annotated[float, Option("TIME", unit="time")]
Bytes = Annotated[int, Option("SIZE", unit="size")]
BitRate = Annotated[int, Option("RATE", unit="rate")]


@dataclass(frozen=True)
class Setting:
    """A setting as declared: a field of a settings class, or a parameter of a command."""

    name: str
    hint: Any
    """Type with its annotations."""
    default: object = MISSING
    help: str = ""

    @property
    def option(self) -> Option | None:
        """Returns the properties of the setting; None if its type is not annotated with any."""
        return _option(self.hint)

    def check(self, value: object) -> None:
        """Raises `SettingError` if a value is outside the range of the setting."""
        if (limits := self.option) is None:
            return
        low, high = limits.min, limits.max
        for part in value if isinstance(value, tuple) else (value,):
            if not isinstance(part, int | float):
                continue
            if (low is None or part >= low) and (high is None or part <= high):
                continue
            unit = "" if limits.unit is None else UNITS[limits.unit]
            found = f"{bounds(low, high)}{unit}; found {_number(part)}"
            raise SettingError(self.name, f"must be {found}")


def bounds(low: float | None, high: float | None) -> str:
    """Returns a range in words, such as `at least 2`; empty without limits."""
    if low is None or high is None:
        ends = (("at least", low), ("at most", high))
        return "".join(f"{word} {_number(end)}" for word, end in ends if end is not None)
    return f"{_number(low)} to {_number(high)}"


def _number(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _option(hint: object) -> Option | None:
    """Returns the properties in the annotations of a type; those of outer types have precedence."""
    found: Option | None = None
    for part in get_args(hint) if get_origin(hint) is not Literal else ():
        inner = part if isinstance(part, Option) else _option(part)
        if inner is not None:
            found = inner if found is None else found | inner
    return found


_known: dict[type, tuple[Setting, ...]] = {}


def declared(group: type) -> tuple[Setting, ...]:
    """Returns the settings of a settings class in their order."""
    if group not in _known:
        hints, texts = get_type_hints(group, include_extras=True), docstrings(group)
        _known[group] = tuple(
            Setting(field.name, hints[field.name], field.default, texts.get(field.name, ""))
            for field in fields(group)
        )
    return _known[group]


def docstrings(group: type) -> dict[str, str]:
    """Returns the docstrings of the fields of a class, each in one line."""
    module = sys.modules[group.__module__]
    source = "".join(linecache.getlines(module.__file__ or "", vars(module)))
    block = re.search(rf"^class {group.__name__}\b.*\n(?:(?:[ \t)].*)?\n)*", source, re.MULTILINE)
    body = ast.parse(block[0]).body[0].body if block else []  # type: ignore[attr-defined]
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


@dataclass_transform(frozen_default=True)
def settings(group: type[T]) -> type[T]:
    """Makes a class a frozen dataclass that checks the ranges of its fields."""
    after: Callable[[T], None] | None = vars(group).get("__post_init__")

    def check(self: T) -> None:
        for setting in declared(type(self)):
            setting.check(getattr(self, setting.name))
        if after is not None:
            after(self)

    type.__setattr__(group, "__post_init__", check)
    return dataclass(frozen=True)(group)
