"""From a scenario to a plan: names become indices, texts become the engine's parameters."""

from __future__ import annotations

import json
import math
import re
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from sojourn import _core
from sojourn.scenario import capture, limits, trace
from sojourn.scenario.balancers import (
    BALANCER_PLACES,
    balanced_pairs,
    balancer_of,
    ends_of,
)
from sojourn.scenario.errors import Problem, ScenarioError
from sojourn.scenario.locate import Path
from sojourn.scenario.models import Flow, Mesh, Model
from sojourn.scenario.source import Source
from sojourn.scenario.store import STORE_PLACES, store_of
from sojourn.scenario.topology import (
    OneWay,
    Turn,
    aliases_of,
    changes_of,
    default_bottleneck,
    link_aliases_of,
    links_of,
    media_of,
)
from sojourn.scenario.words import moments_of, starts_of

Json = dict[str, Any]
T = TypeVar("T")


class _Resolver:
    """Collects all problems of one model on the way."""

    def __init__(self, model: Model, source: Source) -> None:
        self.model = model
        self.source = source
        self.problems: list[Problem] = []
        self.links = links_of(model)
        ends = (end for link in self.links for end in (link.source, link.target))
        self.nodes = list(dict.fromkeys(end for end in ends if end is not None))
        self.node_index = {name: i for i, name in enumerate(self.nodes)}
        self.link_index = {link.name: i for i, link in enumerate(self.links)}
        self.media = media_of(model)
        self.medium_index = {name: i for i, name in enumerate(self.media)}
        self.aliases = aliases_of(model)
        self.link_aliases = link_aliases_of(model)
        self.parsed: dict[tuple[Any, ...], Any] = {}
        self.balancers: list[Json] = []

    def complain(self, path: Path, message: str, **details: Any) -> None:
        self.problems.append(self.source.problem(path, message, **details))

    def words(self, path: Path, parse: Callable[..., str], text: str, *args: Any) -> Any:
        """What a parser of the engine says of `text`; each different text is parsed once."""
        key = (parse.__name__, text, *args)
        if key not in self.parsed:
            try:
                self.parsed[key] = json.loads(parse(text, *args))
            except _core.WordError as e:
                self.complain(
                    path,
                    e.message,
                    start=e.start,
                    end=e.end,
                    found=e.found,
                    allowed=tuple(e.allowed),
                    nearest=e.nearest,
                )
                self.parsed[key] = None
        return self.parsed[key]

    def nearest(self, word: str, known: Iterable[str]) -> dict[str, Any]:
        names = list(known)
        near = _core.nearest(word, names[:1000])
        place = {"start": 0, "end": len(word)}
        return place | {"found": word, "allowed": tuple(names[:50]), "nearest": near}

    def check_sizes(self) -> None:
        """Stop before work that grows with what there is too much of."""
        if sum(flow.count for flow in self.model.flows) > limits.FLOWS:
            self.complain(("flows",), f"more than {limits.FLOWS} flows")
        if len(self.links) > limits.LINKS:
            self.complain((), f"more than {limits.LINKS // 2} links")
        if self.problems:
            raise ScenarioError(self.problems)

    # Links

    def check_links(self) -> None:
        if not self.links:
            self.complain((), "no links: describe at least one as [links.NAME], or a [topology]")
        if len(self.link_index) < len(self.links):
            seen: set[str] = set()
            for link in self.links:
                if link.name in seen:
                    self.complain(link.rate_at[:-1], f"there are two links called `{link.name}`")
                seen.add(link.name)
        for link in self.links:
            if link.source == link.target and not link.name.endswith(".reverse"):
                self.complain(link.rate_at[:-1], f"joins `{link.source}` to itself")
        for alias in self.aliases:
            if alias in self.node_index:
                self.complain(
                    ("links",), f"`{alias}` is the template's name for several hosts; no node's"
                )
        for path, change in changes_of(self.model):
            said = (change, change.forward, change.reverse)
            if all(one.rate is None and one.netem is None for one in said):
                self.complain(path, "changes nothing: give a rate or netem's words")
        if isinstance(self.model.topology, Mesh):
            self.check_sites(self.model.topology)
        for name in self.model.links:
            if name in self.link_aliases or name in self.media:
                self.complain(("links", name), f"`{name}` is the template's name for several links")

    def check_sites(self, mesh: Mesh) -> None:
        if bool(mesh.sites) != (mesh.between is not None):
            key = "sites" if mesh.sites else "between"
            self.complain(("topology", key), "`sites` and `between` go together")
        seen: set[int] = set()
        for i, names in enumerate(mesh.sites):
            for host in self.hosts(("topology", "sites", i), names):
                if host in seen:
                    where = ("topology", "sites", i)
                    self.complain(where, f"`{self.nodes[host]}` stands in a site twice")
                seen.add(host)

    def link(self, link: OneWay) -> Json:
        capacity, rate = self.capacity(link)
        queue = self.words(link.queue_at, _core.parse_queue, link.queue, 1514, 1000, rate)
        netem = self.words(link.netem_at, _core.parse_netem, link.netem or "")
        changes = [self.change(turn) for turn in link.changes]
        return {
            "name": link.name,
            "from": self.node_index[link.source],
            "to": None if link.target is None else self.node_index[link.target],
            "medium": None if link.medium is None else self.medium_index[link.medium],
            "ring": link.ring,
            "params": {
                **capacity,
                "overhead": link.overhead,
                "queue": queue,
                **(netem or {}),
            },
            "changes": changes,
        }

    def capacity(self, link: OneWay) -> tuple[Json, int]:
        """A link's rate or trace, and the rate that its queue may reckon with."""
        if not trace.is_trace(link.rate):
            rate = int(_core.parse_quantity("rate", link.rate))
            return {"rate": rate}, rate
        key = (trace.WORD, link.rate)
        if key not in self.parsed:
            try:
                self.parsed[key] = trace.loaded(link.rate, self.source.read)
            except trace.TraceProblem as problem:
                start, end = trace.place(link.rate)
                found = link.rate[start:end]
                self.complain(link.rate_at, str(problem), start=start, end=end, found=found)
                self.parsed[key] = {"opportunities": [1], "bytes": trace.BYTES}
        capacity = {"rate": None, "trace": self.parsed[key]}
        return capacity, trace.mean_rate(capacity)

    def change(self, turn: Turn) -> Json:
        at = moments_of(turn.at)
        netem = turn.netem
        return {
            "at": at.first,
            "every": at.every,
            "rate": None if turn.rate is None else int(_core.parse_quantity("rate", turn.rate)),
            "wire": None if netem is None else self.words(turn.netem_at, _core.parse_netem, netem),
        }

    def medium(self, name: str) -> Json:
        access, path = self.media[name]
        return {"name": name, "access": self.words(path, _core.parse_medium, access)}

    def bottleneck(self) -> Json:
        """The link whose queue is the subject, or several links with what they are called."""
        path: Path = ("bottleneck",)
        default = default_bottleneck(self.model, self.links)
        if default is None:
            return {"name": "", "links": []}
        named = self.model.bottleneck or [default]
        indices: list[int] = []
        for i, name in enumerate(named):
            at = path if len(named) == 1 else (*path, i)
            if (several := self.links_called(name)) is None:
                indices.append(self.find_link(at, name, self.link_aliases))
            else:
                indices += several
            if len(set(indices)) < len(indices):
                self.complain(at, f"`{name}` is named already")
                break
        queues = {self.links[i].queue: self.links[i].name for i in indices}
        if len(queues) > 1:
            each = " and ".join(f"`{q}` ({of})" for q, of in list(queues.items())[:2])
            self.complain(path, f"links that are taken together have one queue; these have {each}")
        if len(indices) == 1:
            return {"name": self.links[indices[0]].name, "links": indices}
        return {"name": self.bottleneck_name, "links": indices}

    @property
    def bottleneck_name(self) -> str:
        """What several links are called together."""
        named = self.model.bottleneck or [default_bottleneck(self.model, self.links) or ""]
        return named[0] if len(named) == 1 else BOTTLENECKS

    def links_called(self, name: str) -> list[int] | None:
        """The links that a template's name stands for."""
        alias, dot, way = name.partition(".")
        members = self.link_aliases.get(alias)
        if members is None or f"{members[0]}{dot}{way}" not in self.link_index:
            return None
        return [self.link_index[f"{member}{dot}{way}"] for member in members]

    def find_link(self, path: Path, name: str, aliases: Iterable[str] = ()) -> int:
        index = self.link_index.get(name)
        if index is None:
            known = [*aliases, *self.link_index]
            near = self.nearest(name, known)
            few = f"; known: {', '.join(known)}" if len(known) <= 12 else ""
            hint = "" if near["nearest"] else few
            self.complain(path, f"unknown link `{name}`{hint}", **near)
            return 0
        return index

    # Flows

    def group_names(self) -> list[str]:
        given = {flow.name for flow in self.model.flows if flow.name}
        balancers = self.model.balancers
        names: list[str] = []
        for i, flow in enumerate(self.model.flows):
            name = flow.name
            if name is not None:
                if name in names:
                    self.complain(("flows", i, "name"), f"two flows are called `{name}`")
            else:
                base = name = flow.app.split()[0]
                number = 2
                while name in names or name in given:
                    name = f"{base}-{number}"
                    number += 1
            if name in self.link_index or name in self.media:
                self.complain(
                    ("flows", i, "name"),
                    f"`{name}` is a link's name already, and results are named after both",
                )
            elif name in balancers:
                self.complain(
                    ("flows", i, "name"),
                    f"`{name}` is a balancer's name already, and results are named after both",
                )
            elif name == self.bottleneck_name:
                self.complain(
                    ("flows", i, "name"),
                    f"`{name}` is the bottleneck's name already, and results are named after both",
                )
            names.append(name)
        return names

    def hosts(self, path: Path, names: list[str]) -> list[int]:
        found: list[int] = []
        for i, name in enumerate(names):
            if name in self.aliases:
                found += [self.node_index[host] for host in self.aliases[name]]
            elif name in self.node_index:
                found.append(self.node_index[name])
            else:
                known = [*self.aliases, *self.nodes, *self.model.balancers]
                few = f"; known: {', '.join(known)}" if len(known) <= 12 else ""
                near = self.nearest(name, known)
                hint = "" if near["nearest"] else few
                self.complain((*path, i), f"no link ends at `{name}`{hint}", **near)
        return found

    def group(self, index: int, name: str, flow: Flow) -> Json:
        at: Path = ("flows", index)
        balancer, ends = ends_of(self, at, flow)
        senders, receivers = ends
        pairs: list[tuple[int, int]] = []
        if senders and receivers:
            period = min(flow.count, math.lcm(len(senders), len(receivers)))
            pairs = [
                (senders[i % len(senders)], receivers[i % len(receivers)]) for i in range(period)
            ]
            if balancer is None:
                self.check_pairs(at, pairs)
            else:
                servers = [server["node"] for server in self.balancers[balancer]["servers"]]
                self.check_pairs(at, balanced_pairs(flow, pairs, servers))
        starts = starts_of(flow.start)
        stop = None if flow.stop is None else _time(flow.stop)
        duration = _time(self.model.duration)
        if starts.first + starts.spread >= duration:
            self.complain(
                (*at, "start"), f"starts at or after the run's end, {self.model.duration}"
            )
        if stop is not None and stop <= starts.first:
            self.complain((*at, "stop"), "stops before it starts")
        balanced = {} if balancer is None else {"balancer": balancer}
        return {
            "name": name,
            "pairs": pairs,
            **balanced,
            "count": flow.count,
            "start": starts.first,
            "start_spread": starts.spread,
            "start_every": starts.every,
            "stop": stop,
            "dscp": flow.dscp,
            "transport": self.transport(at, flow),
            "app": self.application(at, flow),
        }

    def check_pairs(self, at: Path, pairs: list[tuple[int, int]]) -> None:
        for source, target in pairs:
            if source == target:
                node = self.nodes[source]
                self.complain((*at, "to"), f"a flow from `{node}` to itself")
                return
            if not self.connected(source, target) or not self.connected(target, source):
                a, b = self.nodes[source], self.nodes[target]
                self.complain((*at, "to"), f"no links lead from `{a}` to `{b}`")
                return

    def connected(self, source: int, target: int) -> bool:
        return self.component[source] == self.component[target]

    @property
    def component(self) -> list[int]:
        if not hasattr(self, "_component"):
            self._component = self._components()
        return self._component

    def _components(self) -> list[int]:
        """Number of each node's connected part; every link has both directions."""
        neighbours: list[list[int]] = [[] for _ in self.nodes]
        hubs: dict[str | None, int] = {}
        for link in self.links:
            source = self.node_index[link.source]
            if link.target is not None:
                neighbours[source].append(self.node_index[link.target])
                continue
            # All on a medium reach each other; one of them stands for it.
            hub = hubs.setdefault(link.medium, source)
            neighbours[hub].append(source)
            neighbours[source].append(hub)
        part = [-1] * len(self.nodes)
        for first in range(len(self.nodes)):
            if part[first] >= 0:
                continue
            part[first] = first
            queue = deque([first])
            while queue:
                for other in neighbours[queue.popleft()]:
                    if part[other] < 0:
                        part[other] = first
                        queue.append(other)
        return part

    def application(self, at: Path, flow: Flow) -> Any:
        app = self.words((*at, "app"), _core.parse_app, flow.app)
        if app is None or app["name"] != "replay":
            return app
        try:
            return capture.loaded(app, self.source.read)
        except capture.CaptureProblem as problem:
            start, end = capture.place(flow.app)
            self.complain(
                (*at, "app"), str(problem), start=start, end=end, found=flow.app[start:end]
            )
            return None

    def transport(self, at: Path, flow: Flow) -> Json:
        carriers = _core.app_carriers(flow.app)
        if flow.tcp is not None:
            carrier = "tcp"
            if flow.udp:
                self.complain((*at, "udp"), "carried by TCP or by UDP, not by both")
        elif flow.udp is not None:
            carrier = "udp" if flow.udp else "tcp"
        else:
            carrier = carriers[0]
        if carrier not in carriers:
            app = flow.app.split()[0]
            self.complain((*at, "udp"), f"`{app}` is carried by {carriers[0].upper()}")
        if carrier == "udp":
            return {"protocol": "udp"}
        tcp = self.words((*at, "tcp"), _core.parse_tcp, flow.tcp or DEFAULT_TCP)
        return {"protocol": "tcp", **(tcp or {})}

    # All

    def plan(self) -> Json:
        model = self.model
        duration, warmup = _time(model.duration), _time(model.warmup)
        if duration == 0:
            self.complain(("duration",), "a run needs some time")
        if duration > limits.DURATION_NS:
            most = _core.format_quantity("time", limits.DURATION_NS)
            self.complain(("duration",), f"longer than {most}")
        if duration > 0 and warmup >= duration:
            self.complain(("warmup",), f"leaves nothing of the duration, {model.duration}")
        self.check_sizes()
        self.check_links()
        media = [self.medium(name) for name in self.media]
        links = [self.link(link) for link in self.links]
        names = self.group_names()
        self.balancers = [
            balancer_of(self, name, given, links) for name, given in model.balancers.items()
        ]
        groups = [self.group(i, names[i], flow) for i, flow in enumerate(model.flows)]
        if not model.flows and model.store is None:
            self.complain((), "no traffic: describe some as [[flows]], or a [store]")
        store = None if model.store is None else store_of(self, model.store, names)
        captured = model.observe.capture or []
        balancers = {"balancers": self.balancers} if self.balancers else {}
        plan = {
            "duration": duration,
            "warmup": warmup,
            "nodes": [{"name": name} for name in self.nodes],
            "media": media,
            "links": links,
            **balancers,
            "groups": groups,
            "observe": {
                "bottleneck": self.bottleneck(),
                "series_interval": self.series(duration),
                "per_flow_histograms": model.observe.per_flow,
                "monitor": model.observe.monitor,
                "capture": [
                    self.find_link(("observe", "capture", i), name)
                    for i, name in enumerate(captured)
                ],
                "snaplen": _core.parse_quantity("size", model.observe.snaplen),
                "trace_hash": model.observe.trace_hash,
            },
        }
        if store is not None:
            plan["store"] = store
        if self.problems:
            raise ScenarioError(self.problems)
        return plan

    def series(self, duration: int) -> int:
        """Spacing of time series: as asked for, else at least 100 ms and at most 1000 samples.

        Fewer samples where there are many links, for each of them has its series.
        """
        text = self.model.observe.series
        if text != "auto":
            return _time(text)
        samples = max(50, min(1000, 200_000 // max(1, len(self.links))))
        interval = AUTO_SERIES
        while duration // interval > samples:
            # 100 ms, 200 ms, 500 ms, 1 s, ...
            interval = interval * 5 // 2 if str(interval)[0] == "2" else interval * 2
        return interval


BOTTLENECKS = "bottlenecks"
"""What several links are called together where no template has a name for them."""

DEFAULT_TCP = "cubic"
"""What carries an application that names no transport of its own, as on Linux."""

AUTO_SERIES = 100_000_000
"""The least spacing of time series, in ns, that is chosen where none is asked for."""

_PLACE = re.compile(r"(links|groups|balancers|observe)(?:\[(\d+)\])?(?:\.(\w+))?")


def _time(text: str) -> int:
    return int(_core.parse_quantity("time", text))


def resolve(model: Model, source: Source) -> Json:
    """The plan of a checked model, or a `ScenarioError` with everything that does not fit."""
    resolver = _Resolver(model, source)
    plan = resolver.plan()
    try:
        _core.validate_plan(json.dumps(plan))
    except _core.PlanError as error:
        at, _, message = str(error).partition(": ")
        origin = _origin(at, resolver.links, list(model.balancers))
        raise ScenarioError([source.problem(origin, message)]) from None
    return plan


def _origin(at: str, links: list[OneWay], balancers: list[str]) -> Path:
    """Where in the scenario a place in the plan, such as `groups[2].stop`, comes from."""
    if at.startswith("store."):
        key = at.removeprefix("store.").partition("[")[0]
        return ("store", *STORE_PLACES.get(key, (key,)))
    match = _PLACE.match(at)
    if match is None:
        return (at,) if at in {"duration", "warmup"} else ()
    table, index, key = match.groups()
    if table == "links" and index:
        link = links[int(index)]
        return link.changes_at if key == "changes" else link.rate_at[:-1]
    if key == "bottleneck":
        return ("bottleneck",)
    if table == "balancers" and index:
        path = ("balancers", balancers[int(index)])
        return (*path, *BALANCER_PLACES.get(key or "", ()))
    if table == "groups" and index:
        return (
            ("flows", int(index), key)
            if key in {"start", "stop", "dscp"}
            else ("flows", int(index))
        )
    keys = {
        "series_interval": "series",
        "monitor": "monitor",
        "snaplen": "snaplen",
        "capture": "capture",
    }
    return ("observe", keys[key]) if key in keys else ("observe",) if table == "observe" else ()
