"""Contents of plans by kind: applications of the plan itself, and programs of flows."""

from __future__ import annotations

import shlex
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class OwnProgram:
    """A user's program that a group of flows runs."""

    group: str
    role: str
    """`client` or `server`."""
    host: str
    """Its host; the first of several."""
    words: tuple[str, ...]
    """Command line, with placeholders."""
    folder: str

    def __str__(self) -> str:
        return f"{self.role} of `{self.group}` on {self.host}: `{shlex.join(self.words)}`"


def own_programs(plan: Mapping[str, Any]) -> list[OwnProgram]:
    """Returns the users' programs that a plan runs, in its order."""
    found = []
    for group in plan["groups"]:
        app = group["app"]
        if app["name"] != "command":
            continue
        for role, end in (("server", 1), ("client", 0)):
            if app[role]:
                host = plan["nodes"][group["pairs"][0][end]]["name"]
                words = tuple(app[role])
                found.append(OwnProgram(group["name"], role, host, words, app["folder"]))
    return found


def store_in(plan: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns a plan's store, if it has one."""
    return next((app for app in plan.get("apps", ()) if app["kind"] == "store"), None)


def the_store(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the store of a plan that has one."""
    found = store_in(plan)
    if found is None:
        raise ValueError("the plan has no store")
    return found


def crosses(plan: Mapping[str, Any], group: Mapping[str, Any]) -> bool:
    """Returns whether packets of a group of flows cross the bottleneck.

    The first pair of hosts represents all. A TCP flow's packets go both ways. A balancer's flows
    have several ways and count as crossing.
    """
    pair = group["pairs"][0]
    if len(pair) < 2:
        return True
    ways = [tuple(pair)]
    if group["transport"]["protocol"] == "tcp":
        ways.append((pair[1], pair[0]))
    subjects = [plan["links"][i] for i in plan["observe"]["bottleneck"]["links"]]
    return any(_crosses(plan, way, link) for way in ways for link in subjects)


def _crosses(plan: Mapping[str, Any], way: tuple[int, ...], link: Mapping[str, Any]) -> bool:
    """Returns whether a link is on a shortest path between two nodes."""
    start, end = way
    to = _medium(plan, link["medium"]) if link["to"] is None else link["to"]
    whole, before = _distances(plan, start), link["from"]
    rest = _distances(plan, to)
    if not {before, end} <= whole.keys() or end not in rest:
        return False
    return whole[before] + 1 + rest[end] == whole[end]


def _medium(plan: Mapping[str, Any], number: int) -> int:
    """Returns a shared medium's number as a place, after the nodes."""
    return len(plan["nodes"]) + number


def _distances(plan: Mapping[str, Any], start: int) -> dict[int, int]:
    """Returns the number of links from a place to all others; a medium leads to its stations."""
    near: dict[int, set[int]] = defaultdict(set)
    for link in plan["links"]:
        if link["to"] is None:
            medium = _medium(plan, link["medium"])
            near[link["from"]].add(medium)
            near[medium].add(link["from"])
        else:
            near[link["from"]].add(link["to"])
    found, waiting = {start: 0}, deque([start])
    while waiting:
        here = waiting.popleft()
        for other in near[here] - found.keys():
            found[other] = found[here] + 1
            waiting.append(other)
    return found
