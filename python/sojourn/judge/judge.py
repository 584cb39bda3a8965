"""The judgement of an implementation: schedules, the first breach, and its smallest schedule."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sojourn.judge import recordings, schedules
from sojourn.judge.codel import Codel
from sojourn.judge.dualpi2 import DualPi2
from sojourn.judge.fq_codel import FqCodel
from sojourn.judge.monitor import Answer, Breach, Decision, Monitor, Op, Params, State
from sojourn.judge.pie import Pie
from sojourn.judge.subjects import Hello, JudgeError, Subject
from sojourn.own.check import shortened

CODEL: Params = {"target": 5_000_000, "interval": 100_000_000, "limit": 1000, "mtu": 1514, "ecn": 0}
OTHER: Params = {"target": 2_000_000, "interval": 30_000_000, "limit": 40, "mtu": 1000, "ecn": 1}
PIE: Params = {"target": 15_000_000, "update": 15_000_000, "limit": 2000, "mtu": 1514, "ecn": 0}
DUAL: Params = {
    **PIE,
    "update": 16_000_000,
    "ecn": 1,
    "alpha": 0.16,
    "beta": 3.2,
    "coupling": 2,
    "ramp_min": 800_000,
    "ramp_max": 1_200_000,
}
CLOCK = 1024
"""Step of an implementation's clock in nanoseconds, unless it states another one."""


@dataclass(frozen=True)
class Discipline:
    """A discipline whose text is known."""

    rfc: str
    state: type[State]
    params: tuple[Params, ...]
    """Sets of parameters with which an implementation is judged."""
    deterministic: bool = True
    """Whether the discipline draws no random numbers."""


DISCIPLINES = {
    "codel": Discipline("RFC 8289", Codel, (CODEL, OTHER)),
    "fq_codel": Discipline(
        "RFC 8290", FqCodel, ({**CODEL, "quantum": 1514}, {**OTHER, "quantum": 300})
    ),
    "pie": Discipline(
        "RFC 8033", Pie, (PIE, {**PIE, "target": 5_000_000, "ecn": 1, "limit": 100}), False
    ),
    "dualpi2": Discipline(
        "RFC 9332", DualPi2, (DUAL, {**DUAL, "target": 5_000_000, "limit": 100}), False
    ),
}
"""Disciplines by the name of `tc`."""
SHRINKING = 30.0
"""Time limit for finding the smallest schedule, in seconds."""


@dataclass(frozen=True)
class Schedule:
    """Operations on a queue with certain parameters."""

    name: str
    params: Params
    ops: list[Op]
    kernel: str = ""
    """Kernel whose decisions are expected; empty if the text of the RFC decides."""
    decisions: tuple[Decision, ...] = ()
    """Decisions of this kernel."""


class Recorded:
    """The monitor of Linux's level: it permits the recorded decision alone."""

    def __init__(self, schedule: Schedule) -> None:
        self.expected = iter(schedule.decisions)

    def advance(self, _op: Op, answer: Answer) -> None:
        """Follows an operation; raises `Breach`."""
        expected = next(self.expected)
        if answer.decision != expected:
            raise Breach("decision", f"found: {answer.decision}", [str(expected)])

    def describe(self, begin: int) -> list[dict[str, str]]:
        """Returns no states."""
        del begin
        return []

    def taken(self) -> dict[str, bool]:
        """Returns no freedoms."""
        return {}


@dataclass(frozen=True)
class Case:
    """The smallest schedule that shows a breach."""

    schedule: str
    """Name of the schedule in which it was found."""
    rule: str
    """Kind of the breach: `decision`, `value`, `count` or `size`."""
    message: str
    permitted: list[str]
    """Decisions that the text permits."""
    params: Mapping[str, float | None]
    steps: list[str]
    """Operations with the answers; the last is the breach."""
    expected: list[dict[str, str]]
    """States that the text allows before the last operation."""
    shown: dict[str, float]
    """State that the implementation shows after the last operation."""
    found_with: int
    """Number of operations before the schedule was made smaller."""
    smallest: bool
    """Whether no packet can be removed."""


@dataclass
class Judgement:
    """The result for an implementation."""

    subject: str
    discipline: str
    text: str
    """The RFC, or the kernel of the recordings."""
    allow_linux: bool = False
    """Whether Linux's deviations are permitted."""
    schedules: int = 0
    operations: int = 0
    signals: int = 0
    """Number of packets dropped or marked."""
    names: list[str] = field(default_factory=list)
    """Names of the schedules."""
    taken: dict[str, bool] = field(default_factory=dict)
    """Freedoms that the implementation uses, as far as its decisions show it."""
    case: Case | None = None
    seconds: float = 0.0


def state_of(discipline: str, params: Params, allow_linux: bool) -> State:
    """Returns the state of a new queue."""
    return DISCIPLINES[discipline].state({"clock": CLOCK, **params}, allow_linux)


def offered(discipline: str, seeds: Iterable[int], folder: Path | None) -> Iterator[Schedule]:
    """Yields the generated schedules, and those of the recordings in `folder`."""
    for seed in seeds:
        for params in DISCIPLINES[discipline].params:
            for kind in schedules.KINDS[discipline]:
                name = f"{kind.name}, seed {seed}"
                yield Schedule(name, params, schedules.generated(kind, params, seed))
    if folder is not None and DISCIPLINES[discipline].deterministic:
        for path in sorted(folder.glob(f"{discipline}*.jsonl*")):
            yield from (Schedule(*one[:3]) for one in recordings.recorded(path, discipline))


def recorded(discipline: str, folder: Path) -> Iterator[Schedule]:
    """Yields the recordings in a folder, with Linux's decisions."""
    if not DISCIPLINES[discipline].deterministic:
        raise JudgeError(
            f"decisions of {discipline} depend on random draws, which are no part of the protocol: "
            "judge by --level rfc, or give a class of Python (FILE:CLASS), which gets the draws"
        )
    for path in sorted(folder.glob(f"{discipline}*.jsonl*")):
        yield from (Schedule(*one) for one in recordings.recorded(path, discipline))


def judge(
    subject: Subject,
    discipline: str,
    offered: Iterable[Schedule],
    *,
    allow_linux: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> Judgement:
    """Judges an implementation by schedules, up to the first breach."""
    begin = time.monotonic()
    found = Judgement(subject.name, discipline, DISCIPLINES[discipline].rfc, allow_linux)
    trial = _Trial(subject, discipline, allow_linux)
    for schedule in offered:
        if stop():
            break
        monitor, breach = trial.run(schedule, schedule.ops)
        found.schedules += 1
        found.names.append(schedule.name)
        found.text = schedule.kernel or found.text
        found.operations += len(trial.answers)
        found.signals += sum(len(a.decision.dropped + a.decision.marked) for a in trial.answers)
        if breach is not None:
            found.case = trial.smallest(schedule, breach)
            break
        found.taken |= monitor.taken()
    found.seconds = time.monotonic() - begin
    return found


class _Trial:
    """The execution of schedules on an implementation, under the eyes of a monitor."""

    def __init__(self, subject: Subject, discipline: str, allow_linux: bool) -> None:
        self.subject, self.discipline, self.allow_linux = subject, discipline, allow_linux
        self.answers: list[Answer] = []
        self.ops: Sequence[Op] = ()
        """Operations of the smallest schedule."""

    def run(
        self, schedule: Schedule, ops: Sequence[Op]
    ) -> tuple[Monitor | Recorded, Breach | None]:
        """Executes operations up to the first breach; `answers` has the answers up to it."""
        params = self.subject.begin(Hello(self.discipline, schedule.params))
        monitor: Monitor | Recorded = (
            Recorded(schedule)
            if schedule.kernel
            else Monitor([state_of(self.discipline, params, self.allow_linux)])
        )
        self.answers = []
        breach: Breach | None = None
        for op, answer in zip(ops, self.subject.play(ops), strict=True):
            if breach is None:
                self.answers.append(answer)
                try:
                    monitor.advance(op, answer)
                except Breach as found:
                    breach = found
        return monitor, breach

    def smallest(self, schedule: Schedule, breach: Breach) -> Case:
        """Returns the case of the smallest schedule with a breach of the same rule."""
        first, begin = len(self.answers), schedule.ops[0].t
        ops = schedule.ops[:first]
        until = time.monotonic() + SHRINKING

        def fails(candidate: Sequence[Op]) -> bool:
            other = self.run(schedule, candidate)[1]
            return other is not None and other.rule == breach.rule

        if shrinks := breach.rule != "frequency" and not schedule.kernel:
            ops = shortened(ops, fails, until)
        self.ops = ops
        monitor, again = self.run(schedule, ops)
        breach = again or breach
        seen = self.answers
        steps = [
            f"{_text(op, begin)} → {answer.decision}" for op, answer in zip(ops, seen, strict=False)
        ]
        return Case(
            schedule.name,
            breach.rule,
            str(breach),
            breach.permitted,
            dict(schedule.params),
            steps,
            monitor.describe(begin),
            dict(seen[-1].shown),
            first,
            shrinks and time.monotonic() < until,
        )


def _text(op: Op, begin: int) -> str:
    at = f"{(op.t - begin) / 1e6:.3f} ms: {op.kind}"
    if op.kind != "enqueue":
        return at
    ecn = {0: "", 1: ", ECT(1)", 2: ", ECT(0)", 3: ", CE"}[op.ecn]
    return f"{at} {op.id} ({op.size} bytes, flow {op.flow}{ecn})"
