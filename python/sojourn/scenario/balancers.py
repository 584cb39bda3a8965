"""Balancers of a scenario: which servers, whose ports are looked at, and when they are gone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sojourn import _core

if TYPE_CHECKING:
    from sojourn.scenario.locate import Path
    from sojourn.scenario.models import Balancer, Flow, ServerFault
    from sojourn.scenario.resolve import _Resolver

Json = dict[str, Any]

BALANCER_PLACES: dict[str, tuple[str, ...]] = {
    **{key: (key,) for key in ("policy", "delay", "decision", "servers", "misses", "faults")},
    "probes": ("health_every",),
}
"""Where in a scenario's balancer a place in the plan's comes from."""


def _time(text: str) -> int:
    return int(_core.parse_quantity("time", text))


def balancer_of(resolver: _Resolver, name: str, given: Balancer, links: list[Json]) -> Json:
    """A balancer of the plan. Where its servers are gone, `links` lose everything."""
    at: Path = ("balancers", name)
    for taken, what in (
        (resolver.node_index, "a host"),
        (resolver.aliases, "the template's name for several hosts"),
        (resolver.link_index, "a link"),
        (resolver.link_aliases, "the template's name for several links"),
        (resolver.media, "a medium"),
    ):
        if name in taken:
            resolver.complain(at, f"`{name}` is {what} already")
            break
    nodes = resolver.hosts((*at, "servers"), given.servers)
    servers = [_server(resolver, at, i, node, given) for i, node in enumerate(nodes)]
    for i, node in enumerate(nodes):
        if node in nodes[:i]:
            resolver.complain((*at, "servers"), f"`{resolver.nodes[node]}` is named twice")
            break
    plan = {
        "name": name,
        "policy": resolver.words((*at, "policy"), _core.parse_balancer, given.policy),
        "servers": servers,
        "delay": _time(given.delay),
        "decision": _time(given.decision),
    }
    if given.faults:
        plan["probes"] = {"every": _time(given.health_every), "misses": given.misses}
        plan["faults"] = [
            _fault(resolver, (*at, "faults", i), fault, nodes, links)
            for i, fault in enumerate(given.faults)
        ]
    return plan


def _server(resolver: _Resolver, at: Path, index: int, node: int, given: Balancer) -> Json:
    host = resolver.nodes[node]
    ports = [i for i, link in enumerate(resolver.links) if link.target == host]
    if len(ports) != 1:
        found = ", ".join(resolver.links[i].name for i in ports) or "none"
        resolver.complain(
            (*at, "servers"),
            f"`{host}` needs a single link that leads to it, whose queue is looked at; "
            f"found {found}",
        )
    server: Json = {
        "node": node,
        "port": ports[0] if ports else 0,
        "weight": given.weights[index % len(given.weights)],
    }
    if given.service is not None:
        text = given.service[index % len(given.service)]
        server["service"] = resolver.words((*at, "service"), _core.parse_span, text)
    return server


def _fault(
    resolver: _Resolver, at: Path, fault: ServerFault, nodes: list[int], links: list[Json]
) -> Json:
    begin = _time(fault.at)
    until = None if fault.until is None else _time(fault.until)
    if until is not None and until <= begin:
        resolver.complain((*at, "until"), "is over before it begins")
    server = 0
    for node in resolver.hosts((*at, "server"), [fault.server]):
        if node not in nodes:
            resolver.complain((*at, "server"), f"`{fault.server}` is not behind this balancer")
            break
        server = nodes.index(node)
        for link in links:
            if node in (link["from"], link["to"]):
                _cut(resolver, at, link, begin, until)
    return {"server": server, "at": begin, "until": until}


def _cut(resolver: _Resolver, at: Path, link: Json, begin: int, until: int | None) -> None:
    """A link carries nothing for a while; its rate and queue work on."""
    own = {key: link["params"].get(key) for key in ("delay", "impairments")}
    dead = {"delay": own["delay"], "impairments": _everything_lost()}
    if any(change["wire"] not in (None, own, dead) for change in link["changes"]):
        resolver.complain(
            at, f"`{link['name']}` changes its `netem` on the way too: one of both is possible"
        )
    turn = {"every": 0, "rate": None}
    link["changes"].append({"at": begin, **turn, "wire": dead})
    if until is not None:
        link["changes"].append({"at": until, **turn, "wire": own})


def _everything_lost() -> Json:
    found: Json = json.loads(_core.parse_netem("loss 100%"))["impairments"]
    return found


def _is_web(flow: Flow) -> bool:
    return flow.app.split()[0] == "web"


def ends_of(
    resolver: _Resolver, at: Path, flow: Flow
) -> tuple[int | None, tuple[list[int], list[int]]]:
    """The balancer of a flow's group, if it has one, and who sends to whom.

    A balanced group stands in the plan with its first server: as the receiver, or, of Web pages,
    which servers send, as the sender.
    """
    balancers = list(resolver.model.balancers)
    ours, other = ("from", "to") if _is_web(flow) else ("to", "from")
    names = {"from": flow.from_, "to": flow.to}
    found: dict[str, list[int]] = {}
    for key, listed in names.items():
        if key == other and any(name in balancers for name in listed):
            name = next(name for name in listed if name in balancers)
            resolver.complain(
                (*at, key),
                f"Web pages come from servers: `{name}` belongs into `from`, clients into `to`"
                if _is_web(flow)
                else f"`{name}` is a balancer, which sends nothing but `web`: it belongs into `to`",
            )
            found[key] = []
    named = [name for name in names[ours] if name in balancers]
    balancer = balancers.index(named[0]) if named else None
    if balancer is not None:
        if len(names[ours]) > 1:
            word = "receiver" if ours == "to" else "sender"
            resolver.complain(
                (*at, ours),
                f"`{named[0]}` is a balancer: no other {word} may stand beside it",
            )
        servers = resolver.balancers[balancer]["servers"]
        found[ours] = [server["node"] for server in servers[:1]]
    for key, listed in names.items():
        if key not in found:
            found[key] = resolver.hosts((*at, key), listed)
    return balancer, (found["from"], found["to"])


def balanced_pairs(
    flow: Flow, pairs: list[tuple[int, int]], servers: list[int]
) -> list[tuple[int, int]]:
    """Everybody who may send to whom, of a balanced group."""
    if _is_web(flow):
        return [(server, client) for _, client in pairs for server in servers]
    return [(client, server) for client, _ in pairs for server in servers]
