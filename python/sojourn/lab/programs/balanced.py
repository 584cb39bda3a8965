"""Flows whose server a balancer chooses, in the terms of their programs.

Clients send to a virtual address; all servers listen for every flow. The virtual address is that of
a host beyond the plan's last one, so programs need no special case: a client executes a plan in
which that host is the receiver, and each server one in which it is the receiver itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sojourn.lab.programs.errors import NotPossible, Problem
from sojourn.lab.programs.plan import Flow

APPS = ("bulk", "cbr", "packets", "voip", "replay", "external", "transfer", "web")
APART = ("transfer", "web")
"""Applications whose connections may each have a different server."""


@dataclass(frozen=True)
class Balanced:
    """The balancer of a plan, and its flows."""

    plan: Mapping[str, Any]
    balancer: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name of the balancer."""
        return str(self.balancer["name"])

    @property
    def virtual(self) -> int:
        """Number of the host that represents the virtual address."""
        return len(self.plan["nodes"])

    @property
    def servers(self) -> tuple[int, ...]:
        """The hosts behind the balancer."""
        return tuple(server["node"] for server in self.balancer["servers"])

    @cached_property
    def switch(self) -> int:
        """The node from which all servers' links start."""
        links = self.plan["links"]
        return int(links[self.balancer["servers"][0]["port"]]["from"])

    @cached_property
    def groups(self) -> frozenset[int]:
        """Groups whose flows the balancer assigns to servers."""
        found = enumerate(self.plan["groups"])
        return frozenset(n for n, group in found if group.get("balancer") is not None)

    @property
    def affinity(self) -> str:
        """Scope of affinity: iperf3's connections to one port go to the same server."""
        apps = {self.plan["groups"][n]["app"]["name"] for n in self.groups}
        return "client-port" if "bulk" in apps else "none"

    def receivers(self, flow: Flow) -> tuple[int, ...]:
        """Returns the possible receivers of a flow that is not a Web session."""
        return self.servers if flow.group in self.groups else (flow.receiver,)

    def serving(self, flow: Flow) -> tuple[int, ...]:
        """Returns the possible servers of a Web session."""
        return self.servers if flow.group in self.groups else flow.servers

    def meetings(self, flow: Flow) -> list[tuple[int, int]]:
        """Returns the pairs of hosts between which a flow's packets may go."""
        if flow.app == "web":
            return [(node, flow.receiver) for node in self.serving(flow)]
        return [(flow.sender, node) for node in self.receivers(flow)]

    def measured_outside(self, flow: Flow) -> bool:
        """Whether only the wire can measure a flow's transfers."""
        return flow.group in self.groups and flow.app == "transfer"

    def sent(self, flow: Flow) -> Flow:
        """Returns the flow with the receiver that its sender knows."""
        return replace(flow, receiver=self.virtual) if flow.group in self.groups else flow

    def ways(self, flow: Flow) -> list[tuple[int, int]]:
        """Returns the directions of a flow's data as pairs of hosts, with the virtual address."""
        if flow.group not in self.groups:
            return self.meetings(flow)
        goals = (*self.servers, self.virtual)
        if flow.app == "web":
            return [(goal, flow.receiver) for goal in goals]
        return [(flow.sender, goal) for goal in goals]

    def plan_of(self, node: int) -> str:
        """Returns the plan that a host executes."""
        plan = {key: value for key, value in self.plan.items() if key != "balancers"}
        server = node in self.servers
        goal = node if server else self.virtual
        plan["groups"] = [
            {key: value for key, value in group.items() if key != "balancer"}
            | ({"pairs": _with(goal, group)} if n in self.groups else {})
            for n, group in enumerate(self.plan["groups"])
        ]
        if not server:
            first = self.plan["links"][self.balancer["servers"][0]["port"]]
            ends = ((self.switch, self.virtual), (self.virtual, self.switch))
            more = [
                {**first, "name": f"{self.name} {n}", "from": a, "to": b}
                for n, (a, b) in enumerate(ends)
            ]
            plan["nodes"] = [*self.plan["nodes"], {"name": f"{self.name} itself"}]
            plan["links"] = [*self.plan["links"], *more]
        return json.dumps(plan)


def _with(goal: int, group: Mapping[str, Any]) -> list[list[int]]:
    """Returns a balanced group's pairs with `goal` as the server."""
    if group["app"]["name"] == "web":
        return [[goal, client] for _, client in group["pairs"]]
    return [[client, goal] for client, _ in group["pairs"]]


def find(plan: Mapping[str, Any]) -> Balanced | None:
    """Returns a plan's balancer, if any; raises `NotPossible` if it cannot be a real one."""
    balancers = plan.get("balancers") or []
    if not balancers:
        return None
    problems = []
    if len(balancers) > 1:
        problems.append(Problem("", f"{len(balancers)} balancers", "a real run has one switch"))
    found = Balanced(plan, balancers[0])
    links = plan["links"]
    starts = {links[server["port"]]["from"] for server in found.balancer["servers"]}
    if len(starts) > 1:
        has = "all its servers' links begin at one switch"
        problems.append(Problem(found.name, "servers behind several switches", has))
    busy = {n for group in plan["groups"] for pair in group["pairs"] for n in pair}
    if found.switch in busy:
        has = "the switch is no host"
        problems.append(Problem(found.name, "flows of its switch", has))
    if any(server.get("service") is not None for server in found.balancer["servers"]):
        has = "real servers take the time that they take: leave `service` out"
        problems.append(Problem(found.name, "service", has))
    for n in sorted(found.groups):
        group = plan["groups"][n]
        if group["app"]["name"] not in APPS:
            has = f"balanced for real are {', '.join(APPS)}"
            problems.append(Problem(group["name"], group["app"]["name"], has))
    apps = {plan["groups"][n]["app"]["name"] for n in found.groups}
    for app in APART:
        if {"bulk", app} <= apps:
            has = f"iperf3's connections must stay together, those of {app} must not"
            problems.append(Problem(found.name, f"bulk beside {app}", has))
    if problems:
        raise NotPossible(problems)
    return found
