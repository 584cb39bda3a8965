"""The base of the classes of plans: frozen dataclasses with slots that take little time to define.

`dataclasses.dataclass` compiles the methods of each class, which for the classes of one plan takes
longer than a short run. These classes share their methods, and the fields that `dataclasses` reads
(for example in `replace`) are made when they are first used.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar, Never, dataclass_transform

if TYPE_CHECKING:
    from collections.abc import Mapping

EMPTY: Mapping[str, Never] = {}
"""Default of fields that are mappings."""


class _Fields:
    """The attribute in which `dataclasses` looks for the fields of a class."""

    def __get__(self, one: object, kind: type) -> dict[str, dataclasses.Field[object]]:
        made = dataclasses.make_dataclass(kind.__name__, vars(kind)["__slots__"])
        return {one.name: one for one in dataclasses.fields(made)}


class _Kind(type):
    """Makes the annotated names of a class its slots, and their values its defaults."""

    def __new__(cls, name: str, bases: tuple[type, ...], space: dict[str, object]) -> _Kind:
        noted = space.get("__annotations__")
        names = tuple(noted) if bases and isinstance(noted, dict) else ()
        space["_defaults"] = {one: space.pop(one) for one in names if one in space}
        space["__slots__"] = names
        return super().__new__(cls, name, bases, space)


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Frozen(metaclass=_Kind):
    """A frozen dataclass with slots, whose fields are given by their names."""

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[object]]]
    else:
        __dataclass_fields__ = _Fields()
        _defaults: dict[str, object]

        def __init__(self, **values: object) -> None:
            given = {**self._defaults, **values} if self._defaults else values
            if given.keys() != set(self.__slots__):
                wrong = ", ".join(sorted(given.keys() ^ set(self.__slots__)))
                raise TypeError(f"{type(self).__name__}: missing or unknown fields: {wrong}")
            for name, value in given.items():
                object.__setattr__(self, name, value)

        def __setattr__(self, name: str, value: object) -> None:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

        def __delattr__(self, name: str) -> None:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")

    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in type(self).__slots__)  # type: ignore[attr-defined]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        names = type(self).__slots__  # type: ignore[attr-defined]
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__name__}({fields})"

    def __getstate__(self) -> tuple[object, ...]:
        return self._values()

    def __setstate__(self, values: tuple[object, ...]) -> None:
        for name, value in zip(type(self).__slots__, values, strict=True):  # type: ignore[attr-defined]
            object.__setattr__(self, name, value)
