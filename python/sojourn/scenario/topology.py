"""Links with their two directions, as written or as a template brings them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sojourn.scenario.locate import Path
from sojourn.scenario.models import (
    DEFAULT_QUEUE,
    Direction,
    Dumbbell,
    Link,
    Model,
    Pairs,
    Side,
    SideDirection,
    Star,
)

FORWARD, REVERSE = "forward", "reverse"


@dataclass(frozen=True, slots=True)
class OneWay:
    """One direction of a link, every key with its value and where that value was written."""

    name: str
    source: str
    target: str
    rate: str
    netem: str | None
    queue: str
    overhead: int
    rate_at: Path
    """Path of the key that gives the rate; likewise the others."""
    netem_at: Path
    queue_at: Path
    explicit_queue: bool


def _dealt(values: Sequence[str] | None, index: int) -> str | None:
    return values[index % len(values)] if values else None


def _one_way(
    name: str,
    ends: tuple[str, str],
    way: str,
    common: tuple[Sequence[str], Sequence[str] | None, str | None, int],
    own: Direction | SideDirection,
    at: Path,
    index: int = 0,
) -> OneWay:
    rates, netems, queue, overhead = common
    own_rates = [own.rate] if isinstance(own.rate, str) else own.rate
    own_netems = [own.netem] if isinstance(own.netem, str) else own.netem
    own_overhead = own.overhead if isinstance(own, Direction) else None
    shared_queue = queue if way == FORWARD else None
    chosen_queue = own.queue or shared_queue
    source, target = ends if way == FORWARD else (ends[1], ends[0])

    def where(key: str, given: object, values: Sequence[str] | None) -> Path:
        path = (*at, way, key) if given else (*at, key)
        return (*path, index % len(values)) if values and len(values) > 1 else path

    return OneWay(
        name if way == FORWARD else f"{name}.reverse",
        source,
        target,
        _dealt(own_rates, index) or rates[index % len(rates)],
        _dealt(own_netems, index) or _dealt(netems, index),
        chosen_queue or DEFAULT_QUEUE,
        overhead if own_overhead is None else own_overhead,
        where("rate", own_rates, own_rates or rates),
        where("netem", own_netems, own_netems or netems),
        where("queue", own.queue or way == REVERSE, None),
        chosen_queue is not None,
    )


def _both(
    name: str,
    ends: tuple[str, str],
    common: tuple[Sequence[str], Sequence[str] | None, str | None, int],
    forward: Direction | SideDirection,
    reverse: Direction | SideDirection,
    at: Path,
    index: int = 0,
) -> list[OneWay]:
    return [
        _one_way(name, ends, way, common, own, at, index)
        for way, own in ((FORWARD, forward), (REVERSE, reverse))
    ]


def _link(name: str, link: Link) -> list[OneWay]:
    netem = None if link.netem is None else [link.netem]
    common = ([link.rate], netem, link.queue, link.overhead)
    at: Path = ("links", name)
    return _both(name, (link.from_, link.to), common, link.forward, link.reverse, at)


def _side(prefix: str, side: Side, router: str) -> list[OneWay]:
    common = (side.rate, side.netem, side.queue, 0)
    return [
        one_way
        for i in range(side.hosts)
        for one_way in _both(
            f"{prefix}{i + 1}",
            (f"{prefix}{i + 1}", router),
            common,
            side.forward,
            side.reverse,
            ("topology", prefix),
            i,
        )
    ]


def _dumbbell(t: Dumbbell) -> list[OneWay]:
    netem = None if t.netem is None else [t.netem]
    middle = _both(
        "bottleneck",
        ("router1", "router2"),
        ([t.rate], netem, t.queue, t.overhead),
        t.forward,
        t.reverse,
        ("topology",),
    )
    return middle + _side("left", t.left, "router1") + _side("right", t.right, "router2")


def _many(t: Pairs | Star) -> list[OneWay]:
    common = (t.rate, t.netem, t.queue, t.overhead)
    if isinstance(t, Pairs):
        named = [(f"pair{i}", (f"a{i}", f"b{i}")) for i in range(1, t.pairs + 1)]
    else:
        named = [(f"port{i}", ("switch", f"host{i}")) for i in range(1, t.hosts + 1)]
    return [
        one_way
        for i, (name, ends) in enumerate(named)
        for one_way in _both(name, ends, common, t.forward, t.reverse, ("topology",), i)
    ]


def links_of(model: Model) -> list[OneWay]:
    """Every direction of every link, the template's first, in the order of the text."""
    links: list[OneWay] = []
    if isinstance(model.topology, Dumbbell):
        links += _dumbbell(model.topology)
    elif model.topology is not None:
        links += _many(model.topology)
    for name, link in model.links.items():
        links += _link(name, link)
    return links


def aliases_of(model: Model) -> dict[str, list[str]]:
    """Names that stand for several hosts of a template."""
    match model.topology:
        case Dumbbell() as t:
            return {
                "left": [f"left{i}" for i in range(1, t.left.hosts + 1)],
                "right": [f"right{i}" for i in range(1, t.right.hosts + 1)],
            }
        case Pairs() as t:
            return {side: [f"{side}{i}" for i in range(1, t.pairs + 1)] for side in ("a", "b")}
        case Star() as t:
            return {"hosts": [f"host{i}" for i in range(1, t.hosts + 1)]}
        case _:
            return {}
