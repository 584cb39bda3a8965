"""The monitor: which next decisions a text permits after an implementation's own past decisions.

The rules of a discipline are a program with choices: wherever the text leaves room, it asks its
`Path`. The monitor holds all states that the past decisions allow, runs each state along all paths,
and keeps those that lead to the observed decision. Without such a state, the decision is a breach.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Self

ALPHA = 1e-6
"""Probability with which a correct implementation of a random discipline is rejected, at most."""
MOST_STATES = 4000
"""Largest number of states that the monitor holds or tries for one operation."""
Number = int | float
Params = Mapping[str, Number | None]
"""Parameters of a discipline by name: times in nanoseconds, sizes in bytes; a limit of None is no
limit.
"""
Span = tuple[Number, Number]
"""Earliest and latest possible value of a time in nanoseconds."""


class Op(NamedTuple):
    """An operation on a queue."""

    kind: Literal["enqueue", "dequeue", "update"]
    t: int
    """Time in nanoseconds."""
    id: int = 0
    """Number of the arriving packet."""
    size: int = 0
    """Length of the arriving packet in bytes."""
    ecn: int = 0
    """ECN field of the arriving packet."""
    flow: int = 0
    """Label of the arriving packet's flow."""
    random: float = 0.0
    """Random number from 0 to 1 for the decision about the arriving packet, if an implementation
    takes it from the judge.
    """


class Decision(NamedTuple):
    """Packets that leave a queue, are dropped or are marked in an operation, by number."""

    delivered: int | None = None
    dropped: tuple[int, ...] = ()
    marked: tuple[int, ...] = ()

    def __str__(self) -> str:
        parts = [f"drops {', '.join(map(str, self.dropped))}"] if self.dropped else []
        parts += [f"marks {', '.join(map(str, self.marked))}"] if self.marked else []
        parts += [] if self.delivered is None else [f"delivers {self.delivered}"]
        return ", ".join(parts) or "nothing"


@dataclass(frozen=True)
class Answer:
    """The answer of an implementation to an operation."""

    decision: Decision
    shown: Mapping[str, Number] = field(default_factory=dict)
    """Internal values that the implementation shows, such as its probability `p`."""


class Breach(Exception):
    """A decision that the text does not permit."""

    def __init__(self, rule: str, message: str, permitted: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.rule = rule
        self.permitted = list(permitted)


class Path:
    """One path through the choices of a program; the other ways are added to `pending`."""

    def __init__(self, taken: tuple[bool, ...], pending: list[tuple[bool, ...]]) -> None:
        self.taken, self.pending, self.at = taken, pending, 0
        self.draws: list[tuple[str, bool, float, float]] = []
        """Random events: kind, whether each happened, and limits of its probability."""

    def __call__(self) -> bool:
        """Returns True on this path, and False on another one."""
        if self.at == len(self.taken):
            self.pending.append((*self.taken, False))
            self.taken = (*self.taken, True)
        self.at += 1
        return self.taken[self.at - 1]

    def draw(
        self, kind: str, happened: bool, low: float, high: float, given: float | None = None
    ) -> bool:
        """Returns whether a random event happens, whose probability is from `low` to `high`.

        `happened` is what the implementation did; an impossible or certain event ignores it, and
        so does an event that a `given` random number decides.
        """
        if high <= 0 or low >= 1:
            return low >= 1
        if given is not None:
            return happened if low <= given < high else given < low
        self.draws.append((kind, happened, max(low, 0.0), min(high, 1.0)))
        return happened


class Frequency:
    """A sequential test of whether events of several kinds have their stated probabilities.

    Each capital of a kind is a bet on another factor of the probabilities. Under the stated
    probabilities the mean of all capitals exceeds 1 / `ALPHA` at any time with a probability of at
    most `ALPHA` (Ville's inequality).
    """

    FACTORS = (0.5, 0.7, 0.85, 1.18, 1.4, 2.0)
    KINDS = 3
    """Most kinds of events."""

    def __init__(self) -> None:
        self.capitals: dict[str, list[float]] = {}
        self.counts: dict[str, tuple[int, int, float]] = {}
        """Trials, events, and expected events of each kind."""

    def add(self, kind: str, happened: bool, low: float, high: float) -> None:
        """Bets on an event whose probability is from `low` to `high`."""
        trials, events, expected = self.counts.get(kind, (0, 0, 0.0))
        self.counts[kind] = (trials + 1, events + happened, expected + (low + high) / 2)
        capitals = self.capitals.setdefault(kind, [1.0] * len(self.FACTORS))
        for n, factor in enumerate(self.FACTORS):
            p = low if factor < 1 else high
            q = min(p * factor, (1 + p) / 2)
            if 0 < p < 1:
                capitals[n] *= q / p if happened else (1 - q) / (1 - p)

    @property
    def rejected(self) -> str | None:
        """The contradiction between the events and their probabilities, if there is one."""
        most = len(self.FACTORS) * self.KINDS / ALPHA
        for kind, capitals in self.capitals.items():
            if sum(capitals) >= most:
                trials, events, expected = self.counts[kind]
                return f"{events} {kind} in {trials} trials, where {expected:.1f} are expected"
        return None

    def copy(self) -> Frequency:
        """Returns an independent copy."""
        other = Frequency()
        other.capitals = {kind: capitals[:] for kind, capitals in self.capitals.items()}
        other.counts = dict(self.counts)
        return other


class Packet(NamedTuple):
    """A packet in the queue."""

    at: int
    size: int
    ecn: int
    flow: int


class Ledger:
    """The packets that are in the queue, by the implementation's own decisions."""

    def __init__(self) -> None:
        self.packets: dict[int, Packet] = {}
        self.lines: dict[int, deque[int]] = {}
        """Numbers of the packets of each line, in the order of arrival."""
        self.line_bytes: dict[int, int] = {}
        self.bytes = 0
        self.largest = 0
        """Largest packet that has left the queue, in bytes."""

    def add(self, op: Op, line: int) -> None:
        """Adds an arriving packet."""
        self.packets[op.id] = Packet(op.t, op.size, op.ecn, line)
        self.lines.setdefault(line, deque()).append(op.id)
        self.line_bytes[line] = self.line_bytes.get(line, 0) + op.size
        self.bytes += op.size

    def remove(self, number: int) -> None:
        """Removes a packet."""
        packet = self.packets.pop(number)
        self.lines[packet.flow].remove(number)
        self.line_bytes[packet.flow] -= packet.size
        self.bytes -= packet.size
        self.largest = max(self.largest, packet.size)


class Line:
    """The packets of a line, of which a path takes the first ones."""

    def __init__(self, ledger: Ledger, name: int, gone: Sequence[int] = ()) -> None:
        self.ledger = ledger
        self.ids = ledger.lines.get(name, deque())
        left = [packet for packet in map(ledger.packets.__getitem__, gone) if packet.flow == name]
        self.taken = len(left)
        self.bytes = ledger.line_bytes.get(name, 0) - sum(packet.size for packet in left)
        self.total = ledger.bytes - sum(ledger.packets[number].size for number in gone)
        """Bytes that are left in all lines. Packets in `gone` have left in this operation."""
        self.largest = ledger.largest

    def pop(self) -> int | None:
        """Takes the next packet; returns its number, or None without one."""
        if self.taken >= len(self.ids):
            return None
        number = self.ids[self.taken]
        self.taken += 1
        size = self.ledger.packets[number].size
        self.bytes -= size
        self.total -= size
        self.largest = max(self.largest, size)
        return number


@dataclass(frozen=True)
class Freedom:
    """A place where a text leaves room."""

    place: str
    """Section of the RFC."""
    sentence: str
    """The text that leaves room, in its words or shortened in ours, or what Linux does otherwise.
    The guide on judging quotes the text.
    """
    per_decision: bool = False
    """Whether each decision may use the freedom or not."""
    linux: bool = False
    """Whether the freedom is Linux's alone, and must be allowed."""


class State(ABC):
    """A possible state of an implementation, with the rules of its discipline."""

    freedoms: Mapping[str, Freedom]
    """The freedoms of the text by name."""

    def __init__(self, params: Params, linux: bool) -> None:
        self.params, self.linux = params, linux
        self.modes: dict[str, bool] = {}
        """Freedoms that an implementation uses always or never, as far as they are known."""
        self.test = Frequency()
        self.seen = Decision()
        """Decision of the implementation in this operation, which decides random events."""
        self.shown: Mapping[str, Number] = {}
        """Values that the implementation shows after this operation."""
        clock = params.get("clock") or 0
        self.slack = 3 * clock
        """Tolerance of comparisons of times in nanoseconds: both are rounded, and may be equal."""

    def __getitem__(self, name: str) -> Number:
        value = self.params[name]
        assert value is not None, name
        return value

    def line(self, op: Op) -> int:
        """Returns the line of an arriving packet."""
        del op
        return 0

    @abstractmethod
    def play(self, op: Op, ledger: Ledger, path: Path) -> Decision:
        """Executes an operation; the ledger already has an arriving packet."""

    def show(self, answer: Answer, op: Op) -> str | None:
        """Compares the values that an implementation shows; returns a difference."""
        del answer, op
        return None

    @abstractmethod
    def describe(self, begin: int) -> dict[str, str]:
        """Returns the state as texts, with times since `begin`."""

    def copy(self) -> Self:
        """Returns an independent copy."""
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        return other

    def mode(self, path: Path, name: str) -> bool:
        """Returns whether the implementation uses a freedom; the same in all operations."""
        if self.freedoms[name].linux and not self.linux:
            return False
        if name not in self.modes:
            self.modes = {**self.modes, name: path()}
        return self.modes[name]

    def passed(self, path: Path, now: Number, span: Span) -> tuple[bool, Span]:
        """Returns whether a time has come, and the span that this leaves of it."""
        low, high = span
        if now >= high:
            return True, span
        if now < low:
            return False, span
        return (True, (low, now)) if path() else (False, (now, high))

    def key(self) -> object:
        """Returns a value that is equal for equal states of one monitor after one operation."""
        return tuple(frozen(part) for name, part in vars(self).items() if name not in COMMON)


COMMON = {"params", "linux", "slack", "seen", "shown"}
"""Fields that are equal in all states."""


def frozen(value: object) -> object:
    """Returns a part of a state as a value that can be a key."""
    if value is None or isinstance(value, int | float | tuple):
        return value
    if isinstance(value, list):
        return tuple(value)
    fields = value if isinstance(value, dict) else vars(value)
    return tuple((name, frozen(part)) for name, part in fields.items())


class Monitor:
    """Observes the operations on one queue and the answers of its implementation."""

    def __init__(self, states: Sequence[State]) -> None:
        self.states = list(states)
        self.ledger = Ledger()

    def advance(self, op: Op, answer: Answer) -> None:
        """Follows an operation; raises `Breach` if no state permits the answer."""
        decision, ledger = answer.decision, self.ledger
        if op.kind == "enqueue":
            ledger.add(op, self.states[0].line(op))
        self._conserve(op, decision)
        kept: list[State] = []
        permitted: dict[Decision, None] = {}
        differences: dict[str, None] = {}
        rule = "value"
        for after, found, draws in self._ways(op, answer):
            permitted[found] = None
            if found != decision:
                continue
            if draws:
                after.test = after.test.copy()
            for event in draws:
                after.test.add(*event)
            if (difference := after.test.rejected) is not None:
                rule = "frequency"
                differences[difference] = None
            elif (difference := after.show(answer, op)) is not None:
                differences[difference] = None
            else:
                kept.append(after)
        if differences and not kept:
            raise Breach(rule, "; ".join(differences))
        if not kept:
            raise Breach("decision", f"found: {decision}", list(map(str, permitted)))
        if len(kept) > 1:
            kept = list({after.key(): after for after in kept}.values())
        self.states = kept
        for number in (*decision.dropped, decision.delivered):
            if number is not None:
                ledger.remove(number)

    def _ways(
        self, op: Op, answer: Answer
    ) -> Iterator[tuple[State, Decision, list[tuple[str, bool, float, float]]]]:
        tried = 0
        for state in self.states:
            pending: list[tuple[bool, ...]] = [()]
            while pending:
                path, after = Path(pending.pop(), pending), state.copy()
                after.seen, after.shown = answer.decision, answer.shown
                yield after, after.play(op, self.ledger, path), path.draws
                tried += 1
                if tried > MOST_STATES:
                    raise Breach("size", f"more than {MOST_STATES} states are possible")

    def _conserve(self, op: Op, decision: Decision) -> None:
        gone = [*decision.dropped, *([] if decision.delivered is None else [decision.delivered])]
        for number in (*gone, *decision.marked):
            if number not in self.ledger.packets:
                raise Breach("count", f"packet {number} is not in the queue")
        if len(set(gone)) < len(gone):
            raise Breach("count", f"a packet leaves twice: {decision}")
        if op.kind != "dequeue" and decision.delivered is not None:
            raise Breach("count", f"{op.kind} delivers packet {decision.delivered}")

    def describe(self, begin: int) -> list[dict[str, str]]:
        """Returns texts of the possible states, with times since `begin`."""
        return [state.describe(begin) for state in self.states]

    def taken(self) -> dict[str, bool]:
        """Returns the freedoms about which all possible states agree."""
        first = self.states[0].modes
        return {
            name: value
            for name, value in first.items()
            if all(state.modes.get(name) == value for state in self.states)
        }
