"""Balancers of a scenario: their servers, the ports that they observe, and outages of servers."""

from __future__ import annotations

import json

from sojourn import _core
from sojourn.data import Object
from sojourn.scenario.context import Context
from sojourn.scenario.locate import Path
from sojourn.scenario.models import Balancer, ServerFault
from sojourn.scenario.words import time_of


def balancers_of(context: Context) -> list[Object]:
    """Returns the plan's balancers.

    While a server is out of service, its links lose all packets.
    """
    given = context.model.balancers.items()
    return [_balancer(context, i, *item) for i, item in enumerate(given)]


def balancer_place(context: Context, index: int, rest: Path) -> Path:
    """Returns the scenario path for a path `rest` in the plan's balancer number `index`."""
    at: Path = ("balancers", list(context.model.balancers)[index])
    match rest:
        case ("probes", "every"):
            return (*at, "health_every")
        case ("probes", "misses"):
            return (*at, "misses")
        case ("name",):
            return at
        case (str(key), *_):
            return (*at, key)
        case _:
            return at


def _balancer(context: Context, index: int, name: str, given: Balancer) -> Object:
    at: Path = ("balancers", name)
    for taken, what in (
        (context.node_index, "a host"),
        (context.aliases, "the template's name for several hosts"),
        (context.link_aliases, "the template's name for several links"),
    ):
        if name in taken:
            context.complain(at, f"`{name}` is already {what}")
            break
    nodes = context.servers[name] = context.hosts((*at, "servers"), given.servers)
    servers = [_server(context, at, i, node, given) for i, node in enumerate(nodes)]
    balancer: Object = {
        "name": name,
        "policy": context.policy(
            "balancer", (*at, "policy"), _core.parse_balancer, given.policy, instead="random"
        ),
        "servers": servers,
        "delay": time_of(given.delay),
        "decision": time_of(given.decision),
    }
    if given.faults:
        balancer["probes"] = {"every": time_of(given.health_every), "misses": given.misses}
        faults: list[Object] = []
        for i, fault in enumerate(given.faults):
            where: Path = (*at, "faults", i)
            for server in _behind(context, where, fault, nodes):
                context.origins["balancers", index, "faults", len(faults)] = where
                faults.append(_fault(context, where, fault, server, nodes[server]))
        balancer["faults"] = faults
    return balancer


def _server(context: Context, at: Path, index: int, node: int, given: Balancer) -> Object:
    host = context.nodes[node]
    ports = [i for i, link in enumerate(context.links) if link.target == host]
    if len(ports) != 1:
        found = ", ".join(context.links[i].name for i in ports) or "none"
        context.complain(
            (*at, "servers"),
            f"`{host}` needs exactly one incoming link, because policies may observe the queue "
            f"of this link; incoming links: {found}",
        )
    server: Object = {
        "node": node,
        "port": ports[0] if ports else 0,
        "weight": given.weights[index % len(given.weights)],
    }
    if given.service is not None:
        text = given.service[index % len(given.service)]
        server["service"] = context.words((*at, "service"), _core.parse_span, text)
    return server


def _behind(context: Context, at: Path, fault: ServerFault, nodes: list[int]) -> list[int]:
    """Returns the number of a fault's server as a list; empty if the server is unknown."""
    found = context.hosts((*at, "server"), [fault.server])[:1]
    if found and found[0] not in nodes:
        context.complain((*at, "server"), f"`{fault.server}` is not a server of this balancer")
        return []
    return [nodes.index(node) for node in found]


def _fault(context: Context, at: Path, fault: ServerFault, server: int, node: int) -> Object:
    begin = time_of(fault.at)
    until = None if fault.until is None else time_of(fault.until)
    host = context.nodes[node]
    for number, link in enumerate(context.links):
        if host in (link.source, link.target):
            _cut(context, at, number, begin, until)
    return {"server": server, "at": begin, "until": until}


def _cut(context: Context, at: Path, number: int, begin: int, until: int | None) -> None:
    """Makes a link lose every packet from `begin` to `until`; its rate and queue do not change."""
    link = context.links[number]
    own = context.words(link.netem_at, _core.parse_netem, link.netem or "")
    dead = own | {"impairments": json.loads(_core.parse_netem("loss 100%"))["impairments"]}
    for turn in link.changes:
        if turn.netem is None:
            continue
        if context.words(turn.netem_at, _core.parse_netem, turn.netem) not in (own, dead):
            context.complain(
                at,
                f"`{link.name}` also changes its `netem`: use either `changes` or `faults`, "
                "not both",
            )
            break
    turns = context.changes[number]
    turns.append({"at": begin, "every": 0, "rate": None, "wire": dead})
    if until is not None:
        turns.append({"at": until, "every": 0, "rate": None, "wire": own})
