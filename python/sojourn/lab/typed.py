"""JSON texts of other programs, read as dataclasses."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import TypeAdapter

from sojourn.data import Json

T = TypeVar("T")


def typed(kind: type[T], text: str | bytes) -> T:
    """Returns the value in a JSON text; raises `ValueError` unless it has the type `kind`.

    Unknown keys of objects are ignored.
    """
    return _adapter(kind).validate_json(text)


def of_json(kind: type[T], value: Json) -> T:
    """Returns a value of JSON as the type `kind`; raises `ValueError` for another type."""
    return _adapter(kind).validate_python(value)


_ADAPTERS: dict[object, TypeAdapter[Any]] = {}


def _adapter(kind: type[T]) -> TypeAdapter[T]:
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]
