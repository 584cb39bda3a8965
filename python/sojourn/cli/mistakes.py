"""The parser's errors in this project's words: numbers and their ranges, options, commands."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, get_args

from sojourn import _core
from sojourn.settings import bounds

OTHER_NAMES = {"--dev": "--interface", "--seed": "--seeds", "--runs": "--seeds"}
"""Options that users know from other programs or commands, with the name of the option here."""
_COMMAND = re.compile(r"No such command '(.*)'")


def reword(error: Any) -> None:
    """Changes the message of the parser's error, in place, if this project has a better one."""
    if getattr(error, "option_name", None) is not None and hasattr(error, "possibilities"):
        error.message, error.possibilities = _option(error), None
    elif (found := getattr(error.__cause__, "errors", None)) is not None and error.param:
        error.message = _value(error.param, found()[0]) or error.message
    elif (named := _COMMAND.match(error.message)) is not None:
        error.message += _command(named[1], error.ctx)


def _value(parameter: Any, detail: Mapping[str, object]) -> str:
    """Returns the message on a wrong number; empty for other types."""
    kind = parameter.type_descriptor
    types = {kind.annotation, *get_args(kind.annotation)}
    if not types & {int, float}:
        return ""
    text = bounds(kind.parameter_info.min, kind.parameter_info.max)
    if str(detail["type"]).startswith(("greater", "less")):
        return f"must be {text}; found {detail['input']}"
    noun = "a whole number" if int in types else "a number"
    return f"must be {noun}{text and ', '}{text}; found {detail['input']}"


def _option(error: Any) -> str:
    """Returns the message on an unknown option, with the option or key that is meant."""
    name, command = error.option_name, error.ctx.command
    known = [word for one in command.params for word in getattr(one, "opts", ())]
    text = f"no option {name}"
    key = _key(name.lstrip("-").replace("-", "_")) if "--set" in known else None
    if OTHER_NAMES.get(name) in known:
        return f"{text}: did you mean {OTHER_NAMES[name]}?"
    if key is not None:
        return f"{text}: change the scenario with --set {key}=VALUE"
    near = _core.nearest(name, [word for word in known if word.startswith("--")])
    return (
        f"{text}: did you mean {near}?"
        if near
        else f"{text}; {error.ctx.command_path} -h lists all"
    )


def _key(name: str) -> str | None:
    """Returns the key of a scenario with this last part, as a user writes it; None without one."""
    from sojourn.scenario.models import Flow, Link, Model

    tables = (("", Model), ("links.NAME.", Link), ("flows.NAME.", Flow))
    return next((at + name for at, table in tables if name in table.model_fields), None)


def _command(word: str, context: Any) -> str:
    """Returns a hint if the unknown command is a file; otherwise an empty text."""
    if not (word.endswith(".toml") or os.path.isfile(word)):  # noqa: PTH113 - long words
        return ""
    first = next((name for name in ("run", "compare") if name in context.command.commands), None)
    return "" if first is None else f" Did you mean `{context.command_path} {first} {word}`?"
