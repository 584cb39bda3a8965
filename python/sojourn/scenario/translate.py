"""Turns pydantic's complaints into problems with a place, in the words of the rest of Sojourn."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from sojourn import _core
from sojourn.scenario import commands, limits
from sojourn.scenario.errors import Problem
from sojourn.scenario.locate import Path
from sojourn.scenario.models import TEMPLATES, Change, ChangedDirection, Model
from sojourn.scenario.source import Source, dotted
from sojourn.scenario.words import WORD_ERROR, shown


def problems_of(error: ValidationError, data: Mapping[str, Any], source: Source) -> list[Problem]:
    """All of `error`'s complaints about `data`."""
    details = error.errors(include_url=False)[: limits.PROBLEMS]
    found = [(detail, _problem(detail, data, source)) for detail in details]
    # A misspelt key is one mistake, not two: the key it should be is not missing as well.
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


def _problem(detail: Any, data: Mapping[str, Any], source: Source) -> Problem:
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
            # The key is not there, so its table is what can be pointed at.
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
            return source.problem(path, f"more than {context['max_length']}: too many")
        case "too_short":
            return source.problem(path, "needs at least one")
        case _:
            return source.problem(path, str(detail["msg"]), found=shown(detail["input"]))


def _path(loc: tuple[int | str, ...], data: Mapping[str, Any]) -> Path:
    """Pydantic's location without what it adds: union tags, and "[key]" for a key itself."""
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
            # A single text stands for a list of one: its element is the text itself.
            continue
        path.append(part)
    return tuple(path)


def _has(value: Any, part: str | int) -> bool:
    if isinstance(value, list):
        return isinstance(part, int) and part < len(value)
    return isinstance(value, Mapping) and part in value


def table_type(path: Path, data: Mapping[str, Any]) -> type[BaseModel] | None:
    """The model of the table at `path`, if it is a table whose keys are ours."""
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
    """The type of a key of a table, or of an element of a list."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = kind.model_fields.items()
        return next((f.annotation for name, f in fields if part == (f.alias or name)), None)
    return get_args(kind)[-1] if get_origin(kind) in (dict, list) else None


def _options(kind: Any) -> list[Any]:
    """The types that a type stands for."""
    if get_origin(kind) is Annotated:
        return _options(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return [option for arg in get_args(kind) for option in _options(arg)]
    return [kind]


def keys_of(model: type[BaseModel]) -> list[str]:
    """The keys a table may have, in the order of the documentation."""
    return [field.alias or name for name, field in model.model_fields.items()]


def _unknown_key(path: Path, data: Mapping[str, Any], source: Source) -> Problem:
    key = str(path[-1])
    model = table_type(path[:-1], data)
    allowed = keys_of(model) if model is not None else []
    nearest = _core.nearest(key, allowed)
    message = f"unknown key `{key}`"
    if nearest is None and allowed:
        message += f"; allowed here: {', '.join(allowed)}"
    return source.problem(path, message, found=key, allowed=tuple(allowed), nearest=nearest)


def _unknown_template(path: Path, context: dict[str, Any], source: Source) -> Problem:
    names = list(TEMPLATES)
    tag = context.get("tag")
    if tag is None:
        return source.problem(
            path, f"`template` is missing: one of {', '.join(names)}", allowed=tuple(names)
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
    "at": 'when, such as "20s" or "every 40s from 20s"',
    "rate": 'the rate of the link, such as "20mbit"',
    "servers": "the hosts that flows are given to",
    "policy": 'how a server is chosen, such as "iqlb" (`sojourn list balancer`)',
    "app": 'what is sent, such as "bulk" (`sojourn list app`)',
}


def _purpose(path: Path) -> str:
    return _PURPOSES.get(str(path[-1]) if path else "", "it has no default")


def repaired(error: ValidationError, data: dict[str, Any]) -> dict[str, Any] | None:
    """`data` without what `error` complains about, if the rest still says something.

    With it, mistakes that only show when the parts are put together (an unknown host, say) are
    found in the same go. What is replaced must not cause complaints of its own.
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
    "duration": "0s",  # which the engine refuses, and judges no other time by it
}


def _mend(data: dict[str, Any], path: Path, kind: str) -> bool:
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
            # It was to change something.
            at.setdefault("rate", _HARMLESS["rate"])
        return True
    if kind not in {WORD_ERROR, "missing"} or model is None:
        return False
    if last == "app":
        for key in commands.KEYS:  # they belong to one application
            at.pop(key, None)
    if last in _HARMLESS:
        at[last] = _HARMLESS[last]
        return True
    if kind == WORD_ERROR and last in keys_of(model) and last not in {"from", "to"}:
        at.pop(last, None)
        return True
    return False
