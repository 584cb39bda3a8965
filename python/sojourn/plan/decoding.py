"""The decoder and the encoder of plans and of their parts.

`shapes.py` has the place of each class, the shapes of its fields, and the members of each union. A
class is imported when its first value is decoded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sojourn.plan.shapes import CLASSES, DEFAULTS, UNIONS

if TYPE_CHECKING:
    from sojourn.data import Json, Object
    from sojourn.plan.flows import Flow
    from sojourn.plan.queue import Queue

QUEUE = "queue.family.Queue"
"""Shape of queue disciplines."""


def of_text(kind: type, text: str) -> Any:
    """Returns the value of a class in a JSON text."""
    return _class(_place(kind))(json.loads(text))


def decoded(shape: str, value: Json) -> Any:
    """Returns a value of JSON as the type with this shape, such as `queue.family.Queue`."""
    return value if value is None else _reader(shape)(value)


def queue(text: str) -> Queue:
    """Returns the queue in a JSON text, such as the one of `_core.parse_queue`."""
    found: Queue = decoded(QUEUE, json.loads(text))
    return found


def queue_text(queue: Queue) -> str:
    """Returns a queue as JSON."""
    return json.dumps(encoded(queue, QUEUE))


def flows(text: str) -> tuple[Flow, ...]:
    """Returns the flows in the JSON of `_core.plan_flows`."""
    found: tuple[Flow, ...] = decoded("[flows.Flow]", json.loads(text))
    return found


def data(value: object, shape: str) -> Object:
    """Returns a part of a plan as JSON data."""
    found: Object = json.loads(json.dumps(encoded(value, shape)))
    return found


def data_of(text: str) -> Object:
    """Returns the JSON data of a plan's text."""
    found: Object = json.loads(text)
    return found


def text_of(value: object) -> str:
    """Returns a plan as canonical JSON."""
    return json.dumps(encoded(value, "plan.Plan"), sort_keys=True, separators=(",", ":"))


def encoded(value: Any, shape: str) -> Json:
    """Returns a value of the type with this shape as JSON."""
    if not shape and isinstance(value, Mapping):
        return {key: encoded(one, "") for key, one in value.items()}
    if value is None or not shape:
        return value  # type: ignore[no-any-return]
    if shape[0] in "[{":
        inner = shape[1:-1]
        if isinstance(value, Mapping):
            return {key: encoded(one, inner) for key, one in value.items()}
        return [encoded(one, inner) for one in value]
    if shape in UNIONS:
        tag, members = UNIONS[shape]
        if isinstance(value, bool | int | float | str):
            return value
        own = _place(type(value))
        for name, member in members.items():
            if member == own:
                return {**({tag: name} if tag else {}), **_fields(value, own)}
        return next(encoded(value, member) for member in members.values() if member in UNIONS)
    return _fields(value, shape)


def _fields(value: Any, place: str) -> dict[str, Json]:
    shapes = CLASSES[place]
    names = ((name, name.rstrip("_")) for name in value.__slots__)
    return {key: encoded(getattr(value, name), shapes.get(key, "")) for name, key in names}


def _place(kind: type) -> str:
    return f"{kind.__module__.removeprefix('sojourn.plan.')}.{kind.__name__}"


@cache
def _reader(shape: str) -> Callable[[Any], Any]:
    """Returns the function that decodes values of a shape."""
    if shape == "[]":
        return tuple
    if shape.startswith("["):
        item = _reader(shape[1:-1])
        return lambda values: tuple(map(item, values))
    if shape.startswith("{"):
        item = _reader(shape[1:-1])
        return lambda values: {key: item(value) for key, value in values.items()}
    return _union(*UNIONS[shape]) if shape in UNIONS else _class(shape)


def _union(tag: str, members: Mapping[str, str]) -> Callable[[Any], Any]:
    def tagged(value: Mapping[str, Any]) -> Any:
        fields = dict(value)
        return _reader(members[fields.pop(tag)])(fields)

    def untagged(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return _reader(next(members[key] for key in members if key in value))(value)

    return tagged if tag else untagged


def _class(place: str) -> Callable[[Any], Any]:
    module, _, name = place.rpartition(".")
    kind = getattr(import_module(f"sojourn.plan.{module}"), name)
    shapes, defaults = CLASSES[place].items(), DEFAULTS.get(place, {})
    keywords = [(name[:-1], name) for name in kind.__slots__ if name[-1] == "_"]

    def read(value: Mapping[str, Any]) -> Any:
        fields = {**defaults, **value}
        for key, shape in shapes:
            part = fields.get(key)
            if part is not None:
                fields[key] = _reader(shape)(part)
        for key, name in keywords:
            fields[name] = fields.pop(key)
        return kind(**fields)

    return read
