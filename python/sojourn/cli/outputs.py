"""JSON Schemas of the commands' output, from `outputs.toml` and the types that it names."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from sojourn.data import Object
from sojourn.settings import docstrings

_KINDS = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}
_SEGMENT = re.compile(r"([^?\[\]{}]*)(\??)((?:\[\]|\{\})*)")


@cache
def declared() -> Mapping[str, Mapping[str, str]]:
    """Returns the lines of each table: the commands with their forms, and the types."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def forms(command: str) -> list[str]:
    """Returns the names of the tables of a command, of which any may be its output."""
    return [name for name in declared() if name.partition(":")[0] == command]


def schema(command: str) -> Object:
    """Returns the JSON Schema of a command's output; an error has the form `error`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"sojourn {command} --json",
        "anyOf": [_table(name) for name in (*forms(command), "error")],
    }


def _table(name: str) -> Object:
    """Returns the schema of a table."""
    root: Object = {}
    for path, line in declared()[name].items():
        kinds, _, text = line.partition(": ")
        node = root
        for segment in path.split(".") if path != "like" else ():
            node = _entered(node, segment)
        node |= _any_of([_one(kind) for kind in kinds.split(" or ")])
        if text:
            node["description"] = text
    return root


def _entered(node: Object, segment: str) -> Object:
    """Returns the schema in `node` at a segment of a path, which is added if it is missing."""
    match = _SEGMENT.fullmatch(segment)
    assert match is not None, segment
    name, optional, inside = match.groups()

    def part(holder: Object, key: str) -> Object:
        found = holder.setdefault(key, {})
        assert isinstance(found, dict)
        return found

    if name:
        node.setdefault("type", "object")
        required = node.setdefault("required", [])
        assert isinstance(required, list)
        if not optional and name not in part(node, "properties"):
            required.append(name)
        node = part(part(node, "properties"), name)
    for container in re.findall("..", inside):
        node.setdefault("type", "array" if container == "[]" else "object")
        node = part(node, "items" if container == "[]" else "additionalProperties")
    return node


def _one(kind: str) -> Object:
    """Returns the schema of a type in a line of `outputs.toml`."""
    if kind in declared():
        return _table(kind)
    if ":" in kind:
        return schema_of(kind)
    return {} if kind == "any" else {"type": kind}


def schema_of(place: str) -> Object:
    """Returns the schema of a class by its place, `module:Class`."""
    module, _, name = place.partition(":")
    return _of(getattr(import_module(module), name))


def _of(kind: object) -> Object:
    """Returns the schema of a Python type; of a class with the docstrings of its fields."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"enum": [*arguments]}
    if origin in (Union, UnionType):
        return _any_of([_of(one) for one in arguments])
    if isinstance(kind, type) and (is_dataclass(kind) or is_typeddict(kind)):
        texts, fields = docstrings(kind), get_type_hints(kind)
        properties: Object = {
            name: _of(field) | ({"description": texts[name]} if name in texts else {})
            for name, field in fields.items()
        }
        return {"type": "object", "properties": properties, "required": [*fields]}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _of(arguments[1])}
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return {"type": "array", "items": _any_of([_of(one) for one in arguments])}
    return {"type": _KINDS[kind]} if kind in _KINDS else {}


def _any_of(schemas: Sequence[Object]) -> Object:
    """Returns the schema of values of any of these schemas."""
    distinct = [one for number, one in enumerate(schemas) if one not in schemas[:number]]
    if len(distinct) == 1:
        return distinct[0]
    if all(one.keys() == {"type"} for one in distinct):
        return {"type": [one["type"] for one in distinct]}
    return {"anyOf": [*distinct]}
