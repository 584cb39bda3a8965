"""From a scenario's store to a plan's: hosts become indices, texts become numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sojourn import _core
from sojourn.scenario.models import SHARES, WORKLOADS, Fault, Store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sojourn.scenario.locate import Path
    from sojourn.scenario.resolve import _Resolver

Json = dict[str, Any]

DEFAULT_DATA_CENTRE = "dc1"
DEFAULT_RECORDS = 10_000
"""Records of a workload that reads or updates, if nobody says how many."""

STORE_PLACES: dict[str, tuple[str, ...]] = {
    "placement": ("replication",),
    "write_level": ("consistency",),
    "read_level": ("consistency",),
    "load": ("every",),
    "timeouts": ("write_timeout",),
}
"""Where in the scenario a complaint about a key of the plan's store belongs."""


def _time(text: str) -> int:
    return int(_core.parse_quantity("time", text))


def store_of(resolver: _Resolver, store: Store, groups: list[str]) -> Json:
    """The plan's store; what does not fit is told to the resolver."""
    at: Path = ("store",)
    if store.name in {*groups, *resolver.link_index, *resolver.media, resolver.bottleneck_name}:
        resolver.complain((*at, "name"), f"`{store.name}` is taken, and results are named after it")
    nodes = resolver.hosts((*at, "nodes"), store.nodes)
    clients = resolver.hosts((*at, "clients"), store.clients)
    centres = list(store.data_centres) or [DEFAULT_DATA_CENTRE]
    where = _places(resolver, (*at, "data_centres"), store.data_centres, {*nodes, *clients})
    racks = _places(resolver, (*at, "racks"), store.racks, set(nodes))
    named = list(store.racks)
    for one in [*nodes, *clients]:
        if store.data_centres and one not in where:
            name = resolver.nodes[one]
            resolver.complain((*at, "data_centres"), f"`{name}` stands in no data centre")

    def host(node: int) -> Json:
        rack = named.index(racks[node]) + 1 if node in racks else 0
        centre = centres.index(where[node]) if node in where else 0
        return {"node": node, "data_centre": centre, "rack": rack}

    return {
        "name": store.name,
        "data_centres": centres,
        "nodes": [host(node) for node in nodes],
        "clients": [host(client) for client in clients],
        "tokens": store.tokens,
        "placement": _placement(resolver, store, centres),
        "write_level": store.write_consistency or store.consistency,
        "read_level": store.read_consistency or store.consistency,
        "coordinator": store.coordinator,
        "tcp": resolver.words((*at, "tcp"), _core.parse_tcp, store.tcp),
        "load": _load(resolver, store),
        "workload": _workload(store),
        "service": {
            **{
                key: resolver.words((*at, "service", key), _core.parse_span, text)
                for key, text in (
                    ("coordinate", store.service.coordinate),
                    ("write", store.service.write),
                    ("read", store.service.read),
                )
            },
            "threads": store.service.threads,
            "queue": store.service.queue,
        },
        "patience": {
            "write": _time(store.write_timeout),
            "read": _time(store.read_timeout),
            "client": _time(store.client_timeout),
            "speculate": None if store.speculative == "none" else _time(store.speculative),
            "read_repair": store.read_repair,
            "hints": store.hints,
            "detect": _time(store.detect),
            "recover": _time(store.recover),
        },
        "faults": [
            _fault(resolver, (*at, "faults", i), fault, nodes, clients)
            for i, fault in enumerate(store.faults)
        ],
    }


def _places(
    resolver: _Resolver, at: Path, places: Mapping[str, list[str]], known: set[int]
) -> dict[int, str]:
    """Which place each host stands in."""
    found: dict[int, str] = {}
    for place, names in places.items():
        for node in resolver.hosts((*at, place), names):
            name = resolver.nodes[node]
            if node not in known:
                resolver.complain((*at, place), f"`{name}` is no host of the store")
            elif node in found:
                resolver.complain((*at, place), f"`{name}` stands in `{found[node]}` already")
            found[node] = place
    return found


def _placement(resolver: _Resolver, store: Store, centres: list[str]) -> Json:
    if isinstance(store.replication, int):
        return {"strategy": "simple", "factor": store.replication}
    for name in store.replication:
        if name not in centres:
            near = resolver.nearest(name, centres)
            at: Path = ("store", "replication", name)
            resolver.complain(at, f"unknown data centre `{name}`", **near)
    factors = [store.replication.get(name, 0) for name in centres]
    return {"strategy": "network-topology", "factors": factors}


def _load(resolver: _Resolver, store: Store) -> Json:
    arrivals: Json = {"kind": "closed", "think": _time(store.think)}
    outstanding = 1 if store.outstanding is None else store.outstanding
    if store.every is not None:
        every = resolver.words(("store", "every"), _core.parse_span, store.every)
        arrivals = {"kind": "open", "every": every}
        outstanding = store.outstanding or 0
        if "think" in store.model_fields_set:
            resolver.complain(("store", "think"), "an open loop (`every`) does not think")
    return {
        "start": _time(store.start),
        "requests": store.requests,
        "warmup": store.warmup,
        "outstanding": outstanding,
        "arrivals": arrivals,
    }


def _workload(store: Store) -> Json:
    name = store.workload
    given = WORKLOADS[name] if isinstance(name, str) else name
    shares = {share: float(given.get(share, 0.0)) for share in SHARES}
    records = store.records
    if records is None:
        records = 0 if shares["insert"] == 1 else DEFAULT_RECORDS
    ycsb = isinstance(name, str) and name.startswith("ycsb")
    usual = "uniform" if not ycsb else "latest" if name == "ycsb-d" else "zipfian"
    return {
        **shares,
        "records": records,
        "keys": store.keys or usual,
        "value": int(_core.parse_quantity("size", store.value)),
        "scan_length": store.scan,
    }


def _fault(
    resolver: _Resolver, at: Path, fault: Fault, nodes: list[int], clients: list[int]
) -> Json:
    what: Json = {}
    if (fault.crash is None) == (fault.partition is None):
        resolver.complain(at, "is either a `crash` or a `partition`")
    elif fault.crash is not None:
        for node in resolver.hosts((*at, "crash"), [fault.crash]):
            if node in nodes:
                what = {"kind": "crash", "node": nodes.index(node)}
            else:
                name = resolver.nodes[node]
                resolver.complain((*at, "crash"), f"`{name}` is no node of the store")
    elif fault.partition is not None:
        apart = resolver.hosts((*at, "partition"), fault.partition)
        for host in apart:
            if host not in nodes and host not in clients:
                name = resolver.nodes[host]
                resolver.complain((*at, "partition"), f"`{name}` is no host of the store")
        what = {
            "kind": "partition",
            "nodes": [nodes.index(host) for host in apart if host in nodes],
            "clients": [clients.index(host) for host in apart if host in clients],
        }
    begin = _time(fault.at)
    until = None if fault.until is None else _time(fault.until)
    if until is not None and until <= begin:
        resolver.complain((*at, "until"), "is over before it begins")
    return {"at": begin, "until": until, "what": what}
