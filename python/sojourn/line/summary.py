"""Summary statistics of a measurement's curves, the same for measured and simulated ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sojourn.line.measured import Course, Direction, Floats, Measurement

EARLY = 4.0
"""Length of the first part of a load in s, in which TCP's slow start shows."""
FLOOR = 0.5
"""Delay in ms that is added before logarithms, about the noise of `ping`."""
LOST = 10.0
"""Delay in s of packets of which none returned."""


def statistics(of: Measurement, courses: Sequence[Course]) -> dict[str, float]:
    """Returns the statistics by name; which exist depends on the measurement only."""
    found: dict[str, float] = {}
    rtts = np.concatenate([c.rtt for c in courses])
    rtts = rtts[np.isfinite(rtts)]
    base = float(rtts.min()) if rtts.size else 0.0
    if rtts.size:
        found["base"] = 1e3 * base
    for number, (session, course) in enumerate(zip(of.sessions, courses, strict=True)):
        kinds: dict[str, Floats] = {}
        if session.interval:
            kinds["rtt"] = course.rtt - base
            if session.course.up.size:
                kinds["up"] = course.up - _least(course.up)
                kinds["down"] = course.down - _least(course.down)
        early = min(EARLY, session.length / 3)
        for name, excess in kinds.items():
            found |= _delays(f"{number}.{name}", course.times, excess, early, session.length)
        for direction, load in session.course.loads.items():
            own = course.loads[direction]
            name = f"{number}.{direction}"
            first, late = own.rate[: int(early)], own.rate[int(early) : int(session.length)]
            mean = max(float(late.mean()), 1e3)
            found[f"{name}.rate"] = float(np.log(mean))
            found[f"{name}.begin"] = float(first.mean() / mean)
            found[f"{name}.spread"] = float(np.log(late.std() / mean + 0.003))
            found[f"{name}.least"] = float(np.quantile(late, 0.1) / mean)
            if np.isfinite(load.lost):
                found[f"{name}.lost"] = float(np.log(own.lost + 2e-5))
            if load.srtt.size:
                values = 1e3 * (own.srtt[int(early) :] - base)
                for q in (10, 50, 90):
                    value = max(float(np.percentile(values, q)), 0.0)
                    found[f"{name}.srtt{q}"] = float(np.log(value + FLOOR))
    return found


def _least(values: Floats) -> float:
    return float(np.nanmin(values)) if np.isfinite(values).any() else 0.0


def _delays(
    name: str, times: Floats, excess: Floats, early: float, length: float
) -> dict[str, float]:
    answered = np.flatnonzero(np.isfinite(excess))
    # Answers that come after the end of a measurement are no losses.
    length = min(length, float(times[answered[-1]]) + 1e-9) if answered.size else length
    late = (times >= early) & (times < length)
    first = (times >= 0) & (times < early)
    known = excess[late & np.isfinite(excess)]
    begun = excess[first & np.isfinite(excess)]
    lost = 1 - known.size / max(int(late.sum()), 1)
    known = known if known.size > 2 else np.full(3, LOST)
    begun = begun if begun.size else np.full(1, LOST)
    level = {q: 1e3 * float(np.percentile(known, q)) for q in (5, 25, 50, 75, 95, 100)}
    found = {f"{name}.p{q}": float(np.log(max(v, 0.0) + FLOOR)) for q, v in level.items()}
    steps = 1e3 * float(np.abs(np.diff(known)).mean())
    found[f"{name}.steps"] = float(np.log(steps + FLOOR))
    found[f"{name}.first"] = float(np.log(max(1e3 * begun.max(), 0.0) + FLOOR))
    found[f"{name}.lost"] = float(np.sqrt(lost))
    return found


def directions_of(names: Sequence[str], direction: Direction, of: Measurement) -> list[int]:
    """Returns the numbers of the statistics that depend on the queue of a direction."""
    sessions = [str(n) for n, s in enumerate(of.sessions) if direction in s.directions]
    return [i for i, name in enumerate(names) if name.split(".")[0] in (*sessions, "base")]
