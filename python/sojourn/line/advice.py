"""The queue for a fitted line, and what the same measurement shows once it is installed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sojourn import _core
from sojourn.data import Object
from sojourn.line.describe import as_data, middle, quantity, scenario_of, session_of
from sojourn.line.fit import Fit
from sojourn.line.measured import Course, Direction, Measurement, MeasurementError, Session
from sojourn.line.model import Line, course_of, measuring
from sojourn.line.summary import EARLY
from sojourn.scenario import Scenario
from sojourn.scenario.deploy import as_installed
from sojourn.scenario.engine import Column
from sojourn.study.cells import Level
from sojourn.study.comparison import Comparison
from sojourn.study.question import asked_of
from sojourn.study.rows import PlainRows
from sojourn.study.table import Table

PRESENT = "present queue"
CANDIDATES = ("fq_codel", "cake", "codel", "pie", "fq_pie")
"""Queues to compare; of several that perform equally well, the first is advised."""
COMPARED = 10
"""Number of drawn lines on which queues are compared."""
LEVEL = 0.9
"""Level of the prediction interval."""
TAKEN = 0.95
"""Share of the simulated measurements in the interval: few of them have too short tails."""
DELAY, GOODPUT = "p95 of the round-trip time under load", "goodput"


@dataclass(frozen=True)
class Expected:
    """A prediction for the same measurement after the change."""

    name: str
    direction: Direction
    unit: str
    value: float
    """Median over lines drawn from the posterior."""
    low: float
    """Lower limit of the 90 % prediction interval."""
    high: float

    def __str__(self) -> str:
        low, value, high = (quantity(v, self.unit) for v in (self.low, self.value, self.high))
        return f"expect a {self.name} of {value}, between {low} and {high}"


@dataclass(frozen=True)
class Advice:
    """The advised queue of a line."""

    fit: Fit
    direction: Direction
    comparison: Comparison
    queue: str
    """The advised queue, or `PRESENT`."""
    scenario: Scenario
    """The line, with the rate of the shaper's calculation, and the advised queue."""
    expected: tuple[Expected, ...]

    def as_dict(self) -> Object:
        """Returns the advice as plain data, which `check` reads."""
        keep = self.queue == PRESENT
        return {
            "fit": as_data(self.fit),
            "direction": self.direction,
            "comparison": self.comparison.to_dict(),
            "queue": self.queue,
            "deployment": None if keep else self.scenario.to_tc().as_dict(),
            "expect": [{**vars(one), "level": LEVEL} for one in self.expected],
        }


def advise(
    fit: Fit, direction: Direction, told: Callable[[int, int], None] = lambda _a, _b: None
) -> Advice:
    """Compares queues over the posterior of a line, and predicts the same measurement."""
    session = session_of(fit, direction)
    if not session.interval:
        raise MeasurementError(
            f"{', '.join(fit.of.files)}: no probes during the load, so no delay can be predicted; "
            "run `ping -D -i 0.2 HOST > ping.txt` during the load"
        )
    # The shaper has one rate on all lines that are possible: one that none of them is below.
    slow = fit.ways[direction].rate.low
    line = middle(fit)
    lowest = scenario_of(fit, direction, replace(line, rates={**line.rates, direction: slow}))
    installed = {q: as_installed(lowest.with_queue(q)) for q in CANDIDATES}
    total = COMPARED * (len(CANDIDATES) + 1) + len(fit.draws)
    summaries: list[Sequence[Column]] = []
    names: list[str] = []
    seeds: list[int] = []
    for number, drawn in enumerate(fit.draws[:COMPARED]):
        own = scenario_of(fit, direction, drawn)
        plans = [own.plan, *(own.with_queue(text).plan for text in installed.values())]
        records = _core.simulate_many([(plan.text, number + 1) for plan in plans], None)
        if records.fault is not None:
            raise records.fault
        summaries += [records[i].table("summary") for i in range(len(plans))]
        names += [PRESENT, *installed]
        seeds += [number + 1] * len(plans)
        told(len(names), total)
    front: dict[str, list[Level]] = {"queue": [*names], "seed": [*seeds], "key": [""] * len(names)}
    rows = PlainRows.stacked(summaries).with_front(front)
    question = replace(asked_of(lowest), present=PRESENT)
    table = Table(rows, ("queue",), rows.units, lowest.bottleneck)
    comparison = Comparison(table, question)
    winners = [str(one.choice) for one in comparison.winners]
    equal = [q for q in CANDIDATES if q in winners]
    best = PRESENT if PRESENT in winners or not equal else equal[0]
    text = installed.get(best)
    courses = []
    for number, drawn in enumerate(fit.draws):
        courses.append(_measured(session, drawn, direction, text, 5_000_000 + number))
        told(len(names) + number + 1, total)
    made = lowest if text is None else lowest.with_queue(best)
    return Advice(fit, direction, comparison, best, made, _expected(session, direction, courses))


def _measured(
    session: Session, line: Line, direction: Direction, queue: str | None, seed: int
) -> Course:
    """Returns the curves of the measurement on a line with another queue in one direction."""
    scenario = measuring(session, line)
    if queue is not None:
        key = "links.line.queue" if direction == "up" else "links.line.reverse.queue"
        scenario = scenario.replace({key: queue})
    return course_of(session, _core.simulate(scenario.plan.text, seed, None), seed)


def observed(session: Session, direction: Direction, of: Course) -> dict[str, float]:
    """Returns the values that predictions are about, in s and bit/s."""
    early = min(EARLY, session.length / 3)
    late = of.rtt[(of.times >= early) & (of.times < session.length)]
    late = late[np.isfinite(late)]
    found = {GOODPUT: float(of.loads[direction].rate[int(early) :].mean())}
    if late.size >= 5:
        found[DELAY] = float(np.percentile(late, 95))
    return found


def _expected(
    session: Session, direction: Direction, courses: list[Course]
) -> tuple[Expected, ...]:
    values = [observed(session, direction, one) for one in courses]
    made = []
    for name, unit in ((DELAY, "s"), (GOODPUT, "bit/s")):
        known = [one[name] for one in values if name in one]
        low, middle_, high = np.quantile(known, [(1 - TAKEN) / 2, 0.5, (1 + TAKEN) / 2])
        made.append(Expected(name, direction, unit, float(middle_), float(low), float(high)))
    return tuple(made)


@dataclass(frozen=True)
class Outcome:
    """A prediction and what was measured after the change."""

    name: str
    unit: str
    low: float
    high: float
    measured: float
    came_true: bool
    """Whether the measured value is in the prediction interval."""

    def __str__(self) -> str:
        low, high, found = (quantity(v, self.unit) for v in (self.low, self.high, self.measured))
        verdict = "came true" if self.came_true else "did not come true"
        return f"{self.name}: {found} measured, {low} to {high} expected: {verdict}"


def check(before: Path, after: Measurement) -> list[Outcome]:
    """Returns whether the predictions in the JSON of `advise line` came true."""
    try:
        data = json.loads(before.read_text(encoding="utf-8"))
        expected = [
            (str(e["name"]), str(e["direction"]), str(e["unit"]), float(e["low"]), float(e["high"]))
            for e in data["expect"]
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise MeasurementError(
            f"{before}: not the JSON of `sojourn advise line --json`: {error!r}"
        ) from None
    found = []
    for name, direction, unit, low, high in expected:
        for session in after.sessions:
            if direction not in session.directions:
                continue
            way: Direction = "up" if direction == "up" else "down"
            value = observed(session, way, session.course).get(name)
            if value is not None:
                found.append(Outcome(name, unit, low, high, value, low <= value <= high))
                break
        else:
            raise MeasurementError(
                f"{', '.join(after.files)}: has no {name} in the direction `{direction}`, which "
                "was predicted: repeat the first measurement"
            )
    return found
