"""Changes of a scenario's keys by dotted names, for `replace` and `--set`."""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Mapping
from typing import Any, Unpack

from sojourn import _core
from sojourn.data import Json, Object
from sojourn.scenario.errors import Details, Problem, ScenarioError
from sojourn.scenario.locate import Path
from sojourn.scenario.source import dotted

NAMED: frozenset[Path] = frozenset({("links",), ("flows",), ("balancers",), ("queues",)})
"""Paths of the tables whose keys are names that the user chooses."""


def apply(data: Object, changes: Mapping[str, object]) -> tuple[Object, list[Path]]:
    """Returns a copy of `data` with each dotted key set to its value, and the changed paths.

    Flows are selected by number or by name (`flows.0.count`, `flows.bulk.count`). `None` removes a
    key, so that its default applies. The model checks later whether the keys exist.
    """
    result = copy.deepcopy(dict(data))
    problems: list[Problem] = []
    paths: list[Path] = []
    for key, value in changes.items():
        try:
            paths.append(_set(result, key, value))
        except ScenarioError as error:
            problems += error.problems
    if problems:
        raise ScenarioError(problems)
    return result, paths


def _refuse(key: str, message: str, **details: Unpack[Details]) -> ScenarioError:
    return ScenarioError([Problem(message, key, **details)])


def _set(data: Object, key: str, value: object) -> Path:
    parts = key.split(".")
    if not all(parts):
        raise _refuse(key, "the key has an empty part: write it like links.uplink.rate")
    at: Any = data
    path: Path = ()
    for i, part in enumerate(parts[:-1]):
        step = _step(at, part, key)
        if isinstance(at, dict) and step not in at:
            # Optional tables such as [observe] or `reverse` may be created here. A new link, flow
            # or class would have only this key, so it is rejected.
            if path in NAMED or path[-1:] == ("classes",):
                near = _core.nearest(part, list(at))
                raise _refuse(
                    key,
                    f"`{dotted(path)}` has no entry `{part}`",
                    found=part,
                    allowed=tuple(at),
                    nearest=near,
                )
            at[step] = {}
        at = at[step]
        path = (*path, step)
        if not isinstance(at, dict | list):
            raise _refuse(key, _no_table(data, parts[: i + 1], parts[i + 1 :], at))
    last = _step(at, parts[-1], key)
    if value is None:
        if isinstance(at, dict):
            at.pop(str(last), None)
        else:
            del at[int(last)]
    else:
        at[last] = copy.deepcopy(value)
    return (*path, last)


def _no_table(data: Object, to: list[str], rest: list[str], value: Json) -> str:
    """Returns why the keys `rest` cannot be set in `value`, which is at the path `to`."""
    here = f"`{'.'.join(to)}`"
    if to[-1] != "queue" and to[:-1] != ["queues"]:
        return f"{here} is a value, not a table"
    queues = data.get("queues")
    if isinstance(queues, Mapping) and value in queues:
        return f"{here} is the queue `{value}`: set queues.{value}.{'.'.join(rest)} instead"
    return f"{here} is a text: set it as a whole, or write it as a table in the file"


def _step(at: Any, part: str, key: str) -> str | int:
    if not isinstance(at, list):
        return part
    if part.isdecimal() and int(part) < len(at):
        return int(part)
    names = [_flow_name(item) for item in at]
    if part in names:
        return names.index(part)
    known = [name for name in names if name]
    raise _refuse(
        key,
        f"there is no `{part}`: the list has {len(at)} entries, numbered from 0"
        + (f", named {', '.join(known)}" if known and len(known) <= 12 else ""),
        found=part,
        allowed=tuple(known),
        nearest=_core.nearest(part, known),
    )


def _flow_name(flow: Json) -> str:
    match flow:
        case {"name": str(name)}:
            return name
        case {"app": str(app)} if app.split():
            return app.split()[0]
    return ""


def setting(text: str) -> tuple[str, Json]:
    """Splits a `key=value` of the command line; the value is read as TOML, otherwise as a text.

    A flow without a value, such as `flows.1=`, is removed: its value is None.
    """
    key, equals, value = text.partition("=")
    key, value = key.strip(), value.strip()
    if not equals or not key:
        raise _refuse(text, "the setting must be key=value, such as links.uplink.rate=10mbit")
    if not value and re.fullmatch(r"flows\.[^.]+", key):
        return key, None
    return key, _value(value)


def levels(text: str) -> tuple[str, list[Json]]:
    """Splits a `key=value,value` of the command line; values are read as TOML or as texts."""
    key, equals, rest = text.partition("=")
    key, rest = key.strip(), rest.strip()
    if not equals or not key or not rest:
        raise _refuse(
            text, "the setting must be key=value,value, such as links.uplink.rate=10mbit,20mbit"
        )
    values = _value(f"[{rest}]")
    if isinstance(values, list):
        return key, values
    return key, [_value(part.strip()) for part in rest.split(",")]


def _value(text: str) -> Json:
    """Returns the TOML value of a text, or the text itself if it is not TOML."""
    try:
        found: Object = tomllib.loads(f"value = {text}")
        return found["value"]
    except (ValueError, RecursionError, KeyError):
        return text
