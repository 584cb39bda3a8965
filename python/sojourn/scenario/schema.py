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


def _listable(node: Any) -> None:
    """Changes a schema, in place, to accept a single element in place of a list of one."""
    if isinstance(node, list):
        for item in node:
            _listable(item)
    if not isinstance(node, dict):
        return
    for key, value in node.items():
        _listable(value)
        if key == "properties":
            for name, schema in value.items():
                if name not in {"flows", "changes"}:
                    value[name] = _or_single(schema)


def _or_single(schema: JsonSchemaValue) -> JsonSchemaValue:
    options = schema.get("anyOf", [schema])
    arrays = [s for s in options if s.get("type") == "array" and "items" in s]
    if not arrays:
        return schema
    outer = {k: v for k, v in schema.items() if k in {"title", "description", "default"}}
    inner = [{k: v for k, v in s.items() if k not in outer} | {"minItems": 1} for s in arrays]
    rest = [s for s in options if s not in arrays]
    return {"anyOf": [*(s["items"] for s in inner), *inner, *rest], **outer}


def _no_null(node: Any) -> None:
    """Removes null from a schema, in place: TOML has no null, and a key is omitted instead."""
    if isinstance(node, list):
        for item in node:
            _no_null(item)
    if isinstance(node, dict):
        if "anyOf" in node:
            node["anyOf"] = [s for s in node["anyOf"] if s.get("type") != "null"]
            if len(node["anyOf"]) == 1:
                (only,) = node.pop("anyOf")
                node.update({key: value for key, value in only.items() if key not in node})
        if "default" in node and node["default"] is None:
            del node["default"]
        for value in node.values():
            _no_null(value)
