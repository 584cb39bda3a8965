"""A fit in words: each quantity with its interval, bound or set, and its grounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

from sojourn.data import Json, Object
from sojourn.line.fit import Estimate, Fit, Way
from sojourn.line.measured import DIRECTIONS, FRAME, Direction, MeasurementError, Session
from sojourn.line.model import ENDS, FAMILIES, UNKNOWN, Line, load_flows
from sojourn.line.summary import EARLY
from sojourn.scenario import Scenario
from sojourn.show.html.toml import dump

NAMES = {"up": "upload", "down": "download"}
DRAWS = 12
"""Number of drawn lines in a scenario's table `[study]`."""


@dataclass(frozen=True)
class Known:
    """An estimate in words and numbers."""

    name: str
    kind: Literal["interval", "bound", "set", "unknown"]
    text: str
    """The quantity in words, with its unit."""
    rests_on: str
    unit: str = ""
    value: float | None = None
    low: float | None = None
    """Lower limit of the 95 % interval; null without one."""
    high: float | None = None
    families: Mapping[str, float] | None = None
    """Probabilities of the families of queues."""
    measure: Sequence[str] = ()
    """Commands of the measurement that would show more."""


def commands(direction: Direction, seconds: int = 30) -> tuple[str, str]:
    """Returns the two commands that measure a direction."""
    back = " -R" if direction == "down" else ""
    return (
        f"ping -D -i 0.2 -w {seconds + 8} HOST > ping-{direction}.txt &",
        f"sleep 4; iperf3 -c HOST{back} -t {seconds} -P 4 -J > {direction}.json",
    )


def quantity(value: float, unit: str) -> str:
    """Returns a value with its unit and three significant digits."""
    steps = {
        "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")),
        "B": ((1e6, "MB"), (1e3, "kB"), (1, "B")),
        "s": ((1, "s"), (1e-3, "ms"), (1e-6, "µs")),
        "1": ((1e-2, "%"),),
    }[unit]
    factor, name = next((one for one in steps if abs(value) >= one[0]), steps[-1])
    return f"{float(f'{value / factor:.3g}'):g} {name}"


def _interval(name: str, of: Estimate, unit: str, rests_on: str) -> Known:
    low, high = quantity(of.low, unit), quantity(of.high, unit)
    text = f"{quantity(of.value, unit)} ({low} to {high})"
    return Known(name, "interval", text, rests_on, unit, of.value, of.low, of.high)


def _least(name: str, of: Estimate, unit: str, rests_on: str, why: str) -> Known:
    text = f"at least {quantity(of.low, unit)}: {why}"
    return Known(name, "bound", text, rests_on, unit, None, of.low)


def known(fit: Fit) -> list[Known]:
    """Returns everything that the measurements show, and what is missing."""
    rests = "round-trip times of probes before and under load"
    base = _interval("base round-trip time", fit.base, "s", rests)
    if fit.base.high > 1.5 * fit.base.low:
        text = f"at most {quantity(fit.base.high, 's')}: the line was never idle"
        base = replace(base, kind="bound", text=text, value=None, low=None, measure=_more(fit))
    found = [base]
    for direction in DIRECTIONS:
        if direction not in fit.ways:
            text = f"not measured: no load in the direction of {NAMES[direction]}"
            found.append(Known(NAMES[direction], "unknown", text, "", measure=commands(direction)))
            continue
        found += _of_way(fit, direction, fit.ways[direction])
    found.append(_place(fit))
    rests = "lost probes and retransmitted segments that no queue of the family explains"
    if fit.loss.low > 1e-4:
        found.append(_interval("loss of the line", fit.loss, "1", rests))
    else:
        text = f"at most {quantity(fit.loss.high, '1')}"
        loss = Known("loss of the line", "bound", text, rests, "1", None, None, fit.loss.high)
        found.append(replace(loss, measure=_more(fit)))
    return found


def _more(fit: Fit) -> tuple[str, ...]:
    return commands(fit.of.directions[0], 60)


def _of_way(fit: Fit, direction: Direction, way: Way) -> list[Known]:
    name = NAMES[direction]
    rests = f"goodput per second of the {name}, with headers, and delays while it filled"
    if way.rate.high > 1.5 * way.rate.low:
        why = "the load did not reach it"
        rate = replace(
            _least(f"rate of the {name}", way.rate, "bit/s", rests, why),
            measure=commands(direction, 60),
        )
    else:
        rate = _interval(f"rate of the {name}", way.rate, "bit/s", rests)
    if way.varies is not None:
        low, high = (quantity(v, "bit/s") for v in way.varies)
        rate = replace(rate, text=f"{rate.text}; in single seconds {low} to {high}")
    likely = way.likely
    chances = {f: round(way.families[f], 3) for f in likely}
    words = [f"{FAMILIES[f].words} ({100 * p:.0f} %)" for f, p in chances.items()]
    text = words[0] if len(words) == 1 else "one of: " + "; ".join(words)
    shown = "delays, losses and goodput over time"
    sessions = [s for s in fit.of.sessions if direction in s.directions]
    has_srtt = any(s.course.loads[direction].srtt.size for s in sessions)
    if has_srtt:
        shown += ", and TCP's delays next to those of probes"
    family = Known(f"queue of the {name}", "set", text, shown, families=chances)
    if len(words) > 1:
        family = replace(family, measure=commands(direction, 60))
    return [rate, family, *(_size(name, kind, way, len(likely) > 1) for kind in likely)]


def _size(name: str, family: str, way: Way, several: bool) -> Known:
    of, size = FAMILIES[family], way.sizes[family]
    noun = "burst" if of.policer else "buffer" if of.unit == "B" else "target"
    title = f"{noun} of the {name}" + (f" if {family}" if several else "")
    if of.unit == "s":
        return _interval(title, size, "s", "the level of the delay under load")
    if of.policer:
        return _interval(title, size, "B", "the course of losses and goodput")
    if not way.filled or size.high > 3 * size.low:
        return _least(title, size, "B", "the greatest delay, times the rate", "never filled")
    made = _interval(title, size, "B", "the greatest delay, times the rate")
    packets = [round(v / FRAME) for v in (size.value, size.low, size.high)]
    text = f"{made.text}, or {packets[0]} full packets ({packets[1]} to {packets[2]})"
    return replace(made, text=text)


def _place(fit: Fit) -> Known:
    alone = {s.directions[0] for s in fit.of.sessions if len(s.directions) == 1}
    one_way = any(s.course.up.size for s in fit.of.sessions)
    shown = [d for d in fit.of.directions if d in alone or one_way]
    if not shown:
        text = "unknown: both directions were loaded at once, and only sums of delays were measured"
        return Known("place of the queue", "unknown", text, "", measure=commands("up"))
    ends = "; ".join(
        f"{NAMES[d]}: at the bottleneck from {ENDS[d][0]} to {ENDS[d][1]}" for d in shown
    )
    why = "one-way delays" if one_way else "delays that rise with this load alone"
    return Known("place of the queue", "set", ends, why)


def as_data(fit: Fit) -> Object:
    """Returns a fit as plain data."""
    found: list[Json] = []
    for one in known(fit):
        entry: Object = asdict(one)
        entry["measure"] = list(one.measure)
        found.append(entry)
    return {
        "files": list(fit.of.files),
        "outside": fit.outside,
        "surprise": round(fit.surprise, 3),
        "runs": fit.runs,
        "known": found,
    }


VERDICT = (
    "No line of the model makes these curves: the estimates below describe the nearest line and "
    "are not reliable. Lines whose rate varies (Wi-Fi, LTE, power boost), queues of other kinds, "
    "offloads and busy receivers look like this."
)


# Scenarios


def worst(fit: Fit) -> Direction:
    """Returns the direction whose load delays packets most."""

    def delay(direction: Direction) -> float:
        line = fit.draws[0]
        family = FAMILIES[line.families[direction]]
        size = line.sizes[direction]
        if family.unit == "s" or family.policer:
            return size if family.unit == "s" else 0.0
        return 8 * size / line.rates[direction]

    return max(fit.of.directions, key=delay)


def session_of(fit: Fit, direction: Direction) -> Session:
    """Returns a session with a load in this direction, one without the other if there is one."""
    found = [s for s in fit.of.sessions if direction in s.directions]
    if not found:
        raise MeasurementError(
            f"no load in the direction of {NAMES[direction]} was measured; measure it with:\n"
            + "\n".join(commands(direction))
        )
    return min(found, key=lambda s: len(s.directions))


def middle(fit: Fit) -> Line:
    """Returns the line with the estimates of the most likely families."""
    tops = {d: way.likely[0] for d, way in fit.ways.items()}
    return Line(
        {d: way.rate.value for d, way in fit.ways.items()},
        tops,
        {d: way.sizes[tops[d]].value for d, way in fit.ways.items()},
        fit.base.value,
        fit.loss.value if fit.loss.low > 1e-4 else 0.0,
        fit.of.frame,
    )


def _changes(line: Line) -> dict[str, Json]:
    keys = line.keys(UNKNOWN)
    reverse = keys.pop("reverse")
    assert isinstance(reverse, dict)
    found = {f"links.line.{k}": v for k, v in keys.items()}
    return found | {f"links.line.reverse.{k}": v for k, v in reverse.items()}


def scenario_data(fit: Fit, direction: Direction, of: Line | None = None) -> Object:
    """Returns a line, by default the fitted one, with the measured load and a ping."""
    session = session_of(fit, direction)
    near, far = ENDS[direction]
    ping = f"packets interval 100ms size {session.size}"
    flows: list[Json] = [*load_flows(session, 0.0)]
    flows += [
        {"name": "ping", "from": near, "to": far, "app": ping, "udp": True},
        {"name": "ping-back", "from": far, "to": near, "app": ping, "udp": True},
    ]
    line = of or middle(fit)
    link: Object = {"from": "home", "to": "internet", **line.keys(UNKNOWN)}
    draws: Object = {f"draw {i + 1}": _changes(d) for i, d in enumerate(fit.draws[:DRAWS])}
    return {
        "name": f"the line of {', '.join(fit.of.files)}",
        "duration": f"{round(session.length)}s",
        "warmup": f"{round(min(EARLY, session.length / 3))}s",
        "bottleneck": "line" if direction == "up" else "line.reverse",
        "question": {
            "text": "Which queue keeps this line responsive while it is full?",
            "by": "ping.delay_p95",
            "subject_to": "goodput >= 80% of best",
        },
        "deploy": {"machine": "home", "modem": True},
        "links": {"line": link},
        "flows": flows,
        "study": {"seeds": 2, "vary": {"line": draws}},
    }


def scenario_of(fit: Fit, direction: Direction, of: Line | None = None) -> Scenario:
    """Returns a line, by default the fitted one, as a scenario."""
    data = scenario_data(fit, direction, of)
    del data["study"]
    return Scenario.from_dict(data)


def scenario_text(fit: Fit, direction: Direction) -> str:
    """Returns the fitted line as TOML, with the intervals as comments.

    The table `[study]` has lines drawn from the posterior as the levels of a factor.
    """
    lines = ["A line fitted by `sojourn fit`, with 95 % intervals."]
    lines += [VERDICT] if fit.outside else []
    lines += [f"{one.name}: {one.text}" for one in known(fit)]
    lines += ["`sojourn study run FILE` runs the lines drawn from the posterior, in [study]."]
    data = scenario_data(fit, direction)
    return "".join(f"# {line}\n" for line in lines) + "\n" + dump(data)
