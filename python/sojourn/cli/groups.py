"""Groups of options, as dataclasses.

A parameter of a command may be a dataclass, whose fields the parser sees as options. Fields are
declared as parameters of commands: an `Annotated` type and a default. A field may itself be a
group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, Signature, signature
from typing import Any, cast, get_type_hints


def expanded(function: Callable[..., Any]) -> Signature:
    """Returns the signature of `function` with each group replaced by its fields."""
    hints = get_type_hints(function, include_extras=True)
    given = signature(function).parameters.values()
    parameters = [one for p in given for one in _options(p.name, hints[p.name], p.default)]
    return Signature(parameters, return_annotation=hints.get("return", None))


def _options(name: str, hint: Any, default: Any) -> Iterator[Parameter]:
    if not is_dataclass(hint):
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)
        return
    hints = get_type_hints(hint, include_extras=True)
    for field in fields(hint):
        none = field.default is MISSING
        yield from _options(
            field.name, hints[field.name], Parameter.empty if none else field.default
        )


def assembled(function: Callable[..., Any], values: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments of `function`, with each group built from its fields' values."""
    hints = get_type_hints(function)
    return {name: _value(name, hints[name], values) for name in signature(function).parameters}


def _value(name: str, hint: Any, values: dict[str, Any]) -> Any:
    if not is_dataclass(hint):
        return values[name]
    hints = get_type_hints(hint)
    parts = {field.name: _value(field.name, hints[field.name], values) for field in fields(hint)}
    made: Callable[..., Any] = cast("type", hint)
    return made(**parts)
