"""What files say of devices: their disciplines, classes and filters, each with its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from sojourn.scenario.errors import Problem

SEATED = ("tbf", "netem")
"""Disciplines that have one other in them."""
DEPTH = 16
"""Disciplines within each other, at most."""
INGRESS = 0xFFFF
"""Major number of what stands at a device's entrance."""
WORD = 0xFFFF_FFFF
"""All bits of a mark, or of a word of the header."""
HOOKS = ("prerouting", "input", "forward", "output", "postrouting")
"""The places of the firewall that packets pass; rules of all of them may meet a flow's packets."""


class Refused(Exception):
    """A command that cannot be read: why, and the word that it is about."""

    def __init__(self, message: str, found: str | None = None) -> None:
        super().__init__(message)
        self.found = found


class Words:
    """Words of a command that are taken one by one."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._at = 0

    def next(self) -> str | None:
        """The next word; None at the end."""
        word = self.peek()
        self._at += word is not None
        return word

    def peek(self) -> str | None:
        """The next word, which stays."""
        return self._words[self._at] if self._at < len(self._words) else None

    def value(self, key: str) -> str:
        """The next word as the value of `key`; raises `Refused` at the end."""
        word = self.next()
        if word is None:
            raise Refused(f"`{key}` needs a value", key)
        return word


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands: a file, its line from 1, and the text there."""

    file: str
    line: int
    text: str
    missing: tuple[str, ...] = ()
    """Variables of the line that have no value."""

    def problem(self, message: str, found: str | None = None) -> Problem:
        """A problem there; `found` is the word that it is about."""
        if self.missing:
            names = ", ".join(f"`{name}`" for name in self.missing)
            message = f"no value: {names}, to be given as --var {self.missing[0]}=VALUE: {message}"
        column = self.text.find(found) + 1 if found else 0
        return Problem(
            message,
            file=self.file,
            line=self.line,
            column=column or None,
            end_column=column + len(found) if column and found else None,
            source=self.text,
            found=found,
        )

    def note(self, message: str) -> Notice:
        """A notice about it."""
        return Notice(message, self)


@dataclass(frozen=True, slots=True)
class Notice:
    """What is worth knowing of how a line was read."""

    message: str
    place: Place | None = None

    def __str__(self) -> str:
        if self.place is None:
            return self.message
        return f"{self.place.file}:{self.place.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class Name:
    """A discipline's number and that of a class of it; minor 0 is the discipline itself."""

    major: int
    minor: int = 0

    def __str__(self) -> str:
        return f"{self.major:x}:{self.minor:x}" if self.minor else f"{self.major:x}:"


ROOT = Name(0xFFFF, 0xFFFF)


@dataclass(slots=True)
class Discipline:
    """A discipline: where it is attached, and its words behind its kind."""

    kind: str
    parent: Name
    handle: int | None
    words: list[str]
    place: Place
    stab: list[str] = field(default_factory=list)
    """The words of its size table."""
    shown: bool = False
    """Whether `tc` printed it; else it was typed."""


@dataclass(slots=True)
class Class:
    """A class and its words."""

    kind: str
    name: Name
    parent: Name
    words: list[str]
    place: Place


@dataclass(slots=True)
class Match:
    """What a filter compares: a word of the header under a mask, or a part by its name."""

    field: str
    """`ip` is a word of the IP header at `offset`, `next` one of what is behind it; else `mark`,
    `src`, `dst`, `sport`, `dport`, `protocol`, `tos` and others by name."""
    value: str | int
    mask: int | None = None
    offset: int = 0


@dataclass(slots=True)
class Filter:
    """A filter: where it asks, its order, its tests and its target."""

    kind: str
    parent: Name
    place: Place
    prio: int | None = None
    """None is chosen by Linux: before all that were so chosen earlier."""
    protocol: str = "all"
    handle: str = ""
    matches: list[Match] = field(default_factory=list)
    target: str | None = None
    flow: dict[str, str] = field(default_factory=dict)
    """What `flow` says of its hash."""
    redirect: str | None = None
    """The device that it sends packets to."""
    action: str | None = None
    """Another action."""
    unread: str | None = None
    """Why its tests cannot be read."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a rule does to a packet: it sets a field, of a mark some bits."""

    field: str
    """`mark`, `dscp` or `class`, which is the packet's priority."""
    value: int | Name
    mask: int = WORD


@dataclass(frozen=True, slots=True)
class Step:
    """One rule of a chain."""

    place: Place
    tests: tuple[tuple[tuple[Match, ...], ...], ...] = ()
    """Each is met by any of its alternatives, and an alternative by all of its matches."""
    device: str | None = None
    """The device that packets leave by; `+` or `*` at its end stands for anything."""
    changes: tuple[Change, ...] = ()
    verdict: str = "continue"
    """`accept` and `return` end the chain; `jump` and `goto` go on in another."""
    target: str = ""
    """The chain of `jump` and `goto`."""
    is_idle: bool = False
    """Whether it meets no packet here, such as one of IPv6."""

    def applies(self, device: str) -> bool:
        """Whether it may meet packets that leave by a device."""
        pattern = self.device and self.device.replace("+", "*")
        return not self.is_idle and (not pattern or fnmatchcase(device, pattern))


@dataclass(slots=True)
class Firewall:
    """All chains that files set up."""

    chains: dict[str, list[Step]] = field(default_factory=dict)
    """Rules by table and chain, such as `mangle/POSTROUTING`."""
    hooks: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Hook and priority of the chains that packets enter by themselves."""

    @property
    def changes(self) -> list[Step]:
        """The rules that change packets, in the order of their lines."""
        found = [step for chain in self.chains.values() for step in chain if step.changes]
        return sorted(found, key=lambda step: step.place.line)

    def entered(self) -> list[str]:
        """The chains that packets enter by themselves, in the order of the hooks."""
        known = [name for name in self.chains if name in self.hooks]
        return sorted(
            known, key=lambda name: (HOOKS.index(self.hooks[name][0]), self.hooks[name][1])
        )


@dataclass(slots=True)
class Device:
    """A device as the files leave it."""

    name: str
    seats: dict[Name, Discipline] = field(default_factory=dict)
    """Disciplines by where they are."""
    handles: dict[int, Discipline] = field(default_factory=dict)
    """Disciplines that have a number, by it."""
    classes: dict[Name, Class] = field(default_factory=dict)
    filters: list[Filter] = field(default_factory=list)
    ingress: Place | None = None
    """Where its entrance gets filters."""
    length: int | None = None
    """Packets of its `txqueuelen`, if that was set."""

    @property
    def root(self) -> Discipline | None:
        """The root queue discipline; `None` if the files set none."""
        return self.seats.get(ROOT)

    @property
    def is_configured(self) -> bool:
        """Whether somebody set it up, and not Linux by default."""
        return self.root is not None and (not self.root.shown or bool(self.root.handle))

    @property
    def holds(self) -> bool:
        """Whether packets wait there."""
        return self.root is not None and self.root.kind not in {"noqueue", "noop"}

    @property
    def redirects(self) -> list[str]:
        """The devices that its entrance sends packets to."""
        inner = (f.redirect for f in self.filters if f.parent.major == INGRESS)
        return list(dict.fromkeys(name for name in inner if name))

    def seat(self, parent: Name) -> Name:
        """Where a discipline with this parent is: TBF and netem have one seat each."""
        holder = self.handles.get(parent.major)
        is_single = parent != ROOT and holder is not None and holder.kind in SEATED
        return Name(parent.major) if is_single else parent

    def check_depth(self, new: Discipline) -> None:
        """Refuses a discipline that would be in itself, or in too many others."""
        parent, depth = new.parent, 0
        while parent != ROOT and (above := self.handles.get(parent.major)) is not None:
            depth += 1
            if parent.major == new.handle or depth > DEPTH:
                told = (
                    "would be in itself" if parent.major == new.handle else "is in too many others"
                )
                raise Refused(f"`{new.kind}` {told}", new.kind)
            parent = above.parent

    def put(self, one: Discipline) -> None:
        """Puts a discipline at its place."""
        self.seats[self.seat(one.parent)] = one
        if one.handle:
            self.handles[one.handle] = one

    def take_out(self, one: Discipline) -> None:
        """Removes a discipline with all that is in it."""
        waiting = [one]
        while waiting:
            gone = waiting.pop()
            self.seats = {name: d for name, d in self.seats.items() if d is not gone}
            if gone.handle:
                self.handles.pop(gone.handle, None)
                waiting += [d for d in self.seats.values() if d.parent.major == gone.handle]
                major = gone.handle
                self.classes = {n: c for n, c in self.classes.items() if n.major != major}
                self.filters = [f for f in self.filters if f.parent.major != major]

    def copy(self) -> Device:
        """The same, to be changed apart."""
        return Device(
            self.name,
            dict(self.seats),
            dict(self.handles),
            dict(self.classes),
            list(self.filters),
            self.ingress,
            self.length,
        )

    def clear(self) -> None:
        """Takes away all but the entrance."""
        self.seats, self.handles, self.classes = {}, {}, {}
        self.filters = [f for f in self.filters if f.parent.major == INGRESS]

    def clear_ingress(self) -> None:
        """Takes away the entrance's filters."""
        self.ingress = None
        self.filters = [f for f in self.filters if f.parent.major != INGRESS]


@dataclass(slots=True)
class Reading:
    """What files say, what of them could not be read, and what is worth knowing."""

    devices: dict[str, Device] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    asked: dict[str, None] = field(default_factory=dict)
    """Variables of scripts that have no value, in the order in which they were needed."""
    absent: dict[str, Place] = field(default_factory=dict)
    """Files that scripts read, and that are not among those given."""
    firewall: Firewall = field(default_factory=Firewall)
    """The rules by which a firewall changes packets."""

    def device(self, name: str) -> Device:
        """The device of this name, made if it is new."""
        return self.devices.setdefault(name, Device(name))


Values = Mapping[str, str]
"""Values of variables that a user gives."""
Texts = Sequence[tuple[str, str]]
"""Files: name and text."""


def number(text: str) -> int | None:
    """A number of a class or discipline, hexadecimal as `tc` reads it."""
    digits = text.lower().removeprefix("0x")
    try:
        value = int(digits, 16) if digits and digits.isalnum() else -1
    except ValueError:
        return None
    return value if 0 <= value <= 0xFFFF else None


def handle_of(text: str) -> int | None:
    """The number of a discipline: `1:`, `1`, `0x1:`, `1:0`."""
    major, _, minor = text.partition(":")
    return number(major) if minor in ("", "0") else None


def name_of(text: str) -> Name | None:
    """A class: `1:10`, `1:`, `:10`, `root`."""
    if text == "root":
        return ROOT
    major, colon, minor = text.partition(":")
    if not colon or not (major or minor):
        return None
    numbers = (number(major) if major else 0, number(minor) if minor else 0)
    return None if None in numbers else Name(numbers[0] or 0, numbers[1] or 0)
