"""JSON Schema of scenario files, for editors that complete and check TOML."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import JsonSchemaValue

from sojourn.scenario.models import Model


def json_schema() -> JsonSchemaValue:
    """Returns the schema; it accepts some scenarios that the full check rejects."""
    schema = Model.model_json_schema()
    _listable(schema)
    _no_null(schema)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "A Sojourn scenario",
    }


def _listable(schema: Any) -> None:
    """Changes a schema, in place, to accept a single element in place of a list of one."""
    if isinstance(schema, list):
        for item in schema:
            _listable(item)
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        _listable(value)
        if key == "properties":
            for name, inner in value.items():
                if name not in {"flows", "changes"}:
                    value[name] = _or_single(inner)


def _or_single(schema: JsonSchemaValue) -> JsonSchemaValue:
    options = schema.get("anyOf", [schema])
    arrays = [s for s in options if s.get("type") == "array" and "items" in s]
    if not arrays:
        return schema
    outer = {k: v for k, v in schema.items() if k in {"title", "description", "default"}}
    inner = [{k: v for k, v in s.items() if k not in outer} | {"minItems": 1} for s in arrays]
    rest = [s for s in options if s not in arrays]
    return {"anyOf": [*(s["items"] for s in inner), *inner, *rest], **outer}


def _no_null(schema: Any) -> None:
    """Removes null from a schema, in place: TOML has no null, and a key is omitted instead."""
    if isinstance(schema, list):
        for item in schema:
            _no_null(item)
    if isinstance(schema, dict):
        if "anyOf" in schema:
            schema["anyOf"] = [s for s in schema["anyOf"] if s.get("type") != "null"]
            if len(schema["anyOf"]) == 1:
                (only,) = schema.pop("anyOf")
                schema.update({key: value for key, value in only.items() if key not in schema})
        if "default" in schema and schema["default"] is None:
            del schema["default"]
        for value in schema.values():
            _no_null(value)
