"""Options and arguments of commands, made from the settings that a command takes.

A parameter of a command is a setting with an `Option`, or a settings class, whose settings the
parser sees one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, is_dataclass
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import typer

from sojourn._core import WordError, format_quantity, parse_quantity
from sojourn.cli import candidates
from sojourn.settings import Complete, Option, Setting, SettingError, declared

R = TypeVar("R")
PER_SECOND = 10**9
"""Nanoseconds of a second: texts of times are read in nanoseconds."""


def expanded(function: Callable[..., object]) -> Signature:
    """Returns the signature of `function` as the parser takes it."""
    flat = [one for setting in _settings(function) for one in parameters(setting)]
    return Signature(flat, return_annotation=get_type_hints(function).get("return"))


def called(function: Callable[..., R], args: Iterable[object], values: Mapping[str, object]) -> R:
    """Calls `function` with the parser's arguments and values; returns its result."""
    return function(*args, **{one.name: _value(one, values) for one in _settings(function)})


def _settings(function: Callable[..., object]) -> list[Setting]:
    hints = get_type_hints(function, include_extras=True)
    return [
        Setting(p.name, hints[p.name], MISSING if p.default is Parameter.empty else p.default)
        for p in signature(function).parameters.values()
    ]


def parameters(setting: Setting) -> Iterator[Parameter]:
    """Yields a setting as the parser takes it; a group as its settings."""
    if (group := _group(setting)) is not None:
        for inner in declared(group):
            yield from parameters(inner)
        return
    hint, default = setting.hint, setting.default
    if setting.option is not None and not setting.option.command:
        return
    if (option := setting.option) is not None or setting.help:
        option = option or Option()
        if option.unit is not None:
            hint = list[str] if get_origin(_plain(hint)) is tuple else str | None
            default = _text(option.unit, default)
        hint = Annotated[_plain(hint), _declaration(setting, option)]
    default = Parameter.empty if default is MISSING else default
    yield Parameter(setting.name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _group(setting: Setting) -> type | None:
    """Returns the settings class that a setting has as its type; None for other types."""
    hint = setting.hint
    return hint if isinstance(hint, type) and is_dataclass(hint) else None


def _plain(hint: Any) -> Any:
    """Returns a type without its annotations."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _flag(setting: Setting) -> str:
    """Returns the spelling of a setting's option."""
    given = None if setting.option is None else setting.option.flag
    return given or f"--{setting.name.strip('_').replace('_', '-')}"


def _declaration(setting: Setting, option: Option) -> object:
    return (typer.Argument if option.positional else typer.Option)(
        *(() if option.positional else _flag(setting).split()),
        metavar=option.metavar,
        help=option.help or setting.help,
        min=option.min if option.unit is None else None,
        max=option.max if option.unit is None else None,
        autocompletion=_completion(option),
        exists=option.existing,
        dir_okay=not option.existing,
        readable=option.readable,
        allow_dash=option.dash,
    )


def _completion(option: Option) -> Complete | None:
    named = option.complete
    return candidates.BY_KIND[named] if isinstance(named, str) else named


def _text(unit: Literal["rate", "size", "time"], value: object) -> object:
    """Returns the default of a quantity as a user writes it; None for 0, which means nothing."""
    if not isinstance(value, int | float):
        return value
    return (
        format_quantity(unit, round(value * (PER_SECOND if unit == "time" else 1)))
        if value
        else None
    )


def _value(setting: Setting, values: Mapping[str, object]) -> object:
    if (group := _group(setting)) is not None:
        inner = declared(group)
        try:
            return group(**{one.name: _value(one, values) for one in inner})
        except SettingError as error:
            flags = {one.name: _flag(one) for one in inner}
            raise SettingError(flags.get(error.name, error.name), error.why) from None
    value, option = values.get(setting.name, setting.default), setting.option
    if option is None or option.unit is None:
        return value
    if isinstance(value, list):
        return tuple(_amount(setting, option.unit, text) for text in value)
    return _amount(setting, option.unit, value) if isinstance(value, str) else setting.default


def _amount(setting: Setting, unit: Literal["rate", "size", "time"], text: str) -> float:
    """Returns a quantity in bit/s, bytes or seconds; an error names the setting's option."""
    try:
        amount = parse_quantity(unit, text)
    except WordError as error:
        raise WordError(f"{_flag(setting)}: {error}") from None
    return amount / PER_SECOND if unit == "time" else amount
