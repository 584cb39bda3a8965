"""Tests a policy's contract with random schedules, and finds the shortest failing schedule.

A schedule is a list of steps, each a tuple of plain values that begins with the action. The trial
of a family executes a schedule on new instances, and notes the outcome of each step or raises
`Broken`. In every family, a policy must make the same decisions when a schedule is repeated, and
when it continues with a copy of the policy.
"""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

from sojourn import _core

Step = tuple[str | int, ...]
Schedule = list[Step]
Note = Callable[[str], None]

START = 1_000_000_000
"""Time on the clock at the begin of a schedule, in nanoseconds."""


class Broken(Exception):
    """The policy broke its contract, or its code failed."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule
        """The broken rule; a shortened schedule must break the same rule."""


class Bench(Protocol):
    """A policy outside a run, driven step by step; its calls raise `PolicyError`."""

    def copy(self) -> Self:
        """Returns a bench in the same state, independent of this one."""


T = TypeVar("T")
B = TypeVar("B", bound=Bench)


class Play(ABC, Generic[B]):
    """The execution of a schedule on a policy.

    A copy contains copies of all attributes that can be copied.
    """

    def __init__(self, make: Callable[[], B], note: Note) -> None:
        self.bench = guarded(make)
        self.note = note
        self.now = START
        self.history: list[Any] = []
        """Decisions so far."""

    @abstractmethod
    def step(self, step: Step) -> None:
        """Executes one step of a schedule; raises `Broken`."""

    def end(self) -> None:
        """Executes the end of every schedule; raises `Broken`."""

    def copied(self) -> Self:
        """Returns a copy of this execution with a copy of the policy."""
        other = object.__new__(type(self))
        other.__dict__.update(
            (name, guarded(value.copy) if hasattr(value, "copy") else value)
            for name, value in vars(self).items()
        )
        other.note = _silent
        return other

    def call(self, what: str, call: Callable[[], T], told: Callable[[T], str]) -> T:
        """Calls the bench, notes the call with its outcome, and appends it to the history."""
        head = f"{(self.now - START) / 1e6:.3f} ms: {what}"
        try:
            result = call()
        except _core.PolicyError as error:
            self.note(f"{head}: {error}")
            raise Broken("fault", str(error)) from None
        self.note(f"{head} → {told(result)}")
        self.history.append(result)
        return result


def guarded(make: Callable[[], T]) -> T:
    """Returns the result of `make`; an error of the policy breaks the contract."""
    try:
        return make()
    except _core.PolicyError as error:
        raise Broken("fault", str(error)) from None


def _silent(_: str) -> None:
    pass


class Trial(Protocol):
    """The test of a family's policies."""

    def schedule(self, draws: random.Random) -> Schedule:
        """Returns a random schedule."""

    def simpler(self, step: Step) -> list[Step]:
        """Returns simpler steps to try in place of one."""

    def play(self, note: Note) -> Play[Any]:
        """Returns the execution on a new policy, with notes of its steps; raises `Broken`."""


def _execute(trial: Trial, schedule: Sequence[Step], note: Note) -> None:
    """Executes a schedule twice, once from a copy made halfway; raises `Broken`."""
    whole = trial.play(note)
    half, middle = None, len(schedule) // 2
    for number, step in enumerate(schedule):
        if number == middle:
            half = whole.copied()
        whole.step(step)
    whole.end()
    _repeat(trial.play(_silent), schedule, whole, "again", AGAIN)
    if half is not None:
        _repeat(half, schedule[middle:], whole, "copy", COPY)


def _repeat(
    play: Play[Any], schedule: Sequence[Step], whole: Play[Any], rule: str, message: str
) -> None:
    for step in schedule:
        play.step(step)
    play.end()
    if play.history != whole.history:
        raise Broken(rule, message)


@dataclass(frozen=True)
class Failure:
    """The shortest schedule found that breaks the contract."""

    rule: str
    message: str
    steps: list[str]
    """Steps with their outcomes, one per line; the last one failed."""
    found_with: int
    """Number of steps in the first failing schedule."""


@dataclass(frozen=True)
class Outcome:
    """Result of a policy's tests."""

    schedules: int
    steps: int
    seconds: float
    failure: Failure | None


def check(
    trial: Trial, schedules: int, seed: int, stop: Callable[[], bool] | None = None
) -> Outcome:
    """Tests a policy with random schedules until one breaks its contract; shortens that one."""
    begin, steps = time.perf_counter(), 0
    for number in range(schedules):
        if stop is not None and stop():
            return Outcome(number, steps, time.perf_counter() - begin, None)
        schedule = trial.schedule(random.Random(f"{seed}/{number}"))  # noqa: S311 - a schedule
        steps += len(schedule)
        broken = _broken(trial, schedule)
        if broken is not None:
            seconds = time.perf_counter() - begin
            return Outcome(number + 1, steps, seconds, _shrunk(trial, schedule, broken.rule))
    return Outcome(schedules, steps, time.perf_counter() - begin, None)


def _broken(trial: Trial, schedule: Sequence[Step], note: Note = _silent) -> Broken | None:
    try:
        _execute(trial, schedule, note)
    except Broken as broken:
        return broken
    return None


AGAIN = (
    "the same schedule gave other decisions the second time: draw from `draws`, and keep no state "
    "outside the instance"
)

COPY = "a copy of the policy (copy.deepcopy) decided otherwise than the original"

SHRINKING = 10.0
"""Time limit for shortening a schedule, in seconds."""


def _shrunk(trial: Trial, schedule: Schedule, rule: str) -> Failure:
    """Removes and simplifies steps as long as the same rule is broken."""
    until = time.monotonic() + SHRINKING
    first = len(schedule)

    def fails(candidate: Schedule) -> bool:
        broken = _broken(trial, candidate)
        return broken is not None and broken.rule == rule

    size = len(schedule)
    while size > 0 and time.monotonic() < until:
        at, removed = 0, False
        while at < len(schedule) and time.monotonic() < until:
            candidate = schedule[:at] + schedule[at + size :]
            if fails(candidate):
                schedule, removed = candidate, True
            else:
                at += size
        if not removed or size > 1:
            size //= 2
    for place in range(len(schedule)):
        for step in trial.simpler(schedule[place]):
            candidate = [*schedule[:place], step, *schedule[place + 1 :]]
            if time.monotonic() < until and fails(candidate):
                schedule = candidate
    told: list[str] = []
    broken = _broken(trial, schedule, told.append)
    # A policy with random draws from elsewhere fails differently each time.
    message = AGAIN if broken is None or rule == "again" else str(broken)
    return Failure(rule, message, told, first)
