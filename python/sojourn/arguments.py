"""Checks of the arguments of public functions against their annotations.

A call of a `checked` function with a wrong argument raises `ArgumentError` before the function
runs: one line with the argument, the found value, the allowed values, and the nearest word. The
annotations are read at the first call. An annotation that exists for type checkers only is not
checked.
"""

from __future__ import annotations

import collections.abc
import functools
import inspect
import numbers
import os
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType, NoneType, SimpleNamespace, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from sojourn import _core

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_CONTAINERS = ("builtins", "collections.abc")
_short = reprlib.Repr()
_short.maxstring = _short.maxother = 60


class ArgumentError(TypeError, ValueError):
    """An argument of a function has a wrong type or value."""


class UnknownName(KeyError, ValueError):
    """A table or mapping has no entry with the requested name."""

    def __str__(self) -> str:
        return str(self.args[0])


def unknown(kind: str, name: object, known: collections.abc.Iterable[str]) -> UnknownName:
    """Returns the error for a name that is none of `known`; it has the nearest of these."""
    return UnknownName(f"no {kind} `{name}`{hint(str(name), known, 'existing')}")


def hint(word: str, known: collections.abc.Iterable[str], what: str = "allowed") -> str:
    """Returns the end of a message on an unknown word: the nearest known one, or the first twenty.

    `what` is the word before the list.
    """
    listed = list(known)
    if near := _core.nearest(word, listed):
        return f": did you mean `{near}`?"
    return f"; {what}: {', '.join(listed[:20])}{', ...' * (len(listed) > 20)}"


@dataclass(frozen=True)
class _Rule:
    """The values that an annotation allows."""

    fits: Callable[[object], bool]
    one: str
    """Description of one value."""
    many: str
    """Description of several values."""
    words: tuple[str, ...] = ()
    makers: tuple[str, ...] = ()
    """Functions that make a value from the name of a file or folder."""
    of_texts: bool = False
    """Whether a list of texts is allowed."""

    def hint(self, value: object) -> str:
        """Returns advice on a value that is not allowed; empty without any."""
        if isinstance(value, str) and (near := _core.nearest(value, list(self.words))):
            return f": did you mean {near!r}?"
        if isinstance(value, str) and self.of_texts:
            return f": write [{value!r}]"
        if isinstance(value, str | os.PathLike) and self.makers:
            return f": write {self.makers[0]}({os.fspath(value)!r})"
        return ""


def shown(value: object) -> str:
    """Returns a value as messages show it: shortened; of an unusual type only the type."""
    if value is None or isinstance(value, str | bool | int | float | list | tuple | dict):
        return _short.repr(value)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return _an(type(value).__name__)


def _an(noun: str) -> str:
    return f"an {noun}" if noun[:1].lower() in "aeiou" else f"a {noun}"


def _is(kind: type, one: str, many: str) -> _Rule:
    return _Rule(lambda value: isinstance(value, kind), one, many)


_PLAIN: Mapping[object, _Rule] = {
    None: _is(NoneType, "None", "None"),
    NoneType: _is(NoneType, "None", "None"),
    bool: _is(bool, "True or False", "True or False"),
    str: _is(str, "a text", "texts"),
    bytes: _is(bytes, "bytes", "bytes"),
    int: _Rule(
        lambda value: isinstance(value, numbers.Integral) and not isinstance(value, bool),
        "a whole number",
        "whole numbers",
    ),
    float: _Rule(
        lambda value: isinstance(value, numbers.Real) and not isinstance(value, bool),
        "a number",
        "numbers",
    ),
}


def _rule(hint: Any) -> _Rule | None:
    """Returns the rule of an annotation; None if it allows all values or cannot be checked."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        like = next((part for part in inner[1:] if getattr(part, "_is_protocol", False)), None)
        return _rule(inner[0]) if like is None else _class(inner[0], like)
    if origin in (Union, UnionType):
        return _either([_rule(part) for part in inner])
    if origin is Literal:
        words = [word if isinstance(word, str) else repr(word) for word in inner]
        text = _or(words)
        return _Rule(lambda value: _hashable(value) and value in inner, text, text, tuple(words))
    if origin is None and isinstance(hint, type | NoneType) and hint in _PLAIN:
        return _PLAIN[hint]
    kind = origin or hint
    if kind is collections.abc.Callable:
        return _Rule(callable, "a function", "functions")
    if not isinstance(kind, type) or kind in (object, Any) or kind.__module__.startswith("numpy"):
        return None
    if kind is type:
        return _is(type, "a class", "classes")
    if kind.__module__ in _CONTAINERS and issubclass(kind, collections.abc.Iterable):
        if issubclass(kind, Mapping):
            return _table(*map(_rule, inner or (object, object)))
        return _list(inner)
    if issubclass(kind, os.PathLike):
        return _is(os.PathLike, "a path", "paths")
    return _class(kind)


def _or(words: list[str]) -> str:
    """Returns alternatives in words; a number may be whole."""
    listed = list(dict.fromkeys(words))
    if _PLAIN[float].one in listed or _PLAIN[float].many in listed:
        listed = [word for word in listed if not word.startswith(("a whole", "whole"))]
    return " or ".join(filter(None, [", ".join(listed[:-1]), listed[-1]]))


def _hashable(value: object) -> bool:
    return isinstance(value, collections.abc.Hashable)


def _either(parts: list[_Rule | None]) -> _Rule | None:
    rules = [rule for rule in parts if rule is not None]
    if len(rules) < len(parts):
        return None
    return _Rule(
        lambda value: any(rule.fits(value) for rule in rules),
        _or([rule.one for rule in rules]),
        _or([rule.many for rule in rules]),
        sum((rule.words for rule in rules), ()),
        sum((rule.makers for rule in rules), ()),
        any(rule.of_texts for rule in rules),
    )


def _table(key: _Rule | None, value: _Rule | None) -> _Rule:
    def fits(found: object) -> bool:
        return isinstance(found, Mapping) and all(
            (key is None or key.fits(k)) and (value is None or value.fits(v))
            for k, v in found.items()
        )

    of = "" if value is None else f" of {value.many}"
    return _Rule(fits, f"a dict{of}", f"dicts{of}")


def _list(inner: tuple[Any, ...]) -> _Rule:
    """Returns the rule of lists and tuples; the elements of an iterator are not checked."""
    items = [_rule(part) for part in inner if part is not Ellipsis]
    same = items[0] if len(set(inner)) - (Ellipsis in inner) == 1 else None
    exact = len(items) if len(items) > 1 else None

    def fits(found: object) -> bool:
        if isinstance(found, str | bytes | Mapping) or not isinstance(
            found, collections.abc.Iterable
        ):
            return False
        if hasattr(found, "tolist"):  # an array of NumPy, or a column of a data frame
            found = found.tolist()
        if not isinstance(found, list | tuple | set | frozenset):
            return True
        return exact in (None, len(found)) and (same is None or all(map(same.fits, found)))

    of = "" if same is None else f" of {'' if exact is None else f'{exact} '}{same.many}"
    return _Rule(fits, f"a list{of}", f"lists{of}", of_texts=same is None or same.fits("text"))


def _class(kind: type, like: type | None = None) -> _Rule:
    """Returns the rule of a class; objects with the members of the protocol `like` fit too."""
    name, like = kind.__name__, like or kind
    members = [name for name in vars(like) if not name.startswith("_")]

    def fits(value: object) -> bool:
        if not getattr(like, "_is_protocol", False):
            return isinstance(value, kind)
        there = {*dir(type(value)), *getattr(value, "__dict__", ())}
        return not isinstance(value, type) and there.issuperset(members)

    makers = tuple(f"{name}.{maker}" for maker in ("load", "open") if hasattr(kind, maker))
    return _Rule(fits, _an(name), f"{name}s", makers=makers)


class _Rules:
    """The rules of a function's parameters."""

    def __init__(self, function: Callable[..., object]) -> None:
        self.name = function.__name__
        parameters = inspect.signature(function).parameters.values()
        self.given: dict[str, _Rule | None] = {}
        self.placed: list[str] = []
        self.required: list[str] = []
        self.rest: dict[object, _Rule | None] = {}
        """Rules of further positional and named arguments, by kind; empty if there may be none."""
        for one in parameters:
            rule = _rule(_evaluated(one.annotation, function))
            if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
                self.rest[one.kind] = rule
                continue
            self.given[one.name] = rule
            if one.kind is not one.KEYWORD_ONLY:
                self.placed.append(one.name)
            if one.default is one.empty:
                self.required.append(one.name)

    def check(self, args: tuple[object, ...], named: Mapping[str, object]) -> None:
        """Raises `ArgumentError` for the first wrong argument."""
        if len(args) > len(self.placed):
            more = inspect.Parameter.VAR_POSITIONAL
            if more not in self.rest:
                names = ", ".join(name for name in self.placed if name not in ("self", "cls"))
                raise ArgumentError(
                    f"{self.name} takes the arguments {names}; found another, "
                    f"{shown(args[len(self.placed)])}"
                )
            for value in args[len(self.placed) :]:
                _expect("argument", self.rest[more], value)
        for name, value in zip(self.placed, args, strict=False):
            _expect(name, self.given[name], value)
        for name, value in named.items():
            if name in self.given:
                _expect(name, self.given[name], value)
            elif (kind := inspect.Parameter.VAR_KEYWORD) in self.rest:
                _expect(name, self.rest[kind], value)
            else:
                raise ArgumentError(str(unknown(f"argument of {self.name}:", name, self.given)))
        there = {*self.placed[: len(args)], *named}
        if missing := [name for name in self.required if name not in there]:
            raise ArgumentError(f"{self.name} needs the argument `{missing[0]}`")


def _evaluated(annotation: object, function: Callable[..., object]) -> Any:
    if annotation is inspect.Parameter.empty:
        return Any
    around = getattr(inspect.unwrap(function), "__globals__", {})
    holder = SimpleNamespace(__annotations__={"one": annotation})
    try:
        return get_type_hints(holder, around, include_extras=True)["one"]
    except (NameError, AttributeError, TypeError):
        return Any


def expect(name: str, kind: type, value: object) -> None:
    """Raises `ArgumentError` unless an argument is an object of a class."""
    _expect(name, _class(kind), value)


def _expect(name: str, rule: _Rule | None, value: object) -> None:
    if rule is not None and not rule.fits(value):
        raise ArgumentError(f"`{name}` must be {rule.one}; found {shown(value)}{rule.hint(value)}")


def _guarded(function: Callable[P, R]) -> Callable[P, R]:
    rules: _Rules | None = None

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        nonlocal rules
        if rules is None:
            rules = _Rules(function)
        rules.check(args, kwargs)
        return function(*args, **kwargs)

    return call


def checked(of: T) -> T:
    """Makes a function, or the public methods of a class, check their arguments."""
    if isinstance(of, FunctionType):
        guarded: Any = _guarded(of)
        return guarded  # type: ignore[no-any-return]
    for name, member in list(vars(of).items()):
        inner = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if not isinstance(inner, FunctionType) or (name[0] == "_" and name != "__init__"):
            continue
        code = inner.__code__
        if code.co_filename == "<string>":  # the constructor that `dataclass` makes
            continue
        if code.co_argcount + code.co_kwonlyargcount > 1 or code.co_flags & inspect.CO_VARKEYWORDS:
            made = _guarded(inner)
            setattr(of, name, made if inner is member else type(member)(made))
    return of
