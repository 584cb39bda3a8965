"""Checks of JSON output against its schema."""

from __future__ import annotations

from functools import cache
from typing import Any

import jsonschema

from sojourn.cli import outputs


def agreeing(command: str, value: Any) -> Any:
    """Returns the JSON output of a command, which has only keys that its schema describes."""
    wrong: list[str] = []
    for form in _forms(command):
        error = jsonschema.exceptions.best_match(form.iter_errors(value))
        if error is None:
            return value
        wrong.append(f"{list(error.absolute_path)}: {error.message[-300:]}")
    raise AssertionError("\n".join([f"{command} has no form of its output:", *wrong]))


def commands() -> list[str]:
    """Returns the commands that have a schema."""
    names = {name.partition(":")[0] for name in outputs.declared() if name[0].islower()}
    return sorted(names - {"error"})


def closed(schema: Any) -> Any:
    """Returns a schema that refuses keys that it does not describe."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: closed(part) for key, part in schema.items()}
    if isinstance(schema.get("properties"), dict):
        inner.setdefault("additionalProperties", False)
    return inner


@cache
def _forms(command: str) -> list[jsonschema.Draft202012Validator]:
    schemas: Any = outputs.schema(command)["anyOf"]
    return [jsonschema.Draft202012Validator(closed(schema)) for schema in schemas]
