"""The decorators that declare a class as a policy, with its name and parameters."""

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
"""Type of a parameter's default: `"5ms"`, `"300p"`, `"10mbit"`, `"2%"`, a number, a flag or a word.
"""

LONGEST = 8972
"""Longest payload of a packet in bytes: that of a UDP datagram in a jumbo frame."""

ATTRIBUTE = "__sojourn__"
"""Attribute of a declared class, with its declaration."""
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
    """A parameter of a policy."""

    name: str
    kind: str
    """Kind of value in the engine's parser, such as `time` or `packets`."""
    default: str
    """Default as a text."""


@dataclass(frozen=True)
class Declaration:
    """The declaration of a class by a decorator."""

    family: str
    """Name of the policy's family, such as `queue`."""
    name: str
    """Name of the policy."""
    words: tuple[Word, ...]
    """Parameters of the policy."""
    summary: str
    """First paragraph of the class's docstring."""
    can_change: bool = False
    """Whether the class has the method `change`, so parameters can change while a queue runs."""
    options: Mapping[str, int | str | bool] = field(default_factory=dict)
    """Arguments of the decorator that are not parameters, such as a queue's `period` in
    nanoseconds.
    """

    @property
    def noun(self) -> str:
        """Noun for policies of the family."""
        return FAMILIES[self.family].noun

    @property
    def words_json(self) -> str:
        """The parameters as JSON for the engine's parser."""
        return json.dumps([vars(word) for word in self.words])


@dataclass(frozen=True)
class Family:
    """A family of policies: the noun, and the methods of its classes."""

    name: str
    noun: str
    methods: Mapping[str, tuple[str, ...]]
    """Arguments of required methods, by name, without `self`."""
    optional: Mapping[str, tuple[str, ...]]
    """Arguments of optional methods, by name, without `self`."""
    init: tuple[str, ...] = ("params", "draws")
    """Arguments of `__init__`, without `self`."""
    beside: str = ""
    """Kind of built-in words, such as the kind `tcp`, that may follow a policy's parameters.

    Empty for none.
    """
    elsewhere: str = ""
    """Error message for engines that cannot execute the policy; empty if there is no message."""


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
        elsewhere="your own congestion control works in simulation and in `sojourn udp`, not in "
        "the kernel's TCP",
    ),
}
"""Families of policies by name."""

LOOKS = ("nothing", "connections", "latency", "counters", "backlog")
"""Kinds of information on servers that a balancing policy can request."""


def queue(name: str, *, period: str | None = None, **defaults: Default) -> Callable[[C], C]:
    """Declares a queue discipline.

    The class has `__init__(params, draws)`, `enqueue(now, packet, queue)` and `dequeue(now,
    queue)`. With `period="16ms"`, the engine calls `on_timer(now, queue)` every 16 ms. The other
    keywords are the parameters with their defaults.
    """
    every = 0 if period is None else _core.parse_quantity("time", period)
    return _declare("queue", name, defaults, {"period": every}, ("on_timer",) if every else ())


def balancer(
    name: str, *, look: str = "connections", period: str | None = None, **defaults: Default
) -> Callable[[C], C]:
    """Declares a balancing policy.

    The class has `__init__(params, draws)` and `choose(now, flow, servers)`. `look` selects the
    information on servers: `nothing`, `connections`, `latency` (connections and response times), or
    `counters` or `backlog` of the servers' ports. With `period="100ms"`, the ports are read every
    100 ms and `observe(now, servers)` is called after that. Without `period`, backlogs are read
    before each choice. The other keywords are the parameters with their defaults.
    """
    if look not in LOOKS:
        raise OwnError(f"`look` must be one of {', '.join(LOOKS)}; found {look!r}")
    every = 0 if period is None else _core.parse_quantity("time", period)
    if every and look not in ("counters", "backlog"):
        raise OwnError(f"`period` requires a `look` of counters or backlog; found {look!r}")
    if look == "counters" and not every:
        raise OwnError('look="counters" requires a `period`, such as period="1s"')
    return _declare("balancer", name, defaults, {"look": look, "period": every})


def buffer(
    name: str, *, floor: str = "64kb", ceiling: str = "256mb", **defaults: Default
) -> Callable[[C], C]:
    """Declares a policy for the size of a receive buffer.

    The class has `__init__(params)` and `observe(now, buffer)`, which returns the size in bytes.
    The engine limits the size to the range from `floor` to `ceiling`, and begins with `floor`. Both
    are parameters of every such policy. The other keywords are further parameters with their
    defaults.
    """
    return _declare("buffer", name, {"floor": floor, "ceiling": ceiling, **defaults}, {})


def source(name: str, *, longest: str = "1472b", **defaults: Default) -> Callable[[C], C]:
    """Declares a traffic source.

    The class has `__init__(params, draws)` and `next(now)`. `now` is the time of the previous
    packet; in the first call it is the start of the flow. `next` returns the time in nanoseconds
    and the length in bytes of the next packet, or `None` after the last packet. Over UDP the length
    is the payload of a datagram, over TCP the length of a write. The length must not exceed
    `longest`. The other keywords are the parameters with their defaults.
    """
    size = _core.parse_quantity("size", longest)
    if not 1 <= size <= LONGEST:
        raise OwnError(f"`longest` must be a size from 1b to {LONGEST}b; found {longest!r}")
    return _declare("source", name, defaults, {"longest": size})


def congestion(
    name: str, *, owns_window: bool = False, answers_marks: bool = False, **defaults: Default
) -> Callable[[C], C]:
    """Declares a congestion control.

    The class has `__init__(params, draws)`, `on_ack(now, ack, window)` and `reduce(now, cause,
    flight, window)`, which returns the new ssthresh. With `owns_window`, the class also sets cwnd
    during loss recovery. With `answers_marks`, it handles ECN marks in `on_ack`, and `reduce` is
    not called for marks. The other keywords are the parameters with their defaults.
    """
    options = {"owns_window": owns_window, "answers_marks": answers_marks}
    return _declare("congestion", name, defaults, options)


def _declare(
    family: str,
    name: str,
    defaults: Mapping[str, Default],
    options: Mapping[str, int | str | bool],
    needs: tuple[str, ...] = (),
) -> Callable[[C], C]:
    """Returns a decorator that declares a class as a policy of a family.

    `needs` has the optional methods of the family that this class must have.
    """
    if not _NAME.fullmatch(name):
        raise OwnError(f"a policy's name must be small letters, digits and `_`; found {name!r}")
    words = tuple(_word(key, default) for key, default in defaults.items())
    beside = FAMILIES[family].beside
    if taken := _words_of(beside) & set(defaults):
        raise OwnError(f"`{min(taken)}` is a word of {beside}: rename the parameter")

    def declared(cls: C) -> C:
        _check_methods(FAMILIES[family], cls, needs)
        summary = (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " ")
        setattr(
            cls,
            ATTRIBUTE,
            Declaration(family, name, words, summary, hasattr(cls, "change"), options),
        )
        return cls

    return declared


@cache
def _words_of(kind: str) -> frozenset[str]:
    """Returns the words that all policies of a kind have in the engine; they are reserved."""
    if not kind:
        return frozenset()
    tables = json.loads(_core.describe())[kind]
    return frozenset.intersection(*(frozenset(w["name"] for w in t["words"]) for t in tables))


def _word(name: str, default: Default) -> Word:
    if not _NAME.fullmatch(name):
        raise OwnError(
            f"the name of a parameter must be small letters, digits and `_`; found {name!r}"
        )
    if isinstance(default, bool):
        return Word(name, "switch", name if default else f"no{name}")
    if isinstance(default, int):
        return Word(name, "integer", str(default))
    if isinstance(default, float):
        return Word(name, "real", repr(default))
    if not isinstance(default, str) or not default or len(default.split()) != 1:
        raise OwnError(
            f"the default of `{name}` must be one word, a number or a flag; found {default!r}"
        )
    return Word(name, _kind(default), default)


def _kind(text: str) -> str:
    """Returns the kind of a parameter from the text of its default, such as `time` for `5ms`."""
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
        raise OwnError(f"a {family.noun} must be a class; found {cls!r}")
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
