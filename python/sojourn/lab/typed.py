"""JSON texts of other programs, read as dataclasses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from sojourn.data import Json

T = TypeVar("T")


def typed(kind: type[T], text: str | bytes) -> T:
    """Returns the value in a JSON text; raises `ValueError` unless it has the type `kind`.

    Unknown keys of objects are ignored.
    """
    with _one_line():
        return _adapter(kind).validate_json(text)


def of_json(kind: type[T], value: Json) -> T:
    """Returns a value of JSON as the type `kind`; raises `ValueError` for another type."""
    with _one_line():
        return _adapter(kind).validate_python(value)


@contextmanager
def _one_line() -> Iterator[None]:
    """Replaces an error about several values by one line on the first of them."""
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"{place}: {first['msg']}" if place else first["msg"]) from None


_ADAPTERS: dict[object, TypeAdapter[Any]] = {}


def _adapter(kind: type[T]) -> TypeAdapter[T]:
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]
