"""Summary statistics of a measurement's curves, the same for measured and simulated ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sojourn.line.measured import Course, Direction, Floats, Measurement

EARLY = 4.0
"""Length of the first part of a load in s, in which TCP's slow start shows."""
BEGINS = 1.0
"""Time in s before a load's known begin in which it may have begun: some clocks have whole ones."""
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
            found[f"{name}.rate"] = float(np.log(max(_slope(late), 1e3)))
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


def checks(of: Measurement, courses: Sequence[Course]) -> dict[str, float]:
    """Returns statistics by name that show changes in time, which no line of the model has.

    No parameter is estimated from them, so that no line can be fitted to them.
    """
    found: dict[str, float] = {}
    for number, (session, course) in enumerate(zip(of.sessions, courses, strict=True)):
        early = min(EARLY, session.length / 3)
        known = np.isfinite(course.rtt)
        base = _least(course.rtt)
        idle = course.rtt[known & (course.times < -BEGINS)] - base
        for q in (50, 90, 100):
            found[f"{number}.idle{q}"] = _level(idle, q)
        middle = (early + session.length) / 2
        late = known & (course.times >= early) & (course.times < session.length)
        first, second = (
            course.rtt[late & side] - base
            for side in (course.times < middle, course.times >= middle)
        )
        for q in (50, 95):
            found[f"{number}.rtt{q}"] = _level(second, q) - _level(first, q)
        found[f"{number}.jump"] = _level(np.abs(np.diff(course.rtt[late])), 100)
        for direction, load in course.loads.items():
            own = load.rate[int(early) : int(session.length)]
            found |= {f"{number}.{direction}.{k}": v for k, v in _changes(own).items()}
    return found


def _level(delays: Floats, q: float) -> float:
    """Returns the logarithm of a percentile of delays in ms; without delays, that of none."""
    value = 1e3 * float(np.percentile(delays, q)) if delays.size > 2 else 0.0
    return float(np.log(max(value, 0.0) + FLOOR))


def _changes(rate: Floats) -> dict[str, float]:
    """Returns how the goodput changes in time."""
    mean = max(float(rate.mean()), 1e3)
    x = rate / mean - 1
    first, second = (max(float(one.mean()), 1e3) for one in np.array_split(rate, 2))
    smooth = np.convolve(x, np.full(3, 1 / 3), "valid")
    time = np.linspace(-1, 1, x.size)
    return {
        "halves": float(np.log(second / first)),
        "trend": float(2 * (time @ x) / (time @ time)),
        "repeats": float((x[1:] * x[:-1]).mean() / ((x**2).mean() + 1e-5)),
        "smooth": float(np.log(smooth.std() + 0.003)),
        "range": float(np.log(np.ptp(smooth) + 0.003)),
        "high": float(np.quantile(x, 0.9)),
        "low": float(x.min()),
    }


def _slope(rate: Floats) -> float:
    """Returns the mean rate by all counts in a regression: first and last count err by blocks."""
    counts = np.concatenate([[0.0], np.cumsum(rate)])
    time = np.arange(counts.size) - rate.size / 2
    return float(time @ counts / (time @ time))


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
