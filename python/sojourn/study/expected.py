"""The simulator's expected error against Linux, from cells that both ran.

`tests/agreement` draws cells from a population, runs them by the simulator and by Linux in virtual
time, and records the values of each seed in `agreement.json`. A scenario is placed among these
cells by its coordinates (rate, round trip, flows, controls, queue, ...). The error that is expected
there is the mean error of the nearest cells, times a factor. With the factor, and with the noise of
the recorded seeds, 90 % of the recorded errors are contained if each network is left out in turn.
"""

from __future__ import annotations

import json
import math
import operator
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from statistics import fmean
from typing import TYPE_CHECKING, Any

from sojourn import _core
from sojourn.data import Object
from sojourn.metrics import base, unit
from sojourn.plan import decoding
from sojourn.plan.queries import bottlenecks
from sojourn.plan.traffic.cbr import Cbr
from sojourn.plan.traffic.voip import Voip
from sojourn.scenario.summary import format_value

if TYPE_CHECKING:
    from sojourn.data import Json
    from sojourn.plan.parts import Group, Link
    from sojourn.plan.plan import Plan

FACTOR = 2.0
"""Maximum ratio of corresponding numbers of similar queues."""
LEVEL = 0.9
"""Share of the errors that an expected error contains."""
NEAREST = 15
"""Number of nearest cells from which an error is expected."""
REACH = 3.0
"""Largest distance of a similar cell; a scenario has at least `FEWEST` of them."""
FEWEST = 5
FRAME = 1514
"""Bytes of a full frame."""
NOISE = 0.02
"""Noise of seeds below which less noise does not let a cell count more."""
LEAST = 0.002
"""Smallest mean error of nearest cells."""
HEADERS = 42
"""Bytes of a datagram's headers in an Ethernet frame."""
LIGHT = 0.05
"""Largest share of the bottleneck's rate of datagrams that do not change a scenario's place."""
COORDINATES = (
    "rate", "rtt", "spread", "flows", "window", "cubic", "reno", "bbr", "ecn", "loss", "reverse",
    "back", "load",
)  # fmt: skip
"""Names of the coordinates of `Place`."""
FAMILIES = (
    ("fifo",),
    ("red", "codel", "pie", "dualpi2"),
    ("fq_codel", "fq_pie", "cake", "sfq"),
)
"""Recorded queues: FIFOs, AQMs of one queue, queues of flows."""
TOLD = ("goodput", "sojourn_mean", "sojourn_p95", "loss", "fct_mean")
"""Metrics whose error is known. A group's completion time has the error of `fct_mean`."""


class Unlike(Exception):
    """The scenario is not similar to any cell; the message states the reason."""


@dataclass(frozen=True)
class Place:
    """The place of a scenario among the cells."""

    at: tuple[float, ...]
    """Coordinates; a difference of 1 is a factor of 4 in rates, times and numbers of flows."""
    queue: Object
    """Queue of the bottleneck."""
    buffer: float
    """Coordinate of a FIFO's size in bandwidth-delay products; 0 for other queues."""
    frame: float
    """Time of a full frame on the bottleneck in seconds."""

    def distance(self, other: Place) -> float:
        """Returns the distance from another place."""
        a, b = self.queue, other.queue
        apart = math.dist((*self.at, self.buffer), (*other.at, other.buffer))
        if a["name"] != b["name"]:
            related = any(a["name"] in names and b["name"] in names for names in FAMILIES)
            return math.hypot(apart, 1.0 if related else 2.0)
        settings = sum(not alike(a[key], b.get(key)) for key in a if key not in ("hz", "limit"))
        return math.hypot(apart, 0.3 * settings)


@dataclass(frozen=True)
class Cell:
    """A cell that the simulator and Linux ran."""

    name: str
    """Its place in a drawing, and a description."""
    network: str
    """Name that the cells of one network share."""
    place: Place
    runs: Mapping[str, Mapping[str, Sequence[float]]]
    """Values of the metrics by engine (`sim`, `linux`, and `again`: Linux with other seeds)."""

    @staticmethod
    def read(data: Object) -> Cell:
        """Returns a cell of the record."""
        one: Any = data
        queue = json.loads(_core.parse_queue(one["queue"]))
        where = Place(tuple(one["at"]), queue, *one["sizes"])
        return Cell(one["cell"], one["network"], where, one["runs"])

    def values(self, engine: str, metric: str) -> Sequence[float]:
        """Returns the values of a metric; none if the engine did not measure it."""
        found = self.runs.get(engine, {})
        if metric == "loss" and "drops" in found:
            pairs = zip(found["drops"], found["departures"], strict=True)
            return [drops / max(drops + passed, 1) for drops, passed in pairs]
        return found.get(metric, ())

    def mean(self, engine: str, metric: str) -> float:
        """Returns the mean of a metric; NaN if the engine did not measure it."""
        values = self.values(engine, metric)
        return fmean(values) if values else math.nan

    def error(self, metric: str, engine: str = "sim") -> float:
        """Returns the logarithm of an engine's value divided by Linux's; see `least`."""
        floor = least(metric, self.place)
        ratio = (self.mean(engine, metric) + floor) / (self.mean("linux", metric) + floor)
        return math.log(ratio) if ratio > 0 else math.nan

    def noise(self, metric: str) -> float:
        """Returns the standard deviation of the error that the choice of the seeds causes.

        If the record has only Linux's mean, its noise is taken to be that of the simulator.
        """
        floor, found = least(metric, self.place), 0.0
        ours = self.values("sim", metric)
        theirs = self.values("linux", metric)
        for runs in (ours, theirs if len(theirs) > 1 else ours):
            mean = fmean(runs)
            squares = sum((run - mean) ** 2 for run in runs)
            found += squares / (len(runs) * (len(runs) - 1) * (mean + floor) ** 2)
        return math.sqrt(found)

    def clean(self, metric: str) -> float:
        """Returns the size of the error without the part that the noise of the seeds explains."""
        return math.sqrt(max(0.0, self.error(metric) ** 2 - self.noise(metric) ** 2))


@dataclass(frozen=True)
class Expected:
    """The expected errors of a scenario."""

    shares: Mapping[str, float]
    """Expected error by metric: 90 % of errors are at most this share of the value and `least`."""
    cells: int
    """Largest number of cells that an error is expected from."""
    place: Place

    def error(self, metric: str, value: float) -> float:
        """Returns the expected error of a value; NaN if the metric's error is not known."""
        name = recorded_name(metric)
        share = self.shares.get(name, math.nan)
        return share * (abs(value) + least(name, self.place))


def least(metric: str, place: Place) -> float:
    """Returns what is added to both values of an error, so that errors of small values count less.

    It is a packet's time for delays, 0.1 % for the share of lost packets.
    """
    if metric.startswith("sojourn"):
        return max(place.frame, 1e-4)
    return 0.001 if metric == "loss" else 0.0


def recorded_name(metric: str) -> str:
    """Returns the name under which the record has a metric of a scenario."""
    name = base(metric)
    return name if metric == name or name == "fct_mean" else metric


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


def place(plan: Plan) -> Place:
    """Returns the place of a plan among the cells.

    Raises:
        Unlike: if the plan has a property that no cell has, such as a second bottleneck.
    """
    line, rate = _bottleneck(plan)
    queue = decoding.data(line.params.queue, decoding.QUEUE)
    if not any(queue["name"] in names for names in FAMILIES):
        raise Unlike(f"no recorded scenario has the queue {queue['name']}")
    found = _traffic(plan, line, rate)
    if not found.trips or min(found.trips) <= 0:
        raise Unlike("no recorded scenario has this round-trip time")
    long, mix = found.flows.total(), found.flows or found.short
    rtt = sum(found.trips) / len(found.trips)
    bdp = rate * rtt / 8
    values = {
        "rate": math.log(rate, 4),
        "rtt": math.log(rtt, 4),
        "spread": math.log2(max(found.trips) / min(found.trips)) / 2,
        "flows": math.log(1 + long, 4),
        "window": math.log(max(bdp / FRAME / max(long, 1), 0.1), 4),
        **{name: mix[name] / mix.total() for name in ("cubic", "reno", "bbr")},
        "ecn": found.ecn,
        "loss": math.log10(1 + _loss(line) / 1e-4),
        "reverse": math.log(1 + found.reverse, 4),
        "back": math.log(found.back, 4),
        "load": 2 * found.offered / rate,
    }
    buffer = 0.0
    if queue["name"] == "fifo":
        size = int(str(queue["limit"])) * (FRAME if queue["unit"] == "packets" else 1)
        buffer = math.log(size / bdp, 4)
    at = tuple(round(values[name], 3) for name in COORDINATES)
    return Place(at, queue, round(buffer, 3), FRAME * 8 / rate)


def _bottleneck(plan: Plan) -> tuple[Link, int]:
    """Returns the only bottleneck of a plan and its rate."""
    if plan.media:
        raise Unlike("no recorded scenario has a shared medium")
    if plan.apps or plan.balancers:
        raise Unlike("no recorded scenario has these applications")
    if len(plan.observe.bottleneck.links) != 1:
        raise Unlike("no recorded scenario has a second bottleneck")
    (line,) = bottlenecks(plan)
    if line.params.rate is None or any(link.changes for link in plan.links):
        raise Unlike("no recorded scenario has a rate that varies")
    return line, line.params.rate


@dataclass
class _Traffic:
    """The flows of a plan as seen from its bottleneck."""

    flows: Counter[str] = field(default_factory=Counter)
    """Long flows through the bottleneck by control."""
    short: Counter[str] = field(default_factory=Counter)
    """Short flows by control."""
    reverse: int = 0
    """Long flows the other way."""
    offered: float = 0.0
    """Load of the short flows in bit/s."""
    ecn: float = 0.0
    back: float = 1.0
    """The bottleneck's rate over that of the reverse path, at least 1."""
    trips: list[float] = field(default_factory=list)
    """Base round-trip times in seconds."""


def _traffic(plan: Plan, line: Link, rate: int) -> _Traffic:
    groups = [one for one in plan.groups if one.app.TAG in ("bulk", "transfer")]
    rest = [one for one in plan.groups if one not in groups]
    if rest and (not groups or sum(map(_steady, rest)) > LIGHT * rate):
        raise Unlike(f"no recorded scenario has the application {rest[0].app.TAG}")
    found = _Traffic()
    names = [link.name for link in plan.links]
    features = dict(zip(names, _core.link_features(plan.text), strict=True))
    for group in groups:
        control, ecn = _transport(group)
        for a, b in group.pairs:
            there, again = _path(plan.links, a, b), _path(plan.links, b, a)
            for link in there + again:
                if device := features[link.name][0]:
                    raise Unlike(f"no recorded scenario has a link with {device[0][1]}")
            number = round(group.count / len(group.pairs))
            if line in again and group.app.TAG == "bulk":
                found.reverse += number
                continue
            if line not in there:
                raise Unlike(f"flows of {group.name} do not pass the bottleneck")
            others = [link for link in there if link is not line]
            if any(_rate(link) < FACTOR * rate for link in others):
                raise Unlike("no recorded scenario has a second bottleneck")
            if any(features[link.name][1] for link in others):
                raise Unlike("no recorded scenario has impairments before or behind the bottleneck")
            found.back = max(found.back, *(rate / _rate(link) for link in again))
            found.trips.append(sum(link.params.delay for link in there + again) / 1e9)
            found.ecn = max(found.ecn, ecn)
            if group.app.TAG == "bulk":
                found.flows[control] += number
            else:
                found.short[control] += number
                found.offered += _offered(group, plan) * number
    return found


def _steady(group: Group) -> float:
    """Returns the largest rate of a group's frames in bit/s; infinity for other applications."""
    match group.app:
        case Voip(payload=payload, interval=interval):
            return group.count * 8e9 * (payload + HEADERS) / interval
        case Cbr(rate=rate, counts="frame"):
            return group.count * float(rate)
        case Cbr(rate=rate, length=int(payload)):
            return group.count * rate * (payload + HEADERS) / payload
    return math.inf


def _transport(group: Group) -> tuple[str, float]:
    """Returns the congestion control of a group, and 1 if it uses ECN."""
    found = transport(group)
    control = found.get("congestion")
    if found not in recorded().transports or not isinstance(control, dict):
        raise Unlike("no recorded scenario has these transports")
    return str(control["name"]), float(found["ecn"] != "off")


def transport(group: Group) -> Object:
    """Returns the transport of a group without the properties of the machine."""
    found = decoding.data(group.transport, "parts.Transport")
    return {key: value for key, value in found.items() if key not in ("hz", "frame_memory")}


def _offered(group: Group, plan: Plan) -> float:
    """Returns the load in bit/s of a flow that is one transfer at a random time."""
    app = decoding.data(group.app, "traffic.app.App")
    size = app["size"]
    mean = size.get("mean", size.get("value")) if isinstance(size, dict) else None
    if app["repeat"] != 1 or not isinstance(mean, int | float):
        raise Unlike("no recorded scenario has transfers that repeat, or sizes of this kind")
    spread = group.start_spread + group.start_every * group.count
    return 8e9 * mean / min(max(spread, 1), plan.duration)


def _loss(line: Link) -> float:
    """Returns the share of packets that a link loses at random."""
    found = decoding.data(line.params.impairments, "link.Impairments")
    loss = found.pop("loss")
    plain = decoding.data(decoding.decoded("link.Impairments", _PLAIN), "link.Impairments")
    if not isinstance(loss, dict) or found != {k: v for k, v in plain.items() if k != "loss"}:
        raise Unlike("no recorded scenario has these impairments")
    if loss["model"] == "none":
        return 0.0
    if loss["model"] != "random" or loss["correlation"]:
        raise Unlike("no recorded scenario has this model of losses")
    return float(str(loss["probability"]))


_NEVER: Object = {"probability": 0.0, "correlation": 0.0}
_PLAIN: Object = {"loss": {"model": "none"}, "duplicate": _NEVER, "corrupt": _NEVER}
"""Impairments that change no packet."""


def _rate(link: Link) -> float:
    return float("inf") if link.params.rate is None else float(link.params.rate)


def _path(links: Sequence[Link], start: int, end: int) -> list[Link]:
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


@dataclass(frozen=True)
class Recorded:
    """The record of `tests/agreement`."""

    release: str
    """Release of Linux."""
    transports: list[Object]
    """Transports of the flows of all cells."""
    factors: Mapping[str, float]
    """By metric, the factor of the mean error that contains `LEVEL` of the errors."""
    cells: list[Cell]


@cache
def recorded() -> Recorded:
    """Returns the record."""
    text = resources.files("sojourn.study").joinpath("agreement.json").read_text("utf-8")
    whole = json.loads(text)
    cells = [Cell.read(one) for one in whole["cells"]]
    return Recorded(whole["release"], whole["transports"], whole["factors"], cells)


def scales(where: Place, cells: Iterable[Cell]) -> tuple[dict[str, float], int]:
    """Returns the mean errors of the cells nearest to a place by metric, and how many they are.

    Nearer cells, and those with less noise of their seeds, count more. Without enough similar cells
    there are no errors.
    """
    near = [(where.distance(cell.place), cell) for cell in cells]
    near = sorted((one for one in near if one[0] <= REACH), key=lambda one: one[0])
    found = {}
    for metric in TOLD:
        known = [one for one in near if math.isfinite(one[1].error(metric))][:NEAREST]
        if len(known) >= FEWEST:
            weights = [1 / (1 + d) / (NOISE + cell.noise(metric)) for d, cell in known]
            errors = [cell.clean(metric) for _, cell in known]
            mean = sum(map(operator.mul, weights, errors)) / sum(weights)
            found[metric] = max(LEAST, mean)
    return found, min(len(near), NEAREST)


def expected(plan: Plan) -> Expected:
    """Returns the errors against Linux that are expected of a simulated plan.

    Raises:
        Unlike: if there are too few similar cells; the message states the reason.
    """
    where, known = place(plan), recorded()
    means, similar = scales(where, known.cells)
    # A metric of few cells has no factor, since its errors cannot be checked by leaving cells out.
    shares = {
        metric: math.expm1(known.factors[metric] * mean)
        for metric, mean in means.items()
        if metric in known.factors
    }
    if not shares:
        raise Unlike("no similar cell was checked")
    return Expected(shares, similar, where)


def error_bars(plan: Plan, metrics: Mapping[str, float], units: Mapping[str, str]) -> str:
    """Returns the expected errors of a run's metrics, or why they are not known."""
    try:
        known = expected(plan)
    except Unlike as reason:
        return f"Simulated; the error against Linux is not known: {reason}."
    wanted = {name: value for name, value in metrics.items() if recorded_name(name) in TOLD}
    return bars(known, wanted, units)


def bars(known: Expected, values: Mapping[str, float], units: Mapping[str, str]) -> str:
    """Returns the expected errors of values in a sentence, without those that are not known."""
    found = {metric: known.error(metric, value) for metric, value in values.items()}
    texts = [
        f"{metric} ± {format_value(error, units.get(metric, unit(metric)), metric)}"
        for metric, error in found.items()
        if math.isfinite(error)
    ]
    return (
        f"Simulated. Expected error against Linux {recorded().release} ({100 * LEVEL:.0f} % of "
        f"cases, by the nearest {known.cells} of {len(recorded().cells)} cells that Linux also "
        f"ran): {', '.join(texts)}."
    )
