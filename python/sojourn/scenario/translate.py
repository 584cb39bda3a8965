"""Pydantic's validation errors as problems with a place, in this project's words."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from sojourn import _core
from sojourn.data import Json, Object
from sojourn.scenario import commands, limits
from sojourn.scenario.errors import Problem
from sojourn.scenario.locate import Path
from sojourn.scenario.models import TEMPLATES, Change, ChangedDirection, Model
from sojourn.scenario.source import Source, dotted
from sojourn.scenario.words import WORD_ERROR, shown


def problems_of(error: ValidationError, data: Mapping[str, Json], source: Source) -> list[Problem]:
    """Returns a problem for each error of `error` about `data`."""
    details = error.errors(include_url=False)[: limits.PROBLEMS]
    found = [(detail, _problem(detail, data, source)) for detail in details]
    # A misspelt key is one mistake: the key that was meant is not also reported as missing.
    meant = {
        (*_path(detail["loc"], data)[:-1], problem.nearest)
        for detail, problem in found
        if detail["type"] == "extra_forbidden" and problem.nearest
    }
    return [
        problem
        for detail, problem in found
        if detail["type"] != "missing" or _path(detail["loc"], data) not in meant
    ]


def _problem(detail: ErrorDetails, data: Mapping[str, Json], source: Source) -> Problem:
    kind = detail["type"]
    path = _path(detail["loc"], data)
    context = dict(detail.get("ctx", {}))
    match kind:
        case _ if kind == WORD_ERROR:
            return source.problem(
                (*path, *context.get("path", ())),
                context.pop("message"),
                start=context.pop("start", None),
                end=context.pop("end", None),
                found=context.get("found"),
                allowed=tuple(context.get("allowed", ())),
                nearest=context.get("nearest"),
            )
        case "extra_forbidden":
            return _unknown_key(path, data, source)
        case "missing":
            # A missing key has no place, so the problem is at the place of its table.
            key = str(detail["loc"][-1])
            return source.problem(path, f"`{key}` is missing: {_purpose(path)}")
        case "union_tag_invalid" | "union_tag_not_found":
            return _unknown_template(path, context, source)
        case "model_type" | "model_attributes_type" | "dict_type":
            return source.problem(path, f"needs a table of keys; found {shown(detail['input'])}")
        case "list_type":
            what = "values"
            if path and path[-1] in {"flows", "changes"}:
                what = f"tables, each begun by [[{dotted(path)}]]"
            return source.problem(path, f"needs a list of {what}; found {shown(detail['input'])}")
        case "too_long":
            return source.problem(path, f"more than {context['max_length']} entries")
        case "too_short":
            return source.problem(path, "needs at least one entry")
        case _:
            return source.problem(path, str(detail["msg"]), found=shown(detail["input"]))


def _path(loc: tuple[int | str, ...], data: Mapping[str, Json]) -> Path:
    """Returns the path of a pydantic location, without its additions: union tags and "[key]"."""
    path: list[str | int] = []
    value: Any = data
    for i, part in enumerate(loc):
        if part == "[key]":
            break
        if path == ["topology"] and part in TEMPLATES and part not in value:
            continue
        if _has(value, part):
            value = value[part]
        elif i < len(loc) - 1 or isinstance(part, int):
            # A single text is read as a list with one element, which has no path of its own.
            continue
        path.append(part)
    return tuple(path)


def _has(value: Json, part: str | int) -> bool:
    if isinstance(value, list):
        return isinstance(part, int) and part < len(value)
    return isinstance(value, Mapping) and part in value


def table_type(path: Path, data: Mapping[str, Json]) -> type[BaseModel] | None:
    """Returns the model of the table at `path`; None if the path is no table with known keys."""
    kinds: list[Any] = [Model]
    value: Any = data
    for part in path:
        value = value[part] if _has(value, part) else None
        kinds = [inner for kind in kinds for inner in _options(_below(kind, part))]
        if any(kind in TEMPLATES.values() for kind in kinds):
            template = value.get("template") if isinstance(value, Mapping) else None
            kinds = (
                [TEMPLATES[template]] if isinstance(template, str) and template in TEMPLATES else []
            )
    models = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return models[0] if models else None


def _below(kind: Any, part: str | int) -> Any:
    """Returns the type of a key in a table, or of an element in a list or dict; None if unknown."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = kind.model_fields.items()
        return next((f.annotation for name, f in fields if part == (f.alias or name)), None)
    return get_args(kind)[-1] if get_origin(kind) in (dict, list) else None


def _options(kind: Any) -> list[Any]:
    """Returns the alternatives of a union type."""
    if get_origin(kind) is Annotated:
        return _options(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return [option for arg in get_args(kind) for option in _options(arg)]
    return [kind]


def keys_of(model: type[BaseModel]) -> list[str]:
    """Returns the keys of a table, in the order of the documentation."""
    return [field.alias or name for name, field in model.model_fields.items()]


def _unknown_key(path: Path, data: Mapping[str, Json], source: Source) -> Problem:
    key = str(path[-1])
    model = table_type(path[:-1], data)
    allowed = keys_of(model) if model is not None else []
    nearest = _core.nearest(key, allowed)
    message = f"unknown key `{key}`"
    if nearest is None and allowed:
        message += f"; allowed here: {', '.join(allowed)}"
    return source.problem(path, message, found=key, allowed=tuple(allowed), nearest=nearest)


def _unknown_template(path: Path, context: Mapping[str, object], source: Source) -> Problem:
    names = list(TEMPLATES)
    tag = context.get("tag")
    if tag is None:
        return source.problem(
            path, f"`template` is missing: choose one of {', '.join(names)}", allowed=tuple(names)
        )
    nearest = _core.nearest(str(tag), names)
    message = f"unknown template `{tag}`" + ("" if nearest else f"; known: {', '.join(names)}")
    return source.problem(
        (*path, "template"), message, found=str(tag), allowed=tuple(names), nearest=nearest
    )


_PURPOSES = {
    "duration": 'the length of a run, such as "60s"',
    "flows": "describe the traffic in at least one [[flows]] table",
    "from": "the name of a node",
    "to": "the name of a node",
    "at": 'the time, such as "20s" or "every 40s from 20s"',
    "rate": 'the rate of the link, such as "20mbit"',
    "servers": "the hosts that serve the balancer's flows",
    "policy": 'the policy that selects a server, such as "iqlb" (`sojourn list balancer`)',
    "app": 'the traffic, such as "bulk" (`sojourn list app`)',
}


def _purpose(path: Path) -> str:
    return _PURPOSES.get(str(path[-1]) if path else "", "this key has no default")


def repaired(error: ValidationError, data: Object) -> Object | None:
    """Returns `data` without the parts that `error` rejects; None if that is impossible.

    A check of the repaired data finds further mistakes, such as an unknown host, in the same pass.
    Some rejected values are replaced by others, which must not cause problems.
    """
    if error.error_count() > limits.PROBLEMS:
        return None
    mended = copy.deepcopy(data)
    for detail in error.errors(include_url=False):
        path = _path(detail["loc"], mended)
        if not path or not _mend(mended, path, str(detail["type"])):
            return None
    return mended


_HARMLESS = {
    "rate": "1gbit",
    "netem": "delay 0ms",
    "app": "bulk",
    "client": "true",
    "duration": "0s",  # the engine rejects this duration, and then compares no other time with it
}


def _mend(data: Object, path: Path, kind: str) -> bool:
    at: Any = data
    for part in path[:-1]:
        at = at[part]
    last = path[-1]
    if isinstance(at, list) and isinstance(last, int) and path[-2] in _HARMLESS:
        at[last] = _HARMLESS[str(path[-2])]
        return True
    if not isinstance(at, dict) or not isinstance(last, str):
        return False
    model = table_type(path[:-1], data)
    if kind == "extra_forbidden":
        at.pop(last, None)
        if model in {Change, ChangedDirection}:
            # A change without any value would be another mistake.
            at.setdefault("rate", _HARMLESS["rate"])
        return True
    if kind not in {WORD_ERROR, "missing"} or model is None:
        return False
    if last == "app":
        for key in commands.KEYS:  # keys that only the application `command` allows
            at.pop(key, None)
    if last in _HARMLESS:
        at[last] = _HARMLESS[last]
        return True
    if kind == WORD_ERROR and last in keys_of(model) and last not in {"from", "to"}:
        at.pop(last, None)
        return True
    return False
