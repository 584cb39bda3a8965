"""The two directions of links, which are listed in a scenario or created by a template."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sojourn.scenario import filters
from sojourn.scenario.locate import Path
from sojourn.scenario.models import (
    DEFAULT_QUEUE,
    Dumbbell,
    Lan,
    Link,
    LinkKeys,
    Mesh,
    Model,
    Pairs,
    Part,
    Side,
    Star,
)

FORWARD, REVERSE = "forward", "reverse"
LAN = "lan"
"""Name of the medium that the hosts of a `lan` share."""

OTHERS = ("rate", "netem", "queue", "cells", "host", "host_queue", "offload")
NUMBERS = [key for key in LinkKeys.model_fields if key not in OTHERS]
"""Keys of links that the plan takes as numbers."""
PARAMS = ("overhead",)
"""Those of `NUMBERS` that are parameters of transmission; the others belong to the device."""
_OF_QUEUE = ("queue", "host_queue", "offload")
"""Keys that concern a queue, and therefore one direction only."""

NO_CELLS = "none"
"""Value of `cells` for a link that does not divide packets into cells."""

Layer = tuple[Part, Path]
"""A table that describes links, and its path; earlier layers override later layers."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A change of one direction of a link, with the paths of its values."""

    at: str
    rate: str | None
    netem: str | None
    rate_at: Path
    netem_at: Path
    place: Path
    """Scenario path of the change."""


@dataclass(frozen=True, slots=True)
class OneWay:
    """One direction of a link: the values of its keys and, for some keys, their paths."""

    name: str
    source: str
    target: str | None
    """Node at the far end; None if the link reaches all nodes of its medium."""
    rate: str
    netem: str | None
    queue: str
    """Description of the queue, even if `queue_name` is set."""
    numbers: dict[str, int]
    """Values of the keys `NUMBERS`, such as `overhead`."""
    cells: str
    host: str
    """Lateness of the sending host; empty if the host is never late."""
    host_queue: bool
    """Whether the queue is the sending host's own."""
    offload: str | None
    """How the sending host hands data to its queue; None: frame by frame."""
    rate_at: Path
    """Path of the key that sets the rate; other fields that end in `_at` are also paths."""
    netem_at: Path
    queue_at: Path
    host_at: Path
    host_queue_at: Path
    offload_at: Path
    explicit_queue: bool
    medium: str | None = None
    """Name of the shared medium; None for a link between two nodes."""
    changes: tuple[Turn, ...] = ()
    """Changes of this direction during the run."""
    changes_at: Path = ()
    place: Path = ()
    """Path of the table that describes the link or its template."""
    queue_name: str | None = None
    """Name of the queue in `[queues]`; None if it has none."""
    used: tuple[Path, ...] = ()
    """Paths of all keys that give this direction a value."""

    @property
    def described_at(self) -> Path:
        """Path of the queue's description."""
        return self.queue_at if self.queue_name is None else ("queues", self.queue_name)

    def origin(self, rest: Path) -> Path:
        """Returns the scenario path for a path in the plan's link."""
        match rest:
            case ("changes", int(i), *_) if i < len(self.changes):
                return self.changes[i].place
            case ("changes", *_):
                return self.changes_at
            case ("params", "trace"):
                return self.rate_at
            case ("params", *_):
                return self.netem_at
            case (key,) if key in self.numbers:
                return (*self.place, key)
            case ("host", *_):
                return self.host_at
            case ("host_queue",):
                return self.host_queue_at
            case ("offload",):
                return self.offload_at
            case _:
                return self.place


def _given(key: str, way: str, layers: Sequence[Layer], index: int) -> tuple[Any, Path]:
    """Returns the value and path of `key` in direction `way`, from the first table with the key."""
    for part, at in layers:
        for table, path in ((getattr(part, way, None), (*at, way, key)), (part, (*at, key))):
            if table is part and key in _OF_QUEUE and way == REVERSE:
                continue  # outside `reverse`, these keys concern the forward direction only
            value = getattr(table, key, None)
            if isinstance(value, list):
                # Elements of a list are assigned to the hosts in turn.
                index %= len(value)
                return value[index], (*path, index) if len(value) > 1 else path
            if value is not None:
                return value, path
    at = layers[0][1]
    return None, (*at, way, key) if key in _OF_QUEUE and way == REVERSE else (*at, key)


def _turns(way: str, layers: Sequence[Layer]) -> tuple[tuple[Turn, ...], Path]:
    """Returns the changes of direction `way` from the first table with changes, and their path."""
    for part, at in layers:
        changes = getattr(part, "changes", None)
        if not changes:
            continue
        path: Path = (*at, "changes")
        turns = []
        for i, change in enumerate(changes):
            layer: list[Layer] = [(change, (*path, i))]
            rate, rate_at = _given("rate", way, layer, 0)
            netem, netem_at = _given("netem", way, layer, 0)
            says_nothing = rate is None and netem is None
            if not says_nothing or change.is_empty:
                turns.append(Turn(change.at, rate, netem, rate_at, netem_at, (*path, i)))
        return tuple(turns), path
    return (), (*layers[0][1], "changes")


def _one_way(
    name: str,
    ends: tuple[str, str | None],
    way: str,
    layers: Sequence[Layer],
    index: int = 0,
    medium: str | None = None,
) -> OneWay:
    rate, rate_at = _given("rate", way, layers, index)
    netem, netem_at = _given("netem", way, layers, index)
    queue, queue_at = _given("queue", way, layers, index)
    host, host_at = _given("host", way, layers, index)
    host_queue, host_queue_at = _given("host_queue", way, layers, index)
    offload, offload_at = _given("offload", way, layers, index)
    cells, cells_at = _given("cells", way, layers, index)
    numbers = {key: _given(key, way, layers, index) for key in NUMBERS}
    turns, turns_at = _turns(way, layers)
    used = [rate_at, netem_at, queue_at, host_at, host_queue_at, offload_at, cells_at]
    used += [path for _, path in numbers.values()]
    used += [path for turn in turns for path in (turn.rate_at, turn.netem_at)]
    return OneWay(
        name,
        *ends,
        rate,
        netem,
        queue or DEFAULT_QUEUE,
        {key: value or 0 for key, (value, _) in numbers.items()},
        cells or NO_CELLS,
        host or "",
        bool(host_queue),
        offload,
        rate_at,
        netem_at,
        queue_at,
        host_at,
        host_queue_at,
        offload_at,
        queue is not None,
        medium,
        turns,
        turns_at,
        layers[0][1],
        used=tuple(used),
    )


def _both(
    name: str, ends: tuple[str, str], layers: Sequence[Layer], index: int = 0
) -> list[OneWay]:
    return [
        _one_way(name, ends, FORWARD, layers, index),
        _one_way(f"{name}.reverse", ends[::-1], REVERSE, layers, index),
    ]


def _link(name: str, link: Link) -> list[OneWay]:
    return _both(name, (link.from_, link.to), [(link, ("links", name))])


def _named(kind: str, count: int) -> list[str]:
    return [f"{kind}{i}" for i in range(1, count + 1)]


def _side(prefix: str, side: Side, router: str) -> list[OneWay]:
    return [
        one_way
        for i, host in enumerate(_named(prefix, side.hosts))
        for one_way in _both(host, (host, router), [(side, ("topology", prefix))], i)
    ]


def _dumbbell(t: Dumbbell) -> list[OneWay]:
    middle = _both("bottleneck", ("router1", "router2"), [(t, ("topology",))])
    return middle + _side("left", t.left, "router1") + _side("right", t.right, "router2")


def _pairs(t: Pairs) -> list[OneWay]:
    return [
        one_way
        for i in range(t.pairs)
        for one_way in _both(f"pair{i + 1}", (f"a{i + 1}", f"b{i + 1}"), [(t, ("topology",))], i)
    ]


def _star_hosts(t: Star) -> int:
    return t.hosts or (0 if t.clients or t.servers else 2)


def _star(t: Star) -> list[OneWay]:
    star: Layer = (t, ("topology",))
    links = [
        one_way
        for i, host in enumerate(_named("host", _star_hosts(t)))
        for one_way in _both(f"port{i + 1}", ("switch", host), [star], i)
    ]
    for kind, ports in (("client", t.clients), ("server", t.servers)):
        if ports is not None:
            layers = [(ports, ("topology", f"{kind}s")), star]
            for i, host in enumerate(_named(kind, ports.hosts)):
                links += _both(host, ("switch", host), layers, i)
    return links


def _lan(t: Lan) -> list[OneWay]:
    return [
        _one_way(host, (host, None), FORWARD, [(t, ("topology",))], medium=LAN)
        for host in _named("client", t.clients) + _named("server", t.servers)
    ]


def _mesh_links(t: Mesh) -> list[tuple[str, str]]:
    """Returns the pairs of joined hosts of a mesh, in the order of the links."""
    nodes = _named("node", t.nodes)
    pairs = [(a, b) for i, a in enumerate(nodes) for b in nodes[i + 1 :]]
    clients = _named("client", t.clients.hosts) if t.clients else []
    return pairs + [(client, node) for client in clients for node in nodes]


def _mesh(t: Mesh) -> list[OneWay]:
    mesh: Layer = (t, ("topology",))
    names = aliases_of_mesh(t)
    site = {
        host: number
        for number, hosts in enumerate(t.sites)
        for name in hosts
        for host in names.get(name, [name])
    }
    links = []
    for a, b in _mesh_links(t):
        layers = [mesh]
        if t.clients is not None and a.startswith("client"):
            layers = [(t.clients, ("topology", "clients")), mesh]
        if t.between is not None and a in site and b in site and site[a] != site[b]:
            layers = [(t.between, ("topology", "between")), *layers]
        links += _both(f"{a}-{b}", (a, b), layers)
    return links


def links_of(model: Model) -> list[OneWay]:
    """Returns every direction of every link: the template's links, then the links in `[links]`."""
    links: list[OneWay] = []
    match model.topology:
        case Dumbbell() as t:
            links += _dumbbell(t)
        case Pairs() as t:
            links += _pairs(t)
        case Star() as t:
            links += _star(t)
        case Lan() as t:
            links += _lan(t)
        case Mesh() as t:
            links += _mesh(t)
    for name, link in model.links.items():
        links += _link(name, link)
    named = model.queues
    links = [
        replace(link, queue=named[link.queue], queue_name=link.queue)
        if link.queue in named
        else link
        for link in links
    ]
    if not any(filters.has_hosts(link.queue) for link in links):
        return links
    hosts = {name: number for number, name in enumerate(nodes_of(links))}
    return [replace(link, queue=filters.numbered(link.queue, hosts)) for link in links]


def nodes_of(links: Iterable[OneWay]) -> list[str]:
    """Returns the nodes at the ends of links; the position of a node is its number in the plan."""
    ends = (end for link in links for end in (link.source, link.target))
    return list(dict.fromkeys(end for end in ends if end is not None))


def media_of(model: Model) -> dict[str, tuple[str, Path]]:
    """Returns the shared media by name, with the access method and the path of its key."""
    if isinstance(model.topology, Lan):
        return {LAN: (model.topology.access, ("topology", "access"))}
    return {}


def aliases_of_mesh(t: Mesh) -> dict[str, list[str]]:
    """Returns the names that cover several hosts of a mesh, with these hosts."""
    kinds = {"nodes": _named("node", t.nodes)}
    if t.clients:
        kinds["clients"] = _named("client", t.clients.hosts)
    return kinds


def aliases_of(model: Model) -> dict[str, list[str]]:
    """Returns the names that cover several hosts of a template, with these hosts."""
    match model.topology:
        case Dumbbell() as t:
            return {
                "left": _named("left", t.left.hosts),
                "right": _named("right", t.right.hosts),
            }
        case Pairs() as t:
            return {side: _named(side, t.pairs) for side in ("a", "b")}
        case Star() as t:
            kinds = {"hosts": _named("host", _star_hosts(t))}
            if t.clients:
                kinds["clients"] = _named("client", t.clients.hosts)
            if t.servers:
                kinds["servers"] = _named("server", t.servers.hosts)
            return {kind: hosts for kind, hosts in kinds.items() if hosts}
        case Lan() as t:
            return {
                "clients": _named("client", t.clients),
                "servers": _named("server", t.servers),
            }
        case Mesh() as t:
            return aliases_of_mesh(t)
        case _:
            return {}


def link_aliases_of(model: Model) -> dict[str, list[str]]:
    """Returns the names for several links of a template, with these links' forward directions."""
    hosts = aliases_of(model)
    match model.topology:
        case Dumbbell():
            return hosts
        case Pairs() as t:
            return {"pairs": _named("pair", t.pairs)}
        case Star() as t:
            ports = _named("port", _star_hosts(t))
            kinds = {kind: names for kind, names in hosts.items() if kind != "hosts"}
            return {"ports": ports + [name for names in kinds.values() for name in names], **kinds}
        case Lan():
            return {LAN: hosts["clients"] + hosts["servers"], **hosts}
        case Mesh() as t:
            return {"mesh": [f"{a}-{b}" for a, b in _mesh_links(t)]}
        case _:
            return {}


def default_bottleneck(model: Model, links: Sequence[OneWay]) -> str | None:
    """Returns the name of the default bottleneck (one or several links); None without links."""
    if isinstance(model.topology, Lan):
        return LAN
    first = next((link for link in links if link.explicit_queue), None)
    if first is None:
        return links[0].name if links else None
    match model.topology, first.queue_at:
        case Star(), ("topology", "clients" | "servers" as side, *way):
            return side if way == ["queue"] or way[0] == FORWARD else f"{side}.reverse"
        case _:
            return first.name
