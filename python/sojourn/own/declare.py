"""The decorators that declare policies, with their parameters and defaults."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from typing import Any, TypeVar

from sojourn import _core
from sojourn.own.errors import OwnError

C = TypeVar("C", bound=type)

Default = bool | int | float | str
"""Default of a parameter: `"5ms"`, `"300p"`, `"10mbit"`, `"2%"`, a number, a flag or a word."""

LONGEST = 8972
"""Longest payload in bytes: that of a jumbo frame."""

ATTRIBUTE = "__sojourn__"
_NAME = re.compile(r"[a-z][a-z0-9_]*")


class Verdict(IntEnum):
    """Decision on an arriving packet."""

    DROP = 0
    """Drop the packet."""
    ACCEPT = 1
    """Enqueue the packet."""
    MARK = 2
    """Enqueue the packet with CE set, or drop it if it is not ECN-capable."""


DROP, ACCEPT, MARK = Verdict.DROP, Verdict.ACCEPT, Verdict.MARK


@dataclass(frozen=True)
class Word:
    """A parameter in the user's notation."""

    name: str
    kind: str
    default: str


@dataclass(frozen=True)
class Declaration:
    """The declaration of a class by a decorator."""

    family: str
    """Name of its family, such as `queue`."""
    name: str
    words: tuple[Word, ...]
    summary: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the decorator other than parameters, such as a queue's `period` in nanoseconds.
    """

    @property
    def noun(self) -> str:
        """Noun for its family."""
        return FAMILIES[self.family].noun

    @property
    def words_json(self) -> str:
        """The words in the format of the engine's parser."""
        return json.dumps([vars(word) for word in self.words])


@dataclass(frozen=True)
class Family:
    """A kind of policy: its noun, and the methods that a class must have."""

    name: str
    noun: str
    methods: Mapping[str, tuple[str, ...]]
    optional: Mapping[str, tuple[str, ...]]
    init: tuple[str, ...] = ("params", "draws")
    beside: str = ""
    """Kind of the engine's words that are allowed with a policy's own words, such as `tcp`."""
    elsewhere: str = ""
    """Advice on where policies of this family work."""


FAMILIES: dict[str, Family] = {
    "queue": Family(
        "queue",
        "queue discipline",
        {"enqueue": ("now", "packet", "queue"), "dequeue": ("now", "queue")},
        {"on_timer": ("now", "queue"), "change": ("params",), "state": ()},
    ),
    "balancer": Family(
        "balancer",
        "balancing policy",
        {"choose": ("now", "flow", "servers")},
        {
            "observe": ("now", "servers"),
            "finished": ("now", "server", "latency", "servers"),
            "changed": ("servers",),
            "state": (),
        },
    ),
    "buffer": Family(
        "buffer",
        "receive-buffer policy",
        {"observe": ("now", "buffer")},
        {"state": ()},
        init=("params",),
    ),
    "source": Family("source", "traffic source", {"next": ("now",)}, {"state": ()}),
    "congestion": Family(
        "congestion",
        "congestion control",
        {"on_ack": ("now", "ack", "window"), "reduce": ("now", "cause", "flight", "window")},
        {
            "on_start": ("window",),
            "on_undo": (),
            "on_recovery_exit": ("window",),
            "on_restart": ("now", "idle", "window"),
            "state": (),
        },
        beside="tcp",
        elsewhere="a congestion control of your own works in simulation and in `sojourn udp`: the "
        "kernel's TCP takes none",
    ),
}

LOOKS = ("nothing", "connections", "latency", "counters", "backlog")
"""Information that a balancing policy can use."""


def queue(name: str, *, period: str | None = None, **defaults: Default) -> Callable[[C], C]:
    """Declares a queue discipline.

    The class has `__init__(params, draws)`, `enqueue(now, packet, queue)` and `dequeue(now,
    queue)`. With `period="16ms"`, `on_timer(now, queue)` is called at that interval.
    """
    every = 0 if period is None else _core.parse_quantity("time", period)
    return _declare("queue", name, defaults, {"period": every}, ("on_timer",) if every else ())


def balancer(
    name: str, *, look: str = "connections", period: str | None = None, **defaults: Default
) -> Callable[[C], C]:
    """Declares a balancing policy.

    The class has `__init__(params, draws)` and `choose(now, flow, servers)`. `look` selects the
    information about servers: `nothing`, `connections`, `latency` (connections and the times of
    requests), `counters` or `backlog` of their ports. With `period="100ms"`, ports are read at that
    interval and `observe(now, servers)` is called; without it, backlogs are read for each choice.
    """
    if look not in LOOKS:
        raise OwnError(f"`look` is one of {', '.join(LOOKS)}; found {look!r}")
    every = 0 if period is None else _core.parse_quantity("time", period)
    if every and look not in ("counters", "backlog"):
        raise OwnError(f"`period` is that of readings, which look={look!r} does not need")
    if look == "counters" and not every:
        raise OwnError('look="counters" needs a `period`, such as period="1s"')
    return _declare("balancer", name, defaults, {"look": look, "period": every})


def buffer(
    name: str, *, floor: str = "64kb", ceiling: str = "256mb", **defaults: Default
) -> Callable[[C], C]:
    """Declares a policy for the size of a receive buffer.

    The class has `__init__(params)` and `observe(now, buffer)`, which returns the size in bytes.
    The engine keeps the size between `floor`, which is the initial size, and `ceiling`; both are
    parameters of every such policy.
    """
    return _declare("buffer", name, {"floor": floor, "ceiling": ceiling, **defaults}, {})


def source(name: str, *, longest: str = "1472b", **defaults: Default) -> Callable[[C], C]:
    """Declares a traffic source.

    The class has `__init__(params, draws)` and `next(now)`. `now` is the time of the previous
    packet, at first the start of the flow. `next` returns the time of the next packet in
    nanoseconds and its length in bytes, or `None` after the last packet. The length is the payload
    of a datagram over UDP, of a write over TCP; no packet is longer than `longest`.
    """
    size = _core.parse_quantity("size", longest)
    if not 1 <= size <= LONGEST:
        raise OwnError(f"`longest` is a size from 1b to {LONGEST}b; found {longest!r}")
    return _declare("source", name, defaults, {"longest": size})


def congestion(
    name: str, *, owns_window: bool = False, answers_marks: bool = False, **defaults: Default
) -> Callable[[C], C]:
    """Declares a congestion control.

    The class has `__init__(params, draws)`, `on_ack(now, ack, window)` and `reduce(now, cause,
    flight, window)`, which returns the new ssthresh. With `owns_window` it also sets cwnd while
    losses are repaired. With `answers_marks` it handles marks in `on_ack`.
    """
    options = {"owns_window": owns_window, "answers_marks": answers_marks}
    return _declare("congestion", name, defaults, options)


def _declare(
    family: str,
    name: str,
    defaults: Mapping[str, Default],
    options: Mapping[str, Any],
    needs: tuple[str, ...] = (),
) -> Callable[[C], C]:
    """Returns a decorator that declares a class; `needs` are optional methods that it must have."""
    if not _NAME.fullmatch(name):
        raise OwnError(f"a policy's name has small letters, digits and `_`; found {name!r}")
    words = tuple(_word(key, default) for key, default in defaults.items())
    beside = FAMILIES[family].beside
    if taken := _words_of(beside) & set(defaults):
        raise OwnError(f"`{min(taken)}` is a word of {beside}: call the parameter otherwise")

    def declared(cls: C) -> C:
        _check_methods(FAMILIES[family], cls, needs)
        summary = (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " ")
        setattr(cls, ATTRIBUTE, Declaration(family, name, words, summary, options))
        return cls

    return declared


@cache
def _words_of(kind: str) -> frozenset[str]:
    """Returns the words that all the engine's policies of a kind share; they are reserved."""
    if not kind:
        return frozenset()
    tables = json.loads(_core.describe())[kind]
    return frozenset.intersection(*(frozenset(w["name"] for w in t["words"]) for t in tables))


def _word(name: str, default: Default) -> Word:
    if not _NAME.fullmatch(name):
        raise OwnError(f"a parameter's name has small letters, digits and `_`; found {name!r}")
    if isinstance(default, bool):
        return Word(name, "switch", name if default else f"no{name}")
    if isinstance(default, int):
        return Word(name, "integer", str(default))
    if isinstance(default, float):
        return Word(name, "real", repr(default))
    if not isinstance(default, str) or not default or len(default.split()) != 1:
        raise OwnError(
            f"the default of `{name}` is one word, a number or a flag; found {default!r}"
        )
    return Word(name, _kind(default), default)


def _kind(text: str) -> str:
    """Returns the kind of quantity of a default, from its unit."""
    if text.endswith("%"):
        return "probability"
    if text.isdigit():
        return "integer"
    for kind in ("time", "rate", "packets", "size"):
        try:
            _core.parse_quantity(kind, text)
        except _core.WordError:
            continue
        return kind
    return "name"


def _check_methods(family: Family, cls: type, needs: tuple[str, ...]) -> None:
    if not inspect.isclass(cls):
        raise OwnError(f"a {family.noun} is a class, not {cls!r}")
    wanted = {"__init__": family.init, **family.methods}
    wanted |= {name: family.optional[name] for name in needs}
    for name, arguments in (wanted | dict(family.optional)).items():
        method = getattr(cls, name, None)
        head = f"{name}({', '.join(('self', *arguments))})"
        if method is None or (name == "__init__" and method is object.__init__):
            if name in wanted:
                raise OwnError(f"class {cls.__name__} needs a method {head}")
            continue
        if not _takes(method, len(arguments) + 1):
            raise OwnError(f"method {name} of class {cls.__name__} must be {head}")


def _takes(method: Callable[..., Any], count: int) -> bool:
    try:
        inspect.signature(method).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # no signature available
        pass
    return True
