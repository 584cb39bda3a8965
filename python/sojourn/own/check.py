"""A policy tried with random schedules: its contract, and the shortest schedule that breaks it.

A schedule is a list of steps, each a tuple of plain values whose first is what is done. A trial
of a family executes it against a fresh instance and says how each step ended, or raises `Broken`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

Step = tuple[str | int, ...]
Schedule = list[Step]


class Broken(Exception):
    """The contract was broken, or the policy's code failed."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule
        """Which rule: a shrunk schedule must break the same."""


class Trial(Protocol):
    """How a family's policies are tried."""

    def schedule(self, draws: random.Random) -> Schedule:
        """Return a random schedule."""

    def run(self, schedule: Sequence[Step], note: Callable[[str], None]) -> None:
        """Execute a schedule and tell each step with its outcome; raises `Broken`."""

    def simpler(self, step: Step) -> list[Step]:
        """Return simpler steps to try in place of one."""


@dataclass(frozen=True)
class Failure:
    """The shortest schedule found that breaks the contract."""

    rule: str
    message: str
    steps: list[str]
    """What was done and how it ended, a line each; the last one failed."""
    found_with: int
    """Steps of the schedule that was found first."""


@dataclass(frozen=True)
class Outcome:
    """What the trials of a policy found."""

    schedules: int
    steps: int
    seconds: float
    failure: Failure | None


def check(
    trial: Trial, schedules: int, seed: int, stop: Callable[[], bool] | None = None
) -> Outcome:
    """Try a policy with random schedules until one breaks its contract, and shrink that one."""
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


def _broken(
    trial: Trial, schedule: Sequence[Step], note: Callable[[str], None] | None = None
) -> Broken | None:
    try:
        trial.run(schedule, note or (lambda _: None))
    except Broken as broken:
        return broken
    return None


AGAIN = (
    "the same schedule gave other decisions the second time: draw from `draws`, and keep no state "
    "outside the instance"
)

SHRINKING = 10.0
"""Seconds after which the shortest schedule so far is good enough."""


def _shrunk(trial: Trial, schedule: Schedule, rule: str) -> Failure:
    """Remove and simplify steps as long as the same rule is broken."""
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
    # A policy that draws elsewhere fails otherwise each time.
    message = AGAIN if broken is None or rule == "again" else str(broken)
    return Failure(rule, message, told, first)
