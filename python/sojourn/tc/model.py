"""Devices as files set them up: disciplines, classes and filters, each with its place in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from sojourn.scenario.errors import Problem

SEATED = ("tbf", "netem")
"""Disciplines that hold exactly one inner discipline."""
DEPTH = 16
"""Largest depth of nested disciplines."""
INGRESS = 0xFFFF
"""Major number of the ingress discipline of a device."""
WORD = 0xFFFF_FFFF
"""Mask with all bits of a mark, or of a 32-bit word of the header."""
HOOKS = ("prerouting", "input", "forward", "output", "postrouting")
"""Hooks of the firewall in the order that packets pass them; packets are assumed to pass all."""


class Refused(Exception):
    """Raised for a command that cannot be read; `found` is the word that caused it."""

    def __init__(self, message: str, found: str | None = None) -> None:
        super().__init__(message)
        self.found = found


class Words:
    """The words of a command, taken one by one."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._at = 0

    def next(self) -> str | None:
        """Returns the next word and moves past it; None at the end."""
        word = self.peek()
        self._at += word is not None
        return word

    def peek(self) -> str | None:
        """Returns the next word without moving; None at the end."""
        return self._words[self._at] if self._at < len(self._words) else None

    def value(self, key: str) -> str:
        """Returns the next word as the value of `key`; raises `Refused` at the end."""
        word = self.next()
        if word is None:
            raise Refused(f"`{key}` needs a value", key)
        return word


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file: the file's name, the line number from 1, and the text of the line."""

    file: str
    line: int
    text: str
    missing: tuple[str, ...] = ()
    """Variables in the line that have no value."""

    def problem(self, message: str, found: str | None = None) -> Problem:
        """Returns a problem at this place; `found` is the word that caused it."""
        if self.missing:
            names = ", ".join(f"`{name}`" for name in self.missing)
            message = f"no value for {names} (set it by --var {self.missing[0]}=VALUE): {message}"
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
        """Returns a notice at this place."""
        return Notice(message, self)


@dataclass(frozen=True, slots=True)
class Notice:
    """A message on how a line was read, for example with a default."""

    message: str
    place: Place | None = None

    def __str__(self) -> str:
        if self.place is None:
            return self.message
        return f"{self.place.file}:{self.place.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class Name:
    """The number of a discipline (`major`) and of its class; minor 0 is the discipline itself."""

    major: int
    minor: int = 0

    def __str__(self) -> str:
        return f"{self.major:x}:{self.minor:x}" if self.minor else f"{self.major:x}:"


ROOT = Name(0xFFFF, 0xFFFF)


@dataclass(slots=True)
class Discipline:
    """A discipline: its kind, parent, handle, and the words after its kind."""

    kind: str
    parent: Name
    handle: int | None
    words: list[str]
    place: Place
    stab: list[str] = field(default_factory=list)
    """Words of the size table (`stab`)."""
    shown: bool = False
    """Whether `tc` printed the discipline; otherwise a command set it up."""


@dataclass(slots=True)
class Class:
    """A class of a discipline: its kind, name, parent and words."""

    kind: str
    name: Name
    parent: Name
    words: list[str]
    place: Place


@dataclass(slots=True)
class Match:
    """A test of a filter: it compares a masked 32-bit word of the header, or a named field."""

    field: str
    """`ip` is a 32-bit word of the IP header at the byte `offset`, `next` a word of the following
    header. Other values are names of fields, such as `mark`, `sport` and `dport`."""
    value: str | int
    mask: int | None = None
    offset: int = 0


@dataclass(slots=True)
class Filter:
    """A filter: its discipline or class (`parent`), order, tests and target."""

    kind: str
    parent: Name
    place: Place
    prio: int | None = None
    """Order of evaluation, lowest first; None if Linux chooses it (see `tree.AUTOMATIC`)."""
    protocol: str = "all"
    handle: str = ""
    matches: list[Match] = field(default_factory=list)
    target: str | None = None
    flow: dict[str, str] = field(default_factory=dict)
    """Options of the filter `flow` on its hash, by word."""
    redirect: str | None = None
    """Device to which the filter redirects packets; None if it does not."""
    unread: str | None = None
    """Reason why the tests cannot be read; None if they can."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change that a firewall rule makes to a packet: it sets a field, or bits of the mark."""

    field: str
    """`mark`, `dscp`, or `class`, which is set as the packet's priority."""
    value: int | Name
    mask: int = WORD


@dataclass(frozen=True, slots=True)
class Step:
    """A rule in a chain of the firewall."""

    place: Place
    tests: tuple[tuple[tuple[Match, ...], ...], ...] = ()
    """Tests that must all hold; a test is a list of alternatives, and an alternative a list of
    matches."""
    device: str | None = None
    """Device by which packets leave, a name that may end with the wildcard `+` or `*`; None for
    any."""
    changes: tuple[Change, ...] = ()
    verdict: str = "continue"
    """`accept` and `return` end the chain; `jump` and `goto` continue in the chain `target`."""
    target: str = ""
    """Name of the chain of `jump` and `goto`."""
    is_idle: bool = False
    """Whether the rule matches no packet here, for example because it is for IPv6."""

    def applies(self, device: str) -> bool:
        """Returns whether the rule can match packets that leave by a device."""
        pattern = self.device and self.device.replace("+", "*")
        return not self.is_idle and (not pattern or fnmatchcase(device, pattern))


@dataclass(slots=True)
class Firewall:
    """All chains of the firewall that the files set up."""

    chains: dict[str, list[Step]] = field(default_factory=dict)
    """Rules by table and chain, such as `mangle/POSTROUTING`."""
    hooks: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Hook and priority of the chains at which packets begin."""

    @property
    def changes(self) -> list[Step]:
        """The rules that change packets, in the order of their lines."""
        found = [step for chain in self.chains.values() for step in chain if step.changes]
        return sorted(found, key=lambda step: step.place.line)

    def entered(self) -> list[str]:
        """Returns the chains at which packets begin, in the order in which packets pass them."""
        known = [name for name in self.chains if name in self.hooks]
        return sorted(
            known, key=lambda name: (HOOKS.index(self.hooks[name][0]), self.hooks[name][1])
        )


@dataclass(slots=True)
class Device:
    """A device after all commands in the files."""

    name: str
    seats: dict[Name, Discipline] = field(default_factory=dict)
    """Disciplines by the place where each is attached (see `seat`)."""
    handles: dict[int, Discipline] = field(default_factory=dict)
    """Disciplines that have a handle, by its major number."""
    classes: dict[Name, Class] = field(default_factory=dict)
    filters: list[Filter] = field(default_factory=list)
    ingress: Place | None = None
    """Place where the ingress discipline was set up; None without one."""
    length: int | None = None
    """Queue length of the device in packets (`txqueuelen`), if the files set it."""

    @property
    def root(self) -> Discipline | None:
        """The root queue discipline; None if the files set none."""
        return self.seats.get(ROOT)

    @property
    def is_configured(self) -> bool:
        """Whether a user set up the root discipline; false if it is Linux's default."""
        return self.root is not None and (not self.root.shown or bool(self.root.handle))

    @property
    def holds(self) -> bool:
        """Whether the device has a queue: neither `noqueue` nor `noop` at the root."""
        return self.root is not None and self.root.kind not in {"noqueue", "noop"}

    @property
    def redirects(self) -> list[str]:
        """Names of the devices to which incoming packets are redirected."""
        inner = (f.redirect for f in self.filters if f.parent.major == INGRESS)
        return list(dict.fromkeys(name for name in inner if name))

    def seat(self, parent: Name) -> Name:
        """Returns where a discipline with this parent is attached.

        TBF and netem have one place each for an inner discipline, regardless of the minor number of
        its parent.
        """
        holder = self.handles.get(parent.major)
        is_single = parent != ROOT and holder is not None and holder.kind in SEATED
        return Name(parent.major) if is_single else parent

    def check_depth(self, new: Discipline) -> None:
        """Raises `Refused` for a discipline in itself, or in more than `DEPTH` disciplines."""
        parent, depth = new.parent, 0
        while parent != ROOT and (above := self.handles.get(parent.major)) is not None:
            depth += 1
            if parent.major == new.handle or depth > DEPTH:
                reason = (
                    "would contain itself"
                    if parent.major == new.handle
                    else f"is nested in more than {DEPTH} disciplines"
                )
                raise Refused(f"`{new.kind}` {reason}", new.kind)
            parent = above.parent

    def put(self, one: Discipline) -> None:
        """Attaches a discipline at its place."""
        self.seats[self.seat(one.parent)] = one
        if one.handle:
            self.handles[one.handle] = one

    def take_out(self, one: Discipline) -> None:
        """Removes a discipline with everything below it: disciplines, classes and filters."""
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
        """Returns a copy that can be changed independently."""
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
        """Removes everything from the device except its ingress filters."""
        self.seats, self.handles, self.classes = {}, {}, {}
        self.filters = [f for f in self.filters if f.parent.major == INGRESS]

    def clear_ingress(self) -> None:
        """Removes the ingress discipline and its filters."""
        self.ingress = None
        self.filters = [f for f in self.filters if f.parent.major != INGRESS]


@dataclass(slots=True)
class Reading:
    """The devices that the files set up, problems with unreadable parts, and notices."""

    devices: dict[str, Device] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    asked: dict[str, None] = field(default_factory=dict)
    """Variables of scripts that have no value, in the order of their first use."""
    absent: dict[str, Place] = field(default_factory=dict)
    """Files that scripts read but the user did not give, each with the place of the command."""
    firewall: Firewall = field(default_factory=Firewall)
    """Rules of the firewall."""

    def device(self, name: str) -> Device:
        """Returns the device of this name; creates it if it is new."""
        return self.devices.setdefault(name, Device(name))


Values = Mapping[str, str]
"""Values of script variables from the user, by name."""
Texts = Sequence[tuple[str, str]]
"""Files as pairs of name and text."""


def number(text: str) -> int | None:
    """Returns the hexadecimal number of a class or discipline; None if invalid."""
    digits = text.lower().removeprefix("0x")
    try:
        value = int(digits, 16) if digits and digits.isalnum() else -1
    except ValueError:
        return None
    return value if 0 <= value <= 0xFFFF else None


def handle_of(text: str) -> int | None:
    """Returns the number in a handle (`1:`, `1`, `0x1:`, `1:0`); None if invalid."""
    major, _, minor = text.partition(":")
    return number(major) if minor in ("", "0") else None


def name_of(text: str) -> Name | None:
    """Returns the class in a text such as `1:10`, `1:`, `:10` or `root`; None if invalid."""
    if text == "root":
        return ROOT
    major, colon, minor = text.partition(":")
    if not colon or not (major or minor):
        return None
    numbers = (number(major) if major else 0, number(minor) if minor else 0)
    return None if None in numbers else Name(numbers[0] or 0, numbers[1] or 0)
