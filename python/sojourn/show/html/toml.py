"""Writer of a scenario's data as TOML, for readers and for `sojourn run`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TypeGuard

from sojourn.data import Json


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _value(value: Json) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        # Escapes of JSON are valid in TOML, which also requires an escape for DEL.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    return "[" + ", ".join(_value(v) for v in value or []) + "]"


def _tables(value: Json) -> TypeGuard[list[dict[str, Json]]]:
    return isinstance(value, list) and bool(value) and all(isinstance(v, Mapping) for v in value)


def dump(data: Mapping[str, Json]) -> str:
    """Returns the data as TOML: plain keys first, then tables, then lists of tables."""
    return "\n".join(_lines(data, ())).strip() + "\n"


def _lines(data: Mapping[str, Json], path: tuple[str, ...]) -> list[str]:
    lines = [
        f"{_key(k)} = {_value(v)}"
        for k, v in data.items()
        if not isinstance(v, Mapping) and not _tables(v)
    ]
    for name, value in data.items():
        inner = (*path, name)
        head = ".".join(map(_key, inner))
        if isinstance(value, Mapping):
            body = _lines(value, inner)
            # A table that contains only tables needs no header.
            plain = not value or any(
                not isinstance(v, Mapping) and not _tables(v) for v in value.values()
            )
            lines += ["", f"[{head}]", *body] if plain else body
        elif _tables(value):
            for item in value:
                lines += ["", f"[[{head}]]", *_lines(item, inner)]
    return lines
