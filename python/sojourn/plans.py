"""Properties of plans: the user's programs, the store, and the flows across the bottleneck."""

from __future__ import annotations

import shlex
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class OwnProgram:
    """A user's own program of a group of flows."""

    group: str
    role: str
    """`client` or `server`."""
    host: str
    """Name of the host; of several hosts, the first."""
    words: tuple[str, ...]
    """Command line, with placeholders."""
    folder: str
    """Folder of the scenario."""

    def __str__(self) -> str:
        return f"{self.role} of `{self.group}` on {self.host}: `{shlex.join(self.words)}`"


def own_programs(plan: Mapping[str, Any]) -> list[OwnProgram]:
    """Returns the user's own programs of a plan, in the order of the groups."""
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
    """Returns the store of a plan; `None` if it has none."""
    return next((app for app in plan.get("apps", ()) if app["kind"] == "store"), None)


def the_store(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the store of a plan; raises `ValueError` if it has none."""
    found = store_in(plan)
    if found is None:
        raise ValueError("the plan has no store")
    return found


def crosses(plan: Mapping[str, Any], group: Mapping[str, Any]) -> bool:
    """Returns whether packets of a group of flows cross the bottleneck.

    Only the first pair of hosts of the group is examined. Packets of TCP flows go in both
    directions. Balanced flows always count as crossing the bottleneck.
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
    """Returns whether a link is on a shortest path from the first to the second node."""
    start, end = way
    to = _medium(plan, link["medium"]) if link["to"] is None else link["to"]
    whole, before = _distances(plan, start), link["from"]
    rest = _distances(plan, to)
    if not {before, end} <= whole.keys() or end not in rest:
        return False
    return whole[before] + 1 + rest[end] == whole[end]


def _medium(plan: Mapping[str, Any], number: int) -> int:
    """Returns the number that represents a shared medium, after the numbers of the nodes."""
    return len(plan["nodes"]) + number


def _distances(plan: Mapping[str, Any], start: int) -> dict[int, int]:
    """Returns the distance from `start` to each node and medium that can be reached.

    The distance is a number of links. A shared medium is connected to all its stations.
    """
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
