"""The texts of a scenario as pydantic types.

The engine interprets the texts: each type passes its text to a parser in `sojourn._core`, and
converts the parser's error into a pydantic error with the range in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)
from pydantic_core import PydanticCustomError

from sojourn import _core
from sojourn.own.sources import is_own, place_of
from sojourn.scenario import trace, trees
from sojourn.scenario.filters import with_any_host
from sojourn.scenario.limits import QUEUE_CHARACTERS, TEXT_CHARACTERS

WORD_ERROR = "words"


def shown(value: object) -> str:
    """Returns a value as error messages show it, shortened to 60 characters."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= 60 else f'"{value[:60]}…"'
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list"
    text = str(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def complaint(message: str, **context: Any) -> PydanticCustomError:
    """Returns a pydantic error whose message is exactly `message`."""
    return PydanticCustomError(WORD_ERROR, "{message}", {"message": message, **context})


def word_complaint(error: _core.WordError) -> PydanticCustomError:
    """Returns the error of an engine's parser as a pydantic error."""
    return complaint(
        error.message,
        start=error.start,
        end=error.end,
        found=error.found,
        allowed=list(error.allowed),
        nearest=error.nearest,
    )


def text_of(value: object, what: str, example: str, longest: int = TEXT_CHARACTERS) -> str:
    """Returns `value` if it is a text of at most `longest` characters; raises an error if not."""
    if not isinstance(value, str):
        hint = ""
        if isinstance(value, int | float) and not isinstance(value, bool):
            hint = (
                " (a number needs its unit, in quotes)" if any(c.isdigit() for c in example) else ""
            )
        raise complaint(
            f'needs {what} as a text, such as "{example}"; found {shown(value)}{hint}',
            found=shown(value),
            allowed=[example],
        )
    if len(value) > longest:
        raise complaint(f"the text is longer than {longest} characters", found=shown(value))
    return value


def _checked(
    what: str, example: str, parse: Callable[[str], object], longest: int = TEXT_CHARACTERS
) -> BeforeValidator:
    def check(value: object) -> str:
        text = text_of(value, what, example, longest)
        try:
            parse(text)
        except _core.WordError as error:
            raise word_complaint(error) from None
        return text

    return BeforeValidator(check)


def _schema(description: str, *examples: str, pattern: str | None = None) -> WithJsonSchema:
    schema: dict[str, Any] = {"type": "string", "description": description}
    if pattern:
        schema["pattern"] = pattern
    return WithJsonSchema(schema | {"examples": list(examples)})


_NUMBER = r"[0-9]*\.?[0-9]+"
_RATE = rf"\s*{_NUMBER}[kmgtKMGT]?[iI]?([bB][iI][tT]|[bB][pP][sS])\s*"

Time = Annotated[
    str,
    _checked("a time", "60s", lambda t: _core.parse_quantity("time", t)),
    _schema(
        "A time with its unit: s, ms, us, ns.",
        "5ms",
        "60s",
        pattern=rf"^\s*(0|{_NUMBER}([sS]|[sS][eE][cC]|[sS][eE][cC][sS]|[munMUN][sS]([eE][cC][sS]?)?))\s*$",
    ),
]
Rate = Annotated[
    str,
    _checked("a rate", "10mbit", lambda t: _core.parse_quantity("rate", t)),
    _schema(
        "A rate with its unit: bit, kbit, mbit, gbit per second (bps counts bytes, as in tc).",
        "10mbit",
        "1gbit",
        pattern=rf"^{_RATE}$",
    ),
]


def _capacity(text: str) -> object:
    if not trace.is_trace(text):
        return _core.parse_quantity("rate", text)
    try:
        return trace.file_of(text)
    except trace.TraceProblem as problem:
        raise complaint(str(problem), found=text, allowed=["trace FILE"]) from None


Capacity = Annotated[
    str,
    _checked("a rate", "10mbit", _capacity),
    _schema(
        "A rate with its unit, or `trace FILE`: times in ms at which 1500 bytes may be sent, "
        "one a line, in a file in the scenario's folder (Mahimahi's format).",
        "10mbit",
        "1gbit",
        "trace lte.up",
        pattern=rf"^({_RATE}|\s*trace\s+\S.*)$",
    ),
]
_INTERFACE = r"[A-Za-z0-9][A-Za-z0-9_.@:-]{0,14}"


def interface_fault(name: str) -> str | None:
    """Returns why a text is not the name of a network interface; None if it is one."""
    if re.fullmatch(_INTERFACE, name):
        return None
    return (
        f"`{name}` is not a name of an interface: use a letter or digit, then at most 14 "
        "letters, digits, `_`, `.`, `@`, `:` and `-`"
    )


def _interface(text: str) -> None:
    if fault := interface_fault(text):
        raise complaint(fault, found=text)


Interface = Annotated[
    str,
    _checked("an interface", "eth0", _interface),
    _schema("The name of a network interface.", "eth0", "pppoe-wan", pattern=f"^{_INTERFACE}$"),
]
Size = Annotated[
    str,
    _checked("a size", "128b", lambda t: _core.parse_quantity("size", t)),
    _schema("A size in bytes, or with a unit: b, kb, mb (k is 1024).", "128b", "1500"),
]
Series = Annotated[
    str,
    _checked("a time", "100ms", lambda t: t == "auto" or _core.parse_quantity("time", t)),
    _schema("A time with its unit, or auto.", "auto", "100ms", "0s"),
]


def _alone(text: str) -> str:
    """Returns the impairments in a line of `tc`; returns other texts unchanged."""
    try:
        return _core.netem_description(text)
    except _core.WordError:
        return text


Netem = Annotated[
    str,
    AfterValidator(_alone),
    _checked("impairments", "delay 15ms", _core.parse_netem),
    _schema(
        "Delay and impairments in netem's words, or a line of tc that sets or shows them.",
        "delay 15ms",
        "delay 20ms 2ms loss 1%",
    ),
]
Access = Annotated[
    str,
    _checked("an access method", "csma", _core.parse_medium),
    _schema("Access method of a shared medium.", "csma", "csma slot 51200ns retries 16"),
]

Lateness = Annotated[
    str,
    _checked("a host's lateness", "late exp(200us)", _core.parse_host),
    _schema(
        "Lateness of the sending host, in the words of `sojourn explain host`.",
        "grain 1ms",
        "late exp(200us)",
        "late measured(cyclictest.txt)",
        "stall exp(1ms) every exp(20ms)",
    ),
]


def _or_own(parse: Callable[[str], object]) -> Callable[[str], object]:
    """Returns a parser that also accepts policies of the user, whose files are read later."""

    def either(text: str) -> object:
        if not is_own(text):
            return parse(text)
        try:
            return place_of(text)
        except ValueError as error:
            raise complaint(str(error), found=text) from None

    return either


def queue_description(text: str) -> str:
    """Returns the queue in a line of `tc` that sets or shows it; returns other texts unchanged.

    The later check reports mistakes in an invalid text.
    """
    try:
        if is_own(text) or with_any_host(text) != text:
            return text
        return _core.queue_description(text)
    except _core.WordError:
        return text


def _of_table(value: object) -> object:
    """Returns the text of a queue that is written as a table; returns other values unchanged."""
    if not isinstance(value, Mapping):
        return value
    try:
        tree = trees.written(value)
        text = text_of(tree.text, "a queue", "codel limit 1000p")
    except trees.TreeProblem as problem:
        raise complaint(problem.message, path=problem.path, nearest=problem.nearest) from None
    try:
        _core.parse_queue(with_any_host(text))
    except _core.WordError as error:
        is_of_whole = error.found == trees.STATEMENTS
        path, start, end = ((), None, None) if is_of_whole else tree.place(error.start, error.end)
        raise complaint(
            error.message,
            path=path,
            start=start,
            end=end,
            found=error.found,
            allowed=list(error.allowed),
            nearest=error.nearest,
        ) from None
    return text


Described = Annotated[
    str,
    AfterValidator(queue_description),
    _checked(
        "a queue",
        "codel limit 1000p",
        _or_own(lambda text: _core.parse_queue(with_any_host(text))),
        QUEUE_CHARACTERS,
    ),
    BeforeValidator(_of_table),
    WithJsonSchema(
        {
            "anyOf": [
                {
                    "type": "string",
                    "description": "A queue discipline in tc's words, or a line of tc that sets or "
                    "shows one.",
                    "examples": ["pfifo limit 300p", "codel target 5ms ecn"],
                },
                trees.SCHEMA,
            ]
        }
    ),
]
"""A queue's description, as a text or as a table."""


def _or_name(value: object, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> str:
    """Returns a described queue, or a name in `[queues]`.

    The names in `[queues]` are in the context of the validation.
    """
    names: frozenset[str] = info.context or frozenset()
    word = value.strip() if isinstance(value, str) else ""
    if word in names:
        return word
    known = trees.disciplines()
    if len(word.split()) == 1 and word not in known:
        nearest = _core.nearest(word, [*known, *names])
        if nearest in names:
            raise complaint(
                f"unknown queue `{word}`", found=word, nearest=nearest, start=0, end=len(word)
            )
    text: str = handler(value)
    return text


Queue = Annotated[Described, WrapValidator(_or_name)]
"""A queue's description, or the name of a queue in `[queues]`."""
Tcp = Annotated[
    str,
    _checked("a TCP", "cubic", _or_own(_core.parse_tcp)),
    _schema("A congestion control or a TCP profile, then options.", "cubic", "reno ecn"),
]
App = Annotated[
    str,
    _checked("an application", "bulk", _or_own(_core.parse_app)),
    _schema("An application or preset, then options.", "bulk", "voip", "cbr rate 250kbit size 573"),
]

CommandLine = Annotated[
    str,
    BeforeValidator(lambda value: text_of(value, "a command line", "curl -s http://{to}:{port}/")),
    _schema(
        "A program and its arguments, split as a POSIX shell does but not run by a shell.",
        "curl -s http://{to}:{port}/",
        "python3 -m http.server {port}",
    ),
]
Folder = Annotated[
    str,
    BeforeValidator(lambda value: text_of(value, "a folder", "programs")),
    _schema("A folder, absolute or relative to the scenario's.", "programs"),
]

Policy = Annotated[
    str,
    _checked("a balancing policy", "iqlb", _or_own(_core.parse_balancer)),
    _schema("A policy that selects servers, then options.", "iqlb", "qtm period 500ms", "maglev"),
]
Service = Annotated[
    str,
    _checked("a time or a distribution of times", "exp(5ms)", _core.parse_span),
    _schema("A time, or a distribution of times.", "5ms", "exp(5ms)", "pareto2(5ms,1.5)"),
]


@dataclass(frozen=True)
class Speculation:
    """When a coordinator asks another replica for the data of a read. Times are in nanoseconds."""

    after: int | None = None
    """Fixed time; `None` for never, or with a percentile."""
    share: float | None = None
    """Percentile of the coordinator's recent read latencies, as a share; `None` without one."""
    least: int = 0
    """Least time with a percentile."""
    most: int | None = None
    """Largest time with a percentile; `None` for no limit."""


_PERCENTILE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*p(?:ercentile)?|p([0-9]+(?:\.[0-9]+)?)")
_HYBRID = re.compile(r"(min|max)\s*\(([^,()]*),([^,()]*)\)")


def speculation(text: str) -> Speculation:
    """Returns the meaning of a text such as `50ms`, `99p`, `min(99p,50ms)`, `always` or `none`.

    These are the forms of Cassandra's `speculative_retry`, in any case. Raises an error for other
    texts.
    """
    low = text.strip().lower()
    if low in ("none", "never", "always"):
        return Speculation(0 if low == "always" else None)
    if found := _PERCENTILE.fullmatch(low):
        percent = float(found[1] or found[2])
        if not 0 < percent <= 100:
            raise complaint(
                f"a percentile must be above 0 and at most 100; found {shown(text)}",
                found=text,
            )
        return Speculation(share=round(percent / 100, 12))
    if found := _HYBRID.fullmatch(low):
        one, other = speculation(found[2]), speculation(found[3])
        if one.share is None:
            one, other = other, one
        if one.share is None or other.after is None:
            raise complaint(
                f"`{found[1]}` takes a percentile and a time, such as {found[1]}(99p,50ms); found "
                f"{shown(text)}",
                found=text,
            )
        if found[1] == "min":
            return Speculation(share=one.share, most=other.after)
        return Speculation(share=one.share, least=other.after)
    if not re.fullmatch(r"[0-9.]+\s*[a-z]*", low) or "perc" in low:
        raise complaint(
            "needs a time such as 50ms, a percentile of recent read latencies such as 99p, both as "
            f"in min(99p,50ms), `always` or `none`; found {shown(text)}",
            found=text,
        )
    return Speculation(time_of(text))


Patience = Annotated[
    str,
    _checked("a time or a percentile", "50ms", speculation),
    _schema(
        "A time, a percentile of recent read latencies, the lesser or greater of both, `always` or "
        "`none`.",
        "none",
        "50ms",
        "99p",
        "min(99p,50ms)",
    ),
]


def time_of(text: str) -> int:
    """Returns a time in ns."""
    return int(_core.parse_quantity("time", text))


Start = Annotated[
    str,
    _checked("a start", "uniform 0s 1s", _core.parse_starts),
    _schema(
        "Start of flows: a time, a distribution, or a regular interval.",
        "2s",
        "uniform 0s 1s",
        "every 1s",
        "every 1s from 3s",
    ),
]

Moment = Annotated[
    str,
    _checked("a moment", "20s", _core.parse_moments),
    _schema(
        "A time, or a time and a regular interval.",
        "20s",
        "every 40s from 20s",
        "every 200ms",
    ),
]

DSCP_NAMES = _core.names("dscp")


def _dscp(value: object) -> int:
    if isinstance(value, str):
        try:
            return _core.parse_dscp(value)
        except _core.WordError as error:
            raise word_complaint(error) from None
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 64:
        return value
    raise complaint(
        f'needs a number from 0 to 63 or a name such as "ef"; found {shown(value)}',
        found=shown(value),
        allowed=["0..63", *DSCP_NAMES],
    )


Dscp = Annotated[
    int,
    BeforeValidator(_dscp),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": 63},
                {"enum": DSCP_NAMES},
            ],
            "description": "Differentiated services code point: a number or its name.",
        }
    ),
]


_WORD = re.compile(r"[^\W_][\w-]{0,63}")


def _name(value: object) -> str:
    text = text_of(value, "a name", "uplink").strip()
    if not _WORD.fullmatch(text):
        raise complaint(
            "a name consists of letters, digits, `_` and `-`, begins with a letter or digit, "
            f"and has at most 64 characters; found {shown(value)}",
            found=text,
        )
    return text


def _link_name(value: object) -> str:
    text = text_of(value, "a link's name", "uplink").strip()
    _name(text.removesuffix(".reverse"))
    return text


def _queue_name(value: object) -> str:
    name = _name(value)
    if name in trees.disciplines():
        raise complaint(f"`{name}` is a discipline: give the queue another name", found=name)
    return name


Name = Annotated[str, BeforeValidator(_name)]
QueueName = Annotated[str, BeforeValidator(_queue_name)]
LinkName = Annotated[str, BeforeValidator(_link_name)]
