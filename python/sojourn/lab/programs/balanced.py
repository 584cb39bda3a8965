"""Plans and addresses for the programs of flows whose servers a balancer selects.

Clients send to a virtual address, and all servers listen for every flow. The virtual address
belongs to an additional host, which no plan has. A client executes a plan in which the additional
host is the receiver of the flows. A server executes a plan in which the server is their receiver.
Programs therefore need no code for balancers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from sojourn.lab.programs.errors import NotPossible, Problem
from sojourn.plan import Group, Node, Plan
from sojourn.plan.balancers import Balancer
from sojourn.plan.flows import Flow
from sojourn.plan.traffic.bulk import Bulk
from sojourn.plan.traffic.web import Web

APPS = ("bulk", "cbr", "packets", "voip", "replay", "external", "transfer", "web")
"""Applications whose flows can be balanced in real runs."""
APART = ("transfer", "web")
"""Applications for which the balancer selects a server for each connection."""


@dataclass(frozen=True)
class Balanced:
    """The balancer of a plan, and its flows."""

    plan: Plan
    balancer: Balancer
    """The plan's balancer."""

    @property
    def name(self) -> str:
        """Name of the balancer."""
        return self.balancer.name

    @property
    def virtual(self) -> int:
        """Number of the host that represents the virtual address."""
        return len(self.plan.nodes)

    @property
    def servers(self) -> tuple[int, ...]:
        """Numbers of the balancer's servers."""
        return tuple(server.node for server in self.balancer.servers)

    @cached_property
    def switch(self) -> int:
        """Number of the node at which the links to all servers begin."""
        return self.plan.links[self.balancer.servers[0].port].from_

    @cached_property
    def groups(self) -> frozenset[int]:
        """Numbers of the groups whose flows the balancer assigns to servers."""
        found = enumerate(self.plan.groups)
        return frozenset(n for n, group in found if group.balancer is not None)

    @property
    def affinity(self) -> str:
        """The controller's affinity: `client-port` or `none`.

        Flows with iperf3 need `client-port`: iperf3's two connections to a port must go to
        the same server.
        """
        has_bulk = any(isinstance(self.plan.groups[n].app, Bulk) for n in self.groups)
        return "client-port" if has_bulk else "none"

    def receivers(self, flow: Flow) -> tuple[int, ...]:
        """Returns the numbers of hosts that may receive a flow other than a Web session."""
        return self.servers if flow.group in self.groups else (flow.receiver,)

    def serving(self, flow: Flow) -> tuple[int, ...]:
        """Returns the numbers of hosts that may serve a Web session."""
        return self.servers if flow.group in self.groups else flow.servers

    def meetings(self, flow: Flow) -> list[tuple[int, int]]:
        """Returns the pairs of sender and receiver that a flow may have."""
        if flow.app == "web":
            return [(node, flow.receiver) for node in self.serving(flow)]
        return [(flow.sender, node) for node in self.receivers(flow)]

    def measured_outside(self, flow: Flow) -> bool:
        """Returns whether the wire must measure a flow's transfers, because its programs cannot."""
        return flow.group in self.groups and flow.app == "transfer"

    def sent(self, flow: Flow) -> Flow:
        """Returns the flow as its sender needs it: a balanced flow goes to the virtual address."""
        return replace(flow, receiver=self.virtual) if flow.group in self.groups else flow

    def ways(self, flow: Flow) -> list[tuple[int, int]]:
        """Returns a flow's possible pairs of sender and receiver, with the virtual address."""
        if flow.group not in self.groups:
            return self.meetings(flow)
        goals = (*self.servers, self.virtual)
        if flow.app == "web":
            return [(goal, flow.receiver) for goal in goals]
        return [(flow.sender, goal) for goal in goals]

    def plan_of(self, node: int) -> Plan:
        """Returns the plan that the programs of a host execute."""
        server = node in self.servers
        goal = node if server else self.virtual
        groups = tuple(
            replace(
                group, balancer=None, pairs=_with(goal, group) if n in self.groups else group.pairs
            )
            for n, group in enumerate(self.plan.groups)
        )
        plan = replace(self.plan, balancers=(), groups=groups)
        if server:
            return plan
        first = plan.links[self.balancer.servers[0].port]
        ends = ((self.switch, self.virtual), (self.virtual, self.switch))
        more = tuple(
            replace(first, name=f"{self.name} {n}", from_=a, to=b) for n, (a, b) in enumerate(ends)
        )
        nodes = (*plan.nodes, Node(name=f"{self.name} itself"))
        return replace(plan, nodes=nodes, links=(*plan.links, *more))


def _with(goal: int, group: Group) -> tuple[tuple[int, int], ...]:
    """Returns a balanced group's pairs with `goal` as the server."""
    if isinstance(group.app, Web):
        return tuple((goal, client) for _, client in group.pairs)
    return tuple((client, goal) for client, _ in group.pairs)


def find(plan: Plan) -> Balanced | None:
    """Returns a plan's balancer, or `None`; raises `NotPossible` if real runs do not support it."""
    if not plan.balancers:
        return None
    problems = []
    if len(plan.balancers) > 1:
        has = "a real run has one switch"
        problems.append(Problem("", f"{len(plan.balancers)} balancers", has))
    found = Balanced(plan, plan.balancers[0])
    starts = {plan.links[server.port].from_ for server in found.balancer.servers}
    if len(starts) > 1:
        has = "in a real run the links to all servers begin at one switch"
        problems.append(Problem(found.name, "servers behind several switches", has))
    busy = {n for group in plan.groups for pair in group.pairs for n in pair}
    if found.switch in busy:
        has = "in a real run the switch cannot send or receive"
        problems.append(Problem(found.name, "flows from or to the switch", has))
    if any(server.service is not None for server in found.balancer.servers):
        has = "the service time of real servers cannot be set: omit `service`"
        problems.append(Problem(found.name, "service", has))
    apps = {}
    for n in sorted(found.groups):
        group = plan.groups[n]
        name = apps[n] = group.app.TAG
        if name not in APPS:
            has = f"real runs can balance {', '.join(APPS)}"
            problems.append(Problem(group.name, name, has))
    for app in APART:
        if {"bulk", app} <= set(apps.values()):
            has = f"iperf3 needs one server for all connections; {app} gets one for each connection"
            problems.append(Problem(found.name, f"bulk together with {app}", has))
    if problems:
        raise NotPossible(problems)
    return found
