"""A scenario's store as the plan's store: hosts become numbers, texts become parameters."""

from __future__ import annotations

from collections.abc import Mapping

from sojourn import _core
from sojourn.data import Object
from sojourn.scenario.context import Context
from sojourn.scenario.flows import DEFAULT_TCP
from sojourn.scenario.locate import Path
from sojourn.scenario.models import REQUESTS, WORKLOADS, Fault, Store
from sojourn.scenario.words import speculation, time_of

DEFAULT_DATA_CENTRE = "dc1"
DEFAULT_RECORDS = 10_000
"""Default number of records for workloads with other requests than inserts."""

_PLACES: dict[Path, Path] = {
    ("placement",): ("replication",),
    ("write_level",): ("consistency",),
    ("read_level",): ("consistency",),
    ("load", "arrivals", "every"): ("every",),
    ("workload", "scan_length"): ("scan",),
    ("patience", "write"): ("write_timeout",),
    ("patience", "read"): ("read_timeout",),
    ("patience", "client"): ("client_timeout",),
    ("patience", "speculate"): ("speculative",),
}
"""Paths in the scenario of those keys of the plan's store that have another name or place there."""

_PARTS = {"load", "workload", "patience"}
"""Tables of the plan's store whose keys are directly in the scenario's table `store`."""

_RELIES = {"replication": ("nodes", "data_centres"), "consistency": ("nodes", "replication")}
"""Keys that cannot be checked while one of the listed keys has a problem."""


def store_place(context: Context, rest: Path) -> Path | None:
    """Returns the scenario path for a path in the plan's store.

    Returns None if problems of other keys explain the problem.
    """
    if rest in _PLACES:
        rest = _PLACES[rest]
    elif rest[0] in _PARTS and len(rest) > 1:
        rest = rest[1:]
    elif rest[0] in ("nodes", "clients"):
        rest = rest[:1]
    relied = _RELIES.get(str(rest[0]), ())
    if any(path[:1] == ("store",) and path[1] in relied for path in context.paths):
        return None
    return ("store", *rest)


def store_of(context: Context, store: Store) -> Object:
    """Returns the plan's store; adds problems to the context."""
    at: Path = ("store",)
    nodes = context.hosts((*at, "nodes"), store.nodes)
    clients = context.hosts((*at, "clients"), store.clients)
    centres = list(store.data_centres) or [DEFAULT_DATA_CENTRE]
    hosts = {"nodes": nodes, "clients": clients}
    where = _places(context, (*at, "data_centres"), store.data_centres, hosts)
    racks = _places(context, (*at, "racks"), store.racks, {"nodes": nodes})
    named = list(store.racks)
    for one in [*nodes, *clients]:
        if store.data_centres and one not in where:
            name = context.nodes[one]
            context.complain(
                (*at, "data_centres"), f"`{name}` is in no data centre: add it to `data_centres`"
            )

    def host(node: int) -> Object:
        rack = named.index(racks[node]) + 1 if node in racks else 0
        centre = centres.index(where[node]) if node in where else 0
        return {"node": node, "data_centre": centre, "rack": rack}

    return {
        "name": store.name,
        "data_centres": centres,
        "nodes": [host(node) for node in nodes],
        "clients": [host(client) for client in clients],
        "tokens": store.tokens,
        "placement": _placement(context, store, centres),
        "write_level": store.write_consistency or store.consistency,
        "read_level": store.read_consistency or store.consistency,
        "coordinator": store.coordinator,
        "tcp": context.policy(
            "congestion", (*at, "tcp"), _core.parse_tcp, store.tcp, instead=DEFAULT_TCP
        ),
        "load": _load(context, store),
        "workload": _workload(store),
        "service": {
            **{
                key: context.words((*at, "service", key), _core.parse_span, text)
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
            "write": time_of(store.write_timeout),
            "read": time_of(store.read_timeout),
            "client": time_of(store.client_timeout),
            **_speculation(store.speculative),
            "read_repair": store.read_repair,
            "hints": store.hints,
            "detect": time_of(store.detect),
            "recover": time_of(store.recover),
        },
        "faults": [
            _fault(context, (*at, "faults", i), fault, nodes, clients)
            for i, fault in enumerate(store.faults)
        ],
    }


def _places(
    context: Context, at: Path, places: Mapping[str, list[str]], hosts: Mapping[str, list[int]]
) -> dict[int, str]:
    """Returns the data centre or rack of each host, from a table of hosts by place.

    `hosts` has the hosts that are allowed, by the key that lists them.
    """
    known = {node for listed in hosts.values() for node in listed}
    keys = " or ".join(f"`{key}`" for key in hosts)
    found: dict[int, str] = {}
    for place, names in places.items():
        for node in context.hosts((*at, place), names):
            name = context.nodes[node]
            if node not in known:
                context.complain((*at, place), f"`{name}` is not in the store's {keys}: add it")
            elif node in found:
                context.complain((*at, place), f"`{name}` is already in `{found[node]}`")
            found[node] = place
    return found


def _placement(context: Context, store: Store, centres: list[str]) -> Object:
    if isinstance(store.replication, int):
        return {"strategy": "simple", "factor": store.replication}
    for name in store.replication:
        if name not in centres:
            near = context.nearest(name, centres)
            at: Path = ("store", "replication", name)
            context.complain(at, f"unknown data centre `{name}`", **near)
    factors = [store.replication.get(name, 0) for name in centres]
    return {"strategy": "network-topology", "factors": factors}


def _speculation(text: str) -> Object:
    found = speculation(text)
    if found.share is None:
        return {"speculate": found.after}
    rule: Object = {"share": found.share, "least": found.least, "most": found.most}
    return {"speculate": None, "percentile": rule}


def _load(context: Context, store: Store) -> Object:
    arrivals: Object = {"kind": "closed", "think": time_of(store.think)}
    outstanding = 1 if store.outstanding is None else store.outstanding
    if store.every is not None:
        every = context.words(("store", "every"), _core.parse_span, store.every)
        arrivals = {"kind": "open", "every": every}
        outstanding = store.outstanding or 0
        if "think" in store.model_fields_set:
            context.complain(
                ("store", "think"),
                "`think` has no effect together with `every`: remove one of them",
            )
    return {
        "start": time_of(store.start),
        "requests": store.requests,
        "warmup": store.warmup,
        "outstanding": outstanding,
        "arrivals": arrivals,
    }


def _workload(store: Store) -> Object:
    given = store.workload
    asked, keys = (given, "uniform") if isinstance(given, dict) else WORKLOADS[given]
    shares = {kind: float(asked.get(kind, 0.0)) for kind in REQUESTS}
    records = store.records
    if records is None:
        records = 0 if shares["insert"] == 1 else DEFAULT_RECORDS
    return {
        **shares,
        "records": records,
        "keys": store.keys or keys,
        "value": int(_core.parse_quantity("size", store.value)),
        "scan_length": store.scan,
    }


def _fault(
    context: Context, at: Path, fault: Fault, nodes: list[int], clients: list[int]
) -> Object:
    what: Object = {"kind": "partition", "nodes": [], "clients": []}
    if (fault.crash is None) == (fault.partition is None):
        context.complain(at, "must have either `crash` or `partition`, not both")
    elif fault.crash is not None:
        for node in context.hosts((*at, "crash"), [fault.crash]):
            if node in nodes:
                what = {"kind": "crash", "node": nodes.index(node)}
            else:
                name = context.nodes[node]
                context.complain((*at, "crash"), f"`{name}` is not a node of the store")
    elif fault.partition is not None:
        apart = context.hosts((*at, "partition"), fault.partition)
        for host in apart:
            if host not in nodes and host not in clients:
                name = context.nodes[host]
                context.complain((*at, "partition"), f"`{name}` is not a host of the store")
        what = {
            "kind": "partition",
            "nodes": [nodes.index(host) for host in apart if host in nodes],
            "clients": [clients.index(host) for host in apart if host in clients],
        }
    begin = time_of(fault.at)
    until = None if fault.until is None else time_of(fault.until)
    return {"at": begin, "until": until, "what": what}
