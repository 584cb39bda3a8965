"""Checks whether simulated differences between queues exceed the simulator's error against Linux.

The simulator and Linux in virtual time ran the same scenarios (`agreement.json`, recorded by
`tests/agreement`). For two queues in a scenario, the simulator's error is its difference between
them minus Linux's difference. For a comparison, only similar recorded scenarios count: they have
the same applications, transports and disciplines, and their numbers differ from those of the
compared scenario by at most a factor of two.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from sojourn import _core
from sojourn.metrics import unit
from sojourn.plan import decoding
from sojourn.plan.queries import bottlenecks
from sojourn.study import quantities
from sojourn.study.answer import listed, words

if TYPE_CHECKING:
    from sojourn.data import Json, Object
    from sojourn.plan.link import Impairments
    from sojourn.plan.parts import Link
    from sojourn.plan.plan import Plan
    from sojourn.scenario import Scenario
    from sojourn.study.comparison import Comparison

FACTOR = 2.0
"""Maximum ratio of corresponding numbers in similar scenarios."""

SHARED = ("traffic", "transport", "queue", "impairments")
"""Parts of shapes that the record stores once for all cells with the same part."""


class Unlike(Exception):
    """The scenario is not similar to any cell; the message states the reason."""


@dataclass(frozen=True)
class Shape:
    """The properties of a plan by which cells are compared."""

    traffic: list[Object]
    """Applications of the groups of flows."""
    transport: list[Object]
    """Transports of the groups."""
    flows: list[int]
    """Numbers of flows of the groups."""
    rate: int
    """Rate of the bottleneck in bit/s."""
    rtt: float
    """Mean round-trip time without queues in nanoseconds."""
    back: float
    """Rate of the reverse path divided by the bottleneck's, at most 1."""
    impairments: Object
    """Impairments of the bottleneck and of the reverse path."""
    queue: Object
    """Queue of the bottleneck."""


@dataclass(frozen=True)
class Calibration:
    """The queues' differences from the best queue, compared with the simulator's errors."""

    within: dict[str, float]
    """Largest error in similar cells by queue, for queues whose difference is at most this error.
    """
    beyond: dict[str, float]
    """Largest error in similar cells by queue, for queues whose difference exceeds this error."""
    unknown: dict[str, str]
    """Reasons by queue, for queues without a similar cell."""
    cells: int
    """Largest number of similar cells of a queue."""


def alike(a: Json, b: Json) -> bool:
    """Returns whether two values are equal, except that numbers may differ by a factor of two."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(v, b[k]) for k, v in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(alike(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, bool) or isinstance(b, bool) or not isinstance(a, int | float):
        return type(a) is type(b) and bool(a == b)
    if not isinstance(b, int | float):
        return False
    return a == b or (a > 0 and b > 0 and max(a, b) <= FACTOR * min(a, b))


def shape(plan: Plan) -> Shape:
    """Returns the properties of a plan by which cells are compared.

    Raises:
        Unlike: if the plan has a property that no cell has, such as a second bottleneck.
    """
    if plan.media:
        raise Unlike("no recorded scenario has a shared medium")
    if len(plan.observe.bottleneck.links) != 1:
        raise Unlike("no recorded scenario has a second bottleneck")
    (line,) = bottlenecks(plan)
    rate = line.params.rate
    if rate is None:
        raise Unlike("no recorded scenario has a rate that varies")
    groups: dict[str, tuple[Object, Object]] = {}
    counts: Counter[str] = Counter()
    trips: list[int] = []
    back = 1.0
    impairments: list[Impairments] = []
    names = [link.name for link in plan.links]
    features = dict(zip(names, _core.link_features(plan.text), strict=True))
    for group in plan.groups:
        for a, b in group.pairs:
            there, again = _path(plan.links, a, b), _path(plan.links, b, a)
            if line not in there:
                raise Unlike(f"flows of {group.name} do not pass the bottleneck")
            for link in there + again:
                if device := features[link.name][0]:
                    raise Unlike(f"no recorded scenario has a link with {device[0][1]}")
            impairments += [link.params.impairments for link in [line, *again]]
            others = [link for link in there if link is not line]
            if any(features[link.name][1] for link in others):
                raise Unlike("no recorded scenario has impairments before or behind the bottleneck")
            if any(_rate(link) < FACTOR * rate for link in others):
                raise Unlike("no recorded scenario has a second bottleneck")
            back = min(back, *(_rate(link) / rate for link in again))
            trips.append(sum(link.params.delay for link in there + again))
        app = decoding.data(group.app, "traffic.app.App")
        transport = decoding.data(group.transport, "parts.Transport")
        key = json.dumps({"app": app, "transport": transport}, sort_keys=True)
        groups[key] = app, transport
        counts[key] += group.count * len(group.pairs)
    if not alike(min(trips), max(trips)):
        raise Unlike("no recorded scenario has round-trip times more than a factor of 2 apart")
    if any(one != impairments[0] for one in impairments):
        raise Unlike("no recorded scenario has different impairments in the two directions")
    found = [groups[key] for key in sorted(groups)]
    queue = decoding.data(line.params.queue, decoding.QUEUE)
    queue.pop("hz", None)  # a property of the machine, not of the scenario
    return Shape(
        traffic=[app for app, _ in found],
        transport=[transport for _, transport in found],
        flows=[counts[key] for key in sorted(groups)],
        rate=rate,
        rtt=sum(trips) / len(trips),
        back=back,
        impairments=decoding.data(impairments[0], "link.Impairments"),
        queue=queue,
    )


def _rate(link: Link) -> float:
    return float("inf") if link.params.rate is None else float(link.params.rate)


def _path(links: tuple[Link, ...], start: int, end: int) -> list[Link]:
    """Returns the links of the path with the fewest links from node `start` to node `end`."""
    ways: dict[int | None, list[Link]] = {start: []}
    waiting: deque[int | None] = deque([start])
    while waiting and end not in ways:
        node = waiting.popleft()
        for link in links:
            if link.from_ == node and link.to not in ways:
                ways[link.to] = [*ways[node], link]
                waiting.append(link.to)
    return ways[end]


_WHAT = {
    "traffic": "these applications",
    "transport": "these transports",
    "flows": "this number of flows",
    "rate": "this rate",
    "rtt": "this round-trip time",
    "back": "this reverse path",
    "impairments": "these impairments",
}


@dataclass(frozen=True)
class Cell:
    """A cell that the simulator and Linux ran."""

    cell: str
    """Name of the cell."""
    scene: str
    """Name of the scenario without the queue."""
    shape: Shape
    """The result of `shape` for the cell's plan."""
    runs: Mapping[str, int]
    """Number of runs by engine."""
    means: Mapping[str, Mapping[str, float]]
    """Means of the metrics by engine."""


@cache
def recorded() -> list[Cell]:
    """Returns the cells of the recorded grid."""
    text = resources.files("sojourn.study").joinpath("agreement.json").read_text("utf-8")
    whole = json.loads(text)
    shared = whole["shared"]
    names = [field.name for field in fields(Cell)]
    found = []
    for cell in whole["cells"]:
        own = cell["shape"]
        own |= {key: shared[own[key]] for key in SHARED}
        # The record omits some defaults.
        wire = decoding.decoded("link.Impairments", own["impairments"])
        cell["shape"] = Shape(**own | {"impairments": decoding.data(wire, "link.Impairments")})
        found.append(Cell(*(cell[name] for name in names)))
    return found


def _errors(metric: str, a: Shape, b: Shape) -> Iterator[float]:
    """Yields the simulator's error in the difference between two queues, for each similar cell.

    `a` and `b` are the shapes of the scenario with each of the two queues.
    """
    cells = recorded()
    for key, what in _WHAT.items():
        cells = [cell for cell in cells if alike(getattr(cell.shape, key), getattr(a, key))]
        if not cells:
            raise Unlike(f"no recorded scenario has {what}")
    first, second = (
        {cell.scene: cell for cell in cells if alike(cell.shape.queue, one.queue)} for one in (a, b)
    )
    for scene in first.keys() & second.keys():
        sim, linux = (
            first[scene].means[engine][metric] - second[scene].means[engine][metric]
            for engine in ("sim", "linux")
        )
        share = a.rate / first[scene].shape.rate if metric == "goodput" else 1.0
        yield abs(sim - linux) * share


def calibration(found: Comparison, scenario: Scenario) -> Calibration:
    """Checks whether the differences between simulated queues exceed the simulator's error.

    Raises:
        Unlike: if no queue has a similar cell; the message states the reason.
    """
    if found.noun != "queue":
        raise Unlike("only queues have been compared with Linux")
    if found.present is not None:
        raise Unlike("the queues were in a shaper, and Linux was measured without one")
    metrics = list(recorded()[0].means["sim"])
    if found.by not in metrics:
        raise Unlike(
            f"{listed(metrics)} were checked against Linux in {len(recorded())} scenarios, "
            f"{found.by} was not"
        )
    within: dict[str, float] = {}
    beyond: dict[str, float] = {}
    unknown: dict[str, str] = {}
    most = 0
    best = shape(scenario.with_queue(found.entries[0].choice).plan)
    for entry in found.entries[1:]:
        try:
            other = shape(scenario.with_queue(entry.choice).plan)
            errors = list(_errors(found.by, best, other))
            if not errors:
                raise Unlike(f"no recorded scenario has {found.entries[0].choice} and this queue")
        except Unlike as reason:
            unknown[entry.choice] = str(reason)
            continue
        most = max(most, len(errors))
        gap = abs(entry.value.estimate - found.entries[0].value.estimate)
        (within if gap <= max(errors) else beyond)[entry.choice] = max(errors)
    if not within and not beyond:
        raise Unlike(next(iter(unknown.values()), "only one queue was compared"))
    return Calibration(within, beyond, unknown, most)


def description(found: Comparison, scenario: Scenario) -> str:
    """Returns the result of `calibration` in a sentence or two."""
    try:
        known = calibration(found, scenario)
    except Unlike as reason:
        return f"Simulated; the error of simulation is not known for this answer: {reason}."
    names, unit_of = found.short, found.table.units.get(found.by, unit(found.by))
    best = names[found.entries[0].choice]
    text = []
    for queues, is_where in ((known.within, "not larger"), (known.beyond, "larger")):
        for queue, error in queues.items():
            most = quantities.value(error, unit_of, found.by)
            text.append(f"{names[queue]}: {is_where} than the error of {most}")
    said = (
        f"Differences to {best} in {words(found.by)}, compared with the simulator's error in up "
        f"to {known.cells} similar scenarios that Linux also ran: {'; '.join(text)}."
    )
    if known.within:
        said += " Simulation cannot decide a difference that is not larger than the error."
    if known.unknown:
        said += f" The error is not known for {listed([names[q] for q in known.unknown])}."
    return said
