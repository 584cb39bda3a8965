"""Resolution of a scenario to a plan: names become numbers, texts become parameters.

The engine checks whether the plan can be run. Problems are reported at the scenario's keys.
"""

from __future__ import annotations

import json

from sojourn import _core
from sojourn.data import Object
from sojourn.plan.plan import Plan
from sojourn.scenario import filters, lateness, limits, trace
from sojourn.scenario.balancers import balancer_place, balancers_of
from sojourn.scenario.context import Context
from sojourn.scenario.errors import ScenarioError
from sojourn.scenario.flows import group_place, groups_of, names_of
from sojourn.scenario.locate import Path
from sojourn.scenario.models import DEFAULT_QUEUE, Mesh, Model
from sojourn.scenario.source import Source
from sojourn.scenario.store import store_of, store_place
from sojourn.scenario.topology import NO_CELLS, PARAMS, OneWay, Turn, default_bottleneck
from sojourn.scenario.words import time_of


class _Resolver(Context):
    """Makes the plan of a model, and collects the problems."""

    # Links

    def check_links(self) -> None:
        """Adds problems with names of links and hosts."""
        if not self.links:
            self.complain(
                (),
                "the scenario has no links: describe at least one as [links.NAME], or a [topology]",
            )
        for alias in self.aliases:
            if alias in self.node_index:
                self.complain(
                    ("links",),
                    f"`{alias}` is the template's name for several hosts: give the node another "
                    "name",
                )
        if isinstance(self.model.topology, Mesh):
            self.check_sites(self.model.topology)
        for name in self.model.links:
            if name in self.link_aliases or name in self.media:
                self.complain(
                    ("links", name),
                    f"`{name}` is the template's name for several links: give the link another "
                    "name",
                )
                self.paths.add(("bottleneck",))  # the bottleneck may have the same wrong name

    def check_sites(self, mesh: Mesh) -> None:
        if bool(mesh.sites) != (mesh.between is not None):
            key = "sites" if mesh.sites else "between"
            self.complain(
                ("topology", key), "`sites` and `between` require each other: set both or none"
            )
        seen: set[int] = set()
        for i, names in enumerate(mesh.sites):
            for host in self.hosts(("topology", "sites", i), names):
                if host in seen:
                    where = ("topology", "sites", i)
                    self.complain(where, f"`{self.nodes[host]}` is listed twice in `sites`")
                seen.add(host)

    def link(self, number: int, link: OneWay) -> Object:
        capacity, rate = self.capacity(link)
        about = (1514, 1000, rate)
        text = link.queue
        if (host := filters.unknown_host(text)) is not None:
            near = self.nearest(host, self.nodes)
            message = f"a filter uses the host `{host}`, but no link has this end"
            self.complain(link.described_at, message, nearest=near["nearest"])
            text = DEFAULT_QUEUE
        queue = self.policy(
            "queue", link.described_at, _core.parse_queue, text, *about, instead=DEFAULT_QUEUE
        )
        netem = self.words(link.netem_at, _core.parse_netem, link.netem or "")
        self.changes[number] += [self.change(turn) for turn in link.changes]
        return {
            "name": link.name,
            "from": self.node_index[link.source],
            "to": None if link.target is None else self.node_index[link.target],
            "medium": None if link.medium is None else self.medium_index[link.medium],
            **{key: value for key, value in link.numbers.items() if key not in PARAMS},
            **({"host": self.host(link)} if link.host.strip() else {}),
            **({"host_queue": True} if link.host_queue else {}),
            **({} if link.offload is None else {"offload": link.offload}),
            "params": {
                **capacity,
                **{key: value for key, value in link.numbers.items() if key in PARAMS},
                **({} if link.cells == NO_CELLS else {"cells": link.cells}),
                "queue": queue,
                **netem,
            },
            "changes": self.changes[number],
        }

    def capacity(self, link: OneWay) -> tuple[Object, int]:
        """Returns a link's rate or trace for the plan, and the rate in bit/s for its queue."""
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
        capacity: Object = {"rate": None, "trace": self.parsed[key]}
        return capacity, trace.mean_rate(capacity)

    def host(self, link: OneWay) -> Object:
        """Returns the lateness of a link's sending host, with the contents of its files."""
        key = (lateness.WORD, link.host)
        if key not in self.parsed:
            parsed = self.words(link.host_at, _core.parse_host, link.host)
            try:
                self.parsed[key] = lateness.loaded(parsed, self.source.read)
            except lateness.LatenessProblem as problem:
                start, end = lateness.place(link.host)
                found = link.host[start:end]
                self.complain(link.host_at, str(problem), start=start, end=end, found=found)
                self.parsed[key] = json.loads(_core.parse_host(""))
        return self.parsed[key]

    def change(self, turn: Turn) -> Object:
        first, every = _core.parse_moments(turn.at)
        netem = turn.netem
        return {
            "at": first,
            "every": every,
            "rate": None if turn.rate is None else int(_core.parse_quantity("rate", turn.rate)),
            "wire": None if netem is None else self.words(turn.netem_at, _core.parse_netem, netem),
        }

    def medium(self, name: str) -> Object:
        access, path = self.media[name]
        return {"name": name, "access": self.words(path, _core.parse_medium, access)}

    def bottleneck(self) -> Object:
        """Returns the links whose queues are studied, and their common name."""
        path: Path = ("bottleneck",)
        default = default_bottleneck(self.model, self.links)
        if default is None:
            return {"name": "", "links": []}
        named = self.model.bottleneck or [default]
        indices: list[int] = []
        for i, name in enumerate(named):
            at = path if len(named) == 1 else (*path, i)
            found = self.links_called(name)
            if found is None:
                found = self.find_link(at, name, self.link_aliases)
            for link in found:
                self.origins["observe", "bottleneck", "links", len(indices)] = at
                indices.append(link)
        queues = {self.links[i].queue: self.links[i].name for i in indices}
        if len(queues) > 1:
            each = " and ".join(f"`{q}` ({of})" for q, of in list(queues.items())[:2])
            self.complain(
                path,
                f"links that are studied together must have the same queue, but these have {each}",
            )
        if len(indices) == 1:
            return {"name": self.links[indices[0]].name, "links": indices}
        return {"name": self.bottleneck_name, "links": indices}

    @property
    def bottleneck_name(self) -> str:
        """Returns the common name of several studied links."""
        named = self.model.bottleneck or [default_bottleneck(self.model, self.links) or ""]
        return named[0] if len(named) == 1 else BOTTLENECKS

    def links_called(self, name: str) -> list[int] | None:
        """Returns the numbers of the links that a template's name covers; None for other names."""
        alias, dot, way = name.partition(".")
        members = self.link_aliases.get(alias)
        if members is None or f"{members[0]}{dot}{way}" not in self.link_index:
            return None
        return [self.link_index[f"{member}{dot}{way}"] for member in members]

    def check_deploy(self) -> None:
        """Adds a problem if the machine of `[deploy]` is not a node."""
        machine = self.model.deploy.machine
        if machine is not None and machine not in self.node_index:
            at: Path = ("deploy", "machine")
            self.unknown(
                at, f"unknown machine `{machine}`: no link has this end", machine, self.nodes
            )

    # All

    def plan(self) -> Object:
        """Returns the plan.

        Invalid values are problems and have harmless values in the plan.
        """
        model = self.model
        self.check_links()
        self.check_deploy()
        duration = time_of(model.duration)
        links = [self.link(i, link) for i, link in enumerate(self.links)]
        balancers = balancers_of(self)
        groups = groups_of(self)
        if not model.flows and model.store is None:
            self.complain(
                (), "the scenario has no traffic: describe flows as [[flows]], or a [store]"
            )
        plan: Object = {
            "duration": duration,
            "warmup": time_of(model.warmup),
            "nodes": [{"name": name} for name in self.nodes],
            "media": [self.medium(name) for name in self.media],
            "links": links,
            **({"balancers": balancers} if balancers else {}),
            "groups": groups,
            "observe": {
                "bottleneck": self.bottleneck(),
                "series_interval": self.series(duration),
                "per_flow_histograms": model.observe.per_flow,
                "monitor": model.observe.monitor,
                "capture": self.captured(),
                "snaplen": _core.parse_quantity("size", model.observe.snaplen),
                **({"qlog": traced} if (traced := self.traced()) else {}),
                "trace_hash": model.observe.trace_hash,
            },
        }
        if model.store is not None:
            plan["apps"] = [{"kind": "store", **store_of(self, model.store)}]
        if self.sources:
            plan["sources"] = self.sources
        return plan

    def captured(self) -> list[int]:
        """Returns the numbers of the links whose packets are captured."""
        found: list[int] = []
        for i, name in enumerate(self.model.observe.capture or []):
            at: Path = ("observe", "capture", i)
            for link in self.find_link(at, name):
                self.origins["observe", "capture", len(found)] = at
                found.append(link)
        return found

    def traced(self) -> list[int]:
        """Returns the numbers of the groups whose connections are traced as qlog."""
        names = names_of(self.model.flows)
        found: list[int] = []
        for i, name in enumerate(self.model.observe.qlog or []):
            at: Path = ("observe", "qlog", i)
            if name in names:
                self.origins["observe", "qlog", len(found)] = at
                found.append(names.index(name))
            else:
                self.unknown(at, f"unknown flow `{name}`", name, names)
        return found

    def series(self, duration: int) -> int:
        """Returns the interval of time series in ns; 0 for none.

        The automatic interval is at least 100 ms and gives at most 1000 samples. With many links it
        gives fewer samples, because each link has its own series.
        """
        text = self.model.observe.series
        if text != "auto":
            return time_of(text)
        samples = max(50, min(1000, 200_000 // max(1, len(self.links))))
        interval = AUTO_SERIES
        while duration // interval > samples:
            # the intervals are 100 ms, 200 ms, 500 ms, 1 s, ...
            interval = interval * 5 // 2 if str(interval)[0] == "2" else interval * 2
        return interval

    def check(self, plan: Plan) -> None:
        """Adds the engine's problems, except those that follow from problems found before."""
        try:
            _core.validate_plan(plan.text)
        except _core.PlanError as error:
            seen: dict[tuple[Path | None, str], None] = {}
            for path, message in error.problems:
                seen[self.origin(path), message] = None
            known = frozenset(self.paths)
            for origin, message in seen:
                if origin is not None and not _follows(origin, known):
                    self.complain(origin, message)
            if not self.problems:
                self.complain((), str(error))

    def origin(self, path: Path) -> Path | None:
        """Returns the scenario path for a path in the plan; None if problems there are omitted."""
        for length in range(len(path), 1, -1):
            if path[:length] in self.origins:
                return (*self.origins[path[:length]], *path[length:])
        rest = path[2:]
        match path:
            case ("duration" | "warmup",):
                return path
            case ("media", *_):
                return ("topology", "access")
            case ("links", int(i), *_):
                return self.links[i].origin(rest)
            case ("groups", int(i), *_):
                return group_place(self, i, rest)
            case ("balancers", int(i), *_):
                return balancer_place(self, i, rest)
            case ("apps", 0, *_):
                return store_place(self, rest)
            case ("observe", "bottleneck", *_):
                return ("bottleneck",) if self.links else None
            case ("observe", "series_interval"):
                return ("observe", "series")
            case ("groups",):
                return ("flows",)
            case ("links" | "balancers",) | ("observe", *_):
                return path
            case _:
                return ()


def _follows(origin: Path, known: frozenset[Path]) -> bool:
    """Returns whether a problem at `origin` follows from a known one at `origin` or below it."""
    if origin in {(), ("flows",), ("links",), ("balancers",)}:
        return False
    return any(path[: len(origin)] == origin for path in known)


BOTTLENECKS = "bottlenecks"
"""Common name of several bottleneck links if `bottleneck` lists more than one name."""

AUTO_SERIES = 100_000_000
"""Shortest automatic interval of time series, in ns."""


def resolve(model: Model, source: Source) -> Plan:
    """Returns the plan of a checked model; raises `ScenarioError` with every mistake."""
    resolver = _Resolver(model, source)
    if len(resolver.links) > limits.LINKS:
        # Making the plan of so many links would take too much memory.
        message = f"the scenario has more than {limits.LINKS // 2} links"
        raise ScenarioError([source.problem((), message)])
    plan = Plan.of(json.dumps(resolver.plan(), sort_keys=True, separators=(",", ":")))
    resolver.check(plan)
    if resolver.problems:
        raise ScenarioError(sorted(resolver.problems, key=lambda p: (p.line or 0, p.column or 0)))
    return plan
