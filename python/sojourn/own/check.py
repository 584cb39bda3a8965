"""Tests the contract of a policy with random schedules, and shortens a failing schedule.

A schedule is a list of steps. Each step is a tuple of plain values, of which the first is the
action. The trial of a family of policies executes a schedule on a new policy, and notes the result
of each step or raises `Broken`. In all families, a policy must make the same decisions if a
schedule is repeated, and if the schedule is continued with a copy of the policy.
"""

from __future__ import annotations

import hashlib
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

from sojourn import _core
from sojourn.own import repeat

Step = tuple[str | int, ...]
"""A step of a schedule: the action and its arguments. The first argument of most actions is the
time since the previous step in nanoseconds.
"""
Schedule = list[Step]
Note = Callable[[str], None]
"""Callback with a line of text for each step and its result."""

START = 1_000_000_000
"""Time at the beginning of a schedule, in nanoseconds."""


class Broken(Exception):
    """The policy broke its contract, or its code raised an exception."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule
        """Name of the broken rule. A shortened schedule must break the same rule."""


class Bench(Protocol):
    """A policy that is called step by step, without a run; calls raise `PolicyError`."""

    def copy(self) -> Self:
        """Returns an independent bench with a copy of the policy in the same state."""


T = TypeVar("T")
S = TypeVar("S")
B = TypeVar("B", bound=Bench)


class Play(ABC, Generic[B]):
    """The execution of a schedule on a policy."""

    def __init__(self, make: Callable[[], B], note: Note) -> None:
        self.bench = guarded(make)
        self.note = note
        self.now = START
        self.history: list[Any] = []
        """Results of all calls, for the comparison with a repetition."""

    @abstractmethod
    def step(self, step: Step) -> None:
        """Executes one step of a schedule; raises `Broken`."""

    def end(self) -> None:
        """Executes what follows the last step of every schedule; raises `Broken`."""

    def copied(self) -> Self:
        """Returns a copy of this execution, with copies of all attributes that can be copied."""
        other = object.__new__(type(self))
        other.__dict__.update(
            (name, guarded(value.copy) if hasattr(value, "copy") else value)
            for name, value in vars(self).items()
        )
        other.note = _silent
        return other

    def call(self, what: str, call: Callable[[], T], describe: Callable[[T], str]) -> T:
        """Calls the policy, notes the call with its result, and adds the result to `history`.

        `what` and `describe` are the texts for the call and for its result. Raises `Broken` if the
        policy raises an exception.
        """
        head = f"{(self.now - START) / 1e6:.3f} ms: {what}"
        try:
            result = call()
        except _core.PolicyError as error:
            self.note(f"{head}: {error}")
            raise Broken("fault", str(error)) from None
        self.note(f"{head} → {describe(result)}")
        self.history.append(result)
        return result


def guarded(make: Callable[[], T]) -> T:
    """Returns the result of `make`; raises `Broken` if the policy raises an exception."""
    try:
        return make()
    except _core.PolicyError as error:
        raise Broken("fault", str(error)) from None


def _silent(_: str) -> None:
    pass


class Trial(Protocol):
    """The test of the policies of a family."""

    def schedule(self, draws: random.Random) -> Schedule:
        """Returns a random schedule."""

    def simpler(self, step: Step) -> list[Step]:
        """Returns simpler steps that may replace a step of a failing schedule."""

    def play(self, note: Note) -> Play[Any]:
        """Returns an execution that passes a text of each call to `note`, on a new policy."""


def _execute(trial: Trial, schedule: Sequence[Step], note: Note) -> None:
    """Executes a schedule, repeats it, and repeats its second half on a copy; raises `Broken`."""
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
    """The shortest known schedule that breaks the contract."""

    rule: str
    """Name of the broken rule."""
    message: str
    """Description of the error."""
    steps: list[str]
    """Texts of the steps with their results; the last step failed."""
    found_with: int
    """Number of steps of the schedule before it was shortened."""


@dataclass(frozen=True)
class Outcome:
    """Result of a policy's tests."""

    schedules: int
    """Number of schedules executed."""
    steps: int
    """Number of steps executed, without repetitions."""
    seconds: float
    """Time until the failing schedule was found, or until the end, in seconds."""
    failure: Failure | None
    """The failure; `None` if no schedule failed."""


def check(
    trial: Trial, schedules: int, seed: int, stop: Callable[[], bool] | None = None
) -> Outcome:
    """Tests a policy with random schedules until a schedule breaks the contract.

    The failing schedule is shortened. `stop` is called before each schedule and ends the test by
    returning `True`.
    """
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


def histories(trial: Trial, schedules: int, seed: int) -> list[str]:
    """Returns the hash of the results of each schedule, for the comparison with another process."""
    found = []
    for number in range(schedules):
        notes: list[str] = []
        play = trial.play(notes.append)
        for step in trial.schedule(random.Random(f"{seed}/{number}")):  # noqa: S311 - a schedule
            play.step(step)
        play.end()
        found.append(hashlib.sha256("\n".join(notes).encode()).hexdigest())
    return found


def _broken(trial: Trial, schedule: Sequence[Step], note: Note = _silent) -> Broken | None:
    try:
        _execute(trial, schedule, note)
    except Broken as broken:
        return broken
    return None


ELSEWHERE = 30
"""Number of schedules that are repeated in another process."""


def check_elsewhere(policy: str, trial: Trial, schedules: int, seed: int) -> Failure | None:
    """Repeats schedules in a fresh process with another hash seed; returns a difference."""
    count = min(schedules, ELSEWHERE)
    here = histories(trial, count, seed)
    there = repeat.elsewhere("sojourn.own.trials", policy, count, seed)
    if here == there:
        return None
    return Failure("process", f"another process made other decisions: {repeat.CAUSES}", [], 0)


AGAIN = (
    "a repetition of the schedule gave other decisions: draw from `draws` only, and keep no state "
    "outside the instance"
)
"""Error message for the rule `again`."""

COPY = "a copy of the policy (copy.deepcopy) made other decisions than the original"
"""Error message for the rule `copy`."""

SHRINKING = 10.0
"""Time limit for shortening a schedule, in seconds."""


def shortened(steps: list[S], fails: Callable[[list[S]], bool], until: float) -> list[S]:
    """Removes steps as long as the others fail; then no single step can be removed.

    Ends early at the time `until` of the monotonic clock.
    """
    size = len(steps)
    while size > 0 and time.monotonic() < until:
        at, removed = 0, False
        while at < len(steps) and time.monotonic() < until:
            candidate = steps[:at] + steps[at + size :]
            if fails(candidate):
                steps, removed = candidate, True
            else:
                at += size
        if not removed or size > 1:
            size //= 2
    return steps


def _shrunk(trial: Trial, schedule: Schedule, rule: str) -> Failure:
    """Shortens a schedule that breaks the rule, and returns the shortened schedule's failure.

    Steps are removed and simplified as long as the schedule breaks the same rule, for at most
    `SHRINKING` seconds.
    """
    until = time.monotonic() + SHRINKING
    first = len(schedule)

    def fails(candidate: Schedule) -> bool:
        broken = _broken(trial, candidate)
        return broken is not None and broken.rule == rule

    schedule = shortened(schedule, fails, until)
    for place in range(len(schedule)):
        for step in trial.simpler(schedule[place]):
            candidate = [*schedule[:place], step, *schedule[place + 1 :]]
            if time.monotonic() < until and fails(candidate):
                schedule = candidate
    steps: list[str] = []
    broken = _broken(trial, schedule, steps.append)
    # If the schedule does not fail again, the policy depends on something outside the instance.
    message = AGAIN if broken is None or rule == "again" else str(broken)
    return Failure(rule, message, steps, first)
